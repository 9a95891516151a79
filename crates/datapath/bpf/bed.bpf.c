/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/*
 * What beds of experiments are made of beside the device under test: an end for a chain of switches, a known cost, the plain
 * layer-2 switches that VTEPs at the same hook are compared with, and the fan that gives each stream a segment of its own.
 */
#include "lib/ctx_tc.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#define PORTS_MAX 64
#define MACS_MAX 65536
#define BURNS_MAX (1 << 14)

/* The chain ends here. */
SEC("tcx/ingress")
int bed_cut(struct __sk_buff *skb)
{
	return TC_ACT_SHOT;
}

__u64 bed_burn_ns SEC(".data.bed") = 0;

static int is_over(__u32 turn, void *end_ns)
{
	return bpf_ktime_get_ns() >= *(__u64 *)end_ns;
}

/* A known cost on every frame that comes in. */
SEC("tcx/ingress")
int bed_burn(struct __sk_buff *skb)
{
	__u64 end_ns = bpf_ktime_get_ns() + bed_burn_ns;

	bpf_loop(BURNS_MAX, is_over, &end_ns, 0);
	return VERDICT_NEXT;
}

struct bed_mac {
	__u8 bytes[6];
	__u16 zero;
};

/* Behind which port a MAC is: interface index for TC, slot of the device map for XDP. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, MACS_MAX);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct bed_mac);
	__type(value, __u32);
} bed_macs SEC(".maps");

INLINE __u32 *port_of(void *data, void *end)
{
	struct bed_mac mac = {};

	if (data + ETH_LENGTH > end)
		return NULL;
	__builtin_memcpy(mac.bytes, data, sizeof(mac.bytes));
	return bpf_map_lookup_elem(&bed_macs, &mac);
}

/* A plain switch at the TC hook. What it does not know goes to the stack. */
SEC("tcx/ingress")
int bed_switch(struct __sk_buff *skb)
{
	__u32 *port = port_of((void *)(long)skb->data, (void *)(long)skb->data_end);

	return port ? bpf_redirect(*port, 0) : VERDICT_NEXT;
}

struct {
	__uint(type, BPF_MAP_TYPE_DEVMAP);
	__uint(max_entries, PORTS_MAX);
	__type(key, __u32);
	__type(value, __u32);
} bed_ports SEC(".maps");

/* The same as XDP. */
SEC("xdp.frags")
int bed_switch_xdp(struct xdp_md *ctx)
{
	__u32 *port = port_of((void *)(long)ctx->data, (void *)(long)ctx->data_end);

	return port ? bpf_redirect_map(&bed_ports, *port, XDP_PASS) : XDP_PASS;
}

/* Lets a veth's end poll, so that its peer can send it live frames. */
SEC("xdp.frags")
int bed_poll(struct xdp_md *ctx)
{
	return XDP_PASS;
}

#define FAN_INGRESS 1 /* as if the frame had come in at that interface */
#define FAN_TUNNEL 2 /* the interface is one VXLAN device for all segments: tell it which */

struct bed_segment {
	__u32 ifindex;
	__u32 flags;
	__u32 vni;
	__u32 remote; /* host order, as the helper wants it */
};

/* By the last two bytes of the destination's MAC. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1 << 16);
	__type(key, __u32);
	__type(value, struct bed_segment);
} bed_segments SEC(".maps");

/* Frames of one port into their segments. */
SEC("tcx/ingress")
int bed_fan_out(struct __sk_buff *skb)
{
	__u8 *data = (void *)(long)skb->data;

	if ((void *)data + ETH_LENGTH > (void *)(long)skb->data_end)
		return VERDICT_NEXT;
	__u32 number = data[4] << 8 | data[5];
	struct bed_segment *segment = bpf_map_lookup_elem(&bed_segments, &number);
	if (!segment || !segment->ifindex)
		return VERDICT_NEXT;
	if (segment->flags & FAN_TUNNEL) {
		struct bpf_tunnel_key key = { .tunnel_id = segment->vni, .remote_ipv4 = segment->remote, .tunnel_ttl = 64 };
		if (bpf_skb_set_tunnel_key(skb, &key, sizeof(key), BPF_F_ZERO_CSUM_TX))
			return TC_ACT_SHOT;
	}
	return bpf_redirect(segment->ifindex, segment->flags & FAN_INGRESS ? BPF_F_INGRESS : 0);
}

__u32 bed_deliver_to SEC(".data.deliver") = 0;

/* Frames of all segments out of one port. */
SEC("tcx/ingress")
int bed_fan_in(struct __sk_buff *skb)
{
	return bpf_redirect(bed_deliver_to, 0);
}

/* The same for what a segment's own port would send. */
SEC("tcx/egress")
int bed_fan_in_egress(struct __sk_buff *skb)
{
	return bpf_redirect(bed_deliver_to, 0);
}
