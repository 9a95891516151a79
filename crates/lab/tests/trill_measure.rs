//! The TRILL papers' experiments on small beds: every way carries every frame, rows are complete and add up, emulated links
//! carry what their rate allows, and nothing stays behind. No number of these is judged here: that is for the plans.

mod common;

use common::beds::{fact, run_on_beds, turn};
use weft_scenario::record::{Records, VlanMixRow};
use weft_scenario::units::{BitsPerSec, Nanos};
use weft_scenario::workload::trill::{
    ConvergenceSpec, CostSpec, CrossingSpec, ElephantSpec, EmulatedLink, Layer, Network, Split, StpTimers, SwitchLoss,
    TrillSpec, VlanMixSpec, Way,
};
use weft_scenario::workload::{Runs, Workload};

fn run(spec: TrillSpec) -> Records {
    run_on_beds(Workload::Trill(spec))
}

fn crossing() -> CrossingSpec {
    CrossingSpec {
        network: Network::Campus,
        ways: Way::ALL.to_vec(),
        frame_bytes: vec![64, 1518],
        stations: 64,
        link: None,
        per_s: vec![20_000],
        load_percent: Vec::new(),
        path_rate: None,
        load_of: Layer::Layer1,
        trial: Nanos(20_000_000),
    }
}

#[test]
fn every_way_carries_every_frame_over_four_paths_or_one() {
    let Some(_turn) = turn() else { return };
    let records = run(TrillSpec::Crossing(crossing()));
    assert_eq!(records.crossings.len(), Way::ALL.len() * 2);
    for row in &records.crossings {
        assert!(row.sent_frames > 50 && row.received_frames == row.sent_frames, "{row:?}");
        assert!(row.latency_p50_ns > row.floor_p50_ns && row.floor_p50_ns > 0, "{row:?}");
        assert_eq!(row.reordered_frames, 0, "{row:?}");
    }
    for way in Way::ALL {
        let of_way = || records.path_shares.iter().filter(|row| row.way == way.name() && row.frame_bytes == 64);
        // The longer a busy machine takes, the more Hellos are on every path.
        let all: u64 = of_way().map(|row| row.frames).sum();
        let used = of_way().filter(|row| row.frames * 20 > all).count();
        let every_path = way.is_trill() && way != Way::TrillRouter;
        assert_eq!(used, if every_path { 4 } else { 1 }, "{way:?}: {:?}", records.path_shares);
    }
}

#[test]
fn a_line_has_one_path() {
    let Some(_turn) = turn() else { return };
    let ways = vec![Way::TrillGeneric, Way::Stp];
    let records = run(TrillSpec::Crossing(CrossingSpec { network: Network::Line, ways, ..crossing() }));
    assert!(records.crossings.iter().all(|row| row.received_frames == row.sent_frames), "{:?}", records.crossings);
    assert!(records.path_shares.iter().all(|row| row.switch == "s3" && row.frames > 0));
}

#[test]
fn emulated_links_carry_what_their_rate_allows() {
    let Some(_turn) = turn() else { return };
    let link =
        EmulatedLink { rate: BitsPerSec(20_000_000), tester_rate: BitsPerSec(80_000_000), queue: Nanos(4_000_000) };
    let ways = vec![Way::Trill, Way::Layer2, Way::Stp];
    let spec = CrossingSpec {
        ways,
        frame_bytes: vec![512],
        stations: 256,
        link: Some(link),
        per_s: Vec::new(),
        load_percent: vec![50, 200],
        trial: Nanos(200_000_000),
        ..crossing()
    };
    let records = run(TrillSpec::Crossing(spec));
    for row in &records.crossings {
        let line_per_s = 20e6 / (532.0 * 8.0);
        if row.load_percent == 50 || row.way == "trill" {
            assert_eq!(row.received_frames, row.sent_frames, "{row:?}");
        } else {
            // What the line carries meanwhile, and what its queue holds.
            let most = line_per_s * (row.wall_ns as f64 * 1e-9 + 0.006);
            assert!((row.received_frames as f64) < most && row.received_frames < row.sent_frames, "{row:?}");
        }
        // Two lines between switches and the one of the receiving port, each a frame long at least.
        let idle_ns = 532.0 * 8.0 * (2.0 / 20e6 + 1.0 / 80e6) * 1e9;
        assert!(row.latency_p50_ns as f64 > idle_ns * 0.97, "{row:?} under {idle_ns}");
    }
}

#[test]
fn every_switch_costs_something() {
    let Some(_turn) = turn() else { return };
    let ways = vec![Way::Trill, Way::TrillGeneric, Way::Layer2, Way::Stp];
    let spec = CostSpec {
        network: Network::Line,
        ways: ways.clone(),
        frame_bytes: vec![64, 1518],
        stations: 16,
        per_s: Vec::new(),
        cost: Runs { count: 3, each: Nanos(4_000_000) },
    };
    let records = run(TrillSpec::Cost(spec));
    assert_eq!(records.chains.len(), (1 + 3 * ways.len()) * 2);
    for row in &records.chains {
        assert!(row.chain_ns_per_frame > 0.0 && row.most_per_s > 0.0 && row.lost_frames == 0, "{row:?}");
    }
    let ns = |way: &str, until: &str| {
        let is_it = |row: &&weft_scenario::record::ChainRow| row.way == way && row.until == until;
        records.chains.iter().find(is_it).unwrap_or_else(|| panic!("no {way} {until}")).chain_ns_per_frame
    };
    assert!(ns("stp", "s2") > ns("trill", "s2") && ns("trill", "s2") > ns("", ""), "{:?}", records.chains);
    assert!(fact(&records, "cost.known_ns") > 0.0);
}

#[test]
fn a_lost_switch_hits_some_flows_for_a_while() {
    let Some(_turn) = turn() else { return };
    let spec = ConvergenceSpec {
        ways: vec![Way::Trill, Way::Stp],
        losses: vec![SwitchLoss::LinkDown],
        frame_bytes: 128,
        stations: 64,
        per_s: 10_000,
        watch: Nanos(3_000_000_000),
        timers: StpTimers::Quick,
    };
    let records = run(TrillSpec::Convergence(spec));
    let [row, tree] = &records.switch_losses[..] else { panic!("{:?}", records.switch_losses) };
    assert!(["s3", "s4", "s5", "s6"].contains(&row.switch.as_str()), "{row:?}");
    assert_eq!(row.flows, 64);
    assert!(row.hit_flows < 64 && row.lost_frames < row.sent_frames / 4, "one of four paths: {row:?}");
    assert!(row.outage_ns < 2_000_000_000, "{row:?}");
    // The tree has one path; frames cross again before they end.
    assert_eq!((tree.hit_flows, tree.recovery_s), (64, 4));
    assert!(tree.outage_ns < 6_000_000_000, "of 7 s, the first before the loss: {tree:?}");
}

#[test]
fn a_part_of_the_traffic_stays_within_its_vlan() {
    let Some(_turn) = turn() else { return };
    let ways = [Way::TrillRouter, Way::TrillRouted];
    let spec = VlanMixSpec {
        ways: ways.to_vec(),
        crossing_percent: vec![0, 40, 100],
        frame_bytes: 128,
        stations: 50,
        per_s: 20_000,
        trial: Nanos(20_000_000),
        rounds: 2,
        cost: Runs { count: 2, each: Nanos(4_000_000) },
    };
    let records = run(TrillSpec::VlanMix(spec));
    assert_eq!(records.vlan_mixes.len(), 2 * 2 * 3);
    for row in &records.vlan_mixes {
        // Every frame at its own station: that of the other VLAN is behind another port.
        assert!(row.sent_frames > 50 && row.received_frames == row.sent_frames, "{row:?}");
        assert!(row.latency_p50_ns > row.floor_p50_ns && row.latency_mean_ns > row.floor_mean_ns, "{row:?}");
        assert!(row.chain_ns_per_frame > 0.0 && row.tester_ns_per_frame > 0.0, "{row:?}");
    }
    // Noise makes everything dearer, never cheaper.
    let least = |of: fn(&VlanMixRow) -> f64| records.vlan_mixes.iter().map(of).fold(f64::INFINITY, f64::min);
    let (chain, tester) = (least(|row| row.chain_ns_per_frame), least(|row| row.tester_ns_per_frame));
    assert!(chain > tester, "{:?}", records.vlan_mixes);
    let ns = |way: Way, percent: u32| {
        let of = records.vlan_mixes.iter().filter(|row| row.way == way.name() && row.crossing_percent == percent);
        of.map(|row| row.latency_p50_ns).min().unwrap()
    };
    assert!(ns(Way::TrillRouter, 100) > ns(Way::TrillRouter, 0), "a detour: {:?}", records.vlan_mixes);
}

#[test]
fn elephants_have_as_many_connections_as_they_are_split_into() {
    let Some(_turn) = turn() else { return };
    let rate = BitsPerSec(50_000_000);
    let spec = ElephantSpec {
        splits: Split::ALL.to_vec(),
        subflows: 4,
        link: EmulatedLink { rate, tester_rate: rate, queue: Nanos(20_000_000) },
        each: Nanos(800_000_000),
        rounds: 1,
    };
    let records = run(TrillSpec::Elephants(spec));
    let mptcp = fact(&records, "mptcp.available") > 0.0;
    if !mptcp {
        eprintln!("skipped: MPTCP is not available on this kernel");
    }
    assert_eq!(records.elephants.len(), if mptcp { 12 } else { 8 });
    for row in &records.elephants {
        assert_eq!(row.connections, if row.split == "tcp" { 1 } else { 4 }, "{row:?}");
        let bits_per_s = row.received_bytes as f64 * 8e9 / row.wall_ns as f64;
        // A policer may starve one of them; more than its line nobody gets.
        assert!(row.received_bytes > 0 && bits_per_s < 50e6 * 1.1, "{row:?}: {bits_per_s}");
    }
}
