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

/* Who is where. Learning stops before it is full: the rest is for what is told. */
VTEP_MAP(vtep_fdb, HASH, 16384, struct fdb_key, struct fdb_entry);

/* Learned addresses at each VTEP_MACS_*: those that came, counted here, and those that went, counted by user space. */
VTEP_MAP(vtep_learned, ARRAY, 1024, __u32, __u32);
VTEP_MAP(vtep_forgotten, ARRAY, 1024, __u32, __u32);

/* Ports: by index; by interface, the same again for whoever has the slot, and the index of all. */
VTEP_MAP(vtep_ports, ARRAY, 1024, __u32, struct vtep_port);
VTEP_MAP(vtep_port_slots, ARRAY, VTEP_PORT_SLOTS, __u32, struct vtep_port);
VTEP_MAP(vtep_port_index, HASH, 1024, __u32, __u32);

/* Segments of trunks' VLANs: a block of VTEP_VLANS for each trunk, by VLAN ID; 0: none. */
VTEP_MAP(vtep_vlans, ARRAY, VTEP_VLANS, __u32, __u32);

/* Peers: index by address, without and with a hash. */
VTEP_MAP(vtep_peer_slots, ARRAY, VTEP_PEER_SLOTS, __u32, struct vtep_slot);
VTEP_MAP(vtep_peer_index, HASH, 1024, __be32, __u32);

/* Segments, and what only floods and misses look at. */
VTEP_MAP(vtep_vnis, HASH, 1024, __u32, struct vtep_vni, __uint(map_flags, BPF_F_NO_PREALLOC););
VTEP_MAP(vtep_floods, HASH, 1024, __u32, struct vtep_flood, __uint(map_flags, BPF_F_NO_PREALLOC););
VTEP_MAP(vtep_arp, HASH, 16384, struct vtep_arp_key, struct vtep_arp, __uint(map_flags, BPF_F_NO_PREALLOC););
VTEP_MAP(vtep_limits, ARRAY, 1024, __u32, struct vtep_limits);
VTEP_MAP(vtep_budgets, ARRAY, 1024, __u32, struct vtep_budget);

/* Who may send into which segment, beside those that its floods go to. */
VTEP_MAP(vtep_members, HASH, 16384, struct vtep_member, __u32, __uint(map_flags, BPF_F_NO_PREALLOC););

COUNTERS(vtep_counters, VTEP_OUTCOME_COUNT);
COUNTERS(vtep_events, VTEP_EVENT_COUNT);
VTEP_MAP(vtep_vni_traffic, PERCPU_ARRAY, 1024, __u32, struct vtep_traffic);
VTEP_MAP(vtep_peer_traffic, PERCPU_ARRAY, 1024, __u32, struct vtep_traffic);

/*
 * How often it has changed who is where, or what is where: by user space, and by stations that moved. Together they are the
 * version of the tables. Variables rather than maps of one element, because a variable costs no look-up.
 */
volatile __u32 vtep_told SEC(".data.vtep_told") = 0;
volatile __u32 vtep_moved SEC(".data.vtep_moved") = 0;

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, VTEP_UPCALL_BYTES);
} vtep_upcalls SEC(".maps");

/* Keeps the struct in the object's type information. */
const struct vtep_upcall *vtep_upcall_type __attribute__((unused));
