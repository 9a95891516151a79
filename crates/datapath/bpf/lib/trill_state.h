/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/* What the TRILL programs of one RBridge share: forwarding table, stations, ports, counters, tap. */
#pragma once

#include "../trill_abi.h"
#include "outcome.h"
#include "trill.h"

/* Variables rather than maps of one element, because a variable costs no look-up. */
volatile struct trill_state trill_state SEC(".data.trill_state") = {};

const volatile struct trill_limits trill_limits SEC(".rodata.trill");

/* One of so many frames goes to the tap; 0: none. Whoever looks at the tap sets it, the daemon does not. */
volatile __u32 trill_tap_every SEC(".data.trill_tap_every") = 0;

/*
 * Until then, on the monotonic clock, frames of end stations are carried on shared links: the daemon moves it on while it
 * speaks, for others are appointed when nobody hears it any more.
 */
volatile __u64 trill_access_until_ns SEC(".data.trill_access") = 0;

struct trill_fib trill_fib_0 SEC(".bss.trill_fib0");
struct trill_fib trill_fib_1 SEC(".bss.trill_fib1");

/* Elements are made when they are needed: a table that could be large costs little while it is not. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct mac_key);
	__type(value, struct trill_place);
} trill_fdb SEC(".maps");

/*
 * Stations learned behind each port and each other RBridge: those that came, counted here, and those that went, counted by user
 * space.
 */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, TRILL_PORTS + TRILL_NICKNAMES);
	__type(key, __u32);
	__type(value, __u32);
} trill_learned SEC(".maps"), trill_forgotten SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, __be32);
	__type(value, struct trill_host_route);
} trill_host_routes SEC(".maps");

/* Ports for frames that are finished. */
struct {
	__uint(type, BPF_MAP_TYPE_DEVMAP);
	__uint(max_entries, TRILL_PORTS);
	__type(key, __u32);
	__type(value, struct bpf_devmap_val);
} trill_ports SEC(".maps");

/*
 * The same for frames that `trill_copy` finishes copy by copy: links at their number; ports to end stations after all these. A
 * shared link is both: of each frame it gets two copies, that in TRILL first.
 */
struct {
	__uint(type, BPF_MAP_TYPE_DEVMAP);
	__uint(max_entries, 2 * TRILL_PORTS);
	__type(key, __u32);
	__type(value, struct bpf_devmap_val);
} trill_copy_ports SEC(".maps");

/*
 * CPUs that frames are copied on, by `trill_copier`. Not where they came in: on all that one CPU has for a device, finished frames and
 * copies, Linux runs the program of what came first (`bq_enqueue` in kernel/bpf/devmap.c). Programs in the stack copy in place: there
 * each frame has its own program run, and one that was handed on meets no program in the stack any more.
 */
struct {
	__uint(type, BPF_MAP_TYPE_CPUMAP);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct bpf_cpumap_val);
} trill_copiers SEC(".maps");

const volatile struct trill_copying trill_copying SEC(".rodata.trill_copying") = {};

/* Frames that were copied on this CPU, and the last one that left by each port. */
struct trill_copied {
	__u32 frames;
	__u32 last[TRILL_PORTS];
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct trill_copied);
} trill_copied SEC(".maps");

/* CPUs that frames of links are handed to; each runs `trill_worker`. */
struct {
	__uint(type, BPF_MAP_TYPE_CPUMAP);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct bpf_cpumap_val);
} trill_cpus SEC(".maps");

volatile struct trill_spread trill_spread SEC(".data.trill_spread") = {};

COUNTERS(trill_counters, TRILL_PORTS * TRILL_COUNTERS_OF_PORT);

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, TRILL_TAP_RING_BYTES);
} trill_tap SEC(".maps");

/* Keeps the struct in the object's type information. */
const struct trill_tapped *trill_tapped_type __attribute__((unused));

INLINE const struct trill_fib *current_fib(void)
{
	const struct trill_fib *fib = trill_state.bank ? &trill_fib_1 : &trill_fib_0;

	asm volatile("" : "+r"(fib)); /* or the compiler chooses again at every use */
	return fib;
}

/* 0: there is none. No reserved nickname has one, nor has our own. */
INLINE __u32 route_to(const struct trill_fib *fib, __u16 nickname)
{
	return fib->route[bpf_htons(nickname)];
}

/* Place of the tree; TRILL_TREES_MAX: there is none. */
INLINE __u32 place_of_tree(const struct trill_fib *fib, __u16 root)
{
#pragma unroll
	for (__u32 i = 0; i < TRILL_TREES_MAX; i++) {
		if (fib->tree[i].root == root)
			return i;
	}
	return TRILL_TREES_MAX;
}

/* 1 to 63, or 0: not one of our ports. */
INLINE __u32 port_of(const struct trill_fib *fib, __u32 ifindex)
{
	/* A port's index is below that, see the loader. */
	return fib->port_of[ifindex & (TRILL_INTERFACES - 1)] & (TRILL_PORTS - 1);
}

INLINE void count_at(__u32 port, enum trill_outcome outcome)
{
	count(&trill_counters, port * TRILL_COUNTERS_OF_PORT + outcome);
}

/* Whether the port carries frames of the VLAN's end stations. */
INLINE int carries(const struct trill_fib *fib, __u32 port, __u16 vlan)
{
	if (!(fib->native_ports[vlan] >> port & 1))
		return 0;
	return fib->ports[port & (TRILL_PORTS - 1)].kind != TRILL_SHARED || bpf_ktime_get_ns() < trill_access_until_ns;
}

/* How far ahead of the clock each port's limits have been used, as virtual times. */
struct trill_used {
	__u64 control_ns;
	__u64 storm_ns;
};

struct trill_used trill_used[TRILL_PORTS];

/*
 * Whether a limit lets one more frame pass: its virtual time may run ahead of the clock by one burst. Without a lock: two CPUs at
 * once may get one for two.
 */
INLINE int is_within(__u64 *used_ns, __u64 interval_ns, __u64 burst_ns)
{
	__u64 now = bpf_ktime_get_ns(), start = *used_ns > now ? *used_ns : now;

	if (start - now > burst_ns)
		return 0;
	*used_ns = start + interval_ns;
	return 1;
}

/* Frames for the daemon. */
GLOBAL int is_within_control(__u32 port)
{
	return is_within(&trill_used[port & (TRILL_PORTS - 1)].control_ns, 1000000000 / TRILL_CONTROL_PER_S, 1000000000);
}

/* Frames for groups and unknown stations. */
GLOBAL int is_within_storm(__u32 port)
{
	__u64 interval_ns = trill_limits.storm_interval_ns;

	return !interval_ns ||
	       is_within(&trill_used[port & (TRILL_PORTS - 1)].storm_ns, interval_ns, trill_limits.storm_burst_ns);
}

/* Every so many frames one, by chance, so that no pattern of the traffic hides. */
static __noinline int tap(struct xdp_md *ctx, __u32 port, __u32 outcome, __u32 every)
{
	struct trill_tapped *record;
	__u32 length = bpf_xdp_get_buff_len(ctx);
	__u32 kept = length < TRILL_TAP_BYTES ? length : TRILL_TAP_BYTES;

	if (every > 1 && bpf_get_prandom_u32() % every)
		return 0;
	if (kept < ETH_LENGTH)
		return 0;
	record = bpf_ringbuf_reserve(&trill_tap, sizeof(*record), 0);
	if (!record)
		return 0;
	record->time_ns = bpf_ktime_get_ns();
	record->length = length;
	record->kept = kept;
	record->port = port;
	record->outcome = outcome;
	asm volatile("" : "+r"(kept)); /* or the compiler checks another copy of it than it passes on */
	if (kept > TRILL_TAP_BYTES || bpf_xdp_load_bytes(ctx, 0, record->bytes, kept))
		record->kept = 0;
	bpf_ringbuf_submit(record, 0);
	return 0;
}

INLINE void count_and_tap(struct xdp_md *ctx, __u32 port, enum trill_outcome outcome)
{
	count_at(port, outcome);
	__u32 every = trill_tap_every;
	if (every)
		tap(ctx, port, outcome, every);
}
