/* The subnet that OpenSM has discovered, as the engine wants it. */
#include "shim.h"

void *shim_array(size_t count, size_t size)
{
	return calloc(count ? count : 1, size);
}

boolean_t shim_hand_over_subnet(struct shim *shim)
{
	osm_subn_t *subnet = &shim->osm->subn;
	size_t nodes = cl_qmap_count(&subnet->node_guid_tbl), ports = cl_qmap_count(&subnet->port_guid_tbl);
	size_t switches = cl_qmap_count(&subnet->sw_guid_tbl), links = 0, index = 0, i;
	struct raddle_subnet view;
	struct raddle_node *node_list = shim_array(nodes, sizeof(*node_list));
	struct raddle_endport *port_list = shim_array(ports, sizeof(*port_list));
	struct raddle_link *link_list = NULL;
	uint32_t *stale = shim_array(switches, sizeof(*stale));
	osm_switch_t **switch_list = shim_array(switches, sizeof(*switch_list));
	ib_net64_t *guid_list = shim_array(switches, sizeof(*guid_list));
	void **numbers = shim_array(nodes, sizeof(*numbers)); /* priv of each node's switch while we count */
	cl_map_item_t *item;
	boolean_t ours = FALSE;

	memset(&view, 0, sizeof(view));
	if (!node_list || !port_list || !stale || !switch_list || !guid_list || !numbers)
		goto out;
	for (item = cl_qmap_head(&subnet->sw_guid_tbl); item != cl_qmap_end(&subnet->sw_guid_tbl);
	     item = cl_qmap_next(item)) {
		osm_switch_t *sw = (osm_switch_t *)item;

		sw->mft_block_num = (int32_t)index; /* free for use between batches: the switch's number */
		if (sw->need_update || subnet->need_update)
			stale[view.stale_count++] = (uint32_t)index;
		guid_list[index] = osm_node_get_node_guid(sw->p_node);
		switch_list[index++] = sw;
	}
	free(shim->switches);
	free(shim->switch_guids);
	shim->switches = switch_list;
	shim->switch_guids = guid_list;
	shim->switch_count = switches;
	shim->sweeping = FALSE;
	switch_list = NULL;
	guid_list = NULL;

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
	link_list = shim_array(links, sizeof(*link_list));
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
	free(guid_list);
	free(numbers);
	return ours;
}
