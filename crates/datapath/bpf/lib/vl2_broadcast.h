/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/*
 * Broadcast and multicast of a host (VL2 4.2.3), on their way out: within a rate they get one outer header, from the
 * host's LA to the multicast group of its service in the underlay, or to each host of the service where the underlay
 * has no groups. What a service sends does not leave it, not even what is multicast to a link-local group.
 */
#pragma once

#include "vl2_encap.h"

#define DHCP_PORTS (68 << 16 | 67) /* from a client to a server */

/* Set before load. */
const volatile struct broadcast_constants broadcast_config SEC(".rodata.broadcast");

/* LAs of the service's other hosts. Size set before load. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, __be32);
	__type(value, __u32);
} broadcast_members SEC(".maps");

/*
 * The kernel reports the memberships of the host, among them that of the underlay group, from the first address of the
 * interface. The ToR knows it by its LA. IGMP's own checksum does not cover the address (RFC 3376 4.1.2).
 */
INLINE enum host_outcome report_membership(ctx_t *ctx, struct ipv4_header *ip)
{
	__be32 la = broadcast_config.la;
	__be32 before = ip->source;

	if (broadcast_config.delivery != BROADCAST_TO_GROUP)
		return HOST_IGMP_DROPPED;
	__u16 checksum = checksum_after(ip->checksum, before, la);
	checksum = checksum_after(checksum, before >> 16, la >> 16);
	if (bpf_skb_store_bytes(ctx, ETH_LENGTH + offsetof(struct ipv4_header, source), &la, sizeof(la), 0) ||
	    bpf_skb_store_bytes(ctx, ETH_LENGTH + offsetof(struct ipv4_header, checksum), &checksum, sizeof(checksum), 0))
		return HOST_PUSH_FAILED;
	return HOST_IGMP_PASSED;
}

/* RFC 1112 6.4: the low 23 bits of the group. */
INLINE void write_group_mac(__u8 *to, __be32 group)
{
	__u32 low = bpf_ntohl(group) & 0x7fffff;

	to[0] = 0x01;
	to[1] = 0x00;
	to[2] = 0x5e;
	to[3] = low >> 16;
	to[4] = low >> 8;
	to[5] = low;
}

INLINE enum host_outcome send_to_group(ctx_t *ctx, const struct inner *inner)
{
	struct cursor cursor;
	struct eth_header *eth;
	struct ipv4_header *outer;
	__be32 group = broadcast_config.group;

	if (ctx_open_gap(ctx, IPV4_LENGTH, &cursor) || !parse_eth(&cursor, &eth) || !parse_ipv4(&cursor, &outer))
		return HOST_PUSH_FAILED;
	write_group_mac(eth->destination, group);
	write_outer_from(outer, broadcast_config.la, inner->tos, group, inner->length + IPV4_LENGTH);
	return HOST_BROADCAST_SENT;
}

/* A walk over the members. */
struct copies {
	ctx_t *ctx;
	const struct inner *inner;
	__u32 left;
	__u32 failed;
};

/* The last one's copy is the frame itself, which goes on from here. */
static long copy_to_member(void *map, __be32 *member, __u32 *value, struct copies *copies)
{
	struct ipv4_header outer;
	const struct inner *inner = copies->inner;

	write_outer_from(&outer, broadcast_config.la, inner->tos, *member, inner->length + IPV4_LENGTH);
	copies->failed = bpf_skb_store_bytes(copies->ctx, ETH_LENGTH, &outer, sizeof(outer), 0) != 0;
	if (--copies->left && (copies->failed || bpf_clone_redirect(copies->ctx, copies->ctx->ifindex, 0)))
		count(&host_counters, HOST_COPY_FAILED);
	return 0;
}

INLINE enum host_outcome send_copies(ctx_t *ctx, const struct inner *inner)
{
	struct copies copies = { .ctx = ctx, .inner = inner, .left = broadcast_config.members };
	struct cursor cursor;
	struct eth_header *eth;

	if (ctx_open_gap(ctx, IPV4_LENGTH, &cursor) || !parse_eth(&cursor, &eth))
		return HOST_PUSH_FAILED;
	write_gateway_mac(eth->destination);
	bpf_for_each_map_elem(&broadcast_members, copy_to_member, &copies, 0);
	return copies.failed || copies.left ? HOST_PUSH_FAILED : HOST_BROADCAST_COPIED;
}

/*
 * What a DHCP client that has an address broadcasts when its server does not answer (RFC 2131 4.4.5): the relay is at the
 * ToR. Without an address it is no AA's packet anyway.
 */
INLINE int is_for_relay(const struct ipv4_header *ip, const void *end)
{
	return ip->protocol == PROTOCOL_UDP && ip->destination == 0xffffffff && flow_ports(ip, end) == DHCP_PORTS;
}

/* An untagged frame of EtherType IPv4 for everybody; the cursor stands behind its Ethernet header. */
INLINE enum host_outcome vl2_broadcast(ctx_t *ctx, struct cursor cursor)
{
	struct inner inner;
	struct ipv4_header *ip;

	if (!parse_ipv4(&cursor, &ip))
		return HOST_MALFORMED;
	if (is_for_relay(ip, cursor.end))
		return HOST_DHCP_PASSED;
	if (broadcast_config.delivery == BROADCAST_TO_NOBODY)
		return HOST_BROADCAST_UNSUPPORTED;
	if (ip->source != broadcast_config.aa)
		return HOST_BROADCAST_FOREIGN;
	if (ip->protocol == PROTOCOL_IGMP)
		return report_membership(ctx, ip);
	if (!read_inner(ctx, ip, cursor.end, &inner))
		return HOST_MALFORMED;
	if (inner.segment_length + IPV4_LENGTH > broadcast_config.mtu || inner.length + IPV4_LENGTH > 0xffff)
		return HOST_BROADCAST_TOO_BIG;
	if (!broadcast_config.members)
		return HOST_BROADCAST_ALONE;
	if (!bucket_allows(LIMIT_OF_BROADCAST, ctx_frame_bytes(ctx), broadcast_config.limit_ps_per_byte,
			   broadcast_config.limit_burst_ns))
		return HOST_BROADCAST_LIMITED;
	return broadcast_config.delivery == BROADCAST_TO_GROUP ? send_to_group(ctx, &inner) : send_copies(ctx, &inner);
}
