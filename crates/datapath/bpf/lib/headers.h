/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/* Frame headers, naturally aligned so that the compiler loads whole words; numbers of the formats; MAC and sum helpers. */
#pragma once

#include <linux/bpf.h>
#include <linux/types.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#define INLINE static __always_inline
/* A function of numbers, which the verifier looks at once, however many call it. */
#define GLOBAL __attribute__((noinline))

#ifndef NULL
#define NULL ((void *)0)
#endif

/*
 * A 16-bit number of the wire in this machine's byte order, with a bound that every verifier knows: those of Linux 6.12
 * and before forget it at a byte swap, and refuse what is then added to a pointer. Without the barrier the compiler sees
 * that the mask changes nothing and drops it. The bare swap is poisoned, so that nobody has to remember this.
 */
INLINE __u32 host16(__be16 value)
{
	__u32 swapped = bpf_ntohs(value);

	asm volatile("" : "+r"(swapped));
	return swapped & 0xffff;
}
#undef bpf_ntohs
#pragma GCC poison bpf_ntohs

#define ETHERTYPE_IPV4 0x0800
#define ETHERTYPE_ARP 0x0806
#define ETHERTYPE_VLAN 0x8100	     /* IEEE 802.1Q */
#define ETHERTYPE_SERVICE_VLAN 0x88a8 /* IEEE 802.1ad */

#define PROTOCOL_IGMP 2
#define PROTOCOL_IPIP 4
#define PROTOCOL_TCP 6
#define PROTOCOL_UDP 17

#define IPV4_NO_OPTIONS 0x45 /* version 4, five words */
#define IPV4_DF 0x4000
#define IPV4_FRAGMENT_MASK 0x3fff /* more fragments, or an offset */

#define ECN_MASK 3
#define ECN_NOT_ECT 0
#define ECN_ECT_1 1
#define ECN_ECT_0 2
#define ECN_CE 3

#define ARP_ETHERNET 1
#define ARP_REQUEST 1
#define ARP_REPLY 2

struct eth_header {
	__u8 destination[6];
	__u8 source[6];
	__be16 type;
};

INLINE int is_tag(__be16 type)
{
	return type == bpf_htons(ETHERTYPE_VLAN) || type == bpf_htons(ETHERTYPE_SERVICE_VLAN);
}

struct ipv4_header {
	__u8 version_ihl;
	__u8 tos;
	__be16 total_length;
	__be16 id;
	__be16 fragment;
	__u8 ttl;
	__u8 protocol;
	__u16 checksum;
	__be32 source;
	__be32 destination;
};

struct udp_header {
	__be16 source;
	__be16 destination;
	__be16 length;
	__u16 checksum;
};

struct arp_header { /* RFC 826, for Ethernet and IPv4 */
	__be16 hardware;
	__be16 protocol;
	__u8 hardware_length;
	__u8 protocol_length;
	__be16 operation;
	__u8 sender_mac[6];
	__be32 sender_ip;
	__u8 target_mac[6];
	__be32 target_ip;
} __attribute__((packed));

#define ETH_LENGTH sizeof(struct eth_header)
#define IPV4_LENGTH sizeof(struct ipv4_header)
#define UDP_LENGTH 8

/* Six bytes as 4 + 2; both loads come before both stores, so the two may overlap. */
INLINE void copy_mac(void *to, const void *from)
{
	__u32 head = *(const __u32 *)from;
	__u16 tail = *(const __u16 *)(from + 4);

	*(__u32 *)to = head;
	*(__u16 *)(to + 4) = tail;
}

/*
 * Addresses are numbers whose lowest byte is the first on the wire, and the two of a frame come as two words: what is
 * asked of them is then asked of registers.
 */
struct mac_pair {
	__u64 head; /* destination, first two bytes of the source */
	__u32 tail;
};

INLINE struct mac_pair load_macs(const void *at)
{
	return (struct mac_pair){ *(const __u64 *)at, *(const __u32 *)(at + 8) };
}

INLINE void store_macs(void *at, struct mac_pair macs)
{
	*(__u64 *)at = macs.head;
	*(__u32 *)(at + 8) = macs.tail;
}

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "addresses are put together in registers");

INLINE __u64 destination_of(struct mac_pair macs)
{
	return macs.head & 0xffffffffffffULL;
}

INLINE __u64 source_of(struct mac_pair macs)
{
	return macs.head >> 48 | (__u64)macs.tail << 16;
}

INLINE __u64 mac_at(const void *at)
{
	return *(const __u32 *)at | (__u64)*(const __u16 *)(at + 4) << 32;
}

INLINE int is_group(__u64 mac)
{
	return mac & 1;
}

/* An Ethernet header in registers, while the frame around it moves. */
struct eth_words {
	struct mac_pair macs;
	__be16 type;
};

INLINE struct eth_words load_eth(const struct eth_header *eth)
{
	return (struct eth_words){ load_macs(eth), eth->type };
}

INLINE void store_eth(struct eth_header *eth, struct eth_words kept)
{
	store_macs(eth, kept.macs);
	eth->type = kept.type;
}

INLINE int is_multicast_or_broadcast(__be32 address)
{
	return (address & bpf_htonl(0xf0000000)) == bpf_htonl(0xe0000000) || address == 0xffffffff;
}

INLINE __u32 ipv4_header_length(const struct ipv4_header *ip)
{
	return (ip->version_ihl & 0x0f) * 4;
}

/* Ones' complement sum of a few words folded to 16 bits (RFC 1071); byte order does not matter. Below 2^47 it fits. */
INLINE __u16 fold_sum(__u64 sum)
{
	sum = (sum >> 16) + (sum & 0xffff);
	sum = (sum >> 16) + (sum & 0xffff);
	return (sum >> 16) + sum;
}

/* Of a header without options. Two steps are enough here: no third multiple of 0xffff is in reach. */
INLINE int ipv4_checksum_is_right(const struct ipv4_header *ip)
{
	const __u32 *word = (const void *)ip;
	__u64 sum = (__u64)word[0] + word[1] + word[2] + word[3] + word[4];

	sum = (sum >> 16) + (sum & 0xffff);
	return (sum >> 16) + (sum & 0xffff) == 0xffff;
}

/* The checksum after one 16-bit word of the header changed (RFC 1624, equation 3). */
INLINE __u16 checksum_after(__u16 checksum, __u16 before, __u16 after)
{
	return ~fold_sum((__u64)(__u16)~checksum + (__u16)~before + after);
}

/* One less in the header's fifth word is one more in its checksum, with the carry brought round (RFC 1141). */
INLINE void decrement_ttl(struct ipv4_header *ip)
{
	__u32 checksum = (__u32)ip->checksum + bpf_htons(0x0100);

	ip->checksum = checksum + (checksum >= 0xffff);
	ip->ttl -= 1;
}

/* RFC 6040 4.2, figure 4: what the inner packet leaves with, or -1 if it must be dropped. */
INLINE int combined_ecn(__u8 arriving, __u8 inner)
{
	if (arriving == ECN_CE)
		return inner == ECN_NOT_ECT ? -1 : ECN_CE;
	if (arriving == ECN_ECT_1 && inner == ECN_ECT_0)
		return ECN_ECT_1;
	return inner;
}
