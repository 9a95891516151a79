//! Recovery with SACK: RFC 6675, RFC 6937, RFC 8985 section 6, RFC 3708.

use weft_sim::tcp::{Config, LossDetection, State};

use crate::channel::{Scripted, US};
use crate::connection::Connection;

fn plain() -> Config {
    Config { segments_per_ack: 1, ..Config::rfc_reno() }
}

fn rack() -> Config {
    Config { loss_detection: LossDetection::Rack, ..plain() }
}

fn fack() -> Config {
    Config { loss_detection: LossDetection::Forward, ..plain() }
}

fn run(config: Config, lost: &[(u32, usize)], segments: u32) -> Connection<Scripted> {
    Connection::new(config, Scripted::new(50 * US, lost), segments).run()
}

/// All holes of a window are repaired in one round trip, lowest first, and the window is halved once.
#[test]
fn all_holes_are_repaired_at_once() {
    for config in [plain(), rack(), fack(), Config { proportional_reduction: true, ..plain() }] {
        let connection = run(config, &[(1, 0), (3, 0), (5, 0)], 60);
        assert_eq!((connection.repeated(), connection.sender.timeouts()), (vec![1, 3, 5], 0));
        assert_eq!(connection.sender.ssthresh(), Some(5));
        let times_ps: Vec<u64> =
            connection.sent.iter().filter(|sent| sent.1.retransmission).map(|sent| sent.0).collect();
        assert!(times_ps[2] - times_ps[0] < 100 * US);
    }
}

/// RFC 6675 section 5 by hand: 10 segments in flight, 0 lost. ACKs of 1 and 2 send 10 and 11 (step 3); the one of 3
/// makes 0 lost and the window 5. Then 12 - 3 SACKed - 1 lost + 1 repeated = 9 are in flight; each further ACK takes one
/// out, so the ones of 4 to 8 bring the pipe to 4 and the fifth of them sends 12.
#[test]
fn the_pipe_decides_what_follows_the_fast_retransmission() {
    let connection = run(plain(), &[(0, 0)], 40);
    let order: Vec<u32> = connection.sent.iter().map(|sent| sent.1.seq).collect();
    assert_eq!(order[..14], [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 0, 12]);
    // Segment n was sent at 100 + 1.2 n us and its ACK is back 100 us later.
    assert_eq!(connection.sent[12].0, 200 * US + 3_600_000);
    assert_eq!(connection.sent[13].0, 200 * US + 8 * 1_200_000);
}

/// The same with proportional rate reduction: one segment for every two ACKs, from the first on.
#[test]
fn proportional_reduction_spreads_the_repair() {
    let connection = run(Config { proportional_reduction: true, ..plain() }, &[(0, 0)], 40);
    let after: Vec<u64> = connection.sent.iter().skip(12).take(4).map(|sent| (sent.0 - 200 * US) / 1_200_000).collect();
    // RecoverFS is 12, so the n-th ACK of recovery allows ceil(n * 5 / 12): sends with the ACKs of 3, 5, 7 and 10.
    assert_eq!(after[..3], [3, 5, 7]);
}

#[test]
fn rack_and_fack_find_a_lost_retransmission_and_the_threshold_does_not() {
    let lost = [(2, 0), (2, 1)];
    for config in [rack(), fack()] {
        let connection = run(config, &lost, 200);
        assert_eq!((connection.repeated(), connection.sender.timeouts()), (vec![2, 2], 0));
    }
    let without = run(plain(), &lost, 200);
    assert_eq!(without.sender.timeouts(), 1);
}

/// Segments 1, 3 and 4 are lost. The SACK of 5 leaves segment 1 four below the highest: lost, though only two above it have
/// arrived.
#[test]
fn fack_counts_holes_as_arrived() {
    let connection = run(fack(), &[(1, 0), (3, 0), (4, 0)], 60);
    let first = connection.sent.iter().find(|sent| sent.1.retransmission).unwrap();
    // Segment 5 was sent at 100 + 1.2 x 5 us and its ACK is back 100 us later.
    assert_eq!((first.1.seq, first.0), (1, 200 * US + 5 * 1_200_000));
}

/// Segment 2 is 20 us late on a round trip of 100: RACK allows a quarter of that. The duplicate threshold repeats it,
/// and takes the halving back when the duplicate is reported.
#[test]
fn lateness_is_not_loss() {
    let mut channel = Scripted::new(50 * US, &[]);
    channel.late = vec![(2, 0, 20 * US)];
    let config = Config { initial_window: 5, ..rack() };
    let connection = Connection::new(config, channel, 5).run();
    assert_eq!(connection.repeated(), [] as [u32; 0]);
    assert_eq!(connection.sender.ssthresh(), None);

    let mut channel = Scripted::new(50 * US, &[]);
    channel.late = vec![(2, 0, 20 * US)];
    let connection = Connection::new(plain(), channel, 100).run();
    assert_eq!(connection.repeated(), [2]);
    assert!(connection.windows.iter().any(|window| window.2 == State::Recovery && window.1 <= 6));
    assert_eq!(connection.sender.ssthresh(), None, "taken back");
    assert!(connection.sender.cwnd() > 12);
}

/// Three SACKs make RACK hasty, unless reordering was seen: here by segment 2, which is late by so little that only one
/// SACK overtakes it.
#[test]
fn reordering_that_was_seen_makes_patient() {
    for (late, want) in [(vec![(50, 0, 20 * US)], vec![50]), (vec![(2, 0, 2 * US), (50, 0, 20 * US)], vec![])] {
        let mut channel = Scripted::new(50 * US, &[]);
        channel.late = late;
        let connection = Connection::new(rack(), channel, 200).run();
        assert_eq!(connection.repeated(), want);
    }
}

/// With a single SACK the reordering timer finds the loss, a quarter of a round trip later, long before the timeout.
#[test]
fn the_reordering_timer_needs_no_three_duplicates() {
    let connection = run(Config { initial_window: 2, ..rack() }, &[(0, 0)], 2);
    assert_eq!((connection.repeated(), connection.sender.timeouts()), (vec![0], 0));
    // Segment 0 left at 100 us; round trip 100 us and 25 us for reordering. Its ACK comes 100 us later.
    assert_eq!(connection.sent[2].0, 225 * US);
}

/// RFC 6675 section 4, rule 4: the last two of a window are lost, so that nothing above them can be SACKed. One loss is
/// found by the threshold; in its recovery the rescue retransmission takes the last segment.
#[test]
fn the_rescue_retransmission_repeats_the_last_segment() {
    let connection = run(plain(), &[(2, 0), (9, 0)], 10);
    assert_eq!((connection.repeated(), connection.sender.timeouts()), (vec![2, 9], 0));
}

/// The rescue may be needless where the receiver's window, not the network, holds new data back; so there is one per
/// recovery. Segment 7's repetition is late, and new segments run into the receiver's window again meanwhile.
#[test]
fn there_is_one_rescue_per_recovery() {
    let mut channel = Scripted::new(50 * US, &[(2, 0), (7, 0)]);
    channel.late = vec![(7, 1, 150 * US)];
    let connection = Connection::new(Config { window_cap: 10, ..plain() }, channel, 60).run();
    assert_eq!((connection.repeated(), connection.sender.timeouts()), (vec![2, 7, 11], 0));
}

/// After a timeout only what was never SACKed is sent again (RFC 6675 5.1; this receiver does not renege).
#[test]
fn a_timeout_spares_what_has_arrived() {
    let connection = run(plain(), &[(2, 0), (2, 1), (5, 0)], 10);
    assert_eq!(connection.sender.timeouts(), 1);
    assert!(connection.repeated().iter().all(|seq| [2, 5, 9].contains(seq)), "{:?}", connection.repeated());
}

/// A long flow that loses one segment in fifty delivers everything by fast recovery alone.
#[test]
fn regular_losses_need_no_timeout() {
    let lost: Vec<(u32, usize)> = (1..95).map(|n| (n * 50, 0)).collect();
    for config in [plain(), rack(), Config::default(), Config::linux_2_6_26()] {
        let connection = run(config, &lost, 5_000);
        assert_eq!(connection.sender.timeouts(), 0);
        assert_eq!(connection.repeated().len(), 94);
    }
}
