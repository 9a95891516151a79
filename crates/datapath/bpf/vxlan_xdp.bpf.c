/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/*
 * The VXLAN tunnel end point at packet rate: known unicast on XDP. For what nearly all frames are no hash is looked up
 * (lib/vxlan_quick.h), for other known unicast one. Everything else (floods, ARP, frames from trunks, unknown peers,
 * checksums that want looking at, whatever must be dropped) goes on to the TC programs behind, untouched and uncounted, so
 * that those things are done in one place. Frames may be of several buffers; their headers are always in the first.
 */
#include "lib/ctx_xdp.h"
#include "lib/vxlan_quick.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#define ADDRESS_FAMILY_INET 2
#define LOOPBACK_IFINDEX 1 /* look-ups as this node itself */

/* Routes and neighbours are asked for again so often, in jiffies. */
#define HOP_LIFETIME 16

/* Asks the kernel for the way to a peer; 0 if it does not know one that ends at an uplink of ours. */
NOINLINE int refresh_hop(struct xdp_md *ctx, struct vtep_hop *hop, __be32 peer, __u32 hash, __u32 tos)
{
	struct bpf_fib_lookup route = {};
	__u32 index = 0;

	if (!hop)
		return 0;
	route.family = ADDRESS_FAMILY_INET;
	route.l4_protocol = PROTOCOL_UDP;
	route.sport = entropy_port(hash);
	route.dport = vtep_config.udp_port;
	route.tot_len = 1; /* asks for the MTU */
	route.ifindex = LOOPBACK_IFINDEX;
	route.tos = tos;
	route.ipv4_src = vtep_config.local;
	route.ipv4_dst = peer;
	if (bpf_fib_lookup(ctx, &route, sizeof(route), 0))
		return 0;
	struct vtep_port *port = port_of(route.ifindex, &index);
	if (!port || !(port->flags & PORT_UPLINK))
		return 0;
	for (int i = 0; i < 6; i++) {
		hop->destination[i] = route.dmac[i];
		hop->source[i] = route.smac[i];
	}
	hop->ethertype = bpf_htons(ETHERTYPE_IPV4);
	hop->mtu = route.mtu_result;
	hop->peer = peer;
	hop->port = index;
	hop->expires = ((__u32)bpf_jiffies64() + HOP_LIFETIME) | 1;
	return 1;
}

/* One that the table may know, from one that may be learned, without a tag. */
INLINE int is_plain_unicast(const struct eth_header *eth)
{
	return !is_group_mac(eth->destination) && !is_no_station(eth->source) && !is_tag(eth->type);
}

/* Where an entry's port is, if it is still that segment's and takes frames from XDP. */
INLINE int port_takes(const struct fdb_entry *entry, __u32 vni)
{
	__u32 index = entry->target >> VTEP_VLAN_BITS;
	struct vtep_port *port = bpf_map_lookup_elem(&vtep_ports, &index);

	return port && segment_of(port, entry->target & VTEP_VLAN_MASK) == vni && port->flags & PORT_XDP;
}

/* Puts a tag of this VLAN behind the Ethernet header of a frame that has none. */
INLINE int push_tag(struct xdp_md *ctx, __u32 vlan)
{
	if (bpf_xdp_adjust_head(ctx, -(int)TAG_LENGTH))
		return 0;
	struct cursor cursor = ctx_cursor(ctx);
	struct eth_header *untagged = cursor.at + TAG_LENGTH;
	struct eth_header *eth = cursor.at;
	struct vlan_tag *tag = (void *)(eth + 1);

	if ((void *)(untagged + 1) > cursor.end)
		return 0;
	struct eth_words words = load_eth(untagged);
	store_eth(eth, words);
	eth->type = bpf_htons(ETHERTYPE_VLAN);
	tag->tci = bpf_htons(vlan);
	tag->type = words.type;
	return 1;
}

/*
 * The segment that all frames of a port are in, 0 if there is none. The kernel keeps the outermost tag beside a frame, where
 * XDP does not see it: where a tag says the segment (trunks) or is carried, TC has to look at every frame.
 */
INLINE __u32 only_segment_of(const struct vtep_port *port)
{
	return port->flags & PORT_NEEDS_TAGS ? 0 : port->vni;
}

/*
 * Length of the frame; the cursor stands behind its Ethernet header. Asks the kernel only if an IPv4 packet is not
 * in the first buffer already; then what may be in other buffers is padding, and nobody's.
 */
INLINE __u32 whole_length(struct xdp_md *ctx, const struct eth_header *eth, struct cursor behind)
{
	__u32 first = behind.end - (void *)eth;
	__u32 before = behind.at - (void *)eth;
	struct ipv4_header *ip;

	if (eth->type == bpf_htons(ETHERTYPE_IPV4) && parse_ipv4(&behind, &ip) &&
	    before + host16(ip->total_length) <= first)
		return first;
	return bpf_xdp_get_buff_len(ctx);
}

/* Not in line, so that the common case has all registers for itself. */
NOINLINE int access_uncommon(struct xdp_md *ctx)
{
	__u32 version = tables_version();
	struct origin from = { .kind = FDB_PORT, .place = ctx->ingress_ifindex, .told = vtep_told };
	struct vtep_port *port = port_of(from.place, &from.index);
	struct cursor cursor = ctx_cursor(ctx);
	struct eth_header *eth;

	if (!port || port->ifindex != from.place || !parse_eth(&cursor, &eth) || !is_plain_unicast(eth))
		return XDP_PASS;
	__u32 vni = only_segment_of(port);
	if (!vni)
		return XDP_PASS;
	from.index = circuit_of(from.index, 0);
	struct fdb_key key = fdb_key_of(vni, eth->destination);
	struct fdb_entry *entry = bpf_map_lookup_elem(&vtep_fdb, &key);
	if (!entry)
		return XDP_PASS;
	if (entry->kind == FDB_PORT) {
		if (entry->target == from.index || !port_takes(entry, vni))
			return XDP_PASS;
		__u32 target = entry->target;

		learn(vni, eth->source, &from);
		__u32 vlan = target & VTEP_VLAN_MASK;
		if (vlan && !push_tag(ctx, vlan))
			return drop(VTEP_PUSH_FAILED);
		count(&vtep_counters, VTEP_SWITCHED);
		return bpf_redirect_map(&vtep_devices, target >> VTEP_VLAN_BITS, 0);
	}

	__u32 peer = entry->target;
	__u32 slot = entry->vni_slot;
	__be32 address = entry->place;
	keep_found(version, vni, mac_at(eth->destination), entry);
	__u32 bytes = whole_length(ctx, eth, cursor);
	struct carried carried = read_carried(eth, eth->type, cursor);
	struct vtep_hop *hop = hop_of(peer, carried.hash);
	if (!hop || (!is_fresh(hop) && !refresh_hop(ctx, hop, address, carried.hash, outer_tos(carried.tos))))
		return XDP_PASS;
	if (bytes + TUNNEL_LENGTH > hop->mtu)
		return XDP_PASS;
	learn(vni, eth->source, &from);
	if (!push(ctx, hop, carried, bytes, vni))
		return drop(VTEP_PUSH_FAILED);
	return send_encapsulated(hop, slot, peer, bytes);
}

SEC("xdp.frags")
int vtep_access_xdp(struct xdp_md *ctx)
{
	int verdict = quick_encapsulate(ctx);

	return verdict == NOT_QUICK ? access_uncommon(ctx) : verdict;
}

/* A datagram that needs no second look: for us, whole, unmarked by anything unusual. */
struct datagram {
	struct ipv4_header *ip;
	struct udp_header *udp;
	struct vxlan_header *vxlan;
	struct eth_header *eth; /* inner */
};

/* The cursor then stands behind the inner Ethernet header. */
INLINE int is_plain_datagram(struct xdp_md *ctx, struct cursor *cursor, __u32 *frame_bytes, struct datagram *d)
{
	__u32 first = cursor->end - cursor->at;
	struct eth_header *outer;

	if (!parse_eth(cursor, &outer) || !parse_ipv4(cursor, &d->ip) || !parse_udp(cursor, &d->udp) ||
	    !parse_vxlan(cursor, &d->vxlan) || !parse_eth(cursor, &d->eth))
		return 0;
	if (outer->type != bpf_htons(ETHERTYPE_IPV4) || d->ip->version_ihl != IPV4_NO_OPTIONS ||
	    d->ip->protocol != PROTOCOL_UDP || d->ip->destination != vtep_config.local ||
	    d->ip->fragment & bpf_htons(IPV4_FRAGMENT_MASK) || !ipv4_checksum_is_right(d->ip))
		return 0;
	__u32 length = host16(d->udp->length);
	if (d->udp->destination != vtep_config.udp_port || d->udp->checksum ||
	    length != host16(d->ip->total_length) - IPV4_LENGTH || !(d->vxlan->flags & bpf_htonl(VXLAN_VNI_FLAG)))
		return 0;
	*frame_bytes = ETH_LENGTH + IPV4_LENGTH + length;
	return *frame_bytes == first || *frame_bytes == bpf_xdp_get_buff_len(ctx);
}

/* Carries the outer congestion mark inwards (RFC 6040 4.2); 0 if the packet must not live. */
INLINE int carry_ecn(__be16 type, struct cursor cursor, __u8 arriving)
{
	struct ipv4_header *ip;
	struct ipv6_header *ip6;

	if (type == bpf_htons(ETHERTYPE_IPV4) && parse_ipv4(&cursor, &ip)) {
		__u8 before = ip->tos;
		int leaving = combined_ecn(arriving & ECN_MASK, before & ECN_MASK);

		if (leaving < 0 || leaving == (before & ECN_MASK))
			return leaving >= 0;
		ip->tos = (before & ~ECN_MASK) | leaving;
		ip->checksum = checksum_after(ip->checksum, bpf_htons(before), bpf_htons(ip->tos));
		return 1;
	}
	if (type == bpf_htons(ETHERTYPE_IPV6) && parse_ipv6(&cursor, &ip6)) {
		__u32 first = bpf_ntohl(ip6->first);
		int leaving = combined_ecn(arriving & ECN_MASK, first >> 20 & ECN_MASK);

		if (leaving >= 0)
			ip6->first = bpf_htonl((first & ~(ECN_MASK << 20)) | leaving << 20);
		return leaving >= 0;
	}
	return 1;
}

NOINLINE int uplink_uncommon(struct xdp_md *ctx)
{
	__u32 version = tables_version();
	struct cursor cursor = ctx_cursor(ctx);
	struct origin from = { .kind = FDB_PEER, .told = vtep_told };
	struct datagram d;
	__u32 frame_bytes = 0;

	if (!is_plain_datagram(ctx, &cursor, &frame_bytes, &d) || !is_plain_unicast(d.eth))
		return XDP_PASS;
	from.place = d.ip->source;
	if (!peer_of(d.ip->source, &from.index))
		return XDP_PASS;
	__u32 vni = bpf_ntohl(d.vxlan->vni) >> 8;
	__u32 index;
	if (!is_seen_from_peer(vni, mac_at(d.eth->source), from.place, &index) && !is_member(vni, from.place))
		return XDP_PASS;
	struct fdb_key key = fdb_key_of(vni, d.eth->destination);
	struct fdb_entry *entry = bpf_map_lookup_elem(&vtep_fdb, &key);
	if (!entry || entry->kind != FDB_PORT || !port_takes(entry, vni))
		return XDP_PASS;
	if (!carry_ecn(d.eth->type, cursor, d.ip->tos))
		return XDP_PASS;
	learn(vni, d.eth->source, &from);
	__u32 slot = entry->vni_slot;
	__u32 target = entry->target;
	__u32 vlan = target & VTEP_VLAN_MASK;
	if (!vlan)
		keep_found(version, vni, mac_at(d.eth->destination), entry);
	__u32 bytes = frame_bytes - OUTER_LENGTH;
	if (bpf_xdp_adjust_head(ctx, OUTER_LENGTH) || (vlan && !push_tag(ctx, vlan)))
		return drop(VTEP_POP_FAILED);
	return send_decapsulated(target, slot, from.index, bytes);
}

SEC("xdp.frags")
int vtep_uplink_xdp(struct xdp_md *ctx)
{
	int verdict = quick_decapsulate(ctx);

	return verdict == NOT_QUICK ? uplink_uncommon(ctx) : verdict;
}
