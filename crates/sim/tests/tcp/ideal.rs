//! Nothing is lost: timing, growth and acknowledgements as arithmetic says.

use weft_scenario::engine::CongestionControl;
use weft_sim::tcp::{Config, Sender, State};

use crate::channel::{Adversary, Badness, Channel, MS, Packet, Scripted, US};
use crate::connection::Connection;

fn one_ack_each() -> Config {
    Config { segments_per_ack: 1, ..Config::rfc_reno() }
}

/// Round trips of 100 us after the SYN's: 10, 20 and 40 segments go out at 100, 200 and 300 us, 1.2 us apart; the last
/// leaves at 300 + 39 * 1.2 us and its ACK is back 100 us later.
#[test]
fn slow_start_takes_the_time_that_arithmetic_says() {
    let connection = Connection::new(one_ack_each(), Scripted::new(50 * US, &[]), 70).run();
    assert_eq!(connection.now_ps, 446 * US + 800_000);
    assert_eq!((connection.sender.retransmits(), connection.sender.timeouts()), (0, 0));
    assert_eq!(connection.sender.srtt(), Some(100 * US));
}

#[test]
fn the_last_odd_segment_waits_for_the_delayed_ack() {
    let config = Config { segments_per_ack: 2, ..Config::rfc_reno() };
    let connection = Connection::new(config, Scripted::new(50 * US, &[]), 3).run();
    // The third segment arrives at 152.4 us.
    assert_eq!(connection.now_ps, 152 * US + 400_000 + 40 * MS + 50 * US);
}

#[test]
fn no_configuration_repeats_anything_on_a_good_channel() {
    for congestion_control in [CongestionControl::Reno, CongestionControl::Cubic, CongestionControl::Dctcp] {
        for base in [Config::default(), Config::linux_2_6_26(), Config::rfc_reno()] {
            for segments_per_ack in [1, 2] {
                let config = Config { congestion_control, segments_per_ack, ..base.clone() };
                let connection = Connection::new(config, Scripted::new(500 * US, &[]), 5_000).run();
                assert_eq!((connection.sender.retransmits(), connection.sender.timeouts()), (0, 0));
            }
        }
    }
}

/// Loses the first SYNs.
struct SynLoss(u32);

impl Channel for SynLoss {
    fn fate(&mut self, packet: Packet) -> Vec<u64> {
        if packet == Packet::Syn && self.0 > 0 {
            self.0 -= 1;
            return vec![];
        }
        vec![50 * US]
    }
}

/// RFC 6298 2.1 and 5.5: SYNs at 0, 1 and 3 s. 5.7: without timestamps data then start with an RTO of 3 s. RFC 5681 3.1:
/// and with a window of 1.
#[test]
fn syns_are_repeated_with_back_off() {
    let mut connection = Connection::new(one_ack_each(), SynLoss(2), 4).run();
    assert_eq!(connection.sent[0].0, 3_000 * MS + 100 * US);
    assert_eq!(connection.sent[1].0, 3_000 * MS + 200 * US);
    connection.sender.add_segments(1);
    assert!(!connection.sender.is_done());

    let config = Config { timestamps: true, ..one_ack_each() };
    let connection = Connection::new(config, SynLoss(1), 4).run();
    assert_eq!(connection.sent[1].0 - connection.sent[0].0, US * 12 / 10, "one loss does not shrink the window");
}

#[test]
fn a_peer_that_never_answers_fails_the_connection() {
    let config = Config { syn_retries: 2, ..one_ack_each() };
    let connection = Connection::new(config, SynLoss(u32::MAX), 4).run();
    assert_eq!((connection.sender.state(), connection.now_ps), (State::Failed, 7_000 * MS));
    assert!(!connection.sender.is_done());
}

#[test]
fn without_a_measurement_data_start_with_three_seconds() {
    let config = one_ack_each();
    let mut sender = Sender::new(&config, 1);
    sender.connect(0, &config);
    sender.on_deadline(1_000 * MS, &config);
    sender.opened(1_001 * MS, &config);
    assert_eq!((sender.rto(&config), sender.srtt()), (3_000 * MS, None));
}

/// An application that sends two segments per round trip: the window stays.
#[test]
fn a_window_that_is_not_used_does_not_grow() {
    let config = one_ack_each();
    let mut sender = Sender::new(&config, 0);
    sender.connect(0, &config);
    sender.opened(MS, &config);
    for round in 1..100 {
        sender.add_segments(2);
        let now_ps = round * 2 * MS;
        while sender.poll(now_ps, &config).is_some() {}
        let ack = weft_sim::tcp::Ack { cumulative: round as u32 * 2, ece: false, sack: None };
        sender.on_ack(now_ps + MS, &ack, &config);
    }
    assert_eq!((sender.cwnd(), sender.is_done()), (10, true));
}

/// 64 segments of window, 3.5 timeouts without sending: halved three times, but not below the initial window.
#[test]
fn idle_time_shrinks_the_window() {
    for (idle_restart, initial_window, want) in [(true, 4, 8), (true, 10, 10), (false, 4, 64)] {
        let config = Config { idle_restart, initial_window, window_cap: 64, ..one_ack_each() };
        let connection = Connection::new(config.clone(), Scripted::new(50 * US, &[]), 500).run();
        let mut sender = connection.sender;
        assert_eq!(sender.cwnd(), 64);
        let last_ps = connection.sent.last().unwrap().0;
        sender.add_segments(1);
        assert!(sender.poll(last_ps + 3_500 * MS, &config).is_some());
        assert_eq!(sender.cwnd(), want);
    }
}

#[test]
fn the_receivers_window_is_kept() {
    let config = Config { window_cap: 7, ..one_ack_each() };
    let connection = Connection::new(config, Scripted::new(50 * US, &[]), 100).run();
    assert_eq!(connection.peak, 7);
}

/// Marks on everything: Reno halves once per round trip down to 2; DCTCP, whose alpha stays 1, does the same.
#[test]
fn marks_reduce_the_window_once_per_round_trip() {
    for congestion_control in [CongestionControl::Reno, CongestionControl::Dctcp] {
        let config = Config { congestion_control, initial_window: 64, ..one_ack_each() };
        let badness = Badness { marks: 1000, ..Badness::default() };
        let connection = Connection::new(config, Adversary::new(badness, 50 * US, 1), 400).run();
        let mut windows = connection.windows.clone();
        windows.dedup_by_key(|window| window.1);
        let sizes: Vec<u32> = windows.iter().map(|window| window.1).collect();
        assert_eq!(sizes, [64, 32, 16, 8, 4, 2], "{congestion_control:?}");
        assert!(windows[1..].windows(2).all(|pair| pair[1].0 - pair[0].0 >= 100 * US));
        assert_eq!(connection.sender.retransmits(), 0);
    }
}
