/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/* What the VTEP's programs and user space share; build/abi.rs writes the Rust of it. */
#pragma once

#include <linux/bpf.h>
#include <linux/types.h>

/* SO_MARK of a frame that is encapsulated already and only lacks a way out. */
#define VTEP_MARK 0x77767470 /* "wvtp" */

/* Slots that ports and peers are found in without a hash; powers of two. */
#define VTEP_PORT_SLOTS 8192
#define VTEP_PEER_SLOTS 4096

/*
 * Where a frame comes in or goes out at an access port: index of the port, and in the low bits the VLAN ID if the port is a
 * trunk and the frame has a tag there. With 0 there: without a tag.
 */
#define VTEP_VLAN_BITS 12
#define VTEP_VLANS 4096 /* of a trunk; one more than there are, so that 0 can be the frames without a tag */
#define VTEP_VLAN_MASK 4095
#define VTEP_NOWHERE 0xffffffff /* no circuit */

/* Next hops that XDP keeps for each peer, so that its flows still spread over several ways out; a power of two. */
#define VTEP_HOPS_PER_PEER 8

/* Copies of one frame at most, to other VTEPs and to ports of our own. */
#define VTEP_FLOOD_REMOTES 128
#define VTEP_FLOOD_PORTS 128

/* Room for messages that nobody has read yet; more are dropped and counted. */
#define VTEP_UPCALL_BYTES 131072

/* How far DSCP is the inner packet's own: this value, or the fixed type of service. */
#define VTEP_DSCP_COPY ((__u8)0xff)

/* Constants of one VTEP. */
struct vtep_config {
	__be32 local;      /* our address in the underlay */
	__be16 udp_port;   /* 4789 */
	__u8 ttl;          /* of outer headers */
	__u8 dscp;         /* VTEP_DSCP_COPY, or type of service with ECN bits zero */
	__u32 accept_unknown_peers; /* 1: frames from VTEPs that nobody told us of are delivered (and never learned) */
	__u32 vnis;        /* room for segments: where ports begin in the counts of learned addresses */
	__u32 macs_most;   /* addresses learned, in all segments */
	__u32 vni_macs_most;   /* in one segment */
	__u32 port_macs_most;  /* behind one access port */
	__u32 trunk_macs_most; /* behind one trunk */
};

/* Places in the counts of learned addresses: of all, then of each segment by its slot, then of each port by its index. */
#define VTEP_MACS_ALL 0
#define VTEP_MACS_FIRST 1

/* Who is where: key and value of the forwarding table. */
struct fdb_key {
	__u32 vni;
	__u8 mac[6];
	__u8 zero[2];
} __attribute__((aligned(4)));

#define FDB_PORT ((__u8)1) /* behind a port of ours */
#define FDB_PEER ((__u8)2) /* behind another VTEP */

#define FDB_LEARNED ((__u8)0)
#define FDB_STATIC ((__u8)1)
#define FDB_DIRECTORY ((__u8)2)

struct fdb_entry {
	__u64 seen_ns;   /* CLOCK_MONOTONIC, to about a second; of learned entries */
	__u32 target;    /* circuit of the port, or index of the peer */
	__be32 place;    /* interface index of the port (not swapped), or address of the peer in network order */
	__u32 vni_slot;  /* of the VNI's counters */
	__u8 kind;       /* FDB_PORT, FDB_PEER */
	__u8 origin;     /* FDB_LEARNED, ... */
	__u8 zero[2];
};

#define PORT_KEEPS_TAGS 1 /* frames may carry a VLAN tag */
#define PORT_UPLINK 2     /* towards the underlay; has no VNI */
#define PORT_XDP 4        /* frames may be sent out of it by XDP */
#define PORT_TRUNK 8      /* the VLAN tag says which VNI a frame is in */
#define PORT_NEEDS_TAGS (PORT_KEEPS_TAGS | PORT_TRUNK) /* frames only come in where tags beside them are seen */

/* A port of ours, by the index that user space gave it. All zero: free. */
struct vtep_port {
	__u32 ifindex;
	__u32 vni;   /* of a trunk: 0 */
	__u32 flags; /* PORT_* */
	__u32 index; /* its own */
	__u32 trunk; /* of a trunk: which block of vtep_vlans is its own */
};

/* Address to index. */
struct vtep_slot {
	__be32 number; /* 0 in a free one */
	__u32 index;
};

#define VNI_LEARNS 1          /* source addresses go into the table */
#define VNI_ANSWERS_ARP 2     /* requests for known addresses are answered here */
#define VNI_ARP_UPCALL 4      /* unanswered requests: tell user space */
#define VNI_ARP_FLOOD 8       /* unanswered requests: flood */
#define VNI_UNICAST_UPCALL 16 /* unknown unicast: tell user space */
#define VNI_UNICAST_FLOOD 32  /* unknown unicast: flood */
#define VNI_LISTED 64         /* not every peer may send into it: only those that floods go to, and VTEP_MEMBERs */
#define VNI_NAMED 128         /* nor those that floods go to */

/* A segment. */
struct vtep_vni {
	__u64 age_ns;   /* learned entries not seen for so long go; 0: never. For user space */
	__u32 slot;     /* of its counters and limits */
	__u32 flags;    /* VNI_* */
	__be32 group;   /* floods go to this underlay group; 0: to the list */
	__u32 zero;
};

/* Token buckets of a VNI, as virtual times; 0 ns interval: no limit. */
struct vtep_limit {
	__u64 interval_ns; /* between frames at the limit */
	__u64 burst_ns;    /* how far the virtual time may run ahead */
};

struct vtep_limits {
	struct vtep_limit broadcast; /* and multicast */
	struct vtep_limit unknown;   /* unicast */
};

/* The buckets' virtual times; both under the lock. */
struct vtep_clock {
	struct bpf_spin_lock lock;
	__u32 zero;
	__u64 broadcast_ns;
	__u64 unknown_ns;
};

/* Messages that a VNI may cause: so many a second, so many at once after a pause. */
#define VTEP_UPCALLS_PER_S 1000
#define VTEP_UPCALLS_AT_ONCE 128

/* What a VNI has caused, as virtual times: what it asks does not wait for what it tells. */
struct vtep_budget {
	__u64 miss_ns;  /* UPCALL_ARP, UPCALL_UNICAST */
	__u64 place_ns; /* UPCALL_LEARNED, UPCALL_MOVED */
};

/* Where floods of a VNI go. */
struct vtep_flood {
	__u32 remotes;
	__u32 ports;
	__be32 remote[VTEP_FLOOD_REMOTES];
	__u32 port[VTEP_FLOOD_PORTS]; /* circuits */
};

/* A VTEP that may send into a VNI: an entry says that a station is behind it, or it is named. VNI 0: into all without a list of their own. */
struct vtep_member {
	__u32 vni;
	__be32 peer;
};

/* MAC of an IPv4 address in a VNI. */
struct vtep_arp_key {
	__u32 vni;
	__be32 address;
};

struct vtep_arp {
	__u8 mac[6];
	__u8 zero[2];
};

#define HOP_FOREVER 0xffffffff

/* How XDP reaches a peer, for a while. Begins as a frame to it does. */
struct vtep_hop {
	__u8 destination[6];
	__u8 source[6];
	__be16 ethertype; /* IPv4 */
	__u16 mtu;     /* of the route */
	__be32 peer;   /* its address */
	__u32 port;    /* index of the uplink */
	__u32 expires; /* jiffies; 0: unknown; HOP_FOREVER: never */
};

/* Traffic of a VNI or of a peer. "sent": into the underlay. */
struct vtep_traffic {
	__u64 sent_frames;
	__u64 sent_bytes;      /* of the inner frames */
	__u64 received_frames;
	__u64 received_bytes;
};

/* Messages to user space. */
#define UPCALL_ARP 1          /* a request that we cannot answer */
#define UPCALL_UNICAST 2      /* a frame to an address that is not in the table */
#define UPCALL_LEARNED 3      /* a new address */
#define UPCALL_MOVED 4        /* an address is elsewhere now */
#define UPCALL_UNKNOWN_PEER 5 /* frames come from a VTEP that nobody told us of */

struct vtep_upcall {
	__u32 kind;           /* UPCALL_* */
	__u32 vni;
	__u32 ifindex;        /* port that the frame came in at */
	__be32 peer;          /* VTEP that it came from; 0: from a port */
	__be32 source_ip;     /* of an ARP or IPv4 packet inside, else 0 */
	__be32 destination_ip;
	__u8 source[6];
	__u16 vlan;           /* of the port's circuit */
	__u8 destination[6];
	__u8 zero[2];
};

/*
 * What became of a frame, one counter each. A frame that XDP leaves to the TC program behind it is counted there. Copies
 * of a flooded frame are counted by the events below.
 */
#define VTEP_OUTCOMES(X) \
	X(PASSED)              /* not ours: untouched, to the stack */ \
	X(ENCAPSULATED)        /* from a port to a known VTEP */ \
	X(SWITCHED)            /* from a port to another one of the same VNI */ \
	X(FLOODED)             /* from a port, broadcast, multicast or unknown: copied to ports and VTEPs */ \
	X(ARP_ANSWERED)        /* request for a known address, answered in place */ \
	X(DECAPSULATED)        /* from a VTEP, out of the port where its destination is */ \
	X(FLOODED_LOCALLY)     /* from a VTEP, broadcast, multicast or unknown: copied to ports */ \
	X(SENT_LATER)          /* a frame that had to wait for its neighbour, or a copy: now on its way */ \
	X(NO_SEGMENT)          /* dropped: the port, or what comes to this trunk without a tag, belongs to no VNI */ \
	X(TAGGED)              /* dropped: a VLAN tag where the port has none (RFC 7348 6.1) */ \
	X(UNKNOWN_VLAN)        /* dropped: a VLAN that is in no VNI at this trunk */ \
	X(BAD_SOURCE)          /* dropped: the source is a group or zero */ \
	X(UNKNOWN_DESTINATION) /* dropped: unknown unicast, and this VNI does not flood it */ \
	X(ARP_UNANSWERED)      /* dropped: request for an unknown address, and this VNI does not flood it */ \
	X(NO_RECEIVER)         /* dropped: flooded to nobody */ \
	X(BROADCAST_LIMIT)     /* dropped: more broadcast and multicast than the VNI may send */ \
	X(UNKNOWN_LIMIT)       /* dropped: more unknown unicast than the VNI may send */ \
	X(SAME_PORT)           /* dropped: the destination is where the frame came from */ \
	X(SPLIT_HORIZON)       /* dropped: from one VTEP, for another one */ \
	X(TOO_BIG)             /* dropped: does not fit into the underlay; a VTEP never fragments (RFC 7348 4.3) */ \
	X(NO_ROUTE)            /* dropped: no route to the VTEP */ \
	X(MALFORMED)           /* dropped: outer headers truncated or contradictory */ \
	X(FRAGMENT)            /* dropped: fragment of an outer packet */ \
	X(BAD_CHECKSUM)        /* dropped: outer IPv4 header checksum */ \
	X(BAD_UDP_CHECKSUM)    /* dropped: a UDP checksum that is neither zero nor right (RFC 7348 5) */ \
	X(NO_VNI_FLAG)         /* dropped: the I flag is not set (RFC 7348 5) */ \
	X(UNKNOWN_VNI)         /* dropped: a VNI that is not configured */ \
	X(UNKNOWN_PEER)        /* dropped: from a VTEP that is not configured */ \
	X(NOT_MEMBER)          /* dropped: from a VTEP that has no part in this VNI */ \
	X(INNER_MALFORMED)     /* dropped: the frame inside is truncated */ \
	X(CE_ON_NOT_ECT)       /* dropped: congestion marked on a packet that cannot carry the mark (RFC 6040 4.2) */ \
	X(PUSH_FAILED)         /* dropped: no room for the outer headers */ \
	X(POP_FAILED)          /* dropped: the outer headers could not be removed */

/* What happened beside that. */
#define VTEP_EVENTS(X) \
	X(COPIED_TO_PORT)  /* copies of flooded frames to ports */ \
	X(COPIED_TO_PEER)  /* copies of flooded frames to VTEPs or groups */ \
	X(COPY_FAILED)     /* copies that could not be made or sent */ \
	X(LEARNED)         /* new addresses */ \
	X(MOVED)           /* addresses that moved */ \
	X(TABLE_FULL)      /* addresses not learned for want of room */ \
	X(VNI_FULL)        /* addresses not learned: the segment has as many as it may have */ \
	X(PORT_FULL)       /* addresses not learned: the port has as many as it may have */ \
	X(UPCALL)          /* messages to user space */ \
	X(UPCALL_LOST)     /* messages for which there was no room */ \
	X(UPCALL_LIMITED)  /* messages that were not sent: the segment causes too many */

#define VTEP_OUTCOME_ENUMERATOR(name) VTEP_##name,
#define VTEP_EVENT_ENUMERATOR(name) VTEP_EVENT_##name,

enum vtep_outcome { VTEP_OUTCOMES(VTEP_OUTCOME_ENUMERATOR) VTEP_OUTCOME_COUNT };
enum vtep_event { VTEP_EVENTS(VTEP_EVENT_ENUMERATOR) VTEP_EVENT_COUNT };
