/* The fast path of raddle-switch: steady rounds of in-network Allreduce, below the socket layer. Compiled twice, for the
 * two places that frame.h names.
 *
 * It runs for each frame that comes in on a port. Contributions and results of the groups in `groups` that it can
 * combine itself end here; every other frame goes on to the sockets, byte for byte as it came. Which is which says
 * docs/reference/switch.md. What it does with a message is what raddle_offload::switch does (docs/concepts/offload.md); a test runs
 * both on the same packets.
 *
 * Several processors may run it at once. A slot's name, bits, operands and result change under the slot's lock only.
 * Who brings the last contribution combines, outside the lock: until the result is there, nobody touches the operands
 * but a member that breaks the protocol, and the name is compared again before the result is believed.
 *
 * Needs Linux 5.18 (bpf_xdp_load_bytes; bpf_loop is of 5.17), under TC 6.6 (tcx). No floats exist here: number.h adds them.
 */
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/udp.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "layout.h"
#include "number.h"
#include "siphash.h"
#include "frame.h"

#define PORT 61347
#define MAGIC 0x5261
#define VERSION 1
#define CONTRIBUTION 16
#define RESULT 17
#define RESENT 1
#define ORDERED 2
#define ALLREDUCE 1
#define REDUCE 2
#define BARRIER 3
#define TTL 64

/* Bytes of Ethernet, IPv4 and UDP before a message. */
#define BEFORE (sizeof(struct ethhdr) + sizeof(struct iphdr) + sizeof(struct udphdr))

/* The header of docs/reference/wire.md. */
struct header {
	__be16 magic;
	__u8 version;
	__u8 kind;
	__u8 header_length;
	__u8 flags;
	__be16 body_length;
	__be32 job;
	__be32 group;
	__be32 round;
	__be32 segment;
	__be32 segments;
	__be32 rank;
	__be32 root;
	__be32 epoch;
	__u8 collective;
	__u8 operation;
	__u8 data_type;
	__u8 reason;
	__be16 count;
	__be16 slot;
	__u64 tag; /* least significant byte first, as this machine has it: the object is built for little-endian */
};

_Static_assert(sizeof(struct header) == HEADER, "the header of docs/reference/wire.md");

/* Room for one message that comes in and one that goes out; some more, because words and cells are
 * read whole.
 */
struct scratch {
	union {
		struct header header;
		__u8 in[MESSAGE + CELL];
		__u64 in_words[(MESSAGE + CELL) / 8];
	};
	union {
		struct header reply;
		__u8 out[MESSAGE + CELL];
		__u64 out_words[(MESSAGE + CELL) / 8];
	};
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, GROUPS);
	__type(key, struct group_key);
	__type(value, struct group);
} groups SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, GROUPS);
	__type(key, __u32);
	__type(value, struct start);
} starts SEC(".maps");

/* The loader sets the number. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct slot);
} slots SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct scratch);
} scratches SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, GROUPS * COUNTS);
	__type(key, __u32);
	__type(value, __u64);
} counts SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_HASH);
	__uint(max_entries, 1024);
	__type(key, __u32);
	__type(value, struct traffic);
} ports SEC(".maps");

#ifndef TC
/* Interfaces of children, each under its own index; groups with the same ones share an entry. */
struct children {
	__uint(type, BPF_MAP_TYPE_DEVMAP_HASH);
	__uint(max_entries, CHILDREN);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(struct bpf_devmap_val));
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, GROUPS);
	__type(key, __u32);
	__array(values, struct children);
} children SEC(".maps");
#endif

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, GROUPS * CHILDREN);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct exit_key);
	__type(value, struct exit);
} exits SEC(".maps");

/* Whether frames are the kernel's own socket buffers: under TC, and in XDP's generic mode, of which the loader knows.
 * Then a checksum may still be to be completed, and whoever gets the frame from us knows it.
 */
#ifdef TC
#define generic 1
#else
volatile const __u8 generic = 0;
#endif

/* A number that is at most `mask`, in a way that the compiler cannot undo and the verifier understands. */
INLINE __u64 bounded(__u64 number, __u64 mask)
{
	barrier_var(number);
	return number & mask;
}

INLINE void count(const struct group *g, enum count what)
{
	__u32 at = g->index * COUNTS + what;
	__u64 *number = bpf_map_lookup_elem(&counts, &at);

	if (number)
		++*number;
}

/* A frame that came in by a port, of which the sockets will not hear. */
INLINE void count_received(__u32 interface, __u64 bytes)
{
	struct traffic *t = bpf_map_lookup_elem(&ports, &interface);

	if (t) {
		t->received++;
		t->received_bytes += bytes;
	}
}

INLINE struct traffic *count_sent(__u32 interface, __u64 bytes)
{
	struct traffic *t = bpf_map_lookup_elem(&ports, &interface);

	if (t) {
		t->sent++;
		t->sent_bytes += bytes;
	}
	return t;
}

/* Sends a frame of `bytes` on by an interface. */
INLINE int leave(frame *f, __u32 interface, __u64 bytes)
{
	const struct traffic *t = count_sent(interface, bytes);

#ifdef TC
	(void)f;
	/* Straight into the other end, without waiting in its queue. */
	if (t && t->cable)
		return bpf_redirect_peer(interface, 0);
#else
	(void)t;
	if (interface == port_of(f))
		return XDP_TX;
#endif
	return bpf_redirect(interface, 0);
}

#include "forward.h"

/* ---- tags ---- */

struct hashing {
	struct sip sip;
	const __u64 *words;
};

/* Words are hashed, and elements combined, by fours: calling back costs more than the work on one. */
#define FOUR 4

INLINE void hash_word(struct hashing *h, __u32 i)
{
	/* The body begins behind the tag, the seventh word of a message; its first word is done. */
	sip_word(&h->sip, h->words[8 + bounded(i, BODY / 8 - 1)]);
}

static long hash_words(__u32 i, struct hashing *h)
{
	int j;

#pragma unroll
	for (j = 0; j < FOUR; j++)
		hash_word(h, FOUR * i + j);
	return 0;
}

/* The tag of the message in `words`, whose body has `body` bytes. */
static __noinline __u64 tag(const __u64 *key, const __u64 *words, __u32 body)
{
	const __u32 whole = body / 8;
	__u64 rest = 0;
	struct sip s;
	int i;

	sip_begin(&s, key);
#pragma unroll
	for (i = 0; i < 6; i++)
		sip_word(&s, words[i]);
	/* One element is what most rounds have: no loop for its word. */
	if (whole)
		sip_word(&s, words[7]);
	if (whole > 1) {
		struct hashing h = { s, words };
		const __u32 more = whole - 1, done = more & ~(FOUR - 1);

		if (done)
			bpf_loop(done / FOUR, hash_words, &h, 0);
#pragma unroll
		for (i = 0; i < FOUR - 1; i++)
			if (done + i < more)
				hash_word(&h, done + i);
		s = h.sip;
	}
	if (body & 7)
		rest = words[7 + (whole & (BODY / 8 - 1))] & ((1ULL << 8 * (body & 7)) - 1);
	return sip_end(&s, rest | (__u64)(48 + body) << 56);
}

/* ---- combining ---- */

/* A function of its own: checked once by the verifier, whatever calls it. */
__noinline __u64 combine_pair(__u32 operation, __u32 type, __u64 left, __u64 right)
{
	return combine(operation, type, left, right);
}

INLINE __u64 load(const __u8 *at, __u32 shift)
{
	switch (shift) {
	case 0:
		return *at;
	case 1:
		return bpf_ntohs(*(const __u16 *)at);
	case 2:
		return bpf_ntohl(*(const __u32 *)at);
	default:
		return bpf_be64_to_cpu(*(const __u64 *)at);
	}
}

INLINE void store(__u8 *at, __u32 shift, __u64 bits)
{
	switch (shift) {
	case 0:
		*at = bits;
		break;
	case 1:
		*(__u16 *)at = bpf_htons(bits);
		break;
	case 2:
		*(__u32 *)at = bpf_htonl(bits);
		break;
	default:
		*(__u64 *)at = bpf_cpu_to_be64(bits);
	}
}

struct combining {
	struct slot *slot;
	const struct group *group;
	__u32 operation, type, elements, ordered, into, left, right;
};

INLINE void combine_element(struct combining *c, __u32 i)
{
	const __u32 shift = size_shift(c->type) & 3;
	const __u32 at = (i << shift) & (CELL - 1);
	const __u8 *left = c->slot->cells[c->left & (INPUTS - 1)] + at;
	const __u8 *right = c->slot->cells[c->right & (INPUTS - 1)] + at;

	store(c->slot->cells[c->into & (INPUTS - 1)] + at, shift,
	      combine_pair(c->operation, c->type, load(left, shift), load(right, shift)));
}

static long combine_elements(__u32 i, struct combining *c)
{
	__u32 j;

#pragma unroll
	for (j = 0; j < FOUR; j++)
		if (FOUR * i + j < c->elements)
			combine_element(c, FOUR * i + j);
	return 0;
}

static long combine_step(__u32 i, struct combining *c)
{
	if (c->ordered) {
		const struct step *s = &c->group->step[i & (INPUTS - 1)];

		c->into = s->into;
		c->left = s->left;
		c->right = s->right;
	} else {
		c->into = 0;
		c->left = i + 1;
		c->right = 0;
	}
	if (c->elements == 1)
		combine_element(c, 0);
	else
		bpf_loop((c->elements + FOUR - 1) / FOUR, combine_elements, c, 0);
	return 0;
}

/* ---- messages ---- */

/* What a segment is about, in one word: members must agree about it. */
INLINE __u64 what_of(const struct header *h, __u32 elements)
{
	return (__u64)h->collective << 48 | (__u64)h->operation << 40 | (__u64)h->data_type << 32 |
	       (__u64)(h->flags & ORDERED) << 16 | elements;
}

/* Copies `bytes` of an operand, whole words; both ends have room for a whole cell. No helper may be called here. */
INLINE void copy_cell(__u8 *to, const __u8 *from, __u32 bytes)
{
	__u32 i;

	barrier_var(bytes);
	for (i = 0; i < CELL; i += 8) {
		if (i >= bytes)
			break;
		*(__u64 *)(to + i) = *(const __u64 *)(from + i);
	}
}

/* Fills in the reply: the header of what came in, as a message of this switch. */
INLINE void reply_header(struct scratch *s, const struct group *g, __u8 kind, __u8 flags, __u32 body, __u32 count)
{
	struct header *r = &s->reply;

	*r = s->header;
	r->kind = kind;
	r->flags = flags;
	r->body_length = bpf_htons(body);
	r->rank = bpf_htonl(g->rank);
	r->epoch = bpf_htonl(g->epoch);
	r->count = bpf_htons(count);
}

#include "send.h"

/* Copies the operands that go to the parent behind the reply's header; the caller holds the lock, or combines. */
INLINE void copy_outputs(struct scratch *s, const struct group *g, const struct slot *slot, __u32 ordered, __u32 bytes)
{
	const __u32 outputs = ordered ? g->outputs : 1;
	__u32 j;

	for (j = 0; j < OPERANDS; j++) {
		const __u32 cell = ordered ? g->output[j] & (INPUTS - 1) : 0;

		if (j >= outputs)
			break;
		/* In order, because what is behind an operand's last byte is written too. */
		copy_cell(s->out + HEADER + bounded(j * bytes, BODY - 1), slot->cells[cell], bytes);
	}
}

/* What the program must know of a message once its form and tag are right. */
struct message {
	__u32 round;
	__u32 body;
	__u32 bytes;    /* of an operand */
	__u32 elements; /* of an operand */
	__u32 ordered;
	__u64 what;
};

/* The number of the child whose messages have this `rank`, or CHILDREN. */
INLINE __u32 child_of(const struct group *g, __u32 rank)
{
	__u32 low = 0, step;

#pragma unroll
	for (step = CHILDREN / 2; step; step /= 2)
		if (g->ranks[(low + step) & (CHILDREN - 1)] <= rank)
			low += step;
	low &= CHILDREN - 1;
	return low < g->children && g->ranks[low] == rank ? low : CHILDREN;
}

/* Rounds are compared on a circle, so that they may pass 2^32. */
INLINE int older(__u32 round, __u32 than)
{
	return (__s32)(round - than) < 0;
}

enum verdict { STORED, COMPLETE, IS_STALE, AGAIN_RESULT, AGAIN_UP, AGAIN_WAIT, NOT_MINE };

INLINE int contribution(frame *f, struct scratch *s, const struct group *g, struct slot *slot,
			const struct message *m, __u32 child)
{
	const __u32 bit = 1U << (child & (CHILDREN - 1));
	const __u32 operands = m->ordered ? g->operands[child & (CHILDREN - 1)] : 1;
	const __u32 outputs = m->ordered ? g->outputs : 1;
	const __u32 root = s->header.root;
	enum verdict verdict;
	__u32 bytes = 0, j;

	bpf_spin_lock(&slot->lock);
	if (slot->state != UNUSED && older(m->round, slot->round)) {
		verdict = IS_STALE;
	} else {
		if (slot->state == UNUSED || slot->round != m->round) {
			slot->round = m->round;
			slot->what = m->what;
			slot->root = root;
			slot->arrived = 0;
			slot->present = 0;
			slot->state = GATHERING;
		}
		if (slot->state == LEFT || slot->what != m->what || slot->root != root) {
			slot->state = LEFT;
			verdict = NOT_MINE;
		} else if (!(slot->arrived & bit)) {
			/* Without an order operands lie as they came, and are combined so. */
			const __u32 first = m->ordered ? g->cell[child & (CHILDREN - 1)] : slot->present;

			for (j = 0; j < OPERANDS; j++) {
				if (j >= operands)
					break;
				copy_cell(slot->cells[bounded(first + j, INPUTS - 1)],
					  s->in + HEADER + bounded(j * m->bytes, BODY - 1), m->bytes);
			}
			slot->arrived |= bit;
			verdict = STORED;
			if (++slot->present == g->children) {
				slot->state = COMBINING;
				verdict = COMPLETE;
			}
		} else if (slot->state == DONE) {
			verdict = AGAIN_RESULT;
			bytes = slot->result_bytes;
			*(struct header *)s->out = *(struct header *)slot->result;
			copy_cell(s->out + HEADER, slot->result + HEADER, m->bytes);
		} else if (slot->state == SENT) {
			verdict = AGAIN_UP;
			copy_outputs(s, g, slot, m->ordered, m->bytes);
		} else {
			verdict = AGAIN_WAIT;
		}
	}
	bpf_spin_unlock(&slot->lock);

	if (verdict == NOT_MINE)
		return PASS;
	count(g, CONTRIBUTIONS);
	switch (verdict) {
	case IS_STALE:
		count(g, STALE);
		return DROP;
	case STORED:
		return DROP;
	case AGAIN_WAIT:
		count(g, REPEATED);
		return DROP;
	case AGAIN_RESULT: {
		struct target to = { .port = g->port[child & (CHILDREN - 1)],
				     .address = g->address[child & (CHILDREN - 1)] };
		const struct ethhdr *eth = (void *)(long)f->data;

		count(g, REPEATED);
		if ((void *)(eth + 1) > (void *)(long)f->data_end)
			return DROP;
		__builtin_memcpy(to.mac, eth->h_source, 6);
		if (write_frame(f, g, &to, s->out, bytes, unfinished(f)))
			return DROP;
		count(g, ANSWERED);
		return leave(f, port_of(f), BEFORE + bytes);
	}
	case AGAIN_UP:
		count(g, REPEATED);
		reply_header(s, g, CONTRIBUTION, s->header.flags & ORDERED, outputs * m->bytes,
			     outputs * m->elements);
		s->reply.tag = tag(g->key, s->out_words, outputs * m->bytes);
		return send_up(f, g, s->out, HEADER + outputs * m->bytes);
	default:
		break;
	}

	if (m->bytes) {
		struct combining c = {
			.slot = slot,
			.group = g,
			.operation = s->header.operation,
			.type = s->header.data_type,
			.elements = m->elements,
			.ordered = m->ordered,
		};
		const __u32 steps = m->ordered ? g->steps : g->children - 1;

		if (steps)
			bpf_loop(steps, combine_step, &c, 0);
		copy_outputs(s, g, slot, m->ordered, m->bytes);
	}
	bytes = HEADER + outputs * m->bytes;
	reply_header(s, g, g->parent ? CONTRIBUTION : RESULT, s->header.flags & ORDERED, outputs * m->bytes,
		     outputs * m->elements);
	s->reply.tag = tag(g->key, s->out_words, outputs * m->bytes);

	verdict = IS_STALE;
	bpf_spin_lock(&slot->lock);
	if (slot->round == m->round && slot->state == COMBINING) {
		verdict = COMPLETE;
		slot->state = SENT;
		if (!g->parent) {
			slot->state = DONE;
			slot->result_bytes = bytes;
			*(struct header *)slot->result = *(struct header *)s->out;
			copy_cell(slot->result + HEADER, s->out + HEADER, m->bytes);
		}
	}
	bpf_spin_unlock(&slot->lock);
	if (verdict != COMPLETE)
		return DROP;
	return g->parent ? send_up(f, g, s->out, bytes) : send_down(f, g, s->out, bytes);
}

INLINE int result(frame *f, struct scratch *s, const struct group *g, struct slot *slot,
		  const struct message *m)
{
	const __u32 root = s->header.root;
	int expected = 0, mine = 1;

	bpf_spin_lock(&slot->lock);
	if (slot->state != UNUSED && slot->round == m->round) {
		if (slot->state == LEFT) {
			mine = 0;
		} else if (slot->state == SENT && slot->what == m->what && slot->root == root) {
			expected = 1;
			slot->state = DONE;
			slot->result_bytes = HEADER + m->body;
			*(struct header *)slot->result = s->header;
			copy_cell(slot->result + HEADER, s->in + HEADER, m->bytes);
		}
	}
	bpf_spin_unlock(&slot->lock);
	if (!mine)
		return PASS;
	if (!expected) {
		count(g, NOT_AWAITED);
		return DROP;
	}
	return send_down(f, g, s->in, HEADER + m->body);
}

/* Whether a round is the program's: it is later than all that the core saw before the program could answer. */
INLINE int begun(const struct group *g, __u32 round)
{
	const __u32 index = g->index;
	struct start *start = bpf_map_lookup_elem(&starts, &index);
	__u64 from;

	if (!start)
		return 0;
	from = start->from;
	if (!from) {
		bpf_spin_lock(&start->lock);
		from = start->from;
		if (!from) {
			if (g->ready)
				start->from = from = BEGUN | (__u32)(start->seen + 1);
			else if (older(start->seen, round))
				start->seen = round;
		}
		bpf_spin_unlock(&start->lock);
		if (!from)
			return 0;
	}
	if (older(round, from))
		return 0;
	/* What is older than the start are late messages of the first rounds; half a circle later it would be rounds. */
	if (round - (__u32)from > 1U << 30)
		start->from = BEGUN | (__u32)(round - (1U << 29));
	return 1;
}

/* Messages of steady rounds. */
INLINE int compute(frame *f)
{
	void *data = (void *)(long)f->data, *end = (void *)(long)f->data_end;
	const struct ethhdr *eth = data;
	const struct iphdr *ip = data + sizeof *eth;
	const struct udphdr *udp = data + sizeof *eth + sizeof *ip;
	const struct header *h = data + BEFORE;
	const __u32 zero = 0;
	struct group_key key;
	struct message m;
	struct scratch *s;
	struct group *g;
	struct slot *slot;
	__u32 child = 0, operands = 1, slot_at;
	const __u32 length = length_of(f);
	__u8 kind;
	int action;

	if (data + BEFORE + HEADER > end)
		return PASS;
	if (eth->h_proto != bpf_htons(ETH_P_IP) || *(const __u8 *)ip != 0x45 ||
	    ip->frag_off & bpf_htons(0xbfff) || ip->protocol != IPPROTO_UDP || udp->dest != bpf_htons(PORT))
		return PASS;
	if (h->magic != bpf_htons(MAGIC) || h->version != VERSION || h->header_length != HEADER ||
	    h->flags & ~(RESENT | ORDERED) || h->segment || h->segments != bpf_htonl(1) || h->reason)
		return PASS;
	kind = h->kind;
	if (kind != CONTRIBUTION && kind != RESULT)
		return PASS;
	m.body = bpf_ntohs(h->body_length);
	if (m.body > BODY || udp->len != bpf_htons(sizeof *udp + HEADER + m.body) ||
	    ip->tot_len != bpf_htons(sizeof *ip + sizeof *udp + HEADER + m.body))
		return PASS;
	if (length < BEFORE + HEADER + m.body)
		return PASS;

	key.job = bpf_ntohl(h->job);
	key.group = bpf_ntohl(h->group);
	g = bpf_map_lookup_elem(&groups, &key);
	if (!g || ip->daddr != g->own)
		return PASS;
	m.ordered = h->flags & ORDERED;
	if (m.ordered && !g->ordered)
		return PASS;
	if (kind == CONTRIBUTION) {
		child = child_of(g, bpf_ntohl(h->rank));
		if (child >= CHILDREN)
			return PASS;
		if (m.ordered)
			operands = g->operands[child];
	} else if (!g->parent) {
		return PASS;
	}
	if (h->collective == BARRIER) {
		if (h->operation || h->data_type || h->count || m.body || m.ordered)
			return PASS;
		m.elements = 0;
		m.bytes = 0;
	} else {
		const __u32 elements = bpf_ntohs(h->count);
		const __u32 shift = size_shift(h->data_type) & 3;

		if ((h->collective != ALLREDUCE && h->collective != REDUCE) || !known(h->operation, h->data_type))
			return PASS;
		if (!operands || operands > OPERANDS || !elements || elements << shift != m.body)
			return PASS;
		m.elements = elements / operands;
		if (m.elements * operands != elements)
			return PASS;
		m.bytes = m.elements << shift;
		if (m.bytes > CELL || m.bytes > g->segment_bytes)
			return PASS;
		if (m.ordered && g->outputs > g->least && (g->outputs - g->least) * m.bytes > GROWTH)
			return PASS;
	}
	slot_at = bpf_ntohs(h->slot);
	if (slot_at >= g->slots)
		return PASS;

	s = bpf_map_lookup_elem(&scratches, &zero);
	if (!s || load_bytes(f, BEFORE, s->in, HEADER + m.body))
		return PASS;
	if (tag(g->key, s->in_words, m.body) != s->header.tag) {
		count(g, FORGED);
		count_received(port_of(f), length);
		return DROP;
	}
	m.round = bpf_ntohl(s->header.round);
	if (!begun(g, m.round))
		return PASS;
	m.what = what_of(&s->header, m.elements);
	slot_at += g->first_slot;
	slot = bpf_map_lookup_elem(&slots, &slot_at);
	if (!slot)
		return PASS;
	action = kind == CONTRIBUTION ? contribution(f, s, g, slot, &m, child) : result(f, s, g, slot, &m);
	if (action != PASS)
		count_received(port_of(f), length);
	return action;
}

#ifdef TC

SEC(PROGRAM)
int raddle_switch(frame *f)
{
	int fate;

	if (f->mark == FOR_SOCKETS)
		return PASS;
	fate = compute(f);
	if (fate == PASS)
		fate = forward(f);
	if (fate != PASS)
		return fate;
	f->mark = FOR_SOCKETS;
	return bpf_redirect(f->ifindex, BPF_F_INGRESS);
}

#else

SEC(PROGRAM)
int raddle_switch(frame *f)
{
	const int fate = compute(f);

	return fate == PASS ? forward(f) : fate;
}

/* Runs for each copy of a result, before it leaves by a child's interface. */
SEC("xdp.frags/devmap")
int raddle_exit(struct xdp_md *ctx)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	struct ethhdr *eth = data;
	struct iphdr *ip = data + sizeof *eth;
	struct udphdr *udp = data + sizeof *eth + sizeof *ip;
	const struct header *h = data + BEFORE;
	struct exit_key key;
	const struct exit *to;

	if (data + BEFORE + HEADER > end)
		return XDP_DROP;
	count_sent(ctx->egress_ifindex, end - data);
	/* A multicast address was written already. */
	if (ip->daddr)
		return XDP_PASS;
	key.job = bpf_ntohl(h->job);
	key.group = bpf_ntohl(h->group);
	key.at = ctx->egress_ifindex;
	to = bpf_map_lookup_elem(&exits, &key);
	if (!to)
		return XDP_DROP;
	__builtin_memcpy(eth->h_dest, to->mac, 6);
	ip->daddr = to->address;
	ip->check = checksum(ip->saddr, to->address, bpf_ntohs(ip->tot_len));
	udp->dest = to->port;
	if (udp->check)
		udp->check = pseudo_sum(ip);
	return XDP_PASS;
}

#endif

/* No helper used here is reserved for GPL programs. */
char _license[] SEC("license") = "Apache-2.0";
