/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/* Frames that come in by a port to end stations (RFC 6325 4.6.1): learned, then switched, encapsulated, or copied. */
#pragma once

#include "trill_gateway.h"
#include "trill_listeners.h"

/* What is known of a native frame once its headers are read. */
struct native {
	int tagged;
	__u16 control; /* tag, as it is inside TRILL: priority and VLAN */
	__be16 type;
};

/* All that comes before the inner frame's type; outer addresses are the caller's. The VLAN tag is always there inside. */
INLINE struct trill_start *push(ctx_t *ctx, const struct native *frame, __u64 type_and_header)
{
	struct cursor cursor = frame_of(ctx);
	struct trill_start *start;

	if (cursor.at + ETH_LENGTH > cursor.end)
		return NULL;
	struct mac_pair macs = load_macs(cursor.at);
	if (bpf_xdp_adjust_head(ctx, frame->tagged ? -(__s32)PUSH_TAGGED : -(__s32)PUSH_UNTAGGED))
		return NULL;
	cursor = frame_of(ctx);
	start = cursor.at;
	if ((void *)(start + 1) > cursor.end)
		return NULL;
	*(__be64 *)&start->outer.type = bpf_cpu_to_be64(type_and_header);
	store_macs(&start->inner, macs);
	*(__be32 *)&start->inner.label = bpf_htonl((__u32)ETHERTYPE_VLAN << 16 | frame->control);
	return start;
}

/* Outer Ethertype and header as one word. */
INLINE __u64 header_word(__u16 flags, __u16 egress, __u16 ingress)
{
	return (__u64)ETHERTYPE_TRILL << 48 | (__u64)flags << 32 | (__u32)egress << 16 | ingress;
}

/* All that comes before the inner frame's type where the outer header is left out. */
INLINE struct trill_elided *push_elided(ctx_t *ctx, const struct native *frame, __u64 type_and_header)
{
	struct cursor cursor = frame_of(ctx);

	if (cursor.at + ETH_LENGTH > cursor.end)
		return NULL;
	struct mac_pair macs = load_macs(cursor.at);
	if (bpf_xdp_adjust_head(ctx, frame->tagged ? -(__s32)ELIDED_PUSH_TAGGED : -(__s32)ELIDED_PUSH_UNTAGGED))
		return NULL;
	cursor = frame_of(ctx);
	struct trill_elided *elided = cursor.at;
	if ((void *)(elided + 1) > cursor.end)
		return NULL;
	store_macs(elided, macs);
	*(__be64 *)&elided->elided = bpf_cpu_to_be64(type_and_header);
	elided->control = bpf_htons(frame->control);
	return elided;
}

/*
 * For a station behind another RBridge, to which at least the first of the next hops goes without outer header. It is put in
 * again for another one that takes no such frames.
 */
INLINE enum trill_outcome encapsulate_elided(ctx_t *ctx, const struct trill_fib *fib, const struct native *frame,
					     __u32 route, __u64 header, struct way *way)
{
	struct trill_elided *elided = push_elided(ctx, frame, (__u64)ETHERTYPE_ELIDED << 48 | header);
	__u32 hash = fib->hash_seed;

	if (!elided)
		return TRILL_PUSH_FAILED;
	const void *inner = (void *)elided + ELIDED_INNER, *end = frame_of(ctx).end;
	if (inner + HASH_LENGTH <= end)
		hash = trill_hash_apart(fib->hash_seed, inner, end, elided);
	const struct trill_hop *hop = choose(fib, route, hash);
	const struct trill_port *out = &fib->ports[hop->port & (TRILL_PORTS - 1)];
	way->port = hop->port;
	if (is_longer(ctx, out->frame_max - ELIDED_BYTES))
		return TRILL_TOO_LONG;
	if (hop->elides)
		return TRILL_INGRESS;
	if (restore(ctx, out))
		return TRILL_PUSH_FAILED;
	struct cursor cursor = frame_of(ctx);
	if (cursor.at + ETH_LENGTH > cursor.end)
		return TRILL_PUSH_FAILED;
	store_macs(cursor.at, load_macs(hop));
	return TRILL_INGRESS;
}

/* For a station behind another RBridge. */
INLINE enum trill_outcome encapsulate(ctx_t *ctx, const struct trill_fib *fib, const struct native *frame, __u16 egress,
				      struct way *way)
{
	__u32 route = route_to(fib, egress);
	__u64 header = header_word(fib->hop_count, egress, fib->own_nickname);

	/* No branch: the verifier would go both ways to the end. */
	route |= fib->relays & -((route - 1) >> 31);
	if (!fib->own_nickname)
		return TRILL_NO_NICKNAME;
	if (!route)
		return TRILL_NO_ROUTE;
	if (choose(fib, route, 0)->elides)
		return encapsulate_elided(ctx, fib, frame, route, header & ~(0xffffULL << 48), way);
	struct trill_start *start = push(ctx, frame, header);
	if (!start)
		return TRILL_PUSH_FAILED;
	__u32 hash = trill_hash_of_any(fib->hash_seed, &start->inner, frame_of(ctx).end);
	enum trill_outcome outcome = towards(ctx, fib, choose(fib, route, hash), &start->outer, way);
	return outcome == TRILL_TRANSIT ? TRILL_INGRESS : outcome;
}

/* Place of the tree for a destination, plus 1; 0: there is none. What is for one destination in a VLAN keeps to one tree. */
INLINE __u32 own_tree(const struct trill_fib *fib, __u64 mac, __u16 vlan)
{
	_Static_assert(TRILL_SHARES == 1 << (64 - 58), "a hash is as long as the table");
	return fib->own_tree[(station(mac, vlan) ^ fib->hash_seed) * HASH_FIRST >> 58];
}

/*
 * For a group or a station that is nowhere: onto a tree of ours, and to the other native ports of the VLAN. Without a tree the
 * frame gets a unicast header, which no link's copy keeps.
 */
INLINE enum trill_outcome flood(ctx_t *ctx, const struct trill_fib *fib, const struct native *frame, __u32 port,
				struct way *way)
{
	__u16 vlan = frame->control & VLAN_MASK;
	struct trill_set set = { 0, fib->native_ports[vlan] };
	__u64 header = header_word(0, 0, 0);

	struct cursor cursor = frame_of(ctx);

	if (!is_within_storm(port_of(fib, ctx->ingress_ifindex))) /* also of what went through the gateway */
		return TRILL_STORM_LIMIT;
	if (cursor.at + ETH_LENGTH > cursor.end)
		return TRILL_MALFORMED;
	__u64 destination = mac_at(cursor.at);
	__u32 before = ETH_LENGTH + (frame->tagged ? VLAN_LENGTH : 0);
	__u32 place = own_tree(fib, destination, vlan) - 1;
	struct grouped to = grouped(ctx, fib, destination, before, vlan, frame->type);
	snoop(ctx, fib, &to, port, 0);
	if (fib->own_nickname && place < TRILL_TREES_MAX) {
		const struct trill_tree *tree = &fib->tree[place & (TRILL_TREES_MAX - 1)];

		set.links = tree->vlan_ports[vlan];
		header = header_word(HEADER_MULTI | tree->hop_count, tree->root, fib->own_nickname);
	}
	prune(fib, &to, place, &set.links, &set.natives);
	enum trill_outcome outcome = copies(ctx, set, 0, port, way, TRILL_INGRESS_FLOOD);
	if (outcome != TRILL_INGRESS_FLOOD)
		return outcome;
	if (way->kind == WAY_PORT && set.natives & ~(1ULL << port)) {
		int copied = copy_natively(ctx, way->port, frame->tagged, frame->control);
		return copied == TRILL_COPY_DELIVERED ? TRILL_INGRESS_FLOOD : copied;
	}
	struct trill_start *start = push(ctx, frame, header);
	if (!start)
		return TRILL_PUSH_FAILED;
	store_all_rbridges(start->outer.destination);
	if (way->kind == WAY_PORT) {
		int copied = copy_to_one_link(ctx, way->port);
		return copied == TRILL_COPY_SENT ? TRILL_INGRESS_FLOOD : copied;
	}
	mark_copies(&start->outer, way, MARK_NATIVELY, port);
	return TRILL_INGRESS_FLOOD;
}

/* Reads tag and type: which VLAN the frame is in, and whether it may come in here. */
INLINE int admit(const struct cursor *cursor, struct mac_pair macs, const struct trill_fib *fib,
		 const struct trill_port *in, __u32 port, struct native *frame)
{
	const struct eth_header *eth = cursor->at;
	__u32 group = bridge_group(destination_of(macs));

	*frame = (struct native){ 0, in->vlan, eth->type };
	if (is_l2_control(group))
		return TRILL_L2_CONTROL;
	if (eth->type == bpf_htons(ETHERTYPE_VLAN)) {
		if (cursor->at + ETH_LENGTH + VLAN_LENGTH > cursor->end)
			return TRILL_MALFORMED;
		frame->tagged = 1;
		frame->type = *(__be16 *)(cursor->at + ETH_LENGTH + 2);
		frame->control = host16(*(__be16 *)(cursor->at + ETH_LENGTH));
		if (!(frame->control & VLAN_MASK))
			frame->control |= in->vlan; /* priority only */
	}
	/* IS-IS too: the daemon speaks it on links only, and a station must not fill the queue before it. */
	if (is_trill_type(frame->type) || is_trill_group(group))
		return TRILL_TRILL_ON_NATIVE;
	if (!carries(fib, port, frame->control & VLAN_MASK))
		return in->kind == TRILL_SHARED ? TRILL_NOT_FORWARDER : TRILL_NOT_IN_VLAN;
	if (is_bad_source(source_of(macs)))
		return TRILL_BAD_SOURCE;
	return ROUTED;
}

INLINE enum trill_outcome trill_ingress(ctx_t *ctx, const struct trill_fib *fib, __u32 port, struct way *way)
{
	struct cursor cursor = frame_of(ctx);
	const struct trill_port *in = &fib->ports[port & (TRILL_PORTS - 1)];
	struct native frame;

	if (cursor.at + ETH_LENGTH > cursor.end)
		return TRILL_MALFORMED;
	struct mac_pair macs = load_macs(cursor.at);
	int fault = admit(&cursor, macs, fib, in, port, &frame);
	if (fault != ROUTED)
		return fault;
	__u16 vlan = frame.control & VLAN_MASK;
	learn(source_of(macs), vlan, 0, port);
	if (is_group(destination_of(macs))) {
		if (frame.type == bpf_htons(ETHERTYPE_ARP) && answer_arp(ctx, frame.tagged, vlan))
			return TRILL_ARP_ANSWERED;
		return flood(ctx, fib, &frame, port, way);
	}

	__u32 place = find(destination_of(macs), vlan);
	if (place != NOWHERE && nickname_of(place) == TRILL_GATEWAY) {
		fault = route_between_vlans(ctx, frame.tagged, &frame.control);
		if (fault != ROUTED)
			return fault;
		cursor = frame_of(ctx);
		if (cursor.at + ETH_LENGTH > cursor.end)
			return TRILL_MALFORMED;
		vlan = frame.control & VLAN_MASK;
		place = find(mac_at(cursor.at), vlan);
		port = 0; /* another VLAN may well be behind the same port */
	}
	if (place == NOWHERE)
		return flood(ctx, fib, &frame, port, way);
	if (nickname_of(place))
		return encapsulate(ctx, fib, &frame, nickname_of(place), way);
	way->port = port_of_place(place);
	if (way->port == port)
		return TRILL_SAME_PORT;
	if (!carries(fib, way->port, vlan)) /* it was in this VLAN once */
		return flood(ctx, fib, &frame, port, way);
	return switch_natively(ctx, &fib->ports[way->port], frame.tagged, frame.control);
}
