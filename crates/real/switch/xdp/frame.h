/* What differs between the two places in the kernel where the program runs; all else is the same source.
 *
 * XDP: before the kernel has a buffer for the frame. Redirected copies are made by the kernel from a map of interfaces.
 *
 * TC (traffic control's ingress, tcx): on the kernel's own socket buffers, as virtual cables (veth) carry them. Nothing
 * is copied on the way of a frame that is only forwarded: bytes are read in place and written by helpers alone, since
 * a program that writes directly would have each buffer that TCP still holds copied before it runs. Packet
 * sockets see a frame before this program does: those of the switch take only marked ones, and what the program leaves
 * to them comes in once more, marked.
 */
#ifndef RADDLE_FRAME_H
#define RADDLE_FRAME_H

/* On frames for the switch's sockets (src/socket.rs filters by it). It never leaves the switch. */
#define FOR_SOCKETS 0x52444c31

#ifdef TC

#include <linux/pkt_cls.h>

#define PROGRAM "classifier"
#define TRAINS 1 /* redirects trains of segments too */
typedef struct __sk_buff frame;

enum fate { DROP = TC_ACT_SHOT, PASS = TC_ACT_OK };

INLINE __u32 port_of(const frame *f)
{
	return f->ifindex;
}

INLINE __u32 length_of(const frame *f)
{
	return f->len;
}

INLINE long load_bytes(frame *f, __u32 offset, void *to, __u32 length)
{
	return bpf_skb_load_bytes(f, offset, to, length);
}

INLINE long store_bytes(frame *f, __u32 offset, const void *from, __u32 length)
{
	return bpf_skb_store_bytes(f, offset, from, length, 0);
}

/* Makes a frame as long as that; all of it is written anew afterwards. `partial`: its checksum is still to be completed. */
INLINE long resize(frame *f, __u32 length, int partial)
{
	(void)partial;
	return f->len == length ? 0 : bpf_skb_change_tail(f, length, 0);
}

#else

#define PROGRAM "xdp.frags"
#define TRAINS 0
typedef struct xdp_md frame;

enum fate { DROP = XDP_DROP, PASS = XDP_PASS };

INLINE __u32 port_of(const frame *f)
{
	return f->ingress_ifindex;
}

INLINE __u32 length_of(frame *f)
{
	return bpf_xdp_get_buff_len(f);
}

INLINE long load_bytes(frame *f, __u32 offset, void *to, __u32 length)
{
	return bpf_xdp_load_bytes(f, offset, to, length);
}

INLINE long store_bytes(frame *f, __u32 offset, const void *from, __u32 length)
{
	return bpf_xdp_store_bytes(f, offset, (void *)from, length);
}

INLINE long resize(frame *f, __u32 length, int partial)
{
	const int more = (int)length - (int)(f->data_end - f->data);

	/* It may grow at either end; behind a frame there is seldom room. The buffer of a frame with a partial checksum
	 * says where that is to be written: its headers must stay in their place.
	 */
	if (more && bpf_xdp_adjust_tail(f, more) && (more < 0 || partial || bpf_xdp_adjust_head(f, -more)))
		return -1;
	return 0;
}

#endif
#endif
