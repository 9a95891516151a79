/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/*
 * What the TRILL programs and user space share: the forwarding table, the table of stations, the tap, outcomes.
 *
 * build/abi.rs writes the Rust of it.
 */
#pragma once

#include <linux/types.h>

#define TRILL_PORTS 64       /* number 0 is no port */
#define TRILL_HOPS_MAX 16    /* equal-cost next hops of one egress */
#define TRILL_GROUPS 512     /* different sets of next hops; number 0 is none */
#define TRILL_TREES_MAX 4
#define TRILL_OTHERS 3 /* nicknames of one RBridge, beside the one that frames come in with */
#define TRILL_SHARES 64 /* of what is brought onto trees here, by VLAN and destination */
#define TRILL_VLANS 4096
#define TRILL_NICKNAMES 65536
#define TRILL_INTERFACES 65536
#define TRILL_BUCKETS 2048 /* of listeners */
#define TRILL_BUCKET_SIZE 4

#define TRILL_SETS 40        /* sets of ports with a devmap of their own */
#define TRILL_SETS_ASKED 256 /* sets of ports that want one */
#define TRILL_NO_SET 255     /* instead of a devmap's number */

/* Longer frames may be in several buffers, if such long ones can come in at all. */
#define TRILL_WHOLE_MAX ((__u16)2000)

/* A next hop: what the outer header says, the port, and what it takes for certain. */
struct trill_hop {
	__u8 destination[6];
	__u8 source[6];
	__u8 port;
	__u8 elides; /* 1: the port leaves outer headers out */
	__u16 plain_max; /* the longest frame that the port takes, or TRILL_WHOLE_MAX if that is less; bytes; 0: see elides */
};

#define TRILL_NATIVE ((__u8)0) /* to end stations: no TRILL frames (access or trunk in the words of 802.1Q) */
#define TRILL_LINK ((__u8)1)   /* to an RBridge, point to point: no native frames */
#define TRILL_SHARED ((__u8)2) /* to RBridges and end stations on one link (hybrid in the words of RFC 7780 6) */

#define TRILL_SHARERS 64 /* neighbours on a shared link */

/* Whether a link goes without outer headers, see lib/trill_elide.h. */
#define TRILL_ELIDES_NOT ((__u8)0)
#define TRILL_ELIDES_IN ((__u8)1)   /* we take frames without, the neighbour does not */
#define TRILL_ELIDES_BOTH ((__u8)2) /* and send them so */

/* A port. The first twelve bytes are those that a unicast frame to us from our neighbour begins with. */
struct trill_port {
	__u8 mac[6];
	__u8 neighbor[6]; /* a link's: the port of the RBridge whose adjacency is in Report; a shared link's are in `sharers` */
	__u8 kind;
	__u8 adjacent; /* a link's: how many such neighbours there are */
	__u16 vlan;    /* of untagged frames; 0: there are none */
	__u16 frame_max; /* bytes without a tag */
	__u8 elides;   /* a link's: TRILL_ELIDES_* */
	__u8 reserved;
	__u32 plain;   /* start of a plain frame's Ethertype and header, see is_plain; 0: none is plain here */
	__u16 ifindex; /* not read by programs */
	__u16 designated_vlan; /* a link's: of frames between RBridges, which have a tag where this is not `vlan` */
	__u32 plain_elided; /* `plain` of a frame without outer header */
};

/* A distribution tree as one RBridge sees it (RFC 6325 4.5). Sets of ports have the bit 1 << number. */
struct trill_tree {
	__u64 ports; /* branches */
	__u64 vlan_ports[TRILL_VLANS]; /* of these, the ones behind which somebody is in the VLAN */
	__u16 root;    /* nickname; 0: no tree */
	__u8 hop_count; /* of frames that come in here */
	__u8 reserved[5];
	__u8 rpf[TRILL_NICKNAMES]; /* by ingress nickname: the port that its frames come by; 0: none */
};

/*
 * Who gets frames for an IP multicast group in a VLAN (RFC 6325 4.5.5). Of a family's groups that nobody listens to in particular,
 * the entry of its group 0 tells: behind these ports all of them are wanted. Without that entry the VLAN is not pruned by groups.
 */
struct trill_listeners {
	__u64 group; /* as `station` makes a key of MAC and VLAN; 0: none; TRILL_MORE */
	__u64 native_ports;
	__u64 tree_ports[TRILL_TREES_MAX]; /* by place of the tree: branches */
};

/* The last entry of a bucket that has not enough room: what is not found there is not pruned. */
#define TRILL_MORE ((__u64)0xffffffffffffffff)

#define TRILL_SNOOPS ((__u8)1) /* what stations and routers say about groups is told */
#define TRILL_PRUNES ((__u8)2) /* there are listeners in the table */
#define TRILL_OVERLOADED ((__u8)4) /* what is known of trees may be wrong (RFC 7780 section 2.3.2) */

/* Everything that forwarding goes by. There are two tables, of which one is in use: a change is one atomic swap. */
struct trill_fib {
	__u16 own_nickname; /* 0: none yet */
	__u8 hop_count; /* of unicast frames that come in here */
	__u8 flags; /* TRILL_SNOOPS, TRILL_PRUNES, TRILL_OVERLOADED */
	__u32 hash_seed; /* unlike other RBridges', or all would choose alike */
	__u16 own_others[TRILL_OTHERS]; /* our other nicknames; 0: none */
	__u8 relays; /* next hops in group 0, for what has no route: who is overloaded may not know it; 0: none */
	__u8 reserved;
	__u8 own_tree[TRILL_SHARES]; /* place of the tree that a share of native frames is sent on, plus 1; 0: none */
	struct trill_port ports[TRILL_PORTS];
	__u32 route[TRILL_NICKNAMES]; /* by egress nickname as on the wire: group << 8 | hops; 0: no such RBridge */
	struct trill_hop group[TRILL_GROUPS][TRILL_HOPS_MAX];
	__u64 native_ports[TRILL_VLANS]; /* the ports that carry frames of each VLAN's end stations */
	__u64 sharers[TRILL_PORTS][TRILL_SHARERS]; /* a shared link's neighbours as `mac_at` reads them, in order; then ~0 */
	__u8 port_of[TRILL_INTERFACES]; /* port number by interface index */
	struct trill_tree tree[TRILL_TREES_MAX];
	struct trill_listeners listeners[TRILL_BUCKETS][TRILL_BUCKET_SIZE];
};

/* Ports that the copies of a frame leave by, as bits 1 << number; the one that it came by may be among them. */
struct trill_set {
	__u64 links;   /* in TRILL */
	__u64 natives; /* as end stations' frames */
};

/* A set of ports that has a devmap of its own. */
struct trill_set_use {
	__u32 number; /* of the devmap */
	__u32 used_s; /* by the daemon's clock */
};

/* Nicknames are dealt to CPUs in so many clusters, by their lowest bits. */
#define TRILL_CLUSTERS 16

/* Where links' frames are worked on, by cluster of their egress nickname. */
struct trill_spread {
	__u32 cpu[TRILL_CLUSTERS];
};

/* Frames are copied on so many CPUs at most. */
#define TRILL_COPIERS 16

/* Where frames are copied; a constant of the programs. */
struct trill_copying {
	__u32 in_place; /* 1: where they came in */
	__u32 cpu[TRILL_COPIERS]; /* by the lowest bits of the CPU that they came in on */
};

/* What changes at any time, each word on its own. */
struct trill_state {
	__u32 bank;  /* which forwarding table is in use */
	__u32 now_s; /* the daemon's clock: what is learned now was seen now */
	__u32 stations_version; /* changes with every change of the table of stations from outside */
	__u32 reserved;
};

/* What one port to end stations, and what comes from elsewhere, may do; constants of the programs. */
struct trill_limits {
	__u64 storm_interval_ns; /* between frames for groups and unknown stations; 0: no limit */
	__u64 storm_burst_ns;    /* how far the virtual time may run ahead */
	__u32 port_stations;     /* learned behind one port */
	__u32 nickname_stations; /* learned behind one other RBridge */
	__u32 far_stations;      /* learned behind all other RBridges together */
	__u32 reserved;
};

/* Where stations are counted: at the numbers of ports; here all behind other RBridges; from TRILL_PORTS on by nickname. */
#define TRILL_ALL_FAR 0

/* How sure it is where a station is (RFC 6325 4.8.1); a surer one is not replaced. */
#define TRILL_OBSERVED ((__u8)0x20)
#define TRILL_STATIC ((__u8)0xff)

#define TRILL_GATEWAY ((__u16)0xffff) /* instead of a nickname: the address of the inter-VLAN gateway */

/* Where a station is: key is struct mac_key, MAC and VLAN. */
struct trill_place {
	__u16 nickname; /* behind that RBridge; 0: behind our port */
	__u8 port;
	__u8 confidence;
	__u32 seen_s;
};

#define TRILL_ROUTE_OWN ((__u16)1) /* the gateway's own address: ARP for it is answered */

/* Where the gateway sends packets for one host: key is the address. */
struct trill_host_route {
	__u8 mac[6];     /* the host's */
	__u8 gateway[6]; /* the gateway's in the host's VLAN */
	__u16 vlan;
	__u16 flags; /* TRILL_ROUTE_* */
};

/* A frame as it left, or as it came if it was dropped. Copies of one frame are a record each. */
#define TRILL_TAP_BYTES 480
#define TRILL_TAP_RING_BYTES (1 << 20)

struct trill_tapped {
	__u64 time_ns; /* monotonic clock */
	__u32 length;  /* of the frame, bytes */
	__u16 kept;    /* bytes that follow */
	__u8 port;     /* number; of a copy, the port that it leaves by */
	__u8 outcome;
	__u8 bytes[TRILL_TAP_BYTES];
};

/* A packet of IGMP or MLD, from its IP header on. */
#define TRILL_TOLD_BYTES 1500
#define TRILL_TOLD_RING_BYTES (1 << 18)
#define TRILL_TOLD_PER_S 1000 /* that one port may bring; as many at once after a pause */

struct trill_told {
	__u16 vlan;
	__u16 kept;     /* bytes that follow */
	__be16 ethertype;
	__u8 port;      /* that it came by */
	__u8 from_tree; /* 1: from another RBridge */
	__u8 bytes[TRILL_TOLD_BYTES];
	__u8 reserved[4];
};

/*
 * What became of a frame, one counter for each port that it came by (of copies: left by) and outcome. First those that
 * the stack gets, then those that were sent, then copies, then drops in the order in which they are looked for.
 */
#define TRILL_OUTCOMES(X) \
	X(IS_IS)             /* to the daemon: TRILL IS-IS for us (RFC 6325 4.6.2, step 1) */ \
	X(CHANNEL)           /* to the daemon: ESADI or RBridge Channel, inside a data frame (RFC 7178) */ \
	X(L2_CONTROL)        /* to the stack: BPDU or another address that bridges never forward */ \
	X(GATEWAY_MISS)      /* to the stack: for a host that the gateway has no route to */ \
	X(TRANSIT)           /* sent to the next RBridge */ \
	X(INGRESS)           /* encapsulated for the RBridge of its destination */ \
	X(EGRESS)            /* decapsulated and delivered */ \
	X(SWITCHED)          /* from one native port to another */ \
	X(INGRESS_FLOOD)     /* for a group or an unknown station: encapsulated and copied */ \
	X(TREE_FLOOD)        /* came by a tree: copied along it and to native ports */ \
	X(EGRESS_FLOOD)      /* for us, station unknown: copied to native ports */ \
	X(ARP_ANSWERED)      /* request for the gateway's address, answered in place */ \
	X(COPY_SENT)         /* copy that left by a link */ \
	X(COPY_DELIVERED)    /* copy that left by a native port */ \
	X(COPY_PRUNED)       /* copy that nobody there wants */ \
	X(NO_PORT)           /* dropped: the interface is no port of ours, or has vanished */ \
	X(MALFORMED)         /* dropped: ends before its headers do */ \
	X(OUTER_VLAN)        /* dropped: outer tag of another VLAN than the link's */ \
	X(NOT_AGREED)        /* dropped: no outer header, on a link where that is not agreed */ \
	X(NATIVE_ON_LINK)    /* dropped: neither TRILL nor IS-IS, on a link */ \
	X(OTHER_GROUP)       /* dropped: TRILL group address without a meaning here (step 2) */ \
	X(NOT_FOR_US)        /* dropped: for another port's address (step 3) */ \
	X(NOT_TRILL)         /* dropped: TRILL address, another Ethertype (step 4) */ \
	X(BAD_VERSION)       /* dropped: version above 0 (step 5) */ \
	X(RESERVED_BITS)     /* dropped: RESV bits set (RFC 7780 10) */ \
	X(HOP_COUNT)         /* dropped: hop count 0 (step 6) */ \
	X(GROUP_MISMATCH)    /* dropped: outer destination and M bit disagree (step 7) */ \
	X(NO_ADJACENCY)      /* dropped: outer source is no adjacency of this port (step 8) */ \
	X(CRITICAL_FLAG)     /* dropped: flag that we do not know and must (RFC 6325 3.8) */ \
	X(RESERVED_INGRESS)  /* dropped: ingress nickname that no RBridge can have */ \
	X(OWN_INGRESS)       /* dropped: came back to its ingress */ \
	X(RESERVED_EGRESS)   /* dropped: egress nickname that no RBridge can have (step 9) */ \
	X(UNKNOWN_EGRESS)    /* dropped: no route to the egress (step 9) */ \
	X(UNKNOWN_TREE)      /* dropped: no such tree (step 10) */ \
	X(UNKNOWN_INGRESS)   /* dropped: ingress of a tree's frame is not in the campus (step 10) */ \
	X(NOT_ON_TREE)       /* dropped: the tree has no branch here (step 10) */ \
	X(RPF)               /* dropped: on the tree, but not from where this ingress is (step 10) */ \
	X(FINE_GRAINED)      /* dropped: fine-grained label, which we do not speak (RFC 7172 5) */ \
	X(NO_LABEL)          /* dropped: no VLAN tag inside (RFC 6325 4.1.1) */ \
	X(BAD_VLAN)          /* dropped: VLAN 0 inside, or 4095 */ \
	X(TRILL_IN_TRILL)    /* dropped: what is inside is TRILL or TRILL IS-IS again */ \
	X(INNER_CONTROL)     /* dropped: what is inside must never be forwarded (RFC 6325 1.4) */ \
	X(INNER_GROUP)       /* dropped: unicast outside, group address inside (step 9c) */ \
	X(BAD_SOURCE)        /* dropped: source is a group address or zero */ \
	X(TRILL_ON_NATIVE)   /* dropped: TRILL or IS-IS on a port to end stations */ \
	X(CONTROL_LIMIT)     /* dropped: more for the daemon than a link may bring */ \
	X(NOT_IN_VLAN)       /* dropped: the port is not in the frame's VLAN */ \
	X(NOT_FORWARDER)     /* dropped: from a shared link, and not ours to carry: another is appointed, or we are inhibited */ \
	X(SAME_PORT)         /* dropped: the destination is where it came from */ \
	X(NO_ROUTE)          /* dropped: no route to the RBridge that the station is behind */ \
	X(NO_NICKNAME)       /* dropped: for another RBridge while we have no nickname */ \
	X(STORM_LIMIT)       /* dropped: for a group or an unknown station, more than a port may send */ \
	X(NO_RECEIVER)       /* dropped: nobody else is in the VLAN, or listens to the group */ \
	X(TOO_LONG)          /* dropped: longer than the port takes */ \
	X(TOO_LONG_TO_COPY)  /* dropped: for several ports, and longer than the kernel copies */ \
	X(GATEWAY_MALFORMED) /* dropped: for the gateway, no correct IPv4 packet */ \
	X(GATEWAY_TTL)       /* dropped: for the gateway, no hop left */ \
	X(PUSH_FAILED)       /* dropped: no room for the headers */ \
	X(POP_FAILED)        /* dropped: the headers could not be removed */ \
	X(FDB_FULL)          /* beside the outcome: the source was not learned, the table is full, or other RBridges' part of it */ \
	X(PORT_FULL)         /* beside the outcome: the source was not learned, the port has as many stations as it may */ \
	X(NICKNAME_FULL)     /* beside the outcome: the source was not learned, its RBridge has as many stations as it may */ \
	X(FDB_MOVED)         /* beside the outcome: the source was somewhere else before */ \
	X(NOT_SNOOPED)       /* beside the outcome: a packet of IGMP or MLD, more than a port may bring the daemon */ \
	X(HANDED)            /* beside the outcome: for several ports, handed to this host's copier */ \
	X(COPIED)            /* beside the outcome: copied by it; what was handed and is not is lost, its queue was full */ \
	X(SET_MISSED)        /* beside the outcome: copied for every port and pruned behind, for its set of ports has no devmap of its own */

/* Ethertype of a tag around IS-IS that the daemon is to see: of old used as 802.1Q's is, and nothing to the kernel. */
#define TRILL_KEPT_TAG 0x9100

/* Frames for the daemon, of IS-IS and of channels, that a link may bring: so many a second, as many at once after a pause. */
#define TRILL_CONTROL_PER_S 20000

#define TRILL_ENUMERATOR(name) TRILL_##name,

enum trill_outcome { TRILL_OUTCOMES(TRILL_ENUMERATOR) TRILL_OUTCOME_COUNT };

#define TRILL_LAST_PASSED TRILL_GATEWAY_MISS
#define TRILL_LAST_SENT TRILL_EGRESS_FLOOD
#define TRILL_COUNTERS_OF_PORT 72
