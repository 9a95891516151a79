/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/*
 * What measuring an XDP program takes. The kernel repeats a program on one buffer without resetting it, so each wrapper
 * first brings the frame back to what it was and then tail-calls the program under test itself. With a target that only
 * pushes or pops, the same wrapper measures what the wrapper costs.
 */
#pragma once

#include "../../datapath/bpf/lib/headers.h"
#include "testbed_abi.h"

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

INLINE int head_moves(struct xdp_md *ctx, int bytes)
{
	return bpf_xdp_adjust_head(ctx, bytes) ? XDP_ABORTED : XDP_DROP;
}

/* Half of it is what the program under test spends on moving the head, and is its own cost. */
INLINE int head_moves_and_returns(struct xdp_md *ctx, int bytes)
{
	return head_moves(ctx, bytes) == XDP_DROP ? head_moves(ctx, -bytes) : XDP_ABORTED;
}

/* In pieces that the programs read back as wholes: anything else would make them wait for the memory pipeline. */
#define RESTORE(type, offset) (*(type *)(data + (offset)) = *(const volatile type *)(start.bytes + (offset)))

INLINE void restore_macs(void *data, __u32 offset)
{
	RESTORE(__u64, offset);
	RESTORE(__u32, offset + 8);
}

INLINE int run_target(struct xdp_md *ctx)
{
	bpf_tail_call(ctx, &target, 0);
	return XDP_ABORTED;
}
