/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/*
 * Routing between VLANs where a packet comes in: what is for the gateway's address gets the addresses and the VLAN of the
 * host that it is for, and one hop less, and then goes there like any frame. So it crosses the campus once.
 */
#pragma once

#include "trill_deliver.h"
#include "trill_learn.h"

#define ROUTED TRILL_OUTCOME_COUNT

/* `control`: of the frame's tag; its VLAN becomes the host's. */
INLINE int route_between_vlans(ctx_t *ctx, int tagged, __u16 *control)
{
	struct cursor cursor = frame_of(ctx);
	struct eth_header *eth = cursor.at;
	struct ipv4_header *ip = cursor.at + ETH_LENGTH + (tagged ? VLAN_LENGTH : 0);

	if ((void *)(ip + 1) > cursor.end)
		return TRILL_GATEWAY_MALFORMED;
	if (((__be16 *)ip)[-1] != bpf_htons(ETHERTYPE_IPV4) || ip->version_ihl != IPV4_NO_OPTIONS)
		return TRILL_GATEWAY_MISS; /* the stack knows what to do */
	if (!ipv4_checksum_is_right(ip))
		return TRILL_GATEWAY_MALFORMED;
	struct trill_host_route *route = bpf_map_lookup_elem(&trill_host_routes, &ip->destination);
	if (!route || route->flags & TRILL_ROUTE_OWN)
		return TRILL_GATEWAY_MISS;
	if (ip->ttl <= 1)
		return TRILL_GATEWAY_TTL;
	decrement_ttl(ip);
	store_macs(eth, load_macs(route));
	*control = (*control & ~VLAN_MASK) | (route->vlan & VLAN_MASK);
	return ROUTED;
}

/* Whether the frame is a request for the gateway's address in this VLAN; then it is the answer now. */
INLINE int answer_arp(ctx_t *ctx, int tagged, __u16 vlan)
{
	struct cursor cursor = frame_of(ctx);
	struct eth_header *eth = cursor.at;
	struct arp_header *arp = cursor.at + ETH_LENGTH + (tagged ? VLAN_LENGTH : 0);

	if ((void *)(arp + 1) > cursor.end)
		return 0;
	if (arp->hardware != bpf_htons(ARP_ETHERNET) || arp->protocol != bpf_htons(ETHERTYPE_IPV4) ||
	    arp->hardware_length != 6 || arp->protocol_length != 4 || arp->operation != bpf_htons(ARP_REQUEST))
		return 0;
	__be32 wanted = arp->target_ip, asker = arp->sender_ip;
	struct trill_host_route *route = bpf_map_lookup_elem(&trill_host_routes, &wanted);
	if (!route || !(route->flags & TRILL_ROUTE_OWN) || route->vlan != vlan || wanted == asker)
		return 0;
	copy_mac(arp->target_mac, arp->sender_mac);
	copy_mac(arp->sender_mac, route->gateway);
	arp->sender_ip = wanted;
	arp->target_ip = asker;
	arp->operation = bpf_htons(ARP_REPLY);
	copy_mac(eth->destination, eth->source);
	copy_mac(eth->source, route->gateway);
	return 1;
}
