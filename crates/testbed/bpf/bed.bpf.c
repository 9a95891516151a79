/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/*
 * What experiments put beside the device under test: the fan that gives each stream a segment of its own, an end that polls.
 */
#include "../../datapath/bpf/lib/ctx_tc.h"
#include "testbed_abi.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#define TRUNKS_MAX 2
#define VNIS_MAX 8192
#define VLAN_BITS 12
#define VLAN_MASK 4095
#define ETHERTYPE_VLAN 0x8100

/* Lets a veth's end poll, so that its peer can send it live frames. */
SEC("xdp.frags")
int bed_poll(struct xdp_md *ctx)
{
	return XDP_PASS;
}

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
	if (segment->vlan && bpf_skb_vlan_push(skb, bpf_htons(ETHERTYPE_VLAN), segment->vlan))
		return TC_ACT_SHOT;
	return bpf_redirect(segment->ifindex, segment->flags & FAN_INGRESS ? BPF_F_INGRESS : 0);
}

__u32 bed_deliver_to SEC(".data.deliver") = 0;

/* Frames of all segments out of one port. */
SEC("tcx/ingress")
int bed_fan_in(struct __sk_buff *skb)
{
	return bpf_redirect(bed_deliver_to, 0);
}

/* The same for what a segment's own port, or a trunk of many, would send: without a tag. */
SEC("tcx/egress")
int bed_fan_in_egress(struct __sk_buff *skb)
{
	if (skb->vlan_present && bpf_skb_vlan_pop(skb))
		return TC_ACT_SHOT;
	return bpf_redirect(bed_deliver_to, 0);
}

/*
 * Trunks as one VXLAN device of the kernel can have them: a program on each trunk tells the device the VNI of a frame's VLAN,
 * one on the device finds the VLAN of a frame's VNI.
 */
__u32 bed_tunnel SEC(".data.tunnel") = 0;	/* the device */
__u32 bed_first_trunk SEC(".data.trunk") = 0; /* trunks' interface indexes begin here */

struct bed_vlan {
	__u32 vni;
	__u32 remote; /* host order, as the helper wants it */
};

/* By number of the trunk and VLAN ID. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, TRUNKS_MAX << VLAN_BITS);
	__type(key, __u32);
	__type(value, struct bed_vlan);
} bed_vlans SEC(".maps");

struct bed_circuit {
	__u32 ifindex;
	__u32 vlan;
};

/* By VNI. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, VNIS_MAX);
	__type(key, __u32);
	__type(value, struct bed_circuit);
} bed_circuits SEC(".maps");

SEC("tcx/ingress")
int bed_trunk_to_tunnel(struct __sk_buff *skb)
{
	__u32 number = (skb->ifindex - bed_first_trunk) << VLAN_BITS | (skb->vlan_tci & VLAN_MASK);
	struct bed_vlan *vlan = bpf_map_lookup_elem(&bed_vlans, &number);

	if (!vlan || !vlan->vni)
		return TC_ACT_SHOT;
	struct bpf_tunnel_key key = { .tunnel_id = vlan->vni, .remote_ipv4 = vlan->remote, .tunnel_ttl = 64 };
	if (bpf_skb_vlan_pop(skb) || bpf_skb_set_tunnel_key(skb, &key, sizeof(key), BPF_F_ZERO_CSUM_TX))
		return TC_ACT_SHOT;
	return bpf_redirect(bed_tunnel, 0);
}

SEC("tcx/ingress")
int bed_tunnel_to_trunk(struct __sk_buff *skb)
{
	struct bpf_tunnel_key key;

	if (bpf_skb_get_tunnel_key(skb, &key, sizeof(key), 0))
		return TC_ACT_SHOT;
	__u32 vni = key.tunnel_id;
	struct bed_circuit *circuit = bpf_map_lookup_elem(&bed_circuits, &vni);
	if (!circuit || !circuit->ifindex)
		return TC_ACT_SHOT;
	__u32 ifindex = circuit->ifindex;
	if (bpf_skb_vlan_push(skb, bpf_htons(ETHERTYPE_VLAN), circuit->vlan))
		return TC_ACT_SHOT;
	return bpf_redirect(ifindex, 0);
}
