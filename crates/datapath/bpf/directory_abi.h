/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/*
 * What the program that answers a directory's look-ups shares with the server: the rows of the table, what holds for all of
 * them, outcomes.
 *
 * build/abi.rs writes the Rust of it.
 */
#pragma once

#include <linux/types.h>

/* Secrets that datagrams may be tagged by at a time; askers with another one are the server's. */
#define DIRECTORY_SECRETS_MAX 4

/* Places beyond its own in which a mapping may stand. */
#define DIRECTORY_PROBES 16

/* Places are named by the high bits of a product with this odd number: 2^64 over the golden ratio. */
#define DIRECTORY_PLACE_FACTOR ((__u64)0x9e3779b97f4a7c15)

/* A mapping; half a cache line. */
struct directory_row {
	__u64 version; /* 0: no mapping stands here */
	__be32 aa;
	__be32 service;
	__be32 tor_la;
	__be32 anycast_la;
	__u64 called; /* what programs write, and nobody reads */
};

/* AAs that a CPU remembers to have asked for. */
#define DIRECTORY_RECENT 4096

struct directory_recent {
	__be32 aa[DIRECTORY_RECENT];
};

/* Set before load. */
struct directory_constants {
	__u32 places; /* of the table, less one: a power of two less one */
	__u32 shift;  /* what is left of the product is a place */
};

/* A secret of the servers, as two numbers in little-endian order. */
struct directory_secret {
	__u64 low;
	__u64 high;
	__u32 key_id;
	__u32 reserved;
};

/* What all look-ups are answered by. */
struct directory_state {
	__u32 sequence; /* odd while rows, rules or this change */
	__u32 rules;    /* of the policy that differ from what holds without them */
	__u64 revision; /* of the table */
	__u64 mac;      /* of the card, the first byte in the lowest bits */
	__be32 address; /* of the server */
	__be16 port;    /* of the server */
	__u8 secrets;   /* how many there are */
	__u8 open;      /* 1: everybody has the key of zeros */
	struct directory_secret secret[DIRECTORY_SECRETS_MAX];
};

/* A rule of the policy that differs from what holds without it. */
struct directory_rule {
	__be32 from_service; /* whose servers ask */
	__be32 to_service;   /* whose AAs are asked for */
};

/* Rules that a policy has at most. */
#define DIRECTORY_RULES_MAX 65536

/* What became of a frame at the card. All but those that are answered go on to the server as they came. */
#define DIRECTORY_OUTCOMES(X) \
	X(ANSWERED)  /* as the server would have answered */ \
	X(OTHER)     /* no datagram to the server's address and port, or one that the stack has to look at */ \
	X(NOT_PLAIN) /* for the server, and no well-formed question about one AA */ \
	X(CHANGING)  /* the table changes at this moment */ \
	X(MISSING)   /* the table here has no mapping of the AA */ \
	X(POLICY)    /* the asker's service may not know */ \
	X(BEHIND)    /* the asker knows a higher version or revision */ \
	X(KEY_ID)    /* by a secret that is not there */ \
	X(TAG)       /* the tag does not verify */

#define DIRECTORY_ENUMERATOR(name) DIRECTORY_##name,

enum directory_outcome { DIRECTORY_OUTCOMES(DIRECTORY_ENUMERATOR) DIRECTORY_OUTCOME_COUNT };
