/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/*
 * A look-up of one AA and its answer, in one buffer (`weft_wire::directory` draws the datagram).
 *
 *	0 Ethernet (14)   14 IPv4 (20)   34 UDP (8)   42 header (32)   74 entry (24)   98 tag (16)   114
 */
#pragma once

#include "directory_table.h"
#include "parse.h"
#include "siphash.h"

struct lookup {
	__be32 kind;	    /* magic, version, kind, count */
	__be32 service;
	__u64 request_id;
	__u64 revision;	    /* big-endian, as version */
	__be32 key_id;
	__u32 reserved;	    /* zero */
	__be32 aa;
	__be32 tor_la;
	__be32 anycast_la;
	__u32 status;	    /* in its first byte on the wire; the rest is zero */
	__u64 version;
	__u64 tag[2];
};

#define QUESTION_KIND 0x57441101 /* "WD", version 1, ask, one AA */
#define ANSWER_KIND 0x57441201
#define STATUS_MASK 0xff000000
#define STATUS_OK 0x01000000

#define LOOKUP_UDP_LENGTH (UDP_LENGTH + sizeof(struct lookup))
#define LOOKUP_IP_LENGTH (IPV4_LENGTH + LOOKUP_UDP_LENGTH)
#define LOOKUP_FRAME_LENGTH (ETH_LENGTH + LOOKUP_IP_LENGTH)

/* Bytes that a tag covers: those before it, and the two ends. */
#define TAGGED_LENGTH (sizeof(struct lookup) - 16 + 12)

/* The server's packets: internetwork control, and nothing but the length differs from packet to packet. */
#define ANSWER_TOS 0xc0
#define ANSWER_TTL 64

#define KEY_LABEL 0x316b612f74666577ULL /* "weft/ak1", little-endian */

/* The whole frame, by pointers that are all checked. */
struct lookup_frame {
	struct eth_header *eth;
	struct ipv4_header *ip;
	struct udp_header *udp;
	struct lookup *lookup;
};

/* Two ends of a datagram. */
struct ends {
	__be32 source, destination;
	__be16 source_port, destination_port;
};

struct sip_key {
	__u64 low, high;
};

/* Two words of the wire that follow each other. */
INLINE __u64 joined(__u32 first, __u32 second)
{
	return first | (__u64)second << 32;
}

/* Of an agent, derived from the servers' secret. Returns 0 if there is no such secret. */
INLINE int derive_key(__be32 key_id, __be32 service, __be32 la, struct sip_key *key)
{
	*key = (struct sip_key){};
	if (directory_state.open)
		return 1;
	for (__u32 n = 0; n < DIRECTORY_SECRETS_MAX; n++) {
		const volatile struct directory_secret *secret = &directory_state.secret[n];

		if (n >= directory_state.secrets)
			return 0;
		if (secret->key_id != bpf_ntohl(key_id))
			continue;
		struct sip sip = sip_begin(secret->low, secret->high);
		sip = sip_word(sip, KEY_LABEL);
		sip = sip_word(sip, joined(service, la));
		struct sip_tag derived = sip_end(sip, 16ULL << 56);
		*key = (struct sip_key){ derived.low, derived.high };
		return 1;
	}
	return 0;
}

/* Of a look-up as it stands. */
INLINE struct sip_tag tag_of(const struct sip_key *key, const struct lookup *lookup, struct ends ends)
{
	struct sip sip = sip_begin(key->low, key->high);

	sip = sip_word(sip, joined(lookup->kind, lookup->service));
	sip = sip_word(sip, lookup->request_id);
	sip = sip_word(sip, lookup->revision);
	sip = sip_word(sip, joined(lookup->key_id, lookup->reserved));
	sip = sip_word(sip, joined(lookup->aa, lookup->tor_la));
	sip = sip_word(sip, joined(lookup->anycast_la, lookup->status));
	sip = sip_word(sip, lookup->version);
	sip = sip_word(sip, joined(ends.source, ends.source_port | ends.destination << 16));
	return sip_end(sip, joined(ends.destination >> 16 | (__u32)ends.destination_port << 16, TAGGED_LENGTH << 24));
}

/* Of the answer, with its addresses (RFC 768); never 0, which would say that there is none. */
INLINE __u16 udp_checksum(const struct lookup *lookup, struct ends ends)
{
	const __u32 *word = (const void *)lookup;
	__u64 sum = (__u64)ends.source + ends.destination + ends.source_port + ends.destination_port;

	sum += bpf_htons(PROTOCOL_UDP) + 2 * bpf_htons(LOOKUP_UDP_LENGTH);
#pragma unroll
	for (__u32 n = 0; n < sizeof(*lookup) / 4; n++)
		sum += word[n];
	__u16 checksum = ~fold_sum(sum);
	return checksum ? checksum : 0xffff;
}

INLINE void write_answer_headers(struct lookup_frame *frame, struct ends ends)
{
	struct mac_pair macs = load_macs(frame->eth);
	__be32 *words = (void *)frame->ip;
	__be32 first = bpf_htonl(IPV4_NO_OPTIONS << 24 | ANSWER_TOS << 16 | LOOKUP_IP_LENGTH);
	__be32 id_and_fragment = bpf_htonl(IPV4_DF);
	__be16 ttl_and_protocol = bpf_htons(ANSWER_TTL << 8 | PROTOCOL_UDP);
	__u64 sum = (__u64)first + id_and_fragment + ttl_and_protocol + ends.source + ends.destination;
	__u64 back = source_of(macs), from = destination_of(macs);

	store_macs(frame->eth, (struct mac_pair){ back | from << 48, from >> 16 });
	words[0] = first;
	words[1] = id_and_fragment;
	*(__be16 *)&frame->ip->ttl = ttl_and_protocol;
	frame->ip->checksum = ~fold_sum(sum);
	frame->ip->source = ends.source;
	frame->ip->destination = ends.destination;
	frame->udp->source = ends.source_port;
	frame->udp->destination = ends.destination_port;
	frame->udp->checksum = udp_checksum(frame->lookup, ends);
}
