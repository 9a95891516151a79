/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/*
 * Encapsulation on an skb, and the way out of this node: the kernel's routes decide, as they would for a datagram of this
 * node itself.
 *
 * IP inside: bpf_skb_adjust_room tells the skb what it now is, so that super frames and unfinished checksums stay valid.
 * Everything else (ARP first of all) the helper refuses; such a frame gets its headers in front by
 * bpf_skb_change_head, and then its neighbour's MAC here, because bpf_redirect_neigh would take it for what is inside.
 * If there is no MAC yet, the frame comes in at the uplink once more with VTEP_MARK: there it is IPv4 for the kernel too.
 */
#pragma once

#include "vxlan_headers.h"

#define ADDRESS_FAMILY_INET 2
#define FIB_LOOKUP_SKIP_NEIGH (1U << 2) /* newer than the oldest headers we build with */
#define EALREADY 114
#define TCP_LENGTH 20 /* its fixed part */

/* Look-ups as this node itself; user space sees to it that loopback may forward. */
#define LOOPBACK_IFINDEX 1

#define ENCAPSULATION(inner_l2) \
	(BPF_F_ADJ_ROOM_ENCAP_L3_IPV4 | BPF_F_ADJ_ROOM_ENCAP_L4_UDP | BPF_F_ADJ_ROOM_ENCAP_L2_ETH | \
	 BPF_F_ADJ_ROOM_ENCAP_L2((__u64)(inner_l2)) | BPF_F_ADJ_ROOM_FIXED_GSO | BPF_F_ADJ_ROOM_NO_CSUM_RESET)

/* Where frames go that must wait for a neighbour, and floods to groups. Changed while traffic runs. */
volatile __u32 vtep_uplink_ifindex SEC(".data.vtep") = 0;

/* A frame to be encapsulated. */
struct inner {
	struct carried carried;
	struct eth_words eth;
	__u32 vni;
	__u32 bytes;	     /* with the Ethernet header and the tag; of a super frame, all of it */
	__u32 segment_bytes; /* of the largest frame that it stands for */
	__u32 tag;	     /* 802.1Q tag that travels beside it: 1 << 16 | TCI; 0: none */
	__u32 is_ip;	     /* IPv4 or IPv6 for the kernel too */
};

/* What the verdict is made of. */
struct way {
	__u32 ifindex;	/* out of this interface, or into it again */
	__u32 flags;	/* BPF_F_INGRESS: into it again */
	__u32 vlan;	/* tag of a trunk's VLAN that the frame leaves with; 0: none */
	__u32 has_next; /* `next` is the neighbour */
	struct bpf_redir_neigh next;
};

/* Bytes of headers of the packet inside a super frame, from the Ethernet header on. */
INLINE __u32 segment_headers(ctx_t *ctx, const struct eth_words *eth)
{
	__u32 transport = ETH_LENGTH + IPV6_LENGTH;
	__u8 protocol = 0, first = 0;

	if (eth->type == bpf_htons(ETHERTYPE_IPV4)) {
		bpf_skb_load_bytes(ctx, ETH_LENGTH, &first, 1);
		bpf_skb_load_bytes(ctx, ETH_LENGTH + offsetof(struct ipv4_header, protocol), &protocol, 1);
		transport = ETH_LENGTH + (first & 15) * 4;
	} else {
		bpf_skb_load_bytes(ctx, ETH_LENGTH + offsetof(struct ipv6_header, next), &protocol, 1);
	}
	if (protocol != PROTOCOL_TCP)
		return transport + UDP_LENGTH;
	bpf_skb_load_bytes(ctx, transport + 12, &first, 1);
	return transport + (first >> 4) * 4;
}

/* `eth` points into the frame; nothing after this may use pointers into it without asking anew. */
INLINE void read_inner(ctx_t *ctx, const struct eth_header *eth, struct cursor cursor, __u32 vni, struct inner *inner)
{
	__u32 payload = ctx->gso_size;

	inner->eth = load_eth(eth);
	inner->carried = read_carried(eth, eth->type, cursor);
	inner->vni = vni;
	inner->tag = ctx->vlan_present ? 1 << 16 | (ctx->vlan_tci & 0xffff) : 0;
	inner->bytes = ctx->len + (inner->tag ? TAG_LENGTH : 0);
	inner->segment_bytes = inner->bytes;
	if (payload)
		inner->segment_bytes = segment_headers(ctx, &inner->eth) + payload + (inner->tag ? TAG_LENGTH : 0);
	inner->is_ip = ctx->protocol == bpf_htons(ETHERTYPE_IPV4) || ctx->protocol == bpf_htons(ETHERTYPE_IPV6);
}

INLINE long find_route(ctx_t *ctx, const struct inner *inner, __be32 peer, __u32 flags, struct bpf_fib_lookup *route)
{
	__builtin_memset(route, 0, sizeof(*route));
	route->family = ADDRESS_FAMILY_INET;
	route->l4_protocol = PROTOCOL_UDP;
	route->sport = entropy_port(inner->carried.hash);
	route->dport = vtep_config.udp_port;
	route->tot_len = inner->segment_bytes + TUNNEL_LENGTH;
	route->ifindex = LOOPBACK_IFINDEX;
	route->tos = outer_tos(inner->carried.tos);
	route->ipv4_src = vtep_config.local;
	route->ipv4_dst = peer;

	long missing = bpf_fib_lookup(ctx, route, sizeof(*route), flags);
	if (!missing && route->family != ADDRESS_FAMILY_INET) /* by way of an IPv6 gateway */
		return BPF_FIB_LKUP_RET_NOT_FWDED;
	return missing;
}

/* Opens the gap that the tunnel's headers go into; 1 by adjust_room, 2 by change_head, 0 not at all. */
INLINE int open_gap(ctx_t *ctx, const struct inner *inner)
{
	__u32 tag_bytes = inner->tag ? TAG_LENGTH : 0;
	__u32 gap = TUNNEL_LENGTH + ETH_LENGTH + tag_bytes;

	if (inner->tag && bpf_skb_vlan_pop(ctx))
		return 0;
	if (inner->is_ip) {
		long failed = bpf_skb_adjust_room(ctx, gap, BPF_ADJ_ROOM_MAC, ENCAPSULATION(ETH_LENGTH + tag_bytes));

		if (!failed)
			return 1;
		/* It has been in another tunnel already. Only as a single packet it fits into one more. */
		if (failed != -EALREADY || ctx->gso_size)
			return 0;
	}
	return bpf_skb_change_head(ctx, gap, 0) ? 0 : 2;
}

/* Writes everything in front of the inner packet. The outer MACs are zero: whoever sends the frame knows them. */
INLINE int write_headers(ctx_t *ctx, const struct inner *inner, __be32 destination)
{
	struct cursor cursor = ctx_cursor(ctx);
	struct eth_header *outer = cursor.at;
	struct eth_header *eth = cursor.at + ETH_LENGTH + TUNNEL_LENGTH;

	if ((void *)(eth + 1) > cursor.end)
		return 0;
	store_eth(outer, (struct eth_words){ .type = bpf_htons(ETHERTYPE_IPV4) });
	write_tunnel(outer + 1, inner->carried, inner->bytes, inner->vni, destination);
	store_eth(eth, inner->eth);
	if (inner->tag) {
		__be16 *type = &eth->type;

		if ((void *)(type + 3) > cursor.end)
			return 0;
		type[0] = bpf_htons(ETHERTYPE_VLAN);
		type[1] = bpf_htons(inner->tag & 0xffff);
		type[2] = inner->eth.type;
	}
	return 1;
}

/* Gives the frame the tag of a trunk's VLAN; 1 if that is done. Pointers into the frame are void then. */
INLINE int put_tag(ctx_t *ctx, __u32 vlan)
{
	return !bpf_skb_vlan_push(ctx, bpf_htons(ETHERTYPE_VLAN), vlan);
}

INLINE void wait_for_neighbour(ctx_t *ctx, struct way *way)
{
	ctx->mark = VTEP_MARK;
	way->ifindex = vtep_uplink_ifindex;
	way->flags = BPF_F_INGRESS;
}

INLINE int put_macs(ctx_t *ctx, const struct bpf_fib_lookup *route)
{
	struct cursor cursor = ctx_cursor(ctx);
	struct eth_header *outer;

	if (!parse_eth(&cursor, &outer))
		return 0;
	/* In pairs of bytes: that is how these parts of the stack are aligned. */
#pragma unroll
	for (int pair = 0; pair < 3; pair++) {
		((__u16 *)outer->destination)[pair] = ((const __u16 *)route->dmac)[pair];
		((__u16 *)outer->source)[pair] = ((const __u16 *)route->smac)[pair];
	}
	return 1;
}

INLINE void follow(struct way *way, const struct bpf_fib_lookup *route)
{
	way->ifindex = route->ifindex;
	way->has_next = 1;
	way->next.nh_family = ADDRESS_FAMILY_INET;
	way->next.ipv4_nh = route->ipv4_dst; /* the gateway's, if there is one */
}

/* To one VTEP. */
INLINE enum vtep_outcome encapsulate(ctx_t *ctx, const struct inner *inner, __be32 peer, struct way *way)
{
	struct bpf_fib_lookup route;
	long missing = find_route(ctx, inner, peer, inner->is_ip ? FIB_LOOKUP_SKIP_NEIGH : 0, &route);

	if (missing == BPF_FIB_LKUP_RET_FRAG_NEEDED || inner->bytes + TUNNEL_LENGTH > 0xffff)
		return VTEP_TOO_BIG;
	if (missing && missing != BPF_FIB_LKUP_RET_NO_NEIGH)
		return VTEP_NO_ROUTE;
	int gap = open_gap(ctx, inner);
	if (!gap || !write_headers(ctx, inner, peer))
		return VTEP_PUSH_FAILED;
	if (gap == 1) {
		follow(way, &route);
	} else if (inner->is_ip || missing) {
		wait_for_neighbour(ctx, way);
	} else {
		way->ifindex = route.ifindex;
		if (!put_macs(ctx, &route))
			return VTEP_PUSH_FAILED;
	}
	return VTEP_ENCAPSULATED;
}

/* A frame that came in at the uplink once more. It is encapsulated; what is missing is its neighbour. */
INLINE enum vtep_outcome send_waiting(ctx_t *ctx, struct way *way)
{
	ctx_pull_headers(ctx, ETH_LENGTH + IPV4_LENGTH + UDP_LENGTH);
	struct cursor cursor = ctx_cursor(ctx);
	struct bpf_fib_lookup route = {};
	struct eth_header *eth;
	struct ipv4_header *ip;
	struct udp_header *udp;

	ctx->mark = 0;
	if (!parse_eth(&cursor, &eth) || !parse_ipv4(&cursor, &ip) || !parse_udp(&cursor, &udp) ||
	    ip->source != vtep_config.local)
		return VTEP_MALFORMED;
	if (is_multicast_or_broadcast(ip->destination)) {
		__u32 mtu = 0;

		way->ifindex = ctx->ifindex;
		way->has_next = 1;
		way->next.nh_family = ADDRESS_FAMILY_INET;
		way->next.ipv4_nh = ip->destination;
		/* Segments of a super frame that goes to a group are not looked at. */
		if (!ctx->gso_size && bpf_check_mtu(ctx, way->ifindex, &mtu, 0, 0))
			return VTEP_TOO_BIG;
		return VTEP_SENT_LATER;
	}
	route.family = ADDRESS_FAMILY_INET;
	route.l4_protocol = PROTOCOL_UDP;
	route.sport = udp->source;
	route.dport = udp->destination;
	route.tot_len = ctx->gso_size ? 0 : host16(ip->total_length);
	route.ifindex = LOOPBACK_IFINDEX;
	route.tos = ip->tos;
	route.ipv4_src = ip->source;
	route.ipv4_dst = ip->destination;
	long missing = bpf_fib_lookup(ctx, &route, sizeof(route), FIB_LOOKUP_SKIP_NEIGH);
	if (missing == BPF_FIB_LKUP_RET_FRAG_NEEDED)
		return VTEP_TOO_BIG;
	if (missing || route.family != ADDRESS_FAMILY_INET)
		return VTEP_NO_ROUTE;
	follow(way, &route);
	return VTEP_SENT_LATER;
}
