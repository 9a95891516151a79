//! What is refused for which engine, and what is not.

use super::*;
use crate::fault::FaultKind;
use crate::switching::{BufferPolicy, LoadBalance};
use crate::topology::{LeafSpineParams, LinkParams, MeshParams};
use crate::transport::{CongestionControl, TcpStack};
use crate::units::Bytes;

const MS: u64 = 1_000_000;

/// A scenario in which everything has an effect.
struct Setup {
    spec: FabricSpec,
    overlay: Overlay,
    transport: Transport,
    switching: Switching,
    workload: Workload,
    faults: Vec<Fault>,
    tcp_interval: Option<Nanos>,
}

fn setup() -> Setup {
    Setup {
        spec: FabricSpec::LeafSpine(LeafSpineParams::default()),
        overlay: Overlay::Routed,
        transport: Transport::default(),
        switching: Switching::default(),
        workload: workload("kind = \"shuffle\"\nbytes_per_flow = \"1 MB\""),
        faults: Vec::new(),
        tcp_interval: None,
    }
}

fn workload(toml: &str) -> Workload {
    toml::from_str(toml).expect("a workload")
}

impl Setup {
    fn refusals(&self, runner: Runner) -> Vec<String> {
        let fabric = self.spec.build(&|_| Err("no file".to_owned())).expect("a fabric");
        let case = Case {
            runner,
            spec: &self.spec,
            fabric: &fabric,
            overlay: self.overlay,
            transport: &self.transport,
            switching: &self.switching,
            workload: ("one", &self.workload),
            faults: &self.faults,
            interval: Some(Nanos(MS)),
            tcp_interval: self.tcp_interval,
            time_limit: Nanos(100 * MS),
        };
        case.findings().iter().filter_map(Finding::refusal).collect()
    }

    #[track_caller]
    fn refused(&self, runner: Runner, message: &str) {
        let refusals = self.refusals(runner);
        assert!(refusals.len() == 1 && refusals[0].contains(message), "wanted `{message}`, got {refusals:?}");
    }
}

fn transport(transport: Transport) -> Setup {
    Setup { transport, ..setup() }
}

fn switching(switching: Switching) -> Setup {
    Setup { switching, ..setup() }
}

#[test]
fn the_defaults_are_no_settings() {
    for runner in [Runner::Sim, Runner::Lab, Runner::Calc] {
        assert_eq!(setup().refusals(runner), [""; 0], "{runner:?}");
    }
}

#[test]
fn dctcp_without_marks_and_marks_without_dctcp_are_refused() {
    let dctcp = Transport { congestion_control: CongestionControl::Dctcp, ..Transport::default() };
    transport(dctcp.clone()).refused(Runner::Sim, "let switches mark by `ecn_threshold = \"30 kB\"`");
    transport(dctcp.clone()).refused(Runner::Lab, "the lab's queues mark nothing");
    let marks = |bytes| Switching { ecn_threshold: Some(Bytes(bytes)), ..Switching::default() };
    switching(marks(30_000)).refused(Runner::Sim, "switches mark packets of DCTCP alone");
    let both = |bytes| Setup { switching: marks(bytes), ..transport(dctcp.clone()) };
    assert_eq!(both(30_000).refusals(Runner::Sim), [""; 0]);
    both(16_000_000).refused(Runner::Sim, "no queue gets so long: the largest buffer of a port is 16 MB");
    let pool = BufferPolicy::SharedPool {
        pool: Bytes(1_000_000),
        dynamic_alpha_milli: Some(1_000),
        tier_pools: std::collections::BTreeMap::new(),
    };
    let pooled =
        |bytes| Setup { switching: Switching { buffer: pool.clone(), ..marks(bytes) }, ..transport(dctcp.clone()) };
    pooled(500_000).refused(Runner::Sim, "the largest buffer of a port is 500 kB");
    assert_eq!(pooled(499_999).refusals(Runner::Sim), [""; 0]);
}

#[test]
fn the_suggested_threshold_follows_the_servers_rate() {
    let gbps = |rate: u64| usual(rate * 1_000_000_000);
    fn usual(rate_bps: u64) -> u64 {
        super::hosts::usual_threshold(crate::units::BitsPerSec(rate_bps)).0
    }
    assert_eq!([usual(20_000_000), gbps(1), gbps(10), gbps(100)], [30_000, 30_000, 97_500, 975_000]);
}

#[test]
fn what_one_engine_alone_has_is_refused_in_the_other() {
    let usual = Transport::default();
    transport(Transport { output_limit: Some(Bytes(4096)), ..usual.clone() }).refused(Runner::Sim, "`host_queue`");
    transport(Transport { segments_per_skb: 2, ..usual.clone() }).refused(Runner::Sim, "only the lab's kernels");
    for sim_only in [
        Transport { stack: TcpStack::Linux2_6_26, ..usual.clone() },
        Transport { window_cap_segments: Some(44), ..usual.clone() },
        Transport { rto_initial: Nanos(3_000 * MS), ..usual.clone() },
        Transport { segments_per_ack: 1, ..usual.clone() },
        Transport { sack: false, ..usual.clone() },
    ] {
        assert_eq!(transport(sim_only.clone()).refusals(Runner::Sim), [""; 0]);
        transport(sim_only).refused(Runner::Lab, "only the simulator's TCP has it");
    }
    let usual = Switching::default();
    switching(Switching { cpus: 2, ..usual.clone() }).refused(Runner::Sim, "only RBridges of the lab");
    switching(Switching { cpus: 2, ..usual.clone() }).refused(Runner::Lab, "no switch is an RBridge");
    let spray = Switching { load_balance: LoadBalance::PacketSpray, ..usual };
    assert_eq!(switching(spray.clone()).refusals(Runner::Sim), [""; 0]);
    switching(spray).refused(Runner::Lab, "only agents of VL2");
}

#[test]
fn what_another_setting_makes_idle_is_refused() {
    let capped = Transport { initial_window: 20, window_cap_segments: Some(12), ..Transport::default() };
    transport(capped).refused(Runner::Sim, "`window_cap_segments` lets only 12 out");
    let spray = Switching { load_balance: LoadBalance::PacketSpray, ..Switching::default() };
    let mesh = Setup { spec: FabricSpec::Mesh(MeshParams::default()), ..switching(spray) };
    mesh.refused(Runner::Sim, "no two servers have several equal paths");
    let tree = Switching { load_balance: LoadBalance::SpanningTree, ..Switching::default() };
    let pair = Setup { spec: FabricSpec::OverlayPair(LinkParams::default()), ..switching(tree) };
    pair.refused(Runner::Sim, "linked as a tree already");
    let late = Switching { load_balance: LoadBalance::Flowlet { gap: Nanos(100 * MS) }, ..Switching::default() };
    switching(late).refused(Runner::Sim, "`gap` is 100 ms, and the run is cut after 100 ms");
    switching(Switching { reconvergence: Nanos(MS), ..Switching::default() }).refused(Runner::Sim, "nothing fails");
    let pool = BufferPolicy::SharedPool { pool: Bytes(1_000_000), dynamic_alpha_milli: None, tier_pools: [].into() };
    let links = LinkParams { core_buffer: Bytes(9_999), ..LinkParams::default() };
    let pooled = Setup {
        spec: FabricSpec::LeafSpine(LeafSpineParams { links, ..LeafSpineParams::default() }),
        ..switching(Switching { buffer: pool, ..Switching::default() })
    };
    pooled.refused(Runner::Sim, "`fabric.core_buffer` has no effect: ports have the `shared-pool`");
}

#[test]
fn what_comes_after_the_end_is_refused() {
    let fault = |at_ms: u64, lasts_ms: Option<u64>| Fault {
        at: Nanos(at_ms * MS),
        lasts: lasts_ms.map(|ms| Nanos(ms * MS)),
        kind: FaultKind::LinkDown { a: "leaf1".to_owned(), b: "spine1".to_owned() },
    };
    let with = |one| Setup { faults: vec![one], ..setup() };
    with(fault(100, None))
        .refused(Runner::Sim, "`fault at 100 ms of leaf1-spine1` has no effect: the run is over at 100 ms");
    with(fault(99, Some(1))).refused(Runner::Lab, "before the repair; leave it out");
    assert_eq!(with(fault(99, None)).refusals(Runner::Lab), [""; 0]);
    let sending = |ms| workload(&format!("kind = \"one-to-one\"\nfrom = 0\nto = 1\nflows = 1\nduration = \"{ms} ms\""));
    Setup { workload: sending(50), ..with(fault(50, None)) }.refused(Runner::Sim, "the run is over at 50 ms");
    Setup { workload: sending(101), ..setup() }.refused(Runner::Sim, "`time_limit` cuts the run after 100 ms");
    Setup { tcp_interval: Some(Nanos(101 * MS)), ..setup() }.refused(Runner::Sim, "`sampling.tcp_interval`");
    let list = "kind = \"flows\"\nflows = [{ from = 0, to = 1, bytes = 1, start_ns = 100000000 }]";
    Setup { workload: workload(list), ..setup() }.refused(Runner::Sim, "flow 1 of the list starts at 100 ms");
}

#[test]
fn settings_of_traffic_that_change_no_flow_are_refused() {
    let background = |more: &str| Setup {
        workload: workload(&format!(
            "kind = \"traffic\"\nduration = \"1 ms\"\n[background]\nsizes = {{ fixed = \"20 kB\" }}\nload_percent = 10\n{more}"
        )),
        ..setup()
    };
    background("max_flow_bytes = \"20 kB\"").refused(Runner::Sim, "no flow is longer than 20 kB");
    assert_eq!(background("max_flow_bytes = \"19 kB\"").refusals(Runner::Sim), [""; 0]);
    let racks = "between_racks_only = true\nservers_per_rack";
    background(&format!("{racks} = 2")).refused(Runner::Sim, "the fabric's racks are the same");
    assert_eq!(background(&format!("{racks} = 3")).refusals(Runner::Sim), [""; 0]);
    let mesh = Setup { spec: FabricSpec::Mesh(MeshParams::default()), ..background("between_racks_only = true") };
    mesh.refused(Runner::Sim, "every server is a rack of its own");
}

#[test]
fn settings_of_tcp_need_tcp() {
    let flood = "kind = \"services\"\nduration = \"10 ms\"\n[service.one]\nservers = [0, 2]\n\
                 [service.one.role.flood]\nbegin = \"1 ms\"\nend = \"5 ms\"\nrate_per_server = \"1 Mbit/s\"\nto = 2\n";
    let timid = Transport { initial_window: 2, ..Transport::default() };
    let without = Setup { workload: workload(flood), ..transport(timid) };
    without.refused(Runner::Sim, "nothing of workload `one` goes by TCP");
    let limit = format!("{flood}[service.one.datagram_limit]\nrate = \"1 Mbit/s\"\nburst = \"3 kB\"\n");
    let limited = Setup { workload: workload(&limit), ..setup() };
    limited.refused(Runner::Sim, "`workload.one.service.one.datagram_limit`: it is the agents' of VL2");
}

#[test]
fn a_finding_has_the_path_of_its_key() {
    let fault = |at| Fault {
        at: Nanos(at * MS),
        lasts: Some(Nanos(MS)),
        kind: FaultKind::SwitchDown { node: "spine1".to_owned() },
    };
    let setup =
        Setup { faults: vec![fault(1), fault(200)], ..transport(Transport { sack: false, ..Transport::default() }) };
    let fabric = setup.spec.build(&|_| Err("no file".to_owned())).expect("a fabric");
    let case = Case {
        runner: Runner::Lab,
        spec: &setup.spec,
        fabric: &fabric,
        overlay: setup.overlay,
        transport: &setup.transport,
        switching: &setup.switching,
        workload: ("one.two", &workload("kind = \"one-to-one\"\nfrom = 0\nto = 1\nflows = 1\nduration = \"1 s\"")),
        faults: &setup.faults,
        interval: None,
        tcp_interval: None,
        time_limit: Nanos(100 * MS),
    };
    let findings = case.findings();
    let paths: Vec<Vec<&str>> =
        findings.iter().map(|finding| finding.path.iter().map(String::as_str).collect()).collect();
    let wanted: [&[&str]; 5] = [
        &["transport", "sack"],
        &["fault", "0"],
        &["fault", "0", "lasts"],
        &["fault", "1"],
        &["workload", "one.two", "duration"],
    ];
    assert_eq!(paths, wanted);
    let names: Vec<&str> = findings.iter().map(|finding| finding.setting.as_str()).collect();
    assert_eq!(names[2..], ["fault at 1 ms of spine1.lasts", "fault at 200 ms of spine1", "workload.one.two.duration"]);
}
