/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/*
 * The directory's table as the server keeps it for the card. The server writes it in place, between two steps of the
 * sequence: what was read while that stood still at an even number belongs together.
 */
#pragma once

#include "../directory_abi.h"
#include "outcome.h"

const volatile struct directory_constants directory_constants SEC(".rodata.directory");

volatile struct directory_state directory_state SEC(".data.directory");

/* By open addressing: a mapping stands in its own place, or in the first one behind that was free. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1024);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, __u32);
	__type(value, struct directory_row);
} directory_rows SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, DIRECTORY_RULES_MAX);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct directory_rule);
	__type(value, __u32);
} directory_rules SEC(".maps");

/* What a CPU has asked for lately, by place. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct directory_recent);
} directory_recent SEC(".maps");

COUNTERS(directory_counters, DIRECTORY_OUTCOME_COUNT);

/* What was read before is not read after what comes next. x86 keeps loads in order; elsewhere only a read-modify-write does. */
INLINE void keep_reads_in_order(void)
{
#ifdef __TARGET_ARCH_x86
	asm volatile("" ::: "memory");
#else
	__u64 nothing = 0;

	__sync_fetch_and_add(&nothing, 1);
#endif
}

/* Odd: somebody is writing. */
INLINE __u32 sequence_now(void)
{
	__u32 sequence = directory_state.sequence;

	keep_reads_in_order();
	return sequence;
}

INLINE int has_changed_since(__u32 sequence)
{
	keep_reads_in_order();
	return directory_state.sequence != sequence;
}

INLINE __u32 place_of(__be32 aa)
{
	return bpf_ntohl(aa) * DIRECTORY_PLACE_FACTOR >> directory_constants.shift;
}

/*
 * Has the memory of an AA's place come nearer while other things are done. A program cannot prefetch, and a load that waits for
 * memory soon holds up all that comes after it; a store does not. What this CPU has asked for lately is near already, and
 * is left alone: CPUs that ask for the same AAs again and again do not take the line from each other.
 */
INLINE void call_row(__be32 aa)
{
	__u32 zero = 0, place = place_of(aa), index = place & directory_constants.places;
	struct directory_recent *recent = bpf_map_lookup_elem(&directory_recent, &zero);
	struct directory_row *row = bpf_map_lookup_elem(&directory_rows, &index);

	if (!recent || !row || recent->aa[place % DIRECTORY_RECENT] == aa)
		return;
	recent->aa[place % DIRECTORY_RECENT] = aa;
	*(volatile __u64 *)&row->called = 0;
}

/* The mapping of an AA, or NULL: there is none, or it stands further away. */
INLINE const volatile struct directory_row *row_of(__be32 aa)
{
	__u32 place = place_of(aa);

	for (int probe = 0; probe < DIRECTORY_PROBES; probe++, place++) {
		__u32 index = place & directory_constants.places;
		const volatile struct directory_row *row = bpf_map_lookup_elem(&directory_rows, &index);

		if (!row || !row->version)
			return NULL;
		if (row->aa == aa)
			return row;
	}
	return NULL;
}

/* Services reach themselves and the common one, 0, which reaches all; rules say otherwise. */
INLINE int is_allowed(__be32 from, __be32 to)
{
	int allowed = from == to || !from || !to;

	if (!directory_state.rules)
		return allowed;
	struct directory_rule rule = { from, to };
	return bpf_map_lookup_elem(&directory_rules, &rule) ? !allowed : allowed;
}
