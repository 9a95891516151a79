//! The test centre against devices whose numbers are known: its own relay and link, and the kernel's bridge with the same
//! link. Everything runs in namespaces of its own.
//!
//! What is judged are counts, and times on links whose clock is virtual: a busy machine can make a generator send less and a
//! frame arrive later, but it cannot make a line faster or shorter.

mod common;

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::Duration;

use weft_lab::tester::TesterError;
use weft_lab::tester::bed::{Bed, Between};
use weft_lab::tester::find::{self, FindOptions};
use weft_lab::tester::measure::{self, LimitedBy, MeasureOptions, Method};
use weft_lab::tester::own;
use weft_lab::tester::path::{Means, Path, Trial, TrialOrder};
use weft_lab::tester::port::Port;
use weft_lab::tester::reference::{self, Reference};
use weft_lab::tester::replay::{Recorded, ReplayAccount, ReplayPath};
use weft_lab::tester::sizes::Sizes;
use weft_lab::tester::stream::{IpVersion, StreamPlan};
use weft_lab::{ProcessId, home};
use weft_testbed::tester::LinkParams;
use weft_wire::pcapng;

use common::Quiet;
use common::beds::turn;

const NEVER: &(dyn Fn() -> bool + Sync) = &|| false;

/// Streams of many stations.
fn stations(unicast: u16) -> StreamPlan {
    StreamPlan { unicast, ..StreamPlan::default() }
}

fn order(pps: f64, frames: u64) -> TrialOrder {
    let pps = (pps > 0.0).then_some(pps);
    TrialOrder { pps, duration: Duration::from_secs(5), frames: Some(frames), every_payload: true, batch: None }
}

/// 100 Mbit/s with a queue of a millisecond.
fn slow_link() -> LinkParams {
    LinkParams { rate_bps: 100_000_000, queue_ns: 1_000_000, ..LinkParams::default() }
}

fn relay(link: LinkParams) -> Between {
    Between::Relay { burn_ns: 0, link }
}

fn clean(trial: &Trial, frames: u64) {
    assert!(trial.account.is_clean(), "{:?}", trial.account);
    assert_eq!((trial.account.sent, trial.account.counts.received), (frames, frames));
    assert_eq!(trial.latency.summary().count, frames);
}

#[test]
fn a_plain_pair_loses_nothing_at_any_size_and_rate() {
    let Some(_turn) = turn() else { return };
    let bed = Bed::new(Between::Direct).unwrap();
    let mut path = bed.path(&stations(1000), 64).unwrap();
    assert_eq!(path.means(), Means::XdpLiveFrames);
    assert!(path.counts_in_driver());
    for frame_bytes in [64, 128, 256, 512, 1024, 1280, 1450, 1518] {
        path.set_sizes(frame_bytes).unwrap();
        clean(&path.trial(&order(200_000.0, 3000), NEVER).unwrap(), 3000);
        clean(&path.trial(&order(0.0, 50_000), NEVER).unwrap(), 50_000);
    }
    path.set_sizes(Sizes::simple_imix()).unwrap();
    clean(&path.trial(&order(200_000.0, 12_000), NEVER).unwrap(), 12_000);
    clean(&path.trial(&order(0.0, 50_000), NEVER).unwrap(), 50_000);
    // Beyond a page only the packet socket goes.
    path.set_sizes(4000).unwrap();
    assert_eq!(path.sizes().to_string(), "4000");
    assert_eq!(path.means(), Means::PacketSocket);
    clean(&path.trial(&order(5000.0, 300), NEVER).unwrap(), 300);
}

#[test]
fn tagged_group_and_broadcast_frames_arrive_once() {
    let Some(_turn) = turn() else { return };
    let bed = Bed::new(Between::Direct).unwrap();
    let plan = StreamPlan { unicast: 3, group: 2, broadcast: 1, vlans: vec![5, 6], ..StreamPlan::default() };
    let mut path = bed.path(&plan, 68).unwrap();
    let trial = path.trial(&order(100_000.0, 1200), NEVER).unwrap();
    clean(&trial, 1200);
    assert!(trial.streams.iter().all(|stream| stream.counts.received == 200), "{:?}", trial.streams);
    assert!(matches!(path.set_sizes(64), Err(TesterError::Refused(_))), "no room for a tag");
}

#[test]
fn ipv6_frames_arrive_once_with_and_without_a_tag() {
    let Some(_turn) = turn() else { return };
    let bed = Bed::new(Between::Direct).unwrap();
    for (vlans, least) in [(vec![], 84), (vec![5, 6], 88)] {
        let plan = StreamPlan { ip: IpVersion::V6, unicast: 4, group: 2, vlans, ..StreamPlan::default() };
        let mut path = bed.path(&plan, least).unwrap();
        assert_eq!(path.means(), Means::XdpLiveFrames);
        for frame_bytes in [least, 1450] {
            path.set_sizes(frame_bytes).unwrap();
            clean(&path.trial(&order(0.0, 12_000), NEVER).unwrap(), 12_000);
        }
        path.set_sizes(4000).unwrap();
        assert_eq!(path.means(), Means::PacketSocket);
        clean(&path.trial(&order(5000.0, 300), NEVER).unwrap(), 300);
        assert!(matches!(path.set_sizes(least - 1), Err(TesterError::Refused(_))));
    }
}

/// A pcapng file of frames of these lengths, all different; every third has a VLAN tag.
fn recorded(lengths: &[usize]) -> Recorded {
    let mut file = Vec::new();
    let mut writer = pcapng::Writer::new(&mut file, "eth0").unwrap();
    for (number, bytes) in lengths.iter().enumerate() {
        let mut frame: Vec<u8> = (0..*bytes).map(|place| (place * 7 + number * 3 + place / 256) as u8).collect();
        frame[..6].copy_from_slice(&[2, 0, 0, 9, 9, 9]);
        frame[12..14].copy_from_slice(if number % 3 == 2 { &[0x81, 0] } else { &[0x88, 0xb6] });
        writer.write(Duration::ZERO, *bytes as u32, &frame).unwrap();
    }
    drop(writer);
    Recorded::of(&file, 9216).unwrap()
}

fn replay_path(bed: &Bed, frames: Recorded) -> ReplayPath {
    ReplayPath::open(&bed.ports()[0], &bed.ports()[1], frames).unwrap()
}

#[test]
fn frames_of_a_file_arrive_once_of_any_length() {
    let Some(_turn) = turn() else { return };
    let bed = Bed::new(Between::Direct).unwrap();
    let whole = |path: &mut ReplayPath, pps, frames| {
        let account = path.trial(&order(pps, frames), NEVER).unwrap().account;
        assert_eq!(account, ReplayAccount { sent: frames, received: frames, ..ReplayAccount::default() });
    };
    let mut short = replay_path(&bed, recorded(&[60, 64, 1518, 100, 3000, 1514, 61]));
    assert_eq!((short.means(), short.counts_in_driver()), (Means::XdpLiveFrames, true));
    whole(&mut short, 200_000.0, 3000);
    // Pages come back: each frame is whole again, whatever the page held.
    whole(&mut short, 0.0, 50_000);
    drop(short);
    // Beyond a page only the packet socket goes.
    let mut long = replay_path(&bed, recorded(&[60, 9216, 3001]));
    assert_eq!(long.means(), Means::PacketSocket);
    whole(&mut long, 5000.0, 300);
}

#[test]
fn what_a_link_drops_of_a_file_is_lost() {
    let Some(_turn) = turn() else { return };
    let bed = Bed::new(relay(slow_link())).unwrap();
    let mut path = replay_path(&bed, recorded(&[508; 16]));
    let counters = || bed.with_links(|links| links.counters("s1")).unwrap().unwrap();
    let before = counters();
    // Twice what 512 bytes and 20 around them leave of 100 Mbit/s.
    let trial = path.trial(&order(2.0 * 100e6 / (532.0 * 8.0), 20_000), NEVER).unwrap();
    let (passed, dropped) = (counters().passed - before.passed, counters().dropped - before.dropped);
    let expected = ReplayAccount { sent: 20_000, received: passed, lost: dropped, ..ReplayAccount::default() };
    assert_eq!(trial.account, expected);
    assert!(dropped > 0, "{trial:?}");
}

#[test]
fn a_link_takes_its_time_and_no_more_than_its_rate() {
    let Some(_turn) = turn() else { return };
    for between in [relay(slow_link()), Between::Bridge { link: Some(slow_link()) }] {
        let bed = Bed::new(between).unwrap();
        let mut path = bed.path(&stations(16), 512).unwrap();
        let counters = || bed.with_links(|links| links.counters("s1")).unwrap().unwrap();
        // 512 bytes and 20 around them at 100 Mbit/s.
        let (serialised_ns, line_pps) = (42_560, 100e6 / (532.0 * 8.0));
        let calm = path.trial(&order(line_pps * 0.2, 500), NEVER).unwrap();
        clean(&calm, 500);
        let least = calm.latency.percentile_ns(0.0);
        assert!(least * 101 >= serialised_ns * 100, "{between:?}: {least} ns are less than the line takes");
        assert!(calm.latency.percentile_ns(0.1) < 2 * serialised_ns, "{between:?}: {:?}", calm.latency.summary());

        let before = counters();
        let full = path.trial(&order(line_pps * 2.0, 20_000), NEVER).unwrap();
        let (passed, dropped) = (counters().passed - before.passed, counters().dropped - before.dropped);
        // The bridge has a frame of its own to say now and then.
        let lost = full.account.lost;
        assert!((lost..=lost + 3).contains(&dropped), "{between:?}: {dropped} dropped, {lost} lost");
        assert!((20_000..=20_003).contains(&(passed + dropped)), "{between:?}: {passed} and {dropped}");
        // The line never takes more than fits the time, and its queue; less if the generator was held up.
        let span_ns = 19_999.0 * 1e9 / full.offered_pps;
        let most = (span_ns + 1e6) / serialised_ns as f64 + 2.0;
        assert!(passed as f64 <= most, "{between:?}: {passed} frames passed where {most} fit");
        assert!(lost > 0, "{between:?}: twice the line's rate, {full:?}");
        // Who is dropped has met a full queue; who is not has waited for no more than that.
        let (p99, p50) = (full.latency.percentile_ns(0.99), full.latency.summary().p50);
        assert!(p99 > 950_000 && p50 < 3_000_000, "{between:?}: a full queue is a millisecond, not {p50}, {p99} ns");
    }
}

fn options(bed: &Bed) -> MeasureOptions {
    MeasureOptions {
        sending: bed.ports()[0].name().to_owned(),
        receiving: vec![bed.ports()[1].name().to_owned()],
        plan: stations(16),
        sizes: vec![512.into()],
        trial: Duration::from_millis(40),
        rates_pps: Vec::new(),
    }
}

#[test]
fn throughput_of_a_known_link_is_found_by_both_methods() {
    let Some(_turn) = turn() else { return };
    let bed = Bed::new(relay(slow_link())).unwrap();
    let line_pps = 100e6 / (532.0 * 8.0);
    for method in [Method::Ndr, Method::Rfc2544] {
        let wanted = MeasureOptions { rates_pps: vec![30_000.0], ..options(&bed) };
        let report = measure::throughput(&wanted, method, false, &Quiet).unwrap();
        let row = &report.rows[0];
        // The queue lets a short trial pass at a little more than the line's rate. A busy machine holds the generator up,
        // so that less is offered than was asked: it can make the rate lower, never higher.
        let most = 1.0 + 1e-3 / 0.04 + 0.02;
        let share = row.ndr_pps / line_pps;
        let held_up = row.irregular || row.trials_noisy > 0 || method == Method::Rfc2544;
        assert!(share < most && (share > 0.9 || held_up), "{method:?}: {share}: {row:?}");
        assert!(row.failed_pps.unwrap() > line_pps * 0.9 || held_up, "{method:?}: {row:?}");
        assert_eq!(row.limited_by, LimitedBy::Device);
        assert!((row.layer1_bps / row.layer2_bps - 532.0 / 512.0).abs() < 1e-9);
        assert!(report.bench.generator_pps > 100_000.0, "the generator proved its own rate: {:?}", report.bench);
    }
}

#[test]
fn throughput_of_a_mix_is_that_of_its_mean_size() {
    let Some(_turn) = turn() else { return };
    // The queue is far longer than what short and long frames differ by.
    let bed = Bed::new(relay(slow_link())).unwrap();
    let mean = (7.0 * 64.0 + 4.0 * 570.0 + 1518.0) / 12.0;
    let line_pps = 100e6 / ((mean + 20.0) * 8.0);
    let trial = Duration::from_millis(100);
    let wanted =
        MeasureOptions { sizes: vec![Sizes::simple_imix()], rates_pps: vec![60_000.0], trial, ..options(&bed) };
    let row = &measure::throughput(&wanted, Method::Ndr, false, &Quiet).unwrap().rows[0];
    assert_eq!((row.size.frame_bytes, row.size.mix.as_deref()), (354, Some("imix")));
    let share = row.ndr_pps / line_pps;
    let held_up = row.irregular || row.trials_noisy > 0;
    assert!(share < 1.0 + 1e-3 / 0.1 + 0.02 && (share > 0.9 || held_up), "{share}: {row:?}");
    assert_eq!(row.limited_by, LimitedBy::Device);
    assert!((row.layer1_bps / row.layer2_bps - (mean + 20.0) / mean).abs() < 1e-9);
    // The shortest and the longest frame are both in the latency: 6.72 and 123.04 us on the line.
    let wanted = MeasureOptions { rates_pps: vec![line_pps * 0.1], ..wanted };
    let row = &measure::latency(&wanted, &Quiet).unwrap().rows[0];
    let json = serde_json::to_value(row).unwrap();
    assert_eq!((&json["frame_bytes"], &json["mix"]), (&354.into(), &"imix".into()));
    let latency = row.latency_ns.measured;
    assert!(latency.p50 * 101 >= 6_720 * 100 && latency.max * 101 >= 123_040 * 100, "{latency:?}");
}

/// Noise only ever makes frames get lost: what is clean once in a few attempts is clean.
fn once_clean<T>(mut attempt: impl FnMut() -> T, is_clean: impl Fn(&T) -> bool) -> T {
    for _ in 0..2 {
        let found = attempt();
        if is_clean(&found) {
            return found;
        }
    }
    attempt()
}

#[test]
fn what_the_generator_cannot_exceed_is_not_called_the_devices() {
    let Some(_turn) = turn() else { return };
    let bed = Bed::new(Between::Direct).unwrap();
    let wanted = MeasureOptions { sizes: vec![64.into()], ..options(&bed) };
    let row = once_clean(
        || measure::throughput(&wanted, Method::Ndr, false, &Quiet).unwrap().rows.remove(0),
        |row| row.failed_pps.is_none(),
    );
    assert!(matches!(row.limited_by, LimitedBy::Generator | LimitedBy::Cpu), "{row:?}");
    assert_eq!((row.failed_pps, row.account.lost), (None, 0));
    assert!(row.latency_ns.net_p50 < row.latency_ns.measured.p50, "the floor is taken off: {row:?}");
    // A plain pair is what the generator proves itself on: a rate asked below it is the asker's limit.
    let asked = MeasureOptions { rates_pps: vec![20_000.0], ..wanted };
    let row = once_clean(
        || measure::throughput(&asked, Method::Rfc2544, false, &Quiet).unwrap().rows.remove(0),
        |row| row.failed_pps.is_none(),
    );
    assert!(matches!(row.limited_by, LimitedBy::Asked | LimitedBy::Cpu) && row.ndr_pps < 20_100.0, "{row:?}");
}

#[test]
fn loss_latency_bursts_and_soak_have_their_rows() {
    let Some(_turn) = turn() else { return };
    let bed = Bed::new(relay(slow_link())).unwrap();
    let line_pps = 100e6 / (532.0 * 8.0);
    let at = |share: f64| MeasureOptions { rates_pps: vec![line_pps * share], ..options(&bed) };
    let curve = measure::loss(&at(2.0), &Quiet).unwrap().rows;
    assert!(curve.len() >= 6, "{curve:?}");
    let least = 1.0 - line_pps / curve[0].offered_pps - 0.05;
    assert!(curve[0].loss_ratio > least && curve[0].loss_ratio < 0.55, "{:?}", curve[0]);
    assert!(curve.last().unwrap().offered_pps < line_pps * 1.1, "{curve:?}");
    assert!(curve.iter().all(|row| row.account.lost == 0 || row.noise.looks.len() == 1), "{curve:?}");

    let latency = &measure::latency(&at(0.5), &Quiet).unwrap().rows[0];
    let cells = latency.latency_ns;
    assert!(cells.measured.p50 * 101 >= 42_560 * 100 && cells.floor_p50 < cells.measured.p50, "{latency:?}");
    assert_eq!(cells.net_p50, cells.measured.p50 - cells.floor_p50);
    assert_eq!(latency.account.lost, 0);

    // A queue of a millisecond holds 23.5 frames at twice the line's rate of arrival: the burst is twice that.
    let burst = &measure::bursts(&at(2.0), &Quiet).unwrap().rows[0];
    assert!(burst.burst.frames_min >= 20 && burst.burst.frames_min < 200 && !burst.burst.unlimited, "{burst:?}");

    let soak = measure::soak(&at(0.5), Duration::from_millis(300), &Quiet).unwrap().rows;
    assert!((1..=6).contains(&soak.len()), "{soak:?}");
    assert!(soak.windows(2).all(|pair| pair[0].start_s < pair[1].start_s));
    for row in &soak {
        // The last interval can be so short that a busy machine sends nothing in it.
        let latency = &row.latency_ns;
        assert!(row.account.lost == 0 && (latency.count == 0 || latency.p50 > 42_000), "{row:?}");
        assert!(row.noise.quiet, "nothing was lost, so nobody looked: {row:?}");
    }
}

#[test]
fn a_known_cost_is_read_back_and_a_relay_costs_something() {
    let Some(_turn) = turn() else { return };
    let bed = Bed::new(relay(LinkParams::default())).unwrap();
    let wanted = MeasureOptions { rates_pps: vec![5_000.0], ..options(&bed) };
    let cost =
        measure::throughput(&wanted, Method::Rfc2544, true, &Quiet).unwrap().rows[0].cost.expect("it was asked for");
    eprintln!("{cost:?}");
    assert!(cost.path.ns_per_frame > 10.0 && cost.path.ns_per_frame < 5000.0, "{cost:?}");
    // How exactly is for a quiet machine; that it is seen at all is for every one.
    assert!(cost.calibration.read_ns > 250.0 && cost.calibration.read_ns < 1500.0, "{cost:?}");
}

#[test]
fn the_tester_reports_on_itself() {
    let Some(_turn) = turn() else { return };
    let report = own::run(&Quiet).unwrap();
    assert!(
        report.own.generator_ns > 20.0 && report.own.floor_p50_ns > 0 && report.own.pacing.len() == 4,
        "{report:?}"
    );
    assert!(report.bridge.cpu_ns > 50.0 && report.checks.len() == 8, "{report:?}");
    let json = serde_json::to_value(&report).unwrap();
    assert_eq!((&json["schema_version"], json["pacing"][0]["asked_pps"].as_f64()), (&1.into(), Some(10_000.0)));
}

/// One reference, two paths beside it: what an experiment with beds of its own does.
#[test]
fn two_paths_stand_beside_one_reference() {
    let Some(_turn) = turn() else { return };
    let plan = stations(16);
    let beds = [0, 3000].map(|burn_ns| Bed::new(Between::Relay { burn_ns, link: LinkParams::default() }).unwrap());
    let mut paths = beds.each_ref().map(|bed| bed.path(&plan, 512).unwrap());
    let mut reference = Reference::open(&plan, 64, NEVER).unwrap();
    let (mut plain, mut burning) = (Vec::new(), Vec::new());
    for _ in 0..3 {
        for (path, runs) in paths.iter_mut().zip([&mut plain, &mut burning]) {
            runs.extend(reference::run_ns(path, Duration::from_millis(20), NEVER).unwrap());
        }
    }
    let least = |runs: &[f64]| runs.iter().copied().fold(f64::MAX, f64::min);
    // Three microseconds on some 300 nanoseconds.
    assert!(least(&burning) > least(&plain) * 1.5, "{plain:?} {burning:?}");

    let measured = reference.measure(&mut paths[1], &order(50_000.0, 2000), NEVER).unwrap();
    clean(&measured.trial, 2000);
    assert!(measured.latency_ns.net_p50 > 2000, "three microseconds are burnt: {:?}", measured.latency_ns);

    let options = FindOptions { most_pps: Some(20_000.0), trial: Duration::from_millis(40), ..FindOptions::default() };
    let mut rates = 0;
    let found = once_clean(
        || find::throughput(&mut reference, &mut paths[0], &options, NEVER, &mut |_, _| rates += 1).unwrap(),
        |found| found.failed_pps.is_none(),
    );
    assert!(found.ndr_pps > 0.0 && found.ndr_pps < 20_200.0 && found.pdr_pps >= Some(found.ndr_pps), "{found:?}");
    assert!(rates >= found.trials, "{rates} rates, {found:?}");
}

/// Runs `ip` in a namespace.
fn ip(namespace: &str, line: &str) {
    let output = Command::new("ip").args(["-n", namespace]).args(line.split(' ')).output().unwrap();
    assert!(output.status.success(), "ip -n {namespace} {line}: {}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn ports_without_live_frames_and_without_xdp_are_measured_by_sockets() {
    let Some(_turn) = turn() else { return };
    let bed = Bed::new(Between::Direct).unwrap();
    let [a, b] = bed.ports();
    let [near, far] = [a, b].map(|port| port.name().split_once(':').unwrap().0.to_owned());
    // A bridge takes no redirected frames, and on a macvlan XDP programs run in the stack.
    ip(&near, "link add dev sw type bridge mcast_snooping 0");
    ip(&near, "link set dev g0 master sw");
    ip(&near, "link set dev sw up");
    ip(&far, "link add link k0 dev mv type macvlan mode passthru");
    ip(&far, "link set dev mv up");
    let (tx, rx) = (Port::open(&format!("{near}:sw")).unwrap(), Port::open(&format!("{far}:mv")).unwrap());
    let mut path = Path::open(&tx, &[rx], &stations(8), 128).unwrap();
    assert_eq!(path.means(), Means::PacketSocket);
    assert!(!path.counts_in_driver(), "a macvlan has no XDP of its own");
    let trial = once_clean(|| path.trial(&order(5000.0, 400), NEVER).unwrap(), |trial| trial.account.is_clean());
    clean(&trial, 400);
    let mut reference = Reference::open(&stations(8), 128, NEVER).unwrap();
    assert_eq!(reference.means(), Means::XdpLiveFrames);
    reference.match_to(&path, NEVER).unwrap();
    assert_eq!(reference.means(), Means::PacketSocket, "what sockets take is the tester's part");
    assert!(reference.generator_pps() > 1000.0);
}

#[test]
fn ports_that_cannot_be_measured_are_refused_with_the_reason() {
    let Some(_turn) = turn() else { return };
    let bed = Bed::new(Between::Direct).unwrap();
    let [a, b] = bed.ports();
    let refused = |sending: &Port, receiving: &[Port], plan: &StreamPlan, bytes| match Path::open(
        sending, receiving, plan, bytes,
    ) {
        Err(TesterError::Refused(why)) => why,
        other => panic!("{other:?}"),
    };
    let (one, tagged) = (stations(1), StreamPlan { vlans: vec![9], ..stations(1) });
    let both = [b.clone(), b.clone()];
    assert!(refused(a, std::slice::from_ref(a), &one, 64).contains("send to itself"));
    assert!(refused(a, &both, &one, 64).contains("given twice"));
    assert!(refused(a, &[], &one, 64).contains("no receiving port"));
    assert!(refused(a, &both[1..], &one, 63).contains("below 64"));
    assert!(refused(a, &both[1..], &tagged, 64).contains("below 68"));
    let ipv6 = StreamPlan { ip: IpVersion::V6, ..stations(1) };
    assert!(refused(a, &both[1..], &ipv6, 83).contains("below 84 bytes (the headers of IPv6"));
    assert!(refused(a, &both[1..], &StreamPlan { broadcast: 1, ..ipv6 }, 84).contains("no broadcast"));
    assert!(refused(a, &both[1..], &one, 9500).contains("9216"));
    assert!(refused(a, &both[1..], &stations(0), 64).contains("0 streams"));
    // A port that is down, and one whose peer is.
    let (near, far) = (a.name().split_once(':').unwrap().0, b.name().split_once(':').unwrap().0);
    ip(far, "link set dev k0 down");
    for (name, word) in [(b.name(), "is down"), (a.name(), "has no carrier")] {
        let why = Port::open(name).unwrap_err().to_string();
        assert!(why.contains(word) && why.contains(name), "{why}");
    }
    let same = MeasureOptions { receiving: vec![a.name().to_owned()], ..options(&bed) };
    ip(far, "link set dev k0 up");
    let why = measure::loss(&same, &Quiet).unwrap_err().to_string();
    assert!(why.contains("send to itself"), "{why}");
    ip(near, "link set dev g0 mtu 1500");
    let long = MeasureOptions { sizes: vec![64.into(), 1519.into()], ..options(&bed) };
    let why = measure::soak(&long, Duration::from_secs(1), &Quiet).unwrap_err().to_string();
    assert!(why.contains("1519") && why.contains("allows 1518"), "{why}");
    ip(near, "link set dev g0 mtu 9216");
    // Two analysers do not fit on one port.
    let first = bed.path(&one, 64).unwrap();
    assert!(refused(a, &both[1..], &one, 64).contains("another XDP program"));
    drop(first);
    bed.path(&one, 64).expect("the port is as it was");
    let down = MeasureOptions { rates_pps: vec![f64::NAN], ..options(&bed) };
    assert!(measure::latency(&down, &Quiet).unwrap_err().to_string().contains("NaN"));
}

/// Not a test by itself: a process that is killed while it has a bed.
#[test]
fn holds_a_bed_until_it_is_killed() {
    if std::env::var_os("WEFT_TEST_HOLD_A_BED").is_some() {
        let bed = Bed::new(relay(LinkParams::default())).unwrap();
        // As somebody's command would: a process that does not end with us.
        let namespace = bed.ports()[0].name().split(':').next().unwrap().to_owned();
        #[allow(clippy::zombie_processes)] // It outlives us on purpose.
        let daemon = Command::new("ip").args(["netns", "exec", &namespace, "sleep", "600"]).spawn().unwrap();
        // Before that it is `ip`, which may not be in the namespace yet.
        let name = format!("/proc/{}/comm", daemon.id());
        common::wait_for("it runs there", || std::fs::read_to_string(&name).is_ok_and(|name| name.trim() == "sleep"));
        eprintln!("daemon {}", daemon.id());
        eprintln!("ready");
        std::thread::sleep(Duration::from_secs(300));
    }
}

#[test]
fn what_a_killed_run_left_is_swept_by_the_next() {
    let Some(_turn) = turn() else { return };
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "holds_a_bed_until_it_is_killed", "--nocapture"])
        .env("WEFT_TEST_HOLD_A_BED", "1")
        .stderr(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let prefix = format!("weft-tester-{}-", child.id());
    let left = || -> Vec<String> {
        let names = home::names_in(std::path::Path::new(home::NETNS_DIR));
        names.into_iter().filter(|name| name.starts_with(&prefix)).collect()
    };
    let lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let lines: Vec<String> = lines.map_while(Result::ok).take_while(|line| line != "ready").collect();
    let daemon = lines.iter().find_map(|line| line.strip_prefix("daemon ")?.parse::<u32>().ok());
    child.kill().unwrap();
    child.wait().unwrap();
    let daemon = ProcessId::of(daemon.expect("the child made its bed")).expect("it outlives the child");
    assert_eq!(left().len(), 3, "killed, it could not tidy up");
    drop(Bed::new(Between::Direct).unwrap());
    assert_eq!(left(), Vec::<String>::new());
    assert!(!daemon.is_alive(), "a daemon would keep its namespace");
}

#[test]
fn nothing_is_left_behind() {
    let Some(_turn) = turn() else { return };
    let ours = || -> BTreeSet<String> {
        let prefix = format!("weft-tester-{}-", std::process::id());
        home::names_in(std::path::Path::new(home::NETNS_DIR))
            .into_iter()
            .filter(|name| name.starts_with(&prefix))
            .collect()
    };
    let bed = Bed::new(relay(LinkParams::default())).unwrap();
    let names: BTreeSet<String> =
        bed.ports().iter().map(|port| port.name().split(':').next().unwrap().to_owned()).collect();
    assert!(names.is_subset(&ours()));
    drop(bed);
    assert!(names.is_disjoint(&ours()));
}
