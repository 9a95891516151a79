/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/*
 * Measuring the TRILL programs, as bench.bpf.c measures the others: each wrapper brings the frame back to what it was
 * before the last run and tail-calls the program under test, or a target that leaves only the wrapper to be measured.
 */
#include "abi.h"
#include "lib/headers.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#define PUSHED 24 /* outer Ethernet, TRILL header, inner tag */

struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} target SEC(".maps");

const volatile struct frame_start start SEC(".rodata.start");

INLINE int head_moves(struct xdp_md *ctx, int bytes)
{
	return bpf_xdp_adjust_head(ctx, bytes) ? XDP_ABORTED : XDP_DROP;
}

SEC("xdp.frags") int bench_trill_nothing(struct xdp_md *ctx) { return XDP_DROP; }
SEC("xdp.frags") int bench_trill_push(struct xdp_md *ctx) { return head_moves(ctx, -PUSHED); }
SEC("xdp.frags") int bench_trill_pop(struct xdp_md *ctx) { return head_moves(ctx, PUSHED); }

/* A push and a pop: half of it is what ingress or egress spends on moving the head, and is its own cost. */
SEC("xdp.frags")
int bench_trill_pair(struct xdp_md *ctx)
{
	return head_moves(ctx, -PUSHED) == XDP_DROP ? head_moves(ctx, PUSHED) : XDP_ABORTED;
}

/* In pieces that the programs read back as wholes. */
#define RESTORE(type, offset) (*(type *)(data + (offset)) = *(const volatile type *)(start.bytes + (offset)))

INLINE void restore_macs(void *data, __u32 offset)
{
	RESTORE(__u64, offset);
	RESTORE(__u32, offset + 8);
}

INLINE void restore_header(void *data)
{
	restore_macs(data, 0);
	RESTORE(__u64, 12); /* a word that lies across the start's words, which the verifier allows here */
}

/* Transit wrote addresses and hop count. */
SEC("xdp.frags")
int bench_trill_transit(struct xdp_md *ctx)
{
	void *data = (void *)(long)ctx->data;

	if (data + 20 > (void *)(long)ctx->data_end)
		return XDP_ABORTED;
	restore_header(data);
	bpf_tail_call(ctx, &target, 0);
	return XDP_ABORTED;
}

/* Ingress put all before the Ethertype, and the tag over the end of the addresses. */
SEC("xdp.frags")
int bench_trill_ingress(struct xdp_md *ctx)
{
	if (bpf_xdp_adjust_head(ctx, PUSHED))
		return XDP_ABORTED;
	void *data = (void *)(long)ctx->data;
	if (data + ETH_LENGTH > (void *)(long)ctx->data_end)
		return XDP_ABORTED;
	restore_macs(data, 0);
	bpf_tail_call(ctx, &target, 0);
	return XDP_ABORTED;
}

/* Egress took all of it away. */
SEC("xdp.frags")
int bench_trill_egress(struct xdp_md *ctx)
{
	if (bpf_xdp_adjust_head(ctx, -PUSHED))
		return XDP_ABORTED;
	void *data = (void *)(long)ctx->data;
	if (data + 36 > (void *)(long)ctx->data_end)
		return XDP_ABORTED;
	restore_header(data);
	restore_macs(data, 20);
	RESTORE(__u16, 32);
	RESTORE(__u16, 34);
	bpf_tail_call(ctx, &target, 0);
	return XDP_ABORTED;
}
