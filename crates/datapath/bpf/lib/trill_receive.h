/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/*
 * Frames that come in by a link: what is accepted, in the order of RFC 6325 4.6.2 as corrected by RFC 7780 5.1.2 and 10,
 * then transit, egress, or copies along a tree.
 */
#pragma once

#include "trill_deliver.h"
#include "trill_learn.h"
#include "trill_listeners.h"

#define ACCEPTED TRILL_OUTCOME_COUNT

/* Steps 1 to 4: whom the frame is for. */
INLINE int addressed(__u64 destination, __be16 type, const struct trill_port *in)
{
	__u32 group = bridge_group(destination);

	if (is_l2_control(group))
		return TRILL_L2_CONTROL;
	if (!is_trill_type(type) && !is_trill_group(group))
		return TRILL_NATIVE_ON_LINK;
	if (type == bpf_htons(ETHERTYPE_L2_IS_IS) && (group == GROUP_ALL_IS_IS || destination == mac_at(in->mac)))
		return TRILL_IS_IS;
	if (is_trill_group(group) && group != GROUP_ALL_RBRIDGES)
		return TRILL_OTHER_GROUP;
	if (group != GROUP_ALL_RBRIDGES && destination != mac_at(in->mac))
		return TRILL_NOT_FOR_US;
	if (type != bpf_htons(ETHERTYPE_TRILL))
		return TRILL_NOT_TRILL;
	return ACCEPTED;
}

/* Whether an RBridge of a shared link has this address: one of those that are in order. */
INLINE int is_sharer(const struct trill_fib *fib, __u32 port, __u64 mac)
{
	const __u64 *sharers = fib->sharers[port & (TRILL_PORTS - 1)];
	__u32 place = 0;

#pragma unroll
	for (__u32 step = TRILL_SHARERS / 2; step; step /= 2) {
		if (sharers[(place + step) & (TRILL_SHARERS - 1)] <= mac)
			place += step;
	}
	return sharers[place & (TRILL_SHARERS - 1)] == mac;
}

/* Whether the outer source is an adjacency of the port in Report. */
INLINE int is_adjacent(const struct trill_fib *fib, __u32 port, __u64 source)
{
	const struct trill_port *in = &fib->ports[port & (TRILL_PORTS - 1)];

	return in->kind == TRILL_SHARED ? is_sharer(fib, port, source) : in->adjacent && source == mac_at(in->neighbor);
}

/* Steps 5 to 8: header and sender. */
INLINE int accepted(const struct eth_header *eth, __u16 flags, const struct trill_fib *fib, __u32 port)
{
	struct mac_pair macs = load_macs(eth);

	if (flags & HEADER_VERSION)
		return TRILL_BAD_VERSION;
	if (flags & HEADER_RESERVED)
		return TRILL_RESERVED_BITS;
	if (!(flags & HEADER_HOPS))
		return TRILL_HOP_COUNT;
	if (is_group(destination_of(macs)) != !!(flags & HEADER_MULTI))
		return TRILL_GROUP_MISMATCH;
	if (!is_adjacent(fib, port, source_of(macs)))
		return TRILL_NO_ADJACENCY;
	return ACCEPTED;
}

/* The fields of Ethertype and header that a plain frame has no choice about, as they lie in memory. */
#define PLAIN_MASK                                                                                                      \
	(0xffff | (__u32)bpf_htons(HEADER_VERSION | HEADER_RESERVED | HEADER_MULTI | HEADER_FLAGS) << 16)

/*
 * What nearly all frames are: from our neighbour to us, with a plain header, for one egress. Then steps 1 to 8 are passed.
 * `word`: Ethertype and header as they lie in memory. A port without a neighbour has no plain frames.
 */
INLINE int is_plain(struct mac_pair macs, __u64 word, const struct trill_port *in)
{
	struct mac_pair want = load_macs(in);
	__u32 fixed = ((__u32)word & PLAIN_MASK) ^ in->plain;

	return !((macs.head ^ want.head) | (macs.tail ^ want.tail) | fixed) &&
	       (__u32)word & (__u32)bpf_htons(HEADER_HOPS) << 16;
}

/* What is inside, for one egress or many: label, VLAN, and what must not be inside. */
INLINE int check_inner(const struct inner_header *inner, struct mac_pair macs)
{
	if (inner->label == bpf_htons(ETHERTYPE_FINE_GRAINED))
		return TRILL_FINE_GRAINED;
	if (inner->label != bpf_htons(ETHERTYPE_VLAN))
		return TRILL_NO_LABEL;
	if (!is_vlan(host16(inner->control) & VLAN_MASK))
		return TRILL_BAD_VLAN;
	if (bridge_group(destination_of(macs)) == GROUP_ALL_EGRESS)
		return TRILL_CHANNEL;
	if (is_trill_type(inner->type))
		return TRILL_TRILL_IN_TRILL;
	return ACCEPTED;
}

/* Step 9b. */
INLINE enum trill_outcome transit(ctx_t *ctx, const struct trill_fib *fib, struct trill_start *start,
				  const struct inner_header *inner, const void *end, struct way *way)
{
	__u32 route = route_to(fib, host16(start->header.egress));
	__u32 hash = trill_hash_of_any(fib->hash_seed, inner, end);
	const struct trill_hop *hop = route ? choose(fib, route, hash) :
					      choose_relay(fib, hash, source_of(load_macs(&start->outer)));

	if (!hop)
		return TRILL_UNKNOWN_EGRESS;
	enum trill_outcome outcome = towards(ctx, fib, hop, &start->outer, way);
	if (outcome == TRILL_TRANSIT)
		((__u8 *)&start->header)[1] -= 1; /* the hop count's byte; it was not 0 */
	return outcome;
}

/* Copies of a frame that came by `port` in TRILL, or itself where there is one receiver; a flags word is for the copier. */
INLINE enum trill_outcome hand_out(ctx_t *ctx, struct trill_start *start, struct trill_set set, __u16 vlan, __u32 port, struct way *way,
				   enum trill_outcome outcome)
{
	enum trill_outcome chosen = copies(ctx, set, port, 0, way, outcome);
	int copied;

	if (chosen != outcome)
		return chosen;
	if (way->kind == WAY_PORT && set.natives && start->header.flags & bpf_htons(HEADER_FLAGS)) {
		way->kind = WAY_COPIES;
		way->port = number_of_set(set.links, set.natives, port);
	}
	if (way->kind == WAY_COPIES) {
		mark_copies(&start->outer, way, 0, port);
		return outcome;
	}
	copied = set.links & ~(1ULL << port) ? copy_to_one_link(ctx, way->port) : copy_out_of_trill(ctx, way->port, vlan);
	return copied == TRILL_COPY_SENT || copied == TRILL_COPY_DELIVERED ? outcome : copied;
}

/* Step 9c, for a frame without a flags word. */
INLINE enum trill_outcome egress(ctx_t *ctx, const struct trill_fib *fib, struct trill_start *start, __u16 ingress,
				 __u32 port, struct way *way)
{
	struct inner_header *inner = &start->inner;
	__u16 vlan = host16(inner->control) & VLAN_MASK;
	struct mac_pair macs = load_macs(inner);
	int fault = check_inner(inner, macs);

	if (fault != ACCEPTED)
		return fault;
	if (is_group(destination_of(macs)))
		return TRILL_INNER_GROUP;
	if (is_bad_source(source_of(macs)))
		return TRILL_BAD_SOURCE;
	if (route_to(fib, ingress))
		learn(source_of(macs), vlan, ingress, port);

	__u32 place = find(destination_of(macs), vlan);
	way->port = port_of_place(place);
	if (place != NOWHERE && !nickname_of(place) && carries(fib, way->port, vlan))
		return decapsulate(ctx, &fib->ports[way->port], vlan, TRILL_EGRESS);
	return hand_out(ctx, start, (struct trill_set){ 0, fib->native_ports[vlan] }, vlan, port, way, TRILL_EGRESS_FLOOD);
}

/*
 * Step 10. The hop count goes down before the frame is copied; each copy gets its outer source as it leaves. Who is overloaded
 * does not check where a tree's frame comes from and sends it to nobody but stations (RFC 7780 section 2.3.2).
 */
INLINE enum trill_outcome along_tree(ctx_t *ctx, const struct trill_fib *fib, struct trill_start *start,
				     const struct inner_header *inner, __u32 port, struct way *way)
{
	__u16 ingress = host16(start->header.ingress);
	__u16 vlan = host16(inner->control) & VLAN_MASK;
	__u32 place = place_of_tree(fib, host16(start->header.egress));
	const struct trill_tree *tree = &fib->tree[place & (TRILL_TREES_MAX - 1)];

	if (!(fib->flags & TRILL_OVERLOADED)) {
		if (place >= TRILL_TREES_MAX)
			return TRILL_UNKNOWN_TREE;
		if (!route_to(fib, ingress))
			return TRILL_UNKNOWN_INGRESS;
		if (!(tree->ports >> port & 1))
			return TRILL_NOT_ON_TREE;
		if (tree->rpf[ingress] != port)
			return TRILL_RPF;
	}
	/* From here on the verifier has one way for both. */
	place &= TRILL_TREES_MAX - 1;
	__u64 onward = (__u64)!!(fib->flags & TRILL_OVERLOADED) - 1;

	struct mac_pair macs = load_macs(inner);
	int fault = check_inner(inner, macs);
	if (fault != ACCEPTED)
		return fault;
	if (is_l2_control(bridge_group(destination_of(macs))))
		return TRILL_INNER_CONTROL;
	if (is_bad_source(source_of(macs)))
		return TRILL_BAD_SOURCE;
	struct trill_set set = { tree->vlan_ports[vlan] & onward, fib->native_ports[vlan] };
	struct cursor cursor = frame_of(ctx);
	__u32 before = (const void *)inner - cursor.at;
	struct grouped to = grouped(ctx, fib, destination_of(macs), before + sizeof(*inner), vlan, inner->type);
	if (set.natives) {
		if (route_to(fib, ingress))
			learn(source_of(macs), vlan, ingress, port);
		snoop(ctx, fib, &to, port, 1);
	}
	prune(fib, &to, place, &set.links, &set.natives);
	((__u8 *)&start->header)[1] -= 1;
	return hand_out(ctx, start, set, vlan, port, way, TRILL_TREE_FLOOD);
}

/* An accepted frame whose header is not plain: a tree's, or one with a flags word. */
/* Whether a nickname, not 0, is one of ours. */
INLINE int is_own(const struct trill_fib *fib, __u16 nickname)
{
	_Static_assert(TRILL_OTHERS == 3, "all are compared");
	return nickname == fib->own_nickname || nickname == fib->own_others[0] || nickname == fib->own_others[1] ||
	       nickname == fib->own_others[2];
}

INLINE enum trill_outcome receive_odd(ctx_t *ctx, const struct trill_fib *fib, struct trill_start *start, __u32 port,
				      struct way *way)
{
	struct cursor cursor = frame_of(ctx);
	struct inner_header *inner = &start->inner;
	__u16 flags = host16(start->header.flags);
	__u16 ingress = host16(start->header.ingress), to = host16(start->header.egress);
	__u32 word = 0;

	if (flags & HEADER_FLAGS) {
		inner = (void *)inner + FLAGS_LENGTH;
		if ((void *)(inner + 1) > cursor.end)
			return TRILL_MALFORMED;
		word = bpf_ntohl(*(__be32 *)&start->inner);
	}
	if (word & FLAG_CRITICAL_HOP_BY_HOP)
		return TRILL_CRITICAL_FLAG;
	if (!is_usable(ingress))
		return TRILL_RESERVED_INGRESS;
	if (is_own(fib, ingress)) {
		/* Nothing of ours comes back but Echoes, which are sent to come back (RFC 7175 4). */
		int echo = to == ingress && !(flags & HEADER_MULTI) &&
			   check_inner(inner, load_macs(inner)) == TRILL_CHANNEL;
		return echo ? TRILL_CHANNEL : TRILL_OWN_INGRESS;
	}
	if (to == NICKNAME_ANY_RBRIDGE && !(flags & HEADER_MULTI) && check_inner(inner, load_macs(inner)) == TRILL_CHANNEL)
		return TRILL_CHANNEL;
	if (!is_usable(to))
		return TRILL_RESERVED_EGRESS;
	if (flags & HEADER_MULTI)
		return along_tree(ctx, fib, start, inner, port, way);
	if (!is_own(fib, to))
		return transit(ctx, fib, start, inner, cursor.end, way);

	/* For us: then the flags word goes, if nothing in it forbids that. */
	if (word & FLAG_CRITICAL_TO_EGRESS)
		return TRILL_CRITICAL_FLAG;
	if (flags & HEADER_FLAGS) {
		if (strip_flags(ctx))
			return TRILL_POP_FAILED;
		cursor = frame_of(ctx);
		start = cursor.at;
		if ((void *)(start + 1) > cursor.end)
			return TRILL_MALFORMED;
	}
	return egress(ctx, fib, start, ingress, port, way);
}

/*
 * A tag around everything is taken off, once, and has to be that of the Designated VLAN. IS-IS on a shared link keeps it, for Hellos go
 * in several VLANs and which one tells something; but as one that the stack leaves in the frame for the daemon.
 */
INLINE int strip_outer_tag(ctx_t *ctx, const struct trill_port *in)
{
	struct cursor cursor = frame_of(ctx);

	if (cursor.at + ETH_LENGTH + VLAN_LENGTH > cursor.end)
		return TRILL_MALFORMED;
	__u16 vlan = host16(*(__be16 *)(cursor.at + ETH_LENGTH)) & VLAN_MASK;
	__be16 type = *(__be16 *)(cursor.at + ETH_LENGTH + 2);
	if (!is_trill_type(type))
		return TRILL_NATIVE_ON_LINK;
	if (type == bpf_htons(ETHERTYPE_L2_IS_IS) && in->kind == TRILL_SHARED) {
		((struct eth_header *)cursor.at)->type = bpf_htons(TRILL_KEPT_TAG);
		return addressed(destination_of(load_macs(cursor.at)), type, in);
	}
	if ((vlan ? vlan : in->vlan) != in->designated_vlan)
		return TRILL_OUTER_VLAN;
	return move_macs(ctx, VLAN_LENGTH) ? TRILL_POP_FAILED : ACCEPTED;
}

/* A frame without outer header gets one, where that is agreed: then it is like any other from the neighbour. */
INLINE int restore_outer(ctx_t *ctx, const struct trill_port *in)
{
	struct cursor cursor = frame_of(ctx);
	struct trill_elided *elided = cursor.at;

	if (!in->elides)
		return TRILL_NOT_AGREED;
	if ((void *)(elided + 1) > cursor.end)
		return TRILL_MALFORMED;
	if (is_bridge_group(mac_at(elided)))
		return TRILL_OTHER_GROUP;
	if (elided->header.flags & bpf_htons(HEADER_FLAGS))
		return TRILL_RESERVED_BITS;
	return restore(ctx, in) ? TRILL_PUSH_FAILED : ACCEPTED;
}

/* Any frame, in the order of the text. */
INLINE enum trill_outcome receive(ctx_t *ctx, const struct trill_fib *fib, __u32 port, struct way *way)
{
	const struct trill_port *in = &fib->ports[port & (TRILL_PORTS - 1)];
	struct cursor cursor = frame_of(ctx);
	struct trill_start *start = cursor.at;

	if (cursor.at + ETH_LENGTH > cursor.end)
		return TRILL_MALFORMED;
	if (!is_l2_control(bridge_group(mac_at(&start->outer)))) {
		int usual = ACCEPTED;

		if (start->outer.type == bpf_htons(ETHERTYPE_VLAN))
			usual = strip_outer_tag(ctx, in);
		else if (start->outer.type == bpf_htons(ETHERTYPE_ELIDED))
			usual = restore_outer(ctx, in);
		else if (start->outer.type == bpf_htons(ETHERTYPE_TRILL))
			usual = in->vlan == in->designated_vlan ? ACCEPTED : TRILL_OUTER_VLAN;
		if (usual != ACCEPTED)
			return usual;
		cursor = frame_of(ctx);
		start = cursor.at;
	}
	/* IS-IS and BPDUs may be shorter than a data frame's headers. */
	if (cursor.at + ETH_LENGTH > cursor.end)
		return TRILL_MALFORMED;
	int fault = addressed(destination_of(load_macs(start)), start->outer.type, in);
	if (fault != ACCEPTED)
		return fault;
	if ((void *)(start + 1) > cursor.end)
		return TRILL_MALFORMED;
	fault = accepted(&start->outer, host16(start->header.flags), fib, port);
	if (fault != ACCEPTED)
		return fault;
	return receive_odd(ctx, fib, start, port, way);
}
