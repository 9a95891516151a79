/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/*
 * What a host may send (RFC 2827): packets from its own addresses, its AA, its LA and its public LA if it has one; and no
 * outer header of its own making, because the fabric takes off any of them and believes what is inside.
 */
#pragma once

#include "vl2_broadcast.h"

INLINE int is_own_address(__be32 address)
{
	return address == host_config.own_aa || address == host_config.own_la || address == host_config.public_la;
}

/* A host that has no address yet speaks to everybody (RFC 2131 4.1), and no router forwards that. */
INLINE int may_be_source(const struct ipv4_header *ip)
{
	return !host_config.own_aa || is_own_address(ip->source) ||
	       (ip->source == 0 && is_multicast_or_broadcast(ip->destination));
}

/* A packet that leaves as it came. Copies of a broadcast come by a second time, each with the header that it got here. */
INLINE int is_made_up(const struct ipv4_header *ip)
{
	__be32 destination = ip->destination;

	if (!host_config.own_aa || ip->protocol != PROTOCOL_IPIP)
		return 0;
	return broadcast_config.delivery != BROADCAST_TO_MEMBERS || ip->source != broadcast_config.la ||
	       !bpf_map_lookup_elem(&broadcast_members, &destination);
}
