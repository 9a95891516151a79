/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/* The frame as an XDP program sees it: raw bytes whose headers are always in the first buffer, never GSO. */
#pragma once

#include <stddef.h>

#include "../abi.h"
#include "parse.h"

typedef struct xdp_md ctx_t;

INLINE struct cursor ctx_cursor(ctx_t *ctx)
{
	return (struct cursor){ (void *)(long)ctx->data, (void *)(long)ctx->data_end };
}

/*
 * Start and end of the frame, as pointers from the beginning: the compiler would otherwise join two of them while they are
 * 32-bit fields of the context, and the verifier loses them.
 */
INLINE struct cursor frame_of(ctx_t *ctx)
{
	struct cursor cursor;

	asm volatile("%0 = *(u32 *)(%1 + %2)" : "=r"(cursor.at) : "r"(ctx), "i"(offsetof(struct xdp_md, data)));
	asm volatile("%0 = *(u32 *)(%1 + %2)" : "=r"(cursor.end) : "r"(ctx), "i"(offsetof(struct xdp_md, data_end)));
	return cursor;
}

/* Sets type of service and checksum of a header inside the frame; 0 if done. */
INLINE int ctx_store_tos(ctx_t *ctx, struct ipv4_header *ip, __u8 tos, __u16 checksum)
{
	ip->tos = tos;
	ip->checksum = checksum;
	return 0;
}
