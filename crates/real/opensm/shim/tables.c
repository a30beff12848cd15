/* Multicast tables between the engine and OpenSM: what is sent, and what OpenSM knows of it.
 *
 * OpenSM sends all blocks of its record that are in use, up to max_block_in_use of each switch, after every batch of
 * groups, and it writes into that record what switches answer, in whatever order answers come. The engine has sent what
 * changed; a block from an older record would undo that. So the record is written when a block is sent, answers are not,
 * and OpenSM is told that no block is in use but while it answers a question for them. */
#include "shim.h"

/* Exported by opensm, in no installed header. */
void osm_mft_rcv_process(void *context, void *data);
void osm_mftr_rcv_process(void *context, void *data);

static osm_mcast_tbl_t *table_of(const struct shim *shim, uint32_t index)
{
	osm_switch_t *sw = shim_switch(shim, index);

	return sw ? osm_switch_get_mcast_tbl_ptr(sw) : NULL;
}

void shim_hide_tables(struct shim *shim)
{
	uint32_t i;

	for (i = 0; i < shim->switch_count; i++) {
		osm_mcast_tbl_t *table = table_of(shim, i);

		if (table)
			table->max_block_in_use = -1;
	}
}

/* Writes a block into OpenSM's record, which is only as deep as the MLIDs of OpenSM's last batch. */
static void record_block(struct shim *shim, osm_mcast_tbl_t *table, uint16_t block, uint8_t position,
			 const ib_net16_t *masks)
{
	const uint16_t last = block * IB_MCAST_BLOCK_SIZE + IB_MCAST_BLOCK_SIZE - 1;

	if ((last >= table->mft_depth && osm_mcast_tbl_realloc(table, last)) ||
	    osm_mcast_tbl_set_block(table, masks, block, position) != IB_SUCCESS)
		shim_log(shim, 0, "no memory for OpenSM's record of a multicast table");
	table->max_block_in_use = -1;
}

void shim_send_block(void *context, uint32_t index, uint16_t block, uint8_t position, const uint16_t *masks)
{
	struct shim *shim = context;
	osm_sm_t *sm = &shim->osm->sm;
	ib_net16_t payload[IB_MCAST_BLOCK_SIZE];
	osm_madw_context_t mad;
	osm_physp_t *physp;
	osm_switch_t *sw = shim_switch(shim, index);
	unsigned i;

	if (!sw)
		return;
	physp = osm_node_get_physp_ptr(sw->p_node, 0);
	for (i = 0; i < IB_MCAST_BLOCK_SIZE; i++)
		payload[i] = cl_hton16(masks[i]);
	record_block(shim, osm_switch_get_mcast_tbl_ptr(sw), block, position, payload);
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

void shim_set_mask(void *context, uint32_t index, uint16_t mlid, uint8_t port)
{
	osm_mcast_tbl_t *table = table_of(context, index);

	if (table && table->p_mask_tbl && mlid - IB_LID_MCAST_START_HO < table->mft_depth &&
	    mlid <= table->max_mlid_ho)
		osm_mcast_tbl_set(table, mlid, port);
}

/* A switch's answer to a block. */
static void receive_answer(void *context, void *madw)
{
	struct shim *shim = context;
	boolean_t ours;

	CL_PLOCK_ACQUIRE(&shim->osm->lock);
	ours = shim->ours;
	CL_PLOCK_RELEASE(&shim->osm->lock);
	if (!ours)
		osm_mft_rcv_process(&shim->osm->sm, madw);
}

/* A request for records of multicast tables (saquery MFTR): OpenSM answers with the blocks in use. */
static void receive_question(void *context, void *madw)
{
	struct shim *shim = context;
	osm_sa_t sa = shim->osm->sa;
	uint32_t i;

	CL_PLOCK_EXCL_ACQUIRE(&shim->osm->lock);
	sa.p_lock = &shim->no_lock;
	for (i = 0; shim->ours && i < shim->switch_count; i++) {
		osm_mcast_tbl_t *table = table_of(shim, i);

		if (table && table->p_mask_tbl)
			table->max_block_in_use = table->mft_depth / IB_MCAST_BLOCK_SIZE - 1;
	}
	osm_mftr_rcv_process(&sa, madw);
	if (shim->ours)
		shim_hide_tables(shim);
	CL_PLOCK_RELEASE(&shim->osm->lock);
}

void shim_take_tables(struct shim *shim)
{
	osm_sm_t *sm = &shim->osm->sm;
	osm_sa_t *sa = &shim->osm->sa;

	cl_disp_unregister(sm->mft_disp_h);
	sm->mft_disp_h = cl_disp_register(sm->p_disp, OSM_MSG_MAD_MFT, receive_answer, shim);
	cl_disp_unregister(sa->mft_disp_h);
	sa->mft_disp_h = cl_disp_register(sa->p_disp, OSM_MSG_MAD_MFT_RECORD, receive_question, shim);
	if (sm->mft_disp_h == CL_DISP_INVALID_HANDLE || sa->mft_disp_h == CL_DISP_INVALID_HANDLE)
		shim_log(shim, 0, "no memory: requests for multicast tables are not answered");
}
