/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/*
 * Decapsulation on an skb (RFC 7348 4.1, 5): what is for us loses its outer headers and goes to the port where its
 * destination is, or to all ports of its segment.
 */
#pragma once

#include <bpf/bpf_core_read.h>

#include "vxlan_tc_flood.h"

#define ADJ_ROOM_DECAP_L3_IPV6 (1ULL << 8) /* newer than the oldest headers we build with */
#define IPV6_LONGER 20			   /* than a header of IPv4 without options, bytes */

#define OUTER_LENGTH (ETH_LENGTH + TUNNEL_LENGTH)
#define SHORTEST_PACKET 20 /* that the kernel lets us shrink to */

/* What the kernel knows of a checksum; its own numbers. */
#define CHECKSUM_UNNECESSARY 1 /* the device has verified it */
#define CHECKSUM_PARTIAL 3     /* it is yet to be made; the frame has not left this machine's memory */

struct sk_buff___vtep {
	__u8 ip_summed : 2;
} __attribute__((preserve_access_index));

/* Where the context is, there the kernel's own structure is; the kfunc that says so is newer than Linux 6.1. */
INLINE __u32 summed_by(ctx_t *ctx)
{
	return BPF_CORE_READ_BITFIELD_PROBED((struct sk_buff___vtep *)ctx, ip_summed);
}

#define SUM_CHUNK 128

/* A walk over a datagram that adds it up. */
struct summing {
	ctx_t *ctx;
	__u32 at;
	__u32 left;
	__s64 sum;
};

static long add_chunk(__u32 turn, struct summing *summing)
{
	__u32 buffer[SUM_CHUNK / 4] = {};
	__u32 last = (summing->left < SUM_CHUNK ? summing->left : SUM_CHUNK) - 1;

	/* Or the compiler asks whether anything is left, from which the verifier of Linux 6.1 learns no bound. */
	asm volatile("" : "+r"(last));
	if (last >= SUM_CHUNK)
		return 1;
	__u32 bytes = last + 1;
	if (bpf_skb_load_bytes(summing->ctx, summing->at, buffer, bytes))
		return 1;
	summing->sum = bpf_csum_diff(NULL, 0, buffer, SUM_CHUNK, summing->sum);
	summing->at += bytes;
	summing->left -= bytes;
	return 0;
}

/* Byte by byte: for the rare datagram with a checksum that nobody has looked at yet. */
NOINLINE int udp_sum_is_right(ctx_t *ctx, __be32 source, __be32 destination, __u32 length)
{
	struct summing summing = { .ctx = ctx, .at = ETH_LENGTH + IPV4_LENGTH, .left = length };
	__u64 sum = (__u64)source + destination + bpf_htonl(PROTOCOL_UDP << 16 | (length & 0xffff));

	bpf_loop((length + SUM_CHUNK - 1) / SUM_CHUNK, add_chunk, &summing, 0);
	sum += (__u32)summing.sum;
	return !summing.left && fold_sum(sum) == 0xffff;
}

/* Zero, or right, or known to be right (RFC 7348 5). */
INLINE int udp_checksum_is_accepted(ctx_t *ctx, const struct ipv4_header *ip, const struct udp_header *udp)
{
	if (!udp->checksum)
		return 1;
	__u32 summed = summed_by(ctx);
	if (summed == CHECKSUM_PARTIAL || summed == CHECKSUM_UNNECESSARY)
		return 1;
	return udp_sum_is_right(ctx, ip->source, ip->destination, host16(udp->length));
}

/* What arrived, once its outer headers are checked. */
struct arrival {
	__u32 vni;
	__be32 peer;
	__be32 group; /* that it was sent to; 0: to us */
	__u32 known;  /* `from` is the peer */
	struct origin from;
	__u32 end; /* of the datagram in the frame, bytes */
	__u8 tos;
};

/* VTEP_DECAPSULATED: it is VXLAN, and for us; VTEP_PASSED: it is not. */
INLINE enum vtep_outcome check_outer(ctx_t *ctx, struct cursor *cursor, struct arrival *arrival)
{
	struct eth_header *eth;
	struct ipv4_header *ip;
	struct udp_header *udp;
	struct vxlan_header *vxlan;

	if (!parse_eth(cursor, &eth) || eth->type != bpf_htons(ETHERTYPE_IPV4) || ctx->vlan_present)
		return VTEP_PASSED;
	if (!parse_ipv4(cursor, &ip) || ip->protocol != PROTOCOL_UDP)
		return VTEP_PASSED;
	arrival->group = ip->destination;
	if (ip->destination == vtep_config.local)
		arrival->group = 0;
	else if (!is_multicast_or_broadcast(ip->destination))
		return VTEP_PASSED;
	/* Later fragments have no port to know them by. The stack throws them away in the end. */
	if (ip->version_ihl != IPV4_NO_OPTIONS || !parse_udp(cursor, &udp) || (ip->fragment & bpf_htons(0x1fff)))
		return VTEP_PASSED;
	if (udp->destination != vtep_config.udp_port)
		return VTEP_PASSED;
	__u32 length = host16(udp->length);
	if (ip->fragment & bpf_htons(IPV4_FRAGMENT_MASK))
		return VTEP_FRAGMENT;
	if (!ipv4_checksum_is_right(ip))
		return VTEP_BAD_CHECKSUM;
	if (!parse_vxlan(cursor, &vxlan))
		return VTEP_MALFORMED;
	if (!ctx->gso_size && (length < UDP_LENGTH + VXLAN_LENGTH || length > host16(ip->total_length) - IPV4_LENGTH ||
			       !ctx_holds(ctx, ETH_LENGTH + IPV4_LENGTH + length)))
		return VTEP_MALFORMED;
	if (!udp_checksum_is_accepted(ctx, ip, udp))
		return VTEP_BAD_UDP_CHECKSUM;
	if (!(vxlan->flags & bpf_htonl(VXLAN_VNI_FLAG)))
		return VTEP_NO_VNI_FLAG;
	arrival->vni = bpf_ntohl(vxlan->vni) >> 8;
	arrival->peer = ip->source;
	arrival->tos = ip->tos;
	arrival->end = ETH_LENGTH + IPV4_LENGTH + length;
	if (!ctx->gso_size && length < UDP_LENGTH + VXLAN_LENGTH + ETH_LENGTH)
		return VTEP_INNER_MALFORMED;
	return VTEP_DECAPSULATED;
}

/* Carries the outer congestion mark inwards (RFC 6040 4.2); 1 if the packet may live. */
INLINE int carry_ecn(ctx_t *ctx, __be16 type, struct cursor cursor, __u8 arriving)
{
	struct ipv4_header *ip;
	struct ipv6_header *ip6;
	__u32 at = OUTER_LENGTH + ETH_LENGTH;

	if (type == bpf_htons(ETHERTYPE_IPV4) && parse_ipv4(&cursor, &ip)) {
		__u8 before = ip->tos;
		int leaving = combined_ecn(arriving & ECN_MASK, before & ECN_MASK);

		if (leaving < 0 || leaving == (before & ECN_MASK))
			return leaving >= 0;
		__u8 tos = (before & ~ECN_MASK) | leaving;
		__u16 checksum = checksum_after(ip->checksum, bpf_htons(before), bpf_htons(tos));
		return !bpf_skb_store_bytes(ctx, at + offsetof(struct ipv4_header, tos), &tos, sizeof(tos), 0) &&
		       !bpf_skb_store_bytes(ctx, at + offsetof(struct ipv4_header, checksum), &checksum,
					    sizeof(checksum), 0);
	}
	if (type == bpf_htons(ETHERTYPE_IPV6) && parse_ipv6(&cursor, &ip6)) {
		__u32 first = bpf_ntohl(ip6->first);
		__u8 inner = first >> 20 & ECN_MASK;
		int leaving = combined_ecn(arriving & ECN_MASK, inner);

		if (leaving < 0 || leaving == inner)
			return leaving >= 0;
		__be32 word = bpf_htonl((first & ~(ECN_MASK << 20)) | leaving << 20);
		return !bpf_skb_store_bytes(ctx, at, &word, sizeof(word), 0);
	}
	return 1;
}

#define SHRINK_FLAGS (BPF_F_ADJ_ROOM_FIXED_GSO | BPF_F_ADJ_ROOM_NO_CSUM_RESET)

/*
 * Removes `bytes` behind the Ethernet header, after which the skb is one of IPv6; 0 if done. Before Linux 6.3 only a
 * change of version, which puts in the difference of the two headers, makes it one: without, segmentation by the kernel
 * would read the packet as IPv4.
 */
INLINE int shrink_to_ipv6(ctx_t *ctx, __u32 bytes)
{
	if (!bpf_skb_adjust_room(ctx, -(__s32)bytes, BPF_ADJ_ROOM_MAC, SHRINK_FLAGS | ADJ_ROOM_DECAP_L3_IPV6))
		return 0;
	return bpf_skb_change_proto(ctx, bpf_htons(ETHERTYPE_IPV6), 0) ||
	       bpf_skb_adjust_room(ctx, -(__s32)(bytes + IPV6_LONGER), BPF_ADJ_ROOM_MAC, SHRINK_FLAGS);
}

/* Takes the outer headers off; the inner Ethernet header moves to the front. */
INLINE int strip(ctx_t *ctx, struct eth_words inner)
{
	__u32 gap = TUNNEL_LENGTH + ETH_LENGTH;
	struct eth_header *eth;

	/* What a device has verified was the outer datagram; what is inside is one level up. */
	bpf_csum_level(ctx, BPF_CSUM_LEVEL_DEC);
	if (inner.type == bpf_htons(ETHERTYPE_IPV6) ?
		    shrink_to_ipv6(ctx, gap) :
		    bpf_skb_adjust_room(ctx, -(__s32)gap, BPF_ADJ_ROOM_MAC, SHRINK_FLAGS))
		return 0;
	struct cursor cursor = ctx_cursor(ctx);
	if (!parse_eth(&cursor, &eth))
		return 0;
	store_eth(eth, inner);
	return 1;
}

/* Cuts off what is behind the datagram, and makes short frames long enough for the kernel to shrink. */
INLINE int trim(ctx_t *ctx, __u32 end)
{
	__u32 shortest = OUTER_LENGTH + ETH_LENGTH + SHORTEST_PACKET;

	if (ctx->gso_size)
		return 1;
	if (end < shortest)
		end = shortest;
	return ctx->len == end || !bpf_skb_change_tail(ctx, end, 0);
}
