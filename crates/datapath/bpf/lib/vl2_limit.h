/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/*
 * The rate limits of a host: what its service sends beyond a rate is dropped before it reaches the network. TCP keeps
 * within its share by itself (VL2 5.3) and is spared unless asked otherwise. Broadcast has a limit of its own (4.2.3).
 */
#pragma once

#include "headers.h"

#define LIMIT_OF_SERVICE 0
#define LIMIT_OF_BROADCAST 1
#define LIMITS 2

/* Each for the whole host, whichever core sends. Not pinned: a new program begins with full ones. */
struct limit_bucket {
	struct bpf_spin_lock lock;
	__u64 paid_until_ns; /* when everything that was let out would have been sent at the rate */
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, LIMITS);
	__type(key, __u32);
	__type(value, struct limit_bucket);
} limit_buckets SEC(".maps");

/*
 * Whether a frame may leave, and if so it is paid for. A frame larger than the bucket leaves when the bucket is full and
 * is paid for afterwards: super frames are that large.
 */
INLINE int bucket_allows(__u32 limit, __u32 frame_bytes, __u64 ps_per_byte, __u64 burst_ns)
{
	struct limit_bucket *bucket = bpf_map_lookup_elem(&limit_buckets, &limit);

	if (!bucket)
		return 1;
	__u64 cost_ns = frame_bytes * ps_per_byte / 1000;
	__u64 needed_ns = cost_ns < burst_ns ? cost_ns : burst_ns;
	__u64 now_ns = bpf_ktime_get_ns();

	bpf_spin_lock(&bucket->lock);
	__u64 from_ns = bucket->paid_until_ns > now_ns ? bucket->paid_until_ns : now_ns;
	int allowed = from_ns + needed_ns <= now_ns + burst_ns;
	if (allowed)
		bucket->paid_until_ns = from_ns + cost_ns;
	bpf_spin_unlock(&bucket->lock);
	return allowed;
}

/* What goes to one AA. */
INLINE int limit_allows(__u32 frame_bytes, __u8 protocol)
{
	if (!host_config.limit_ps_per_byte || (protocol == PROTOCOL_TCP && !host_config.limit_tcp))
		return 1;
	return bucket_allows(LIMIT_OF_SERVICE, frame_bytes, host_config.limit_ps_per_byte, host_config.limit_burst_ns);
}
