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

/*
 * The one copy of a frame, which is the frame itself: by a link, natively out of TRILL, or from one native port to another. Functions
 * of their own, which the verifier looks at once. TRILL_COPY_SENT, TRILL_COPY_DELIVERED, or why it is dropped.
 */
INLINE int counted(__u32 port, int outcome)
{
	if (outcome == TRILL_COPY_SENT || outcome == TRILL_COPY_DELIVERED)
		count_at(port, outcome);
	return outcome;
}

GLOBAL int copy_to_one_link(struct xdp_md *ctx, __u32 port)
{
	const struct trill_port *out = &current_fib()->ports[port &= TRILL_PORTS - 1];
	struct cursor cursor = frame_of(ctx);
	struct eth_header *outer = cursor.at;

	if (is_longer(ctx, out->frame_max))
		return TRILL_TOO_LONG;
	if ((void *)(outer + 1) > cursor.end)
		return TRILL_MALFORMED;
	copy_mac(outer->source, out->mac);
	if (out->elides == TRILL_ELIDES_BOTH && elide(ctx))
		return TRILL_POP_FAILED;
	return counted(port, TRILL_COPY_SENT);
}

GLOBAL int copy_out_of_trill(struct xdp_md *ctx, __u32 port, __u32 vlan)
{
	const struct trill_fib *fib = current_fib();

	port &= TRILL_PORTS - 1;
	vlan &= VLAN_MASK;
	if (!carries(fib, port, vlan))
		return TRILL_NO_RECEIVER;
	return counted(port, decapsulate(ctx, &fib->ports[port], vlan, TRILL_COPY_DELIVERED));
}

GLOBAL int copy_natively(struct xdp_md *ctx, __u32 port, __u32 tagged, __u32 control)
{
	const struct trill_fib *fib = current_fib();

	port &= TRILL_PORTS - 1;
	if (!carries(fib, port, control & VLAN_MASK))
		return TRILL_NO_RECEIVER;
	int outcome = switch_natively(ctx, &fib->ports[port], tagged, control);
	return counted(port, outcome == TRILL_SWITCHED ? TRILL_COPY_DELIVERED : outcome);
}
