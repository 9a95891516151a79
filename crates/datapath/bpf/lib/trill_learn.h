/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/*
 * Learning where stations are (RFC 6325 4.8) and looking it up. Both have a small cache before the table: for sources, of
 * what was learned this second; for destinations, of what was found since the daemon last turned the clock or changed the
 * table. A frame costs at most one look-up in the table beside those that teach something.
 */
#pragma once

#include "trill_state.h"

#define CACHE_SLOTS_LOG2 12

/* Key and place as they are in the table. */
struct learnt {
	__u64 key;
	__u64 place;
};

struct learnt learnt[1 << CACHE_SLOTS_LOG2];

/*
 * Key and place of a destination, with the table's version instead of when it was seen. The key is mixed with the place:
 * when two CPUs write a slot at once, what they leave there is nobody's.
 */
struct found {
	__u64 key_and_place;
	__u64 place;
};

struct found found[1 << CACHE_SLOTS_LOG2];

INLINE __u32 slot_of(__u64 key)
{
	return key * 0x9e3779b97f4a7c15ULL >> (64 - CACHE_SLOTS_LOG2);
}

/* struct mac_key as one word. */
INLINE __u64 station(__u64 mac, __u16 vlan)
{
	return mac | (__u64)vlan << 48;
}

/* struct trill_place as one word, observed now. */
INLINE __u64 observed(__u16 nickname, __u8 port)
{
	return nickname | (__u64)port << 16 | (__u64)TRILL_OBSERVED << 24 | (__u64)trill_state.now_s << 32;
}

#define PLACE_WHERE 0x00ffffffULL /* nickname and port */

/* The port that a station is behind; 0: it is behind another RBridge, or it is the gateway. */
INLINE __u32 port_behind(__u64 place)
{
	return (__u16)place ? 0 : place >> 16 & (TRILL_PORTS - 1);
}

/* Whether a port has all the stations that it may have. There is no port 0, and no limit to what it stands for. */
GLOBAL int is_full(__u32 port)
{
	__u32 *came = bpf_map_lookup_elem(&trill_learned, &port), *went = bpf_map_lookup_elem(&trill_forgotten, &port);

	/* For a moment more may have gone than came. */
	return port && (!came || !went || (__s32)(*came - *went) >= (__s32)trill_limits.stations);
}

GLOBAL int count_station(__u32 port, __u32 change)
{
	__u32 *came = bpf_map_lookup_elem(&trill_learned, &port);

	if (came)
		__sync_fetch_and_add(came, change);
	return 0;
}

/* Into the table, unless something surer is there. */
GLOBAL int learn_slowly(__u64 key, __u64 place, __u32 port)
{
	__u64 *known = bpf_map_lookup_elem(&trill_fdb, &key);
	__u32 behind = port_behind(place);

	found[slot_of(key)].place = 0; /* no version is 0 */
	if (known && (__u8)(*known >> 24) > TRILL_OBSERVED)
		return 0;
	int is_new_here = !known || port_behind(*known) != behind;
	if (is_new_here && is_full(behind)) {
		count_at(port, TRILL_PORT_FULL);
		return 0;
	}
	if (!known) {
		if (bpf_map_update_elem(&trill_fdb, &key, &place, BPF_ANY))
			count_at(port, TRILL_FDB_FULL);
		else
			count_station(behind, 1);
		return 0;
	}
	if ((*known ^ place) & PLACE_WHERE)
		count_at(port, TRILL_FDB_MOVED);
	if (is_new_here) {
		count_station(port_behind(*known), -1);
		count_station(behind, 1);
	}
	*known = place;
	return 0;
}

/* That the station behind `mac` and `vlan` sent a frame which came by `port`; `nickname`: of its RBridge, or 0. */
INLINE void learn(__u64 mac, __u16 vlan, __u16 nickname, __u32 port)
{
	__u64 key = station(mac, vlan);
	__u64 place = observed(nickname, nickname ? 0 : port);
	struct learnt *slot = &learnt[slot_of(key)];

	if (slot->key == key && slot->place == place)
		return;
	learn_slowly(key, place, port);
	slot->key = key;
	slot->place = place;
}

/* Whether it is known already that the station sent a frame which came from `nickname` this second. */
INLINE int is_learnt(__u64 mac, __u16 vlan, __u16 nickname)
{
	__u64 key = station(mac, vlan);
	const struct learnt *slot = &learnt[slot_of(key)];

	return slot->key == key && slot->place == observed(nickname, 0);
}

/* Nickname and port of a place, as `find` returns it. */
#define PLACE_NICKNAME 0x0000ffff
#define PLACE_PORT_SHIFT 16
#define NOWHERE 0xffffffff

/* Into the cache. Of a station that is nowhere nothing is kept: it may speak up at any time. */
static __noinline __u32 find_slowly(__u64 key)
{
	struct found *slot = &found[slot_of(key)];
	__u64 version = (__u64)trill_state.stations_version << 32;
	__u64 *known = bpf_map_lookup_elem(&trill_fdb, &key);

	if (!known)
		return NOWHERE;
	__u64 place = (*known & PLACE_WHERE) | version;
	slot->place = place;
	slot->key_and_place = key ^ place;
	return place;
}

/* Where a station is, or NOWHERE. */
INLINE __u32 find(__u64 mac, __u16 vlan)
{
	__u64 key = station(mac, vlan);
	struct found *slot = &found[slot_of(key)];
	__u64 place = slot->place;

	if (slot->key_and_place == (key ^ place) && place >> 32 == trill_state.stations_version)
		return place;
	return find_slowly(key);
}

INLINE __u16 nickname_of(__u32 place)
{
	return place & PLACE_NICKNAME;
}

INLINE __u32 port_of_place(__u32 place)
{
	return place >> PLACE_PORT_SHIFT & (TRILL_PORTS - 1);
}
