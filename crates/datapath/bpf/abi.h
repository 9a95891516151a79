/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/*
 * What programs and user space share: map keys and values, constants set before load, outcomes.
 *
 * build/abi.rs writes the Rust of it: structures, numbers that stand alone or behind a cast to their type, lists of X.
 */
#pragma once

#include <linux/types.h>

/* SO_MARK of frames that the agent sends again; they must not be handed to it a second time. */
#define AGENT_MARK 0x77656674 /* "weft" */

/* How many anycast LAs one Intermediate can own (VL2 4.2.2). */
#define OWN_LAS_MAX 16

/* Flags of an AA mapping. */
#define MAPPING_REFUSED 1 /* the directory refuses this AA: drop, do not ask again */

/* AA -> where it is, as the directory answered (VL2 4.2.1). */
struct aa_mapping {
	__u64 version;    /* of the directory entry; not read by programs */
	__be32 tor_la;    /* LA of the ToR that the AA is behind */
	__be32 anycast_la; /* LA of the Intermediates to bounce off */
	__u32 flags;      /* MAPPING_* */
	__u32 reserved;
};

/* Constants of the host agent's program. */
struct host_constants {
	__be32 aa_network;   /* the AA block */
	__be32 aa_mask;
	__be32 own_tor_la;   /* LA of the ToR this server is behind */
	__u32 miss_ifindex;  /* where frames without a mapping go */
	__u32 underlay_mtu;  /* largest IPv4 packet, outer headers included */
	__u32 rack_direct;   /* 1: same-rack traffic turns round at the ToR */
	__u8 gateway_mac[6]; /* of the ToR's host port; also every AA's answer to ARP */
	__u8 reserved[2];
	__u64 limit_ps_per_byte; /* picoseconds that a byte takes at the rate limit; 0: no limit */
	__u64 limit_burst_ns;    /* time that the limit lets the host run ahead of its rate */
	__u32 limit_tcp;         /* 1: TCP counts and is dropped like the rest */
	__be32 own_aa;           /* the host's addresses: nothing leaves from others. own_aa 0: anything does */
	__be32 own_la;
	__be32 public_la;        /* by which the outside knows it; own_la if it does not */
};

/* Whom broadcast and multicast of a host reach (VL2 4.2.3). */
#define BROADCAST_TO_NOBODY 0
#define BROADCAST_TO_GROUP 1   /* the multicast group of its service in the underlay */
#define BROADCAST_TO_MEMBERS 2 /* every host of its service, by a copy for each */

/* Constants of the same. */
struct broadcast_constants {
	__u64 limit_ps_per_byte; /* picoseconds that a byte takes at the limit */
	__u64 limit_burst_ns;    /* time that the limit lets the host run ahead of its rate */
	__be32 aa;               /* the host's */
	__be32 la;               /* the host's */
	__be32 la_network;       /* the block of all LAs */
	__be32 la_mask;
	__be32 group;
	__u32 delivery; /* BROADCAST_TO_* */
	__u32 members;  /* other hosts of the service */
	__u32 mtu;      /* largest IPv4 packet that they take in, outer header included */
};

/* Which flows under way get another path. */
#define SPREAD_RULE_NONE 0
#define SPREAD_RULE_REHASH 1   /* large ones that lose */
#define SPREAD_RULE_FLOWLETS 2 /* all after a pause */
#define SPREAD_RULE_TIMEOUTS 3 /* large ones that time out */

/* Constants of the rule. */
struct spread_constants {
	__u64 hold_ns;     /* re-hash: between two choices, and the pause of a timeout; flowlets: the pause */
	__u64 large_bytes; /* re-hash: what a flow has sent before it counts as large */
	__u32 rule;        /* SPREAD_RULE_* */
	__u32 reserved;
};

/* The LAs whose packets this switch takes the outer header off. */
struct own_las {
	__u32 count;
	__be32 la[OWN_LAS_MAX];
};

/*
 * The ends of a packet that came to a ToR for an AA which is not behind it (VL2 4.3.2). Its sender's mapping is stale.
 * The outer source address could not tell who that is: it carries the flow hash.
 */
struct stale_sample {
	__be32 aa;        /* where the packet wanted to go */
	__be32 source_aa; /* where it came from */
};

/* Room for samples that nobody has read yet; more are dropped, and their packets counted like all others. */
#define STALE_SAMPLES_BYTES 65536

/* Key of a table of MACs. */
struct mac_key {
	__u8 mac[6];
	__u16 vlan; /* 0 at the plain switch, which knows none */
};

/*
 * What became of a frame, one counter each. Inner functions return an outcome; only the outermost function counts it
 * and turns it into a verdict.
 */
#define HOST_OUTCOMES(X) \
	X(PASSED)                /* not AA traffic: untouched */ \
	X(ENCAPSULATED)          /* both outer headers pushed */ \
	X(RACK_DIRECT)           /* one outer header pushed: the destination is behind our ToR */ \
	X(ARP_ANSWERED)          /* request for a known AA, answered in place */ \
	X(ARP_PROBE_PASSED)      /* announcement or duplicate-address probe: untouched */ \
	X(ARP_MISS)              /* request for an AA without a mapping: to the agent */ \
	X(PACKET_MISS)           /* packet to an AA without a mapping: to the agent */ \
	X(MTU_EXCEEDED)          /* too large once encapsulated: to the agent, which answers with ICMP */ \
	X(REFUSED)               /* dropped: the directory refuses the AA */ \
	X(NO_MAPPING)            /* dropped: sent again by the agent, still no mapping */ \
	X(BROADCAST_UNSUPPORTED) /* dropped: broadcast or multicast of the virtual layer 2 */ \
	X(MALFORMED)             /* dropped: truncated or contradictory headers */ \
	X(PUSH_FAILED)           /* dropped: no room for the outer headers */ \
	X(RATE_LIMITED)          /* dropped: beyond the rate that this host's service may send */ \
	X(BROADCAST_SENT)        /* one outer header pushed: to the group of the service */ \
	X(BROADCAST_COPIED)      /* one outer header pushed: a copy to each member of the service */ \
	X(BROADCAST_LIMITED)     /* dropped: beyond the rate of broadcasts */ \
	X(BROADCAST_TOO_BIG)     /* dropped: larger than the members take in; nobody may be told (RFC 1122 3.2.2) */ \
	X(BROADCAST_FOREIGN)     /* dropped: the source is not the host's AA */ \
	X(BROADCAST_ALONE)       /* dropped: the service has no other member */ \
	X(COPY_FAILED)           /* one member's copy that was not sent, of a packet that is counted elsewhere */ \
	X(IGMP_PASSED)           /* membership of the host, with its LA as the source instead of its AA */ \
	X(IGMP_DROPPED)          /* dropped: membership, where the underlay has no groups */ \
	X(DHCP_PASSED)           /* broadcast of a DHCP client with an AA: untouched, for the ToR's relay */ \
	X(FOREIGN_SOURCE)        /* dropped: the source is none of the host's own addresses (RFC 2827) */ \
	X(MADE_UP_HEADER)        /* dropped: encapsulated, and not by the agent */ \
	X(TAGGED)                /* dropped: a VLAN tag; the fabric has no VLANs */

/* What became of a segment's flow where a rule is in force. */
#define SPREAD_OUTCOMES(X) \
	X(KEPT)              /* on its path */ \
	X(STAYED_AFTER_LOSS) /* large, repeated bytes, and the coin let it stay */ \
	X(MOVED_AFTER_LOSS)  /* large, repeated bytes: another path */ \
	X(MOVED_AFTER_STALL) /* large, repeated bytes after a timeout: another path */ \
	X(MOVED_AFTER_PAUSE) /* flowlets: another path */

/* What became of a frame that came to a host whose broadcast reaches somebody. */
#define RECEIVE_OUTCOMES(X) \
	X(PASSED)           /* no broadcast in a packet of the underlay: untouched */ \
	X(DELIVERED)        /* outer header taken off; the stack gets an ordinary broadcast or multicast frame */ \
	X(LOOPED)           /* dropped: the host's own */ \
	X(OTHER_GROUP)      /* dropped: for another service's group */ \
	X(FOREIGN_SOURCE)   /* dropped: outer source outside the LA block */ \
	X(NOT_A_MEMBER)     /* dropped: from a host of another service */ \
	X(BAD_INNER_SOURCE) /* dropped: the inner source is no host's AA */ \
	X(NOT_BROADCAST)    /* dropped: the inner destination is one host */ \
	X(MALFORMED)        /* dropped: truncated or contradictory headers */ \
	X(BAD_CHECKSUM)     /* dropped: outer header checksum */ \
	X(FRAGMENT)         /* dropped: outer fragment */ \
	X(CE_ON_NOT_ECT)    /* dropped: congestion marked on a packet that cannot carry the mark (RFC 6040 4.2) */ \
	X(POP_FAILED)       /* dropped: the header could not be removed */ \
	X(TAGGED)           /* dropped: a VLAN tag; the fabric has no VLANs */

/* What became of a frame at a switch. */
#define SWITCH_OUTCOMES(X) \
	X(PASSED)            /* not an encapsulated packet for one of our LAs: untouched */ \
	X(DECAPSULATED)      /* one outer header taken off; the stack decides */ \
	X(FORWARDED)         /* still encapsulated: sent to the next hop as a router does, without the stack */ \
	X(DELIVERED)         /* ToR: taken off and sent out of a host port */ \
	X(CE_ON_NOT_ECT)     /* dropped: congestion marked on a packet that cannot carry the mark (RFC 6040 4.2) */ \
	X(FRAGMENT)          /* dropped: outer fragment */ \
	X(MALFORMED)         /* dropped: truncated or contradictory headers */ \
	X(BAD_CHECKSUM)      /* dropped: outer header checksum */ \
	X(NO_SUCH_HOST)      /* dropped: ToR without a host port for the destination */ \
	X(TOO_BIG)           /* dropped: larger than the host port's MTU */ \
	X(POP_FAILED)        /* dropped: the header could not be removed */ \
	X(TAGGED)            /* dropped: a VLAN tag; the fabric has no VLANs */ \
	X(FOREIGN_SOURCE)    /* dropped: from a ToR's server, in the name of an address that is not routed back to it (RFC 2827) */ \
	X(MADE_UP_HEADER)    /* dropped: for one of our LAs from no flow hash, or from one for a server: no agent's */

#define HOST_ENUMERATOR(name) HOST_##name,
#define SPREAD_ENUMERATOR(name) SPREAD_##name,
#define RECEIVE_ENUMERATOR(name) RECEIVE_##name,
#define SWITCH_ENUMERATOR(name) SWITCH_##name,

enum host_outcome { HOST_OUTCOMES(HOST_ENUMERATOR) HOST_OUTCOME_COUNT };
enum spread_outcome { SPREAD_OUTCOMES(SPREAD_ENUMERATOR) SPREAD_OUTCOME_COUNT };
enum receive_outcome { RECEIVE_OUTCOMES(RECEIVE_ENUMERATOR) RECEIVE_OUTCOME_COUNT };
enum switch_outcome { SWITCH_OUTCOMES(SWITCH_ENUMERATOR) SWITCH_OUTCOME_COUNT };
