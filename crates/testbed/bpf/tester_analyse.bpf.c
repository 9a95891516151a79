/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/*
 * The test centre's analyser: XDP on the receiving port. Frames with a probe end here and are counted; all else (BPDUs,
 * ARP, the user's own traffic) goes on to the kernel.
 */
#include "histogram.h"
#include "probe.h"

#define ETHERTYPE_VLAN 0x8100
#define ETHERTYPE_IPV6 0x86dd
#define IPV6_LENGTH 40
#define VLAN_MASK 0x0fff
#define WINDOW_BITS 64
#define PATTERN_FACTOR 0x9e3779b97f4a7c15ULL

char LICENSE[] SEC("license") = "Dual BSD/GPL";

struct tester_analyser tester_analyser SEC(".data.analyser") = {};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1); /* user space makes it as many as there are streams */
	__type(key, __u32);
	__type(value, struct tester_stream);
} tester_streams SEC(".maps");

/* Per CPU, so that frames of one stream on two CPUs are never lost to a race between two counters. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct tester_seen);
} tester_seen SEC(".maps");

/* A port's numbers and its histogram of latencies. */
struct counted_port {
	struct tester_port port;
	__u64 histogram[TESTER_BUCKETS];
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct counted_port);
} tester_port SEC(".maps");

/* Where a frame's probe is, and which VLAN the frame is in. */
struct found {
	void *probe;
	__u32 vlan;
};

INLINE struct found find(void *data, void *end)
{
	struct found found = {};
	void *ip = data + ETH_LENGTH;

	if (data + 42 + PROBE_LENGTH > end)
		return found;
	if (WORD16(data + 12) == bpf_htons(ETHERTYPE_VLAN)) {
		if (data + 46 + PROBE_LENGTH > end)
			return found;
		found.vlan = host16(WORD16(data + 14)) & VLAN_MASK;
		ip += 4;
	}
	__be16 type = WORD16(ip - 2);
	void *probe = ip + IPV4_LENGTH + 8;
	if (type != bpf_htons(ETHERTYPE_IPV4) || *(__u8 *)ip != IPV4_NO_OPTIONS) {
		probe = ip + IPV6_LENGTH + 8;
		if (type != bpf_htons(ETHERTYPE_IPV6) || *(__u8 *)ip >> 4 != 6 || probe + PROBE_LENGTH > end)
			return found;
	}
	if (WORD16(probe) == bpf_htons(PROBE_MAGIC))
		found.probe = probe;
	return found;
}

/* A walk over the pattern. Loops are the kernel's: unrolled, the verifier would look at every length there can be. */
struct walk {
	struct xdp_md *ctx;
	__u32 at; /* offset in the frame */
	__u32 wrong;
	__u64 expected;
	__u64 step;
};

#define OFFSET_MASK 0x3fff /* frames are shorter; the verifier must see it */

INLINE void *walk_to(struct walk *walk, __u32 bytes)
{
	void *at = (void *)(long)walk->ctx->data + (walk->at & OFFSET_MASK);

	return at + bytes <= (void *)(long)walk->ctx->data_end ? at : NULL;
}

static int check_words8(__u32 turn, struct walk *walk)
{
	void *at = walk_to(walk, 64);
	__u64 expected = walk->expected;
	__u64 difference = 0;

	if (!at)
		return 1;
#pragma unroll
	for (int word = 0; word < 8; word++) {
		difference |= WORD64(at + 8 * word) ^ expected;
		expected += walk->step;
	}
	walk->expected = expected;
	walk->at += 64;
	walk->wrong |= difference != 0;
	return difference != 0;
}

static int check_word(__u32 turn, struct walk *walk)
{
	void *at = walk_to(walk, 8);

	if (!at)
		return 1;
	walk->wrong |= WORD64(at) != walk->expected;
	walk->expected += walk->step;
	walk->at += 8;
	return walk->wrong != 0;
}

static int check_byte(__u32 turn, struct walk *walk)
{
	void *at = walk_to(walk, 1);

	if (!at)
		return 1;
	walk->wrong |= *(__u8 *)at != (__u8)walk->expected;
	walk->expected >>= 8;
	walk->at += 1;
	return walk->wrong != 0;
}

/*
 * Compares what is behind the probe, as far as the UDP header says (padding is nobody's) and as far as the frame's first
 * buffer goes.
 */
INLINE int pattern_is_right(struct xdp_md *ctx, void *probe, __u32 seed)
{
	void *data = (void *)(long)ctx->data;
	void *end = (void *)(long)ctx->data_end;
	__u32 at = probe - data + PROBE_LENGTH;
	__u32 bytes = end - data - at;
	__u32 payload = host16(WORD16(probe - 4)) - 8 - PROBE_LENGTH;
	__u64 step = PATTERN_FACTOR * (2 * (__u64)seed + 1);
	struct walk walk = { .ctx = ctx, .at = at, .expected = step, .step = step };

	/* A header that says less than a probe is wrong in itself; as unsigned it says a lot. */
	if (payload < bytes)
		bytes = payload;
	bytes &= OFFSET_MASK;
	if (bytes >= 64)
		bpf_loop(bytes >> 6, check_words8, &walk, 0);
	if (!walk.wrong && bytes & 56)
		bpf_loop((bytes >> 3) & 7, check_word, &walk, 0);
	if (!walk.wrong && bytes & 7)
		bpf_loop(bytes & 7, check_byte, &walk, 0);
	return !walk.wrong;
}

/* Where the frame stands in its stream's order (RFC 4737), by a window over the newest 64 numbers. */
INLINE void count_order(struct tester_stream *stream, struct tester_seen *seen, __u32 sequence)
{
	__u32 next = stream->next;

	if (sequence >= next) {
		__u32 ahead = sequence - next + 1;

		stream->window = (ahead >= WINDOW_BITS ? 0 : stream->window << (ahead & 63)) | 1;
		stream->next = sequence + 1;
		seen->received++;
		return;
	}
	__u32 back = next - 1 - sequence;
	if (back >= WINDOW_BITS) {
		seen->stale++;
		return;
	}
	__u64 bit = 1ULL << (back & 63);
	seen->received++;
	if (stream->window & bit)
		seen->duplicated++;
	else
		seen->reordered++;
	stream->window |= bit;
}

INLINE void count_latency(struct counted_port *counted, struct tester_stream *stream, __u64 latency)
{
	struct tester_port *port = &counted->port;
	__u64 previous = stream->latency_ns;

	port->latency_sum_ns += latency;
	if (latency > port->latency_max_ns)
		port->latency_max_ns = latency;
	if (previous != ~0ULL) {
		port->jitter_sum_ns += latency > previous ? latency - previous : previous - latency;
		port->jitter_count++;
	}
	stream->latency_ns = latency;
	histogram_add(counted->histogram, latency);
}

INLINE void begin_trial(struct tester_stream *stream, __u32 trial)
{
	stream->window = 0;
	stream->latency_ns = ~0ULL;
	stream->next = 0;
	stream->trial = trial;
}

INLINE void clear_seen(struct tester_seen *seen, __u32 trial)
{
	__builtin_memset(seen, 0, sizeof(*seen));
	seen->trial = trial;
}

INLINE __u64 station_of(void *data, __u32 vlan)
{
	__u64 mac = (__u64)bpf_ntohl(WORD32(data)) << 16 | host16(WORD16(data + 4));

	return mac << 16 | vlan;
}

SEC("xdp.frags")
int tester_analyse(struct xdp_md *ctx)
{
	__u64 now = bpf_ktime_get_ns();
	struct tester_analyser *config = &tester_analyser;
	void *data = (void *)(long)ctx->data;
	void *end = (void *)(long)ctx->data_end;
	struct found found = find(data, end);
	void *probe = found.probe;
	__u32 zero = 0;

	if (!probe || probe + PROBE_LENGTH > end)
		return XDP_PASS;
	struct counted_port *counted = bpf_map_lookup_elem(&tester_port, &zero);
	if (!counted)
		return XDP_PASS;
	struct tester_port *port = &counted->port;
	if (!probe_is_whole(probe)) {
		port->damaged++;
		return XDP_DROP;
	}
	__u64 stamp = PROBE_STAMP(probe);
	__u32 seed = stamp >> 56;
	if (seed != config->seed) {
		port->earlier++;
		return XDP_DROP;
	}
	__u32 number = host16(WORD16(probe + 2));
	struct tester_stream *stream = bpf_map_lookup_elem(&tester_streams, &number);
	struct tester_seen *seen = bpf_map_lookup_elem(&tester_seen, &number);
	if (!stream || !seen || number >= config->streams) {
		port->unknown++;
		return XDP_DROP;
	}
	__u32 trial = config->trial;
	if (seen->trial != trial)
		clear_seen(seen, trial);
	if (stream->trial != trial)
		begin_trial(stream, trial);
	if (stream->station != station_of(data, found.vlan)) {
		seen->misdelivered++;
		return XDP_DROP;
	}
	__u32 sequence = bpf_ntohl(WORD32(probe + 4));
	if (!(sequence & config->payload_mask) && !pattern_is_right(ctx, probe, seed)) {
		seen->corrupt++;
		return XDP_DROP;
	}
	if (!port->frames)
		port->first_ns = now;
	port->last_ns = now;
	port->frames++;
	port->bytes += end - data;
	count_order(stream, seen, sequence);
	__u64 sent = stamp >> 16 & PROBE_TIME_MASK;
	__u64 delay = (stamp & PROBE_DELAY_MAX) << PROBE_DELAY_UNIT_SHIFT;
	count_latency(counted, stream, ((now - sent) & PROBE_TIME_MASK) + delay);
	return XDP_DROP;
}
