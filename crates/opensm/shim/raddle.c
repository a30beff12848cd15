/* What of the plugin has to know OpenSM's structures: it hands subnets and groups to the engine and its tables back.
 * Every call of the engine happens under OpenSM's exclusive lock. */
#include "shim.h"

const char raddle_osm_version[] = OSM_VERSION;

/* One subnet manager per process: OpenSM itself has one, and some of its callbacks pass no context of ours. */
static struct shim *plugin;

void shim_log(void *context, int level, const char *message)
{
	struct shim *shim = context;

	osm_log(&shim->osm->log, level ? OSM_LOG_INFO : OSM_LOG_ERROR, "raddle: %s\n", message);
	if (!level)
		osm_log(&shim->osm->log, OSM_LOG_SYS, "raddle: %s\n", message);
}

osm_switch_t *shim_switch(const struct shim *shim, uint32_t index)
{
	if (index >= shim->switch_count)
		return NULL;
	if (!shim->sweeping)
		return shim->switches[index];
	return osm_get_switch_by_guid(&shim->osm->subn, shim->switch_guids[index]);
}

static void send_block(void *context, uint32_t index, uint16_t block, uint8_t position, const uint16_t *masks)
{
	struct shim *shim = context;
	osm_sm_t *sm = &shim->osm->sm;
	ib_net16_t payload[IB_MCAST_BLOCK_SIZE];
	osm_madw_context_t mad;
	osm_mcast_tbl_t *table;
	osm_physp_t *physp;
	osm_switch_t *sw = shim_switch(shim, index);
	unsigned i;

	if (!sw)
		return;
	/* OpenSM keeps what switches answer; its own tables are only as deep as the boxes of its last batch. */
	table = osm_switch_get_mcast_tbl_ptr(sw);
	if ((block + 1u) * IB_MCAST_BLOCK_SIZE > table->mft_depth &&
	    osm_mcast_tbl_realloc(table, block * IB_MCAST_BLOCK_SIZE + IB_MCAST_BLOCK_SIZE - 1))
		shim_log(shim, 0, "no memory for OpenSM's record of a multicast table");
	physp = osm_node_get_physp_ptr(sw->p_node, 0);
	for (i = 0; i < IB_MCAST_BLOCK_SIZE; i++)
		payload[i] = cl_hton16(masks[i]);
	memset(&mad, 0, sizeof(mad));
	mad.mft_context.node_guid = osm_node_get_node_guid(sw->p_node);
	mad.mft_context.set_method = TRUE;
	if (osm_req_set(sm, osm_physp_get_dr_path_ptr(physp), (uint8_t *)payload, sizeof(payload),
			IB_MAD_ATTR_MCAST_FWD_TBL, cl_hton32(block | (uint32_t)position << 28), FALSE,
			ib_port_info_get_m_key(&physp->port_info), 0, CL_DISP_MSGID_NONE, &mad) != IB_SUCCESS) {
		shim->resend = TRUE;
		shim_log(shim, 0, "a multicast table block could not be sent; all are sent again with the next sweep");
	}
}

static void set_mask(void *context, uint32_t index, uint16_t mlid, uint8_t port)
{
	osm_switch_t *sw = shim_switch(context, index);
	osm_mcast_tbl_t *table;

	if (!sw)
		return;
	table = osm_switch_get_mcast_tbl_ptr(sw);
	if (table->p_mask_tbl && mlid - IB_LID_MCAST_START_HO < table->mft_depth && mlid <= table->max_mlid_ho)
		osm_mcast_tbl_set(table, mlid, port);
}

/* OpenSM sends all blocks up to max_block_in_use of every switch after each batch. The engine has sent those that
 * changed, so OpenSM is told that none are in use. */
static void hide_tables(struct shim *shim)
{
	uint32_t i;

	for (i = 0; i < shim->switch_count; i++) {
		osm_switch_t *sw = shim_switch(shim, i);

		if (sw)
			osm_switch_get_mcast_tbl_ptr(sw)->max_block_in_use = -1;
	}
}

/* Callback of OpenSM for every MLID of a batch. The first one brings all groups of the batch up to date. */
static ib_api_status_t build_tree(void *context, osm_mgrp_box_t *box)
{
	struct shim *shim = plugin;
	uint16_t mlid = box->mlid; /* the box may go when its group moves */

	shim_sync_groups(shim, shim->swept, mlid);
	shim->swept = FALSE;
	raddle_plugin_masks(shim->engine, mlid);
	hide_tables(shim);
	return IB_SUCCESS;
}

static int build_lid_matrices(void *context)
{
	struct shim *shim = plugin;
	osm_routing_engine_t *re = context;

	shim->ours = shim_hand_over_subnet(shim);
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

void *raddle_osm_create(osm_opensm_t *osm)
{
	static external_routing_engine_module_t module = { "raddle", set_up, NULL };
	struct raddle_host host = { NULL, shim_log, send_block, set_mask, shim_move_group };
	osm_routing_engine_t *re;

	if (plugin)
		return NULL;
	plugin = calloc(1, sizeof(*plugin));
	re = calloc(1, sizeof(*re));
	if (!plugin || !re || cl_plock_init(&plugin->no_lock) != CL_SUCCESS ||
	    cl_timer_init(&plugin->burst_end, shim_tell_moves, plugin) != CL_SUCCESS)
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
	shim_take_requests(plugin);
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
	cl_timer_destroy(&shim->burst_end);
	cl_plock_destroy(&shim->no_lock);
	raddle_plugin_free(shim->engine);
	free(shim->ask);
	free(shim->switch_guids);
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
		shim->sweeping = TRUE;
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
			shim_sync_groups(shim, TRUE, 0);
			shim->swept = FALSE;
		}
		CL_PLOCK_RELEASE(&shim->osm->lock);
		break;
	default:
		break;
	}
}
