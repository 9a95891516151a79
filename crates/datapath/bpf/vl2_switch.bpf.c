/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/*
 * VL2 switches in the kernel: TC ingress of every port. Both ask the kernel's routes (OSPF's, ECMP). The Intermediate
 * takes a header off and sends the packet on as a router does, only without the way through the stack. The ToR takes the
 * last header off and sends the server's packet out of a host port, not as a router, because a virtual layer 2 has no
 * hops: TTL and everything else arrive as sent. What its own servers send it forwards like the Intermediate, if it is
 * theirs to send.
 */
#include "lib/ctx_tc.h"
#include "lib/vl2_server.h"

#define HOST_PORTS_MAX 1024
#define PACKET_TO_US 0 /* addressed to the port's own MAC */

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* Interfaces of a ToR that lead to servers. Nothing that was inside an encapsulation goes anywhere else. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, HOST_PORTS_MAX);
	__type(key, __u32);
	__type(value, __u32);
} host_ports SEC(".maps");

/* For `weft node tor`, which tells the directory. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, STALE_SAMPLES_BYTES);
} stale_samples SEC(".maps");

/* Keeps the struct in the object's type information. */
const struct stale_sample *stale_sample_type __attribute__((unused));

/*
 * When a pair of AAs was last sampled; pairs that share a slot share its turn. A stale agent may send a million packets a
 * second, and one sample is enough until it can have been corrected.
 */
#define SAMPLE_SLOTS_LOG2 10
#define SAMPLE_INTERVAL_NS 1000000

__u64 sampled_at_ns[1 << SAMPLE_SLOTS_LOG2];

/* What a router forwards without a second thought (RFC 1812 5.2); the stack knows what to answer to the rest. */
INLINE int is_simple_transit(ctx_t *ctx, const struct ipv4_header *ip)
{
	return ctx->pkt_type == PACKET_TO_US && ip->version_ihl == IPV4_NO_OPTIONS && ip->ttl > 1 &&
	       !is_multicast_or_broadcast(ip->destination) && ipv4_checksum_is_right(ip);
}

/*
 * A router's hop for an encapsulated packet: the Intermediate's second half, and what a ToR does with its servers'
 * packets. Whatever is out of the ordinary is left to the stack, whole, as `otherwise` says.
 */
INLINE enum switch_outcome forward(ctx_t *ctx, struct hop *hop, enum switch_outcome otherwise)
{
	struct cursor cursor = ctx_cursor(ctx);
	struct eth_header *eth;
	struct ipv4_header *ip;

	if (!parse_eth(&cursor, &eth) || !parse_ipv4(&cursor, &ip))
		return otherwise;
	if (eth->type != bpf_htons(ETHERTYPE_IPV4) || ip->protocol != PROTOCOL_IPIP)
		return otherwise;
	if (!is_simple_transit(ctx, ip) || find_route(ctx, ip, hop))
		return otherwise;
	decrement_ttl(ip);
	return SWITCH_FORWARDED;
}

/* Keeps the packet's ends for the reporter, once in a while for each pair. */
INLINE void sample_stale(const struct ipv4_header *ip)
{
	struct stale_sample sample = { ip->destination, ip->source };
	__u32 hash = bpf_ntohl(ip->destination) * 0x85ebca6bU ^ bpf_ntohl(ip->source) * 0x9e3779b1U;
	__u64 *last = &sampled_at_ns[hash >> (32 - SAMPLE_SLOTS_LOG2)];
	__u64 now = bpf_ktime_get_ns();

	if (now - *last < SAMPLE_INTERVAL_NS)
		return;
	*last = now;
	bpf_ringbuf_output(&stale_samples, &sample, sizeof(sample), 0);
}

/* The ToR's second half: out of a host port or nowhere. */
INLINE enum switch_outcome deliver(ctx_t *ctx, struct hop *hop)
{
	struct cursor cursor = ctx_cursor(ctx);
	struct eth_header *eth;
	struct ipv4_header *ip;

	if (!parse_eth(&cursor, &eth) || !parse_ipv4(&cursor, &ip))
		return SWITCH_MALFORMED;
	if (is_hash_source(ip->source)) /* no server's */
		return SWITCH_MADE_UP_HEADER;
	long missing = find_route(ctx, ip, hop);
	if (missing == BPF_FIB_LKUP_RET_FRAG_NEEDED)
		return SWITCH_TOO_BIG;
	if (missing || !bpf_map_lookup_elem(&host_ports, &hop->ifindex)) {
		sample_stale(ip);
		return SWITCH_NO_SUCH_HOST;
	}
	return SWITCH_DELIVERED;
}

INLINE int switch_verdict(enum switch_outcome outcome, struct hop *hop)
{
	switch (outcome) {
	case SWITCH_PASSED:
	case SWITCH_DECAPSULATED:
		return VERDICT_NEXT;
	case SWITCH_FORWARDED:
	case SWITCH_DELIVERED:
		return bpf_redirect_neigh(hop->ifindex, &hop->next, sizeof(hop->next), 0);
	default:
		return TC_ACT_SHOT;
	}
}

SEC("tcx/ingress")
int vl2_int_decap(struct __sk_buff *ctx)
{
	struct hop hop = {};
	enum switch_outcome outcome = vl2_decapsulate(ctx);

	if (outcome == SWITCH_DECAPSULATED)
		outcome = forward(ctx, &hop, SWITCH_DECAPSULATED);
	count(&switch_counters, outcome);
	return switch_verdict(outcome, &hop);
}

INLINE enum switch_outcome tor(ctx_t *ctx, struct hop *hop)
{
	enum switch_outcome outcome = vl2_decapsulate(ctx);

	if (outcome == SWITCH_DECAPSULATED)
		return deliver(ctx, hop);
	return outcome == SWITCH_PASSED ? forward(ctx, hop, SWITCH_PASSED) : outcome;
}

/* At ports to other switches. */
SEC("tcx/ingress")
int vl2_tor_decap(struct __sk_buff *ctx)
{
	struct hop hop = {};
	enum switch_outcome outcome = tor(ctx, &hop);

	count(&switch_counters, outcome);
	return switch_verdict(outcome, &hop);
}

/* At ports to servers. */
SEC("tcx/ingress")
int vl2_tor_server(struct __sk_buff *ctx)
{
	struct hop hop = {};
	enum switch_outcome outcome = check_server(ctx);

	if (outcome == SWITCH_PASSED)
		outcome = tor(ctx, &hop);
	count(&switch_counters, outcome);
	return switch_verdict(outcome, &hop);
}
