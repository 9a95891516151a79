/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/* The VTEP's tables, the same for its TC and its XDP programs. Sizes are set before load. */
#pragma once

#include "../vxlan_abi.h"
#include "outcome.h"

const volatile struct vtep_config vtep_config SEC(".rodata.vtep");

#define VTEP_MAP(map_name, map_type, entries, key_type, value_type, ...) \
	struct { \
		__uint(type, BPF_MAP_TYPE_##map_type); \
		__uint(max_entries, entries); \
		__type(key, key_type); \
		__type(value, value_type); \
		__VA_ARGS__ \
	} map_name SEC(".maps")

/* Who is where. When it is full nothing more is learned; what was told stays. */
VTEP_MAP(vtep_fdb, HASH, 16384, struct fdb_key, struct fdb_entry);

/* Ports: by index; by interface, the same again for whoever has the slot, and the index of all. */
VTEP_MAP(vtep_ports, ARRAY, 1024, __u32, struct vtep_port);
VTEP_MAP(vtep_port_slots, ARRAY, VTEP_PORT_SLOTS, __u32, struct vtep_port);
VTEP_MAP(vtep_port_index, HASH, 1024, __u32, __u32);

/* Peers: index by address, without and with a hash. */
VTEP_MAP(vtep_peer_slots, ARRAY, VTEP_PEER_SLOTS, __u32, struct vtep_slot);
VTEP_MAP(vtep_peer_index, HASH, 1024, __be32, __u32);

/* Segments, and what only floods and misses look at. */
VTEP_MAP(vtep_vnis, HASH, 1024, __u32, struct vtep_vni, __uint(map_flags, BPF_F_NO_PREALLOC););
VTEP_MAP(vtep_floods, HASH, 1024, __u32, struct vtep_flood, __uint(map_flags, BPF_F_NO_PREALLOC););
VTEP_MAP(vtep_arp, HASH, 16384, struct vtep_arp_key, struct vtep_arp, __uint(map_flags, BPF_F_NO_PREALLOC););
VTEP_MAP(vtep_limits, ARRAY, 1024, __u32, struct vtep_limits);

COUNTERS(vtep_counters, VTEP_OUTCOME_COUNT);
COUNTERS(vtep_events, VTEP_EVENT_COUNT);
VTEP_MAP(vtep_vni_traffic, PERCPU_ARRAY, 1024, __u32, struct vtep_traffic);
VTEP_MAP(vtep_peer_traffic, PERCPU_ARRAY, 1024, __u32, struct vtep_traffic);

/* Addresses lately found to be in the table as they should be: a second look would cost a hash for every frame. */
VTEP_MAP(vtep_recent, PERCPU_ARRAY, VTEP_RECENT_SLOTS, __u32, struct vtep_recent);

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, VTEP_UPCALL_BYTES);
} vtep_upcalls SEC(".maps");

/* Keeps the struct in the object's type information. */
const struct vtep_upcall *vtep_upcall_type __attribute__((unused));
