/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/*
 * The headers of VXLAN (RFC 7348 5) and what they take over from the frame inside: entropy (4.2), DSCP and ECN
 * (RFC 6040).
 *
 *	0 Ethernet (14)   14 IPv4 (20)   34 UDP (8)   42 VXLAN (8)   50 inner Ethernet (14, 18 with a tag)
 */
#pragma once

#include "hash.h"
#include "vxlan_table.h"

#define ETHERTYPE_IPV6 0x86dd

#define VXLAN_LENGTH 8
#define IPV6_LENGTH 40
#define TAG_LENGTH 4
#define TUNNEL_LENGTH (IPV4_LENGTH + UDP_LENGTH + VXLAN_LENGTH) /* between outer and inner Ethernet header */
#define VXLAN_VNI_FLAG 0x08000000 /* "I", in the first word */
#define ENTROPY_PORTS 0xc000	  /* 49152 to 65535 (RFC 7348 5) */

struct vxlan_header {
	__be32 flags;
	__be32 vni; /* in the upper 24 bits */
};

struct vlan_tag { /* behind the Ethernet header, whose type says that it is there */
	__be16 tci; /* priority 3, drop eligible 1, VLAN ID 12 bits */
	__be16 type;
};

struct ipv6_header {
	__be32 first; /* version 4, traffic class 8, flow label 20 bits */
	__be16 payload_length;
	__u8 next;
	__u8 hops;
	__be32 source[4];
	__be32 destination[4];
};

PARSER(parse_vxlan, vxlan_header)
PARSER(parse_ipv6, ipv6_header)
PARSER(parse_tag, vlan_tag)

/* What the outer headers take over. */
struct carried {
	__u32 hash;
	__u8 tos;
};

/* Of the addresses alone, mixed like the hash of IPv4 flows. */
INLINE __u32 mac_hash(const struct eth_header *eth)
{
	__u32 hash = *(const __u32 *)eth->destination * 0x85ebca6bU ^ *(const __u32 *)(eth->source + 2) * 0x9e3779b1U;

	hash ^= *(const __u16 *)(eth->destination + 4) << 16 | *(const __u16 *)eth->source;
	hash ^= hash >> 16;
	hash *= 0x7feb352dU;
	return hash ^ hash >> 15;
}

INLINE __u32 ipv6_flow_hash(const struct ipv6_header *ip, const void *end)
{
	const __be32 *ports = (const void *)(ip + 1);
	__u32 hash = bpf_ntohl(ip->first) & 0xfffff;

#pragma unroll
	for (int word = 0; word < 4; word++) {
		hash ^= bpf_ntohl(ip->source[word]) * 0x9e3779b1U;
		hash = hash << 7 | hash >> 25;
		hash ^= bpf_ntohl(ip->destination[word]) * 0x85ebca6bU;
	}
	if ((ip->next == PROTOCOL_TCP || ip->next == PROTOCOL_UDP) && (const void *)(ports + 1) <= end)
		hash ^= bpf_ntohl(*ports) * 0xc2b2ae35U;
	hash ^= hash >> 16;
	hash *= 0x7feb352dU;
	hash ^= hash >> 15;
	hash *= 0x846ca68bU;
	return hash ^ hash >> 16;
}

/* The cursor stands behind the inner Ethernet header, whose type it is. */
INLINE struct carried read_carried(const struct eth_header *eth, __be16 type, struct cursor cursor)
{
	struct carried carried = {};
	struct ipv4_header *ip;
	struct ipv6_header *ip6;

	if (type == bpf_htons(ETHERTYPE_IPV4) && parse_ipv4(&cursor, &ip)) {
		carried.hash = flow_hash(ip, cursor.end);
		carried.tos = ip->tos;
	} else if (type == bpf_htons(ETHERTYPE_IPV6) && parse_ipv6(&cursor, &ip6)) {
		carried.hash = ipv6_flow_hash(ip6, cursor.end);
		carried.tos = bpf_ntohl(ip6->first) >> 20;
	} else {
		carried.hash = mac_hash(eth);
	}
	return carried;
}

/* RFC 6040 4.1, normal mode: ECN is always the inner packet's; DSCP as configured (RFC 2983). */
INLINE __u8 outer_tos(__u8 inner_tos)
{
	__u8 dscp = vtep_config.dscp;

	return dscp == VTEP_DSCP_COPY ? inner_tos : (dscp | (inner_tos & ECN_MASK));
}

INLINE __be16 entropy_port(__u32 hash)
{
	return bpf_htons(ENTROPY_PORTS | (hash & ~ENTROPY_PORTS & 0xffff));
}

/* Made in registers: reading back words that were just written in smaller pieces would stall. */
INLINE void write_outer_ip(struct ipv4_header *ip, __u8 tos, __u32 total_length, __be32 destination)
{
	__be32 source = vtep_config.local;
	__be32 first = bpf_htonl(IPV4_NO_OPTIONS << 24 | tos << 16 | (total_length & 0xffff));
	__be32 id_and_fragment = bpf_htonl(IPV4_DF);
	__be16 ttl_and_protocol = bpf_htons(vtep_config.ttl << 8 | PROTOCOL_UDP);
	__u64 sum = (__u64)first + id_and_fragment + ttl_and_protocol + source + destination;
	__be32 *words = (void *)ip;

	words[0] = first;
	words[1] = id_and_fragment;
	*(__be16 *)&ip->ttl = ttl_and_protocol;
	ip->checksum = ~fold_sum(sum);
	ip->source = source;
	ip->destination = destination;
}

/* `inner_bytes`: of the inner frame with its Ethernet header; of a super frame, all of it. */
INLINE void write_tunnel(void *at, struct carried carried, __u32 inner_bytes, __u32 vni, __be32 destination)
{
	struct ipv4_header *ip = at;
	__be32 *udp = at + IPV4_LENGTH;
	__be16 ports[2] = { entropy_port(carried.hash), vtep_config.udp_port };

	write_outer_ip(ip, outer_tos(carried.tos), inner_bytes + TUNNEL_LENGTH, destination);
	udp[0] = (__u32)ports[1] << 16 | ports[0];
	/* The checksum is zero (RFC 7348 5): the inner packet has its own. */
	udp[1] = bpf_htonl((inner_bytes + UDP_LENGTH + VXLAN_LENGTH) << 16);
	udp[2] = bpf_htonl(VXLAN_VNI_FLAG);
	udp[3] = bpf_htonl(vni << 8);
}
