/* Groups between OpenSM and the engine: who is a member, which MLID a group has. */
#include "shim.h"

/* Asks the host behind a port to join its groups again, because the MLID of one has changed. */
static boolean_t ask_to_join_again(struct shim *shim, const osm_port_t *port)
{
	osm_physp_t *physp = port->p_physp;
	osm_madw_context_t mad;
	ib_port_info_t info;

	if (!physp || !(physp->port_info.capability_mask & IB_PORT_CAP_HAS_CLIENT_REREG))
		return FALSE;
	info = physp->port_info;
	ib_port_info_set_client_rereg(&info, 1);
	/* A port is not told its own states as it reported them, some are refused: 0x02 is no change of the physical
	 * state, and polling where the link is down. */
	ib_port_info_set_port_state(&info, IB_LINK_NO_CHANGE);
	info.state_info2 = 0x02;
	memset(&mad, 0, sizeof(mad));
	mad.pi_context.node_guid = osm_node_get_node_guid(physp->p_node);
	mad.pi_context.port_guid = physp->port_guid;
	mad.pi_context.set_method = TRUE;
	mad.pi_context.client_rereg = TRUE;
	return osm_req_set(&shim->osm->sm, osm_physp_get_dr_path_ptr(physp), (uint8_t *)&info, sizeof(info),
			   IB_MAD_ATTR_PORT_INFO, cl_hton32(physp->port_num), FALSE, ib_port_info_get_m_key(&info), 0,
			   CL_DISP_MSGID_NONE, &mad) == IB_SUCCESS;
}

/* Notes that the host behind a port has to be asked. */
static void ask_later(struct shim *shim, const osm_port_t *port)
{
	if (shim->osm->subn.opt.no_clients_rereg)
		return;
	if (shim->ask_count == shim->ask_room) {
		size_t room = shim->ask_room ? 2 * shim->ask_room : 256;
		ib_net64_t *more = realloc(shim->ask, room * sizeof(*more));

		if (!more) {
			shim->asked += ask_to_join_again(shim, port) ? 1 : 0;
			return;
		}
		shim->ask = more;
		shim->ask_room = room;
	}
	shim->ask[shim->ask_count++] = port->guid;
}

static int by_guid(const void *a, const void *b)
{
	const ib_net64_t *left = a, *right = b;

	return (*left > *right) - (*left < *right);
}

/* Asks each host once, however many of its groups have moved. */
static void ask_all(struct shim *shim)
{
	size_t i;

	if (!shim->ask_count)
		return;
	qsort(shim->ask, shim->ask_count, sizeof(*shim->ask), by_guid);
	for (i = 0; i < shim->ask_count; i++) {
		const osm_port_t *port;

		if (i && shim->ask[i] == shim->ask[i - 1])
			continue;
		port = osm_get_port_by_guid(&shim->osm->subn, shim->ask[i]);
		if (port && ask_to_join_again(shim, port))
			shim->asked++;
	}
	shim->ask_count = 0;
}

/* Has the changes of a burst told when it is over: a second after the last one, ten after the first at the latest. */
static void tell_moves_soon(struct shim *shim)
{
	const uint64_t now = cl_get_time_stamp();

	if (!shim->burst_start)
		shim->burst_start = now;
	if (now - shim->burst_start < 9000000)
		cl_timer_start(&shim->burst_end, 1000);
}

void shim_tell_moves(void *context)
{
	struct shim *shim = context;

	CL_PLOCK_EXCL_ACQUIRE(&shim->osm->lock);
	raddle_plugin_tell_moves(shim->engine, shim->asked);
	shim->asked = 0;
	shim->burst_start = 0;
	CL_PLOCK_RELEASE(&shim->osm->lock);
}

/* Puts a group into the box of `mlid`, which may hold others. False: no memory. */
static boolean_t put_into_box(osm_subn_t *subnet, osm_mgrp_t *group, uint16_t mlid)
{
	osm_mgrp_box_t *from = osm_get_mbox_by_mlid(subnet, group->mlid);
	osm_mgrp_box_t *to = osm_get_mbox_by_mlid(subnet, cl_hton16(mlid));

	if (from == to)
		return TRUE;
	if (!to) {
		to = calloc(1, sizeof(*to));
		if (!to)
			return FALSE;
		to->mlid = mlid;
		cl_qlist_init(&to->mgrp_list);
		subnet->mboxes[mlid - IB_LID_MCAST_START_HO] = to;
	}
	cl_qlist_remove_item(&from->mgrp_list, &group->list_item);
	cl_qlist_insert_tail(&to->mgrp_list, &group->list_item);
	group->mlid = cl_hton16(mlid);
	group->mcmember_rec.mlid = group->mlid;
	if (cl_is_qlist_empty(&from->mgrp_list)) {
		subnet->mboxes[from->mlid - IB_LID_MCAST_START_HO] = NULL;
		osm_mgrp_box_delete(from);
	}
	return TRUE;
}

void shim_move_group(void *context, const uint8_t *mgid, uint16_t mlid)
{
	struct shim *shim = context;
	osm_mgrp_t *group = osm_get_mgrp_by_mgid(&shim->osm->subn, (ib_gid_t *)mgid);
	cl_map_item_t *item;

	if (!group || mlid < IB_LID_MCAST_START_HO || mlid > shim->osm->subn.max_mcast_lid_ho)
		return;
	if (!put_into_box(&shim->osm->subn, group, mlid)) {
		shim_log(shim, 0, "no memory for a multicast group");
		return;
	}
	for (item = cl_qmap_head(&group->mcm_port_tbl); item != cl_qmap_end(&group->mcm_port_tbl);
	     item = cl_qmap_next(item))
		ask_later(shim, ((osm_mcm_port_t *)item)->port);
	shim->osm->sa.dirty = TRUE;
}

static void count_members(osm_mgrp_t *group, size_t *groups, size_t *members)
{
	++*groups;
	*members += cl_qmap_count(&group->mcm_port_tbl);
}

static void list_members(osm_mgrp_t *group, struct raddle_group *entry, uint64_t *members)
{
	cl_map_item_t *item;

	memcpy(entry->mgid, group->mcmember_rec.mgid.raw, sizeof(entry->mgid));
	entry->mlid = cl_ntoh16(group->mlid);
	entry->fixed = group->well_known != FALSE;
	entry->members = members;
	for (item = cl_qmap_head(&group->mcm_port_tbl); item != cl_qmap_end(&group->mcm_port_tbl);
	     item = cl_qmap_next(item))
		members[entry->member_count++] = cl_ntoh64(((osm_mcm_port_t *)item)->port->guid);
}

void shim_sync_groups(struct shim *shim, boolean_t all, uint16_t now)
{
	osm_subn_t *subnet = &shim->osm->subn;
	size_t groups = 0, members = 0, pass;
	struct raddle_group *list = NULL;
	uint64_t *guids = NULL;
	unsigned top = shim->osm->sm.mlids_req_max, i;

	for (pass = 0; pass < 2; pass++) {
		size_t group_at = 0, member_at = 0;

		if (pass) {
			list = shim_array(groups, sizeof(*list));
			guids = shim_array(members, sizeof(*guids));
			if (!list || !guids) {
				shim_log(shim, 0, "no memory for the multicast groups");
				goto out;
			}
		}
		for (i = 0; i <= (unsigned)(IB_LID_MCAST_END_HO - IB_LID_MCAST_START_HO); i++) {
			osm_mgrp_box_t *box = subnet->mboxes[i];
			cl_list_item_t *item;

			if (!all && i > top && i + IB_LID_MCAST_START_HO > now)
				break;
			if (!box || (!all && i + IB_LID_MCAST_START_HO != now &&
				     (i > top || !shim->osm->sm.mlids_req[i])))
				continue;
			for (item = cl_qlist_head(&box->mgrp_list); item != cl_qlist_end(&box->mgrp_list);
			     item = cl_qlist_next(item)) {
				osm_mgrp_t *group = cl_item_obj(item, group, list_item);

				if (pass) {
					list_members(group, &list[group_at], guids + member_at);
					member_at += list[group_at].member_count;
					group_at++;
				} else
					count_members(group, &groups, &members);
			}
		}
	}
	raddle_plugin_sync(shim->engine, list, groups, all);
	ask_all(shim);
	if (raddle_plugin_moved(shim->engine))
		tell_moves_soon(shim);
out:
	free(list);
	free(guids);
}
