/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/* Where a frame goes once it is known what becomes of it: out of one port, or as copies out of several. */
#pragma once

#include "trill_elide.h"
#include "trill_hash.h"
#include "trill_state.h"

struct way {
	__u32 port;
	int elides; /* WAY_PORT: without outer header */
	enum {
		WAY_PORT,     /* finished: out of `port` */
		WAY_ONE_COPY, /* to the place `port` of `trill_copies` */
		WAY_COPIES,   /* to all places of `trill_copies` but the one that it came by */
	} kind;
	int may_return; /* it came by a shared link: there it may be wanted once more, natively or in TRILL */
};

/* Number of the only bit that is set. */
INLINE __u32 place_of(__u64 bit)
{
	return (!!(bit & 0xaaaaaaaaaaaaaaaaULL)) | (!!(bit & 0xccccccccccccccccULL) << 1) |
	       (!!(bit & 0xf0f0f0f0f0f0f0f0ULL) << 2) | (!!(bit & 0xff00ff00ff00ff00ULL) << 3) |
	       (!!(bit & 0xffff0000ffff0000ULL) << 4) | (!!(bit & 0xffffffff00000000ULL) << 5);
}

/*
 * A copy in TRILL for each port of one set, a native one for each of the other. The port that the frame came by is not in that
 * of the form in which it came.
 */
INLINE enum trill_outcome copies(ctx_t *ctx, __u64 links, __u64 natives, struct way *way, enum trill_outcome outcome)
{
	__u64 ports = links | natives;

	if (!ports)
		return TRILL_NO_RECEIVER;
	if (!(ports & (ports - 1)) && !(links & natives)) {
		way->kind = WAY_ONE_COPY;
		way->port = place_of(ports) | (natives ? TRILL_PORTS : 0);
		return outcome;
	}
	if (is_in_pieces(ctx))
		return TRILL_TOO_LONG_TO_COPY;
	way->kind = WAY_COPIES;
	return outcome;
}

/*
 * The kernel copies to a shared link what came by it, because there it may be wanted in the other form. In place of the outer
 * source, which each copy gets anew or has no more, stands which port gets none in TRILL and which none natively. No source begins
 * like that: it would be a group.
 */
#define MARKED ((__u8)1)

INLINE void mark_copies(struct eth_header *outer, const struct way *way, __u8 no_link, __u8 no_native)
{
	if (!way->may_return)
		return;
	outer->source[0] = MARKED;
	outer->source[1] = no_link;
	outer->source[2] = no_native;
}

INLINE int gets_no_link_copy(const struct eth_header *outer, __u32 port)
{
	return outer->source[0] == MARKED && outer->source[1] == port;
}

INLINE int gets_no_native_copy(const struct eth_header *outer, __u32 port)
{
	return outer->source[0] == MARKED && outer->source[2] == port;
}

#define ROUTE_HOPS 0xff

/* A group is as long as its place in a route says: where it begins takes no shifting. */
#define ROUTE_GROUP ((TRILL_GROUPS - 1) << 8)
_Static_assert(sizeof(struct trill_hop) * TRILL_HOPS_MAX == 1 << 8, "routes count groups in their own length");

/* One of the next hops to an egress. `route`: the egress's, not 0. */
INLINE const struct trill_hop *choose(const struct trill_fib *fib, __u32 route, __u32 hash)
{
	__u32 place = (__u64)hash * (route & ROUTE_HOPS) >> 32;
	const struct trill_hop *group = (const void *)fib->group + (route & ROUTE_GROUP);
	const struct trill_hop *hop = &group[place & (TRILL_HOPS_MAX - 1)];

	asm volatile("" : "+r"(hop)); /* or the compiler computes it again for each field */
	return hop;
}

/*
 * Gives a TRILL frame the outer addresses of one of the next hops to `egress`. Returns TRILL_TRANSIT or why it cannot be
 * sent.
 */
INLINE enum trill_outcome towards(ctx_t *ctx, const struct trill_fib *fib, __u16 egress, struct eth_header *outer,
				  const struct inner_header *inner, const void *end, struct way *way)
{
	__u32 route = route_to(fib, egress);

	if (!route)
		return TRILL_UNKNOWN_EGRESS;
	const struct trill_hop *hop = choose(fib, route, trill_hash_of_any(fib->hash_seed, inner, end));
	if (is_longer(ctx, fib->ports[hop->port & (TRILL_PORTS - 1)].frame_max))
		return TRILL_TOO_LONG;
	store_macs(outer, load_macs(hop));
	way->port = hop->port;
	way->elides = hop->elides;
	return TRILL_TRANSIT;
}

/* The port that a frame was for has vanished. */
static __noinline int drop_without_port(struct xdp_md *ctx, __u32 port)
{
	count_and_tap(ctx, port, TRILL_NO_PORT);
	return XDP_DROP;
}

/* A finished frame out of a port. */
INLINE int send(struct xdp_md *ctx, __u32 port, enum trill_outcome outcome, __u32 to)
{
	if (bpf_redirect_map(&trill_ports, to, XDP_DROP) != XDP_REDIRECT)
		return drop_without_port(ctx, port);
	count_and_tap(ctx, port, outcome);
	return XDP_REDIRECT;
}

/* Sends the frame as was decided, counts, and says so to the kernel. */
INLINE int finish(struct xdp_md *ctx, __u32 port, enum trill_outcome outcome, const struct way *way)
{
	int verdict = XDP_DROP;

	if (outcome <= TRILL_LAST_PASSED) {
		verdict = XDP_PASS;
	} else if (outcome <= TRILL_LAST_SENT && way->elides && elide(ctx)) {
		outcome = TRILL_POP_FAILED;
	} else if (outcome <= TRILL_LAST_SENT) {
		if (way->kind == WAY_PORT)
			verdict = bpf_redirect_map(&trill_ports, way->port, 0);
		else if (way->kind == WAY_ONE_COPY)
			verdict = bpf_redirect_map(&trill_copies, way->port, 0);
		else
			verdict = bpf_redirect_map(&trill_copies, 0,
						   BPF_F_BROADCAST | (way->may_return ? 0 : BPF_F_EXCLUDE_INGRESS));
		if (verdict != XDP_REDIRECT) {
			outcome = TRILL_NO_PORT;
			verdict = XDP_DROP;
		}
	} else if (outcome == TRILL_ARP_ANSWERED) {
		/* Not XDP_TX: veth wakes nobody then but a host that has a program of its own. */
		return send(ctx, port, outcome, port);
	}
	count_and_tap(ctx, port, outcome);
	return verdict;
}
