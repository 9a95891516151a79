/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/* The flow hash that VL2 puts into the outer source address (4.2.2); weft-wire's `flow` module is its definition. */
#pragma once

#include "headers.h"

#define HASH_SOURCE_BLOCK 0x64400000 /* 100.64.0.0/10 */
#define HASH_SOURCE_MASK 0x003fffff

/* Source and destination port as one number; 0 for fragments, other protocols and packets that end before them. */
INLINE __u32 flow_ports(const struct ipv4_header *ip, const void *end)
{
	const __be32 *ports = (const void *)ip + ipv4_header_length(ip);

	if (ip->protocol != PROTOCOL_TCP && ip->protocol != PROTOCOL_UDP)
		return 0;
	if (ip->fragment & bpf_htons(IPV4_FRAGMENT_MASK))
		return 0;
	if ((const void *)(ports + 1) > end)
		return 0;
	return bpf_ntohl(*ports);
}

/* `ports`: source and destination port as one number. */
INLINE __u32 flow_hash_with(const struct ipv4_header *ip, __u32 ports)
{
	__u32 destination = bpf_ntohl(ip->destination) * 0x85ebca6bU;
	__u32 hash = bpf_ntohl(ip->source) * 0x9e3779b1U;

	hash ^= destination << 16 | destination >> 16;
	hash ^= ports * 0xc2b2ae35U;
	hash ^= ip->protocol;
	hash ^= hash >> 16;
	hash *= 0x7feb352dU;
	hash ^= hash >> 15;
	hash *= 0x846ca68bU;
	return hash ^ hash >> 16;
}

INLINE __u32 flow_hash(const struct ipv4_header *ip, const void *end)
{
	return flow_hash_with(ip, flow_ports(ip, end));
}

INLINE __be32 hash_source(__u32 hash)
{
	return bpf_htonl(HASH_SOURCE_BLOCK | (hash & HASH_SOURCE_MASK));
}

INLINE int is_hash_source(__be32 source)
{
	return (source & bpf_htonl(~HASH_SOURCE_MASK)) == bpf_htonl(HASH_SOURCE_BLOCK);
}
