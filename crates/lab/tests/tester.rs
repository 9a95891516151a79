//! The test centre against devices whose numbers are known: its own relay and link, and the kernel's bridge with the same
//! link. Everything runs in namespaces of its own.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use weft_datapath::tester::LinkParams;
use weft_lab::home;
use weft_lab::tester::TesterError;
use weft_lab::tester::bed::{Bed, Between};
use weft_lab::tester::measure::{self, LimitedBy, MeasureOptions, Method};
use weft_lab::tester::path::{Means, Path, Trial, TrialOrder};
use weft_lab::tester::port::Port;
use weft_lab::tester::stream::StreamPlan;
use weft_scenario::engine::Progress;

const NEVER: &(dyn Fn() -> bool + Sync) = &|| false;

struct Quiet;

impl Progress for Quiet {
    fn phase(&self, _: &str, _: &str) {}
    fn advance(&self, _: f64, _: &str) {}
    fn note(&self, line: &str) {
        eprintln!("note: {line}");
    }
    fn interrupted(&self) -> bool {
        false
    }
}

/// One test at a time: they all measure on the last core. `None`, with the reason, where none can run.
fn turn() -> Option<MutexGuard<'static, ()>> {
    static TURN: Mutex<()> = Mutex::new(());
    let root = rustix::process::geteuid().is_root();
    let missing = weft_lab::deps::missing_packages(weft_lab::deps::Need::Run);
    if !root {
        eprintln!("skipped: needs root");
    } else if !missing.is_empty() {
        eprintln!("skipped: missing packages {}", missing.join(", "));
    }
    // A test that failed has left nothing in the lock that could be wrong.
    (root && missing.is_empty()).then(|| TURN.lock().unwrap_or_else(PoisonError::into_inner))
}

/// The same for a test that measures time, which needs a quiet machine and so runs only when asked for.
fn quiet_turn() -> Option<MutexGuard<'static, ()>> {
    if std::env::var_os("WEFT_TEST_TIMES").is_none() {
        eprintln!("skipped: measures time; on a quiet machine set WEFT_TEST_TIMES=1");
        return None;
    }
    turn()
}

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
        path.set_size(frame_bytes).unwrap();
        clean(&path.trial(&order(200_000.0, 3000), NEVER).unwrap(), 3000);
        clean(&path.trial(&order(0.0, 50_000), NEVER).unwrap(), 50_000);
    }
    // Beyond a page only the packet socket goes.
    path.set_size(4000).unwrap();
    assert_eq!(path.size().bytes(), 4000);
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
    assert!(matches!(path.set_size(64), Err(TesterError::Refused(_))), "no room for a tag");
}

#[test]
fn a_link_takes_its_time_and_no_more_than_its_rate() {
    let Some(_turn) = quiet_turn() else { return };
    for between in [relay(slow_link()), Between::Bridge { link: Some(slow_link()) }] {
        let bed = Bed::new(between).unwrap();
        let mut path = bed.path(&stations(16), 512).unwrap();
        // 512 bytes and 20 around them at 100 Mbit/s.
        let (serialised_ns, line_pps) = (42_560, 100e6 / (532.0 * 8.0));
        let calm = path.trial(&order(line_pps * 0.2, 500), NEVER).unwrap();
        clean(&calm, 500);
        let p50 = calm.latency.summary().p50;
        assert!(p50 >= serialised_ns, "{between:?}: {p50} ns are less than the line takes");
        assert!(calm.latency.percentile_ns(0.1) < 2 * serialised_ns, "{between:?}: {:?}", calm.latency.summary());

        let full = path.trial(&order(line_pps * 2.0, 20_000), NEVER).unwrap();
        // Twice the rate: half is lost, but for what the queue holds. While the generator was held up the line was idle,
        // so what was offered on the whole says how little, and what was asked for how much can be lost.
        let lost_at = |pps: f64| 1.0 - line_pps / pps;
        let (least, most) = (lost_at(full.offered_pps) - 0.02, lost_at(line_pps * 2.0) + 0.02);
        let loss = full.account.loss_ratio();
        assert!(loss > least && loss < most, "{between:?}: lost {loss}, expected {least} to {most}");
        let (p50, max) = (full.latency.summary().p50, full.latency.percentile_ns(0.5));
        assert!(p50 > 900_000 && max < 3_000_000, "{between:?}: a full queue is a millisecond, not {p50} ns");
        let counters = bed.with_links(|links| links.counters("s1")).unwrap().unwrap();
        // The bridge has a frame of its own to say now and then.
        let lost = full.account.lost;
        assert!((lost..=lost + 3).contains(&counters.dropped), "{between:?}: {counters:?}, {lost} lost");
    }
}

fn options(bed: &Bed) -> MeasureOptions {
    MeasureOptions {
        sending: bed.ports()[0].name().to_owned(),
        receiving: vec![bed.ports()[1].name().to_owned()],
        plan: stations(16),
        frame_bytes: vec![512],
        trial: Duration::from_millis(60),
        rates_pps: Vec::new(),
    }
}

#[test]
fn throughput_of_a_known_link_is_found_by_both_methods() {
    let Some(_turn) = quiet_turn() else { return };
    let bed = Bed::new(relay(slow_link())).unwrap();
    let line_pps = 100e6 / (532.0 * 8.0);
    for method in [Method::Ndr, Method::Rfc2544] {
        let wanted = MeasureOptions { rates_pps: vec![100_000.0], ..options(&bed) };
        let report = measure::throughput(&wanted, method, false, &Quiet).unwrap();
        let row = &report.rows[0];
        // The queue lets a short trial pass at a little more than the line's rate. A busy machine holds the generator up,
        // so that less is offered than was asked: it can make the rate lower, never higher.
        let most = 1.0 + 1e-3 / 0.06 + 0.02;
        let share = row.ndr_pps / line_pps;
        assert!(
            share < most && (share > 0.9 || row.irregular || method == Method::Rfc2544),
            "{method:?}: {share}: {row:?}"
        );
        assert!(row.failed_pps.unwrap() > line_pps * 0.9, "{method:?}: {row:?}");
        assert_eq!(row.limited_by, LimitedBy::Device);
        assert!((row.layer1_bps / row.layer2_bps - 532.0 / 512.0).abs() < 1e-9);
        assert!(report.bench.generator_pps > 100_000.0, "the generator proved its own rate: {:?}", report.bench);
    }
}

#[test]
fn what_the_generator_cannot_exceed_is_not_called_the_devices() {
    let Some(_turn) = quiet_turn() else { return };
    let bed = Bed::new(Between::Direct).unwrap();
    let wanted = MeasureOptions { frame_bytes: vec![64], ..options(&bed) };
    let row = &measure::throughput(&wanted, Method::Ndr, false, &Quiet).unwrap().rows[0];
    assert!(matches!(row.limited_by, LimitedBy::Generator | LimitedBy::Cpu), "{row:?}");
    assert_eq!((row.failed_pps, row.account.lost), (None, 0));
    assert!(row.latency_ns.net_p50 < row.latency_ns.measured.p50, "the floor is taken off: {row:?}");
}

#[test]
fn loss_latency_bursts_and_soak_have_their_rows() {
    let Some(_turn) = quiet_turn() else { return };
    let bed = Bed::new(relay(slow_link())).unwrap();
    let line_pps = 100e6 / (532.0 * 8.0);
    let at = |share: f64| MeasureOptions { rates_pps: vec![line_pps * share], ..options(&bed) };
    let curve = measure::loss(&at(2.0), &Quiet).unwrap().rows;
    assert!(curve.len() >= 6, "{curve:?}");
    let least = 1.0 - line_pps / curve[0].offered_pps - 0.05;
    assert!(curve[0].loss_ratio > least && curve[0].loss_ratio < 0.55, "{:?}", curve[0]);
    assert!(curve.last().unwrap().offered_pps < line_pps * 1.1, "{curve:?}");

    let latency = &measure::latency(&at(0.5), &Quiet).unwrap().rows[0];
    assert!(latency.latency_ns.net_p50 > 41_000 && latency.latency_ns.floor_p50 < 20_000, "{latency:?}");
    assert_eq!(latency.account.lost, 0);

    // A queue of a millisecond holds 23.5 frames at twice the line's rate of arrival: the burst is twice that.
    let burst = &measure::bursts(&at(2.0), &Quiet).unwrap().rows[0];
    assert!(burst.burst.frames_min >= 20 && burst.burst.frames_max < 200 && !burst.burst.unlimited, "{burst:?}");

    let soak = measure::soak(&at(0.5), Duration::from_millis(200), &Quiet).unwrap().rows;
    assert!((2..=5).contains(&soak.len()), "{soak:?}");
    assert!(soak.windows(2).all(|pair| pair[0].start_s < pair[1].start_s));
    for row in &soak {
        // The last interval can be so short that a busy machine sends nothing in it.
        let latency = &row.latency_ns;
        assert!(row.account.lost == 0 && (latency.count == 0 || latency.p50 > 42_000), "{row:?}");
    }
}

#[test]
fn a_known_cost_is_read_back_and_a_relay_costs_something() {
    let Some(_turn) = quiet_turn() else { return };
    let bed = Bed::new(relay(LinkParams::default())).unwrap();
    let wanted = MeasureOptions { rates_pps: vec![50_000.0], ..options(&bed) };
    let cost = measure::throughput(&wanted, Method::Ndr, true, &Quiet).unwrap().rows[0].cost.expect("it was asked for");
    eprintln!("{cost:?}");
    assert!(cost.path.ns_per_frame > 10.0 && cost.path.ns_per_frame < 5000.0, "{cost:?}");
    // How exactly is for a quiet machine; that it is seen at all is for every one.
    assert!(cost.calibration.read_ns > 250.0 && cost.calibration.read_ns < 1500.0, "{cost:?}");
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
    assert!(refused(a, &both[1..], &one, 9500).contains("9216"));
    assert!(refused(a, &both[1..], &stations(0), 64).contains("0 streams"));
    // Two analysers do not fit on one port.
    let first = bed.path(&one, 64).unwrap();
    assert!(refused(a, &both[1..], &one, 64).contains("another XDP program"));
    drop(first);
    bed.path(&one, 64).expect("the port is as it was");
    let down = MeasureOptions { rates_pps: vec![f64::NAN], ..options(&bed) };
    assert!(measure::latency(&down, &Quiet).unwrap_err().to_string().contains("NaN"));
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
