/* Frames from one station to another, both of which the core's bridge has learnt: forwarded without waking the core.
 *
 * Only what cannot need the core: IPv4 over plain Ethernet, TCP, UDP and ICMP, whole. Under XDP of at most 1514 bytes (the
 * kernel redirects no longer ones), and where frames are not yet socket buffers with complete checksums. A station that
 * turns up behind another port goes to the core, which learns it.
 */
#ifndef RADDLE_FORWARD_H
#define RADDLE_FORWARD_H

#include <linux/tcp.h>

#define QUERY 1
#define LONGEST 1514

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, STATIONS);
	__type(key, struct station_key);
	__type(value, struct station);
} stations SEC(".maps");

/* The sum of the pseudo-header of a datagram or segment (RFC 9293, 3.1). */
INLINE __u16 pseudo_sum(const struct iphdr *ip)
{
	__u32 sum = bpf_htons(ip->protocol) + bpf_htons(bpf_ntohs(ip->tot_len) - sizeof *ip);

	sum += (ip->saddr >> 16) + (ip->saddr & 0xffff) + (ip->daddr >> 16) + (ip->daddr & 0xffff);
	sum = (sum >> 16) + (sum & 0xffff);
	sum = (sum >> 16) + (sum & 0xffff);
	return sum;
}

/* Whether a checksum is only that of the pseudo-header, as hosts on the same machine leave it for a card to complete.
 * But in generic mode the sockets must see the frame then, which are told. A complete sum looks like that once in 65,536
 * times, and takes the longer way.
 */
INLINE int is_partial(const struct iphdr *ip, __u16 check)
{
	return check == pseudo_sum(ip);
}

INLINE int forward(frame *f)
{
	void *data = (void *)(long)f->data, *end = (void *)(long)f->data_end;
	const __u32 length = length_of(f);
	const struct ethhdr *eth = data;
	const struct iphdr *ip = data + sizeof *eth;
	const void *above = data + sizeof *eth + sizeof *ip;
	struct station_key from = {}, to = {};
	struct station *sender, *receiver;

	if (above > end || (!TRAINS && length > LONGEST))
		return PASS;
	if (eth->h_dest[0] & 1 || eth->h_proto != bpf_htons(ETH_P_IP) || *(const __u8 *)ip != 0x45 ||
	    ip->frag_off & bpf_htons(0xbfff))
		return PASS;
	if (ip->protocol == IPPROTO_TCP) {
		const struct tcphdr *tcp = above;

		if ((void *)(tcp + 1) > end || (!generic && is_partial(ip, tcp->check)))
			return PASS;
	} else if (ip->protocol == IPPROTO_UDP) {
		const struct udphdr *udp = above;
		const struct header *h = (void *)(udp + 1);

		if ((void *)(udp + 1) > end || (!generic && is_partial(ip, udp->check)))
			return PASS;
		/* A query that crosses is the core's: it rewrites it. */
		if ((void *)&h->flags > end) {
			if (length != (__u32)(end - data))
				return PASS;
		} else if (h->magic == bpf_htons(MAGIC) && h->version == VERSION && h->kind == QUERY) {
			return PASS;
		}
	} else if (ip->protocol != IPPROTO_ICMP) {
		return PASS;
	}
	__builtin_memcpy(from.mac, eth->h_source, 6);
	__builtin_memcpy(to.mac, eth->h_dest, 6);
	sender = bpf_map_lookup_elem(&stations, &from);
	if (!sender || sender->interface != port_of(f))
		return PASS;
	receiver = bpf_map_lookup_elem(&stations, &to);
	if (!receiver || receiver->interface == port_of(f))
		return PASS;
	if (!sender->heard)
		sender->heard = 1;
	count_received(port_of(f), length);
	return leave(f, receiver->interface, length);
}

#endif
