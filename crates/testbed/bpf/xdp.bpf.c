/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/*
 * The packet-rate variants: the bodies of the TC programs on XDP, with the next hop in a map instead of the kernel's
 * routes. All take multi-buffer frames: a program that does not would cap the MTU of its link.
 */
#include "../../datapath/bpf/lib/ctx_xdp.h"
#include "../../datapath/bpf/lib/vl2_decap.h"
#include "testbed_abi.h"
/* One hash for a flow's life. */
#define ctx_salt(ip, end, length) 0

#include "../../datapath/bpf/lib/vl2_encap.h"

#define PORTS_MAX 64

char LICENSE[] SEC("license") = "Dual BSD/GPL";

const volatile struct switch_constants switch_config SEC(".rodata.switch");

struct {
	__uint(type, BPF_MAP_TYPE_DEVMAP);
	__uint(max_entries, PORTS_MAX);
	__type(key, __u32);
	__type(value, __u32);
} ports SEC(".maps");

/* All next hops. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__type(key, __be32);
	__type(value, struct next_hop);
} la_route SEC(".maps");

/*
 * Next hops by the low bits of the LA. LAs are few and dense (4.2.1), so nearly all of them find a slot of their own and
 * cost an array access; a hash look-up is half of what such a program costs.
 */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, ROUTE_SLOTS);
	__type(key, __u32);
	__type(value, struct route_slot);
} la_slots SEC(".maps");

/* What routing says about a frame: no port, or the port and the frame already rewritten for it. */
#define NO_PORT 0xffffffff

INLINE struct next_hop *next_hop_towards(__be32 la)
{
	__u32 index = bpf_ntohl(la) & (ROUTE_SLOTS - 1);
	struct route_slot *slot = bpf_map_lookup_elem(&la_slots, &index);

	if (slot && slot->la == la)
		return &slot->next;
	return bpf_map_lookup_elem(&la_route, &la);
}

/* `hop`: this is a router's hop, which costs one TTL; otherwise the packet is still or again on its layer 2. */
INLINE __u32 route(ctx_t *ctx, int hop)
{
	struct cursor cursor = ctx_cursor(ctx);
	struct eth_header *eth;
	struct ipv4_header *ip;

	if (!parse_eth(&cursor, &eth) || !parse_ipv4(&cursor, &ip) || (hop && ip->ttl <= 1))
		return NO_PORT;
	struct next_hop *next = next_hop_towards(ip->destination);
	if (!next)
		return NO_PORT;
	if (hop)
		decrement_ttl(ip);
	copy_mac(eth->destination, next->destination);
	copy_mac(eth->source, next->source);
	return next->port;
}

/* Of a frame that is not sent from here. */
INLINE int encap_verdict(enum host_outcome outcome)
{
	switch (outcome) {
	case HOST_REFUSED:
	case HOST_BROADCAST_UNSUPPORTED:
	case HOST_MALFORMED:
	case HOST_PUSH_FAILED:
		return XDP_DROP;
	default:
		return XDP_PASS;
	}
}

SEC("xdp.frags")
int vl2_encap(struct xdp_md *ctx)
{
	enum host_outcome outcome = HOST_MALFORMED;
	struct cursor cursor = ctx_cursor(ctx);
	struct eth_header *eth;

	if (parse_eth(&cursor, &eth))
		outcome = eth->type == bpf_htons(ETHERTYPE_IPV4) ? vl2_encapsulate(ctx, cursor) : HOST_PASSED;
	if (outcome == HOST_ENCAPSULATED || outcome == HOST_RACK_DIRECT) {
		__u32 port = route(ctx, 0);

		if (port != NO_PORT) {
			count(&host_counters, outcome);
			return bpf_redirect_map(&ports, port, 0);
		}
		outcome = HOST_NO_ROUTE;
	}
	count(&host_counters, outcome);
	return encap_verdict(outcome);
}

INLINE int decap_verdict(enum switch_outcome outcome, __u32 port)
{
	switch (outcome) {
	case SWITCH_DECAPSULATED:
	case SWITCH_DELIVERED:
		return bpf_redirect_map(&ports, port, 0);
	case SWITCH_PASSED:
	case SWITCH_NO_ROUTE:
		return XDP_PASS;
	default:
		return XDP_DROP;
	}
}

SEC("xdp.frags")
int vl2_decap(struct xdp_md *ctx)
{
	__u32 port = NO_PORT;
	enum switch_outcome outcome = vl2_decapsulate(ctx);

	if (outcome == SWITCH_DECAPSULATED) {
		port = route(ctx, !switch_config.is_tor);
		if (switch_config.is_tor)
			outcome = port == NO_PORT ? SWITCH_NO_SUCH_HOST : SWITCH_DELIVERED;
		else if (port == NO_PORT)
			outcome = SWITCH_NO_ROUTE;
	}
	count(&switch_counters, outcome);
	return decap_verdict(outcome, port);
}
