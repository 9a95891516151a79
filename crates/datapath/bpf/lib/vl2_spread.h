/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/*
 * Other paths for flows that are under way (VL2 4.2.2): the sender's host sees every segment of a TCP connection, so it sees
 * losses as bytes that are sent again, and pauses. A new salt in the flow hash lets every switch choose anew.
 *
 * - Re-hash: a large flow that repeats bytes, once its last choice is `hold_ns` old. After a pause of that length it was a
 *   timeout, the paper's loss of a full window, and the flow moves. Otherwise it moves with one chance in two: those that
 *   collide lose at about the same time, and should not all leave. Under the rule of timeouts it stays.
 * - Flowlets: any flow that sends again after a pause of `hold_ns`.
 */
#pragma once

#include "hash.h"
#include "outcome.h"

/* Set before load; without a rule the verifier takes everything here out of the program. */
const volatile struct spread_constants spread_config SEC(".rodata.spread");

/* The five-tuple; the protocol is TCP. */
struct flow_key {
	__be32 source;
	__be32 destination;
	__u32 ports;
};

struct flow_state {
	__u64 sent_bytes;
	__u64 sent_ns;    /* when it last sent payload */
	__u64 chosen_ns;  /* when its path was last chosen, or kept in spite of a loss */
	__u32 next;       /* sequence number behind the highest byte sent */
	__u32 salt;
};

/* Size set before load. Two CPUs that send for one connection may lose an update; then a loss is seen a little later. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, struct flow_key);
	__type(value, struct flow_state);
} flow_map SEC(".maps");

COUNTERS(spread_counters, SPREAD_OUTCOME_COUNT);

struct tcp_segment {
	__u32 sequence;
	__u32 payload_bytes;
	int is_syn;
};

/* 0 if it is no TCP with its header in reach. `length`: of the packet, or of all packets of a super frame. */
INLINE int read_segment(const struct ipv4_header *ip, const void *end, __u32 length, struct tcp_segment *segment)
{
	__u32 header_length = ipv4_header_length(ip);
	const __u8 *tcp = (const void *)ip + header_length;

	if (ip->protocol != PROTOCOL_TCP || (ip->fragment & bpf_htons(IPV4_FRAGMENT_MASK)))
		return 0;
	if ((const void *)(tcp + 20) > end)
		return 0;
	header_length += (tcp[12] >> 4) * 4;
	segment->sequence = bpf_ntohl(*(const __be32 *)(tcp + 4));
	segment->payload_bytes = length > header_length ? length - header_length : 0;
	segment->is_syn = tcp[13] & 2;
	return 1;
}

/* Whether the flow moves, and the sequence number that follows. */
INLINE enum spread_outcome spread_segment(struct flow_state *flow, const struct tcp_segment *segment, __u64 now_ns)
{
	int paused = now_ns - flow->sent_ns >= spread_config.hold_ns;
	__u32 next = segment->sequence + segment->payload_bytes;
	int repeats = (__s32)(segment->sequence - flow->next) < 0;

	flow->sent_ns = now_ns;
	flow->sent_bytes += segment->payload_bytes;
	if ((__s32)(next - flow->next) > 0)
		flow->next = next;
	if (spread_config.rule == SPREAD_RULE_FLOWLETS)
		return paused ? SPREAD_MOVED_AFTER_PAUSE : SPREAD_KEPT;
	if (!repeats || flow->sent_bytes < spread_config.large_bytes)
		return SPREAD_KEPT;
	if (now_ns - flow->chosen_ns < spread_config.hold_ns)
		return SPREAD_KEPT;
	flow->chosen_ns = now_ns;
	if (paused)
		return SPREAD_MOVED_AFTER_STALL;
	if (spread_config.rule == SPREAD_RULE_TIMEOUTS)
		return SPREAD_STAYED_AFTER_LOSS;
	return bpf_get_prandom_u32() & 1 ? SPREAD_MOVED_AFTER_LOSS : SPREAD_STAYED_AFTER_LOSS;
}

/* What the flow hash of this packet is changed by; 0 for a flow that never moved. */
INLINE __u32 spread_salt(const struct ipv4_header *ip, const void *end, __u32 length)
{
	struct tcp_segment segment;
	struct flow_key key = { ip->source, ip->destination, flow_ports(ip, end) };

	if (spread_config.rule == SPREAD_RULE_NONE || !read_segment(ip, end, length, &segment))
		return 0;
	__u64 now_ns = bpf_ktime_get_ns();
	struct flow_state *flow = segment.is_syn ? NULL : bpf_map_lookup_elem(&flow_map, &key);
	if (!flow) {
		struct flow_state begun = {
			.sent_ns = now_ns,
			.chosen_ns = now_ns,
			.next = segment.sequence + segment.payload_bytes + (segment.is_syn ? 1 : 0),
		};

		bpf_map_update_elem(&flow_map, &key, &begun, BPF_ANY);
		return 0;
	}
	if (segment.payload_bytes == 0)
		return flow->salt;
	enum spread_outcome outcome = spread_segment(flow, &segment, now_ns);
	if (outcome >= SPREAD_MOVED_AFTER_LOSS)
		flow->salt = bpf_get_prandom_u32();
	count(&spread_counters, outcome);
	return flow->salt;
}
