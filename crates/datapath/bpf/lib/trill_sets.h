/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/*
 * Copies of a frame for several ports. The kernel copies for every device of a devmap, looks at every place of it, and has the
 * program behind it run on each copy: with all ports in one devmap most of that may be for copies that are dropped. So a set of
 * ports that frames are copied to has a devmap of its own, which the daemon makes when programs ask for it (src/trill/sets.rs); until
 * then, and when there are more sets than devmaps, a frame is copied for all ports.
 */
#pragma once

#include "trill_state.h"

/* Number and places of each devmap. As many as are left of the 64 maps that a program may use. */
#define SETS_OF_4(X) X(0, 4) X(1, 4) X(2, 4) X(3, 4) X(4, 4) X(5, 4) X(6, 4) X(7, 4) X(8, 4) X(9, 4) X(10, 4) X(11, 4)
#define SETS_OF_8(X) X(12, 8) X(13, 8) X(14, 8) X(15, 8) X(16, 8) X(17, 8) X(18, 8) X(19, 8) X(20, 8) X(21, 8)
#define SETS_OF_16(X) X(22, 16) X(23, 16) X(24, 16) X(25, 16) X(26, 16) X(27, 16) X(28, 16) X(29, 16)
#define SETS_OF_32(X) X(30, 32) X(31, 32) X(32, 32) X(33, 32) X(34, 32) X(35, 32)
#define SETS_OF_ANY(X) X(36, 2 * TRILL_PORTS) X(37, 2 * TRILL_PORTS) X(38, 2 * TRILL_PORTS) X(39, 2 * TRILL_PORTS)
#define SETS(X) SETS_OF_4(X) SETS_OF_8(X) SETS_OF_16(X) SETS_OF_32(X) SETS_OF_ANY(X)

#define DEVMAP_OF_SET(number, places) \
	struct { \
		__uint(type, BPF_MAP_TYPE_DEVMAP); \
		__uint(max_entries, places); \
		__type(key, __u32); \
		__type(value, struct bpf_devmap_val); \
	} trill_set_##number SEC(".maps");

SETS(DEVMAP_OF_SET)

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, TRILL_SETS);
	__type(key, struct trill_set);
	__type(value, struct trill_set_use);
} trill_sets SEC(".maps");

/* Sets that were asked for in vain, with the second of the daemon's clock. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, TRILL_SETS_ASKED);
	__type(key, struct trill_set);
	__type(value, __u32);
} trill_sets_asked SEC(".maps");

/* Nothing makes of the cases one with a table of maps, which no loader knows: their assembly is not the same. */
#define REDIRECT_TO_SET(number, places) \
	case number: \
		asm volatile("" ::"i"(number)); \
		return bpf_redirect_map(&trill_set_##number, 0, flags);

/* Copies the frame for all ports of a set, or for all of `trill_copy_ports`. Returns what the kernel is told. */
GLOBAL int redirect_to_set(__u32 number, __u64 flags)
{
	switch (number) {
		SETS(REDIRECT_TO_SET)
	}
	return bpf_redirect_map(&trill_copy_ports, 0, flags);
}

/* Number of the devmap of a set, or TRILL_NO_SET; then it is asked for. A frame that came by `port` is for it. */
GLOBAL int number_of_set(__u64 links, __u64 natives, __u32 port)
{
	struct trill_set set = { links, natives };
	struct trill_set_use *use = bpf_map_lookup_elem(&trill_sets, &set);
	__u32 now_s = trill_state.now_s;

	if (use) {
		if (use->used_s != now_s)
			use->used_s = now_s;
		return use->number;
	}
	count_at(port & (TRILL_PORTS - 1), TRILL_SET_MISSED);
	__u32 *asked_s = bpf_map_lookup_elem(&trill_sets_asked, &set);
	if (!asked_s)
		bpf_map_update_elem(&trill_sets_asked, &set, &now_s, BPF_ANY);
	else if (*asked_s != now_s)
		*asked_s = now_s;
	return TRILL_NO_SET;
}
