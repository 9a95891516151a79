/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/*
 * A network that loses: a share of the UDP datagrams to one port is dropped where they come in, and of those from it
 * where they leave; or everything that comes in, whatever programs stand behind. For measurements of what losses do; this
 * kernel family often comes without netem.
 *
 * A burst that the sender put into one super frame is lost whole.
 */
#include "../../datapath/bpf/lib/ctx_tc.h"
#include "../../datapath/bpf/lib/outcome.h"
#include "testbed_abi.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#define IP_PROTOCOL_UDP 17

const volatile struct loss_constants loss SEC(".rodata.loss");

COUNTERS(loss_counters, LOSS_OUTCOME_COUNT);

/* Whether the frame is a UDP datagram with this port at this offset of the UDP header. */
INLINE int is_ours(ctx_t *ctx, __u32 port_offset)
{
	struct cursor cursor = ctx_cursor(ctx);
	struct eth_header *eth;
	struct ipv4_header *ip;
	__be16 port;

	if (!parse_eth(&cursor, &eth) || !parse_ipv4(&cursor, &ip))
		return 0;
	if (eth->type != bpf_htons(ETHERTYPE_IPV4) || ip->protocol != IP_PROTOCOL_UDP || ip->version_ihl != IPV4_NO_OPTIONS)
		return 0;
	if (bpf_skb_load_bytes(ctx, sizeof(*eth) + sizeof(*ip) + port_offset, &port, sizeof(port)))
		return 0;
	return port == loss.port;
}

INLINE int lose(ctx_t *ctx, __u32 port_offset)
{
	enum loss_outcome outcome = LOSS_PASSED;

	if (is_ours(ctx, port_offset))
		outcome = bpf_get_prandom_u32() < loss.threshold ? LOSS_LOST : LOSS_SPARED;
	count(&loss_counters, outcome);
	return outcome == LOSS_LOST ? TC_ACT_SHOT : VERDICT_NEXT;
}

SEC("tcx/ingress")
int lose_incoming(struct __sk_buff *ctx)
{
	return lose(ctx, 2); /* destination port */
}

SEC("tcx/egress")
int lose_outgoing(struct __sk_buff *ctx)
{
	return lose(ctx, 0); /* source port */
}

/* Frames that everything took; one core sends where they are read, so nothing is lost between reading and writing. */
__u64 loss_taken SEC(".data.taken") = 0;

/* A link that is silent, up and nothing comes; or the end of a chain of switches. */
SEC("tcx/ingress")
int lose_everything(struct __sk_buff *ctx)
{
	loss_taken++;
	return TC_ACT_SHOT;
}

/* The same at XDP, in front of a switch there or in its place. */
SEC("xdp.frags")
int lose_everything_xdp(struct xdp_md *ctx)
{
	loss_taken++;
	return XDP_DROP;
}
