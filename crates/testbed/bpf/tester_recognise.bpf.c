/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/*
 * The receiver of frames that were replayed: they have no probe, so it knows them by a digest of all their bytes. What it knows
 * ends here; all else goes its way.
 */
#include "../../datapath/bpf/lib/headers.h"
#include "testbed_abi.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1); /* user space makes it as many as there are digests */
	__type(key, __u64);
	__type(value, struct tester_known);
} tester_known SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct tester_recognised);
} tester_recognised SEC(".maps");

/* The same as in src/tester/digest.rs. */
#define FACTOR 0x9e3779b97f4a7c15ULL
#define LANES 4
#define BLOCK 64
#define BLOCKS_MAX 1024

struct digesting {
	struct xdp_md *ctx;
	__u32 at;
	__u64 lanes[LANES];
};

INLINE __u64 stir(__u64 lane, __u64 word)
{
	lane = (lane ^ word) * FACTOR;
	return lane ^ lane >> 32;
}

/* Four lanes: one would wait for each of its multiplications. */
INLINE void stir_block(struct digesting *d, const __u64 *words)
{
#pragma unroll
	for (int word = 0; word < BLOCK / 8; word++)
		d->lanes[word % LANES] = stir(d->lanes[word % LANES], words[word]);
}

static int take_block(__u32 turn, struct digesting *d)
{
	__u64 words[BLOCK / 8];

	/* Also from behind the frame's first buffer. */
	if (bpf_xdp_load_bytes(d->ctx, d->at, words, BLOCK))
		return 1;
	stir_block(d, words);
	d->at += BLOCK;
	return 0;
}

INLINE __u64 digest_of(struct xdp_md *ctx, __u32 bytes)
{
	struct digesting d = { .ctx = ctx, .lanes = { 1, 2, 3, 4 } };
	__u64 words[BLOCK / 8] = {};
	__u32 rest = ((bytes - 1) & (BLOCK - 1)) + 1;
	__u64 digest = bytes;

	bpf_loop((bytes - 1) / BLOCK & (BLOCKS_MAX - 1), take_block, &d, 0);
	if (bpf_xdp_load_bytes(ctx, d.at, words, rest))
		return 0;
	stir_block(&d, words);
#pragma unroll
	for (int lane = 0; lane < LANES; lane++)
		digest = stir(digest, d.lanes[lane]);
	return digest;
}

SEC("xdp.frags")
int tester_recognise(struct xdp_md *ctx)
{
	__u64 now = bpf_ktime_get_ns();
	__u32 bytes = bpf_xdp_get_buff_len(ctx);
	__u64 digest = digest_of(ctx, bytes);
	struct tester_known *known = bpf_map_lookup_elem(&tester_known, &digest);
	__u32 zero = 0;
	struct tester_recognised *port = bpf_map_lookup_elem(&tester_recognised, &zero);

	if (!port)
		return XDP_PASS;
	if (!known) {
		port->foreign++;
		return XDP_PASS;
	}
	/* Frames of one digest may come in on several CPUs. */
	__sync_fetch_and_add(&known->received, 1);
	if (!port->frames)
		port->first_ns = now;
	port->last_ns = now;
	port->frames++;
	port->bytes += bytes;
	return XDP_DROP;
}
