/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/* The test centre's probe; weft-wire's probe.rs draws it. Unaligned loads: it stands behind headers of any length. */
#pragma once

#include "../../datapath/bpf/lib/headers.h"

#define PROBE_MAGIC 0x5750
#define PROBE_LENGTH 18
#define PROBE_TIME_MASK ((1ULL << 40) - 1)
#define PROBE_DELAY_UNIT_SHIFT 6
#define PROBE_DELAY_MAX 0xffff

#define WORD16(at) (*(__u16 *)(at))
#define WORD32(at) (*(__u32 *)(at))
#define WORD64(at) (*(__u64 *)(at))

/* The second word as a number: seed, time of sending, virtual delay. */
#define PROBE_STAMP(probe) __builtin_bswap64(WORD64((probe) + 8))

INLINE __u64 probe_stamp(__u32 seed, __u64 now_ns, __u64 delay_units)
{
	return (__u64)seed << 56 | (now_ns & PROBE_TIME_MASK) << 16 | delay_units;
}

INLINE __u16 probe_sum(__u64 first, __u64 second)
{
	return fold_sum((first & 0xffffffff) + (first >> 32) + (second & 0xffffffff) + (second >> 32));
}

/* Writes the whole probe; the caller has checked that there is room. */
INLINE void probe_write(void *probe, __u32 stream, __u32 sequence, __u64 stamp)
{
	__u64 first = __builtin_bswap64((__u64)PROBE_MAGIC << 48 | (__u64)(stream & 0xffff) << 32 | sequence);
	__u64 second = __builtin_bswap64(stamp);

	WORD64(probe) = first;
	WORD64(probe + 8) = second;
	WORD16(probe + 16) = ~probe_sum(first, second);
}

/* A new stamp on an intact probe. */
INLINE void probe_restamp(void *probe, __u64 stamp)
{
	__u64 second = __builtin_bswap64(stamp);

	WORD64(probe + 8) = second;
	WORD16(probe + 16) = ~probe_sum(WORD64(probe), second);
}

INLINE int probe_is_whole(void *probe)
{
	__u16 sum = ~probe_sum(WORD64(probe), WORD64(probe + 8));

	/* Zero has two forms in ones' complement. */
	return sum == WORD16(probe + 16) || (__u16)~(sum ^ WORD16(probe + 16)) == 0;
}

INLINE int probe_is_at(void *probe, void *end)
{
	return probe + PROBE_LENGTH <= end && WORD16(probe) == bpf_htons(PROBE_MAGIC) && probe_is_whole(probe);
}

/*
 * The probe of a frame on its way, whatever it is wrapped in: plain, tagged, behind one or two outer IPv4 headers (VL2),
 * TRILL with and without its outer header, VXLAN, VXLAN with an inner tag; with IPv6 20 bytes further back. Magic and checksum
 * make a mistake a matter of one in 2^32.
 */
INLINE void *probe_find(void *data, void *end)
{
	if (probe_is_at(data + 42, end))
		return data + 42;
	if (probe_is_at(data + 46, end))
		return data + 46;
	if (probe_is_at(data + 52, end))
		return data + 52;
	if (probe_is_at(data + 62, end))
		return data + 62;
	if (probe_is_at(data + 66, end))
		return data + 66;
	if (probe_is_at(data + 82, end))
		return data + 82;
	if (probe_is_at(data + 92, end))
		return data + 92;
	if (probe_is_at(data + 96, end))
		return data + 96;
	if (probe_is_at(data + 72, end))
		return data + 72;
	if (probe_is_at(data + 86, end))
		return data + 86;
	if (probe_is_at(data + 112, end))
		return data + 112;
	if (probe_is_at(data + 116, end))
		return data + 116;
	return NULL;
}
