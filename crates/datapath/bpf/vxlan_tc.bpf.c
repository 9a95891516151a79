/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/*
 * The VXLAN tunnel end point on TC ingress (RFC 7348): frames of access ports go to ports of their segment or, inside
 * UDP, to the VTEP that their destination is behind; VXLAN datagrams for us, at uplinks, the other way. A frame's segment
 * is its port's, at a trunk its VLAN's, or its header's, and nothing else's.
 */
#include "lib/ctx_tc.h"
#include "lib/vxlan_tc_receive.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* What was told last, by a hash of it, and when: it is not told again at once. Something else may be. */
#define TOLD_SLOTS_LOG2 10
#define TOLD_INTERVAL_NS 100000000ULL

struct told {
	__u64 what;
	__u64 at_ns;
};

struct told told[1 << TOLD_SLOTS_LOG2];

/* `slot`: of the segment, which pays for the message. */
NOINLINE int tell_miss(struct vtep_upcall *message, __u32 slot)
{
	__u32 hash = (*(__u32 *)message->destination ^ *(__u16 *)(message->destination + 4) << 16) * 0x9e3779b1U ^ message->destination_ip * 0x85ebca6bU ^
		     message->vni * 0xc2b2ae35U ^ message->kind * 0x846ca68bU;
	__u64 what = (__u64)message->vni << 32 | hash;
	struct told *last = &told[hash >> (32 - TOLD_SLOTS_LOG2)];
	__u64 now = bpf_ktime_get_ns();

	if ((last->what == what && now - last->at_ns < TOLD_INTERVAL_NS) || !may_tell(slot, 1))
		return 0;
	last->what = what;
	last->at_ns = now;
	send_upcall(message);
	return 0;
}

/* When a VTEP that is no peer was last told of, by a hash of it: so many messages an interval, whoever sends. */
#define STRANGER_SLOTS_LOG2 6
#define STRANGER_INTERVAL_NS 1000000000ULL
__u64 stranger_at_ns[1 << STRANGER_SLOTS_LOG2];

NOINLINE int tell_stranger(__u32 vni, __be32 peer)
{
	struct vtep_upcall message = { .kind = UPCALL_UNKNOWN_PEER, .vni = vni, .peer = peer };
	__u64 *last = &stranger_at_ns[peer * 0x7feb352dU >> (32 - STRANGER_SLOTS_LOG2)];
	__u64 now = bpf_ktime_get_ns();

	if (*last && now - *last < STRANGER_INTERVAL_NS)
		return 0;
	*last = now;
	send_upcall(&message);
	return 0;
}

/* Makes the headers readable that the hash needs, and not a byte more: see vl2_host.bpf.c. */
INLINE void pull_inner_headers(ctx_t *ctx)
{
	ctx_pull_headers(ctx, ETH_LENGTH + IPV4_LENGTH + TCP_LENGTH);
	if (ctx->protocol == bpf_htons(ETHERTYPE_IPV6))
		ctx_pull_headers(ctx, ETH_LENGTH + IPV6_LENGTH + TCP_LENGTH);
}

INLINE int is_arp_request(const struct eth_header *eth, const struct arp_header *arp)
{
	return is_broadcast_mac(eth->destination) && arp->hardware == bpf_htons(ARP_ETHERNET) &&
	       arp->protocol == bpf_htons(ETHERTYPE_IPV4) && arp->hardware_length == 6 && arp->protocol_length == 4 &&
	       arp->operation == bpf_htons(ARP_REQUEST);
}

/* Turns the request into the answer. */
INLINE void write_arp_reply(struct eth_header *eth, struct arp_header *arp, const __u8 *mac)
{
	__be32 asked = arp->target_ip;

	arp->operation = bpf_htons(ARP_REPLY);
	copy_mac(arp->target_mac, arp->sender_mac);
	arp->target_ip = arp->sender_ip;
	copy_mac(arp->sender_mac, mac);
	arp->sender_ip = asked;
	copy_mac(eth->destination, eth->source);
	copy_mac(eth->source, mac);
}

/* A frame of a port, and where it came in. */
struct entering {
	__u32 vni;
	__u32 circuit;
};

/* VTEP_FLOODED: this frame goes the way of all broadcast. VTEP_ARP_UNANSWERED: it is a request, and nothing is known. */
INLINE enum vtep_outcome answer_arp(ctx_t *ctx, struct eth_header *eth, struct cursor cursor, struct entering entering,
				    const struct vtep_vni *vni)
{
	struct arp_header *arp;

	if (eth->type != bpf_htons(ETHERTYPE_ARP) || !parse_arp(&cursor, &arp) || !is_arp_request(eth, arp))
		return VTEP_FLOODED;
	/* Announcing or probing one's own address (RFC 5227): an answer would mean that somebody else has it. */
	if (arp->sender_ip == 0 || arp->sender_ip == arp->target_ip)
		return VTEP_FLOODED;
	struct vtep_arp_key key = { .vni = entering.vni, .address = arp->target_ip };
	struct vtep_arp *known = vni->flags & VNI_ANSWERS_ARP ? bpf_map_lookup_elem(&vtep_arp, &key) : NULL;
	if (known) {
		write_arp_reply(eth, arp, known->mac);
		return VTEP_ARP_ANSWERED;
	}
	return VTEP_ARP_UNANSWERED;
}

INLINE void tell_request(ctx_t *ctx, const struct eth_header *eth, struct cursor cursor, struct entering entering,
			 __u32 slot)
{
	struct vtep_upcall message = { .kind = UPCALL_ARP, .vni = entering.vni, .ifindex = ctx->ifindex };
	struct arp_header *arp;

	if (!parse_arp(&cursor, &arp))
		return;
	message.vlan = entering.circuit & VTEP_VLAN_MASK;
	message.source_ip = arp->sender_ip;
	message.destination_ip = arp->target_ip;
	copy_mac(message.source, arp->sender_mac);
	copy_mac(message.destination, eth->destination);
	tell_miss(&message, slot);
}

INLINE void tell_unknown(ctx_t *ctx, const struct eth_header *eth, struct cursor cursor, struct entering entering,
			 __u32 slot)
{
	struct vtep_upcall message = { .kind = UPCALL_UNICAST, .vni = entering.vni, .ifindex = ctx->ifindex };
	struct ipv4_header *ip;

	message.vlan = entering.circuit & VTEP_VLAN_MASK;
	copy_mac(message.source, eth->source);
	copy_mac(message.destination, eth->destination);
	if (eth->type == bpf_htons(ETHERTYPE_IPV4) && parse_ipv4(&cursor, &ip)) {
		message.source_ip = ip->source;
		message.destination_ip = ip->destination;
	}
	tell_miss(&message, slot);
}

/* What nobody knows here: user space is told, if it wants to be. Returns whether the frame is flooded. */
INLINE int miss(ctx_t *ctx, const struct eth_header *eth, struct cursor cursor, struct entering entering,
		const struct vtep_vni *vni, int is_request)
{
	if (is_request) {
		if (vni->flags & VNI_ARP_UPCALL)
			tell_request(ctx, eth, cursor, entering, vni->slot);
		return vni->flags & VNI_ARP_FLOOD;
	}
	if (vni->flags & VNI_UNICAST_UPCALL)
		tell_unknown(ctx, eth, cursor, entering, vni->slot);
	return vni->flags & VNI_UNICAST_FLOOD;
}

/* Broadcast, multicast and unknown unicast of a port. */
INLINE enum vtep_outcome flood_from_port(ctx_t *ctx, struct eth_header *eth, struct cursor cursor,
					 struct entering entering, struct way *way)
{
	__u32 number = entering.vni;
	struct vtep_vni *vni = bpf_map_lookup_elem(&vtep_vnis, &number);
	int broadcast = is_group_mac(eth->destination);
	enum vtep_outcome outcome = VTEP_UNKNOWN_DESTINATION;
	struct inner inner;

	if (!vni)
		return VTEP_NO_SEGMENT;
	if (broadcast)
		outcome = answer_arp(ctx, eth, cursor, entering, vni);
	if (outcome == VTEP_ARP_ANSWERED) {
		way->ifindex = ctx->ifindex;
		way->vlan = entering.circuit & VTEP_VLAN_MASK;
		return outcome;
	}
	if (!is_allowed(vni->slot, broadcast))
		return broadcast ? VTEP_BROADCAST_LIMIT : VTEP_UNKNOWN_LIMIT;
	if (outcome != VTEP_FLOODED && !miss(ctx, eth, cursor, entering, vni, outcome == VTEP_ARP_UNANSWERED))
		return outcome;
	read_inner(ctx, eth, cursor, number, &inner);
	return flood(ctx, &inner, entering.circuit, vni->group, way);
}

/* Out of a port of ours, if it is what the entry says: ports come and go, and a frame must not leave its segment. */
INLINE int deliver(const struct fdb_entry *entry, __u32 vni, int tagged, struct way *way)
{
	__u32 index = entry->target >> VTEP_VLAN_BITS;
	__u32 vlan = entry->target & VTEP_VLAN_MASK;
	struct vtep_port *port = bpf_map_lookup_elem(&vtep_ports, &index);

	if (!port || segment_of(port, vlan) != vni || (tagged && !(port->flags & PORT_KEEPS_TAGS)))
		return 0;
	way->ifindex = port->ifindex;
	way->vlan = vlan;
	return 1;
}

/*
 * A frame that came in at a trunk: takes its tag off, which says the VNI. VTEP_SWITCHED: it goes on. A tag that only has a
 * priority is none (IEEE 802.1Q 6.9), and one of a provider's network is not ours.
 */
INLINE enum vtep_outcome leave_vlan(ctx_t *ctx, const struct vtep_port *port, struct entering *entering)
{
	ctx_pull_headers(ctx, ETH_LENGTH + TAG_LENGTH);
	struct cursor cursor = ctx_cursor(ctx);
	struct eth_header *eth;
	struct vlan_tag *tag;

	if (!parse_eth(&cursor, &eth))
		return VTEP_INNER_MALFORMED;
	if (is_link_local_mac(eth->destination))
		return VTEP_PASSED;
	__be16 type = ctx->vlan_present ? ctx->vlan_proto : eth->type;
	if (!is_tag(type)) {
		entering->vni = segment_of(port, 0);
		return entering->vni ? VTEP_SWITCHED : VTEP_NO_SEGMENT;
	}
	__u32 vlan = ctx->vlan_tci;
	if (!ctx->vlan_present) {
		if (!parse_tag(&cursor, &tag))
			return VTEP_INNER_MALFORMED;
		vlan = host16(tag->tci);
	}
	vlan &= VTEP_VLAN_MASK;
	if (type != bpf_htons(ETHERTYPE_VLAN))
		return VTEP_TAGGED;
	entering->vni = segment_of(port, vlan);
	entering->circuit |= vlan;
	if (!entering->vni)
		return VTEP_UNKNOWN_VLAN;
	return bpf_skb_vlan_pop(ctx) ? VTEP_POP_FAILED : VTEP_SWITCHED;
}

INLINE enum vtep_outcome from_port(ctx_t *ctx, struct way *way)
{
	struct origin from = { .kind = FDB_PORT, .place = ctx->ifindex, .told = vtep_told };
	struct vtep_port *port = port_of(ctx->ifindex, &from.index);
	struct entering entering;
	struct inner inner;
	struct eth_header *eth;

	if (!port || port->ifindex != ctx->ifindex)
		return VTEP_NO_SEGMENT;
	entering.vni = port->vni;
	entering.circuit = circuit_of(from.index, 0);
	if (port->flags & PORT_TRUNK) {
		enum vtep_outcome outcome = leave_vlan(ctx, port, &entering);

		if (outcome != VTEP_SWITCHED)
			return outcome;
	}
	__u32 vni = entering.vni;
	if (!vni)
		return VTEP_NO_SEGMENT;
	from.index = entering.circuit;
	pull_inner_headers(ctx);
	struct cursor cursor = ctx_cursor(ctx);
	if (!parse_eth(&cursor, &eth))
		return VTEP_INNER_MALFORMED;
	int tagged = ctx->vlan_present || is_tag(eth->type);
	if (tagged && !(port->flags & PORT_KEEPS_TAGS))
		return VTEP_TAGGED;
	if (is_no_station(eth->source))
		return VTEP_BAD_SOURCE;
	if (is_link_local_mac(eth->destination))
		return VTEP_PASSED;
	learn(vni, eth->source, &from);
	struct fdb_key key = fdb_key_of(vni, eth->destination);
	struct fdb_entry *entry = is_group_mac(eth->destination) ? NULL : bpf_map_lookup_elem(&vtep_fdb, &key);
	if (!entry)
		return flood_from_port(ctx, eth, cursor, entering, way);
	if (entry->kind == FDB_PORT) {
		if (entry->target == from.index)
			return VTEP_SAME_PORT;
		if (!deliver(entry, vni, tagged, way))
			return tagged ? VTEP_TAGGED : VTEP_NO_RECEIVER;
		return VTEP_SWITCHED;
	}
	__u32 peer = entry->target;
	__u32 slot = entry->vni_slot;
	read_inner(ctx, eth, cursor, vni, &inner);
	enum vtep_outcome outcome = encapsulate(ctx, &inner, entry->place, way);
	if (outcome == VTEP_ENCAPSULATED) {
		count_sent(&vtep_vni_traffic, slot, inner.bytes);
		count_sent(&vtep_peer_traffic, peer, inner.bytes);
	}
	return outcome;
}

/* Where the destination of the frame inside is, if the table knows; the cursor stands before that frame. */
INLINE struct fdb_entry *inner_destination(__u32 vni, struct cursor cursor)
{
	struct eth_header *eth;

	if (!parse_eth(&cursor, &eth) || is_group_mac(eth->destination))
		return NULL;
	struct fdb_key key = fdb_key_of(vni, eth->destination);
	return bpf_map_lookup_elem(&vtep_fdb, &key);
}

INLINE enum vtep_outcome from_uplink(ctx_t *ctx, struct way *way)
{
	struct arrival arrival = { .from = { .kind = FDB_PEER, .told = vtep_told } };
	struct eth_header *eth;

	ctx_pull_headers(ctx, OUTER_LENGTH + ETH_LENGTH + IPV4_LENGTH);
	struct cursor cursor = ctx_cursor(ctx);
	enum vtep_outcome outcome = check_outer(ctx, &cursor, &arrival);
	if (outcome != VTEP_DECAPSULATED)
		return outcome;
	__u32 number = arrival.vni;
	__u32 slot;
	struct fdb_entry *entry = inner_destination(number, cursor);
	if (entry && !arrival.group) {
		/* Its segment is there, and with thousands of them not in any cache: it is not asked. */
		slot = entry->vni_slot;
	} else {
		struct vtep_vni *vni = bpf_map_lookup_elem(&vtep_vnis, &number);

		if (!vni)
			return arrival.group ? VTEP_PASSED : VTEP_UNKNOWN_VNI;
		if (arrival.group && arrival.group != vni->group)
			return VTEP_PASSED;
		slot = vni->slot;
	}
	arrival.from.place = arrival.peer;
	arrival.known = peer_of(arrival.peer, &arrival.from.index);
	if (!arrival.known) {
		tell_stranger(number, arrival.peer);
		if (!vtep_config.accept_unknown_peers || arrival.peer == vtep_config.local)
			return VTEP_UNKNOWN_PEER;
	}
	if (!trim(ctx, arrival.end))
		return VTEP_POP_FAILED;

	ctx_pull_headers(ctx, OUTER_LENGTH + ETH_LENGTH + IPV4_LENGTH);
	cursor = ctx_cursor(ctx);
	cursor.at += OUTER_LENGTH;
	if (!parse_eth(&cursor, &eth))
		return VTEP_INNER_MALFORMED;
	if (is_no_station(eth->source))
		return VTEP_BAD_SOURCE;
	__u32 index;
	if (arrival.known && !is_seen_from_peer(number, mac_at(eth->source), arrival.peer, &index) &&
	    !is_member(number, arrival.peer)) {
		if (!vtep_config.accept_unknown_peers)
			return VTEP_NOT_MEMBER;
		arrival.known = 0;
	}
	struct eth_words words = load_eth(eth);
	int tagged = is_tag(eth->type);
	int group = is_group_mac(eth->destination);
	__u32 bytes = ctx->len - OUTER_LENGTH;
	if (entry && entry->kind != FDB_PORT)
		return VTEP_SPLIT_HORIZON;
	if (entry && !deliver(entry, number, tagged, way))
		return tagged ? VTEP_TAGGED : VTEP_NO_RECEIVER;
	if (!entry && !is_allowed(slot, group))
		return group ? VTEP_BROADCAST_LIMIT : VTEP_UNKNOWN_LIMIT;
	if (arrival.known)
		learn(number, eth->source, &arrival.from);
	if (!carry_ecn(ctx, words.type, cursor, arrival.tos))
		return VTEP_CE_ON_NOT_ECT;
	if (!strip(ctx, words))
		return VTEP_POP_FAILED;
	count_received(&vtep_vni_traffic, slot, bytes);
	if (arrival.known)
		count_received(&vtep_peer_traffic, arrival.from.index, bytes);
	return entry ? VTEP_DECAPSULATED : flood_locally(ctx, number, tagged);
}

INLINE int verdict(ctx_t *ctx, enum vtep_outcome outcome, struct way *way)
{
	if (way->vlan && outcome < VTEP_NO_SEGMENT && !put_tag(ctx, way->vlan))
		outcome = VTEP_PUSH_FAILED;
	count(&vtep_counters, outcome);
	if (outcome == VTEP_PASSED)
		return VERDICT_NEXT;
	if (!way->ifindex || outcome >= VTEP_NO_SEGMENT)
		return TC_ACT_SHOT;
	if (way->has_next)
		return bpf_redirect_neigh(way->ifindex, &way->next, sizeof(way->next), 0);
	return bpf_redirect(way->ifindex, way->flags);
}

SEC("tcx/ingress")
int vtep_access(struct __sk_buff *ctx)
{
	struct way way = {};

	return verdict(ctx, from_port(ctx, &way), &way);
}

SEC("tcx/ingress")
int vtep_uplink(struct __sk_buff *ctx)
{
	struct way way = {};
	enum vtep_outcome outcome = ctx->mark == VTEP_MARK ? send_waiting(ctx, &way) : from_uplink(ctx, &way);

	return verdict(ctx, outcome, &way);
}
