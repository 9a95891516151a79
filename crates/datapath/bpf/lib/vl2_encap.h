/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/*
 * VL2 encapsulation (4.2.1, 4.2.2), for whichever hook defined ctx_t before: an IPv4 packet to an AA gets one header
 * towards its ToR and, in front of that, one towards the anycast LA of the Intermediates. Both carry the flow hash as
 * their source address. The hook says by ctx_salt what the hash is changed by.
 */
#pragma once

#include "hash.h"
#include "outcome.h"

#define OUTER_TTL 64
#define TCP_LENGTH 20 /* its fixed part */
#define IPV4_LENGTH_MAX 60

/* Set before load; as read-only data the verifier folds it into the program. */
const volatile struct host_constants host_config SEC(".rodata.host");

#include "vl2_limit.h"

/* Bounded: the least recently used mapping makes room. Size set before load. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, __be32);
	__type(value, struct aa_mapping);
} aa_map SEC(".maps");

COUNTERS(host_counters, HOST_OUTCOME_COUNT);

/* What the outer headers need to know of the packet inside. */
struct inner {
	__u32 length;         /* bytes from the IPv4 header on; of a super frame, all of it */
	__u32 segment_length; /* bytes of the largest packet on the wire; equal unless GSO */
	__u32 hash;
	__u8 tos;
};

/* Read as volatile: the compiler must not take the value at compile time, which is zero, for the one set before load. */
INLINE void write_gateway_mac(__u8 *to)
{
	const volatile __u8 *mac = host_config.gateway_mac;

	*(__u32 *)to = *(const volatile __u32 *)mac;
	*(__u16 *)(to + 4) = *(const volatile __u16 *)(mac + 4);
}

INLINE int is_aa(__be32 address)
{
	return (address & host_config.aa_mask) == host_config.aa_network;
}

/* An address of the AA block that means all hosts of it. */
INLINE int is_everybody(__be32 address)
{
	__be32 mask = host_config.aa_mask;
	__be32 host_bits = address & ~mask;

	return is_aa(address) && (host_bits == 0 || host_bits == ~mask);
}

/*
 * HOST_ENCAPSULATED: it is for one AA. For everybody in the block is what goes to its network or broadcast address and,
 * from an AA, any broadcast or multicast.
 */
INLINE enum host_outcome aa_traffic(const struct ipv4_header *ip)
{
	if (is_aa(ip->destination))
		return is_everybody(ip->destination) ? HOST_BROADCAST_UNSUPPORTED : HOST_ENCAPSULATED;
	return is_aa(ip->source) && is_multicast_or_broadcast(ip->destination) ? HOST_BROADCAST_UNSUPPORTED : HOST_PASSED;
}

/* Length of one packet of a super frame: its headers and one segment of payload. */
INLINE __u32 segment_length(const struct ipv4_header *ip, const void *end, __u32 payload)
{
	__u32 header_length = ipv4_header_length(ip);
	const __u8 *transport = (const void *)ip + header_length;

	if (ip->protocol == PROTOCOL_TCP && (const void *)(transport + 20) <= end)
		return header_length + (transport[12] >> 4) * 4 + payload;
	return header_length + 8 + payload;
}

/* Reads and checks the packet; 0 if its lengths contradict each other or the frame. */
INLINE int read_inner(ctx_t *ctx, const struct ipv4_header *ip, const void *end, struct inner *inner)
{
	__u32 payload = ctx_segment_payload(ctx);

	if (payload) {
		inner->length = ctx_super_length(ctx) - ETH_LENGTH;
		inner->segment_length = segment_length(ip, end, payload);
	} else {
		inner->length = host16(ip->total_length);
		inner->segment_length = inner->length;
		if (!ipv4_is_consistent(ip) || !ctx_holds(ctx, ETH_LENGTH + inner->length))
			return 0;
	}
	inner->hash = flow_hash(ip, end);
	inner->tos = ip->tos;
	return 1;
}

INLINE int exceeds_mtu(const struct inner *inner)
{
	return inner->segment_length + 2 * IPV4_LENGTH > host_config.underlay_mtu ||
	       inner->length + 2 * IPV4_LENGTH > 0xffff;
}

/*
 * RFC 2003, with the type of service copied so that congestion marks work (RFC 6040 4.1, normal mode). The sum is made
 * from registers: reading back words that were just written in smaller pieces would stall.
 */
INLINE void write_outer_from(struct ipv4_header *outer, __be32 source, __u8 tos, __be32 destination, __u32 total_length)
{
	__be32 first = bpf_htonl(IPV4_NO_OPTIONS << 24 | tos << 16 | (total_length & 0xffff));
	__be32 id_and_fragment = bpf_htonl(IPV4_DF);
	__be16 ttl_and_protocol = bpf_htons(OUTER_TTL << 8 | PROTOCOL_IPIP);
	__u64 sum = (__u64)source + id_and_fragment + ttl_and_protocol + first + destination;
	__be32 *words = (void *)outer;

	words[0] = first;
	words[1] = id_and_fragment;
	*(__be16 *)&outer->ttl = ttl_and_protocol;
	outer->checksum = ~fold_sum(sum);
	outer->source = source;
	outer->destination = destination;
}

/* Of unicast: the flow hash is its source. */
INLINE void write_outer(struct ipv4_header *outer, const struct inner *inner, __be32 destination, __u32 total_length)
{
	write_outer_from(outer, hash_source(inner->hash), inner->tos, destination, total_length);
}

INLINE enum host_outcome push_one(ctx_t *ctx, const struct inner *inner, __be32 tor_la)
{
	struct cursor cursor;
	struct eth_header *eth;
	struct ipv4_header *to_tor;

	if (ctx_open_gap(ctx, IPV4_LENGTH, &cursor) || !parse_eth(&cursor, &eth) || !parse_ipv4(&cursor, &to_tor))
		return HOST_PUSH_FAILED;
	write_gateway_mac(eth->destination);
	write_outer(to_tor, inner, tor_la, inner->length + IPV4_LENGTH);
	return HOST_RACK_DIRECT;
}

INLINE enum host_outcome push_both(ctx_t *ctx, const struct inner *inner, __be32 tor_la, __be32 anycast_la)
{
	struct cursor cursor;
	struct eth_header *eth;
	struct ipv4_header *to_intermediate, *to_tor;

	if (ctx_open_gap(ctx, 2 * IPV4_LENGTH, &cursor) || !parse_eth(&cursor, &eth) || !parse_ipv4(&cursor, &to_intermediate) || !parse_ipv4(&cursor, &to_tor))
		return HOST_PUSH_FAILED;
	write_gateway_mac(eth->destination);
	write_outer(to_tor, inner, tor_la, inner->length + IPV4_LENGTH);
	write_outer(to_intermediate, inner, anycast_la, inner->length + 2 * IPV4_LENGTH);
	return HOST_ENCAPSULATED;
}

/* An untagged frame of EtherType IPv4; the cursor stands behind its Ethernet header. */
INLINE enum host_outcome vl2_encapsulate(ctx_t *ctx, struct cursor cursor)
{
	struct inner inner;
	struct ipv4_header *ip;

	if (!parse_ipv4(&cursor, &ip))
		return HOST_MALFORMED;
	enum host_outcome outcome = aa_traffic(ip);
	if (outcome != HOST_ENCAPSULATED)
		return outcome;
	if (!read_inner(ctx, ip, cursor.end, &inner))
		return HOST_MALFORMED;

	__be32 aa = ip->destination;
	struct aa_mapping *mapping = bpf_map_lookup_elem(&aa_map, &aa);
	if (!mapping)
		return ctx_is_from_agent(ctx) ? HOST_NO_MAPPING : HOST_PACKET_MISS;
	if (mapping->flags & MAPPING_REFUSED)
		return HOST_REFUSED;
	if (exceeds_mtu(&inner))
		return HOST_MTU_EXCEEDED;
	if (!limit_allows(ctx_frame_bytes(ctx), ip->protocol))
		return HOST_RATE_LIMITED;
	inner.hash ^= ctx_salt(ip, cursor.end, inner.length);
	if (host_config.rack_direct && mapping->tor_la == host_config.own_tor_la)
		return push_one(ctx, &inner, mapping->tor_la);
	return push_both(ctx, &inner, mapping->tor_la, mapping->anycast_la);
}
