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

/* Callback of OpenSM for every MLID of a batch. The first one brings all groups of the batch up to date. */
static ib_api_status_t build_tree(void *context, osm_mgrp_box_t *box)
{
	struct shim *shim = plugin;
	uint16_t mlid = box->mlid; /* the box may go when its group moves */

	shim_sync_groups(shim, shim->swept, mlid);
	shim->swept = FALSE;
	raddle_plugin_masks(shim->engine, mlid);
	shim_hide_tables(shim);
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
	struct raddle_host host = { NULL, shim_log, shim_send_block, shim_set_mask, shim_move_group };
	osm_routing_engine_t *re;

	if (plugin)
		return NULL;
	plugin = calloc(1, sizeof(*plugin));
	re = calloc(1, sizeof(*re));
	if (!plugin || !re || cl_plock_init(&plugin->no_lock) != CL_SUCCESS)
		goto failed;
	if (cl_timer_init(&plugin->burst_end, shim_tell_moves, plugin) != CL_SUCCESS)
		goto no_timer;
	plugin->osm = osm;
	host.context = plugin;
	plugin->engine = raddle_plugin_new(&host, osm->subn.opt.event_plugin_options);
	if (!plugin->engine)
		goto no_engine;
	/* `routing_engine raddle` may be written, but need not: this one stands before the user's list. */
	osm_register_external_routing_engine(osm, &module, NULL);
	re->type = OSM_ROUTING_ENGINE_TYPE_UNKNOWN;
	re->name = module.name;
	set_up(re, osm);
	re->next = osm->routing_engine_list;
	osm->routing_engine_list = re;
	/* OpenSM derives the top of the multicast tables from the block that is hidden from it. */
	osm->subn.opt.use_mfttop = FALSE;
	shim_take_requests(plugin);
	shim_take_tables(plugin);
	return plugin;
no_engine:
	cl_timer_destroy(&plugin->burst_end);
no_timer:
	cl_plock_destroy(&plugin->no_lock);
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
		CL_PLOCK_EXCL_ACQUIRE(&shim->osm->lock);
		shim->sweeping = TRUE;
		/* blocks that were under way when the last sweep failed may be lost */
		if (shim->osm->subn.subnet_initialization_error)
			shim->resend = TRUE;
		CL_PLOCK_RELEASE(&shim->osm->lock);
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
