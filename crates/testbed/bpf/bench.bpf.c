/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/* Measuring the XDP programs of VXLAN and the TC programs of VL2. */
#include <linux/pkt_cls.h>

#include "bench.h"

SEC("xdp.frags") int bench_empty(struct xdp_md *ctx) { return XDP_DROP; }
SEC("tcx/ingress") int bench_empty_tc(struct __sk_buff *ctx) { return TC_ACT_SHOT; }

/* Targets that leave the restoring alone to be measured. */
SEC("xdp.frags") int bench_push_50(struct xdp_md *ctx) { return head_moves(ctx, -50); }
SEC("xdp.frags") int bench_pop_50(struct xdp_md *ctx) { return head_moves(ctx, 50); }

SEC("xdp.frags") int bench_pair_50(struct xdp_md *ctx) { return head_moves_and_returns(ctx, -50); }

INLINE void restore_eth(void *data)
{
	restore_macs(data, 0);
	RESTORE(__u16, 12);
}

/* VXLAN encapsulation wrote in front of the frame and left the frame itself alone. */
SEC("xdp.frags")
int bench_vxlan_encap(struct xdp_md *ctx)
{
	return bpf_xdp_adjust_head(ctx, 50) ? XDP_ABORTED : run_target(ctx);
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
		RESTORE(__u32, word);
	return run_target(ctx);
}
