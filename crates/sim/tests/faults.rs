//! Links and switches that fail: what is lost, where packets go then, and that the books balance whatever happens.

mod common;

use common::{PACKET, fabric, flow, job, outcome};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{RngAlgorithm, TestRng, TestRunner};
use weft_scenario::fault::{Fault, FaultKind};
use weft_scenario::switching::{BufferPolicy, HostQueue, LoadBalance};
use weft_scenario::units::{Bytes, Nanos};
use weft_sim::{FabricEventKind, Flow, Job, SimError, Unobserved, run};

fn link_down(a: &str, b: &str, at_us: u64, lasts_us: Option<u64>) -> Fault {
    let kind = FaultKind::LinkDown { a: a.to_owned(), b: b.to_owned() };
    Fault { at: Nanos(at_us * 1_000), lasts: lasts_us.map(|us| Nanos(us * 1_000)), kind }
}

/// One flow by spine 1, whose link to the second leaf fails.
fn failing(lasts_us: Option<u64>, reconvergence_us: u64) -> Job {
    let fabric = fabric(2, 2, 1, 40);
    let pinned = Flow { through: fabric.find("spine1"), ..flow(0, 1, 2_000 * PACKET, 0) };
    let mut job = job(fabric, vec![pinned]);
    job.faults = vec![link_down("spine1", "leaf2", 300, lasts_us)];
    job.settings.switching.reconvergence = Nanos(reconvergence_us * 1_000);
    job.settings.tcp.rto_min_ps = 10_000_000_000;
    job
}

fn through(job: &Job, outcome: &weft_sim::Outcome, spine: &str) -> u64 {
    let node = job.fabric.find(spine);
    outcome.ports.iter().filter(|port| Some(port.node) == node).map(|port| port.counters.packets).sum()
}

#[test]
fn packets_are_lost_until_routes_have_changed_and_then_go_the_other_way() {
    let job = failing(None, 50_000);
    let outcome = outcome(&job);
    assert_eq!(outcome.totals.flows_done, 1);
    assert!(outcome.totals.lost.packets > 0);
    assert!(outcome.totals.timeouts > 0, "50 ms without a path are longer than a timeout");
    assert!(through(&job, &outcome, "spine2") > 0);
    let events: Vec<_> = outcome.events.iter().map(|event| (event.kind, event.time_ps / 1_000_000)).collect();
    assert_eq!(events, [(FabricEventKind::Fault, 300), (FabricEventKind::Reconverged, 50_300)]);
}

#[test]
fn a_silent_failure_is_noticed_later() {
    use FabricEventKind::{Fault, Reconverged, Repair};
    for (bfd, noticed_us) in [(Some(Nanos(10_000_000)), 40_000), (None, 1_000_000)] {
        let mut job = failing(Some(2_000_000), 100);
        job.faults[0].kind = FaultKind::LinkSilent { a: "spine1".to_owned(), b: "leaf2".to_owned() };
        job.settings.switching.bfd = bfd;
        job.source = weft_sim::Source::Flows(vec![flow(0, 1, 0, 0)]);
        job.stop = Some(Nanos(2_100_000_000));
        let events: Vec<_> = outcome(&job).events.iter().map(|event| (event.kind, event.time_ps / 1_000_000)).collect();
        let (back, restored) = ((Repair, 2_000_300), (Reconverged, 2_000_400));
        assert_eq!(events, [(Fault, 300), (Reconverged, 300 + noticed_us + 100), back, restored]);
    }
}

#[test]
fn after_a_repair_flows_return_to_their_path() {
    let job = failing(Some(500), 100);
    let outcome = outcome(&job);
    assert_eq!(outcome.totals.flows_done, 1);
    let kinds: Vec<_> = outcome.events.iter().map(|event| (event.kind, event.time_ps / 1_000_000)).collect();
    use FabricEventKind::{Fault, Reconverged, Repair};
    assert_eq!(kinds, [(Fault, 300), (Reconverged, 400), (Repair, 800), (Reconverged, 900)]);
    assert!(through(&job, &outcome, "spine1") > through(&job, &outcome, "spine2"));
}

#[test]
fn without_any_path_packets_are_lost_and_the_flow_waits() {
    let mut job = failing(Some(30_000), 0);
    job.faults.push(link_down("spine2", "leaf2", 300, Some(30_000)));
    let outcome = outcome(&job);
    assert_eq!(outcome.totals.flows_done, 1);
    assert!(outcome.flows[0].received_ps > Some(30_300_000_000));
}

#[test]
fn a_fabric_in_two_parts_is_refused_by_name() {
    let mut job = job(fabric(1, 2, 1, 40), vec![flow(0, 1, PACKET, 0)]);
    job.faults = vec![link_down("spine1", "leaf9", 0, None)];
    let refusal = run(&job, &mut Unobserved).unwrap_err();
    assert_eq!(refusal.to_string(), "fault at 0 ns: the fabric has no node `leaf9`");
    job.faults.clear();
    job.source = weft_sim::Source::Flows(vec![flow(0, 2, PACKET, 0)]);
    assert!(matches!(run(&job, &mut Unobserved), Err(SimError::BadFlow { flow: 0, .. })));
}

#[derive(Clone, Debug)]
struct Plan {
    spines: u32,
    flows: Vec<(u32, u32, u64, u64)>,
    faults: Vec<(u32, u32, u64, u64)>,
    buffer: u64,
    shared: Option<Option<u32>>,
    back_pressure: bool,
    load_balance: LoadBalance,
    reconvergence_us: u64,
}

fn plans() -> impl Strategy<Value = Plan> {
    let flow = (0u32..6, 1u32..6, 1u64..200_000, 0u64..300);
    let fault = (0u32..3, 0u32..3, 1u64..2_000, 1u64..5_000);
    let load_balance = prop_oneof![
        Just(LoadBalance::FlowEcmp),
        Just(LoadBalance::PacketSpray),
        Just(LoadBalance::SpanningTree),
        Just(LoadBalance::Flowlet { gap: Nanos(5_000) }),
        Just(LoadBalance::Rehash { hold: Nanos(50_000), large: Bytes(0), only_timeouts: false }),
    ];
    let switches = (3_000u64..60_000, proptest::option::of(proptest::option::of(200u32..4_000)));
    (
        (1u32..4, proptest::collection::vec(flow, 1..12), proptest::collection::vec(fault, 0..5)),
        (switches, any::<bool>(), load_balance, 0u64..3_000),
    )
        .prop_map(
            |((spines, flows, faults), ((buffer, shared), back_pressure, load_balance, reconvergence_us))| Plan {
                spines,
                flows,
                faults,
                buffer,
                shared,
                back_pressure,
                load_balance,
                reconvergence_us,
            },
        )
}

fn job_of(plan: &Plan) -> Job {
    let fabric = common::with_links(&fabric(plan.spines, 3, 2, 10), |link| link.spec.buffer = Bytes(plan.buffer));
    let flows = plan.flows.iter().map(|(from, shift, bytes, us)| flow(*from, (from + shift) % 6, *bytes, us * 1_000));
    let mut job = job(fabric, flows.collect());
    let switching = &mut job.settings.switching;
    if let Some(dynamic_alpha_milli) = plan.shared {
        let tier_pools = std::collections::BTreeMap::new();
        switching.buffer = BufferPolicy::SharedPool { pool: Bytes(plan.buffer), dynamic_alpha_milli, tier_pools };
    }
    if plan.back_pressure {
        switching.host_queue = HostQueue::BackPressure { limit: Bytes(plan.buffer) };
    }
    switching.load_balance = plan.load_balance;
    switching.reconvergence = Nanos(plan.reconvergence_us * 1_000);
    job.settings.tcp.rto_min_ps = 1_000_000_000;
    job.settings.tcp.rto_initial_ps = 3_000_000_000;
    job.settings.tcp.syn_retries = 30;
    // One after the other, so that nothing fails twice.
    let mut at_us = 0;
    for (spine, leaf, after_us, lasts_us) in &plan.faults {
        at_us += after_us;
        let (spine, leaf) = (format!("spine{}", spine % plan.spines + 1), format!("leaf{}", leaf + 1));
        job.faults.push(link_down(&spine, &leaf, at_us, Some(*lasts_us)));
        at_us += lasts_us;
    }
    job
}

/// Whatever fails and however small the buffers: every flow gets through in the end, nothing is made or lost on the way
/// (the run checks its books), and the same job gives the same outcome.
fn completes(plan: &Plan) {
    let job = job_of(plan);
    let outcome = run(&job, &mut Unobserved).unwrap();
    assert_eq!(outcome.totals.flows_done as usize, plan.flows.len());
    for (flow, asked) in outcome.flows.iter().zip(&plan.flows) {
        assert_eq!(flow.received_bytes, asked.2);
        assert!(flow.received_ps <= flow.acknowledged_ps);
    }
    assert_eq!(run(&job, &mut Unobserved).unwrap(), outcome);
}

/// With networks that a number names, so that one that was found is tried from then on.
#[test]
fn books_balance_and_flows_complete_whatever_the_seed() {
    weft_needs::each_seed("network", 0..50, |seed| {
        let mut bytes = [0; 32];
        bytes[..8].copy_from_slice(&seed.to_le_bytes());
        let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
        let mut runner = TestRunner::new_with_rng(ProptestConfig::default(), rng);
        completes(&plans().new_tree(&mut runner).expect("nothing is rejected").current());
    });
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn books_balance_and_flows_complete_under_faults(plan in plans()) {
        completes(&plan);
    }
}
