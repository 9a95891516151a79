/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/* The frame as a TC program sees it: an skb, perhaps a GSO super frame, perhaps with its payload in fragments. */
#pragma once

#include <linux/pkt_cls.h>

#include "../abi.h"
#include "parse.h"

/* Give the frame to the next program of the hook, or to the stack if there is none. */
#define VERDICT_NEXT TC_ACT_UNSPEC

typedef struct __sk_buff ctx_t;

/*
 * Volatile: the context must be read anew each time. A value that the compiler carries over from before a pull loses its
 * upper half on the way, and with it the verifier's knowledge that it is a pointer.
 */
INLINE struct cursor ctx_cursor(ctx_t *ctx)
{
	__u32 data = *(volatile __u32 *)&ctx->data;
	__u32 data_end = *(volatile __u32 *)&ctx->data_end;

	return (struct cursor){ (void *)(long)data, (void *)(long)data_end };
}

INLINE int ctx_holds(ctx_t *ctx, __u32 bytes)
{
	return ctx->len >= bytes;
}

/* Bytes of payload in each packet that a GSO super frame stands for; 0 for an ordinary frame. */
INLINE __u32 ctx_segment_payload(ctx_t *ctx)
{
	return ctx->gso_size;
}

/* Length of a GSO super frame, whose IPv4 header may not tell. */
INLINE __u32 ctx_super_length(ctx_t *ctx)
{
	return ctx->len;
}

/* Bytes of the frame or, of a super frame, of all frames that it stands for; without FCS. */
INLINE __u32 ctx_frame_bytes(ctx_t *ctx)
{
	return ctx->wire_len > ctx->len ? ctx->wire_len : ctx->len;
}

/*
 * A VLAN tag that travels beside the frame, which then looks like one without: it is not of the untagged network that we serve.
 * One inside the frame is its Ethertype.
 */
INLINE int ctx_is_tagged(ctx_t *ctx)
{
	return ctx->vlan_present;
}

INLINE int ctx_is_from_agent(ctx_t *ctx)
{
	return ctx->mark == AGENT_MARK;
}

/* Makes the first `bytes` of the frame directly readable, as far as the frame has them. Rarely more than a compare. */
INLINE void ctx_pull_headers(ctx_t *ctx, __u32 bytes)
{
	struct cursor cursor = ctx_cursor(ctx);

	if (cursor.at + bytes <= cursor.end)
		return;
	if (cursor.end - cursor.at < ctx->len)
		bpf_skb_pull_data(ctx, bytes < ctx->len ? bytes : ctx->len);
}

/*
 * Opens a gap of `bytes` for IPv4 headers between the Ethernet header and what follows it; then the cursor stands before
 * that. One call for all headers:
 * a second one on the same skb is refused. FIXED_GSO keeps the segment size; without the ENCAP flag the GSO type would
 * not match the headers and every super frame would be lost.
 */
INLINE int ctx_open_gap(ctx_t *ctx, __u32 bytes, struct cursor *cursor)
{
	long failed = bpf_skb_adjust_room(ctx, bytes, BPF_ADJ_ROOM_MAC,
					  BPF_F_ADJ_ROOM_ENCAP_L3_IPV4 | BPF_F_ADJ_ROOM_FIXED_GSO |
						  BPF_F_ADJ_ROOM_NO_CSUM_RESET);

	*cursor = ctx_cursor(ctx);
	return failed ? -1 : 0;
}

/* Removes `bytes` of IPv4 headers behind the Ethernet header; an IPv4 packet follows. */
INLINE int ctx_close_gap(ctx_t *ctx, __u32 bytes)
{
	return bpf_skb_adjust_room(ctx, -(__s32)bytes, BPF_ADJ_ROOM_MAC, BPF_F_ADJ_ROOM_FIXED_GSO);
}

/*
 * Sets type of service and checksum of a header inside the frame; 0 if done, and pointers into the frame are void then.
 * By helper, because this is rare and a direct store anywhere in a program costs every run of it: the kernel puts a
 * look at the clone state in front.
 */
INLINE int ctx_store_tos(ctx_t *ctx, struct ipv4_header *ip, __u8 tos, __u16 checksum)
{
	__u32 offset = (void *)ip - ctx_cursor(ctx).at;

	return bpf_skb_store_bytes(ctx, offset + offsetof(struct ipv4_header, tos), &tos, sizeof(tos), 0) ||
	       bpf_skb_store_bytes(ctx, offset + offsetof(struct ipv4_header, checksum), &checksum, sizeof(checksum), 0);
}
