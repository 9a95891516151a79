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

/* What a station is behind, as a place in the arrays that count: a port, or after these the nickname of another RBridge. */
INLINE __u32 behind(__u64 place)
{
	__u16 nickname = place;

	return nickname ? TRILL_PORTS + nickname : place >> 16 & (TRILL_PORTS - 1);
}

INLINE int is_far(__u32 behind)
{
	return behind >= TRILL_PORTS;
}

/* Whether as many stations are there as may be. */
GLOBAL int is_full(__u32 behind, __u32 most)
{
	__u32 *came = bpf_map_lookup_elem(&trill_learned, &behind), *went = bpf_map_lookup_elem(&trill_forgotten, &behind);

	/* For a moment more may have gone than came. */
	return !came || !went || (__s32)(*came - *went) >= (__s32)most;
}

GLOBAL int count_station(__u32 behind, __u32 change)
{
	__u32 *came = bpf_map_lookup_elem(&trill_learned, &behind);

	if (came)
		__sync_fetch_and_add(came, change);
	__u32 all = TRILL_ALL_FAR;
	if (is_far(behind) && (came = bpf_map_lookup_elem(&trill_learned, &all)))
		__sync_fetch_and_add(came, change);
	return 0;
}

/* Why no station is learned there that was not; TRILL_OUTCOME_COUNT: it is. `was_far`: it was behind another RBridge before. */
INLINE enum trill_outcome refusal(__u32 behind, int was_far)
{
	if (!is_far(behind))
		return is_full(behind, trill_limits.port_stations) ? TRILL_PORT_FULL : TRILL_OUTCOME_COUNT;
	if (is_full(behind, trill_limits.nickname_stations))
		return TRILL_NICKNAME_FULL;
	return !was_far && is_full(TRILL_ALL_FAR, trill_limits.far_stations) ? TRILL_FDB_FULL : TRILL_OUTCOME_COUNT;
}

/* Into the table, unless something surer is there. */
GLOBAL int learn_slowly(__u64 key, __u64 place, __u32 port)
{
	__u64 *known = bpf_map_lookup_elem(&trill_fdb, &key);
	__u32 after = behind(place);

	found[slot_of(key)].place = 0; /* no version is 0 */
	if (known && (__u8)(*known >> 24) > TRILL_OBSERVED)
		return 0;
	if (!known || behind(*known) != after) {
		enum trill_outcome refused = refusal(after, known && is_far(behind(*known)));
		if (refused != TRILL_OUTCOME_COUNT) {
			count_at(port, refused);
			return 0;
		}
	}
	if (!known) {
		if (bpf_map_update_elem(&trill_fdb, &key, &place, BPF_ANY))
			count_at(port, TRILL_FDB_FULL);
		else
			count_station(after, 1);
		return 0;
	}
	if ((*known ^ place) & PLACE_WHERE) {
		count_at(port, TRILL_FDB_MOVED);
		count_station(behind(*known), -1);
		count_station(after, 1);
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
