/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/* TRILL's bytes: header (RFC 6325 3, RFC 7780 10), addresses and Ethertypes (RFC 6325 7), inner header (RFC 6325 4.1). */
#pragma once

#include <stddef.h>

#include "../trill_abi.h"
#include "ctx_xdp.h"

#define ETHERTYPE_IPV6 0x86dd
#define ETHERTYPE_TRILL 0x22f3
#define ETHERTYPE_L2_IS_IS 0x22f4
#define ETHERTYPE_FINE_GRAINED 0x893b
#define ETHERTYPE_ELIDED 0x88b5 /* IEEE 802's first for local experiments */

#define HEADER_VERSION 0xc000
#define HEADER_MULTI 0x0800
#define HEADER_RESERVED 0x0780
#define HEADER_FLAGS 0x0040
#define HEADER_HOPS 0x003f

#define FLAG_CRITICAL_HOP_BY_HOP 0x80000000
#define FLAG_CRITICAL_TO_EGRESS 0x40000000
#define FLAGS_LENGTH 4

#define NICKNAME_LARGEST 0xffbf
#define NICKNAME_ANY_RBRIDGE 0xffc0

#define VLAN_MASK 0x0fff
#define PRIORITY_MASK 0xe000
#define VLAN_LENGTH 4

struct trill_header {
	__be16 flags;
	__be16 egress;
	__be16 ingress;
};

/* The inner frame as far as it is always the same. */
struct inner_header {
	__u8 destination[6];
	__u8 source[6];
	__be16 label; /* ETHERTYPE_VLAN */
	__be16 control;
	__be16 type;
};

/* A TRILL frame without a flags word. */
struct trill_start {
	struct eth_header outer;
	struct trill_header header;
	struct inner_header inner;
};

/*
 * The same without outer header, on a link whose ends agreed on that: the inner addresses come first, and the Ethertype says
 * what the inner tag's own would. Fourteen bytes less; type and header lie as in the other.
 */
struct trill_elided {
	__u8 destination[6];
	__u8 source[6];
	__be16 elided; /* ETHERTYPE_ELIDED */
	struct trill_header header;
	__be16 control;
	__be16 type;
};

#define HEADERS_LENGTH (ETH_LENGTH + sizeof(struct trill_header)) /* before the inner frame */
#define START_LENGTH sizeof(struct trill_start)
#define PUSH_TAGGED HEADERS_LENGTH
#define PUSH_UNTAGGED (HEADERS_LENGTH + VLAN_LENGTH)
#define ELIDED_LENGTH sizeof(struct trill_elided)
#define ELIDED_BYTES (START_LENGTH - ELIDED_LENGTH)        /* less than with an outer header */
#define ELIDED_PUSH_TAGGED (PUSH_TAGGED - ELIDED_BYTES) /* more than a native frame */
#define ELIDED_PUSH_UNTAGGED (PUSH_UNTAGGED - ELIDED_BYTES)
/* What the hash reads begins so far into it, as if the rest of the inner frame came before. */
#define ELIDED_INNER (offsetof(struct trill_elided, type) - offsetof(struct inner_header, type))

/* The last two bytes of 01-80-C2-00-xx-xx, or a number above 0xffff for any other address. */
INLINE __u32 bridge_group(__u64 mac)
{
	if ((__u32)mac != bpf_htonl(0x0180c200))
		return 0x10000;
	return host16(mac >> 32);
}

#define GROUP_TRILL 0x40 /* to 0x4f */
#define GROUP_ALL_RBRIDGES 0x40
#define GROUP_ALL_IS_IS 0x41
#define GROUP_ALL_EGRESS 0x42
#define GROUP_MVRP 0x21

INLINE void store_all_rbridges(void *at)
{
	*(__be32 *)at = bpf_htonl(0x0180c200);
	*(__be16 *)(at + 4) = bpf_htons(GROUP_ALL_RBRIDGES);
}

INLINE int is_trill_group(__u32 group)
{
	return (group & 0xfffffff0) == GROUP_TRILL;
}

/* What no bridge forwards: BPDUs and their like (RFC 6325 1.4). */
INLINE int is_l2_control(__u32 group)
{
	return group <= 0x0f || group == GROUP_MVRP;
}

INLINE int is_bad_source(__u64 mac)
{
	return !mac || is_group(mac);
}

INLINE int is_usable(__u16 nickname)
{
	return (__u16)(nickname - 1) < NICKNAME_LARGEST;
}

INLINE int is_vlan(__u16 vlan)
{
	return (__u16)(vlan - 1) < VLAN_MASK - 1;
}

INLINE int is_trill_type(__be16 type)
{
	return type == bpf_htons(ETHERTYPE_TRILL) || type == bpf_htons(ETHERTYPE_L2_IS_IS);
}

/* Moves the addresses that the frame starts with, and its head after them, by `bytes` inwards (negative: outwards). */
INLINE int move_macs(ctx_t *ctx, __s32 bytes)
{
	struct cursor cursor = frame_of(ctx);

	if (cursor.at + 12 > cursor.end)
		return -1;
	struct mac_pair macs = load_macs(cursor.at);
	if (bpf_xdp_adjust_head(ctx, bytes))
		return -1;
	cursor = frame_of(ctx);
	if (cursor.at + 12 > cursor.end)
		return -1;
	store_macs(cursor.at, macs);
	return 0;
}

/*
 * Whether the frame has more than `limit` bytes. The kernel is asked only where it alone knows: a frame in several buffers
 * has a long first one, because drivers fill it.
 */
INLINE int is_longer(ctx_t *ctx, __u32 limit)
{
	struct cursor cursor = frame_of(ctx);

	if (cursor.at + (limit & 0x1ffff) < cursor.end)
		return 1;
	return cursor.at + TRILL_WHOLE_MAX < cursor.end && bpf_xdp_get_buff_len(ctx) > limit;
}

/* Whether the kernel holds the frame in several buffers; such a frame it sends, but does not copy. */
INLINE int is_in_pieces(ctx_t *ctx)
{
	struct cursor cursor = frame_of(ctx);
	__u32 length = bpf_xdp_get_buff_len(ctx);

	/* Not by subtraction: the verifier knows no difference of two ends. */
	return length > 0xffff || cursor.at + length > cursor.end;
}
