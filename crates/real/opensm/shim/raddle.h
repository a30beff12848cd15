/* The C ABI between the shim (shim/raddle.c, which knows OpenSM's structures) and the engine (src/abi.rs).
 * Numbers are in host order; nodes and switches are indexes into the arrays of the last raddle_subnet. */
#ifndef RADDLE_H
#define RADDLE_H

#include <stddef.h>
#include <stdint.h>

/* A channel adapter, router or switch. */
struct raddle_node {
	uint64_t guid;
	uint32_t is_switch;
	uint32_t switch_index; /* place in the order of OpenSM's switches; of a switch only */
};

/* A port with LIDs: of an adapter or router, or port 0 of a switch. */
struct raddle_endport {
	uint64_t guid;
	uint32_t node;
	uint16_t lid;
	uint8_t lmc;
	uint8_t port;
};

struct raddle_link {
	uint32_t a;
	uint32_t b;
	uint8_t port_a;
	uint8_t port_b;
	uint8_t reserved[2];
};

struct raddle_subnet {
	const struct raddle_node *nodes;
	size_t node_count;
	const struct raddle_endport *endports;
	size_t endport_count;
	const struct raddle_link *links;
	size_t link_count;
	uint32_t mlids;	    /* entries of the smallest multicast table */
	uint32_t resend;    /* tables of all switches have to be sent again */
	const uint32_t *stale; /* switches (switch_index) whose tables have to be sent again */
	size_t stale_count;
};

struct raddle_group {
	uint8_t mgid[16];
	uint16_t mlid;
	uint8_t fixed; /* the group is well known and keeps its MLID */
	uint8_t reserved;
	uint32_t member_count;
	const uint64_t *members; /* port GUIDs */
};

/* What the engine asks of the shim. */
struct raddle_host {
	void *context;
	/* level 0: error, 1: information */
	void (*log)(void *context, int level, const char *message);
	/* one block of a multicast table: 32 masks of 16 ports */
	void (*send)(void *context, uint32_t switch_index, uint16_t block, uint8_t position, const uint16_t *masks);
	/* a port of an MLID, for OpenSM's own record of the tables */
	void (*mask)(void *context, uint32_t switch_index, uint16_t mlid, uint8_t port);
	/* the group has another MLID from now on; its members are asked to join again */
	void (*move)(void *context, const uint8_t *mgid, uint16_t mlid);
};

void *raddle_plugin_new(const struct raddle_host *host, const char *options);
void raddle_plugin_free(void *plugin);
/* 1: the subnet is one of ours and its multicast is ours; 0: OpenSM routes it */
int raddle_plugin_subnet(void *plugin, const struct raddle_subnet *subnet);
/* 1: unicast tables are ours too */
int raddle_plugin_unicast(void *plugin);
/* 1: MLIDs of new groups come from us */
int raddle_plugin_shares(void *plugin);
void raddle_plugin_lft(void *plugin, uint32_t switch_index, uint8_t *lft, size_t entries);
/* the MLID for a group that does not exist yet; 0: OpenSM chooses */
uint16_t raddle_plugin_new_group(void *plugin, const uint8_t *mgid, uint64_t first_member);
/* brings these groups up to date and sends what changed; `all`: there are no others */
void raddle_plugin_sync(void *plugin, const struct raddle_group *groups, size_t count, int all);
/* the group has gone; 1: the engine knew it. What it leaves is sent by raddle_plugin_flush or the next sync */
int raddle_plugin_gone(void *plugin, const uint8_t *mgid);
/* sends what changed */
void raddle_plugin_flush(void *plugin);
/* how many changes of a group's MLID have not been told yet */
uint64_t raddle_plugin_moved(void *plugin);
/* tells them in one line of the log, with the number of hosts that were asked to join again */
void raddle_plugin_tell_moves(void *plugin, uint32_t asked);
/* reports the ports of an MLID through `mask` */
void raddle_plugin_masks(void *plugin, uint16_t mlid);

#endif
