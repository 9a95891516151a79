/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/*
 * The VL2 host agent in the kernel: TC egress of a server's interface. Packets to AAs leave encapsulated, ARP requests
 * for AAs are answered on the spot, and whatever lacks a mapping goes to the agent, which holds and sends it again. Where
 * the service has broadcast, what the others broadcast comes in by TC ingress.
 */
#include "lib/ctx_tc.h"
#include "lib/vl2_spread.h"

#define ctx_salt spread_salt

#include "lib/vl2_receive.h"
#include "lib/vl2_source.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* Turns the request into the answer: every AA is at the gateway's MAC. */
INLINE void write_arp_reply(struct eth_header *eth, struct arp_header *arp)
{
	__be32 asked = arp->target_ip;

	arp->operation = bpf_htons(ARP_REPLY);
	copy_mac(arp->target_mac, arp->sender_mac);
	arp->target_ip = arp->sender_ip;
	write_gateway_mac(arp->sender_mac);
	arp->sender_ip = asked;
	copy_mac(eth->destination, eth->source);
	write_gateway_mac(eth->source);
}

INLINE int is_ipv4_request(const struct arp_header *arp)
{
	return arp->hardware == bpf_htons(ARP_ETHERNET) && arp->protocol == bpf_htons(ETHERTYPE_IPV4) &&
	       arp->hardware_length == 6 && arp->protocol_length == 4 && arp->operation == bpf_htons(ARP_REQUEST);
}

/* The cursor stands behind the Ethernet header. */
INLINE enum host_outcome answer_arp(ctx_t *ctx, struct eth_header *eth, struct cursor cursor)
{
	struct arp_header *arp;

	if (!parse_arp(&cursor, &arp))
		return HOST_MALFORMED;
	if (!is_ipv4_request(arp) || !is_aa(arp->target_ip))
		return HOST_PASSED;
	/* Announcing or probing one's own address (RFC 5227): an answer would mean that somebody else has it. */
	if (arp->sender_ip == 0 || arp->sender_ip == arp->target_ip)
		return HOST_ARP_PROBE_PASSED;

	__be32 aa = arp->target_ip;
	struct aa_mapping *mapping = bpf_map_lookup_elem(&aa_map, &aa);
	if (!mapping)
		return ctx_is_from_agent(ctx) ? HOST_NO_MAPPING : HOST_ARP_MISS;
	if (mapping->flags & MAPPING_REFUSED)
		return HOST_REFUSED;
	write_arp_reply(eth, arp);
	return HOST_ARP_ANSWERED;
}

/*
 * Makes the headers readable that the hash and the outer headers need, and not a byte more: what is pulled out of a
 * super frame's fragments leaves its payload unaligned, and the receiver's copy pays for that.
 */
INLINE void pull_host_headers(ctx_t *ctx)
{
	ctx_pull_headers(ctx, ETH_LENGTH + IPV4_LENGTH + TCP_LENGTH);
	struct cursor cursor = ctx_cursor(ctx);
	struct eth_header *eth;
	struct ipv4_header *ip;

	if (parse_eth(&cursor, &eth) && parse_ipv4(&cursor, &ip) && ipv4_header_length(ip) > IPV4_LENGTH)
		ctx_pull_headers(ctx, ETH_LENGTH + IPV4_LENGTH_MAX + TCP_LENGTH);
}

/* An untagged frame of EtherType IPv4; the cursor stands behind its Ethernet header. */
INLINE enum host_outcome send_ipv4(ctx_t *ctx, struct cursor cursor)
{
	struct cursor header = cursor;
	struct ipv4_header *ip;

	if (!parse_ipv4(&header, &ip))
		return HOST_MALFORMED;
	if (!may_be_source(ip))
		return HOST_FOREIGN_SOURCE;
	enum host_outcome outcome = vl2_encapsulate(ctx, cursor);
	if (outcome == HOST_BROADCAST_UNSUPPORTED)
		return vl2_broadcast(ctx, cursor);
	return outcome == HOST_PASSED && is_made_up(ip) ? HOST_MADE_UP_HEADER : outcome;
}

INLINE enum host_outcome vl2_host(ctx_t *ctx)
{
	if (ctx_is_tagged(ctx))
		return HOST_TAGGED;
	pull_host_headers(ctx);
	struct cursor cursor = ctx_cursor(ctx);
	struct eth_header *eth;

	if (!parse_eth(&cursor, &eth))
		return HOST_MALFORMED;
	if (eth->type == bpf_htons(ETHERTYPE_IPV4))
		return send_ipv4(ctx, cursor);
	if (eth->type == bpf_htons(ETHERTYPE_ARP))
		return answer_arp(ctx, eth, cursor);
	return is_tag(eth->type) ? HOST_TAGGED : HOST_PASSED;
}

INLINE int host_verdict(ctx_t *ctx, enum host_outcome outcome)
{
	switch (outcome) {
	case HOST_PASSED:
	case HOST_ENCAPSULATED:
	case HOST_RACK_DIRECT:
	case HOST_ARP_PROBE_PASSED:
	case HOST_BROADCAST_SENT:
	case HOST_BROADCAST_COPIED:
	case HOST_IGMP_PASSED:
	case HOST_DHCP_PASSED:
		return VERDICT_NEXT;
	case HOST_ARP_ANSWERED:
		return bpf_redirect(ctx->ifindex, BPF_F_INGRESS);
	case HOST_ARP_MISS:
	case HOST_PACKET_MISS:
		return bpf_redirect(host_config.miss_ifindex, 0);
	case HOST_MTU_EXCEEDED: /* once is enough, also if the agent sends it again by mistake */
		return ctx_is_from_agent(ctx) ? TC_ACT_SHOT : bpf_redirect(host_config.miss_ifindex, 0);
	default:
		return TC_ACT_SHOT;
	}
}

SEC("tcx/egress")
int vl2_host_egress(struct __sk_buff *ctx)
{
	enum host_outcome outcome = vl2_host(ctx);

	count(&host_counters, outcome);
	return host_verdict(ctx, outcome);
}

/* Only attached where broadcast reaches somebody. */
SEC("tcx/ingress")
int vl2_host_ingress(struct __sk_buff *ctx)
{
	enum receive_outcome outcome = vl2_receive(ctx);

	count(&receive_counters, outcome);
	return outcome == RECEIVE_PASSED || outcome == RECEIVE_DELIVERED ? VERDICT_NEXT : TC_ACT_SHOT;
}
