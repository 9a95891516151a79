/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/* The kernel's routes, asked once for a burst: where a packet goes. */
#pragma once

#include "parse.h"

#define ADDRESS_FAMILY_INET 2
#define FIB_LOOKUP_SKIP_NEIGH (1U << 2) /* newer than the oldest headers we build with */

/* Where a decapsulated packet goes: filled by `find_route`, used by the verdict. */
struct hop {
	__u32 ifindex;
	struct bpf_redir_neigh next;
};

/*
 * The kernel's routes decide, ECMP included: with fib_multipath_hash_policy 0 or 1, the path that the stack would take.
 * The neighbour is left to bpf_redirect_neigh, which resolves it, keeps it fresh and holds the packet meanwhile. Returns
 * 0 or why there is no such route. Super frames are not measured: hosts keep their segments within the fabric's MTU.
 */
INLINE long ask_for_route(ctx_t *ctx, const struct ipv4_header *ip, __u16 length, struct hop *hop)
{
	struct bpf_fib_lookup route = {};

	route.family = ADDRESS_FAMILY_INET;
	route.l4_protocol = ip->protocol;
	route.tot_len = length;
	route.ifindex = ctx->ingress_ifindex;
	route.tos = ip->tos;
	route.ipv4_src = ip->source;
	route.ipv4_dst = ip->destination;

	long missing = bpf_fib_lookup(ctx, &route, sizeof(route), FIB_LOOKUP_SKIP_NEIGH);
	if (missing)
		return missing;
	if (route.family != ADDRESS_FAMILY_INET) /* by way of an IPv6 gateway */
		return BPF_FIB_LKUP_RET_NOT_FWDED;
	hop->ifindex = route.ifindex;
	hop->next.nh_family = ADDRESS_FAMILY_INET;
	hop->next.ipv4_nh = route.ipv4_dst; /* the gateway's, if there is one */
	return BPF_FIB_LKUP_RET_SUCCESS;
}

/*
 * The last answer for packets whose addresses share a slot, good until the kernel's clock ticks, which takes it some milliseconds: so
 * a burst asks once, and a route that is another is one with the next tick.
 */
struct known_route {
	__u64 tick_ns;
	__be32 source, destination;
	__u32 ingress_ifindex, ifindex;
	__be32 gateway;
	__u16 length; /* of the packet that was asked for: others may be shorter */
	__u8 tos, protocol;
};

#define ROUTES_LOG2 8

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1 << ROUTES_LOG2);
	__type(key, __u32);
	__type(value, struct known_route);
} known_routes SEC(".maps");

INLINE int is_known(ctx_t *ctx, const struct known_route *known, const struct ipv4_header *ip, __u16 length, __u64 tick_ns)
{
	return known->tick_ns == tick_ns && known->source == ip->source && known->destination == ip->destination &&
	       known->ingress_ifindex == ctx->ingress_ifindex && known->tos == ip->tos && known->protocol == ip->protocol &&
	       length <= known->length;
}

INLINE long find_route(ctx_t *ctx, const struct ipv4_header *ip, struct hop *hop)
{
	__u16 length = ctx_segment_payload(ctx) ? 0 : host16(ip->total_length);
	__u32 slot = (ip->destination * 0x85ebca6bU ^ ip->source * 0x9e3779b1U) >> (32 - ROUTES_LOG2);
	struct known_route *known = bpf_map_lookup_elem(&known_routes, &slot);
	__u64 tick_ns = bpf_ktime_get_coarse_ns();

	if (known && is_known(ctx, known, ip, length, tick_ns)) {
		hop->ifindex = known->ifindex;
		hop->next.nh_family = ADDRESS_FAMILY_INET;
		hop->next.ipv4_nh = known->gateway;
		return BPF_FIB_LKUP_RET_SUCCESS;
	}
	long missing = ask_for_route(ctx, ip, length, hop);
	if (known && !missing)
		*known = (struct known_route){
			.tick_ns = tick_ns,
			.source = ip->source,
			.destination = ip->destination,
			.ingress_ifindex = ctx->ingress_ifindex,
			.ifindex = hop->ifindex,
			.gateway = hop->next.ipv4_nh,
			.length = length,
			.tos = ip->tos,
			.protocol = ip->protocol,
		};
	return missing;
}
