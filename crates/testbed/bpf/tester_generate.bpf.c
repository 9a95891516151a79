/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/*
 * The test centre's generator: user space lets the kernel run it on live frames, and every run sends one frame, or none if
 * none is due. The stamp is the last thing before the frame leaves.
 */
#include "histogram.h"
#include "probe.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

struct tester_generator tester_generator SEC(".data.generator") = {};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1); /* user space makes it as many as there are streams, for each length */
	__type(key, __u32);
	__type(value, struct tester_head);
} tester_heads SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, TESTER_TURNS);
	__type(key, __u32);
	__type(value, struct tester_turn);
} tester_turns SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1); /* user space makes it as many as there are frames that leave as they are */
	__type(key, __u32);
	__type(value, struct tester_frame);
} tester_frames SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_DEVMAP);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} tester_port_out SEC(".maps");

struct tester_gaps {
	__u64 histogram[TESTER_BUCKETS];
};

/* Times between frames. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct tester_gaps);
} tester_gaps SEC(".maps");

static int is_due(__u32 turn, void *due_ns)
{
	return bpf_ktime_get_ns() >= *(__u64 *)due_ns;
}

#define SPINS_MAX (1 << 16)

/*
 * Whether the next frame may go. Too early is answered by throwing the page back: the kernel asks again at once. Slow
 * rates spin here instead, because between two questions the kernel lets soft interrupts of others in.
 */
INLINE int may_send(struct tester_generator *g)
{
	__u64 now = bpf_ktime_get_ns();

	if (!g->began_ns) {
		/* The kernel takes some 20 ms before it runs us at all, and more when it is busy. */
		g->began_ns = now;
		g->end_ns = now + g->duration_ns;
	}
	if (now >= g->end_ns || g->sent >= g->limit)
		return 0;
	if (!g->interval)
		return 1;
	if (!g->due)
		g->due = now << 10;
	__u64 due_ns = g->due >> 10;
	if (now < due_ns) {
		g->polls++;
		if (!g->spin)
			return 0;
		bpf_loop(SPINS_MAX, is_due, &due_ns, 0);
		now = bpf_ktime_get_ns();
		if (now < due_ns || now >= g->end_ns)
			return 0;
	}
	if (now - due_ns > g->slip_ns) {
		/* The CPU was away. A burst to catch up would fill the queues of whatever is measured. */
		g->slips++;
		g->due = now << 10;
	}
	g->due += g->interval;
	return 1;
}

INLINE void count_gap(struct tester_generator *g, __u64 now)
{
	__u32 zero = 0;

	if (!g->sent) {
		g->first_ns = now;
	} else if (g->interval) {
		struct tester_gaps *gaps = bpf_map_lookup_elem(&tester_gaps, &zero);
		if (gaps)
			histogram_add(gaps->histogram, now - g->last_ns);
	}
	g->last_ns = now;
	g->sent++;
}

/* The next stream's turn; after the last one, the next sequence. */
INLINE void next_turn(struct tester_generator *g)
{
	g->stream++;
	if (g->stream >= g->streams) {
		g->stream = 0;
		g->sequence++;
	}
}

/*
 * A head of a length that the compiler knows, and where the probe goes; NULL where the frame has no room for both. All of it in
 * every frame: receivers change the pages, and the kernel hands them out again as they are.
 */
INLINE void *write_head(void *data, void *end, const void *head, __u32 bytes)
{
	if (data + bytes + PROBE_LENGTH > end)
		return NULL;
#pragma unroll
	for (__u32 at = 0; at + 8 <= bytes; at += 8)
		WORD64(data + at) = WORD64(head + at);
	if (bytes & 4)
		WORD32(data + (bytes & ~7)) = WORD32(head + (bytes & ~7));
	WORD16(data + bytes - 2) = WORD16(head + bytes - 2);
	return data + bytes;
}

INLINE void *write_head_of(void *data, void *end, const void *head, __u32 bytes)
{
	/* No switch: a compiler's search through its cases takes as long as writing the shortest of them. */
	if (bytes == 42)
		return write_head(data, end, head, 42);
	if (bytes == 46)
		return write_head(data, end, head, 46);
	return bytes == 62 ? write_head(data, end, head, 62) : write_head(data, end, head, 66);
}

/* `is_mixed` is known to the compiler: frames of one length do not pay for turns. */
INLINE int generate(struct xdp_md *ctx, int is_mixed)
{
	struct tester_generator *g = &tester_generator;
	__u32 stream = g->stream;
	__u32 number = stream;
	__u32 cut = 0;

	if (is_mixed) {
		/* Each stream is one turn further than the stream before it. */
		__u32 place = (g->sequence + stream) % g->turns;
		struct tester_turn *turn = bpf_map_lookup_elem(&tester_turns, &place);

		if (!turn)
			return XDP_ABORTED;
		number += turn->heads;
		cut = turn->cut;
	}
	struct tester_head *head = bpf_map_lookup_elem(&tester_heads, &number);
	if (!head)
		return XDP_ABORTED;
	if (!may_send(g))
		return XDP_DROP;
	/* The kernel gives the page its whole length back before it is sent again. */
	if (cut && bpf_xdp_adjust_tail(ctx, -(int)cut))
		return XDP_ABORTED;
	void *data = (void *)(long)ctx->data;
	void *end = (void *)(long)ctx->data_end;
	void *probe = write_head_of(data, end, head->bytes, g->head_bytes);
	if (!probe)
		return XDP_ABORTED;
	__u32 sequence = g->sequence;
	next_turn(g);
	__u64 now = bpf_ktime_get_ns();
	count_gap(g, now);
	probe_write(probe, stream, sequence, probe_stamp(g->seed, now, 0));
	return bpf_redirect_map(&tester_port_out, 0, 0);
}

SEC("xdp")
int tester_generate(struct xdp_md *ctx)
{
	return generate(ctx, 0);
}

SEC("xdp")
int tester_generate_mix(struct xdp_md *ctx)
{
	return generate(ctx, 1);
}

/* Frames as they are: streams are frames, and their sequence is the round. */
SEC("xdp")
int tester_replay(struct xdp_md *ctx)
{
	struct tester_generator *g = &tester_generator;
	__u32 number = g->stream;
	struct tester_frame *frame = bpf_map_lookup_elem(&tester_frames, &number);

	if (!frame)
		return XDP_ABORTED;
	if (!may_send(g))
		return XDP_DROP;
	if (frame->cut && bpf_xdp_adjust_tail(ctx, -(int)frame->cut))
		return XDP_ABORTED;
	__u64 bytes = frame->bytes;
	if (bytes > TESTER_FRAME_BYTES)
		return XDP_ABORTED;
	/* Both bounds in one comparison would say nothing to the verifier. */
	asm volatile("" : "+r"(bytes));
	if (bytes < ETH_LENGTH || bpf_xdp_store_bytes(ctx, 0, frame->data, bytes))
		return XDP_ABORTED;
	next_turn(g);
	count_gap(g, bpf_ktime_get_ns());
	return bpf_redirect_map(&tester_port_out, 0, 0);
}
