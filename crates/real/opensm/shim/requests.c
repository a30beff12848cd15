/* Requests to join and leave groups. OpenSM answers them; for a new group the engine says which MLID it takes. */
#include "shim.h"

/* Exported by opensm, in no installed header. */
void osm_mcmr_rcv_process(void *context, void *data);

/* OpenSM ignores requests until its first sweep as master is done (C15-0.1.3), so that their senders repeat them. It
 * looks when they arrive; one that is taken out of the queue later is ignored by the same rule. */
static boolean_t answers_requests(const osm_subn_t *subnet)
{
	return subnet->sm_state == IB_SMINFO_STATE_MASTER && !subnet->first_time_master_sweep &&
	       !subnet->force_first_time_master_sweep;
}

/* The port that makes a new group with this request; NULL if it makes none, or one whose MLID OpenSM chooses. */
static const osm_port_t *creator(const struct shim *shim, const ib_sa_mad_t *mad, ib_member_rec_t *record)
{
	static const ib_gid_t zero;
	osm_subn_t *subnet = &shim->osm->subn;
	const ib_net64_t needed = IB_MCR_COMPMASK_MGID | IB_MCR_COMPMASK_PORT_GID | IB_MCR_COMPMASK_JOIN_STATE |
				  IB_MCR_COMPMASK_QKEY | IB_MCR_COMPMASK_TCLASS | IB_MCR_COMPMASK_PKEY |
				  IB_MCR_COMPMASK_FLOW | IB_MCR_COMPMASK_SL;

	if (mad->method != IB_MAD_METHOD_SET || !shim->ours || !raddle_plugin_shares(shim->engine) ||
	    (mad->comp_mask & needed) != needed ||
	    !(record->scope_state & (IB_JOIN_STATE_FULL | IB_JOIN_STATE_SEND_ONLY_FULL)) ||
	    !memcmp(&record->mgid, &zero, sizeof(zero)) || osm_get_mgrp_by_mgid(subnet, &record->mgid))
		return NULL;
	return osm_get_port_by_alias_guid(subnet, record->port_gid.unicast.interface_id);
}

/* Lets OpenSM answer a request that makes a group, so that all its own rules hold: who may join, which MTU and rate
 * the group gets. It takes the MLID that the request names where no group has it yet. Ours may have some: their box is
 * out of its sight meanwhile, and the lock stays with us. False: there is no MLID of ours for the group. */
static boolean_t create_group(struct shim *shim, const osm_port_t *port, ib_member_rec_t *record, void *madw)
{
	osm_subn_t *subnet = &shim->osm->subn;
	osm_sa_t sa = shim->osm->sa;
	osm_mgrp_box_t *others, *own;
	uint16_t mlid, place;

	mlid = raddle_plugin_new_group(shim->engine, record->mgid.raw, cl_ntoh64(port->guid));
	if (mlid < IB_LID_MCAST_START_HO || mlid > subnet->max_mcast_lid_ho)
		return FALSE;
	place = mlid - IB_LID_MCAST_START_HO;
	others = subnet->mboxes[place];
	subnet->mboxes[place] = NULL;
	record->mlid = cl_hton16(mlid);
	sa.p_lock = &shim->no_lock;
	osm_mcmr_rcv_process(&sa, madw);
	own = subnet->mboxes[place];
	if (others) {
		if (own) {
			cl_qlist_insert_list_tail(&others->mgrp_list, &own->mgrp_list);
			osm_mgrp_box_delete(own);
		}
		subnet->mboxes[place] = others;
	}
	if (!osm_get_mgrp_by_mgid(subnet, &record->mgid))
		raddle_plugin_gone(shim->engine, record->mgid.raw);
	return TRUE;
}

/* Forgets a group that has gone with its last member. */
static void forget_group(struct shim *shim, ib_member_rec_t *record)
{
	CL_PLOCK_EXCL_ACQUIRE(&shim->osm->lock);
	/* while a sweep is under way the ways to switches may be gone: its end sends what has changed */
	if (shim->ours && !osm_get_mgrp_by_mgid(&shim->osm->subn, &record->mgid) &&
	    raddle_plugin_gone(shim->engine, record->mgid.raw) && !shim->sweeping)
		raddle_plugin_flush(shim->engine);
	CL_PLOCK_RELEASE(&shim->osm->lock);
}

static void receive_member_record(void *context, void *madw)
{
	struct shim *shim = context;
	const ib_sa_mad_t *mad = osm_madw_get_sa_mad_ptr((osm_madw_t *)madw);
	ib_member_rec_t *record = (ib_member_rec_t *)ib_sa_mad_get_payload_ptr((ib_sa_mad_t *)mad);
	const boolean_t changes = mad->method == IB_MAD_METHOD_SET || mad->method == IB_MAD_METHOD_DELETE;
	boolean_t done = FALSE;

	if (changes) {
		CL_PLOCK_EXCL_ACQUIRE(&shim->osm->lock);
		if (answers_requests(&shim->osm->subn)) {
			const osm_port_t *port = creator(shim, mad, record);

			done = port && create_group(shim, port, record, madw);
		} else
			done = TRUE;
		CL_PLOCK_RELEASE(&shim->osm->lock);
	}
	if (done)
		return;
	osm_mcmr_rcv_process(&shim->osm->sa, madw);
	if (changes)
		forget_group(shim, record);
}

void shim_take_requests(struct shim *shim)
{
	osm_sa_t *sa = &shim->osm->sa;
	/* with `single_thread TRUE` there is one dispatcher for all requests */
	cl_dispatcher_t *dispatcher = sa->p_set_disp ? sa->p_set_disp : sa->p_disp;
	cl_disp_reg_handle_t *handle = sa->p_set_disp ? &sa->mcmr_set_disp_h : &sa->mcmr_disp_h;

	cl_disp_unregister(*handle);
	*handle = cl_disp_register(dispatcher, OSM_MSG_MAD_MCMEMBER_RECORD, receive_member_record, shim);
	if (*handle == CL_DISP_INVALID_HANDLE)
		shim_log(shim, 0, "no memory: requests to join groups are not answered");
}
