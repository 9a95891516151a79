/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/* The VTEP's tables from inside: who is which port or peer, who is where, learning, messages to user space. */
#pragma once

#include "vxlan_maps.h"

#define NOINLINE static __attribute__((noinline))
#define E2BIG 7

/* Times are compared in slices of so many jiffies, as a power of two: about a second at 250 Hz. */
#define RECENT_SLICE_SHIFT 8

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

	if (entry->kind == FDB_PEER)
		message.peer = entry->place;
	else
		message.ifindex = entry->place;
	copy_mac(message.source, key->mac);
	send_upcall(&message);
}

NOINLINE int learn_slowly(struct fdb_key *key, struct fdb_entry *fresh)
{
	struct vtep_vni *vni = bpf_map_lookup_elem(&vtep_vnis, key);

	if (!vni || !(vni->flags & VNI_LEARNS))
		return 0;
	fresh->seen_ns = bpf_ktime_get_coarse_ns();
	fresh->vni_slot = vni->slot;
	struct fdb_entry *known = bpf_map_lookup_elem(&vtep_fdb, key);
	if (!known) {
		long failed = bpf_map_update_elem(&vtep_fdb, key, fresh, BPF_NOEXIST);

		if (failed == -E2BIG)
			count_event(VTEP_EVENT_TABLE_FULL);
		if (failed)
			return 0;
		count_event(VTEP_EVENT_LEARNED);
		tell_place(UPCALL_LEARNED, key, fresh);
		return 0;
	}
	if (known->origin != FDB_LEARNED)
		return 0;
	if (known->kind == fresh->kind && known->target == fresh->target) {
		known->seen_ns = fresh->seen_ns;
		return 0;
	}
	if (!bpf_map_update_elem(&vtep_fdb, key, fresh, BPF_EXIST)) {
		count_event(VTEP_EVENT_MOVED);
		tell_place(UPCALL_MOVED, key, fresh);
	}
	return 0;
}

/* Where a frame came from: a port, or a peer. */
struct origin {
	__u32 kind;  /* FDB_* */
	__u32 index;
	__u32 place;
};

/*
 * The frame's source is where it came from. For one that was lately found to be in the table like that, this costs no
 * hash look-up.
 */
INLINE void learn(__u32 vni, const __u8 *mac, const struct origin *from)
{
	__u32 head = *(const __u32 *)mac;
	__u16 tail = *(const __u16 *)(mac + 4);
	__u64 slice = bpf_jiffies64() >> RECENT_SLICE_SHIFT;
	__u64 address = (__u64)tail << 32 | head | slice << 48;
	__u64 place = (__u64)vni << 40 | (__u64)from->kind << 32 | from->index;
	__u32 number = ((head ^ (__u32)tail << 16) * 0x9e3779b1U ^ vni * 0x85ebca6bU) >> 20;
	struct vtep_recent *recent = bpf_map_lookup_elem(&vtep_recent, &number);

	if (!recent || (recent->address == address && recent->place == place))
		return;
	recent->address = address;
	recent->place = place;
	struct fdb_key key = fdb_key_of(vni, mac);
	struct fdb_entry fresh = { .target = from->index, .place = from->place, .kind = from->kind };
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
