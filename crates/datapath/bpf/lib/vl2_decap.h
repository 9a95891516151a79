/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/*
 * VL2 decapsulation (4.2.1), for whichever hook defined ctx_t before: a packet for one of our LAs loses one outer IPv4
 * header. The same body serves the Intermediate, whose packet is then one for a ToR, and the ToR, whose packet is then
 * one for a server.
 */
#pragma once

#include "ecn.h"
#include "hash.h"
#include "outcome.h"

#define SWITCH_HEADERS (ETH_LENGTH + 2 * IPV4_LENGTH)

/*
 * Changed while traffic runs, when an Intermediate takes over an anycast LA (4.2.2). A variable rather than a map of one
 * element, because a variable costs no look-up.
 */
volatile struct own_las own_las SEC(".data.own_las") = {};

COUNTERS(switch_counters, SWITCH_OUTCOME_COUNT);

INLINE int is_own_la(__be32 la)
{
	__u32 owned = own_las.count;

	for (__u32 i = 0; i < OWN_LAS_MAX && i < owned; i++) {
		if (own_las.la[i] == la)
			return 1;
	}
	return 0;
}

/*
 * Carries the outer header's congestion mark inwards (RFC 6040 4.2), or says why the packet must be dropped: marked on
 * the way although it cannot carry the mark.
 */
INLINE enum switch_outcome combine_ecn(ctx_t *ctx, const struct ipv4_header *outer, struct ipv4_header *inner)
{
	__u8 ecn = inner->tos & ECN_MASK;
	int leaving = combined_ecn(outer->tos & ECN_MASK, ecn);

	if (leaving < 0)
		return SWITCH_CE_ON_NOT_ECT;
	if (leaving == ecn)
		return SWITCH_DECAPSULATED;
	return store_ecn(ctx, inner, leaving) ? SWITCH_POP_FAILED : SWITCH_DECAPSULATED;
}

INLINE enum switch_outcome check_outer(ctx_t *ctx, const struct ipv4_header *outer)
{
	__u32 total_length = host16(outer->total_length);

	if (outer->version_ihl != IPV4_NO_OPTIONS || total_length < 2 * IPV4_LENGTH ||
	    !ctx_holds(ctx, ETH_LENGTH + total_length))
		return SWITCH_MALFORMED;
	if (!ipv4_checksum_is_right(outer))
		return SWITCH_BAD_CHECKSUM;
	if (outer->fragment & bpf_htons(IPV4_FRAGMENT_MASK))
		return SWITCH_FRAGMENT;
	return is_hash_source(outer->source) ? SWITCH_DECAPSULATED : SWITCH_MADE_UP_HEADER;
}

INLINE enum switch_outcome vl2_decapsulate(ctx_t *ctx)
{
	if (ctx_is_tagged(ctx))
		return SWITCH_TAGGED;
	ctx_pull_headers(ctx, SWITCH_HEADERS);
	struct cursor cursor = ctx_cursor(ctx);
	struct eth_header *eth;
	struct ipv4_header *outer, *inner;

	if (!parse_eth(&cursor, &eth))
		return SWITCH_MALFORMED;
	if (eth->type != bpf_htons(ETHERTYPE_IPV4))
		return is_tag(eth->type) ? SWITCH_TAGGED : SWITCH_PASSED;
	if (!parse_ipv4(&cursor, &outer))
		return SWITCH_MALFORMED;
	if (outer->protocol != PROTOCOL_IPIP || !is_own_la(outer->destination))
		return SWITCH_PASSED;

	enum switch_outcome fault = check_outer(ctx, outer);
	if (fault != SWITCH_DECAPSULATED)
		return fault;
	if (!parse_ipv4(&cursor, &inner) || !ipv4_is_consistent(inner) ||
	    host16(inner->total_length) > host16(outer->total_length) - IPV4_LENGTH)
		return SWITCH_MALFORMED;
	fault = combine_ecn(ctx, outer, inner);
	if (fault != SWITCH_DECAPSULATED)
		return fault;
	if (ctx_close_gap(ctx, IPV4_LENGTH))
		return SWITCH_POP_FAILED;
	return SWITCH_DECAPSULATED;
}
