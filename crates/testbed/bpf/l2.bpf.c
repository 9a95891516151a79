/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/*
 * The plain layer-2 switch that everything else is compared with, at either hook: look-up by destination MAC, counter, out of
 * the port. It takes multi-buffer frames: a program that does not would cap the MTU of its link.
 */
#include <linux/pkt_cls.h>

#include "../../datapath/bpf/abi.h"
#include "../../datapath/bpf/lib/outcome.h"
#include "testbed_abi.h"

#define PORTS_MAX 64
#define MACS_MAX 65536

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* Behind which port a MAC is: interface index for TC, slot of `l2_ports` for XDP. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, MACS_MAX);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct mac_key);
	__type(value, __u32);
} l2_macs SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_DEVMAP);
	__uint(max_entries, PORTS_MAX);
	__type(key, __u32);
	__type(value, struct bpf_devmap_val);
} l2_ports SEC(".maps");

COUNTERS(l2_counters, L2_OUTCOME_COUNT);

/* Written as two words, which is how the hash function reads it. */
INLINE struct mac_key mac_key_of(const __u8 *mac)
{
	struct mac_key key;
	__u32 *words = (void *)&key;

	words[0] = *(const __u32 *)mac;
	words[1] = *(const __u16 *)(mac + 4);
	return key;
}

/* The port that a frame leaves by; nothing for one that is dropped. */
INLINE __u32 *l2_port(void *data, void *end)
{
	if (data + ETH_LENGTH > end) {
		count(&l2_counters, L2_MALFORMED);
		return NULL;
	}
	struct mac_key key = mac_key_of(data);
	__u32 *port = bpf_map_lookup_elem(&l2_macs, &key);

	count(&l2_counters, port ? L2_FORWARDED : L2_UNKNOWN);
	return port;
}

SEC("xdp.frags")
int l2_forward(struct xdp_md *ctx)
{
	__u32 *port = l2_port((void *)(long)ctx->data, (void *)(long)ctx->data_end);

	return port ? bpf_redirect_map(&l2_ports, *port, 0) : XDP_DROP;
}

SEC("tcx/ingress")
int l2_forward_tc(struct __sk_buff *skb)
{
	__u32 *port = l2_port((void *)(long)skb->data, (void *)(long)skb->data_end);

	return port ? bpf_redirect(*port, 0) : TC_ACT_SHOT;
}
