/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/*
 * A link that is worse than it should be, at the end where its frames come in: a share of them is lost, and what a slower line
 * with its queue would not carry is dropped. In front of all other programs on TC, or in the place of an XDP program, which
 * has the frame next.
 *
 * Which frames are lost depends on the seed and on how many came before alone. A super frame is one frame here.
 */
#include "../../datapath/bpf/lib/ctx_tc.h"
#include "../../datapath/bpf/lib/outcome.h"
#include "testbed_abi.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

const volatile struct impair_constants impair SEC(".rodata.impair");

COUNTERS(impair_counters, IMPAIR_OUTCOME_COUNT);

/* The XDP program whose place this one has. */
struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} impair_behind SEC(".maps");

/* A FIFO in virtual time, as tester_link.bpf.c has it: frames are not held, but there are no more of them. */
struct impair_line {
	struct bpf_spin_lock lock;
	__u32 zero;
	__u64 idle_ticks; /* when the line will have sent everything */
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct impair_line);
} impair_lines SEC(".maps");

__u64 impair_frames SEC(".data.impair") = 0;

/* SplitMix64 (Steele et al. 2014): the number of this place in the seed's sequence. */
INLINE __u64 chance(__u64 place)
{
	__u64 z = impair.seed + (place + 1) * 0x9e3779b97f4a7c15ULL;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
	return z ^ (z >> 31);
}

INLINE int line_takes(__u64 bytes)
{
	__u32 first = 0;
	struct impair_line *line = bpf_map_lookup_elem(&impair_lines, &first);
	__u64 arrival = bpf_ktime_get_ns() << 10;
	int taken = 0;

	if (!line)
		return 1;
	bpf_spin_lock(&line->lock);
	__u64 start = line->idle_ticks > arrival ? line->idle_ticks : arrival;
	if (start - arrival <= impair.queue_ns << 10) {
		taken = 1;
		line->idle_ticks = start + (bytes + impair.overhead_bytes) * impair.ticks_per_byte;
	}
	bpf_spin_unlock(&line->lock);
	return taken;
}

/* Whether the frame goes on. The line first: what it carries may be lost. */
INLINE int goes_on(__u64 bytes)
{
	enum impair_outcome outcome = IMPAIR_PASSED;

	if (impair.ticks_per_byte && !line_takes(bytes))
		outcome = IMPAIR_BEYOND_RATE;
	else if (impair.threshold && chance(__sync_fetch_and_add(&impair_frames, 1)) >> 32 < impair.threshold)
		outcome = IMPAIR_LOST;
	count(&impair_counters, outcome);
	return outcome == IMPAIR_PASSED;
}

SEC("tcx/ingress")
int impair_tc(struct __sk_buff *ctx)
{
	return goes_on(ctx_frame_bytes(ctx)) ? VERDICT_NEXT : TC_ACT_SHOT;
}

SEC("xdp.frags")
int impair_xdp(struct xdp_md *ctx)
{
	if (!goes_on(bpf_xdp_get_buff_len(ctx)))
		return XDP_DROP;
	bpf_tail_call(ctx, &impair_behind, 0);
	/* Only if it has gone. */
	return XDP_PASS;
}
