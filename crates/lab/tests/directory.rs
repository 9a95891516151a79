//! Loads on real directory servers, over a shared store and without; and what a shuffle notices when some of them die.

mod common;

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::time::{Duration, Instant};

use common::{Gone, Quiet, can_run, daemon_program, lab_name, options, scenario, testbed, traces};
use rustix::process::{Pid, Signal, kill_process};
use weft_lab::directory::bed::{Bed, BedOptions};
use weft_lab::directory::tier::Tier;
use weft_lab::{LabEngine, LabState, directory, status_socket};
use weft_scenario::addressing::{AddressPlan, AddressingOptions};
use weft_scenario::engine::{DirectoryStore, Engine, Overlay, Scenario, Session, Trial};
use weft_scenario::record::{DirectoryRow, Records};
use weft_scenario::topology::from_yaml;
use weft_scenario::units::{Bytes, Nanos};
use weft_scenario::workload::{
    Arrivals, DirectoryKill, DirectorySpec, DirectoryVictim, LookupLoad, UpdateLoad, Workload,
};

const MS: u64 = 1_000_000;
/// For answers that must come. A load ends as soon as it has them all.
const PATIENCE: Nanos = Nanos(60_000 * MS);

fn load(servers: u32, lookups_per_s: u32, updates_per_s: u32) -> DirectorySpec {
    DirectorySpec {
        mappings: 2000,
        servers,
        duration: Nanos(400 * MS),
        timeout: PATIENCE,
        lookups: Some(LookupLoad {
            per_s: vec![lookups_per_s],
            ask: 2,
            questions_per_datagram: 1,
            burst: 1,
            arrivals: Arrivals::Even,
            retry_after: Some(Nanos(50 * MS)),
            echo: None,
        }),
        updates: Some(updates(updates_per_s, 4, true)),
        loss_percent: 0,
        kill: None,
    }
}

fn updates(per_s: u32, clients: u32, until_visible: bool) -> UpdateLoad {
    UpdateLoad { per_s: vec![per_s], clients, burst: 1, arrivals: Arrivals::Even, until_visible }
}

fn killed(what: DirectoryVictim, at_ms: u64, back_at_ms: Option<u64>) -> Option<DirectoryKill> {
    Some(DirectoryKill { what, at: Nanos(at_ms * MS), back_at: back_at_ms.map(|ms| Nanos(ms * MS)) })
}

fn row<'a>(records: &'a Records, kind: &str) -> &'a DirectoryRow {
    records.directory.iter().find(|row| row.kind == kind).expect("the load has such requests")
}

fn timed(records: &Records, kind: &str) -> u64 {
    let rows = records.latencies.iter().filter(|row| row.kind == kind && row.server.is_none());
    rows.map(|row| row.requests).sum()
}

/// Every request was answered and timed, every update seen everywhere, and none is lost.
fn check_whole(records: &Records) {
    let (lookups, updates) = (row(records, "lookup"), row(records, "update"));
    assert!(lookups.sent > 0 && updates.sent > 0, "{records:?}");
    assert_eq!((lookups.answered, lookups.wrong, lookups.unanswered), (lookups.sent, 0, 0));
    assert_eq!((updates.answered, updates.wrong, updates.unanswered, updates.lost), (updates.sent, 0, 0, 0));
    assert_eq!(timed(records, "lookup"), lookups.sent);
    assert_eq!(timed(records, "update"), updates.sent);
    assert_eq!(timed(records, "visible"), updates.sent);
    assert!(lookups.server_cpu_ns > 0 && updates.longest_gap_ns > 0);
}

#[test]
fn a_load_on_loopback_is_counted_to_the_last_request() {
    if !can_run() {
        return;
    }
    let options = BedOptions {
        weft_binary: daemon_program(),
        servers: 1,
        store: DirectoryStore::Embedded,
        lookup_threads: Some(1),
        cpu: None,
    };
    let mut bed = Bed::start(&options, &Quiet).unwrap();
    let admin = bed.servers()[0].admin.clone();
    let name = admin.ancestors().nth(2).and_then(|path| path.file_name()).unwrap().to_string_lossy().into_owned();
    assert!(LabState::load(&name).unwrap().owner.is_some(), "a killed run's bed is an orphan");
    // Without a second question, which a busy machine would ask for what comes late.
    let mut once = load(1, 4000, 100);
    once.lookups.as_mut().unwrap().retry_after = None;
    let records = directory::run(&mut bed, &once, 1, &Quiet).unwrap();
    check_whole(&records);
    assert_eq!(row(&records, "lookup").messages, row(&records, "lookup").sent, "one server is asked once");
    let error = directory::run(&mut bed, &load(2, 4000, 100), 1, &Quiet).unwrap_err().to_string();
    assert!(error.contains("asks 2 directory servers, but there are 1"), "{error}");
    let before = bed.servers()[0].pid;
    let kill = killed(DirectoryVictim::Server, 100, None);
    let lone = DirectorySpec { updates: None, kill, timeout: Nanos(300 * MS), ..load(1, 2000, 100) };
    let records = directory::run(&mut bed, &lone, 1, &Quiet).unwrap();
    let lookups = row(&records, "lookup");
    assert!(lookups.unanswered > 0 && lookups.answered > 0, "{lookups:?}");
    assert_eq!(lookups.answered + lookups.unanswered, lookups.sent);
    let kinds: Vec<&str> = records.events.iter().map(|event| event.kind.as_str()).collect();
    assert_eq!(kinds, ["fault", "repair", "ready"]);
    assert_ne!(bed.servers()[0].pid, before, "it was started again");
    check_whole(&directory::run(&mut bed, &load(1, 4000, 100), 1, &Quiet).unwrap());
    drop(bed);
    assert_eq!(traces(&name), BTreeSet::new());
}

#[test]
fn three_servers_on_three_etcd_nodes_lose_nothing_when_the_leader_dies() {
    if !can_run() {
        return;
    }
    let options = BedOptions {
        weft_binary: daemon_program(),
        servers: 3,
        store: DirectoryStore::Etcd3,
        lookup_threads: Some(1),
        cpu: None,
    };
    let mut bed = Bed::start(&options, &Quiet).unwrap();
    check_whole(&directory::run(&mut bed, &load(3, 2000, 200), 1, &Quiet).unwrap());
    for (what, back_at_ms) in [
        (DirectoryVictim::StoreLeader, None),
        (DirectoryVictim::Server, None),
        (DirectoryVictim::StoreFollower, Some(600)),
        (DirectoryVictim::Server, Some(600)),
    ] {
        let (kill, updates) = (killed(what, 200, back_at_ms), Some(updates(200, 16, false)));
        let spec = DirectorySpec { kill, updates, duration: Nanos(1500 * MS), ..load(3, 500, 200) };
        let records = directory::run(&mut bed, &spec, 1, &Quiet).unwrap();
        let updates = row(&records, "update");
        assert_eq!((updates.wrong, updates.unanswered, updates.lost), (0, 0, 0), "{what:?}: {updates:?}");
        assert_eq!(row(&records, "lookup").unanswered, 0, "{what:?}");
        assert!(updates.store_cpu_ns > 0 && updates.busiest_server_cpu_ns < updates.server_cpu_ns, "{updates:?}");
        let kinds: Vec<&str> = records.events.iter().map(|event| event.kind.as_str()).collect();
        assert_eq!(kinds, ["fault", "repair", "ready"], "{what:?}");
        let ticks = records.directory_ticks.iter().filter(|tick| tick.kind == "update");
        assert_eq!(ticks.map(|tick| tick.answered).sum::<u64>(), updates.answered, "{what:?}");
        // It comes back while there is load, or after it.
        let begin_ns = records.directory_ticks.iter().map(|tick| tick.time_ns).min().unwrap();
        let repair_ns = records.events[1].time_ns - begin_ns;
        assert!(repair_ns >= back_at_ms.unwrap_or(1500) * MS, "{what:?}: {repair_ns} {:?}", records.events);
        let last_ns = records.directory_ticks.iter().map(|tick| tick.time_ns).max().unwrap();
        assert_eq!(last_ns - begin_ns > repair_ns, back_at_ms.is_some(), "{what:?}: {repair_ns} {last_ns}");
    }
}

/// A store that dies and stays dead: updates fail, and the outage that nothing ends is as long as what is left of the step.
#[test]
fn an_outage_that_does_not_end_is_no_short_one() {
    if !can_run() {
        return;
    }
    let options = BedOptions {
        weft_binary: daemon_program(),
        servers: 3,
        store: DirectoryStore::Etcd3,
        lookup_threads: Some(1),
        cpu: None,
    };
    let mut bed = Bed::start(&options, &Quiet).unwrap();
    let spec = DirectorySpec {
        kill: killed(DirectoryVictim::Store, 300, None),
        updates: Some(updates(200, 16, false)),
        duration: Nanos(1300 * MS),
        timeout: Nanos(400 * MS),
        ..load(3, 500, 200)
    };
    let records = directory::run(&mut bed, &spec, 1, &Quiet).unwrap();
    let updates = row(&records, "update");
    assert!(updates.answered > 0 && updates.unanswered > 0 && updates.lost == 0, "{updates:?}");
    assert!(updates.longest_gap_ns >= 900 * MS, "{updates:?}");
    assert_eq!(records.events.iter().filter(|event| event.kind == "ready").count(), 3, "{:?}", records.events);
    check_whole(&directory::run(&mut bed, &load(3, 500, 200), 1, &Quiet).unwrap());
}

fn bed_scenario(store: DirectoryStore) -> Scenario {
    let text = include_str!("../../../fabrics/directory-bed.yaml");
    let fabric = from_yaml(text, "directory-bed").unwrap();
    Scenario { directory: store, ..scenario(fabric, Overlay::Vl2) }
}

fn session_of<'a>(engine: &'a LabEngine, scenario: &Scenario) -> Box<dyn Session + 'a> {
    engine.prepare(scenario, &Quiet).unwrap()
}

fn trial(workload: Workload) -> Trial {
    Trial {
        workload,
        faults: Vec::new(),
        seed: 1,
        sample_interval: Nanos(200 * MS),
        tcp_interval: None,
        time_limit: Nanos(600_000 * MS),
        pin_and_measure_cost: false,
        replay: false,
        probes: None,
    }
}

fn engine(name: &str) -> LabEngine {
    let program = daemon_program();
    let worker = [program.as_os_str().to_owned(), OsString::from("internal"), OsString::from("traffic-worker")];
    LabEngine::new(options(name), worker.to_vec())
}

#[test]
fn a_lossy_lab_still_answers_and_says_what_it_cost() {
    if !can_run() {
        return;
    }
    let name = lab_name("da");
    let _gone = Gone(name.clone());
    let engine = engine(&name);
    let mut session = session_of(&engine, &bed_scenario(DirectoryStore::Embedded));
    // Waits double, and are so long that only what was lost is asked again, not what a busy machine answers late: thirteen
    // questions begin within the timeout, all in vain for 2 of a million look-ups; there are 200.
    let mut lossy =
        DirectorySpec { loss_percent: 20, updates: None, timeout: Nanos(410_000 * MS), ..load(1, 500, 100) };
    lossy.lookups.as_mut().unwrap().retry_after = Some(Nanos(100 * MS));
    let records = session.run(&trial(Workload::Directory(lossy))).unwrap();
    let lookups = row(&records, "lookup");
    assert_eq!((lookups.answered, lookups.unanswered), (lookups.sent, 0), "those that ask again get an answer");
    let again = lookups.messages as f64 / lookups.sent as f64;
    assert!((1.3..2.2).contains(&again), "0.8 x 0.8 of the questions have an answer: {again}");
    let error = session.run(&trial(Workload::Directory(load(3, 2000, 100)))).unwrap_err().to_string();
    assert!(error.contains("need a store that they share"), "{error}");
    session.close().unwrap();
}

/// Kills one process of a lab.
fn kill(lab: &str, daemon: &str, number: usize) -> u32 {
    let state = LabState::load(lab).unwrap();
    let process = state.processes.iter().filter(|process| process.daemon == daemon).nth(number);
    let pid = process.expect("the lab has so many").id.pid;
    kill_process(Pid::from_raw(pid as i32).unwrap(), Signal::KILL).unwrap();
    pid
}

/// What the agents' data paths could not carry at once, by name, summed over all of them.
fn missed(state: &LabState) -> BTreeMap<String, u64> {
    let mut sums = BTreeMap::new();
    for agent in state.processes.iter().filter(|process| process.daemon == "agent") {
        let status = weft_node::agent::status::read(status_socket(&state.lab, &agent.node)).unwrap();
        assert!(status.datapath["encapsulated"] > 100, "it carries the shuffle: {status:?}");
        let carried = ["encapsulated", "passed", "arp_answered", "arp_probe_passed"];
        for (name, count) in status.datapath.into_iter().filter(|(name, _)| !carried.contains(&name.as_str())) {
            *sums.entry(name).or_default() += count;
        }
    }
    sums
}

/// Frames whose mapping was not there and was asked for, of all agents.
fn asked(state: &LabState) -> u64 {
    let agents = state.processes.iter().filter(|process| process.daemon == "agent");
    let datapath = |node: &str| weft_node::agent::status::read(status_socket(&state.lab, node)).unwrap().datapath;
    agents.map(|agent| datapath(&agent.node)).map(|count| count["arp_miss"] + count["packet_miss"]).sum()
}

/// VL2 with three directory servers on three etcd nodes. A server and a store node are dead when the first shuffle asks for nearly
/// all of its mappings; it gets them. Another server and store node die in the middle of a shuffle that has its mappings, and every
/// flow goes on as if nothing had been.
#[test]
fn a_shuffle_does_not_notice_that_a_directory_server_and_a_store_node_die() {
    if !can_run() {
        return;
    }
    let name = lab_name("db");
    let _gone = Gone(name.clone());
    let engine = engine(&name);
    let bed = testbed([1, 1, 1, 1], Overlay::Vl2);
    let fabric = bed.fabric.with_directory_servers(3).unwrap();
    let addresses = AddressPlan::new(&fabric, AddressingOptions::default()).unwrap();
    let scenario = Scenario { fabric, addresses, directory: DirectoryStore::Etcd3, shaped: true, ..bed };
    let mut session = session_of(&engine, &scenario);
    let state = LabState::load(&name).unwrap();
    let count = |daemon: &str| state.processes.iter().filter(|process| process.daemon == daemon).count();
    assert_eq!((count("directory"), count("etcd"), count("agent")), (3, 3, 4));

    let shuffle = || trial(Workload::Shuffle { bytes_per_flow: Bytes(1_500_000) });
    kill(&name, "directory", 0);
    kill(&name, "etcd", 1);
    let before = asked(&state);
    let asking = session.run(&shuffle()).unwrap();
    // The first ping has told one of six pairs.
    assert!(asked(&state) - before >= 10, "{} of 12 directions had to ask", asked(&state) - before);
    let undisturbed = session.run(&shuffle()).unwrap();
    let before = missed(&state);
    let start = Instant::now();
    let disturbed = std::thread::scope(|scope| {
        let killer = scope.spawn(|| {
            // In the middle: the shuffle takes about two seconds.
            std::thread::sleep(Duration::from_millis(700));
            (kill(&name, "directory", 1), kill(&name, "etcd", 2), start.elapsed())
        });
        let records = session.run(&shuffle()).unwrap();
        let (_, _, at) = killer.join().unwrap();
        assert!(at < start.elapsed(), "the shuffle went on after the kills");
        records
    });
    for records in [&asking, &undisturbed, &disturbed] {
        assert_eq!(records.flows.len(), 12);
        assert!(records.flows.iter().all(|flow| flow.end_ns.is_some() && flow.bytes_received == 1_500_000));
    }
    let resent = |records: &Records| records.flows.iter().map(|flow| flow.retransmits).sum::<u64>();
    let last = |records: &Records| records.flows.iter().filter_map(|flow| flow.end_ns).max().unwrap() as f64;
    assert_eq!(missed(&state), before, "no frame asked for a mapping, and none was dropped for want of one");
    // A full queue of a busy machine is not the directory's doing, and is counted.
    let full = |records: &Records| {
        let mut queues = BTreeMap::new();
        let rows = records.links.iter().map(|row| ((&row.node, &row.interface), row.dropped_frames));
        rows.for_each(|(queue, dropped)| _ = queues.insert(queue, dropped));
        queues.values().sum::<u64>()
    };
    let unexplained = |records: &Records| resent(records).saturating_sub(full(records));
    let said = disturbed.flows.iter().filter(|flow| flow.retransmits > 0).collect::<Vec<_>>();
    let (calm, after) = (unexplained(&undisturbed), unexplained(&disturbed));
    assert!(after <= calm + 50, "{after} {calm}; queues dropped {}: {said:?} {:?}", full(&disturbed), disturbed.facts);
    for records in [&asking, &disturbed] {
        assert!(last(records) < 1.5 * last(&undisturbed), "{} {}", last(records), last(&undisturbed));
    }
    session.close().unwrap();
}
