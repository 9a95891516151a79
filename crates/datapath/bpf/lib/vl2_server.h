/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/*
 * What a ToR takes from its servers (RFC 2827; RFC 3704 2.2): a source is one to which the ToR's route leaves by the port
 * that the packet came by. Agents see to that on their hosts, and this is for who sends past them. It looks behind outer
 * headers, because the fabric takes those off and believes what is inside.
 *
 * An agent's headers are from flow hashes, two at most, and nothing else is ever taken off: so what is behind them is looked
 * at, and what applications put behind that is theirs. A header of a broadcast is from the host's LA.
 */
#pragma once

#include "vl2_decap.h"
#include "vl2_route.h"

#define SERVER_HEADERS (ETH_LENGTH + 3 * IPV4_LENGTH)

/* Asks for the way to a source. No neighbour is needed for that, and no room. */
INLINE int leaves_by_its_port(ctx_t *ctx, __be32 source)
{
	struct bpf_fib_lookup route = {};

	route.family = ADDRESS_FAMILY_INET;
	route.ifindex = ctx->ingress_ifindex;
	route.ipv4_dst = source;
	return !bpf_fib_lookup(ctx, &route, sizeof(route), FIB_LOOKUP_SKIP_NEIGH) &&
	       route.ifindex == ctx->ingress_ifindex;
}

/* A source that is behind a port, as good as a `known_route`. */
struct known_source {
	__u64 tick_ns;
	__be32 source;
	__u32 ifindex;
};

#define SOURCES_LOG2 8

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1 << SOURCES_LOG2);
	__type(key, __u32);
	__type(value, struct known_source);
} known_sources SEC(".maps");

INLINE int is_behind_its_port(ctx_t *ctx, __be32 source)
{
	__u32 slot = source * 0x9e3779b1U >> (32 - SOURCES_LOG2);
	struct known_source *known = bpf_map_lookup_elem(&known_sources, &slot);
	__u64 tick_ns = bpf_ktime_get_coarse_ns();
	__u32 ifindex = ctx->ingress_ifindex;

	if (known && known->tick_ns == tick_ns && known->source == source && known->ifindex == ifindex)
		return 1;
	if (!leaves_by_its_port(ctx, source))
		return 0;
	if (known)
		*known = (struct known_source){ tick_ns, source, ifindex };
	return 1;
}

/* A host that has no address yet speaks to everybody (RFC 2131 4.1), and no router forwards that. */
INLINE int is_from_nobody(const struct ipv4_header *ip)
{
	return ip->source == 0 && is_multicast_or_broadcast(ip->destination);
}

/* From an outer header to what is inside. With options or in fragments that could be anywhere, and no agent makes such. */
INLINE enum switch_outcome enter(struct cursor *cursor, struct ipv4_header **ip)
{
	if ((*ip)->version_ihl != IPV4_NO_OPTIONS)
		return SWITCH_MALFORMED;
	if ((*ip)->fragment & bpf_htons(IPV4_FRAGMENT_MASK))
		return SWITCH_FRAGMENT;
	return parse_ipv4(cursor, ip) ? SWITCH_PASSED : SWITCH_MALFORMED;
}

/* SWITCH_PASSED: it may be looked at further. */
INLINE enum switch_outcome check_server(ctx_t *ctx)
{
	enum switch_outcome outcome = SWITCH_PASSED;
	struct eth_header *eth;
	struct ipv4_header *ip;

	if (ctx_is_tagged(ctx))
		return SWITCH_TAGGED;
	ctx_pull_headers(ctx, SERVER_HEADERS);
	struct cursor cursor = ctx_cursor(ctx);
	if (!parse_eth(&cursor, &eth) || eth->type != bpf_htons(ETHERTYPE_IPV4))
		return SWITCH_PASSED;
	if (!parse_ipv4(&cursor, &ip))
		return SWITCH_MALFORMED;
	if (ip->protocol == PROTOCOL_IPIP) {
		int is_hashed = is_hash_source(ip->source);

		if (!is_hashed && !is_behind_its_port(ctx, ip->source))
			return SWITCH_FOREIGN_SOURCE;
		outcome = enter(&cursor, &ip);
		if (outcome == SWITCH_PASSED && is_hashed && ip->protocol == PROTOCOL_IPIP && is_hash_source(ip->source))
			outcome = enter(&cursor, &ip);
	} else if (is_from_nobody(ip)) {
		return SWITCH_PASSED;
	}
	if (outcome != SWITCH_PASSED)
		return outcome;
	return is_behind_its_port(ctx, ip->source) ? SWITCH_PASSED : SWITCH_FOREIGN_SOURCE;
}
