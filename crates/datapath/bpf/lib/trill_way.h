/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/* Where a frame goes once it is known what becomes of it: out of one port, or as copies out of several. */
#pragma once

#include "trill_elide.h"
#include "trill_hash.h"
#include "trill_sets.h"

struct way {
	__u32 port;
	int elides; /* WAY_PORT: without outer header */
	enum {
		WAY_PORT,   /* finished: out of `port` */
		WAY_COPIES, /* to the copier, for the set of the number `port` but, unless it `may_return`, the port that it came by */
	} kind;
	int may_return; /* it came by a shared link: there it may be wanted once more, natively or in TRILL */
};

/* Number of the only bit that is set. Not in line: each of its six bits is a branch. */
GLOBAL __u32 place_of(__u64 bit)
{
	return (!!(bit & 0xaaaaaaaaaaaaaaaaULL)) | (!!(bit & 0xccccccccccccccccULL) << 1) |
	       (!!(bit & 0xf0f0f0f0f0f0f0f0ULL) << 2) | (!!(bit & 0xff00ff00ff00ff00ULL) << 3) |
	       (!!(bit & 0xffff0000ffff0000ULL) << 4) | (!!(bit & 0xffffffff00000000ULL) << 5);
}

/*
 * A copy for each port of a set but `no_link` in TRILL and `no_native` natively (0: no port): in the form in which it came a frame
 * does not leave by the port that it came by. The set is whole, so that it is one whichever of its ports a frame comes by. One port
 * alone gets the frame itself, by WAY_PORT.
 */
INLINE enum trill_outcome copies(ctx_t *ctx, struct trill_set set, __u32 no_link, __u32 no_native, struct way *way,
				 enum trill_outcome outcome)
{
	__u64 links = set.links & ~(1ULL << no_link), natives = set.natives & ~(1ULL << no_native);
	__u64 ports = links | natives;

	way->kind = WAY_PORT;
	if (!ports)
		return TRILL_NO_RECEIVER;
	way->port = place_of(ports) & (TRILL_PORTS - 1);
	if (!(ports & (ports - 1)) && !(links & natives))
		return outcome;
	if (is_in_pieces(ctx))
		return TRILL_TOO_LONG_TO_COPY;
	way->kind = WAY_COPIES;
	way->port = number_of_set(set.links, set.natives, no_link | no_native);
	return outcome;
}

/*
 * In place of the outer source of a frame that is to be copied, which each copy gets anew or has no more. No source of a finished
 * frame begins so: it would be a group.
 */
struct copy_mark {
	__u8 flags; /* MARK_* */
	__u8 not_to; /* port that gets none in one form; 0: none */
	__u8 set; /* number */
	__u8 number[3]; /* of the frame, see `is_second_copy` */
};

#define MARK_COPY ((__u8)1)
#define MARK_RETURNS ((__u8)2)  /* the kernel copies to the port that it came by as well */
#define MARK_NATIVELY ((__u8)4) /* `not_to` gets none natively; else in TRILL */

INLINE struct copy_mark *mark_of(struct eth_header *outer)
{
	return (struct copy_mark *)outer->source;
}

INLINE void mark_copies(struct eth_header *outer, const struct way *way, __u8 form, __u8 not_to)
{
	*mark_of(outer) = (struct copy_mark){ MARK_COPY | form | (way->may_return ? MARK_RETURNS : 0), not_to, way->port };
}

/* Whether a port gets no copy of this form, MARK_NATIVELY or 0. */
INLINE int gets_none(const struct copy_mark *mark, __u32 port, __u8 form)
{
	return mark->not_to == port && (mark->flags & MARK_NATIVELY) == form;
}

/* Gives a marked frame that came by `port` a number. Flags for the kernel << 8 | its set, or -1. */
GLOBAL int begin_copies(struct xdp_md *ctx, __u32 port)
{
	struct cursor cursor = frame_of(ctx);
	struct eth_header *outer = cursor.at;
	__u32 key = 0;
	struct trill_copied *copied = bpf_map_lookup_elem(&trill_copied, &key);

	if ((void *)(outer + 1) > cursor.end || !copied)
		return -1;
	struct copy_mark *mark = mark_of(outer);
	__u32 number = ++copied->frames;
	mark->number[0] = number;
	mark->number[1] = number >> 8;
	mark->number[2] = number >> 16;
	count_at(port & (TRILL_PORTS - 1), TRILL_COPIED);
	return (BPF_F_BROADCAST | (mark->flags & MARK_RETURNS ? 0 : BPF_F_EXCLUDE_INGRESS)) << 8 | mark->set;
}

/* For all ports. */
INLINE int copy_in_place(struct xdp_md *ctx, __u32 port)
{
	int begun = begin_copies(ctx, port);

	return begun < 0 ? XDP_DROP : bpf_redirect_map(&trill_copy_ports, 0, begun >> 8);
}

/* For the ports of its set. */
INLINE int copy_for_set(struct xdp_md *ctx, __u32 port)
{
	int begun = begin_copies(ctx, port);

	return begun < 0 ? XDP_DROP : redirect_to_set((__u8)begun, begun >> 8);
}

/* Where a marked frame is copied: see `trill_copiers`. */
INLINE int hand_to_copier(struct xdp_md *ctx, __u32 port)
{
	__u32 copier = trill_copying.cpu[bpf_get_smp_processor_id() & (TRILL_COPIERS - 1)];

	count_at(port, TRILL_HANDED);
	return trill_copying.in_place ? copy_in_place(ctx, port) : bpf_redirect_map(&trill_copiers, copier, 0);
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

/* Of the neighbours that are not overloaded, but not the one with the address `from` (RFC 7780 2.3.1); 0: there is none. */
INLINE const struct trill_hop *choose_relay(const struct trill_fib *fib, __u32 hash, __u64 from)
{
	__u32 place = (__u64)hash * fib->relays >> 32;
	const struct trill_hop *hop = &fib->group[0][place & (TRILL_HOPS_MAX - 1)];

	if (mac_at(hop->destination) == from) {
		place = place + 1 < fib->relays ? place + 1 : 0;
		hop = &fib->group[0][place & (TRILL_HOPS_MAX - 1)];
	}
	return fib->relays && mac_at(hop->destination) != from ? hop : 0;
}

/* Gives a TRILL frame the outer addresses of a next hop. Returns TRILL_TRANSIT or why it cannot be sent. */
INLINE enum trill_outcome towards(ctx_t *ctx, const struct trill_fib *fib, const struct trill_hop *hop, struct eth_header *outer,
				  struct way *way)
{
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
		else
			verdict = hand_to_copier(ctx, port);
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
