/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/*
 * An RBridge's data path (RFC 6325, 7780) on XDP, which TC cannot be: it does not take TRILL's headers off. One program
 * for links to other RBridges, one for ports to end stations, one for links that both share; for what goes to several ports one
 * that has it copied and one that the kernel runs on each copy; and one for what leaves with an outer tag.
 */
#include "lib/trill_copy.h"
#include "lib/trill_ingress.h"
#include "lib/trill_receive.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* Not in line, so that the common case has all registers for itself. */
static __noinline int receive_uncommon(struct xdp_md *ctx, __u32 port)
{
	const struct trill_fib *fib = current_fib();
	int is_shared = fib->ports[port & (TRILL_PORTS - 1)].kind == TRILL_SHARED;
	struct way way = { .may_return = is_shared };
	enum trill_outcome outcome = port ? receive(ctx, fib, port, &way) : TRILL_NO_PORT;
	/* BPDUs of a shared link tell which bridge is its root. */
	int is_told = outcome == TRILL_IS_IS || outcome == TRILL_CHANNEL || (outcome == TRILL_L2_CONTROL && is_shared);

	/* One queue before the daemon serves all ports: none may fill it alone. */
	if (is_told && !is_within_control(port))
		outcome = TRILL_CONTROL_LIMIT;
	return finish(ctx, port, outcome, &way);
}

/* What a plain frame for us has inside: addresses, tag and type. */
struct plain_inner {
	struct mac_pair macs;
	__u16 vlan;
	__be16 type;
};

/*
 * A plain frame for us, for a station that is where it was, behind a port without tags: `pop` bytes before its type go.
 * Nothing is changed unless all of that is so; `egress` says the same about such frames.
 */
INLINE int deliver_plain(ctx_t *ctx, const struct trill_fib *fib, const struct plain_inner *inner, __u32 pop,
			 __u16 ingress, __u32 *port)
{
	struct cursor cursor = frame_of(ctx);
	void *start = cursor.at, *end = cursor.end;
	struct mac_pair macs = inner->macs;
	__u16 vlan = inner->vlan;

	if (!is_vlan(vlan) || is_trill_type(inner->type) || is_group(macs.head) ||
	    !is_learnt(source_of(macs), vlan, ingress))
		return 0;
	__u32 place = find(destination_of(macs), vlan);
	*port = port_of_place(place);
	const struct trill_port *out = &fib->ports[*port];
	if (place == NOWHERE || nickname_of(place) || out->vlan != vlan || out->kind != TRILL_NATIVE)
		return 0;
	if (start + pop + out->frame_max < end || start + TRILL_WHOLE_MAX < end || start + pop + ETH_LENGTH > end)
		return 0;
	store_macs(start + pop, macs);
	return !bpf_xdp_adjust_head(ctx, pop);
}

/*
 * A plain frame for another RBridge, or for us, without a detour; `receive` says the same about such frames, and all about
 * the others.
 */
INLINE int receive_with_header(struct xdp_md *ctx, const struct trill_fib *fib, __u32 port)
{
	struct cursor cursor = frame_of(ctx);
	void *start = cursor.at;

	if (start + HEADERS_LENGTH + HASH_LENGTH > cursor.end)
		return receive_uncommon(ctx, port);
	const struct trill_port *in = &fib->ports[port];
	__u64 word = *(__u64 *)(start + offsetof(struct eth_header, type));
	__u16 to = word >> 32, ingress = word >> 48; /* as on the wire, which is how routes are found */
	if (!is_plain(load_macs(start), word, in) || !fib->route[ingress])
		return receive_uncommon(ctx, port);
	__u32 route = fib->route[to];
	if (!route) {
		if (to != bpf_htons(fib->own_nickname) || !to) /* we may have none yet */
			return receive_uncommon(ctx, port);
		const struct inner_header *inside = start + HEADERS_LENGTH;
		__u32 own_port, label = *(const __u32 *)&inside->label;
		struct plain_inner inner = { load_macs(inside), host16(label >> 16) & VLAN_MASK, inside->type };
		if ((__u16)label != bpf_htons(ETHERTYPE_VLAN) ||
		    !deliver_plain(ctx, fib, &inner, PUSH_UNTAGGED, host16(ingress), &own_port))
			return receive_uncommon(ctx, port);
		return send(ctx, port, TRILL_EGRESS, own_port);
	}
	const struct trill_hop *hop =
		choose(fib, route, trill_hash(fib->hash_seed, start + HEADERS_LENGTH, cursor.end));
	if (start + hop->plain_max < cursor.end)
		return receive_uncommon(ctx, port);
	store_macs(start, load_macs(hop));
	((__u8 *)start)[ETH_LENGTH + 1] = (word >> 24) - 1; /* the hop count's byte; it was not 0 */
	return send(ctx, port, TRILL_TRANSIT, hop->port);
}

SEC("xdp.frags")
int trill_link(struct xdp_md *ctx)
{
	const struct trill_fib *fib = current_fib();

	return receive_with_header(ctx, fib, port_of(fib, ctx->ingress_ifindex));
}

/* A plain frame without outer header, to a next hop that takes it so or for us: no address is written on its way. */
INLINE int receive_elided(struct xdp_md *ctx, const struct trill_fib *fib, __u32 port, struct cursor cursor)
{
	struct trill_elided *start = cursor.at;
	const struct trill_port *in = &fib->ports[port];

	if ((void *)start + ELIDED_INNER + HASH_LENGTH > cursor.end)
		return receive_uncommon(ctx, port);
	struct mac_pair macs = load_macs(start);
	__u64 word = *(__u64 *)&start->elided;
	__u16 to = word >> 32, ingress = word >> 48; /* as on the wire */
	if (((__u32)word & PLAIN_MASK) != in->plain_elided || !((__u32)word & (__u32)bpf_htons(HEADER_HOPS) << 16) ||
	    is_group(macs.head) || !fib->route[ingress])
		return receive_uncommon(ctx, port);
	__u32 route = fib->route[to];
	if (!route) {
		__u32 own_port;
		struct plain_inner inner = { macs, host16(start->control) & VLAN_MASK, start->type };
		if (to != bpf_htons(fib->own_nickname) || !to || /* we may have none yet */
		    !deliver_plain(ctx, fib, &inner, ELIDED_PUSH_UNTAGGED, host16(ingress), &own_port))
			return receive_uncommon(ctx, port);
		return send(ctx, port, TRILL_EGRESS, own_port);
	}
	__u32 hash = trill_hash_apart(fib->hash_seed, (void *)start + ELIDED_INNER, cursor.end, start);
	const struct trill_hop *hop = choose(fib, route, hash);
	const struct trill_port *out = &fib->ports[hop->port & (TRILL_PORTS - 1)];
	if (!hop->elides || (void *)start + out->frame_max - ELIDED_BYTES < cursor.end ||
	    (void *)start + TRILL_WHOLE_MAX < cursor.end)
		return receive_uncommon(ctx, port);
	((__u8 *)&start->header)[1] -= 1; /* the hop count's byte; it was not 0 */
	return send(ctx, port, TRILL_TRANSIT, hop->port);
}

/* A frame with its outer header or without. */
INLINE int receive_any(struct xdp_md *ctx)
{
	const struct trill_fib *fib = current_fib();
	__u32 port = port_of(fib, ctx->ingress_ifindex);
	struct cursor cursor = frame_of(ctx);
	const struct eth_header *eth = cursor.at;

	if ((void *)(eth + 1) <= cursor.end && eth->type == bpf_htons(ETHERTYPE_ELIDED))
		return receive_elided(ctx, fib, port, cursor);
	return receive_with_header(ctx, fib, port);
}

/* A link whose ends leave the outer header out; frames with one come as well. */
SEC("xdp.frags")
int trill_elided_link(struct xdp_md *ctx)
{
	return receive_any(ctx);
}

/*
 * A link whose frames are worked on by several CPUs: each serves its share of the egress nicknames, so that a flow stays on
 * one of them. What has no egress is for the stack, and stays here.
 */
SEC("xdp.frags")
int trill_spread_link(struct xdp_md *ctx)
{
	struct cursor cursor = frame_of(ctx);
	const struct trill_start *start = cursor.at;

	_Static_assert(__builtin_offsetof(struct trill_elided, header) == ETH_LENGTH, "egress is where it is with the header");
	if (cursor.at + HEADERS_LENGTH <= cursor.end &&
	    (start->outer.type == bpf_htons(ETHERTYPE_TRILL) || start->outer.type == bpf_htons(ETHERTYPE_ELIDED))) {
		__u32 cluster = host16(start->header.egress) & (TRILL_CLUSTERS - 1);

		if (bpf_redirect_map(&trill_cpus, trill_spread.cpu[cluster], 0) == XDP_REDIRECT)
			return XDP_REDIRECT;
	}
	return receive_any(ctx);
}

/* What a CPU does with a frame that was handed to it. */
SEC("xdp.frags/cpumap")
int trill_worker(struct xdp_md *ctx)
{
	return receive_any(ctx);
}

INLINE int bring_in(struct xdp_md *ctx, const struct trill_fib *fib, __u32 port, int may_return)
{
	struct way way = { .may_return = may_return };
	enum trill_outcome outcome = port ? trill_ingress(ctx, fib, port, &way) : TRILL_NO_PORT;
	return finish(ctx, port, outcome, &way);
}

SEC("xdp.frags")
int trill_native(struct xdp_md *ctx)
{
	const struct trill_fib *fib = current_fib();

	return bring_in(ctx, fib, port_of(fib, ctx->ingress_ifindex), 0);
}

/* Not in line, so that it has a stack of its own. */
static __noinline int bring_in_from_shared(struct xdp_md *ctx, __u32 port)
{
	return bring_in(ctx, current_fib(), port, 1);
}

/* Whether a frame is between RBridges or bridges: by its address, or by its Ethertype, behind an outer tag if there is one. */
INLINE int is_between_bridges(const struct cursor *cursor)
{
	const struct eth_header *eth = cursor->at;
	__u32 group;

	if ((void *)(eth + 1) > cursor->end)
		return 1;
	group = bridge_group(mac_at(eth));
	if (is_l2_control(group) || is_trill_group(group) || is_trill_type(eth->type))
		return 1;
	return eth->type == bpf_htons(ETHERTYPE_VLAN) && (void *)(eth + 1) + VLAN_LENGTH <= cursor->end &&
	       is_trill_type(*(__be16 *)((void *)(eth + 1) + 2));
}

/* A link that RBridges share with each other and with end stations. */
SEC("xdp.frags")
int trill_shared(struct xdp_md *ctx)
{
	const struct trill_fib *fib = current_fib();
	__u32 port = port_of(fib, ctx->ingress_ifindex);
	struct cursor cursor = frame_of(ctx);

	return is_between_bridges(&cursor) ? receive_uncommon(ctx, port) : bring_in_from_shared(ctx, port);
}

/* Copies a frame that was handed on: `trill_copy` finishes what leaves. */
SEC("xdp.frags/cpumap")
int trill_copier(struct xdp_md *ctx)
{
	return copy_for_set(ctx, port_of(current_fib(), ctx->ingress_ifindex));
}

/* Run on each copy. */
SEC("xdp.frags/devmap")
int trill_copy(struct xdp_md *ctx)
{
	const struct trill_fib *fib = current_fib();
	__u32 port = port_of(fib, ctx->egress_ifindex);
	enum trill_outcome outcome = port ? copy_to(ctx, fib, port) : TRILL_NO_PORT;

	if (outcome == TRILL_COPY_SENT && push_outer_tag(ctx, &fib->ports[port]))
		outcome = TRILL_PUSH_FAILED;
	count_and_tap(ctx, port, outcome);
	return outcome == TRILL_COPY_SENT || outcome == TRILL_COPY_DELIVERED ? XDP_PASS : XDP_DROP;
}

/* Run on each finished frame that leaves by a link whose Designated VLAN has a tag. */
SEC("xdp.frags/devmap")
int trill_outer_tag(struct xdp_md *ctx)
{
	const struct trill_fib *fib = current_fib();
	__u32 port = port_of(fib, ctx->egress_ifindex);

	if (!push_outer_tag(ctx, &fib->ports[port]))
		return XDP_PASS;
	count_and_tap(ctx, port, TRILL_PUSH_FAILED);
	return XDP_DROP;
}
