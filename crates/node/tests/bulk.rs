//! Many updates: files in and out, loads of updates, and a server that restarts in the middle of one.

mod common;

use std::net::Ipv4Addr;
use std::time::Duration;

use common::*;
use weft_node::client::{Target, bulk};
use weft_node::stop::Stop;
use weft_testbed::load::{Arrivals, Pace, UpdateLoad};

const FIRST: Ipv4Addr = Ipv4Addr::new(20, 0, 0, 1);

fn csv(count: u32) -> String {
    let row = |k: u32| format!("{},10.1.0.{},{ANYCAST},{}\n", Ipv4Addr::from(u32::from(FIRST) + k), k % 200 + 1, k % 3);
    "aa,tor_la,anycast_la,service\n".to_owned() + &(0..count).map(row).collect::<String>()
}

#[test]
fn a_file_is_imported_as_a_whole_or_as_far_as_it_says_and_exported_as_it_was() {
    let dir = tempfile::tempdir().unwrap();
    let (_daemon, mut admin) = start(&loopback_config(dir.path()));
    let rules = admin.rules().unwrap();
    let text = csv(50_000);
    let bad = bulk::read(&format!("{text}21.0.0.1,10.1.0.1,{ANYCAST},0\n"), &rules).unwrap_err();
    assert!(bad.line == 50_002 && bad.to_string().contains("outside the AA block"), "{bad}");
    let mappings = bulk::read(&text, &rules).unwrap();
    assert_eq!(admin.status().unwrap().mappings, 0);

    let stopped = bulk::import(&mut admin, &mappings, &mut |done| done < 5000).unwrap();
    assert!(stopped.interrupted && stopped.mappings >= 5000 && stopped.mappings < mappings.len(), "{stopped:?}");
    assert_eq!(admin.status().unwrap().mappings, stopped.mappings, "as many as it says");
    let mut told = Vec::new();
    let done = bulk::import(&mut admin, &mappings, &mut |done| {
        told.push(done);
        true
    });
    let done = done.unwrap();
    assert_eq!((done.mappings, done.interrupted), (mappings.len(), false));
    assert!(told.is_sorted() && told.last() == Some(&mappings.len()));

    for format in [bulk::Format::Csv, bulk::Format::JsonLines] {
        let mut out = Vec::new();
        bulk::write_header(format, &mut out).unwrap();
        let revision = admin.list_each(|rows| {
            bulk::write_rows(format, &rows, &mut out).unwrap();
            Ok(())
        });
        assert_eq!(revision.unwrap(), done.revision);
        assert_eq!(bulk::read(std::str::from_utf8(&out).unwrap(), &rules).unwrap(), mappings);
    }
}

fn update_load(target: Target) -> UpdateLoad {
    UpdateLoad {
        servers: vec![target],
        sessions: 4,
        open: 16,
        mappings: 1,
        first_aa: FIRST,
        aas: 640,
        tor_las: (1..=3).map(|k| Ipv4Addr::new(10, 1, 0, k)).collect(),
        anycast_la: ANYCAST,
        service: 0,
        pace: Pace::Window(1),
        burst: 1,
        arrivals: Arrivals::Even,
        warm_up: Duration::ZERO,
        duration: Duration::from_millis(300),
        timeout: PATIENCE,
        cpu: None,
        seed: 1,
    }
}

#[test]
fn a_load_counts_what_the_server_counts() {
    let dir = tempfile::tempdir().unwrap();
    let config = loopback_config(dir.path());
    let (_daemon, mut admin) = start(&config);
    let one = update_load(Target::Socket(config.admin_socket.clone()));
    let loads = [
        one.clone(),
        UpdateLoad { mappings: 10, seed: 2, ..one.clone() },
        UpdateLoad { pace: Pace::Rate(2000.0), seed: 3, ..one.clone() },
        UpdateLoad { pace: Pace::Rate(2000.0), burst: 8, arrivals: Arrivals::Random, seed: 4, ..one.clone() },
    ];
    let mut committed = 0;
    for load in &loads {
        let report = load.run(&Stop::manual().unwrap()).unwrap();
        assert!(report.committed > 0, "{report:?}");
        assert_eq!((report.refused, report.failed, report.unanswered, report.reconnects), (0, 0, 0, 0), "{report:?}");
        assert_eq!(report.latency_ns.len(), report.committed);
        assert!(report.longest_gap_ns > 0);
        committed += report.committed;
        assert_eq!(admin.status().unwrap().updates["committed"], committed);
        let mut rows = admin.list().unwrap();
        assert_eq!(report.lost(&rows), 0);
        rows.iter_mut().for_each(|row| row.version -= 1_000_000);
        assert!(report.lost(&rows) >= 1, "a loss is seen: older than what was acknowledged");
        assert!(report.lost(&[]) >= 1, "a loss is seen: not there");
    }
    let rate = loads[2].run(&Stop::manual().unwrap()).unwrap();
    assert!((1..=620).contains(&rate.committed), "not faster than it was told: {}", rate.committed);
    for (load, says) in [
        (UpdateLoad { aas: 63, ..one.clone() }, "63 AAs are too few"),
        (UpdateLoad { sessions: 0, ..one.clone() }, "sessions: 0"),
        (UpdateLoad { burst: 17, ..one.clone() }, "burst: 17"),
        (UpdateLoad { servers: vec![Target::from("/nonexistent")], ..one.clone() }, "is the directory server running"),
    ] {
        let error = load.run(&Stop::manual().unwrap()).unwrap_err().to_string();
        assert!(error.contains(says), "{error}");
    }
}

#[test]
fn nothing_acknowledged_is_lost_when_the_server_restarts_in_the_middle() {
    let dir = tempfile::tempdir().unwrap();
    let config = loopback_config(dir.path());
    let (daemon, mut admin) = start(&config);
    let load = UpdateLoad {
        duration: Duration::from_millis(2000),
        ..update_load(Target::Socket(config.admin_socket.clone()))
    };
    let running = std::thread::spawn(move || load.run(&Stop::manual().unwrap()));
    // All sessions of the load and this one.
    wait_until("updates come", || {
        let status = admin.status().unwrap();
        status.sessions["open"] == 5 && status.updates["committed"] > 0
    });
    drop(admin);
    daemon.finish().unwrap();
    let (_daemon, mut admin) = start(&config);
    let report = running.join().unwrap().unwrap();
    assert!(report.reconnects >= 4, "{report:?}");
    assert_eq!((report.refused, report.failed, report.unanswered), (0, 0, 0), "{report:?}");
    assert_eq!(report.lost(&admin.list().unwrap()), 0);
}
