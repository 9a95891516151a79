/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/*
 * Reading a frame from front to back: each parser checks that its header is there in full, points to it, moves the
 * cursor behind it and returns 1; or returns 0.
 */
#pragma once

#include "headers.h"

struct cursor {
	void *at;
	void *end;
};

#define PARSER(name, header_type) \
	INLINE int name(struct cursor *cursor, struct header_type **header) \
	{ \
		*header = cursor->at; \
		if ((void *)(*header + 1) > cursor->end) \
			return 0; \
		cursor->at = *header + 1; \
		return 1; \
	}

PARSER(parse_eth, eth_header)
PARSER(parse_ipv4, ipv4_header) /* the fixed part; options, if any, come next */
PARSER(parse_udp, udp_header)
PARSER(parse_arp, arp_header)

/* Version 4, at least five words, and not longer than the packet claims to be. */
INLINE int ipv4_is_consistent(const struct ipv4_header *ip)
{
	__u8 above_minimum = ip->version_ihl - IPV4_NO_OPTIONS;

	return above_minimum <= 0x4f - IPV4_NO_OPTIONS && host16(ip->total_length) >= ipv4_header_length(ip);
}
