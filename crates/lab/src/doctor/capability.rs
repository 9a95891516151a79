//! The one table of what a machine must offer, what weft needs it for, and what works without it.

use super::uses::Use;

/// Something that is tried on the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Probe {
    /// This object is loaded.
    Object(&'static str),
    /// A program is attached to TC.
    Tc,
    /// VL2's programs are attached on ingress and egress, and a frame goes through.
    Vl2Works,
    /// The same with a VTEP between two ports.
    VtepWorks,
    /// A program is attached to an end of a veth pair, in the driver.
    XdpNative,
    /// The same in the stack.
    XdpGeneric,
    /// A frame is copied at XDP in the stack, and its copies are changed.
    OwnCopies,
}

/// One line of the table.
#[derive(Debug)]
pub(super) struct Row {
    pub(super) capability: Capability,
    /// As lines of the report begin.
    pub(super) name: &'static str,
    /// What is tried to find out; nothing: another check says it.
    pub(super) probes: &'static [Probe],
    pub(super) needed_by: &'static [Use],
    /// What to do about it, or what works without it.
    pub(super) remedy: &'static str,
}

/// Objects that need the kernel's own types (BTF).
pub(super) const NEEDS_BTF: &[&str] = &["vxlan_tc"];

use Probe::Object;
use Use::{
    BenchDatapath, BridgedLab, KernelVxlanLab, LookupCard, Measure, RBridge, RBridgeGeneric, RoutedLab, ShapedLinks,
    TrillLab, TrillPlans, Vl2Lab, Vl2Node, Vtep, VtepLab, VtepXdp, VxlanPlans,
};

const ROUTED: &[Use] = &[RoutedLab, KernelVxlanLab, VtepLab, Vl2Lab, VxlanPlans];
/// What makes namespaces with links.
const BEDS: &[Use] = &[
    RoutedLab,
    KernelVxlanLab,
    VtepLab,
    BridgedLab,
    Vl2Lab,
    TrillLab,
    ShapedLinks,
    Use::Losses,
    Measure,
    VxlanPlans,
    TrillPlans,
];

/// A capability with its line: its name, what is tried to find out, what needs it, and the remedy.
macro_rules! table {
    ($($(#[$about:meta])* $capability:ident: $name:literal, $probes:expr, $needed_by:expr, $remedy:literal;)*) => {
        /// What a machine offers or not.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub(super) enum Capability {
            $($(#[$about])* $capability,)*
        }

        /// The table.
        pub(super) const TABLE: &[Row] = &[$(Row {
            capability: Capability::$capability,
            name: $name,
            probes: $probes,
            needed_by: $needed_by,
            remedy: $remedy,
        },)*];
    };
}

table! {
    /// Rights of this process.
    Rights: "rights", &[], Use::PRIVILEGED,
        "run with sudo; inside a container add these capabilities (docker run --privileged)";
    /// `ip`, `tc` and `bridge`.
    Iproute: "iproute2", &[], BEDS, "apt-get install iproute2, or: make deps";
    /// FRR's daemons.
    Routing: "FRR", &[], ROUTED, "apt-get install frr, or: make deps";
    /// Network namespaces.
    Namespaces: "namespaces", &[], BEDS, "a lab needs the right to make network namespaces";
    /// Pairs of virtual interfaces.
    Veth: "veth of MTU 1600", &[], BEDS, "a kernel with CONFIG_VETH";
    /// Rates and queues.
    Shaping: "htb, bfifo, u32", &[], &[ShapedLinks],
        "a kernel with CONFIG_NET_SCH_HTB, NET_SCH_FIFO, NET_CLS_U32; or: weft lab up --unshaped";
    /// The kernel's VXLAN device.
    KernelVxlan: "vxlan", &[], &[KernelVxlanLab, VxlanPlans],
        "a kernel with CONFIG_VXLAN; only comparisons with kernel VXLAN need it";
    /// Entries in that device's table.
    BridgeFdb: "bridge fdb", &[], &[KernelVxlanLab, VxlanPlans], "see vxlan";
    /// TCP's congestion controls.
    CongestionControl: "congestion control", &[], Use::LABS, "a kernel with CONFIG_TCP_CONG_CUBIC";
    /// Room on `/run`.
    RunSpace: "space on /run", &[], Use::LABS, "free some: logs and state of a lab need up to 64 MiB";
    /// A file system for pins.
    Bpffs: "bpffs", &[], &[Vl2Lab, VtepLab, TrillLab], "labs with eBPF pin their programs there; see the reason";
    /// Programs behind the driver.
    Tc: "TC hook", &[Probe::Tc], &[Vl2Lab, VtepLab, Vl2Node, Vtep, VtepXdp, Use::Losses, Measure, VxlanPlans, TrillPlans],
        "labs of --overlay routed and of RBridges, which need none";
    /// Programs in the driver.
    XdpNative: "XDP in the driver (veth)", &[Probe::XdpNative], &[TrillLab, RBridge, VtepXdp, LookupCard, Measure, VxlanPlans, TrillPlans],
        "weft node rbridge with xdp = \"generic\"; weft node vtep --hook tc";
    /// Programs in the stack.
    XdpGeneric: "XDP in the stack", &[Probe::XdpGeneric], &[RBridgeGeneric, TrillPlans], "XDP in the driver, which is faster";
    /// Copies of frames that share nothing, at XDP in the stack.
    OwnCopies: "copies of frames (XDP in the stack)", &[Object("copies"), Probe::OwnCopies], &[RBridgeGeneric],
        "xdp = \"native\", or no more than two ports";
    /// VL2's hosts and switches.
    Vl2: "eBPF: VL2", &[Object("vl2_host"), Object("vl2_switch"), Probe::Vl2Works], &[Vl2Lab, Vl2Node, BenchDatapath],
        "weft lab up --overlay routed";
    /// The VTEP at TC.
    VxlanTc: "eBPF: VXLAN at TC", &[Object("vxlan_tc"), Probe::VtepWorks], &[VtepLab, Vtep, VtepXdp, BenchDatapath, VxlanPlans],
        "the kernel's VXLAN: weft lab up --overlay kernel-vxlan";
    /// The VTEP at XDP.
    VxlanXdp: "eBPF: VXLAN at XDP", &[Object("vxlan_xdp")], &[VtepXdp, BenchDatapath, VxlanPlans], "weft node vtep --hook tc";
    /// RBridges.
    Trill: "eBPF: TRILL", &[Object("trill")], &[TrillLab, RBridge, RBridgeGeneric, BenchDatapath, VxlanPlans, TrillPlans],
        "weft lab up --overlay bridge; or weft run PLAN --engine sim, where the plan has it";
    /// Look-ups at a directory server's card.
    Lookups: "eBPF: directory look-ups", &[Object("directory")], &[LookupCard],
        "leave xdp_interface out: the server answers all look-ups then";
    /// Generator, analyser, emulated links.
    TestCentre: "eBPF: test centre", &[Object("tester_generate"), Object("tester_analyse"), Object("tester_recognise"), Object("tester_link")],
        &[Measure, VxlanPlans, TrillPlans], "labs, which have traffic of their own";
    /// Plain switches and segments of the experiments' beds.
    Beds: "eBPF: plain switches", &[Object("l2"), Object("bed")], &[VxlanPlans, TrillPlans],
        "weft measure between ports of your own";
    /// Loops around programs.
    Benches: "eBPF: benches", &[Object("bench"), Object("bench_trill"), Object("bench_directory")], &[BenchDatapath], "weft run vxlan/encapsulations";
    /// Links that lose, or carry less, and cuts.
    Losses: "eBPF: losses", &[Object("loss"), Object("impair")], &[Use::Losses, VxlanPlans, TrillPlans], "faults of kind `link-down`";
}

/// The line of a capability.
pub(super) fn row(capability: Capability) -> &'static Row {
    TABLE.iter().find(|row| row.capability == capability).expect("the table has a line for each")
}

/// What something needs of the kernel's eBPF and its hooks.
pub(super) fn tried_for(wanted: Use) -> impl Iterator<Item = Capability> {
    TABLE.iter().filter(move |row| !row.probes.is_empty() && row.needed_by.contains(&wanted)).map(|row| row.capability)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// Objects of the table; twice in it if they are twice in it.
    fn listed() -> Vec<&'static str> {
        let of = |probe: &Probe| if let Object(name) = probe { Some(*name) } else { None };
        TABLE.iter().flat_map(|row| row.probes.iter().filter_map(of)).collect()
    }

    #[test]
    fn every_object_that_is_shipped_is_in_the_table_once() {
        let shipped: BTreeSet<&str> = weft_testbed::objects().map(|file| file.name).collect();
        let listed = listed();
        assert_eq!(listed.iter().copied().collect::<BTreeSet<_>>(), shipped);
        assert_eq!(listed.len(), shipped.len(), "twice: {listed:?}");
        assert!(NEEDS_BTF.iter().all(|object| listed.contains(object)));
    }

    #[test]
    fn every_line_is_needed_by_somebody_and_says_what_to_do() {
        for row in TABLE {
            assert!(!row.needed_by.is_empty() && !row.remedy.is_empty(), "{row:?}");
            assert_eq!(TABLE.iter().filter(|other| other.capability == row.capability).count(), 1, "{row:?}");
        }
        for wanted in Use::PRIVILEGED {
            assert!(TABLE.iter().filter(|row| row.needed_by.contains(wanted)).count() > 1, "{wanted:?}");
        }
    }

    #[test]
    fn a_lab_needs_its_own_overlay_and_no_other() {
        let of = |wanted| tried_for(wanted).collect::<Vec<_>>();
        assert_eq!(of(Use::Vl2Lab), [Capability::Tc, Capability::Vl2]);
        assert_eq!(of(Use::TrillLab), [Capability::XdpNative, Capability::Trill]);
        assert_eq!(of(Use::BridgedLab), []);
    }
}
