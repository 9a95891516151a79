/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/* The native side: taking a frame out of TRILL for a port, and tags on and off between native ports. */
#pragma once

#include "trill_way.h"

/* Whether frames of the VLAN leave by the port with a tag. */
INLINE int is_tagged_on(const struct trill_port *port, __u16 vlan)
{
	return port->vlan != vlan;
}

/* The longest frame that the port takes. */
INLINE __u32 longest(const struct trill_port *port, int tagged)
{
	return port->frame_max + (tagged ? VLAN_LENGTH : 0);
}

/* Takes the flags word out, so that all that follows is where it always is. */
INLINE int strip_flags(ctx_t *ctx)
{
	struct cursor cursor = frame_of(ctx);
	__u64 *words = cursor.at;

	if (cursor.at + HEADERS_LENGTH + FLAGS_LENGTH > cursor.end)
		return -1;
	__u64 first = words[0], second = words[1];
	__u32 third = *(__u32 *)(words + 2);
	if (bpf_xdp_adjust_head(ctx, FLAGS_LENGTH))
		return -1;
	cursor = frame_of(ctx);
	words = cursor.at;
	if (cursor.at + HEADERS_LENGTH > cursor.end)
		return -1;
	words[0] = first;
	words[1] = second;
	*(__u32 *)(words + 2) = third;
	((struct trill_start *)words)->header.flags &= ~bpf_htons(HEADER_FLAGS);
	return 0;
}

/* The outer headers off a frame without a flags word, and the tag where the port wants none. */
INLINE enum trill_outcome decapsulate(ctx_t *ctx, const struct trill_port *port, __u16 vlan,
				      enum trill_outcome done)
{
	struct cursor cursor = frame_of(ctx);
	int tagged = is_tagged_on(port, vlan);
	__u32 pop = tagged ? PUSH_TAGGED : PUSH_UNTAGGED;

	if (cursor.at + START_LENGTH > cursor.end)
		return TRILL_MALFORMED;
	if (is_longer(ctx, longest(port, tagged) + pop))
		return TRILL_TOO_LONG;
	if (!tagged)
		store_macs(cursor.at + PUSH_UNTAGGED, load_macs(cursor.at + PUSH_TAGGED));
	if (bpf_xdp_adjust_head(ctx, pop))
		return TRILL_POP_FAILED;
	return done;
}

/* From one native port to another: the tag as that one wants it. `control`: of the tag, if one is needed. */
INLINE enum trill_outcome switch_natively(ctx_t *ctx, const struct trill_port *port, int tagged, __u16 control)
{
	int wanted = is_tagged_on(port, control & VLAN_MASK);
	__s32 move = tagged == wanted ? 0 : wanted ? -VLAN_LENGTH : VLAN_LENGTH;
	struct cursor cursor;

	if (is_longer(ctx, longest(port, wanted) + move))
		return TRILL_TOO_LONG;
	if (move && move_macs(ctx, move))
		return move < 0 ? TRILL_PUSH_FAILED : TRILL_POP_FAILED;
	if (!wanted)
		return TRILL_SWITCHED;
	cursor = frame_of(ctx);
	if (cursor.at + ETH_LENGTH + VLAN_LENGTH > cursor.end)
		return TRILL_MALFORMED;
	*(__be32 *)(cursor.at + 12) = bpf_htonl((__u32)ETHERTYPE_VLAN << 16 | control);
	return TRILL_SWITCHED;
}
