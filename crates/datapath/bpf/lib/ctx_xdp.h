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

/* Asks the kernel only if the first buffer is not enough: the helper is a tenth of a header look-up, but not free. */
INLINE int ctx_holds(ctx_t *ctx, __u32 bytes)
{
	struct cursor cursor = ctx_cursor(ctx);

	return cursor.at + bytes <= cursor.end || bpf_xdp_get_buff_len(ctx) >= bytes;
}

INLINE __u32 ctx_segment_payload(ctx_t *ctx)
{
	return 0;
}

INLINE __u32 ctx_super_length(ctx_t *ctx)
{
	return 0;
}

INLINE __u32 ctx_frame_bytes(ctx_t *ctx)
{
	return bpf_xdp_get_buff_len(ctx);
}

INLINE int ctx_is_tagged(ctx_t *ctx)
{
	return 0; /* in XDP a tag is part of the frame, which then is not IPv4 to us */
}

INLINE int ctx_is_from_agent(ctx_t *ctx)
{
	return 0;
}

INLINE void ctx_pull_headers(ctx_t *ctx, __u32 bytes)
{
}

/* Moves the head by `bytes` (negative: outwards) and the Ethernet header with it; then the cursor stands before that. */
INLINE int move_head(ctx_t *ctx, __s32 bytes, struct cursor *cursor)
{
	struct eth_header *eth;

	*cursor = ctx_cursor(ctx);
	if (!parse_eth(cursor, &eth))
		return -1;
	struct eth_words kept = load_eth(eth);
	if (bpf_xdp_adjust_head(ctx, bytes))
		return -1;
	*cursor = ctx_cursor(ctx);
	if (!parse_eth(cursor, &eth))
		return -1;
	store_eth(eth, kept);
	cursor->at = eth;
	return 0;
}

INLINE int ctx_open_gap(ctx_t *ctx, __u32 bytes, struct cursor *cursor)
{
	return move_head(ctx, -(__s32)bytes, cursor);
}

INLINE int ctx_close_gap(ctx_t *ctx, __u32 bytes)
{
	struct cursor unused;

	return move_head(ctx, bytes, &unused);
}

/* Sets type of service and checksum of a header inside the frame; 0 if done. */
INLINE int ctx_store_tos(ctx_t *ctx, struct ipv4_header *ip, __u8 tos, __u16 checksum)
{
	ip->tos = tos;
	ip->checksum = checksum;
	return 0;
}
