//! Encapsulations between virtual switches: every frame of every one arrives as it was sent, the user's ports come back as
//! they were, and a small benchmark has its rows.

mod common;

use std::process::Command;
use std::time::Duration;

use weft_lab::tester::bed::{Bed, Between};
use weft_lab::tester::overlays::{self, Encapsulation, OverlayBed, OverlayOptions, Wire};
use weft_lab::tester::path::{Means, TrialOrder};
use weft_lab::tester::stream::StreamPlan;

use common::Quiet;
use common::beds::turn;

fn plan() -> StreamPlan {
    StreamPlan { unicast: 64, ..StreamPlan::default() }
}

#[test]
fn every_frame_of_every_encapsulation_arrives_as_it_was_sent() {
    let Some(_turn) = turn() else { return };
    for one in Encapsulation::ALL {
        let bed = OverlayBed::new(one, &Wire::Veth, &plan()).unwrap();
        let mut path = bed.path(&plan(), 64).unwrap();
        assert_eq!(path.means(), Means::XdpLiveFrames, "{one:?}");
        for size in [64, 1518] {
            path.set_size(size).unwrap();
            let order = TrialOrder::paced(20_000.0, Duration::from_secs(5)).checking_payloads();
            let order = TrialOrder { frames: Some(1280), ..order };
            // A busy machine may lose frames, never all the time.
            let trials = (0..3).map(|_| path.trial(&order, &|| false).unwrap());
            let account = trials.map(|trial| trial.account).find(|account| account.is_clean());
            assert_eq!(account.map(|account| account.counts.received), Some(1280), "{one:?} at {size} bytes");
        }
    }
}

/// What `ip` says of an interface of a namespace, without what changes by itself.
fn link(namespace: &str, interface: &str) -> serde_json::Value {
    let output =
        Command::new("ip").args(["-n", namespace, "-json", "-details", "link", "show", "dev", interface]).output();
    // Nothing is printed of an interface that is not there.
    let found: serde_json::Value = serde_json::from_slice(&output.unwrap().stdout).unwrap_or_default();
    let kept = ["ifname", "mtu", "flags", "promiscuity", "address"];
    kept.iter().map(|key| found[0][key].clone()).collect()
}

#[test]
fn the_users_ports_carry_it_and_come_back_as_they_were() {
    let Some(_turn) = turn() else { return };
    // Two ports of somebody's: the ends of a veth pair in two namespaces.
    let theirs = Bed::new(Between::Direct).unwrap();
    let [left, right] = theirs.ports().each_ref().map(|port| port.name().to_owned());
    let [left_home, right_home] = [&left, &right].map(|name| name.split_once(':').unwrap().0.to_owned());
    let before = [link(&left_home, "g0"), link(&right_home, "k0")];
    for one in [Encapsulation::KernelVxlan, Encapsulation::L2Xdp] {
        let wire = Wire::between(&left, &right).unwrap();
        assert!(wire.is_on_one_core());
        let bed = OverlayBed::new(one, &wire, &plan()).unwrap();
        assert_eq!(link(&left_home, "g0")[0], serde_json::Value::Null, "it is in the bed");
        let mut path = bed.path(&plan(), 512).unwrap();
        let order = TrialOrder { frames: Some(640), ..TrialOrder::paced(20_000.0, Duration::from_secs(5)) };
        let received = (0..3).map(|_| path.trial(&order, &|| false).unwrap().account.counts.received).max();
        assert_eq!(received, Some(640), "{one:?}");
        drop(path);
        drop(bed);
        assert_eq!([link(&left_home, "g0"), link(&right_home, "k0")], before, "{one:?}");
    }
    // Ports that somebody uses, and a port twice.
    let added = Command::new("ip").args(["-n", &left_home, "address", "add", "10.9.9.1/24", "dev", "g0"]).status();
    assert!(added.unwrap().success());
    let why = Wire::between(&left, &right).unwrap_err().to_string();
    assert!(why.contains("has the address 10.9.9.1") && why.contains(&left), "{why}");
    let why = Wire::between(&right, &right).unwrap_err().to_string();
    assert!(why.contains("send to itself"), "{why}");
}

#[test]
fn a_small_benchmark_has_rows_checks_and_its_sentence() {
    let Some(_turn) = turn() else { return };
    let options = OverlayOptions {
        encapsulations: vec![Encapsulation::KernelVxlan],
        frame_bytes: vec![512],
        rounds: 3,
        runs: 1,
        budget: Duration::from_secs(3),
        ..OverlayOptions::new(true)
    };
    let report = overlays::run(&options, &Quiet).unwrap();
    let names: Vec<&str> = report.rows.iter().map(|row| row.encapsulation.name()).collect();
    assert_eq!(names, ["bridge", "kernel-vxlan"], "its baseline is measured, too");
    let [plain, vxlan] = &report.rows[..] else { panic!("two rows") };
    assert!(plain.extra_ns.is_none() && vxlan.extra_ns.is_some() && vxlan.cpu_ns.n == 3, "{vxlan:?}");
    assert!(plain.cpu_ns.mean > 0.0 && plain.received_pps > 0.0 && plain.p50_ns > 0, "{plain:?}");
    assert!(
        report.sentence.starts_with("VXLAN costs ") && report.sentence.contains(" CPU at 512 B"),
        "{}",
        report.sentence
    );
    assert!(report.whole_path && report.checks.len() >= 6, "{:?}", report.checks);
    let json = serde_json::to_value(&report).unwrap();
    assert_eq!((&json["schema_version"], &json["rows"][1]["baseline"]), (&2.into(), &"bridge".into()));

    let refused = |frame_bytes: Vec<u32>| {
        let options = OverlayOptions { frame_bytes, ..options.clone() };
        overlays::run(&options, &Quiet).unwrap_err().to_string()
    };
    assert!(refused(vec![63]).contains("below 64"));
    assert!(refused(vec![]).contains("no frame size"));
}
