/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/*
 * The hash that chooses among next hops: of the inner packet's addresses and ports, or of the inner frame's addresses and
 * VLAN if it carries no IP, so that a flow keeps its path; and of a seed, so that RBridges in a row do not all choose
 * alike. Alert and color are not part of it (RFC 7780 10), nor is the priority.
 */
#pragma once

#include "hash.h"
#include "trill.h"

struct ipv6_header {
	__be32 version_class_flow;
	__be16 payload_length;
	__u8 next_header;
	__u8 hop_limit;
	__be32 address[8]; /* source, destination */
};

#define HASH_FIRST 0x9e3779b97f4a7c15ULL
#define HASH_SECOND 0xc2b2ae3d27d4eb4fULL
#define HASH_MIX 0xd6e8feb86659fd93ULL
#define PORTS_LENGTH 4 /* of TCP and UDP, at the start of both */

/* What the inner frame has at least where the ports of a plain IPv4 packet are read. */
#define HASH_LENGTH (sizeof(struct inner_header) + IPV4_LENGTH + PORTS_LENGTH)

/* The first word is all that tells flows of different hosts apart, the second those between the same two. */
INLINE __u64 mixed(__u32 seed, __u64 first, __u64 second)
{
	__u64 hash = (first ^ seed) * HASH_FIRST + second * HASH_SECOND;

	hash ^= hash >> 32;
	return hash * HASH_MIX >> 32;
}

INLINE __u64 ipv6_addresses(const struct ipv6_header *ip)
{
	const __u64 *pair = (const void *)ip->address;
	__u64 sum = 0;

	for (int i = 0; i < 4; i++)
		sum = (sum + pair[i]) * HASH_SECOND;
	return sum;
}

/*
 * `macs`: where the inner addresses are, which is not before the rest in a frame without outer header. The caller has
 * checked that HASH_LENGTH bytes are there. Not in line: it is rare, and would take the registers.
 */
static __noinline __u32 hash_uncommon(__u32 seed, const void *inner, const void *end, const void *macs)
{
	const struct inner_header *header = inner;
	const struct ipv6_header *ipv6 = inner + sizeof(*header);
	const struct ipv4_header *ip = inner + sizeof(*header);

	if (inner + HASH_LENGTH > end)
		return 0;
	if (header->type == bpf_htons(ETHERTYPE_IPV4)) /* with options, in pieces, or of a protocol without ports */
		return mixed(seed, *(const __u64 *)((const void *)ip + offsetof(struct ipv4_header, source)), ip->protocol);
	if (header->type == bpf_htons(ETHERTYPE_IPV6) && (const void *)(ipv6 + 1) + PORTS_LENGTH <= end) {
		if (ipv6->next_header == PROTOCOL_UDP || ipv6->next_header == PROTOCOL_TCP)
			return mixed(seed, ipv6_addresses(ipv6), *(const __u32 *)(ipv6 + 1));
		return mixed(seed, ipv6_addresses(ipv6), ipv6->next_header);
	}
	struct mac_pair pair = load_macs(macs);
	return mixed(seed, pair.head, pair.tail | (__u64)(header->control & bpf_htons(VLAN_MASK)) << 32);
}

/* Bytes of a plain packet, as words in memory: IPv4 without options; no fragment, TCP or UDP. */
#define PLAIN_IPV4 (bpf_htons(ETHERTYPE_IPV4) | IPV4_NO_OPTIONS << 16)
#define PLAIN_IPV4_MASK 0x00ffffff
#define PLAIN_PROTOCOL_MASK (0xff000000 | bpf_htons(IPV4_FRAGMENT_MASK))

/* 32 bits. The caller has checked that HASH_LENGTH bytes are there. */
INLINE __u32 trill_hash_apart(__u32 seed, const void *inner, const void *end, const void *macs)
{
	const void *type = inner + offsetof(struct inner_header, type);
	const void *ip = inner + sizeof(struct inner_header);
	__u32 protocol = *(const __u32 *)(ip + offsetof(struct ipv4_header, fragment)) & PLAIN_PROTOCOL_MASK;

	if ((*(const __u32 *)type & PLAIN_IPV4_MASK) == PLAIN_IPV4 &&
	    (protocol == PROTOCOL_TCP << 24 || protocol == PROTOCOL_UDP << 24))
		return mixed(seed, *(const __u64 *)(ip + offsetof(struct ipv4_header, source)),
			     *(const __u32 *)(ip + IPV4_LENGTH));
	return hash_uncommon(seed, inner, end, macs);
}

INLINE __u32 trill_hash(__u32 seed, const void *inner, const void *end)
{
	return trill_hash_apart(seed, inner, end, inner);
}

/* The same for a frame of any length that has an inner header. A very short one has no flow. */
INLINE __u32 trill_hash_of_any(__u32 seed, const void *inner, const void *end)
{
	if (inner + HASH_LENGTH > end)
		return seed;
	return trill_hash(seed, inner, end);
}
