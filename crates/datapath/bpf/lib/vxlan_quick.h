/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/*
 * What nearly all frames are, without a detour: IPv4 inside, from a station that is where it was, for one that was found
 * before. Nothing is changed unless all of that is so; vxlan_xdp.bpf.c says the same about such frames, and all about the
 * others.
 */
#pragma once

#include "vxlan_headers.h"
#include "vxlan_xdp_maps.h"

#define OUTER_LENGTH (ETH_LENGTH + TUNNEL_LENGTH)
#define NOT_QUICK (-1)

/* A word of a frame at any offset. By way of a pointer without a type, or the compiler would read it in pieces. */
#define WORD(at, offset, type) (*(const type *)((const void *)(at) + (offset)))

/*
 * What the words from its Ethertype on say of a plain packet, as they lie in memory: IPv4 without options; of one length;
 * no fragment, and of one protocol.
 */
#define PLAIN_TYPE_MASK 0x00ffffff
#define PLAIN_TYPE (bpf_htons(ETHERTYPE_IPV4) | IPV4_NO_OPTIONS << 16)
#define PLAIN_LENGTH_MASK 0x0000ffff00000000ULL
#define PLAIN_LENGTH(total) ((__u64)bpf_htons(total) << 32)
#define PLAIN_PROTOCOL_MASK (0xff000000 | bpf_htons(IPV4_FRAGMENT_MASK))
#define PLAIN_PROTOCOL(protocol) ((__u32)(protocol) << 24)

/* `at`: an Ethernet header, with an IPv4 header behind it if its type says so. */
INLINE int is_plain_type(const void *at)
{
	return (WORD(at, 12, __u32) & PLAIN_TYPE_MASK) == PLAIN_TYPE;
}

INLINE __u32 plain_protocol(const void *at)
{
	return WORD(at, 20, __u32) & PLAIN_PROTOCOL_MASK;
}

INLINE int is_fresh(const struct vtep_hop *hop)
{
	return hop->expires == HOP_FOREVER || (hop->expires && (__s32)(hop->expires - (__u32)bpf_jiffies64()) > 0);
}

/* Where the next hop to a peer is kept, for this flow. */
INLINE struct vtep_hop *hop_of(__u32 peer, __u32 hash)
{
	__u32 number = peer * VTEP_HOPS_PER_PEER + (hash >> 16 & (VTEP_HOPS_PER_PEER - 1));

	return bpf_map_lookup_elem(&vtep_hops, &number);
}

/* All outer headers. */
INLINE int push(struct xdp_md *ctx, const struct vtep_hop *hop, struct carried carried, __u32 bytes, __u32 vni)
{
	if (bpf_xdp_adjust_head(ctx, -(__s32)OUTER_LENGTH))
		return 0;
	struct cursor cursor = frame_of(ctx);
	struct eth_header *outer = cursor.at;

	if (cursor.at + OUTER_LENGTH > cursor.end)
		return 0;
	store_macs(outer, load_macs(hop));
	outer->type = hop->ethertype;
	write_tunnel(outer + 1, carried, bytes, vni, hop->peer);
	return 1;
}

INLINE int drop(enum vtep_outcome outcome)
{
	count(&vtep_counters, outcome);
	return XDP_DROP;
}

INLINE int send_encapsulated(const struct vtep_hop *hop, __u32 slot, __u32 peer, __u32 bytes)
{
	count(&vtep_counters, VTEP_ENCAPSULATED);
	count_sent(&vtep_vni_traffic, slot, bytes);
	count_sent(&vtep_peer_traffic, peer, bytes);
	return bpf_redirect_map(&vtep_devices, hop->port, 0);
}

/* The port of an interface that has a slot and one VNI for all frames (only_segment_of in vxlan_xdp.bpf.c). */
INLINE const struct vtep_port *quick_port(__u32 ifindex)
{
	__u32 number = ifindex & (VTEP_PORT_SLOTS - 1);
	const struct vtep_port *port = bpf_map_lookup_elem(&vtep_port_slots, &number);

	return port && port->ifindex == ifindex && port->vni && !(port->flags & PORT_NEEDS_TAGS) ? port : NULL;
}

/* Whether all of a TCP or UDP packet with its ports is in the first buffer, which ends there; then what may be in others is
 * padding, and nobody's. */
INLINE int is_quick_frame(const void *start, const void *end)
{
	const struct ipv4_header *ip = start + ETH_LENGTH;
	__u32 protocol = plain_protocol(start);

	return is_plain_type(start) && start + ETH_LENGTH + host16(ip->total_length) <= end &&
	       (protocol == PLAIN_PROTOCOL(PROTOCOL_TCP) || protocol == PLAIN_PROTOCOL(PROTOCOL_UDP));
}

INLINE int quick_encapsulate(struct xdp_md *ctx)
{
	const struct vtep_port *port = quick_port(ctx->ingress_ifindex);
	struct cursor cursor = frame_of(ctx);
	struct ipv4_header *ip = cursor.at + ETH_LENGTH;
	__be32 *ports = (void *)(ip + 1);
	__u64 target;

	if (!port || (void *)(ports + 1) > cursor.end || !is_quick_frame(cursor.at, cursor.end))
		return NOT_QUICK;
	struct mac_pair macs = load_macs(cursor.at);
	__u32 vni = port->vni;
	if (!is_seen_at_port(vni, source_of(macs), circuit_of(port->index, 0)) ||
	    !find_again(vni, destination_of(macs), FDB_PEER, &target))
		return NOT_QUICK;
	struct carried carried = { flow_hash_with(ip, bpf_ntohl(*ports)), ip->tos };
	__u32 bytes = cursor.end - cursor.at;
	struct vtep_hop *hop = hop_of(target, carried.hash);
	if (!hop || !is_fresh(hop) || bytes + TUNNEL_LENGTH > hop->mtu)
		return NOT_QUICK;
	if (!push(ctx, hop, carried, bytes, vni))
		return drop(VTEP_PUSH_FAILED);
	return send_encapsulated(hop, target >> 32, target, bytes);
}

INLINE int send_decapsulated(__u32 circuit, __u32 slot, __u32 peer, __u32 bytes)
{
	count(&vtep_counters, VTEP_DECAPSULATED);
	count_received(&vtep_vni_traffic, slot, bytes);
	count_received(&vtep_peer_traffic, peer, bytes);
	return bpf_redirect_map(&vtep_devices, circuit >> VTEP_VLAN_BITS, 0);
}

/* Whether it is a datagram for us, all of it and nothing else in the first buffer, without anything that wants a look. */
INLINE int is_quick_datagram(const void *start, __u32 bytes)
{
	__u64 ports = (__u64)vtep_config.udp_port << 16 | PLAIN_LENGTH(bytes - ETH_LENGTH - IPV4_LENGTH);

	return is_plain_type(start) &&
	       (WORD(start, 12, __u64) & PLAIN_LENGTH_MASK) == PLAIN_LENGTH(bytes - ETH_LENGTH) &&
	       plain_protocol(start) == PLAIN_PROTOCOL(PROTOCOL_UDP) && WORD(start, 30, __u32) == vtep_config.local &&
	       (WORD(start, 34, __u64) & ~0xffffULL) == ports && /* any source port, and no checksum */
	       WORD(start, 42, __u32) & bpf_htonl(VXLAN_VNI_FLAG) && ipv4_checksum_is_right(start + ETH_LENGTH);
}

/* Whether there is no congestion mark that the packet inside has not got already (RFC 6040 4.2, figure 4). */
INLINE int needs_no_mark(const struct ipv4_header *outer, const struct ipv4_header *inner)
{
	return !(outer->tos & ECN_MASK) || !((outer->tos ^ inner->tos) & ECN_MASK);
}

INLINE int quick_decapsulate(struct xdp_md *ctx)
{
	struct cursor cursor = frame_of(ctx);
	struct ipv4_header *outer = cursor.at + ETH_LENGTH;
	struct vxlan_header *vxlan = (void *)(outer + 1) + UDP_LENGTH;
	void *eth = vxlan + 1;
	struct ipv4_header *inner = eth + ETH_LENGTH;
	__u32 bytes = cursor.end - cursor.at;
	__u64 target;
	__u32 peer;

	if ((void *)(inner + 1) > cursor.end || !is_quick_datagram(cursor.at, bytes) || !is_plain_type(eth) ||
	    !needs_no_mark(outer, inner))
		return NOT_QUICK;
	struct mac_pair macs = load_macs(eth);
	__u32 vni = bpf_ntohl(vxlan->vni) >> 8;
	if (!is_seen_from_peer(vni, source_of(macs), outer->source, &peer) ||
	    !find_again(vni, destination_of(macs), FDB_PORT, &target))
		return NOT_QUICK;
	if (bpf_xdp_adjust_head(ctx, OUTER_LENGTH))
		return drop(VTEP_POP_FAILED);
	return send_decapsulated(target, target >> 32, peer, bytes - OUTER_LENGTH);
}
