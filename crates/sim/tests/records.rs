//! The engine behind the contract that the lab shares: rows, determinism, refusals; and what observers see.

mod common;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use common::{GBPS, PACKET, fabric, flow, job};
use weft_scenario::addressing::{AddressPlan, AddressingOptions};
use weft_scenario::engine::{self, Engine, EngineError, Overlay, Scenario, Transport, Trial};
use weft_scenario::fault::{Fault, FaultKind};
use weft_scenario::record::{Records, ReplayRow, WayRow};
use weft_scenario::switching::Switching;
use weft_scenario::topology::{LinkParams, TestbedParams, vl2_testbed};
use weft_scenario::units::{BitsPerSec, Bytes, Nanos};
use weft_scenario::workload::services::{ServiceRole, ServiceSpec, ServicesSpec, StormSpec};
use weft_scenario::workload::{FlowSpec, MixSpec, Workload};
use weft_sim::{Observer, Progress, SimEngine, SimError, TraceLine, run};
use weft_wire::{ethernet, ipv4, vl2};

/// Says nothing; asks to stop where told.
struct Silent {
    stop: bool,
}

impl engine::Progress for Silent {
    fn phase(&self, _name: &str, _detail: &str) {}
    fn advance(&self, done_ratio: f64, _text: &str) {
        assert!((0.0..=1.0).contains(&done_ratio));
    }
    fn note(&self, _line: &str) {}
    fn interrupted(&self) -> bool {
        self.stop
    }
}

fn scenario(overlay: Overlay) -> Scenario {
    let links = LinkParams { delay: Nanos(1_000), ..LinkParams::for_server_rate(BitsPerSec(GBPS)) };
    let fabric = vl2_testbed(&TestbedParams { servers_per_tor: [3; 4], links }).unwrap();
    Scenario {
        addresses: AddressPlan::new(&fabric, AddressingOptions::default()).unwrap(),
        fabric,
        overlay,
        transport: Transport::default(),
        directory: weft_scenario::engine::DirectoryStore::default(),
        switching: Switching::default(),
        shaped: true,
    }
}

fn trial(workload: Workload, seed: u64) -> Trial {
    Trial {
        workload,
        faults: Vec::new(),
        seed,
        sample_interval: Nanos(1_000_000),
        tcp_interval: Some(Nanos(2_000_000)),
        time_limit: Nanos(60_000_000_000),
        pin_and_measure_cost: false,
        replay: false,
        probes: None,
    }
}

fn shuffle() -> Workload {
    Workload::Shuffle { bytes_per_flow: Bytes(300_000) }
}

fn records(scenario: &Scenario, trial: &Trial) -> Records {
    let (engine, progress) = (SimEngine::default(), Silent { stop: false });
    let mut session = engine.prepare(scenario, &progress).unwrap();
    let records = session.run(trial).unwrap();
    session.close().unwrap();
    records
}

fn fact(records: &Records, name: &str) -> f64 {
    records.fact(name).unwrap()
}

#[test]
fn a_shuffle_yields_every_kind_of_row() {
    let records = records(&scenario(Overlay::Vl2), &trial(shuffle(), 1));
    assert_eq!(records.flows.len(), 12 * 11);
    for flow in &records.flows {
        assert_eq!((flow.bytes_asked, flow.bytes_received), (300_000, 300_000));
        let took_ns = flow.end_ns.unwrap() - flow.start_ns;
        assert!(flow.ideal_ns.is_some_and(|ideal_ns| ideal_ns > 0 && ideal_ns < took_ns), "{flow:?}");
    }
    let last = records.progress.last().unwrap();
    assert_eq!((records.progress[0].received_bytes, last.received_bytes), (0, 12 * 11 * 300_000));
    assert_eq!((last.flows_done, last.time_ns > 20_000_000), (132, true));
    assert_eq!(records.links.len() % (2 * (9 + 8 + 12 + 1)), 0, "both directions of every link at every sample");
    assert!(records.tcp.iter().any(|row| row.cwnd_segments > 10 && row.srtt_ns > 0));
    assert!(records.queues.iter().all(|row| row.class != "tor-server" && row.time_ns > 0));
    let core: u64 =
        records.queues.iter().filter(|row| row.node == "int1" && row.peer == "agg1").map(|row| row.time_ns).sum();
    assert!(core.abs_diff(last.time_ns) < 200, "every moment is in one bin: {core} of {}", last.time_ns);
    assert!(fact(&records, "sim.packet_hops") > 6.0 * 132.0 * 300_000.0 / 1_448.0);
}

#[test]
fn a_replay_ends_as_the_links_do_and_changes_nothing() {
    let scenario = scenario(Overlay::Vl2);
    let plain = records(&scenario, &trial(shuffle(), 1));
    let watched = records(&scenario, &Trial { replay: true, ..trial(shuffle(), 1) });
    assert!(plain.replay.is_empty());
    let times: BTreeSet<u64> = watched.replay.iter().map(|row| row.time_ns).collect();
    assert!((201..=402).contains(&times.len()), "{} times", times.len());
    for link in watched.links.iter().rev().take(2 * (9 + 8 + 12 + 1)) {
        let of_link = |row: &&ReplayRow| (&row.node, &row.interface) == (&link.node, &link.interface);
        let rows: Vec<&ReplayRow> = watched.replay.iter().filter(of_link).collect();
        let last = rows.last().unwrap();
        assert_eq!((last.time_ns, last.sent_bytes), (link.time_ns, link.sent_bytes), "{}", link.node);
        assert_eq!((rows[0].time_ns, rows[0].sent_bytes), (0, 0));
        assert!(rows.windows(2).all(|pair| pair[0].sent_bytes <= pair[1].sent_bytes));
    }
    assert!(watched.replay.iter().any(|row| row.queued_bytes > 100_000), "queues fill in a shuffle");
    let windows = watched.windows.iter().filter(|row| row.flow == ways(&watched)[0][0].flow);
    assert!(
        windows.clone().count() > 10 && windows.clone().all(|row| row.cwnd_segments > 0),
        "of a flow that is followed"
    );
    assert_eq!(Records { replay: Vec::new(), ways: Vec::new(), windows: Vec::new(), ..watched }, plain);
}

/// Ways of the flows that are followed, in order of time.
fn ways(records: &Records) -> Vec<&[WayRow]> {
    records.ways.chunk_by(|one, next| one.hop < next.hop).collect()
}

#[test]
fn followed_flows_go_from_end_to_end_and_around_what_has_failed() {
    let down = FaultKind::LinkDown { a: "agg1".to_owned(), b: "tor1".to_owned() };
    for overlay in [Overlay::Vl2, Overlay::Routed, Overlay::VTEP, Overlay::RBRIDGE] {
        let scenario = scenario(overlay);
        let faults = vec![Fault { at: Nanos(2_000_000), lasts: None, kind: down.clone() }];
        let records = records(&scenario, &Trial { replay: true, faults, ..trial(shuffle(), 1) });
        let server = |number: u32| {
            let node = scenario.fabric.servers().nth(number as usize).unwrap();
            scenario.fabric.node(node).name.clone()
        };
        let mut last_of = BTreeMap::new();
        for way in ways(&records) {
            let (first, last) = (&way[0], way.last().unwrap());
            let flow = &records.flows[first.flow as usize];
            assert_eq!((first.from, first.to), (flow.from, flow.to));
            assert_eq!((&first.node, &last.peer), (&server(flow.from), &server(flow.to)), "{way:?}");
            assert!(
                way.windows(2).all(|pair| pair[0].peer == pair[1].node && pair[0].hop + 1 == pair[1].hop),
                "{way:?}"
            );
            for hop in way {
                assert!((1..=hop.next_hops).contains(&hop.chosen), "{hop:?}");
                assert_eq!(hop.hash.is_empty(), hop.next_hops == 1, "{hop:?}");
            }
            assert_eq!(last.toward, last.peer);
            last_of.insert(first.flow, way);
        }
        assert_eq!(last_of.len(), 24, "flows that are followed");
        let fails = |hop: &WayRow| ["agg1", "tor1"].contains(&&*hop.node) && ["agg1", "tor1"].contains(&&*hop.peer);
        assert!(ways(&records).iter().any(|way| way.iter().any(fails)), "{overlay:?}: one went there");
        assert!(!last_of.values().any(|way| way.iter().any(fails)), "{overlay:?}: and not for good");
        assert!(ways(&records).iter().any(|way| way[0].time_ns >= 2_000_000), "routes followed the fault");
    }
}

#[test]
fn a_way_names_the_links_that_carry_the_flow_and_its_headers_there() {
    let cases = [
        (Overlay::Routed, [0, 0, 0, 0, 0]),
        (Overlay::VTEP, [50, 50, 50, 50, 50]),
        (Overlay::RBRIDGE, [0, 24, 24, 24, 0]),
        (Overlay::Vl2, [40, 40, 40, 20, 0]),
    ];
    for (overlay, wanted) in cases {
        let scenario = scenario(overlay);
        let flows = vec![FlowSpec::bulk(0, 11, 1_000_000, 0)];
        let records = records(&scenario, &Trial { replay: true, ..trial(Workload::Flows { flows }, 1) });
        let [way] = ways(&records)[..] else { panic!("{:?}", records.ways) };
        let named: BTreeSet<_> = way.iter().map(|hop| (&hop.node, &hop.interface, &hop.peer)).collect();
        let end_ns = records.links.last().unwrap().time_ns;
        let carried = records.links.iter().filter(|row| row.time_ns == end_ns && row.sent_bytes > 1_000_000);
        assert_eq!(named, carried.map(|row| (&row.node, &row.interface, &row.peer)).collect(), "{overlay:?}");
        let bytes: Vec<u64> = way.iter().map(|hop| hop.header_bytes).collect();
        // VL2 bounces: one hop more each way.
        let (head, tail) = (&bytes[..2], &bytes[bytes.len() - 2..]);
        assert_eq!((head, tail), (&wanted[..2], &wanted[3..]), "{overlay:?}: {bytes:?}");
    }
    let scenario = scenario(Overlay::Vl2);
    let flows = vec![FlowSpec::bulk(0, 11, 1_000_000, 0)];
    let records = records(&scenario, &Trial { replay: true, ..trial(Workload::Flows { flows }, 1) });
    let plan = &scenario.addresses;
    let tor = scenario.fabric.find("tor4").unwrap();
    let (any, tor) = (plan.anycast_for(tor).unwrap(), format!("IPv4 to {}, tor4", plan.la(tor)));
    let headers: Vec<&str> = records.ways.iter().map(|hop| hop.headers.as_str()).collect();
    let both = format!("IPv4 to {any}, any Intermediate / {tor}");
    assert_eq!(headers, [&both, &both, &both, &tor, &tor, ""]);
    let toward: Vec<&str> = records.ways.iter().map(|hop| hop.toward.as_str()).collect();
    assert_eq!(toward, ["tor1", "any Intermediate", "any Intermediate", "tor4", "tor4", &records.ways[5].peer]);
}

#[test]
fn what_interfaces_count_is_what_was_sent() {
    let records = records(
        &scenario(Overlay::Routed),
        &trial(Workload::Permutation { bytes_per_flow: Bytes(144_800), shift: 3 }, 1),
    );
    let end_ns = records.progress.last().unwrap().time_ns;
    let sent: u64 = records
        .links
        .iter()
        .filter(|row| row.time_ns == end_ns && row.interface == "eth0")
        .map(|row| row.sent_bytes)
        .sum();
    // 12 flows of 100 segments of 1448 B in frames of 1514 B; SYN, SYN-ACK and acknowledgements are frames of 66 B.
    let data = 12 * 100 * 1_514;
    assert!(sent > data + 12 * (2 + 50) * 66 && sent <= data + 12 * (2 + 100) * 66, "{sent}");
}

#[test]
fn the_same_seed_gives_the_same_records_and_another_does_not() {
    let scenario = scenario(Overlay::Vl2);
    let first = records(&scenario, &trial(shuffle(), 1));
    assert_eq!(records(&scenario, &trial(shuffle(), 1)), first);
    assert_ne!(records(&scenario, &trial(shuffle(), 2)).flows, first.flows);
}

fn mix(offered_rate_per_server: Option<BitsPerSec>) -> Records {
    let spec = MixSpec { duration: Nanos(200_000_000), offered_rate_per_server, size_divisor: 200 };
    records(&scenario(Overlay::Vl2), &trial(Workload::Mix(spec), 1))
}

#[test]
fn without_a_rate_the_mix_takes_what_tcp_gives_it() {
    let unpaced = mix(None);
    let received = |records: &Records| records.progress.last().unwrap().received_bytes;
    assert!(received(&unpaced) > 5 * received(&mix(Some(BitsPerSec(100_000_000)))), "{}", received(&unpaced));
    let done = unpaced.flows.iter().filter(|flow| flow.end_ns.is_some());
    assert!(
        done.count() > 100 && unpaced.flows.iter().any(|flow| flow.start_ns > 150_000_000),
        "flows follow each other"
    );
}

#[test]
fn the_mix_sends_at_its_rate_and_follows_flows_with_others() {
    let records = mix(Some(BitsPerSec(100_000_000)));
    let last = records.progress.last().unwrap();
    assert_eq!(last.time_ns, 200_000_000);
    let offered = 12.0 * 100e6 / 8.0 * 0.2;
    let share = last.received_bytes as f64 / offered;
    assert!((0.85..1.01).contains(&share), "{share} of the offered load");
    assert!(last.flows_done > 20, "{}", last.flows_done);
    let cut = records.flows.iter().filter(|flow| flow.end_ns.is_none()).count();
    assert!(cut > 0 && records.flows.len() > cut, "flows still open at the end are cut");
}

#[test]
fn flows_without_an_end_last_as_long_as_they_are_given() {
    let workload = Workload::OneToOne { from: 0, to: 5, flows: 2, duration: Nanos(20_000_000) };
    let records = records(&scenario(Overlay::Routed), &trial(workload, 1));
    assert!(records.flows.iter().all(|flow| flow.end_ns == Some(20_000_000) && flow.bytes_asked == 0));
    let bytes: u64 = records.flows.iter().map(|flow| flow.bytes_received).sum();
    // 1 Gb/s for 20 ms are 2.5 MB; 1448 of every 1538 bytes are payload.
    assert!((2_100_000..2_353_000).contains(&bytes), "{bytes}");
}

#[test]
fn faults_are_told_as_the_lab_tells_them() {
    let mut scenario = scenario(Overlay::Vl2);
    scenario.switching.reconvergence = Nanos(5_000_000);
    let mut trial = trial(shuffle(), 1);
    let kind = FaultKind::SwitchDown { node: "int1".to_owned() };
    trial.faults = vec![Fault { at: Nanos(4_000_000), lasts: Some(Nanos(10_000_000)), kind }];
    let records = records(&scenario, &trial);
    let rows: Vec<_> =
        records.events.iter().map(|row| (row.time_ns, row.kind.as_str(), row.subject.as_str())).collect();
    assert_eq!(
        rows,
        [(4_000_000, "fault", "int1"), (14_000_000, "repair", "int1"), (19_000_000, "routes-restored", "int1")]
    );
    assert!(records.flows.iter().all(|flow| flow.end_ns.is_some()));
    assert!(fact(&records, "sim.lost_on_dead_links") > 0.0);
}

#[test]
fn the_user_can_stop_a_run_and_absurd_trials_are_refused() {
    let (engine, scenario) = (SimEngine::default(), scenario(Overlay::Vl2));
    let stopping = Silent { stop: true };
    let mut session = engine.prepare(&scenario, &stopping).unwrap();
    assert!(matches!(session.run(&trial(shuffle(), 1)), Err(EngineError::Interrupted)));
    let costly = Trial { pin_and_measure_cost: true, ..trial(shuffle(), 1) };
    assert!(matches!(session.run(&costly), Err(EngineError::NotFit { .. })));
    let nowhere = Workload::OneToOne { from: 0, to: 12, flows: 1, duration: Nanos(1) };
    let refusal = session.run(&trial(nowhere, 1)).unwrap_err().to_string();
    assert!(refusal.contains("server number 12"), "{refusal}");
    let storm = StormSpec { begin: Nanos(1), end: Nanos(2), rate: BitsPerSec(GBPS), from: 0 };
    let loud = ServiceSpec { servers: vec![0, 1], role: ServiceRole::Storm(storm), datagram_limit: None };
    let services = ServicesSpec { duration: Nanos(2), service: [("loud".to_owned(), loud)].into() };
    let refusal = session.run(&trial(Workload::Services(services), 1)).unwrap_err().to_string();
    assert!(refusal.contains("run it with the engine `lab`"), "{refusal}");
    assert!(engine.parallel().is_some_and(|engine| engine.name() == "sim"));
}

/// Keeps what it is shown.
#[derive(Default)]
struct Notes {
    lines: Vec<String>,
    frames: Vec<(u64, Vec<u8>)>,
}

impl Observer for Notes {
    fn progress(&mut self, _progress: &Progress) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
    fn trace(&mut self, line: TraceLine) {
        self.lines.push(format!("{} {}", line.time_ps, line.text));
    }
    fn packet(&mut self, time_ps: u64, frame: &[u8]) {
        self.frames.push((time_ps, frame.to_vec()));
    }
}

#[test]
fn a_traced_flow_tells_its_life() {
    let mut job = job(fabric(1, 1, 2, 40), vec![flow(1, 0, PACKET, 0), flow(0, 1, PACKET, 0)]);
    job.watch.trace_flow = Some(1);
    let mut notes = Notes::default();
    run(&job, &mut notes).unwrap();
    let expected = [
        "0 SYN s1 -> leaf1, queue 40 B",
        "1032000 SYN leaf1 -> s2, queue 40 B",
        "2064000 SYN-ACK s2 -> leaf1, queue 40 B",
        "3096000 SYN-ACK leaf1 -> s1, queue 40 B",
        "4128000 sender Open: ACK 0, window 10, threshold none, in flight 0, srtt 4 us",
        "4128000 segment 0 s1 -> leaf1, queue 1500 B",
        "6328000 segment 0 leaf1 -> s2, queue 1500 B",
        "8528000 ACK 1 s2 -> leaf1, queue 40 B",
        "9560000 ACK 1 leaf1 -> s1, queue 40 B",
    ];
    assert_eq!(notes.lines[..9], expected);
    assert_eq!(notes.lines.last().map(String::as_str), Some("10592000 all acknowledged"));
}

#[test]
fn captured_frames_are_read_by_the_formats_own_readers() {
    let links = LinkParams::for_server_rate(BitsPerSec(GBPS));
    let fabric = vl2_testbed(&TestbedParams { servers_per_tor: [2; 4], links }).unwrap();
    let addresses = AddressPlan::new(&fabric, AddressingOptions::default()).unwrap();
    let server = fabric.find("s1").unwrap();
    let (tor, link) = fabric.edge_of(server).unwrap();
    let tor_la = addresses.la(fabric.find("tor4").unwrap());
    let mut job = job(fabric, vec![flow(0, 7, 2 * PACKET, 0)]);
    job.settings.overlay = Overlay::Vl2;
    job.settings.sizes = weft_sim::PacketSizes::ethernet(false);
    job.addresses = Some(addresses);
    job.watch.capture = Some((link, server));
    let mut notes = Notes::default();
    run(&job, &mut notes).unwrap();
    let lengths: Vec<usize> = notes.frames.iter().map(|(_, frame)| frame.len()).collect();
    assert_eq!(lengths, [14 + 80, 14 + 1_540, 14 + 1_540]);
    for (_, frame) in &notes.frames {
        let view = ethernet::View::new(frame).unwrap();
        let (stack, inner) = vl2::Stack::parse(view.payload()).unwrap();
        assert_eq!(stack.tor_la, tor_la);
        let header = ipv4::Header::parse(inner).unwrap();
        assert_eq!((header.protocol, header.payload_len as usize), (ipv4::protocol::TCP, inner.len() - 20));
    }
    let times: Vec<u64> = notes.frames.iter().map(|(time_ps, _)| *time_ps).collect();
    // 38 B of Ethernet around 80 B at 1 Gb/s.
    assert_eq!(times[0], 118 * 8_000);
    job.watch.capture = Some((link, tor));
    let mut back = Notes::default();
    run(&job, &mut back).unwrap();
    assert_eq!(back.frames.iter().map(|(_, frame)| frame.len()).collect::<Vec<_>>(), [54, 54, 54]);
}

#[test]
fn absurd_jobs_are_refused_with_the_place_named() {
    let base = job(fabric(1, 1, 2, 40), vec![flow(0, 1, PACKET, 0)]);
    let refusal = |change: &dyn Fn(&mut weft_sim::Job)| {
        let mut job = base.clone();
        change(&mut job);
        run(&job, &mut weft_sim::Unobserved).unwrap_err()
    };
    assert!(matches!(refusal(&|job| job.settings.sizes.segment_bytes = 0), SimError::BadSetting { .. }));
    assert!(matches!(refusal(&|job| job.settings.sizes.segment_bytes = 1_561), SimError::TooLong(_)));
    assert!(matches!(refusal(&|job| job.settings.sizes.segment_bytes = 70_000), SimError::BadSetting { .. }));
    assert!(matches!(refusal(&|job| job.settings.overlay = Overlay::Vl2), SimError::BadCombination(_)));
    let slow = refusal(&|job| {
        job.fabric = common::with_links(&job.fabric, |link| link.spec.rate = BitsPerSec(100));
    });
    assert!(slow.to_string().starts_with("link spine1:leaf1 - leaf1:spine1: a full queue"), "{slow}");
    let to_itself = refusal(&|job| job.source = weft_sim::Source::Flows(vec![flow(1, 1, PACKET, 0)]));
    assert!(to_itself.to_string().starts_with("flow 0: server 1"), "{to_itself}");
}
