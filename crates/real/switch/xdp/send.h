/* Messages of ours leave: the frame that came in gets their bytes, and the addresses of the parent or of the children. Both
 * objects have all of it, but that copies for children are addressed before they leave under TC, and on their way out under
 * XDP. Included by raddle.bpf.c behind its maps and counters.
 */
#ifndef RADDLE_SEND_H
#define RADDLE_SEND_H

/* One's complement sum of the header of a datagram of ours, but for addresses and length (RFC 1071). */
#define FIXED_SUM (0x4500 + 0x4000 + (TTL << 8 | IPPROTO_UDP))

INLINE __u16 checksum(__u32 source, __u32 destination, __u16 length)
{
	__u32 sum = FIXED_SUM + length;

	source = bpf_ntohl(source);
	destination = bpf_ntohl(destination);
	sum += (source >> 16) + (source & 0xffff) + (destination >> 16) + (destination & 0xffff);
	sum = (sum >> 16) + (sum & 0xffff);
	sum = (sum >> 16) + (sum & 0xffff);
	return bpf_htons(~sum);
}

struct target {
	__u8 mac[6];
	__be16 port;
	__u32 address;
};

/* What is before a message. */
struct envelope {
	struct ethhdr eth;
	struct iphdr ip;
	struct udphdr udp;
} __attribute__((packed));

_Static_assert(sizeof(struct envelope) == BEFORE, "nothing between the headers");

/* Writes what is before `bytes` of a message of ours. `partial`: the kernel knows that the checksum is to be completed. */
INLINE long address(frame *f, const struct group *g, const struct target *to, __u32 bytes, int partial)
{
	const struct iphdr ip = {
		.version = 4,
		.ihl = 5,
		.tot_len = bpf_htons(sizeof ip + sizeof(struct udphdr) + bytes),
		.frag_off = bpf_htons(0x4000),
		.ttl = TTL,
		.protocol = IPPROTO_UDP,
		.check = checksum(g->own, to->address, sizeof ip + sizeof(struct udphdr) + bytes),
		.saddr = g->own,
		.daddr = to->address,
	};
	struct envelope e = {
		.eth = { .h_proto = bpf_htons(ETH_P_IP) },
		.ip = ip,
		.udp = {
			.source = bpf_htons(PORT),
			.dest = to->port,
			.len = bpf_htons(sizeof e.udp + bytes),
			/* None, if the frame has none to complete: the tag covers the message (docs/reference/wire.md). */
			.check = partial ? pseudo_sum(&ip) : 0,
		},
	};

	__builtin_memcpy(e.eth.h_dest, to->mac, 6);
	__builtin_memcpy(e.eth.h_source, g->mac, 6);
	return store_bytes(f, 0, &e, sizeof e);
}

/* Whether the checksum of a frame that came in is still to be completed. */
INLINE int unfinished(const frame *f)
{
	const void *data = (void *)(long)f->data, *end = (void *)(long)f->data_end;
	const struct iphdr *ip = data + sizeof(struct ethhdr);
	const struct udphdr *udp = data + sizeof(struct ethhdr) + sizeof *ip;

	return generic && data + BEFORE <= end && is_partial(ip, udp->check);
}

/* Makes the frame one of the switch's, with `bytes` of `message`. */
INLINE int write_frame(frame *f, const struct group *g, const struct target *to, const __u8 *message, __u32 bytes,
		       int partial)
{
	if (bytes < HEADER || bytes > MESSAGE || resize(f, BEFORE + bytes, partial) ||
	    store_bytes(f, BEFORE, message, bytes))
		return -1;
	return address(f, g, to, bytes, partial);
}

/* Sends a message to the parent. */
INLINE int send_up(frame *f, const struct group *g, const __u8 *message, __u32 bytes)
{
	struct target to = { .port = bpf_htons(PORT), .address = g->parent };

	__builtin_memcpy(to.mac, g->parent_mac, 6);
	if (write_frame(f, g, &to, message, bytes, unfinished(f)))
		return DROP;
	count(g, SENT_UP);
	return leave(f, g->parent_interface, BEFORE + bytes);
}

#ifdef TC

/* Sends the frame, which holds a message of `bytes`, to all children; each copy is addressed before it leaves. */
INLINE int copy_to_children(frame *f, const struct group *g, const struct header *h, __u32 bytes, int partial)
{
	struct exit_key key = { bpf_ntohl(h->job), bpf_ntohl(h->group), 0 };
	__u32 at;

	for (at = 0; at < CHILDREN; at++) {
		const struct exit *exit;

		key.at = at;
		exit = bpf_map_lookup_elem(&exits, &key);
		if (at >= g->copies || !exit)
			break;
		if (!g->results) {
			struct target to = { .port = exit->port, .address = exit->address };

			__builtin_memcpy(to.mac, exit->mac, 6);
			if (address(f, g, &to, bytes, partial))
				break;
		}
		if (at + 1 == g->copies)
			return leave(f, exit->interface, BEFORE + bytes);
		count_sent(exit->interface, BEFORE + bytes);
		bpf_clone_redirect(f, exit->interface, 0);
	}
	return DROP;
}

#else

/* Has the kernel send a copy to each child, which `raddle_exit` addresses. */
INLINE int copy_to_children(frame *f, const struct group *g, const struct header *h, __u32 bytes, int partial)
{
	const __u32 index = g->copies;
	void *map = bpf_map_lookup_elem(&children, &index);

	(void)f, (void)h, (void)bytes, (void)partial;
	return map ? bpf_redirect_map(map, 0, BPF_F_BROADCAST) : DROP;
}

#endif

/* Sends a result to all children. With a multicast address one frame fits them all. */
INLINE int send_down(frame *f, const struct group *g, const __u8 *message, __u32 bytes)
{
	struct target to = { .mac = { 0x01, 0x00, 0x5e }, .port = g->results_port, .address = g->results };
	const __u32 group = bpf_ntohl(g->results);
	const int partial = unfinished(f);

	/* The address of an IPv4 multicast group on Ethernet (RFC 1112, 6.4). */
	to.mac[3] = group >> 16 & 0x7f;
	to.mac[4] = group >> 8;
	to.mac[5] = group;
	if (write_frame(f, g, &to, message, bytes, partial))
		return DROP;
	count(g, RESULTS);
	return copy_to_children(f, g, (const struct header *)message, bytes, partial);
}

#endif
