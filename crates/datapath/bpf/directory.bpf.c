/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/*
 * A directory server's look-ups, answered at its card (VL2 4.3.2). What is answered here the server would answer in the same
 * bytes: a well-formed question about one AA, by who may ask, for a mapping that is there. Everything else goes on to the
 * server as it came, which alone says that something is not so.
 */
#include "lib/ctx_xdp.h"
#include "lib/directory_lookup.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* Addresses that no packet may come from: the stack drops it and counts why. */
INLINE int is_no_source(__be32 address)
{
	__u8 first = address & 0xff;

	return !first || first == 127 || first >= 224 || address == directory_state.address;
}

/* Whether a frame of this length is for the server. The checksum of UDP is left out: the tag covers all that it does. */
INLINE int is_for_server(const struct lookup_frame *frame)
{
	const struct ipv4_header *ip = frame->ip;
	const struct udp_header *udp = frame->udp;

	return frame->eth->type == bpf_htons(ETHERTYPE_IPV4) && mac_at(frame->eth->destination) == directory_state.mac &&
	       ip->version_ihl == IPV4_NO_OPTIONS && ip->protocol == PROTOCOL_UDP &&
	       ip->destination == directory_state.address && udp->destination == directory_state.port &&
	       !(ip->fragment & bpf_htons(IPV4_FRAGMENT_MASK)) && !is_no_source(ip->source) &&
	       ipv4_checksum_is_right(ip);
}

/* One AA asked for, and zero what has to be. */
INLINE int is_plain_question(const struct lookup_frame *frame)
{
	const struct lookup *lookup = frame->lookup;

	return frame->ip->total_length == bpf_htons(LOOKUP_IP_LENGTH) &&
	       frame->udp->length == bpf_htons(LOOKUP_UDP_LENGTH) && lookup->kind == bpf_htonl(QUESTION_KIND) &&
	       !lookup->reserved && !(lookup->status & bpf_htonl(~STATUS_MASK));
}

/* Nothing is written before all is known to be right. */
INLINE int answer(struct lookup_frame *frame)
{
	struct lookup *lookup = frame->lookup;
	struct ends to = { frame->ip->source, frame->ip->destination, frame->udp->source, frame->udp->destination };
	struct sip_key key;
	__u32 sequence = sequence_now();

	if (sequence & 1)
		return DIRECTORY_CHANGING;
	call_row(lookup->aa);
	if (!derive_key(lookup->key_id, lookup->service, to.source, &key))
		return DIRECTORY_KEY_ID;
	struct sip_tag tag = tag_of(&key, lookup, to);
	if ((tag.low ^ lookup->tag[0]) | (tag.high ^ lookup->tag[1]))
		return DIRECTORY_TAG;
	const volatile struct directory_row *row = row_of(lookup->aa);
	if (!row)
		return DIRECTORY_MISSING;
	struct directory_row found = { row->version, 0, row->service, row->tor_la, row->anycast_la, 0 };
	__u64 revision = directory_state.revision;
	if (!is_allowed(lookup->service, found.service))
		return DIRECTORY_POLICY;
	if (revision < bpf_be64_to_cpu(lookup->revision) || found.version < bpf_be64_to_cpu(lookup->version))
		return DIRECTORY_BEHIND;
	if (has_changed_since(sequence))
		return DIRECTORY_CHANGING;

	struct ends back = { to.destination, to.source, to.destination_port, to.source_port };
	lookup->kind = bpf_htonl(ANSWER_KIND);
	lookup->revision = bpf_cpu_to_be64(revision);
	lookup->tor_la = found.tor_la;
	lookup->anycast_la = found.anycast_la;
	lookup->status = bpf_htonl(STATUS_OK);
	lookup->version = bpf_cpu_to_be64(found.version);
	tag = tag_of(&key, lookup, back);
	lookup->tag[0] = tag.low;
	lookup->tag[1] = tag.high;
	write_answer_headers(frame, back);
	return DIRECTORY_ANSWERED;
}

INLINE int outcome_of(struct xdp_md *ctx)
{
	struct cursor cursor = ctx_cursor(ctx);
	__u64 length = cursor.end - cursor.at;
	struct lookup_frame frame;

	/* The compiler would make one comparison of two, and the verifier would not know the frame's end. */
	asm volatile("" : "+r"(length));
	if (!parse_eth(&cursor, &frame.eth) || !parse_ipv4(&cursor, &frame.ip) || !parse_udp(&cursor, &frame.udp))
		return DIRECTORY_OTHER;
	if (!is_for_server(&frame))
		return DIRECTORY_OTHER;
	frame.lookup = cursor.at;
	if ((void *)(frame.lookup + 1) > cursor.end || length != LOOKUP_FRAME_LENGTH || !is_plain_question(&frame))
		return DIRECTORY_NOT_PLAIN;
	return answer(&frame);
}

SEC("xdp.frags")
int directory_lookup(struct xdp_md *ctx)
{
	int outcome = outcome_of(ctx);

	count(&directory_counters, outcome);
	return outcome == DIRECTORY_ANSWERED ? XDP_TX : XDP_PASS;
}
