/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/*
 * Whether copies of a frame are each their own, at XDP in the stack on loopback: a frame is copied to both entries of a map,
 * each copy gets a number, and what comes back is looked at.
 */
#include "lib/headers.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#define NUMBERED 2 /* first byte of a source address; loopback's own is 0 */
#define NUMBERS 31

struct {
	__uint(type, BPF_MAP_TYPE_DEVMAP);
	__uint(max_entries, 2);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(struct bpf_devmap_val));
} copy_ports SEC(".maps");

struct copies_seen {
	__u32 written; /* copies that were numbered */
	__u32 came;    /* copies that came back */
	__u32 numbers; /* a bit for each number that came back */
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct copies_seen);
} copies_seen SEC(".maps");

INLINE __u8 *frame_source(struct xdp_md *ctx)
{
	struct eth_header *eth = (void *)(long)ctx->data;

	return (void *)(eth + 1) <= (void *)(long)ctx->data_end ? eth->source : NULL;
}

INLINE struct copies_seen *seen_here(void)
{
	__u32 first = 0;

	return bpf_map_lookup_elem(&copies_seen, &first);
}

SEC("xdp/devmap")
int number_copy(struct xdp_md *ctx)
{
	struct copies_seen *seen = seen_here();
	__u8 *source = frame_source(ctx);

	if (!seen || !source)
		return XDP_DROP;
	source[0] = NUMBERED;
	source[5] = __sync_fetch_and_add(&seen->written, 1);
	return XDP_PASS;
}

SEC("xdp")
int copy_and_look(struct xdp_md *ctx)
{
	struct copies_seen *seen = seen_here();
	__u8 *source = frame_source(ctx);

	if (!seen || !source)
		return XDP_DROP;
	if (source[0] != NUMBERED)
		return bpf_redirect_map(&copy_ports, 0, BPF_F_BROADCAST);
	seen->numbers |= 1u << (source[5] & NUMBERS);
	__sync_fetch_and_add(&seen->came, 1);
	return XDP_DROP;
}
