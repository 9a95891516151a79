/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/*
 * What was lately looked up in the forwarding table, in front of it: a hash look-up costs as much as all else that is done
 * for a frame. For sources: that they are where they should be, which is looked up again after about a second. For
 * destinations, on XDP: where they are, for as long as nothing changes. All CPUs share the slots.
 */
#pragma once

#include "vxlan_maps.h"

#define CACHE_SLOTS_LOG2 14
#define CACHE_HASH 0x9e3779b97f4a7c15ULL
#define CACHE_MIX 0xd6e8feb86659fd93ULL

/* The VNI is spread first: where stations and segments are numbered alike, what differs would cancel out. */
INLINE __u32 cache_slot(__u64 mac, __u32 vni)
{
	return (mac ^ vni * CACHE_MIX) * CACHE_HASH >> (64 - CACHE_SLOTS_LOG2);
}

/* Sources. The TC and the XDP programs share them, so that a station which moves is noticed. */
struct seen {
	__u64 word;
	__u64 peer; /* address, and above it the index; of what is behind a port: 0 */
};

struct seen vtep_seen[1 << CACHE_SLOTS_LOG2] SEC(".bss.vtep_seen");

/* Times are compared in slices of so many jiffies, as a power of two: about a second at 250 Hz. */
#define SLICE_SHIFT 8

/*
 * A source address at a place (circuit of a port, address of a peer), now, and since user space last changed anything: in
 * one word. An error of one in 2^64 would only put off learning for a second. `told`: from before anything was looked up.
 */
INLINE __u64 sighting(__u32 vni, __u64 mac, __u32 kind, __u32 place, __u32 told)
{
	__u64 now = (bpf_jiffies64() >> SLICE_SHIFT) + told;

	return (mac | now << 48) ^ ((__u64)vni << 40 | (__u64)kind << 32 | place) * CACHE_MIX;
}

INLINE int is_seen_at_port(__u32 vni, __u64 mac, __u32 circuit)
{
	return vtep_seen[cache_slot(mac, vni)].word == sighting(vni, mac, FDB_PORT, circuit, vtep_told);
}

/* Then the peer is known, and this is its index. */
INLINE int is_seen_from_peer(__u32 vni, __u64 mac, __be32 address, __u32 *index)
{
	const struct seen *seen = &vtep_seen[cache_slot(mac, vni)];
	__u64 peer = seen->peer;

	*index = peer >> 32;
	return seen->word == sighting(vni, mac, FDB_PEER, address, vtep_told) && (__u32)peer == address;
}

/* Destinations. */
struct found {
	__u64 mixed;  /* key, mixed with the other two: what two CPUs leave that write at once is nobody's */
	__u64 state;  /* see found_state */
	__u64 target; /* circuit of the port or index of the peer, and above it the slot of the VNI's counters */
	__u64 unused;
};

struct found vtep_found[1 << CACHE_SLOTS_LOG2] SEC(".bss.vtep_found");

/* Version of the tables, kind of place, upper part of the VNI. `version`: from before the look-up. Never 0. */
INLINE __u64 found_state(__u32 version, __u32 vni, __u32 kind)
{
	return (__u64)version << 32 | kind << 8 | vni >> 16;
}

/* The key is the MAC and the lower part of the VNI. */
INLINE __u64 found_mixed(__u32 vni, __u64 mac, __u64 state, __u64 target)
{
	return (mac | (__u64)vni << 48) ^ (state + target) * CACHE_MIX;
}

INLINE __u32 tables_version(void)
{
	return vtep_told + vtep_moved;
}

INLINE void keep_found(__u32 version, __u32 vni, __u64 mac, const struct fdb_entry *entry)
{
	struct found *found = &vtep_found[cache_slot(mac, vni)];
	__u64 target = (__u64)entry->vni_slot << 32 | entry->target;
	__u64 state = found_state(version, vni, entry->kind);

	found->state = state;
	found->target = target;
	found->mixed = found_mixed(vni, mac, state, target);
}

/* Whether a destination was found to be behind a peer, or a port, and nothing has changed since. */
INLINE int find_again(__u32 vni, __u64 mac, __u32 kind, __u64 *target)
{
	const struct found *found = &vtep_found[cache_slot(mac, vni)];
	__u64 state = found_state(tables_version(), vni, kind);

	*target = found->target;
	return found->state == state && found->mixed == found_mixed(vni, mac, state, *target);
}
