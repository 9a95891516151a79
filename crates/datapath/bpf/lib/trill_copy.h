/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/* A frame for several ports: copied by the kernel for all, then finished for each, or dropped where nobody wants it. */
#pragma once

#include "trill_deliver.h"
#include "trill_listeners.h"

/* Whether a copy of this frame has left by the port before: both are made on one CPU, with no other frame's between them. */
INLINE int is_second_copy(__u32 port, const struct copy_mark *mark)
{
	__u32 key = 0, number = mark->number[0] | mark->number[1] << 8 | mark->number[2] << 16;
	struct trill_copied *copied = bpf_map_lookup_elem(&trill_copied, &key);
	__u32 *last = copied ? &copied->last[port & (TRILL_PORTS - 1)] : 0;
	int is_second = last && *last == number;

	if (last)
		*last = number;
	return is_second;
}

/* The copy that leaves by a link: if the VLAN is wanted there. */
INLINE enum trill_outcome copy_to_link(ctx_t *ctx, const struct trill_fib *fib, __u32 port, struct trill_start *start,
				       const struct grouped *frame)
{
	const struct trill_port *out = &fib->ports[port];
	__u32 place = TRILL_TREES_MAX;

	if (start->header.flags & bpf_htons(HEADER_MULTI))
		place = place_of_tree(fib, host16(start->header.egress));
	if (place >= TRILL_TREES_MAX || gets_none(mark_of(&start->outer), port, 0))
		return TRILL_COPY_PRUNED;
	__u64 links = fib->tree[place & (TRILL_TREES_MAX - 1)].vlan_ports[frame->about & VLAN_MASK], natives = 0;
	prune(fib, frame, place, &links, &natives);
	if (!(links >> port & 1))
		return TRILL_COPY_PRUNED;
	if (is_longer(ctx, out->frame_max))
		return TRILL_TOO_LONG;
	copy_mac(start->outer.source, out->mac);
	return out->elides == TRILL_ELIDES_BOTH && elide(ctx) ? TRILL_POP_FAILED : TRILL_COPY_SENT;
}

/* The copy that leaves by a native port: out of TRILL, if the port is in the VLAN. */
INLINE enum trill_outcome copy_to_native(ctx_t *ctx, const struct trill_fib *fib, __u32 port, struct trill_start *start,
					 const struct grouped *frame)
{
	__u64 links = 0, natives = ~0ULL;
	__u16 vlan = frame->about & VLAN_MASK;
	int has_flags = !!(start->header.flags & bpf_htons(HEADER_FLAGS));

	if (!carries(fib, port, vlan) || gets_none(mark_of(&start->outer), port, MARK_NATIVELY))
		return TRILL_COPY_PRUNED;
	prune(fib, frame, 0, &links, &natives);
	if (!(natives >> port & 1))
		return TRILL_COPY_PRUNED;
	if (has_flags && bpf_ntohl(*(__be32 *)&start->inner) & FLAG_CRITICAL_TO_EGRESS)
		return TRILL_CRITICAL_FLAG;
	if (has_flags && strip_flags(ctx))
		return TRILL_POP_FAILED;
	return decapsulate(ctx, &fib->ports[port], vlan, TRILL_COPY_DELIVERED);
}

/*
 * Puts the tag of the Designated VLAN around a TRILL frame that leaves by a link where it has one, with the priority that the frame
 * has inside (RFC 6325 4.1.3). 0 unless the kernel refuses.
 */
INLINE int push_outer_tag(ctx_t *ctx, const struct trill_port *out)
{
	struct cursor cursor = frame_of(ctx);
	const struct trill_start *start = cursor.at;
	const struct inner_header *inner = &start->inner;

	if ((void *)(start + 1) > cursor.end || start->outer.type != bpf_htons(ETHERTYPE_TRILL) || out->vlan == out->designated_vlan)
		return 0;
	if (start->header.flags & bpf_htons(HEADER_FLAGS)) {
		inner = (void *)inner + FLAGS_LENGTH;
		if ((void *)(inner + 1) > cursor.end)
			return 0;
	}
	__u16 priority = inner->label == bpf_htons(ETHERTYPE_VLAN) ? host16(inner->control) & PRIORITY_MASK : 0;
	if (move_macs(ctx, -VLAN_LENGTH))
		return -1;
	cursor = frame_of(ctx);
	if (cursor.at + ETH_LENGTH + VLAN_LENGTH > cursor.end)
		return -1;
	*(__be32 *)(cursor.at + 12) = bpf_htonl((__u32)ETHERTYPE_VLAN << 16 | priority | out->designated_vlan);
	return 0;
}

INLINE enum trill_outcome copy_to(ctx_t *ctx, const struct trill_fib *fib, __u32 port)
{
	struct cursor cursor = frame_of(ctx);
	struct trill_start *start = cursor.at;
	struct inner_header *inner = &start->inner;

	if ((void *)(start + 1) > cursor.end)
		return TRILL_MALFORMED;
	if (start->header.flags & bpf_htons(HEADER_FLAGS)) {
		inner = (void *)inner + FLAGS_LENGTH;
		if ((void *)(inner + 1) > cursor.end)
			return TRILL_MALFORMED;
	}
	__u32 before = (const void *)(inner + 1) - cursor.at;
	struct grouped frame =
		grouped(ctx, fib, mac_at(inner), before, host16(inner->control) & VLAN_MASK, inner->type);
	__u8 kind = fib->ports[port].kind;
	int is_second = is_second_copy(port, mark_of(&start->outer));
	/* A second one where there is one form only: the port has just become another. */
	if (is_second && kind != TRILL_SHARED)
		return TRILL_COPY_PRUNED;
	return is_second || kind == TRILL_NATIVE ? copy_to_native(ctx, fib, port, start, &frame) :
						   copy_to_link(ctx, fib, port, start, &frame);
}
