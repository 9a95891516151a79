/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/* The VTEP's tables from inside: who is which port or peer, who is where, learning, messages to user space. */
#pragma once

#include "vxlan_cache.h"

#define NOINLINE static __attribute__((noinline))
#define E2BIG 7

INLINE void count_event(enum vtep_event event)
{
	count(&vtep_events, event);
}

/* The port of an interface, and its index; NULL if it is none of ours. */
INLINE struct vtep_port *port_of(__u32 ifindex, __u32 *index)
{
	__u32 number = ifindex & (VTEP_PORT_SLOTS - 1);
	struct vtep_port *slot = bpf_map_lookup_elem(&vtep_port_slots, &number);

	if (slot && slot->ifindex == ifindex) {
		*index = slot->index;
		return slot;
	}
	__u32 *found = bpf_map_lookup_elem(&vtep_port_index, &ifindex);
	if (!found)
		return NULL;
	*index = *found;
	return bpf_map_lookup_elem(&vtep_ports, index);
}

INLINE __u32 circuit_of(__u32 port_index, __u32 vlan)
{
	return port_index << VTEP_VLAN_BITS | vlan;
}

/* The VNI of a circuit of this port; 0: none. */
INLINE __u32 segment_of(const struct vtep_port *port, __u32 vlan)
{
	if (!(port->flags & PORT_TRUNK))
		return vlan ? 0 : port->vni;
	__u32 number = circuit_of(port->trunk, vlan);
	__u32 *vni = bpf_map_lookup_elem(&vtep_vlans, &number);
	return vni ? *vni : 0;
}

/* 1 and the index of a peer, or 0. */
INLINE int peer_of(__be32 address, __u32 *index)
{
	__u32 number = bpf_ntohl(address) & (VTEP_PEER_SLOTS - 1);
	struct vtep_slot *slot = bpf_map_lookup_elem(&vtep_peer_slots, &number);

	if (slot && slot->number == address) {
		*index = slot->index;
		return 1;
	}
	__u32 *found = bpf_map_lookup_elem(&vtep_peer_index, &address);
	if (!found)
		return 0;
	*index = *found;
	return 1;
}

/* A walk over the VTEPs that floods of a segment go to. */
struct search {
	struct vtep_flood *flood;
	__be32 peer;
	__u32 found;
};

static long is_remote(__u32 turn, struct search *search)
{
	if (turn >= VTEP_FLOOD_REMOTES)
		return 1;
	search->found = search->flood->remote[turn] == search->peer;
	return search->found;
}

/*
 * Whether a VTEP may send into a segment. Only asked for sources that were not seen from it lately: where they were, it was let
 * in, and nothing has changed since.
 */
GLOBAL int is_member(__u32 vni, __be32 peer)
{
	struct vtep_member here = { vni, peer }, anywhere = { 0, peer };
	struct search search = { .peer = peer };

	if (bpf_map_lookup_elem(&vtep_members, &here))
		return 1;
	struct vtep_vni *segment = bpf_map_lookup_elem(&vtep_vnis, &vni);
	if (!segment || segment->flags & VNI_NAMED)
		return 0;
	if (!(segment->flags & VNI_LISTED) && bpf_map_lookup_elem(&vtep_members, &anywhere))
		return 1;
	search.flood = bpf_map_lookup_elem(&vtep_floods, &vni);
	if (!search.flood)
		return 0;
	__u32 remotes = search.flood->remotes;
	bpf_loop(remotes < VTEP_FLOOD_REMOTES ? remotes : VTEP_FLOOD_REMOTES, is_remote, &search, 0);
	return search.found;
}

/*
 * Written in the pieces that comparing keys reads; the hash function reads parts of them. A read of two pieces at once
 * would make the processor wait until both are in the cache.
 */
INLINE struct fdb_key fdb_key_of(__u32 vni, const __u8 *mac)
{
	struct fdb_key key;

	*(volatile __u64 *)&key = (__u64)*(const __u32 *)mac << 32 | vni;
	*(volatile __u32 *)(key.mac + 4) = *(const __u16 *)(mac + 4);
	return key;
}

INLINE int is_group_mac(const __u8 *mac)
{
	return mac[0] & 1;
}

INLINE int is_no_station(const __u8 *mac)
{
	return is_group_mac(mac) || (*(const __u32 *)mac == 0 && *(const __u16 *)(mac + 4) == 0);
}

/* 01-80-C2-00-00-00 to -0F: of the link, never of the segment behind it (IEEE 802.1Q 8.6.3). */
INLINE int is_link_local_mac(const __u8 *mac)
{
	return *(const __u32 *)mac == bpf_htonl(0x0180c200) &&
	       (*(const __u16 *)(mac + 4) & bpf_htons(0xfff0)) == 0;
}

INLINE int is_broadcast_mac(const __u8 *mac)
{
	return *(const __u32 *)mac == 0xffffffff && *(const __u16 *)(mac + 4) == 0xffff;
}

/* Whether a token bucket lets one more pass: its virtual time may run ahead of the clock by one burst. */
INLINE int is_within(__u64 *virtual_ns, const struct vtep_limit *limit, __u64 now)
{
	__u64 start = *virtual_ns > now ? *virtual_ns : now;

	if (start - now > limit->burst_ns)
		return 0;
	*virtual_ns = start + limit->interval_ns;
	return 1;
}

/* Whether the segment in this slot may cause one more message. Without a lock: two CPUs at once may get one for two. */
GLOBAL int may_tell(__u32 slot, int is_miss)
{
	struct vtep_budget *budget = bpf_map_lookup_elem(&vtep_budgets, &slot);
	struct vtep_limit limit = { .interval_ns = 1000000000 / VTEP_UPCALLS_PER_S };

	limit.burst_ns = limit.interval_ns * (VTEP_UPCALLS_AT_ONCE - 1);
	if (budget && is_within(is_miss ? &budget->miss_ns : &budget->place_ns, &limit, bpf_ktime_get_ns()))
		return 1;
	count_event(VTEP_EVENT_UPCALL_LIMITED);
	return 0;
}

NOINLINE void send_upcall(struct vtep_upcall *message)
{
	if (bpf_ringbuf_output(&vtep_upcalls, message, sizeof(*message), 0))
		count_event(VTEP_EVENT_UPCALL_LOST);
	else
		count_event(VTEP_EVENT_UPCALL);
}

/* Tells user space where an address was learned. */
INLINE void tell_place(__u32 kind, const struct fdb_key *key, const struct fdb_entry *entry)
{
	struct vtep_upcall message = { .kind = kind, .vni = key->vni };

	if (!may_tell(entry->vni_slot, 0))
		return;
	if (entry->kind == FDB_PEER) {
		message.peer = entry->place;
	} else {
		message.ifindex = entry->place;
		message.vlan = entry->target & VTEP_VLAN_MASK;
	}
	copy_mac(message.source, key->mac);
	send_upcall(&message);
}

GLOBAL int is_full(__u32 place, __u32 most)
{
	__u32 *came = bpf_map_lookup_elem(&vtep_learned, &place), *went = bpf_map_lookup_elem(&vtep_forgotten, &place);

	/* For a moment more may have gone than came. */
	return !came || !went || (__s32)(*came - *went) >= (__s32)most;
}

GLOBAL int count_learned(__u32 place, __u32 change)
{
	__u32 *came = bpf_map_lookup_elem(&vtep_learned, &place);

	if (came)
		__sync_fetch_and_add(came, change);
	return 0;
}

/* Of the port behind which an address is; VTEP_NOWHERE: it is behind a peer. */
INLINE __u32 macs_of_port(const struct fdb_entry *entry)
{
	return entry->kind == FDB_PORT ? VTEP_MACS_FIRST + vtep_config.vnis + (entry->target >> VTEP_VLAN_BITS) : VTEP_NOWHERE;
}

INLINE int port_is_full(const struct fdb_entry *fresh)
{
	__u32 index = fresh->target >> VTEP_VLAN_BITS;

	if (fresh->kind != FDB_PORT)
		return 0;
	struct vtep_port *port = bpf_map_lookup_elem(&vtep_ports, &index);
	if (!port)
		return 1;
	return is_full(macs_of_port(fresh),
		       port->flags & PORT_TRUNK ? vtep_config.trunk_macs_most : vtep_config.port_macs_most);
}

/* An address that is new: within what its port, its segment and all together may have. */
INLINE int add_learned(struct fdb_key *key, struct fdb_entry *fresh)
{
	__u32 segment = VTEP_MACS_FIRST + fresh->vni_slot;
	enum vtep_event refused = VTEP_EVENT_COUNT;

	if (port_is_full(fresh))
		refused = VTEP_EVENT_PORT_FULL;
	else if (is_full(segment, vtep_config.vni_macs_most))
		refused = VTEP_EVENT_VNI_FULL;
	else if (is_full(VTEP_MACS_ALL, vtep_config.macs_most))
		refused = VTEP_EVENT_TABLE_FULL;
	if (refused != VTEP_EVENT_COUNT) {
		count_event(refused);
		return 0;
	}
	long failed = bpf_map_update_elem(&vtep_fdb, key, fresh, BPF_NOEXIST);
	if (failed == -E2BIG)
		count_event(VTEP_EVENT_TABLE_FULL);
	if (failed)
		return 0;
	count_learned(VTEP_MACS_ALL, 1);
	count_learned(segment, 1);
	count_learned(macs_of_port(fresh), 1);
	return 1;
}

NOINLINE int learn_slowly(struct fdb_key *key, struct fdb_entry *fresh)
{
	struct fdb_entry *known = bpf_map_lookup_elem(&vtep_fdb, key);

	/* Told: nothing to learn. Before the segment is asked, which with thousands of them is in no cache. */
	if (known && known->origin != FDB_LEARNED)
		return 0;
	struct vtep_vni *vni = bpf_map_lookup_elem(&vtep_vnis, key);
	if (!vni || !(vni->flags & VNI_LEARNS))
		return 0;
	fresh->seen_ns = bpf_ktime_get_coarse_ns();
	fresh->vni_slot = vni->slot;
	if (!known) {
		if (!add_learned(key, fresh))
			return 0;
		count_event(VTEP_EVENT_LEARNED);
		tell_place(UPCALL_LEARNED, key, fresh);
		return 0;
	}
	if (known->kind == fresh->kind && known->target == fresh->target) {
		known->seen_ns = fresh->seen_ns;
		return 0;
	}
	__u32 before = macs_of_port(known), after = macs_of_port(fresh);
	if (before != after && port_is_full(fresh)) {
		count_event(VTEP_EVENT_PORT_FULL);
		return 0;
	}
	if (!bpf_map_update_elem(&vtep_fdb, key, fresh, BPF_EXIST)) {
		count_learned(before, -1);
		count_learned(after, 1);
		__sync_fetch_and_add(&vtep_moved, 1);
		count_event(VTEP_EVENT_MOVED);
		tell_place(UPCALL_MOVED, key, fresh);
	}
	return 0;
}

/* Where a frame came from: a port, or a peer. */
struct origin {
	__u32 kind;  /* FDB_* */
	__u32 index; /* circuit of the port, or index of the peer */
	__u32 place;
	__u32 told; /* vtep_told before that was looked up */
};

/*
 * The frame's source is where it came from. For one that was lately found to be in the table like that, this costs no
 * hash look-up.
 */
INLINE void learn(__u32 vni, const __u8 *mac, const struct origin *from)
{
	int is_peer = from->kind == FDB_PEER;
	struct seen *seen = &vtep_seen[cache_slot(mac_at(mac), vni)];
	__u64 word = sighting(vni, mac_at(mac), from->kind, is_peer ? from->place : from->index, from->told);

	if (seen->word == word)
		return;
	struct fdb_key key = fdb_key_of(vni, mac);
	struct fdb_entry fresh = { .target = from->index, .place = from->place, .kind = from->kind };
	seen->peer = is_peer ? (__u64)from->index << 32 | from->place : 0;
	seen->word = word;
	learn_slowly(&key, &fresh);
}

INLINE void count_sent(void *map, __u32 index, __u32 bytes)
{
	struct vtep_traffic *traffic = bpf_map_lookup_elem(map, &index);

	if (traffic) {
		traffic->sent_frames++;
		traffic->sent_bytes += bytes;
	}
}

INLINE void count_received(void *map, __u32 index, __u32 bytes)
{
	struct vtep_traffic *traffic = bpf_map_lookup_elem(map, &index);

	if (traffic) {
		traffic->received_frames++;
		traffic->received_bytes += bytes;
	}
}
