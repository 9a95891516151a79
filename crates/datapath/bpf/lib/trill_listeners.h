/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/*
 * Groups of IP multicast: who gets their frames (RFC 6325 4.5.5), and what stations and routers say about them, of which the daemon
 * hears (4.7). Their reports go to routers alone: a station that hears another's may leave its own out (RFC 4541 2.1.1).
 */
#pragma once

#include "trill_hash.h"
#include "trill_learn.h"

#define IGMP_QUERY 0x11
#define IGMP_REPORT_V1 0x12
#define IGMP_REPORT_V2 0x16
#define IGMP_LEAVE 0x17
#define IGMP_REPORT_V3 0x22
#define MLD_QUERY 130
#define MLD_REPORT_V1 131
#define MLD_DONE 132
#define MLD_REPORT_V2 143
#define PROTOCOL_HOP_BY_HOP 0
#define PROTOCOL_ICMPV6 58

/* The first four bytes of addresses of both families; 0 after them stands for all groups of a family. */
#define GROUPS_IPV4 0x01005e00
#define GROUPS_IPV6 0x33330000

/* A frame that may be for a group, as programs pass it on in words: functions of numbers are looked at once by the verifier. */
struct grouped {
	__u64 mac; /* destination; 0: it is for no group, or nobody asks */
	__u32 about; /* VLAN, and from bit 16 on the type as it lies in memory */
	__u32 message; /* see message_of */
	__u32 start; /* of the packet, bytes */
};

/* Records for the daemon. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, TRILL_TOLD_RING_BYTES);
} trill_told_ring SEC(".maps");

const struct trill_told *trill_told_type __attribute__((unused));

__u64 trill_told_ns[TRILL_PORTS];

/* Packets of IGMP and MLD. */
GLOBAL int is_within_told(__u32 port)
{
	return is_within(&trill_told_ns[port & (TRILL_PORTS - 1)], 1000000000 / TRILL_TOLD_PER_S, 1000000000);
}

/*
 * The first four bytes of a family's addresses, if frames for this one go where it is wanted alone; 0 for others. Groups of the
 * local network are everybody's (RFC 4541 2.1.2), as are the addresses by which IPv6 finds neighbours.
 */
INLINE __u32 pruned_family(__u64 mac)
{
	__u32 head = bpf_ntohl((__u32)mac), tail = host16(mac >> 32);

	if ((head & 0xffffff80) == GROUPS_IPV4)
		return head == GROUPS_IPV4 && tail < 0x100 ? 0 : GROUPS_IPV4;
	if (head >> 16 != GROUPS_IPV6 >> 16 || (head >> 8 & 0xff) == 0xff)
		return 0;
	return head == GROUPS_IPV6 && tail < 0x100 ? 0 : GROUPS_IPV6;
}

/* Kind of a message of IGMP, or of ICMPv6 behind the options that MLD has; or 0. `start`: bytes before the packet. */
GLOBAL int message_of(struct xdp_md *ctx, __u32 start, __u32 about)
{
	struct cursor cursor = frame_of(ctx);
	const void *packet = cursor.at + (start & 0xff);
	const struct ipv4_header *ip = packet;
	const __u8 *ipv6 = packet, *message;

	if (about >> 16 == bpf_htons(ETHERTYPE_IPV4)) {
		if ((const void *)(ip + 1) > cursor.end || ip->protocol != PROTOCOL_IGMP)
			return 0;
		message = packet + ipv4_header_length(ip);
		return (const void *)(message + 1) > cursor.end ? 0 : *message;
	}
	if (about >> 16 != bpf_htons(ETHERTYPE_IPV6) || (const void *)(ipv6 + 49) > cursor.end)
		return 0;
	return ipv6[6] != PROTOCOL_HOP_BY_HOP || ipv6[40] != PROTOCOL_ICMPV6 || ipv6[41] ? 0 : ipv6[48];
}

INLINE int is_report(__u32 message)
{
	return message == IGMP_REPORT_V1 || message == IGMP_REPORT_V2 || message == IGMP_LEAVE ||
	       message == IGMP_REPORT_V3 || message == MLD_REPORT_V1 || message == MLD_DONE || message == MLD_REPORT_V2;
}

/* `start`: of the packet in the frame. */
INLINE struct grouped grouped(struct xdp_md *ctx, const struct trill_fib *fib, __u64 mac, __u32 start, __u16 vlan, __be16 type)
{
	struct grouped frame = { 0, vlan | (__u32)type << 16, 0, start };

	if (!(fib->flags & (TRILL_SNOOPS | TRILL_PRUNES)) || !is_group(mac))
		return frame;
	frame.mac = mac;
	frame.message = message_of(ctx, start, frame.about);
	return frame;
}

INLINE const struct trill_listeners *listeners_at(__u32 bank, __u32 place)
{
	const struct trill_fib *fib = bank ? &trill_fib_1 : &trill_fib_0;

	return &fib->listeners[0][place & (TRILL_BUCKETS * TRILL_BUCKET_SIZE - 1)];
}

#define NOT_LISTED (TRILL_BUCKETS * TRILL_BUCKET_SIZE)

/* Place of a group in the table, or of what says that its bucket is not whole; or NOT_LISTED. */
INLINE __u32 place_of_group(__u32 bank, __u64 group)
{
	__u32 first = (group * HASH_FIRST >> 53) * TRILL_BUCKET_SIZE;
	_Static_assert(TRILL_BUCKETS == 1 << (64 - 53), "a hash is as long as the table");

	for (__u32 i = 0; i < TRILL_BUCKET_SIZE; i++) {
		__u64 there = listeners_at(bank, first + i)->group;

		if (there == group || there == TRILL_MORE)
			return first + i;
	}
	return NOT_LISTED;
}

/* Place of the listeners of a frame's group, or of those to all groups; NOT_LISTED: nothing is pruned. */
GLOBAL int place_of_listeners(__u32 bank, __u64 mac, __u32 about, __u32 message)
{
	__u32 family = pruned_family(mac), place = NOT_LISTED;

	if (is_report(message))
		family = about >> 16 == bpf_htons(ETHERTYPE_IPV4) ? GROUPS_IPV4 : GROUPS_IPV6;
	else if (family)
		place = place_of_group(bank, station(mac, about));
	if (family && place == NOT_LISTED)
		place = place_of_group(bank, station(bpf_htonl(family), about));
	return place != NOT_LISTED && listeners_at(bank, place)->group == TRILL_MORE ? NOT_LISTED : place;
}

/* Takes the ports out of two sets behind which nobody wants the frame; the first has branches of a tree, by its place. */
INLINE void prune(const struct trill_fib *fib, const struct grouped *frame, __u32 tree, __u64 *links, __u64 *natives)
{
	__u32 bank = fib == &trill_fib_1;

	if (!frame->mac || !(fib->flags & TRILL_PRUNES))
		return;
	__u32 place = place_of_listeners(bank, frame->mac, frame->about, frame->message);
	if (place >= NOT_LISTED)
		return;
	const struct trill_listeners *listeners = listeners_at(bank, place);
	*links &= listeners->tree_ports[tree & (TRILL_TREES_MAX - 1)];
	*natives &= listeners->native_ports;
}

/* Lets the daemon hear a packet. */
GLOBAL int tell(struct xdp_md *ctx, __u32 port, __u32 start, __u32 about, __u32 from_tree)
{
	__u32 kept = bpf_xdp_get_buff_len(ctx) - start;
	struct trill_told *record = NULL;

	if (kept < IPV4_LENGTH)
		return 0;
	if (is_within_told(port))
		record = bpf_ringbuf_reserve(&trill_told_ring, sizeof(*record), 0);
	if (!record) {
		count_at(port & (TRILL_PORTS - 1), TRILL_NOT_SNOOPED);
		return 0;
	}
	if (kept > TRILL_TOLD_BYTES)
		kept = TRILL_TOLD_BYTES;
	record->vlan = about;
	record->ethertype = about >> 16;
	record->from_tree = from_tree;
	record->port = port;
	record->kept = kept;
	asm volatile("" : "+r"(kept)); /* or the compiler checks another copy of it than it passes on */
	if (kept > TRILL_TOLD_BYTES || bpf_xdp_load_bytes(ctx, start, record->bytes, kept))
		record->kept = 0;
	bpf_ringbuf_submit(record, 0);
	return 0;
}

/* All that stations say about groups, and from other RBridges, that somebody asks. */
INLINE void snoop(struct xdp_md *ctx, const struct trill_fib *fib, const struct grouped *frame, __u32 port, int from_tree)
{
	__u32 message = frame->message;

	if (fib->flags & TRILL_SNOOPS && message && (!from_tree || message == IGMP_QUERY || message == MLD_QUERY))
		tell(ctx, port, frame->start, frame->about, from_tree);
}
