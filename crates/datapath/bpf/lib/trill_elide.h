/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/*
 * Links without outer header (not in any RFC; docs/spec/trill.md draws the frame): where one receiver is on a link, the
 * outer addresses tell it nothing. What the short form cannot say is sent with the outer header, frame by frame: flags
 * words, labels other than a VLAN tag, and inner addresses that equipment on the way might take for its own.
 */
#pragma once

#include "trill.h"

_Static_assert(ELIDED_BYTES == ETH_LENGTH, "the outer header is what is left out");
_Static_assert(__builtin_offsetof(struct trill_elided, elided) == __builtin_offsetof(struct eth_header, type), "is_plain reads both");

/* A group that bridges do not forward like any other, or that means something between RBridges. */
INLINE int is_bridge_group(__u64 mac)
{
	return bridge_group(mac) <= 0xffff;
}

INLINE int is_elidable(const struct trill_start *start)
{
	return !(start->header.flags & bpf_htons(HEADER_FLAGS)) && start->inner.label == bpf_htons(ETHERTYPE_VLAN) &&
	       !is_bridge_group(mac_at(start->inner.destination));
}

/* Leaves the outer header of a TRILL frame out, if the short form says the same; 0 unless the kernel refuses. */
INLINE int elide(ctx_t *ctx)
{
	struct cursor cursor = frame_of(ctx);
	struct trill_start *start = cursor.at;

	if ((void *)(start + 1) > cursor.end || !is_elidable(start))
		return 0;
	struct trill_header header = start->header;
	struct mac_pair macs = load_macs(&start->inner);
	if (bpf_xdp_adjust_head(ctx, ELIDED_BYTES))
		return -1;
	cursor = frame_of(ctx);
	struct trill_elided *elided = cursor.at;
	if ((void *)(elided + 1) > cursor.end)
		return -1;
	store_macs(elided, macs);
	elided->elided = bpf_htons(ETHERTYPE_ELIDED);
	elided->header = header;
	return 0;
}

/* Puts in what was left out: the addresses of the link's ends, as its header says. 0 unless the kernel refuses. */
INLINE int restore(ctx_t *ctx, const struct trill_port *in)
{
	struct cursor cursor = frame_of(ctx);
	struct trill_elided *elided = cursor.at;

	if ((void *)(elided + 1) > cursor.end)
		return -1;
	struct trill_header header = elided->header;
	struct mac_pair macs = load_macs(elided);
	if (bpf_xdp_adjust_head(ctx, -(__s32)ELIDED_BYTES))
		return -1;
	cursor = frame_of(ctx);
	struct trill_start *start = cursor.at;
	if ((void *)(start + 1) > cursor.end)
		return -1;
	store_macs(start, load_macs(in));
	if (header.flags & bpf_htons(HEADER_MULTI))
		store_all_rbridges(start->outer.destination);
	start->outer.type = bpf_htons(ETHERTYPE_TRILL);
	start->header = header;
	store_macs(&start->inner, macs);
	start->inner.label = bpf_htons(ETHERTYPE_VLAN);
	return 0;
}
