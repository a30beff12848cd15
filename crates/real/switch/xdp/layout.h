/* What the maps hold, shared with the loader (src/xdp/layout.rs, whose test compares sizes and offsets). */
#ifndef RADDLE_LAYOUT_H
#define RADDLE_LAYOUT_H

#include <linux/types.h>

/* Limits of the fast path. What exceeds them goes to the core. */
#define CHILDREN 32   /* children of a group */
#define INPUTS 32     /* operands of all its children together */
#define OPERANDS 4    /* operands of one message */
#define CELL 256      /* bytes of an operand */
#define HEADER 56     /* bytes of a message's header */
/* Bytes by which a frame can surely grow when its message is replaced: in front of it, where a driver leaves
 * XDP_PACKET_HEADROOM, 256, less what the kernel keeps there of a frame on its way (struct xdp_frame).
 */
#define GROWTH 192
#define BODY (OPERANDS * CELL)
#define MESSAGE (HEADER + BODY)
#define GROUPS 256
#define STATIONS 16384 /* as many as the bridge of the core learns */

/* Numbers of the messages of a group that the program handled itself, in the order of `enum count`. */
enum count {
	CONTRIBUTIONS,  /* contributions received, of any worth */
	SENT_UP,        /* contributions sent to the parent, also again */
	RESULTS,        /* results sent to all children */
	ANSWERED,       /* results sent again to one child */
	REPEATED,       /* repetitions of a contribution, answered or not */
	STALE,          /* dropped: of an older segment than the slot's */
	FORGED,         /* dropped: the tag is not the job's */
	NOT_AWAITED,    /* dropped: a result that is there already, or for which nothing was sent */
	COUNTS,
};

struct group_key {
	__u32 job;
	__u32 group;
};

/* cells[into] = cells[left] op cells[right] */
struct step {
	__u8 into;
	__u8 left;
	__u8 right;
	__u8 pad;
};

/* A group as the core installed it; the program only reads it. Addresses are in network order. */
struct group {
	__u64 key[2];
	__u32 index;            /* of its start and counters */
	__u32 copies;           /* under XDP index of the map with its children's interfaces, under TC their number */
	__u32 first_slot;
	__u32 slots;
	__u32 children;
	__u32 own;              /* the switch's address */
	__u32 parent;           /* 0: this switch is the root */
	__u32 parent_interface;
	__u32 results;          /* multicast address for results, 0: to each child */
	__u32 rank;             /* least member below, of own messages */
	__u32 epoch;
	__be16 results_port;
	__u16 segment_bytes;
	__u8 mac[6];            /* the switch's */
	__u8 parent_mac[6];
	__u8 ready;             /* all neighbours' places are known */
	__u8 ordered;           /* the program below is valid */
	__u8 steps;
	__u8 outputs;
	__u32 ranks[CHILDREN];  /* ascending; behind the last child all ones */
	__u32 address[CHILDREN];
	__be16 port[CHILDREN];
	__u8 cell[CHILDREN];    /* a child's first operand in ordered rounds */
	__u8 operands[CHILDREN];
	struct step step[INPUTS];
	__u8 output[OPERANDS];  /* cells that go to the parent, in order */
	__u8 least;             /* operands of the child that has fewest */
	__u8 pad[3];
};

/* From which round on the program answers: later than all that the core has seen of the group. */
struct start {
	struct bpf_spin_lock lock;
	__u32 seen;
	__u64 from;             /* with BEGUN set once it is known; one word, because it is read without the lock */
};

#define BEGUN (1ULL << 32)

enum state {
	UNUSED,     /* older than all segments */
	GATHERING,
	COMBINING,  /* all contributions are there, and somebody computes */
	SENT,       /* the switch's own contribution has gone up */
	DONE,       /* the result is known */
	LEFT,       /* members disagree: the segment is the core's */
};

struct slot {
	struct bpf_spin_lock lock;
	__u32 round;
	__u64 what;             /* collective, operation, type, flags, elements of an operand */
	__u32 arrived;          /* a bit of each child */
	__u32 present;          /* how many bits */
	__u32 root;
	__u16 state;
	__u16 result_bytes;     /* of the message */
	__u8 result[HEADER + CELL];
	__u8 cells[INPUTS][CELL];
	__u64 behind;           /* the verifier does not see that no word begins in the last cell's last bytes */
};

/* How results leave to children, each interface once. `at`: the interface's index under XDP, from 0 on under TC. */
struct exit_key {
	__u32 job;
	__u32 group;
	__u32 at;
};

struct exit {
	__u8 mac[6];
	__be16 port;
	__u32 address;
	__u32 interface;
};

/* A hardware address that the core's bridge has learnt, without a VLAN. */
struct station_key {
	__u8 mac[6];
	__u16 zero;
};

struct station {
	__u32 interface;
	__u32 heard;            /* sent something since the core asked last */
};

struct traffic {
	__u64 received;
	__u64 received_bytes;
	__u64 sent;
	__u64 sent_bytes;
	__u64 cable;            /* a virtual cable into another network namespace */
};

#endif
