/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/*
 * Copies of broadcast, multicast and unknown unicast (RFC 7348 4.2): to the other ports of the segment, to each VTEP of
 * its list or to its underlay group, within the segment's limits. What comes from a VTEP goes to ports only.
 */
#pragma once

#include "vxlan_tc_send.h"

/* Virtual times of the limits, by the slot of the segment. */
VTEP_MAP(vtep_clocks, ARRAY, 1024, __u32, struct vtep_clock);

INLINE int is_allowed(__u32 slot, int broadcast)
{
	struct vtep_limits *limits = bpf_map_lookup_elem(&vtep_limits, &slot);
	struct vtep_clock *clock = bpf_map_lookup_elem(&vtep_clocks, &slot);
	struct vtep_limit limit;
	int allowed;

	if (!limits || !clock)
		return 0;
	limit = broadcast ? limits->broadcast : limits->unknown;
	if (!limit.interval_ns)
		return 1;
	__u64 now = bpf_ktime_get_ns();
	bpf_spin_lock(&clock->lock);
	allowed = is_within(broadcast ? &clock->broadcast_ns : &clock->unknown_ns, &limit, now);
	bpf_spin_unlock(&clock->lock);
	return allowed;
}

/* A walk over the ports or VTEPs that a frame is copied to. */
struct copies {
	ctx_t *ctx;
	struct vtep_flood *flood;
	const struct inner *inner;
	__u32 vni;
	__u32 from; /* circuit that gets no copy */
	__u32 tagged;
	__u32 made;
};

INLINE void count_copy(struct copies *copies, long failed, enum vtep_event event)
{
	copies->made++;
	count_event(failed ? VTEP_EVENT_COPY_FAILED : event);
}

static long copy_to_port(__u32 turn, struct copies *copies)
{
	if (turn >= VTEP_FLOOD_PORTS)
		return 1;
	__u32 circuit = copies->flood->port[turn];
	__u32 index = circuit >> VTEP_VLAN_BITS;
	__u32 vlan = circuit & VTEP_VLAN_MASK;
	if (circuit == copies->from)
		return 0;
	struct vtep_port *port = bpf_map_lookup_elem(&vtep_ports, &index);
	/* The list may be about to change; the port itself knows best. */
	if (!port || segment_of(port, vlan) != copies->vni || (copies->tagged && !(port->flags & PORT_KEEPS_TAGS)))
		return 0;
	__u32 ifindex = port->ifindex;
	long failed = vlan && !put_tag(copies->ctx, vlan);
	failed = failed || bpf_clone_redirect(copies->ctx, ifindex, 0);
	if (vlan)
		bpf_skb_vlan_pop(copies->ctx);
	count_copy(copies, failed, VTEP_EVENT_COPIED_TO_PORT);
	return 0;
}

/* The frame is encapsulated; only what differs between the copies is written. */
static long copy_to_peer(__u32 turn, struct copies *copies)
{
	__u16 macs[6] = {};
	const struct inner *inner = copies->inner;
	struct bpf_fib_lookup route;
	struct ipv4_header ip;
	__u32 index;

	if (turn >= VTEP_FLOOD_REMOTES)
		return 1;
	__be32 peer = copies->flood->remote[turn];
	long missing = find_route(copies->ctx, inner, peer, 0, &route);
	if (missing && missing != BPF_FIB_LKUP_RET_NO_NEIGH) {
		count_copy(copies, 1, VTEP_EVENT_COPY_FAILED);
		return 0;
	}
	write_outer_ip(&ip, outer_tos(inner->carried.tos), inner->bytes + TUNNEL_LENGTH, peer);
	/* In pairs of bytes: that is how much of the stack is aligned. */
	for (int pair = 0; pair < 3 && !missing; pair++) {
		macs[pair] = ((__u16 *)route.dmac)[pair];
		macs[pair + 3] = ((__u16 *)route.smac)[pair];
	}
	long failed = bpf_skb_store_bytes(copies->ctx, 0, macs, sizeof(macs), 0) ||
		      bpf_skb_store_bytes(copies->ctx, ETH_LENGTH, &ip, sizeof(ip), 0);
	if (!failed && missing) {
		copies->ctx->mark = VTEP_MARK;
		failed = bpf_clone_redirect(copies->ctx, vtep_uplink_ifindex, BPF_F_INGRESS);
		copies->ctx->mark = 0;
	} else if (!failed) {
		failed = bpf_clone_redirect(copies->ctx, route.ifindex, 0);
	}
	count_copy(copies, failed, VTEP_EVENT_COPIED_TO_PEER);
	if (!failed && peer_of(peer, &index))
		count_sent(&vtep_peer_traffic, index, inner->bytes);
	return 0;
}

INLINE void copy_to_ports(struct copies *copies)
{
	__u32 ports = copies->flood->ports;

	bpf_loop(ports < VTEP_FLOOD_PORTS ? ports : VTEP_FLOOD_PORTS, copy_to_port, copies, 0);
}

/* From a circuit: copies to everybody, and the frame itself ends here. `group`: instead of the list of VTEPs. */
INLINE enum vtep_outcome flood(ctx_t *ctx, const struct inner *inner, __u32 from, __be32 group, struct way *way)
{
	struct copies copies = { .ctx = ctx, .inner = inner, .vni = inner->vni, .from = from, .tagged = inner->tag };
	__u32 vni = inner->vni;

	copies.flood = bpf_map_lookup_elem(&vtep_floods, &vni);
	if (!copies.flood)
		return VTEP_NO_RECEIVER;
	copy_to_ports(&copies);
	__u32 remotes = copies.flood->remotes;
	if (!remotes && !group)
		return copies.made ? VTEP_FLOODED : VTEP_NO_RECEIVER;
	if (inner->bytes + TUNNEL_LENGTH > 0xffff)
		return VTEP_TOO_BIG;
	if (!open_gap(ctx, inner) || !write_headers(ctx, inner, group))
		return VTEP_PUSH_FAILED;
	if (group) {
		/* The original goes: on its second way in it is IPv4 for the kernel, whatever is inside. */
		wait_for_neighbour(ctx, way);
		count_event(VTEP_EVENT_COPIED_TO_PEER);
		return VTEP_FLOODED;
	}
	bpf_loop(remotes < VTEP_FLOOD_REMOTES ? remotes : VTEP_FLOOD_REMOTES, copy_to_peer, &copies, 0);
	return VTEP_FLOODED;
}

/* From a VTEP: to ports, and nowhere else. The frame is decapsulated. */
INLINE enum vtep_outcome flood_locally(ctx_t *ctx, __u32 vni, int tagged)
{
	struct copies copies = { .ctx = ctx, .vni = vni, .from = VTEP_NOWHERE, .tagged = tagged };

	copies.flood = bpf_map_lookup_elem(&vtep_floods, &vni);
	if (!copies.flood)
		return VTEP_NO_RECEIVER;
	copy_to_ports(&copies);
	if (copies.made)
		return VTEP_FLOODED_LOCALLY;
	return tagged ? VTEP_TAGGED : VTEP_NO_RECEIVER;
}
