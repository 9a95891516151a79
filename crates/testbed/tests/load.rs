//! The load generator against the real server: what it counts is what the server counts. Rates are for
//! `weft bench directory`.

#[path = "../../node/tests/common/mod.rs"]
mod common;

use std::net::{Ipv4Addr, UdpSocket};
use std::time::Duration;

use common::*;
use weft_node::client::AdminClient;
use weft_node::directory::DirectoryConfig;
use weft_node::stop::Stop;
use weft_testbed::load::{Access, Arrivals, LookupLoad, LookupReport, Pace};

const FIRST: Ipv4Addr = Ipv4Addr::new(20, 0, 0, 1);

fn fill(admin: &mut AdminClient, count: u32) {
    let all: Vec<_> = (0..count).map(|k| mapping(Ipv4Addr::from(u32::from(FIRST) + k), (k % 200) as u8 + 1)).collect();
    for part in all.chunks(16_384) {
        admin.set_many(part.to_vec()).unwrap();
    }
}

fn load(dir: &std::path::Path, admin: &mut AdminClient) -> LookupLoad {
    let access = Access::from_file(Some(&client_key(dir)), 0, 0).unwrap();
    let duration = Duration::from_millis(150);
    // It ends as soon as everything is answered.
    LookupLoad { duration, timeout: PATIENCE, ..LookupLoad::of(admin.status().unwrap().listen, access, FIRST, 1000) }
}

fn run(load: &LookupLoad) -> LookupReport {
    load.run(&Stop::manual().unwrap()).unwrap()
}

#[test]
fn every_question_is_answered_once_whatever_the_burst() {
    let dir = tempfile::tempdir().unwrap();
    let config = DirectoryConfig { lookup_threads: Some(2), ..loopback_config(dir.path()) };
    let (_daemon, mut admin) = start(&config);
    fill(&mut admin, 500);
    let plain = load(dir.path(), &mut admin);
    for load in [
        plain.clone(),
        LookupLoad { burst: 16, flows: 4, ..plain.clone() },
        LookupLoad { burst: 64, questions: 40, ..plain.clone() },
        LookupLoad { pace: Pace::Rate(20_000.0), questions: 8, ..plain.clone() },
        LookupLoad { pace: Pace::Rate(20_000.0), burst: 10, ..plain.clone() },
        LookupLoad { pace: Pace::Rate(20_000.0), burst: 10, arrivals: Arrivals::Random, ..plain },
    ] {
        let before = admin.status().unwrap().lookups;
        let report = run(&load);
        assert!(report.answered > 20, "{report:?}");
        assert_eq!((report.answered, report.failed, report.invalid, report.late), (report.sent, 0, 0, 0));
        assert_eq!(report.latency_ns.len(), report.answered);
        assert_eq!(report.ticks.iter().map(|tick| tick.answered).sum::<u64>(), report.answered);
        // Half of the AAs asked for have a mapping.
        let (ok, unknown) = (report.statuses["ok"], report.statuses["unknown"]);
        assert_eq!(ok + unknown, report.answered * load.questions as u64);
        // As if a datagram's questions were all of one kind.
        let five_deviations = 5.0 * (report.answered as f64).sqrt() * load.questions as f64;
        assert!((ok as f64 - unknown as f64).abs() < five_deviations, "{ok} {unknown}");
        let after = admin.status().unwrap();
        let answered = after.lookups["answered"] - before["answered"];
        assert!(answered >= report.answered, "{answered}");
        assert_eq!(after.lookups["questions"] - before["questions"], answered * load.questions as u64);
        assert!(after.ignored.values().all(|count| *count == 0));
    }
}

#[test]
fn a_silent_server_is_no_answer_and_another_one_helps() {
    let dir = tempfile::tempdir().unwrap();
    let config = loopback_config(dir.path());
    let (_daemon, mut admin) = start(&config);
    let silent = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let std::net::SocketAddr::V4(deaf) = silent.local_addr().unwrap() else { panic!("IPv4") };
    let good = load(dir.path(), &mut admin);
    let alone = LookupLoad { servers: vec![deaf], timeout: Duration::from_millis(50), ..good.clone() };
    let report = run(&alone);
    assert_eq!((report.answered, report.failed), (0, report.sent));
    assert!(report.sent >= 64 && report.ticks.iter().map(|tick| tick.failed).sum::<u64>() <= report.failed);
    let both = LookupLoad { servers: vec![deaf, good.servers[0]], fanout: 2, ..good.clone() };
    let report = run(&both);
    assert_eq!((report.answered, report.failed, report.retried), (report.sent, 0, 0));
    let retry = Some(Duration::from_millis(5));
    let pace = Pace::Rate(4000.0);
    let report = run(&LookupLoad { fanout: 1, retry, pace, warm_up: Duration::ZERO, ..both });
    assert_eq!((report.answered, report.failed), (report.sent, 0));
    assert!(report.retried > 10, "{report:?}");
}

/// Asking again at a steady rate would multiply the load on servers that are only late, and they would stay late.
#[test]
fn each_wait_for_an_answer_is_twice_as_long_as_the_one_before() {
    let silent = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let std::net::SocketAddr::V4(deaf) = silent.local_addr().unwrap() else { panic!("IPv4") };
    let load = LookupLoad {
        pace: Pace::Rate(100.0),
        warm_up: Duration::ZERO,
        duration: Duration::from_millis(100),
        timeout: Duration::from_millis(630),
        retry: Some(Duration::from_millis(10)),
        ..LookupLoad::of(deaf, Access::from_file(None, 0, 0).unwrap(), FIRST, 1000)
    };
    let report = run(&load);
    assert_eq!((report.answered, report.failed), (0, report.sent));
    // After 10, 30, 70, 150 and 310 ms; fewer where the machine was late.
    assert!(report.retried > report.sent && report.retried <= 5 * report.sent, "{report:?}");
}

/// A server that is gone or late must not be asked the more for it.
#[test]
fn what_nobody_answers_is_repeated_a_bounded_number_of_times() {
    let silent = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let std::net::SocketAddr::V4(deaf) = silent.local_addr().unwrap() else { panic!("IPv4") };
    let load = LookupLoad {
        pace: Pace::Rate(10_000.0),
        timeout: Duration::from_millis(300),
        retry: Some(Duration::from_millis(5)),
        warm_up: Duration::ZERO,
        duration: Duration::from_millis(200),
        ..LookupLoad::of(deaf, Access::from_file(None, 0, 0).unwrap(), FIRST, 1000)
    };
    let report = run(&load);
    assert_eq!((report.sent + report.skipped, report.answered, report.failed), (2000, 0, report.sent));
    assert_eq!(report.datagrams, report.sent + report.retried);
    // 64, and ten a second.
    assert!(report.retried >= 64 && report.retried < 200, "{report:?}");
}

#[test]
fn what_was_due_is_begun_or_counted_as_not_begun() {
    let dir = tempfile::tempdir().unwrap();
    let (_daemon, mut admin) = start(&loopback_config(dir.path()));
    let good = load(dir.path(), &mut admin);
    let load = LookupLoad {
        pace: Pace::Rate(20e6),
        duration: Duration::from_millis(50),
        timeout: Duration::from_millis(20),
        ..good
    };
    let report = run(&load);
    assert!((999_000..=1_001_000).contains(&(report.sent + report.skipped)), "{report:?}");
    assert!(report.skipped > 0, "{} sent, {} skipped", report.sent, report.skipped);
    assert_eq!(report.answered + report.failed, report.sent);
}

#[test]
fn answers_of_another_key_are_no_answers_and_a_load_that_cannot_be_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let config = loopback_config(dir.path());
    let (_daemon, mut admin) = start(&config);
    let good = load(dir.path(), &mut admin);
    let open = Access::from_file(None, 0, 0).unwrap();
    let report = run(&LookupLoad { access: open, timeout: Duration::from_millis(20), ..good.clone() });
    assert_eq!(report.answered, 0);
    wait_until("all are counted", || admin.status().unwrap().ignored["tag"] >= report.sent);
    for (load, says) in [
        (LookupLoad { questions: 41, ..good.clone() }, "questions: 41"),
        (LookupLoad { burst: 65, ..good.clone() }, "burst: 65"),
        (LookupLoad { burst: 33, arrivals: Arrivals::Random, ..good.clone() }, "burst: 65"),
        (LookupLoad { fanout: 2, ..good.clone() }, "fanout: 2"),
        (LookupLoad { pace: Pace::Rate(f64::NAN), ..good.clone() }, "pace: NaN"),
        (LookupLoad { servers: Vec::new(), ..good.clone() }, "servers: 0"),
        (LookupLoad { cpu: Some(4096), ..good.clone() }, "cpu: 4096"),
    ] {
        let error = std::thread::spawn(move || load.run(&Stop::manual().unwrap())).join().unwrap().unwrap_err();
        assert!(error.to_string().contains(says), "{error}");
    }
}
