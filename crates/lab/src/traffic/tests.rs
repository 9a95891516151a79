//! Whole runs over real TCP between namespaces.

use std::collections::BTreeSet;
use std::net::{Ipv4Addr, UdpSocket};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::Ordering::Relaxed;

use weft_scenario::engine::{CongestionControl, Trial};
use weft_scenario::fault::{Fault, FaultKind};
use weft_scenario::record::{FlowRow, Records};
use weft_scenario::units::{BitsPerSec, Bytes, Nanos};
use weft_scenario::workload::services::{
    FloodSpec, RampSpec, STORM_FOREIGN, STORM_OFFERED, STORM_OWN, ServiceRole, ServiceSpec, ServicesSpec, StormSpec,
};
use weft_scenario::workload::{FlowClass, FlowSpec, MixServer, MixSpec, Workload};

use super::star::{Recorder, Star, eventually, trial};
use super::worker::STORM_PORT;
use super::{TrafficError, WatchedPort, run, worker_main};

const SECOND_NS: u64 = 1_000_000_000;
const SHAPED: &str = "tbf rate 50mbit burst 20k limit 1m";

/// The worker process of the tests below; does nothing when the tests themselves are run.
#[test]
fn worker_entry() {
    if std::env::var_os("WEFT_TRAFFIC_WORKER").is_some() {
        let arguments = std::env::args_os().collect::<Vec<_>>();
        let ended = worker_main(arguments[arguments.len() - 2..].to_vec());
        std::process::exit(i32::from(ended != ExitCode::SUCCESS));
    }
}

fn run_quietly(bed: &Star, trial: &Trial) -> Result<Records, TrafficError> {
    run(&bed.setup(), trial, &mut &*bed, &Recorder::default())
}

fn shuffle(bytes_per_flow: u64) -> Trial {
    trial(Workload::Shuffle { bytes_per_flow: Bytes(bytes_per_flow) })
}

fn one_to_one(flows: u32, duration_ns: u64) -> Trial {
    trial(Workload::OneToOne { from: 0, to: 1, flows, duration: Nanos(duration_ns) })
}

fn fact(records: &Records, name: &str) -> f64 {
    records.fact(name).unwrap_or_else(|| panic!("no fact {name}"))
}

#[test]
fn listed_flows_start_in_their_time_and_keep_their_class() {
    let Some(bed) = Star::new(2, Some(SHAPED)) else { return };
    let later = FlowSpec { class: FlowClass::Query, request: Some(7), ..FlowSpec::bulk(1, 0, 20_000, 300_000_000) };
    let flows = vec![later, FlowSpec::bulk(0, 1, 10_000, 0)];
    let records = run_quietly(&bed, &trial(Workload::Flows { flows })).unwrap();
    let rows: Vec<_> = records.flows.iter().map(|flow| (flow.bytes_received, flow.class, flow.request)).collect();
    assert_eq!(rows, [(20_000, FlowClass::Query, Some(7)), (10_000, FlowClass::Bulk, None)]);
    assert!(records.flows[0].start_ns >= 300_000_000, "{:?}", records.flows[0]);
}

#[test]
fn every_byte_of_a_shuffle_arrives_once() {
    let Some(bed) = Star::new(3, Some(SHAPED)) else { return };
    let mut trial = shuffle(1_000_003);
    trial.tcp_interval = Some(Nanos(100_000_000));
    let progress = Recorder::default();
    let records = run(&bed.setup(), &trial, &mut &bed, &progress).unwrap();

    let mut pairs: Vec<(u32, u32)> = records.flows.iter().map(|flow| (flow.from, flow.to)).collect();
    pairs.sort_unstable();
    assert_eq!(pairs, [(0, 1), (0, 2), (1, 0), (1, 2), (2, 0), (2, 1)]);
    for flow in &records.flows {
        assert_eq!((flow.bytes_asked, flow.bytes_received), (1_000_003, 1_000_003), "{flow:?}");
        assert!(flow.start_ns < SECOND_NS && flow.end_ns.unwrap() > 100_000_000, "{flow:?}");
    }
    // Two megabytes leave each server at 50 Mb/s: 0.32 s and headers.
    let end_ns = records.flows.iter().filter_map(|flow| flow.end_ns).max().unwrap();
    assert!((320_000_000..3 * SECOND_NS).contains(&end_ns), "{end_ns}");

    let last = records.progress.last().unwrap();
    assert_eq!((last.received_bytes, last.flows_done), (6 * 1_000_003, 6));
    assert!(records.progress.is_sorted_by(|a, b| a.time_ns < b.time_ns && a.received_bytes <= b.received_bytes));
    let advances = progress.advances.into_inner().unwrap();
    assert!(advances.is_sorted_by(|a, b| a.0 <= b.0), "{advances:?}");
    assert!(
        advances.last().unwrap().0 == 1.0 && advances.last().unwrap().1.contains(", 6/6 flows, idle "),
        "{advances:?}"
    );
    check_samples(&records);
    assert!(bed.worker_pids().is_empty());
}

fn check_samples(records: &Records) {
    let last = records.links.len() - 3;
    for (row, server) in records.links[last..].iter().zip(0..) {
        assert_eq!((row.interface.clone(), row.class.as_str()), (format!("p{server}"), "router-server"));
        assert!((2_000_006..2_600_000).contains(&row.sent_bytes), "{row:?}");
    }
    assert!(records.links[..3].iter().all(|row| row.sent_bytes < 10_000 && row.dropped_frames == 0));
    assert!(records.cpu.iter().all(|row| (0.0..=1.0).contains(&(row.idle_ratio + row.softirq_ratio))));
    assert!(!records.cpu.is_empty());
    assert!(records.tcp.len() >= 6 && records.tcp.iter().all(|row| row.cwnd_segments > 0 && row.srtt_ns > 0));
    assert!(fact(records, "tcp.retransmits") >= fact(records, "tcp.timeouts"));
    assert_eq!(
        fact(records, "drops.router-server"),
        records.links[last..].iter().map(|row| row.dropped_frames as f64).sum::<f64>()
    );
    assert!((0.05..1.1).contains(&fact(records, "acks_per_data_segment")), "{:?}", records.facts);
    assert!((0.0..=1.0).contains(&fact(records, "foreign_cpu_ratio")));
}

#[test]
fn what_a_replay_shows_is_read_ten_times_a_second_with_what_waits() {
    let Some(bed) = Star::new(3, Some("tbf rate 20mbit burst 10k limit 200k")) else { return };
    let mut trial = shuffle(1_000_000);
    (trial.replay, trial.sample_interval) = (true, Nanos(250_000_000));
    let mut setup = bed.setup();
    let own = |port: &WatchedPort| WatchedPort {
        namespace: PathBuf::from("/run/netns").join(&port.peer),
        node: port.peer.clone(),
        interface: "eth0".to_owned(),
        peer: port.node.clone(),
        class: "server-router".to_owned(),
    };
    setup.watched.extend(setup.watched.iter().map(own).collect::<Vec<_>>());
    let records = run(&setup, &trial, &mut &bed, &Recorder::default()).unwrap();
    let end = records.links.last().unwrap();
    let times: BTreeSet<u64> = records.replay.iter().map(|row| row.time_ns).collect();
    assert_eq!((times.first(), times.last()), (Some(&0), Some(&end.time_ns)));
    // A busy machine may miss some.
    let wanted = end.time_ns / 100_000_000;
    assert!((wanted / 2..=wanted + 2).contains(&(times.len() as u64)), "{} times of {wanted}", times.len());
    let (links, rows) = (&records.links[records.links.len() - 6..], &records.replay[records.replay.len() - 6..]);
    for (link, row) in links.iter().zip(rows) {
        assert_eq!((&link.node, &link.interface), (&row.node, &row.interface));
        // A server's is what its switch has received: the same but for what is on its way.
        assert!(row.sent_bytes.abs_diff(link.sent_bytes) <= link.sent_bytes / 50, "{link:?} {row:?}");
        assert!(row.sent_bytes > 1_900_000, "{row:?}");
    }
    assert!(records.replay.iter().all(|row| row.interface != "eth0" || row.queued_bytes == 0));
    let longest = records.replay.iter().map(|row| row.queued_bytes).max().unwrap();
    assert!((10_000..=200 * 1024).contains(&longest), "{longest} bytes waited");
    assert!(run_quietly(&bed, &shuffle(1_000)).unwrap().replay.is_empty(), "nobody asked for it");
}

#[test]
fn flows_with_a_duration_send_all_the_link_carries_until_then() {
    let Some(bed) = Star::new(2, Some(SHAPED)) else { return };
    let records = run_quietly(&bed, &one_to_one(3, 2 * SECOND_NS)).unwrap();
    assert_eq!(records.flows.len(), 3);
    let bytes: u64 = records.flows.iter().map(|flow| flow.bytes_received).sum();
    // 50 Mb/s of frames for two seconds are 12.1 MB of payload; tbf's burst and the slow start are the margin.
    assert!((10_800_000..12_300_000).contains(&bytes), "{bytes}");
    for flow in &records.flows {
        assert!((2 * SECOND_NS..2 * SECOND_NS + 200_000_000).contains(&flow.end_ns.unwrap()), "{flow:?}");
        assert_eq!(flow.bytes_asked, 0);
    }
    assert_eq!(records.progress.last().unwrap().flows_done, 3);
}

#[test]
fn full_queues_are_seen_as_drops_and_retransmissions() {
    let Some(bed) = Star::new(3, Some("tbf rate 20mbit burst 10k limit 20k")) else { return };
    let records = run_quietly(&bed, &shuffle(500_000)).unwrap();
    assert!(fact(&records, "drops.router-server") > 0.0, "{:?}", records.facts);
    let retransmits: u64 = records.flows.iter().map(|flow| flow.retransmits).sum();
    assert!(retransmits > 0 && retransmits as f64 <= fact(&records, "tcp.retransmits"), "{retransmits}");
}

#[test]
fn a_server_of_the_mix_keeps_its_flows_and_its_rate() {
    let Some(bed) = Star::new(4, Some(SHAPED)) else { return };
    let rate = 8_000_000;
    let spec =
        MixSpec { duration: Nanos(8 * SECOND_NS), offered_rate_per_server: Some(BitsPerSec(rate)), size_divisor: 200 };
    let records = run_quietly(&bed, &trial(Workload::Mix(spec.clone()))).unwrap();
    let received = records.progress.last().unwrap().received_bytes;
    let offered = 4 * rate / 8 * 8;
    assert!((received as f64 / offered as f64 - 1.0).abs() < 0.1, "{received} of {offered}");
    assert_eq!(received, records.flows.iter().map(|flow| flow.bytes_received).sum::<u64>());
    for server in 0..4 {
        let kept = MixServer::new(&spec, 4, server, 1).unwrap().concurrency() as usize;
        let mine: Vec<&FlowRow> = records.flows.iter().filter(|flow| flow.from == server).collect();
        assert!(mine.iter().all(|flow| flow.to != server && flow.bytes_received <= flow.bytes_asked));
        let mut counts: Vec<usize> = (5..80).map(|tenth| active(&mine, tenth * SECOND_NS / 10)).collect();
        counts.sort_unstable();
        // The median, exactly: a place that is never filled again shows, a moment without the CPU does not.
        assert_eq!(counts[counts.len() / 2], kept, "server {server}: {counts:?}");
        assert!(counts.last().is_some_and(|most| *most <= kept), "server {server} keeps {kept}: {counts:?}");
    }
}

#[test]
fn without_a_rate_the_mix_fills_the_links() {
    let Some(bed) = Star::new(4, Some(SHAPED)) else { return };
    let spec = MixSpec { duration: Nanos(3 * SECOND_NS), offered_rate_per_server: None, size_divisor: 200 };
    let records = run_quietly(&bed, &trial(Workload::Mix(spec))).unwrap();
    let received = records.progress.last().unwrap().received_bytes;
    assert!(received > 3 * 8_000_000 / 8 * 3, "{received} is no more than 8 Mbit/s of three servers");
    let follow = records.flows.iter().filter(|flow| flow.end_ns.is_some() || flow.start_ns > SECOND_NS);
    assert!(follow.count() > 4, "{:?}", records.flows);
}

fn active(flows: &[&FlowRow], at_ns: u64) -> usize {
    flows.iter().filter(|flow| flow.start_ns <= at_ns && flow.end_ns.is_none_or(|end_ns| at_ns < end_ns)).count()
}

/// The thread that works; in these tests it is not the process's first.
fn is_nobody(pid: u32) -> bool {
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap().flatten();
    let mut statuses = threads.flat_map(|thread| std::fs::read_to_string(thread.path().join("status")));
    let signs = ["Uid:\t65534\t65534\t65534\t65534\n", "CapPrm:\t0000000000000000\n", "NoNewPrivs:\t1\n"];
    statuses.any(|status| signs.iter().all(|sign| status.contains(sign)))
}

#[test]
fn a_killed_worker_fails_the_run_by_name_and_takes_the_others_along() {
    let Some(bed) = Star::new(3, Some(SHAPED)) else { return };
    let outcome = std::thread::scope(|scope| {
        let running = scope.spawn(|| run_quietly(&bed, &shuffle(1 << 30)));
        eventually("three workers", || bed.worker_pids().len() == 3);
        eventually("workers that are nobody", || bed.worker_pids().into_iter().all(is_nobody));
        std::thread::sleep(std::time::Duration::from_millis(300));
        super::star::run("kill", &format!("-9 {}", bed.worker_pid(1)));
        running.join().unwrap()
    });
    let message = outcome.unwrap_err().to_string();
    assert_eq!(message, format!("traffic of server {} failed: its worker was killed by signal 9", bed.host(1)));
    assert!(bed.worker_pids().is_empty());
}

#[test]
fn a_killed_worker_is_the_cause_when_its_peers_are_seen_to_end_before_it() {
    let Some(bed) = Star::new(2, None) else { return };
    let mut setup = bed.setup();
    let script = "if [ $1 = 1 ]; then sleep 0.1; kill -9 $$; fi; echo 'connection reset' >&2; exit 1";
    setup.worker_command = ["sh", "-c", script, "sh"].map(Into::into).to_vec();
    let outcome = run(&setup, &shuffle(10_000), &mut &bed, &Recorder::default());
    let message = outcome.unwrap_err().to_string();
    assert_eq!(message, format!("traffic of server {} failed: its worker was killed by signal 9", bed.host(1)));
}

#[test]
fn an_interrupted_run_leaves_no_worker_and_no_fault() {
    let Some(bed) = Star::new(2, Some(SHAPED)) else { return };
    let progress = Recorder::default();
    let mut trial = shuffle(1 << 30);
    trial.faults = vec![link_fault(100_000_000, None)];
    let outcome = std::thread::scope(|scope| {
        let running = scope.spawn(|| run(&bed.setup(), &trial, &mut &bed, &progress));
        eventually("progress", || !progress.advances.lock().unwrap().is_empty());
        std::thread::sleep(std::time::Duration::from_millis(200));
        progress.stop.store(true, Relaxed);
        running.join().unwrap()
    });
    assert!(matches!(outcome, Err(TrafficError::Interrupted)));
    assert!(bed.worker_pids().is_empty());
    let records = run_quietly(&bed, &shuffle(10_000)).unwrap();
    assert!(records.flows.iter().all(|flow| flow.end_ns.is_some()));
}

fn link_fault(at_ns: u64, lasts_ns: Option<u64>) -> Fault {
    let kind = FaultKind::LinkDown { a: "r".to_owned(), b: "1".to_owned() };
    Fault { at: Nanos(at_ns), lasts: lasts_ns.map(Nanos), kind }
}

#[test]
fn a_link_fails_at_its_time_and_flows_survive_its_absence() {
    let Some(bed) = Star::new(2, Some(SHAPED)) else { return };
    let mut trial = one_to_one(1, 4 * SECOND_NS);
    trial.faults = vec![link_fault(SECOND_NS, Some(SECOND_NS))];
    let records = run_quietly(&bed, &trial).unwrap();
    let events: Vec<(&str, &str, u64)> = records
        .events
        .iter()
        .map(|event| (event.kind.as_str(), event.subject.as_str(), event.time_ns / SECOND_NS))
        .collect();
    assert_eq!(events, [("fault", "r-1", 1), ("repair", "r-1", 2)]);
    let received = |at_ns: u64| records.progress.iter().find(|row| row.time_ns >= at_ns).unwrap().received_bytes;
    assert_eq!(received(SECOND_NS * 13 / 10), received(SECOND_NS * 19 / 10));
    assert!(records.flows[0].bytes_received > received(2 * SECOND_NS) + 1_000_000, "{records:?}");
}

#[test]
fn a_run_that_is_cut_says_which_flows_had_not_ended() {
    let Some(bed) = Star::new(2, Some(SHAPED)) else { return };
    let mut trial = shuffle(1 << 30);
    trial.time_limit = Nanos(500_000_000);
    let records = run_quietly(&bed, &trial).unwrap();
    assert!(records.flows.iter().all(|flow| flow.end_ns.is_none() && flow.bytes_received > 0), "{:?}", records.flows);
}

#[test]
fn another_congestion_control_than_asked_is_refused() {
    let Some(bed) = Star::new(2, None) else { return };
    let mut setup = bed.setup();
    setup.congestion_control = CongestionControl::Cubic;
    let error = run(&setup, &shuffle(1000), &mut &bed, &Recorder::default()).unwrap_err().to_string();
    assert!(error.contains("-h") && error.contains("reno instead of cubic"), "{error}");
    assert!(bed.worker_pids().is_empty());
}

#[test]
fn servers_that_do_not_exist_are_named() {
    let Some(bed) = Star::new(2, None) else { return };
    let error =
        run_quietly(&bed, &trial(Workload::OneToOne { from: 0, to: 7, flows: 1, duration: Nanos(1) })).unwrap_err();
    assert!(error.to_string().contains('7'), "{error}");
    let mut setup = bed.setup();
    setup.hosts[1].namespace = "/run/netns/weft-no-such".into();
    let error = run(&setup, &shuffle(1000), &mut &bed, &Recorder::default()).unwrap_err();
    assert!(error.to_string().contains("weft-no-such"), "{error}");
}

#[test]
fn a_pinned_run_costs_at_most_its_core() {
    let Some(bed) = Star::new(2, None) else { return };
    let mut trial = one_to_one(2, 2 * SECOND_NS);
    trial.pin_and_measure_cost = true;
    let cost = run_quietly(&bed, &trial).unwrap().cost.pop().expect("the window opened");
    assert!(cost.wall_ns > SECOND_NS && cost.wall_ns < 3 * SECOND_NS, "{cost:?}");
    // One core cannot work more than the wall's time; less only as far as others use it too.
    let busy = cost.cpu_ns as f64 / cost.wall_ns as f64;
    assert!(busy > 0.05 && busy < 1.02, "{cost:?}");
    let ns_per_byte = cost.cpu_ns as f64 / cost.payload_bytes as f64;
    assert!(ns_per_byte > 0.02 && ns_per_byte < 50.0, "{cost:?}");
}

#[test]
fn services_are_counted_apart_and_keep_their_times() {
    let Some(bed) = Star::new(5, Some(SHAPED)) else { return };
    let half_s = Nanos(SECOND_NS / 2);
    let ramp = RampSpec { begin: half_s, every: half_s, bytes_per_flow: Bytes(500_000) };
    let service = |servers: &[u32], role| ServiceSpec { servers: servers.to_vec(), role, datagram_limit: None };
    let one = service(&[0, 1], ServiceRole::LongFlows);
    let two = service(&[2, 3, 4], ServiceRole::Ramp(ramp));
    let services = [("one".to_owned(), one), ("two".to_owned(), two)].into();
    let spec = ServicesSpec { duration: Nanos(2 * SECOND_NS), service: services };
    let records = run_quietly(&bed, &trial(Workload::Services(spec))).unwrap();

    let of = |name: &str| records.services.iter().filter(|row| row.service == name).collect::<Vec<_>>();
    let (one, two) = (of("one"), of("two"));
    // 50 Mb/s each way for two seconds are 24.2 MB of payload; slow start is the margin.
    assert!((21_600_000..24_600_000).contains(&one.last().unwrap().received_bytes), "{:?}", one.last());
    assert_eq!(two.last().unwrap().received_bytes, 1_500_000);
    assert!(two.iter().filter(|row| row.time_ns < half_s.0).all(|row| row.received_bytes == 0));
    let starts: Vec<u64> = records.flows[2..].iter().map(|flow| flow.start_ns / half_s.0).collect();
    assert_eq!(starts, [1, 2, 3]);
    let last = records.progress.last().unwrap();
    assert_eq!(last.received_bytes, one.last().unwrap().received_bytes + two.last().unwrap().received_bytes);
}

#[test]
fn a_flood_sends_on_whatever_its_link_carries() {
    let Some(bed) = Star::new(3, Some(SHAPED)) else { return };
    let (begin, end) = (Nanos(SECOND_NS / 2), Nanos(3 * SECOND_NS / 2));
    let flood = FloodSpec { begin, end, rate_per_server: BitsPerSec(40_000_000), to: 2 };
    let two = ServiceSpec { servers: vec![0, 1, 2], role: ServiceRole::Flood(flood), datagram_limit: None };
    let spec = ServicesSpec { duration: Nanos(2 * SECOND_NS), service: [("two".to_owned(), two)].into() };
    let records = run_quietly(&bed, &trial(Workload::Services(spec))).unwrap();

    // Two servers offer 80 Mb/s for a second; the receiver's link of 50 Mb/s carries 6.1 MB of it, and a queue of 1 MB.
    let bytes = records.services.last().unwrap().received_bytes;
    assert!((5_500_000..7_400_000).contains(&bytes), "{bytes}");
    assert!(fact(&records, "drops.router-server") > 0.0);
    assert!(records.flows.is_empty());
}

/// The router carries no broadcast, so the test says to every server what a storm of server 0 or 1 would.
#[test]
fn every_server_hears_broadcast_and_knows_whose_it_is() {
    let Some(bed) = Star::new(4, None) else { return };
    let storm =
        StormSpec { begin: Nanos(SECOND_NS / 2), end: Nanos(3 * SECOND_NS / 2), rate: BitsPerSec(1_161_600), from: 0 };
    let service = |servers: &[u32], role| ServiceSpec { servers: servers.to_vec(), role, datagram_limit: None };
    let (loud, calm) = (service(&[0, 2], ServiceRole::Storm(storm)), service(&[1, 3], ServiceRole::LongFlows));
    let services = [("loud".to_owned(), loud), ("calm".to_owned(), calm)].into();
    let trial = trial(Workload::Services(ServicesSpec { duration: Nanos(2 * SECOND_NS), service: services }));
    let records = std::thread::scope(|scope| {
        let say = scope.spawn(|| say_to_servers(&bed));
        let records = run_quietly(&bed, &trial).unwrap();
        say.join().unwrap();
        records
    });
    // 1,161.6 kbit/s are 100 datagrams of 1452 bytes.
    assert_eq!(fact(&records, STORM_OFFERED), 100.0);
    // To servers 1, 2 and 3 three from server 0, and one from server 1 and one from nobody: of those, 2's from 0 are its own.
    assert_eq!((fact(&records, STORM_OWN), fact(&records, STORM_FOREIGN)), (3.0, 2.0 * 5.0 + 2.0));
    let bytes = records.services.iter().rfind(|row| row.service == "loud").unwrap().received_bytes;
    assert_eq!(bytes, 4 * 4 + 2);
}

/// Once the servers listen: datagrams that begin with the number of server 0 or 1, or are too short for one.
fn say_to_servers(bed: &Star) {
    let enter = |name: String| super::namespace::enter(&PathBuf::from("/run/netns").join(name)).unwrap();
    let local = format!("00000000:{STORM_PORT:04X} ");
    for server in 1..4 {
        enter(bed.host(server));
        eventually("it listens", || {
            std::fs::read_to_string("/proc/thread-self/net/udp").is_ok_and(|sockets| sockets.contains(&local))
        });
    }
    enter(bed.router());
    let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
    for server in 1..4 {
        for text in [&[0u8; 4][..], &[0; 4], &[0; 4], &[0, 0, 0, 1], &[0, 0]] {
            socket.send_to(text, (Ipv4Addr::new(10, 77, server, 2), STORM_PORT)).unwrap();
        }
    }
}
