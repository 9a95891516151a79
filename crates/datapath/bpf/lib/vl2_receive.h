/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/*
 * Broadcast and multicast of a host's service (VL2 4.2.3), on their way in: a packet for the service's group or a
 * copy, from a host of the service, loses its outer header, and the stack gets the frame that an ordinary Ethernet would have
 * carried. Unicast is not touched.
 */
#pragma once

#include "ecn.h"
#include "vl2_broadcast.h"

#define RECEIVE_HEADERS (ETH_LENGTH + 2 * IPV4_LENGTH)

/* Types of a frame, as the kernel counts them (linux/if_packet.h). */
#define TYPE_BROADCAST 1
#define TYPE_MULTICAST 2

COUNTERS(receive_counters, RECEIVE_OUTCOME_COUNT);

/* RECEIVE_DELIVERED: it is for us. */
INLINE enum receive_outcome outer_destination(const struct ipv4_header *outer)
{
	if (outer->protocol != PROTOCOL_IPIP)
		return RECEIVE_PASSED;
	__be32 ours = broadcast_config.delivery == BROADCAST_TO_GROUP ? broadcast_config.group : broadcast_config.la;

	if (outer->destination == ours)
		return RECEIVE_DELIVERED;
	return is_multicast_or_broadcast(outer->destination) ? RECEIVE_OTHER_GROUP : RECEIVE_PASSED;
}

INLINE enum receive_outcome outer_source(__be32 source)
{
	if (source == broadcast_config.la)
		return RECEIVE_LOOPED;
	if ((source & broadcast_config.la_mask) != broadcast_config.la_network)
		return RECEIVE_FOREIGN_SOURCE;
	return bpf_map_lookup_elem(&broadcast_members, &source) ? RECEIVE_DELIVERED : RECEIVE_NOT_A_MEMBER;
}

INLINE enum receive_outcome outer_form(ctx_t *ctx, const struct ipv4_header *outer)
{
	__u32 total_length = host16(outer->total_length);

	if (outer->version_ihl != IPV4_NO_OPTIONS || total_length < 2 * IPV4_LENGTH ||
	    !ctx_holds(ctx, ETH_LENGTH + total_length))
		return RECEIVE_MALFORMED;
	if (!ipv4_checksum_is_right(outer))
		return RECEIVE_BAD_CHECKSUM;
	return outer->fragment & bpf_htons(IPV4_FRAGMENT_MASK) ? RECEIVE_FRAGMENT : RECEIVE_DELIVERED;
}

INLINE enum receive_outcome inner_addresses(const struct ipv4_header *inner)
{
	if (inner->source == broadcast_config.aa)
		return RECEIVE_LOOPED;
	if (!is_aa(inner->source) || is_everybody(inner->source))
		return RECEIVE_BAD_INNER_SOURCE;
	if (!is_multicast_or_broadcast(inner->destination) && !is_everybody(inner->destination))
		return RECEIVE_NOT_BROADCAST;
	return RECEIVE_DELIVERED;
}

/* The frame's destination as RFC 1112 6.4 and RFC 894 say, and its type, which the card took from the old one. */
INLINE int address_frame(ctx_t *ctx, __be32 destination)
{
	__u8 mac[6] = { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff };
	__u32 type = TYPE_BROADCAST;

	if (destination != 0xffffffff && is_multicast_or_broadcast(destination)) {
		write_group_mac(mac, destination);
		type = TYPE_MULTICAST;
	}
	return bpf_skb_store_bytes(ctx, 0, mac, sizeof(mac), 0) || bpf_skb_change_type(ctx, type);
}

INLINE enum receive_outcome strip(ctx_t *ctx, const struct ipv4_header *outer, struct ipv4_header *inner)
{
	__be32 destination = inner->destination;
	__u8 ecn = inner->tos & ECN_MASK;
	int leaving = combined_ecn(outer->tos & ECN_MASK, ecn);

	if (leaving < 0)
		return RECEIVE_CE_ON_NOT_ECT;
	if (leaving != ecn && store_ecn(ctx, inner, leaving))
		return RECEIVE_POP_FAILED;
	if (ctx_close_gap(ctx, IPV4_LENGTH) || address_frame(ctx, destination))
		return RECEIVE_POP_FAILED;
	return RECEIVE_DELIVERED;
}

INLINE enum receive_outcome vl2_receive(ctx_t *ctx)
{
	enum receive_outcome outcome;
	struct eth_header *eth;
	struct ipv4_header *outer, *inner;

	if (ctx_is_tagged(ctx))
		return RECEIVE_TAGGED;
	ctx_pull_headers(ctx, RECEIVE_HEADERS);
	struct cursor cursor = ctx_cursor(ctx);
	if (!parse_eth(&cursor, &eth))
		return RECEIVE_PASSED;
	if (is_tag(eth->type))
		return RECEIVE_TAGGED;
	if (eth->type != bpf_htons(ETHERTYPE_IPV4) || !parse_ipv4(&cursor, &outer))
		return RECEIVE_PASSED;
	outcome = outer_destination(outer);
	if (outcome != RECEIVE_DELIVERED)
		return outcome;
	outcome = outer_form(ctx, outer);
	if (outcome != RECEIVE_DELIVERED)
		return outcome;
	outcome = outer_source(outer->source);
	if (outcome != RECEIVE_DELIVERED)
		return outcome;
	if (!parse_ipv4(&cursor, &inner) || !ipv4_is_consistent(inner) ||
	    host16(inner->total_length) > host16(outer->total_length) - IPV4_LENGTH)
		return RECEIVE_MALFORMED;
	outcome = inner_addresses(inner);
	return outcome == RECEIVE_DELIVERED ? strip(ctx, outer, inner) : outcome;
}
