/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/* Measuring the TRILL programs. */
#include "bench.h"

#define PUSHED 24 /* outer Ethernet, TRILL header, inner tag */

SEC("xdp.frags") int bench_trill_nothing(struct xdp_md *ctx) { return XDP_DROP; }
SEC("xdp.frags") int bench_trill_push(struct xdp_md *ctx) { return head_moves(ctx, -PUSHED); }
SEC("xdp.frags") int bench_trill_pop(struct xdp_md *ctx) { return head_moves(ctx, PUSHED); }
SEC("xdp.frags") int bench_trill_pair(struct xdp_md *ctx) { return head_moves_and_returns(ctx, -PUSHED); }

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
	return run_target(ctx);
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
	return run_target(ctx);
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
	return run_target(ctx);
}
