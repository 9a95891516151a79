/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/* Which bucket of the HDR histogram (two significant digits) a value belongs to. */
#pragma once

#include "testbed_abi.h"
#include "../../datapath/bpf/lib/headers.h"

/* Position of the highest bit; the value is not 0. eBPF of this age has no instruction for it. */
INLINE __u32 highest_bit(__u64 value)
{
	__u32 bit = 0;

	if (value >> 32) {
		bit += 32;
		value >>= 32;
	}
	if (value >> 16) {
		bit += 16;
		value >>= 16;
	}
	if (value >> 8) {
		bit += 8;
		value >>= 8;
	}
	if (value >> 4) {
		bit += 4;
		value >>= 4;
	}
	if (value >> 2) {
		bit += 2;
		value >>= 2;
	}
	return bit + (value >> 1 ? 1 : 0);
}

INLINE __u32 histogram_bucket(__u64 value)
{
	if (value < 256)
		return value;
	__u32 octave = highest_bit(value);
	__u32 bucket = 256 + (octave - 8) * 128 + ((value >> ((octave - 7) & 63)) & 127);

	return bucket < TESTER_BUCKETS ? bucket : TESTER_BUCKETS - 1;
}

INLINE void histogram_add(__u64 *histogram, __u64 value)
{
	__u32 bucket = histogram_bucket(value);

	if (bucket < TESTER_BUCKETS)
		histogram[bucket]++;
}
