/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/*
 * Emulated links, and a device of our own to put between them.
 *
 * A link is a FIFO in virtual time: the frame is not held, but whoever is told by its probe how long the line would have
 * held it. So rate, queue, loss and serialisation are exact where XDP_REDIRECT knows no queueing discipline, and the same
 * body runs on TC egress, so that beds with the kernel's bridges have the same links. For TCP a link is only a policer.
 */
#include "testbed_abi.h"
#include "probe.h"

#include <linux/pkt_cls.h>

#define LINKS_MAX 256
#define RELAY_PORTS_MAX 16
#define BURNS_MAX (1 << 14)

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* struct tester_link with its lock as the verifier wants it. */
struct locked_link {
	struct bpf_spin_lock lock;
	__u32 overhead_bytes;
	__u64 ticks_per_byte;
	__u64 queue_ns;
	__u64 delay_ns;
	__u64 idle_ticks;
	__u64 passed;
	__u64 dropped;
	__u64 foreign;
	__u64 saturated;
};

/* By interface index. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, LINKS_MAX);
	__type(key, __u32);
	__type(value, struct locked_link);
} tester_links SEC(".maps");

/* Whether the line takes a frame, and then how long the frame is under way. */
INLINE int line_takes(struct locked_link *link, __u64 arrival_ns, __u64 bytes, __u64 *took_ns)
{
	__u64 serialised = (bytes + link->overhead_bytes) * link->ticks_per_byte;
	__u64 arrival = arrival_ns << 10;
	int taken = 0;

	bpf_spin_lock(&link->lock);
	__u64 start = link->idle_ticks > arrival ? link->idle_ticks : arrival;
	if (start - arrival <= link->queue_ns << 10) {
		taken = 1;
		link->idle_ticks = start + serialised;
		link->passed++;
	} else {
		link->dropped++;
	}
	bpf_spin_unlock(&link->lock);
	*took_ns = ((start - arrival + serialised) >> 10) + link->delay_ns;
	return taken;
}

/* 1 if the frame goes on. Links in series: the frame arrives here after the delays that it was told of before. */
INLINE int cross_link(__u32 ifindex, void *data, void *end, __u64 bytes)
{
	struct locked_link *link = bpf_map_lookup_elem(&tester_links, &ifindex);
	__u64 took_ns = 0;

	if (!link)
		return 1;
	void *probe = probe_find(data, end);
	__u64 stamp = probe ? PROBE_STAMP(probe) : 0;
	__u64 units = stamp & PROBE_DELAY_MAX;
	__u64 arrival = bpf_ktime_get_ns() + (units << PROBE_DELAY_UNIT_SHIFT);
	if (!line_takes(link, arrival, bytes, &took_ns))
		return 0;
	if (!probe) {
		__sync_fetch_and_add(&link->foreign, 1);
		return 1;
	}
	/* Whole units into the field, the rest off the time of sending. */
	units += took_ns >> PROBE_DELAY_UNIT_SHIFT;
	if (units > PROBE_DELAY_MAX) {
		__sync_fetch_and_add(&link->saturated, 1);
		units = PROBE_DELAY_MAX;
	}
	__u64 sent = (stamp >> 16) - (took_ns & ((1 << PROBE_DELAY_UNIT_SHIFT) - 1));
	probe_restamp(probe, probe_stamp(stamp >> 56, sent, units));
	return 1;
}

/* In the device map of an XDP switch: runs for every frame that leaves by the port. */
SEC("xdp.frags/devmap")
int tester_link_xdp(struct xdp_md *ctx)
{
	void *data = (void *)(long)ctx->data;
	void *end = (void *)(long)ctx->data_end;

	return cross_link(ctx->egress_ifindex, data, end, bpf_xdp_get_buff_len(ctx)) ? XDP_PASS : XDP_DROP;
}

/* On the egress of a port that the kernel forwards to. A drop here is seen by a local sender, but none sends here. */
SEC("tcx/egress")
int tester_link_tc(struct __sk_buff *skb)
{
	if (skb->data_end - skb->data < 42 + PROBE_LENGTH)
		bpf_skb_pull_data(skb, skb->len < 144 ? skb->len : 144);
	void *data = (void *)(long)skb->data;
	void *end = (void *)(long)skb->data_end;

	return cross_link(skb->ifindex, data, end, skb->len) ? TC_ACT_UNSPEC : TC_ACT_SHOT;
}

struct {
	__uint(type, BPF_MAP_TYPE_DEVMAP);
	__uint(max_entries, RELAY_PORTS_MAX);
	__type(key, __u32);
	__type(value, struct bpf_devmap_val);
} tester_relay_ports SEC(".maps");

/* By interface index of the port that a frame comes in at. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, RELAY_PORTS_MAX);
	__type(key, __u32);
	__type(value, struct tester_relay);
} tester_relays SEC(".maps");

static int is_over(__u32 turn, void *end_ns)
{
	return bpf_ktime_get_ns() >= *(__u64 *)end_ns;
}

/* A cable with a cost: the device that everything else is checked against. */
SEC("xdp.frags")
int tester_relay(struct xdp_md *ctx)
{
	__u32 ifindex = ctx->ingress_ifindex;
	struct tester_relay *relay = bpf_map_lookup_elem(&tester_relays, &ifindex);

	if (!relay || !relay->to)
		return XDP_PASS;
	if (relay->burn_ns) {
		__u64 end_ns = bpf_ktime_get_ns() + relay->burn_ns;
		bpf_loop(BURNS_MAX, is_over, &end_ns, 0);
	}
	return bpf_redirect_map(&tester_relay_ports, relay->to - 1, 0);
}
