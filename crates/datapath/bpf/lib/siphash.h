/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/*
 * SipHash-2-4-128 (Aumasson, Bernstein 2012) over whole words. Its four numbers stay in registers, so it is a struct that
 * functions take and return. There is no instruction that rotates: each rotation is three.
 */
#pragma once

#include "headers.h"

struct sip {
	__u64 v0, v1, v2, v3;
};

struct sip_tag {
	__u64 low, high;
};

INLINE __u64 rotated(__u64 word, int bits)
{
	return word << bits | word >> (64 - bits);
}

INLINE struct sip sip_round(struct sip s)
{
	s.v0 += s.v1;
	s.v2 += s.v3;
	s.v1 = rotated(s.v1, 13) ^ s.v0;
	s.v3 = rotated(s.v3, 16) ^ s.v2;
	s.v0 = rotated(s.v0, 32);
	s.v2 += s.v1;
	s.v0 += s.v3;
	s.v1 = rotated(s.v1, 17) ^ s.v2;
	s.v3 = rotated(s.v3, 21) ^ s.v0;
	s.v2 = rotated(s.v2, 32);
	return s;
}

INLINE struct sip sip_begin(__u64 key_low, __u64 key_high)
{
	return (struct sip){
		key_low ^ 0x736f6d6570736575ULL,
		key_high ^ 0x646f72616e646f6dULL ^ 0xee,
		key_low ^ 0x6c7967656e657261ULL,
		key_high ^ 0x7465646279746573ULL,
	};
}

INLINE struct sip sip_word(struct sip s, __u64 word)
{
	s.v3 ^= word;
	s = sip_round(sip_round(s));
	s.v0 ^= word;
	return s;
}

/* The last word has the message's length in its highest byte. */
INLINE struct sip_tag sip_end(struct sip s, __u64 last)
{
	struct sip_tag tag;

	s = sip_word(s, last);
	s.v2 ^= 0xee;
	s = sip_round(sip_round(sip_round(sip_round(s))));
	tag.low = s.v0 ^ s.v1 ^ s.v2 ^ s.v3;
	s.v1 ^= 0xdd;
	s = sip_round(sip_round(sip_round(sip_round(s))));
	tag.high = s.v0 ^ s.v1 ^ s.v2 ^ s.v3;
	return tag;
}
