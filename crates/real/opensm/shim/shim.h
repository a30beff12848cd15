/* What the files of the shim share. All of it is used under OpenSM's exclusive lock. */
#ifndef RADDLE_SHIM_H
#define RADDLE_SHIM_H

#include <stdlib.h>
#include <string.h>

#include <complib/cl_dispatcher.h>
#include <complib/cl_passivelock.h>
#include <complib/cl_qmap.h>
#include <complib/cl_timer.h>
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

struct shim {
	osm_opensm_t *osm;
	void *engine;
	/* Switches in the order of sw_guid_tbl when the last subnet was handed over. OpenSM frees switches while it
	 * sweeps: see shim_switch. */
	osm_switch_t **switches;
	ib_net64_t *switch_guids;
	size_t switch_count;
	boolean_t ours;	    /* multicast of this subnet is routed here */
	boolean_t sweeping; /* a heavy sweep has started and has handed no subnet over yet */
	boolean_t swept;    /* there was a heavy sweep since groups were last compared */
	boolean_t resend;
	/* Stands in for OpenSM's lock where that is held already. */
	cl_plock_t no_lock;
	/* Ports whose hosts have to join again; one may be there several times. */
	ib_net64_t *ask;
	size_t ask_count;
	size_t ask_room;
	/* MLIDs that change are told once in a burst. */
	cl_timer_t burst_end;
	uint64_t burst_start; /* microseconds, 0: none under way */
	uint32_t asked;	      /* hosts that this burst has asked to join again */
};

/* Logs a line; level 0: an error, 1: information. */
void shim_log(void *context, int level, const char *message);

/* A switch that was handed over; NULL where it has gone since. */
osm_switch_t *shim_switch(const struct shim *shim, uint32_t index);

/* Sends one block of a switch's multicast table: 32 masks of 16 ports. */
void shim_send_block(void *context, uint32_t index, uint16_t block, uint8_t position, const uint16_t *masks);

/* Notes a port of an MLID in OpenSM's record. */
void shim_set_mask(void *context, uint32_t index, uint16_t mlid, uint8_t port);

/* Keeps OpenSM from sending tables itself: to it, none of their blocks is in use. */
void shim_hide_tables(struct shim *shim);

/* Takes switches' answers and questions for multicast tables in OpenSM's place. */
void shim_take_tables(struct shim *shim);

/* `count` zeroed elements; free() it. NULL: no memory. */
void *shim_array(size_t count, size_t size);

/* Hands the discovered subnet to the engine; whether its multicast is ours. */
boolean_t shim_hand_over_subnet(struct shim *shim);

/* Brings the engine's groups up to date: all of them, or those of the MLIDs that OpenSM is about to process and of
 * `now`. Hosts whose group has got another MLID are asked to join again. */
void shim_sync_groups(struct shim *shim, boolean_t all, uint16_t now);

/* Puts a group into another MLID. */
void shim_move_group(void *context, const uint8_t *mgid, uint16_t mlid);

/* The end of a burst of changed MLIDs: a callback of OpenSM's timers. */
void shim_tell_moves(void *context);

/* Takes requests for MCMemberRecords in OpenSM's place. */
void shim_take_requests(struct shim *shim);

#endif
