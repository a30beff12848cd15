/* What of the plugin has to know OpenSM's structures: it hands subnets and groups to the engine and its tables back.
 * Every call of the engine happens under OpenSM's exclusive lock. */
#include <stdlib.h>
#include <string.h>

#include <complib/cl_dispatcher.h>
#include <complib/cl_passivelock.h>
#include <complib/cl_qmap.h>
#include <iba/ib_types.h>
#include <opensm/osm_event_plugin.h>
#include <opensm/osm_log.h>
#include <opensm/osm_mcast_tbl.h>
#include <opensm/osm_mcm_port.h>
#include <opensm/osm_msgdef.h>
#include <opensm/osm_multicast.h>
#include <opensm/osm_opensm.h>
#include <opensm/osm_sa.h>
#include <opensm/osm_subnet.h>
#include <opensm/osm_ucast_mgr.h>
#include <opensm/osm_version.h>

#include "raddle.h"

/* Exported by opensm, in no installed header. */
void osm_mcmr_rcv_process(void *context, void *data);

const char raddle_osm_version[] = OSM_VERSION;

struct shim {
	osm_opensm_t *osm;
	void *engine;
	osm_switch_t **switches; /* in the order of sw_guid_tbl at the last sweep */
	size_t switch_count;
	boolean_t ours;	 /* multicast of this subnet is routed here */
	boolean_t swept; /* there was a heavy sweep since groups were last compared */
	boolean_t resend;
};

/* One subnet manager per process: OpenSM itself has one, and some of its callbacks pass no context of ours. */
static struct shim *plugin;

static void log_line(void *context, int level, const char *message)
{
	struct shim *shim = context;

	osm_log(&shim->osm->log, level ? OSM_LOG_INFO : OSM_LOG_ERROR, "raddle: %s\n", message);
	if (!level)
		osm_log(&shim->osm->log, OSM_LOG_SYS, "raddle: %s\n", message);
}

static void send_block(void *context, uint32_t index, uint16_t block, uint8_t position, const uint16_t *masks)
{
	struct shim *shim = context;
	osm_sm_t *sm = &shim->osm->sm;
	ib_net16_t payload[IB_MCAST_BLOCK_SIZE];
	osm_madw_context_t mad;
	osm_mcast_tbl_t *table;
	osm_physp_t *physp;
	unsigned i;

	if (index >= shim->switch_count)
		return;
	/* OpenSM keeps what switches answer; its own tables are only as deep as the boxes of its last batch. */
	table = osm_switch_get_mcast_tbl_ptr(shim->switches[index]);
	if ((block + 1u) * IB_MCAST_BLOCK_SIZE > table->mft_depth &&
	    osm_mcast_tbl_realloc(table, block * IB_MCAST_BLOCK_SIZE + IB_MCAST_BLOCK_SIZE - 1))
		log_line(shim, 0, "no memory for OpenSM's record of a multicast table");
	physp = osm_node_get_physp_ptr(shim->switches[index]->p_node, 0);
	for (i = 0; i < IB_MCAST_BLOCK_SIZE; i++)
		payload[i] = cl_hton16(masks[i]);
	memset(&mad, 0, sizeof(mad));
	mad.mft_context.node_guid = osm_node_get_node_guid(shim->switches[index]->p_node);
	mad.mft_context.set_method = TRUE;
	if (osm_req_set(sm, osm_physp_get_dr_path_ptr(physp), (uint8_t *)payload, sizeof(payload),
			IB_MAD_ATTR_MCAST_FWD_TBL, cl_hton32(block | (uint32_t)position << 28), FALSE,
			ib_port_info_get_m_key(&physp->port_info), 0, CL_DISP_MSGID_NONE, &mad) != IB_SUCCESS) {
		shim->resend = TRUE;
		log_line(shim, 0, "a multicast table block could not be sent; all are sent again with the next sweep");
	}
}

static void set_mask(void *context, uint32_t index, uint16_t mlid, uint8_t port)
{
	struct shim *shim = context;
	osm_mcast_tbl_t *table;

	if (index >= shim->switch_count)
		return;
	table = osm_switch_get_mcast_tbl_ptr(shim->switches[index]);
	if (table->p_mask_tbl && mlid - IB_LID_MCAST_START_HO < table->mft_depth && mlid <= table->max_mlid_ho)
		osm_mcast_tbl_set(table, mlid, port);
}

/* OpenSM sends all blocks up to max_block_in_use of every switch after each batch. The engine has sent those that
 * changed, so OpenSM is told that none are in use. */
static void hide_tables(struct shim *shim)
{
	size_t i;

	for (i = 0; i < shim->switch_count; i++)
		osm_switch_get_mcast_tbl_ptr(shim->switches[i])->max_block_in_use = -1;
}

/* Asks the host behind a port to join its groups again, because the MLID of one has changed. */
static void ask_to_register_again(struct shim *shim, osm_port_t *port)
{
	osm_physp_t *physp = port->p_physp;
	osm_madw_context_t mad;
	ib_port_info_t info;

	if (!physp || shim->osm->subn.opt.no_clients_rereg ||
	    !(physp->port_info.capability_mask & IB_PORT_CAP_HAS_CLIENT_REREG))
		return;
	info = physp->port_info;
	ib_port_info_set_client_rereg(&info, 1);
	ib_port_info_set_port_state(&info, IB_LINK_NO_CHANGE);
	memset(&mad, 0, sizeof(mad));
	mad.pi_context.node_guid = osm_node_get_node_guid(physp->p_node);
	mad.pi_context.port_guid = physp->port_guid;
	mad.pi_context.set_method = TRUE;
	mad.pi_context.client_rereg = TRUE;
	osm_req_set(&shim->osm->sm, osm_physp_get_dr_path_ptr(physp), (uint8_t *)&info, sizeof(info),
		    IB_MAD_ATTR_PORT_INFO, cl_hton32(physp->port_num), FALSE, ib_port_info_get_m_key(&info), 0,
		    CL_DISP_MSGID_NONE, &mad);
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

static osm_mgrp_t *find_group(osm_subn_t *subnet, const uint8_t *mgid)
{
	cl_fmap_item_t *item = cl_fmap_get(&subnet->mgrp_mgid_tbl, mgid);

	return item == cl_fmap_end(&subnet->mgrp_mgid_tbl) ? NULL : (osm_mgrp_t *)item;
}

static void move_group(void *context, const uint8_t *mgid, uint16_t mlid)
{
	struct shim *shim = context;
	osm_mgrp_t *group = find_group(&shim->osm->subn, mgid);
	cl_map_item_t *item;

	if (!group || mlid < IB_LID_MCAST_START_HO || mlid > shim->osm->subn.max_mcast_lid_ho)
		return;
	if (!put_into_box(&shim->osm->subn, group, mlid)) {
		log_line(shim, 0, "no memory for a multicast group");
		return;
	}
	for (item = cl_qmap_head(&group->mcm_port_tbl); item != cl_qmap_end(&group->mcm_port_tbl);
	     item = cl_qmap_next(item))
		ask_to_register_again(shim, ((osm_mcm_port_t *)item)->port);
	shim->osm->sa.dirty = TRUE;
}

static void *array(size_t count, size_t size)
{
	return calloc(count ? count : 1, size);
}

/* Hands the discovered subnet to the engine. */
static boolean_t hand_over_subnet(struct shim *shim)
{
	osm_subn_t *subnet = &shim->osm->subn;
	size_t nodes = cl_qmap_count(&subnet->node_guid_tbl), ports = cl_qmap_count(&subnet->port_guid_tbl);
	size_t switches = cl_qmap_count(&subnet->sw_guid_tbl), links = 0, index = 0, i;
	struct raddle_subnet view;
	struct raddle_node *node_list = array(nodes, sizeof(*node_list));
	struct raddle_endport *port_list = array(ports, sizeof(*port_list));
	struct raddle_link *link_list = NULL;
	uint32_t *stale = array(switches, sizeof(*stale));
	osm_switch_t **switch_list = array(switches, sizeof(*switch_list));
	void **numbers = array(nodes, sizeof(*numbers)); /* priv of each node's switch while we count */
	cl_map_item_t *item;
	boolean_t ours = FALSE;

	memset(&view, 0, sizeof(view));
	if (!node_list || !port_list || !stale || !switch_list || !numbers)
		goto out;
	for (item = cl_qmap_head(&subnet->sw_guid_tbl); item != cl_qmap_end(&subnet->sw_guid_tbl);
	     item = cl_qmap_next(item)) {
		osm_switch_t *sw = (osm_switch_t *)item;

		sw->mft_block_num = (int32_t)index; /* free for use between batches: the switch's number */
		if (sw->need_update || subnet->need_update)
			stale[view.stale_count++] = (uint32_t)index;
		switch_list[index++] = sw;
	}
	free(shim->switches);
	shim->switches = switch_list;
	shim->switch_count = switches;
	switch_list = NULL;

	/* Nodes are in order of their GUIDs, so the place of a peer is found by binary search. */
	for (item = cl_qmap_head(&subnet->node_guid_tbl), index = 0; item != cl_qmap_end(&subnet->node_guid_tbl);
	     item = cl_qmap_next(item), index++) {
		osm_node_t *node = (osm_node_t *)item;

		numbers[index] = node;
		node_list[index].guid = cl_ntoh64(osm_node_get_node_guid(node));
		node_list[index].is_switch = node->sw != NULL;
		node_list[index].switch_index = node->sw ? (uint32_t)node->sw->mft_block_num : UINT32_MAX;
		links += node->physp_tbl_size;
	}
	link_list = array(links, sizeof(*link_list));
	if (!link_list)
		goto out;
	links = 0;
	for (index = 0; index < nodes; index++) {
		osm_node_t *node = numbers[index];

		for (i = 1; i < node->physp_tbl_size; i++) {
			osm_physp_t *physp = osm_node_get_physp_ptr(node, i), *peer;
			osm_node_t *peer_node;
			size_t low = 0, high = nodes;

			peer = physp ? osm_physp_get_remote(physp) : NULL;
			if (!peer || !osm_link_is_healthy(physp))
				continue;
			peer_node = osm_physp_get_node_ptr(peer);
			/* each link once; the map's order is that of the keys as they are stored */
			if (peer_node->map_item.key < node->map_item.key ||
			    (peer_node == node && peer->port_num <= physp->port_num))
				continue;
			while (low < high) {
				size_t middle = (low + high) / 2;

				if (((osm_node_t *)numbers[middle])->map_item.key < peer_node->map_item.key)
					low = middle + 1;
				else
					high = middle;
			}
			if (low >= nodes || numbers[low] != peer_node)
				continue;
			link_list[links].a = (uint32_t)index;
			link_list[links].b = (uint32_t)low;
			link_list[links].port_a = physp->port_num;
			link_list[links].port_b = peer->port_num;
			links++;
		}
	}
	ports = 0;
	for (item = cl_qmap_head(&subnet->port_guid_tbl); item != cl_qmap_end(&subnet->port_guid_tbl);
	     item = cl_qmap_next(item)) {
		osm_port_t *port = (osm_port_t *)item;
		size_t low = 0, high = nodes;

		if (!port->p_node || !port->p_physp)
			continue;
		while (low < high) {
			size_t middle = (low + high) / 2;

			if (((osm_node_t *)numbers[middle])->map_item.key < port->p_node->map_item.key)
				low = middle + 1;
			else
				high = middle;
		}
		if (low >= nodes || numbers[low] != port->p_node)
			continue;
		port_list[ports].guid = cl_ntoh64(port->guid);
		port_list[ports].node = (uint32_t)low;
		port_list[ports].lid = cl_ntoh16(osm_port_get_base_lid(port));
		port_list[ports].lmc = osm_port_get_lmc(port);
		port_list[ports].port = port->p_physp->port_num;
		ports++;
	}
	view.nodes = node_list;
	view.node_count = nodes;
	view.endports = port_list;
	view.endport_count = ports;
	view.links = link_list;
	view.link_count = links;
	view.mlids = subnet->max_mcast_lid_ho < IB_LID_MCAST_START_HO ? 0 :
		     (uint32_t)(subnet->max_mcast_lid_ho - IB_LID_MCAST_START_HO + 1);
	view.resend = shim->resend;
	view.stale = stale;
	shim->resend = FALSE;
	ours = raddle_plugin_subnet(shim->engine, &view) != 0;
out:
	free(node_list);
	free(port_list);
	free(link_list);
	free(stale);
	free(switch_list);
	free(numbers);
	return ours;
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

/* Calls `visit` for the groups that have to be compared: all of them, or those of MLIDs that OpenSM is about to
 * process and of `now`. */
static void sync_groups(struct shim *shim, boolean_t all, uint16_t now)
{
	osm_subn_t *subnet = &shim->osm->subn;
	size_t groups = 0, members = 0, pass;
	struct raddle_group *list = NULL;
	uint64_t *guids = NULL;
	unsigned top = shim->osm->sm.mlids_req_max, i;

	for (pass = 0; pass < 2; pass++) {
		size_t group_at = 0, member_at = 0;

		if (pass) {
			list = array(groups, sizeof(*list));
			guids = array(members, sizeof(*guids));
			if (!list || !guids) {
				log_line(shim, 0, "no memory for the multicast groups");
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
out:
	free(list);
	free(guids);
}

/* Callback of OpenSM for every MLID of a batch. The first one brings all groups of the batch up to date. */
static ib_api_status_t build_tree(void *context, osm_mgrp_box_t *box)
{
	struct shim *shim = plugin;
	uint16_t mlid = box->mlid; /* the box may go when its group moves */

	sync_groups(shim, shim->swept, mlid);
	shim->swept = FALSE;
	raddle_plugin_masks(shim->engine, mlid);
	hide_tables(shim);
	return IB_SUCCESS;
}

static int build_lid_matrices(void *context)
{
	struct shim *shim = plugin;
	osm_routing_engine_t *re = context;

	shim->ours = hand_over_subnet(shim);
	shim->swept = TRUE;
	re->mcast_build_stree = shim->ours ? build_tree : NULL;
	if (shim->ours && raddle_plugin_unicast(shim->engine))
		return 0;
	/* the next engine of the user's list, or OpenSM's minimum hops */
	return re->next ? -1 : 1;
}

static int build_tables(void *context)
{
	struct shim *shim = plugin;
	size_t i;

	if (!shim->ours || !raddle_plugin_unicast(shim->engine))
		return 1;
	for (i = 0; i < shim->switch_count; i++) {
		osm_switch_t *sw = shim->switches[i];

		raddle_plugin_lft(shim->engine, (uint32_t)i, sw->new_lft, (size_t)sw->max_lid_ho + 1);
	}
	return 0;
}

static int set_up(osm_routing_engine_t *re, osm_opensm_t *osm)
{
	re->context = re;
	re->build_lid_matrices = build_lid_matrices;
	re->ucast_build_fwd_tables = build_tables;
	return 0;
}

/* An MLID for a new group, possibly one that others use: OpenSM creates the group with all its own checks while the
 * box is out of its sight, then the group joins the others. Called with the lock held. */
static void create_group(struct shim *shim, const ib_sa_mad_t *mad, const ib_member_rec_t *record)
{
	osm_subn_t *subnet = &shim->osm->subn;
	ib_member_rec_t copy = *record;
	osm_mgrp_box_t *box;
	osm_mgrp_t *group;
	uint16_t mlid;

	mlid = raddle_plugin_new_group(shim->engine, record->mgid.raw,
				       cl_ntoh64(record->port_gid.unicast.interface_id));
	if (mlid < IB_LID_MCAST_START_HO || mlid > subnet->max_mcast_lid_ho)
		return;
	box = osm_get_mbox_by_mlid(subnet, cl_hton16(mlid));
	subnet->mboxes[mlid - IB_LID_MCAST_START_HO] = NULL;
	copy.mlid = cl_hton16(mlid);
	group = osm_mcmr_rcv_find_or_create_new_mgrp(&shim->osm->sa, mad->comp_mask, &copy);
	if (!group) {
		subnet->mboxes[mlid - IB_LID_MCAST_START_HO] = box;
		raddle_plugin_gone(shim->engine, record->mgid.raw);
		return;
	}
	if (group->mlid != cl_hton16(mlid)) {
		/* OpenSM put it elsewhere (consolidate_ipv6_snm_req); the engine follows with the next batch */
		subnet->mboxes[mlid - IB_LID_MCAST_START_HO] = box;
	} else if (box) {
		osm_mgrp_box_t *own = osm_get_mbox_by_mlid(subnet, group->mlid);

		cl_qlist_remove_item(&own->mgrp_list, &group->list_item);
		subnet->mboxes[own->mlid - IB_LID_MCAST_START_HO] = NULL;
		osm_mgrp_box_delete(own);
		subnet->mboxes[mlid - IB_LID_MCAST_START_HO] = box;
		cl_qlist_insert_tail(&box->mgrp_list, &group->list_item);
	}
}

static boolean_t is_zero(const uint8_t *mgid)
{
	static const uint8_t zero[16];

	return memcmp(mgid, zero, sizeof(zero)) == 0;
}

/* Takes the place of OpenSM's own receiver of MCMemberRecord Set and Delete, and calls it. */
static void receive_member_record(void *context, void *data)
{
	struct shim *shim = plugin;
	const ib_sa_mad_t *mad = osm_madw_get_sa_mad_ptr((osm_madw_t *)data);
	const ib_member_rec_t *record = (const ib_member_rec_t *)ib_sa_mad_get_payload_ptr((ib_sa_mad_t *)mad);
	const ib_net64_t needed = IB_MCR_COMPMASK_MGID | IB_MCR_COMPMASK_PORT_GID | IB_MCR_COMPMASK_JOIN_STATE |
				  IB_MCR_COMPMASK_QKEY | IB_MCR_COMPMASK_TCLASS | IB_MCR_COMPMASK_PKEY |
				  IB_MCR_COMPMASK_FLOW | IB_MCR_COMPMASK_SL;
	uint8_t mgid[16];
	boolean_t set = mad->method == IB_MAD_METHOD_SET;

	memcpy(mgid, record->mgid.raw, sizeof(mgid)); /* OpenSM frees the MAD */
	CL_PLOCK_EXCL_ACQUIRE(&shim->osm->lock);
	if (set && shim->ours && raddle_plugin_shares(shim->engine) && !is_zero(mgid) &&
	    (record->scope_state & IB_JOIN_STATE_FULL) && (mad->comp_mask & needed) == needed &&
	    osm_get_port_by_guid(&shim->osm->subn, record->port_gid.unicast.interface_id) &&
	    !find_group(&shim->osm->subn, mgid))
		create_group(shim, mad, record);
	CL_PLOCK_RELEASE(&shim->osm->lock);

	osm_mcmr_rcv_process(context, data);

	CL_PLOCK_EXCL_ACQUIRE(&shim->osm->lock);
	if (shim->ours && !find_group(&shim->osm->subn, mgid))
		raddle_plugin_gone(shim->engine, mgid);
	CL_PLOCK_RELEASE(&shim->osm->lock);
}

void *raddle_osm_create(osm_opensm_t *osm)
{
	static external_routing_engine_module_t module = { "raddle", set_up, NULL };
	struct raddle_host host = { NULL, log_line, send_block, set_mask, move_group };
	osm_routing_engine_t *re;

	if (plugin)
		return NULL;
	plugin = calloc(1, sizeof(*plugin));
	re = calloc(1, sizeof(*re));
	if (!plugin || !re)
		goto failed;
	plugin->osm = osm;
	host.context = plugin;
	plugin->engine = raddle_plugin_new(&host, osm->subn.opt.event_plugin_options);
	if (!plugin->engine)
		goto failed;
	/* `routing_engine raddle` may be written, but need not: this one stands before the user's list. */
	osm_register_external_routing_engine(osm, &module, NULL);
	re->type = OSM_ROUTING_ENGINE_TYPE_UNKNOWN;
	re->name = module.name;
	set_up(re, osm);
	re->next = osm->routing_engine_list;
	osm->routing_engine_list = re;
	/* OpenSM derives the top of the multicast tables from max_block_in_use, which hide_tables keeps at -1. */
	osm->subn.opt.use_mfttop = FALSE;
	cl_disp_unregister(osm->sa.mcmr_set_disp_h);
	osm->sa.mcmr_set_disp_h =
		cl_disp_register(osm->sa.p_set_disp, OSM_MSG_MAD_MCMEMBER_RECORD, receive_member_record, &osm->sa);
	return plugin;
failed:
	free(plugin);
	free(re);
	plugin = NULL;
	return NULL;
}

void raddle_osm_delete(void *data)
{
	struct shim *shim = data;

	if (!shim)
		return;
	raddle_plugin_free(shim->engine);
	free(shim->switches);
	free(shim);
	plugin = NULL;
}

void raddle_osm_report(void *data, osm_epi_event_id_t event, void *event_data)
{
	struct shim *shim = data;
	osm_routing_engine_t *used;

	if (!shim)
		return;
	switch (event) {
	case OSM_EVENT_ID_HEAVY_SWEEP_START:
		/* blocks that were under way when the last sweep failed may be lost */
		if (shim->osm->subn.subnet_initialization_error)
			shim->resend = TRUE;
		break;
	case OSM_EVENT_ID_UCAST_ROUTING_DONE:
		/* another engine of the list, or the one OpenSM fell back to, has done unicast */
		used = shim->osm->routing_engine_used;
		if (used && shim->ours)
			used->mcast_build_stree = build_tree;
		else if (used && used->mcast_build_stree == build_tree)
			used->mcast_build_stree = NULL;
		break;
	case OSM_EVENT_ID_SUBNET_UP:
		/* a sweep after which no group is left has no batch */
		CL_PLOCK_EXCL_ACQUIRE(&shim->osm->lock);
		if (shim->ours && shim->swept) {
			sync_groups(shim, TRUE, 0);
			shim->swept = FALSE;
		}
		CL_PLOCK_RELEASE(&shim->osm->lock);
		break;
	default:
		break;
	}
}
