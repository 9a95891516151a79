/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/* Congestion marks of a packet whose outer header comes off, for whichever hook defined ctx_t before. */
#pragma once

#include "headers.h"

/* Sets the mark of a header inside the frame; 0 if done, and pointers into the frame are void then. */
INLINE int store_ecn(ctx_t *ctx, struct ipv4_header *ip, __u8 ecn)
{
	__u8 tos = (ip->tos & ~ECN_MASK) | ecn;
	__u16 checksum = checksum_after(ip->checksum, bpf_htons(ip->tos), bpf_htons(tos));

	return ctx_store_tos(ctx, ip, tos, checksum);
}
