/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/* Counting outcomes: one per-CPU counter for each, so that no frame disappears without a reason. */
#pragma once

#include "headers.h"

#define COUNTERS(map_name, outcomes) \
	struct { \
		__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY); \
		__uint(max_entries, outcomes); \
		__type(key, __u32); \
		__type(value, __u64); \
	} map_name SEC(".maps")

INLINE void count(void *counters, __u32 outcome)
{
	__u64 *counter = bpf_map_lookup_elem(counters, &outcome);

	if (counter)
		*counter += 1;
}
