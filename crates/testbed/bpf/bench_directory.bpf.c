/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/* Measuring the directory's look-ups at the card: every run is asked another question. */
#include "bench.h"

/* How many questions there are: a power of two, more than a CPU's cache remembers of their mappings. */
#define QUESTIONS 65536

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, QUESTIONS);
	__type(key, __u32);
	__type(value, struct frame_start);
} questions SEC(".maps");

__u32 asked SEC(".data.asked") = 0;

/* Leaves the restoring alone to be measured. */
SEC("xdp.frags") int bench_directory_nothing(struct xdp_md *ctx) { return XDP_DROP; }

/* A look-up of one AA is that long (`directory_lookup.h`). */
#define FRAME_LENGTH 114

#define COPY(type, offset) (*(type *)(data + (offset)) = *(const type *)(question->bytes + (offset)))

SEC("xdp.frags")
int bench_directory_lookup(struct xdp_md *ctx)
{
	__u32 index = asked++ % QUESTIONS;
	const struct frame_start *question = bpf_map_lookup_elem(&questions, &index);
	void *data = (void *)(long)ctx->data;

	if (!question || data + FRAME_LENGTH > (void *)(long)ctx->data_end)
		return XDP_ABORTED;
	COPY(__u64, 0);
	COPY(__u32, 8);
	COPY(__u16, 12);
#pragma unroll
	for (__u32 word = 14; word < 42; word += 4)
		COPY(__u32, word);
#pragma unroll
	for (__u32 word = 42; word < FRAME_LENGTH; word += 8)
		COPY(__u64, word);
	return run_target(ctx);
}
