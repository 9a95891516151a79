/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/*
 * Measuring the shipped XDP programs. The kernel repeats a program on one buffer without resetting it, so each wrapper
 * first brings the frame back to what it was and then tail-calls the shipped program itself. With a target that only
 * pushes or pops, the same wrapper measures what the wrapper costs.
 */
#include "abi.h"
#include "lib/headers.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* The program under test, in slot 0. */
struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} target SEC(".maps");

/* Before the program under test changed it. */
const volatile struct frame_start start SEC(".rodata.start");

SEC("xdp.frags")
int bench_empty(struct xdp_md *ctx)
{
	return XDP_DROP;
}

INLINE int head_moves(struct xdp_md *ctx, int bytes)
{
	return bpf_xdp_adjust_head(ctx, bytes) ? XDP_ABORTED : XDP_DROP;
}

/* Targets that leave the restoring alone to be measured. */
SEC("xdp.frags") int bench_push_40(struct xdp_md *ctx) { return head_moves(ctx, -40); }
SEC("xdp.frags") int bench_pop_20(struct xdp_md *ctx) { return head_moves(ctx, 20); }
SEC("xdp.frags") int bench_push_50(struct xdp_md *ctx) { return head_moves(ctx, -50); }
SEC("xdp.frags") int bench_pop_50(struct xdp_md *ctx) { return head_moves(ctx, 50); }

/* A push and a pop: half of it is what the program under test spends on moving the head, and is its own cost. */
SEC("xdp.frags")
int bench_pair_40(struct xdp_md *ctx)
{
	return head_moves(ctx, -40) == XDP_DROP ? head_moves(ctx, 40) : XDP_ABORTED;
}

SEC("xdp.frags")
int bench_pair_20(struct xdp_md *ctx)
{
	return head_moves(ctx, 20) == XDP_DROP ? head_moves(ctx, -20) : XDP_ABORTED;
}

SEC("xdp.frags")
int bench_pair_50(struct xdp_md *ctx)
{
	return head_moves(ctx, -50) == XDP_DROP ? head_moves(ctx, 50) : XDP_ABORTED;
}

/* In pieces that the programs read back as wholes: anything else would make them wait for the memory pipeline. */
INLINE void restore_32(void *data, __u32 offset)
{
	*(__u32 *)(data + offset) = *(const volatile __u32 *)(start.bytes + offset);
}

INLINE void restore_eth(void *data)
{
	*(__u64 *)data = *(const volatile __u64 *)start.bytes;
	restore_32(data, 8);
	*(__u16 *)(data + 12) = *(const volatile __u16 *)(start.bytes + 12);
}

/* Encapsulation wrote over the 14 bytes that were the Ethernet header. */
SEC("xdp.frags")
int bench_encap(struct xdp_md *ctx)
{
	if (bpf_xdp_adjust_head(ctx, 40))
		return XDP_ABORTED;
	void *data = (void *)(long)ctx->data;
	if (data + ETH_LENGTH > (void *)(long)ctx->data_end)
		return XDP_ABORTED;
	restore_eth(data);
	bpf_tail_call(ctx, &target, 0);
	return XDP_ABORTED;
}

/* Decapsulation left neither Ethernet header nor outer IPv4 header, and took one off the TTL of the next. */
SEC("xdp.frags")
int bench_decap(struct xdp_md *ctx)
{
	if (bpf_xdp_adjust_head(ctx, -20))
		return XDP_ABORTED;
	void *data = (void *)(long)ctx->data;
	if (data + ETH_LENGTH + 2 * IPV4_LENGTH > (void *)(long)ctx->data_end)
		return XDP_ABORTED;
	restore_eth(data);
#pragma unroll
	for (__u32 word = 0; word < IPV4_LENGTH; word += 4)
		restore_32(data, ETH_LENGTH + word);
	restore_32(data, ETH_LENGTH + IPV4_LENGTH + 8);
	bpf_tail_call(ctx, &target, 0);
	return XDP_ABORTED;
}

/* VXLAN encapsulation wrote in front of the frame and left the frame itself alone. */
SEC("xdp.frags")
int bench_vxlan_encap(struct xdp_md *ctx)
{
	if (bpf_xdp_adjust_head(ctx, 50))
		return XDP_ABORTED;
	bpf_tail_call(ctx, &target, 0);
	return XDP_ABORTED;
}

/* VXLAN decapsulation left nothing of the outer headers. */
SEC("xdp.frags")
int bench_vxlan_decap(struct xdp_md *ctx)
{
	if (bpf_xdp_adjust_head(ctx, -50))
		return XDP_ABORTED;
	void *data = (void *)(long)ctx->data;
	if (data + 50 > (void *)(long)ctx->data_end)
		return XDP_ABORTED;
	restore_eth(data);
#pragma unroll
	for (__u32 word = ETH_LENGTH; word < 50; word += 4)
		restore_32(data, word);
	bpf_tail_call(ctx, &target, 0);
	return XDP_ABORTED;
}
