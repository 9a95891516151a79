//! Properties that hold however bad the channel is: every segment reaches the application once and in order, the
//! connection ends, and the sender does no more than it must.

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{RngAlgorithm, TestRng, TestRunner};
use weft_scenario::engine::CongestionControl;
use weft_sim::tcp::{Config, LossDetection, RtoFloor};

use crate::channel::{Adversary, Badness, MS, US};
use crate::connection::Connection;

fn any_detection() -> impl Strategy<Value = LossDetection> {
    prop_oneof![Just(LossDetection::DuplicateThreshold), Just(LossDetection::Forward), Just(LossDetection::Rack)]
}

fn any_control() -> impl Strategy<Value = CongestionControl> {
    prop_oneof![Just(CongestionControl::Reno), Just(CongestionControl::Cubic), Just(CongestionControl::Dctcp)]
}

prop_compose! {
    fn any_config()(
        congestion_control in any_control(),
        loss_detection in any_detection(),
        (sack, timestamps) in any::<(bool, bool)>(),
        (tail_loss_probe, proportional_reduction, hystart, idle_restart) in any::<(bool, bool, bool, bool)>(),
        floor in any::<bool>(),
        initial_window in 1u32..20,
        window_cap in prop_oneof![1u32..40, Just(u32::MAX)],
        segments_per_ack in 1u32..3,
        quick_acks in 0u32..17,
        rto_min_ms in 1u64..200,
    ) -> Config {
        Config {
            congestion_control, sack, timestamps, tail_loss_probe, proportional_reduction, hystart, idle_restart,
            initial_window, window_cap, segments_per_ack, quick_acks,
            loss_detection,
            rto_floor: if floor { RtoFloor::Whole } else { RtoFloor::Variation },
            rto_min_ps: rto_min_ms * MS,
            syn_retries: 100,
            ..Config::default()
        }
    }
}

prop_compose! {
    fn any_badness()(
        data_loss in prop_oneof![Just(0u64), 0u64..50, 0u64..400],
        ack_loss in prop_oneof![Just(0u64), 0u64..400],
        duplication in prop_oneof![Just(0u64), 0u64..300],
        late in prop_oneof![Just(0u64), 0u64..500],
        marks in prop_oneof![Just(0u64), 0u64..1000],
        late_us in 1u64..3000,
    ) -> Badness {
        Badness { data_loss, ack_loss, duplication, late, marks, late_ps: late_us * US }
    }
}

/// The checks after every step are in [`Connection`].
fn arrives(config: Config, badness: Badness, segments: u32, seed: u64) {
    let connection = Connection::new(config, Adversary::new(badness, 50 * US, seed), segments).run();
    let (sender, channel) = (&connection.sender, &connection.channel);
    let timeouts = sender.timeouts() * connection.peak;
    // A packet that is late by many round trips counts against all that overtake it.
    let disturbed = channel.lost + channel.late * (1 + connection.peak) + channel.repeated * (1 + connection.peak);
    let probes = connection.peak + segments;
    assert!(sender.retransmits() <= disturbed + timeouts + probes, "{} retransmissions", sender.retransmits());
    assert_eq!(connection.sent.len() as u32, segments + sender.retransmits());
}

/// The same with connections that a number names, so that one that was found is tried from then on.
#[test]
fn everything_arrives_whatever_the_seed() {
    weft_needs::each_seed("tcp", 0..200, |seed| {
        let mut bytes = [0; 32];
        bytes[..8].copy_from_slice(&seed.to_le_bytes());
        let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
        let mut runner = TestRunner::new_with_rng(ProptestConfig::default(), rng);
        let drawn = (any_config(), any_badness(), 1u32..400).new_tree(&mut runner).expect("nothing is rejected");
        let (config, badness, segments) = drawn.current();
        arrives(config, badness, segments, seed);
    });
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// Retransmissions are bounded by their causes.
    #[test]
    fn everything_arrives_once_and_in_order(
        config in any_config(),
        badness in any_badness(),
        segments in 1u32..400,
        seed in any::<u64>(),
    ) {
        arrives(config, badness, segments, seed);
    }

    /// Where only data are lost and nothing is reordered, selective recovery repeats what was lost and nothing else,
    /// up to the probes, unless a timeout had to help.
    #[test]
    fn selective_recovery_repeats_only_what_was_lost(
        config in any_config(),
        data_loss in 1u64..200,
        segments in 1u32..400,
        seed in any::<u64>(),
    ) {
        let config = Config { sack: true, tail_loss_probe: false, ..config };
        let rescues = config.loss_detection == LossDetection::DuplicateThreshold;
        let badness = Badness { data_loss, ..Badness::default() };
        let connection = Connection::new(config, Adversary::new(badness, 50 * US, seed), segments).run();
        if connection.sender.timeouts() == 0 && !rescues {
            prop_assert!(connection.sender.retransmits() <= connection.channel.lost);
        }
    }

    /// The same seed gives the same run.
    #[test]
    fn runs_repeat_exactly(config in any_config(), badness in any_badness(), seed in any::<u64>()) {
        let run = || Connection::new(config.clone(), Adversary::new(badness, 50 * US, seed), 60).run();
        let (first, second) = (run(), run());
        prop_assert_eq!(first.now_ps, second.now_ps);
        prop_assert_eq!(first.sent, second.sent);
    }
}

/// ACKs that no receiver would send change nothing and break nothing.
#[test]
fn absurd_acks_are_ignored() {
    use weft_sim::tcp::{Ack, SackBlocks, Sender, State};

    let config = Config::default();
    let mut sender = Sender::new(&config, 100);
    let ack = |cumulative, ranges| Ack { cumulative, ece: true, sack: Some(SackBlocks { ranges }) };
    sender.on_ack(0, &Ack { cumulative: 7, ece: false, sack: None }, &config);
    sender.connect(0, &config);
    sender.opened(MS, &config);
    while sender.poll(MS, &config).is_some() {}
    for absurd in [
        ack(u32::MAX, [(0, 0); 3]),
        ack(11, [(3, 5), (0, 0), (0, 0)]),
        ack(0, [(u32::MAX - 1, u32::MAX), (9, 200), (8, 3)]),
        ack(0, [(0, 11), (0, u32::MAX), (5, 5)]),
    ] {
        sender.on_ack(2 * MS, &absurd, &config);
        assert_eq!((sender.acknowledged(), sender.in_flight(), sender.cwnd()), (0, 10, 10), "{absurd:?}");
    }
    assert_eq!(sender.poll(2 * MS, &config), None);
    assert_eq!(sender.state(), State::Open);
}
