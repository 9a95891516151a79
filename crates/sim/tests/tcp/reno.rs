//! Recovery without SACK, and timeouts: RFC 5681, RFC 6582, RFC 6298, RFC 3042.

use weft_sim::tcp::{Ack, Config, State};

use crate::channel::{MS, Scripted, US};
use crate::connection::{Connection, SEGMENT_PS};

fn newreno() -> Config {
    Config { sack: false, segments_per_ack: 1, ..Config::rfc_reno() }
}

fn run(config: Config, lost: &[(u32, usize)], segments: u32) -> Connection<Scripted> {
    Connection::new(config, Scripted::new(50 * US, lost), segments).run()
}

/// RFC 6298 5.4 to 5.6 on a flow of one segment: sent at 0.1 ms, and again after 1, 2 and 4 s.
#[test]
fn timeouts_double() {
    let connection = run(newreno(), &[(0, 0), (0, 1), (0, 2)], 1);
    let times_ps: Vec<u64> = connection.sent.iter().map(|sent| sent.0 - 100 * US).collect();
    assert_eq!(times_ps, [0, 1_000 * MS, 3_000 * MS, 7_000 * MS]);
    assert_eq!(connection.sender.timeouts(), 3);
}

/// RFC 5681 3.2 with limited transmit (RFC 3042): ten segments, the first lost. Two duplicate ACKs send 10 and 11, the
/// third repeats 0. The window is then half of 10, and grows again by one per window.
#[test]
fn three_duplicate_acks_repeat_the_segment() {
    let connection = run(newreno(), &[(0, 0)], 40);
    let order: Vec<u32> = connection.sent.iter().map(|sent| sent.1.seq).collect();
    assert_eq!(order[..13], [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 0]);
    assert_eq!(connection.sent[12].0, 200 * US + 3 * SEGMENT_PS, "at the third duplicate, from segment 3");
    assert_eq!((connection.repeated(), connection.sender.timeouts()), (vec![0], 0));
    assert_eq!(connection.sender.ssthresh(), Some(5));
    let in_recovery: Vec<_> = connection.windows.iter().filter(|window| window.2 == State::Recovery).collect();
    assert!(in_recovery.iter().all(|window| window.1 == 5));
}

/// RFC 6582 3.2 step 3: partial ACKs repair one segment per round trip, without a second halving.
#[test]
fn partial_acks_repair_one_segment_per_round_trip() {
    let connection = run(newreno(), &[(0, 0), (4, 0), (7, 0)], 60);
    assert_eq!((connection.repeated(), connection.sender.timeouts()), (vec![0, 4, 7], 0));
    assert_eq!(connection.sender.ssthresh(), Some(5));
    let times_ps: Vec<u64> = connection.sent.iter().filter(|sent| sent.1.retransmission).map(|sent| sent.0).collect();
    assert!(times_ps.windows(2).all(|pair| (100 * US..120 * US).contains(&(pair[1] - pair[0]))), "{times_ps:?}");
}

/// Three duplicates need three segments: with a window of 3 only the timer helps. The window is 1 then, and slow start
/// ends at 2 (RFC 5681 3.1).
#[test]
fn small_windows_wait_for_the_timer() {
    let config = Config { initial_window: 3, ..newreno() };
    let connection = run(config, &[(0, 0)], 3);
    assert_eq!((connection.repeated()[0], connection.sender.timeouts()), (0, 1));
    assert_eq!(connection.sender.ssthresh(), Some(2));
    assert_eq!(connection.sent[3].0, 100 * US + 1_000 * MS, "one RTO after the first segment, which never was ACKed");
}

/// A retransmission that is lost needs the timer. Its expiry does not halve again what recovery has halved.
#[test]
fn a_lost_retransmission_times_out() {
    let connection = run(newreno(), &[(0, 0), (0, 1)], 40);
    assert_eq!(connection.sender.timeouts(), 1);
    assert_eq!(connection.sender.ssthresh(), Some(5));
    assert!(connection.windows.iter().any(|window| window.1 == 1 && window.2 == State::Loss));
}

/// RFC 6582 section 4: the first eight of 32 are lost, and the fast retransmission. Slow start repeats 0, 1 and 2, 3 to 6
/// and then 7 to 14, of which all but 7 had arrived: their seven duplicate ACKs start no fast retransmission.
#[test]
fn duplicates_after_a_timeout_start_no_recovery() {
    let lost: Vec<(u32, usize)> = (0..8).map(|seq| (seq, 0)).chain([(0, 1)]).collect();
    let connection = run(Config { initial_window: 32, rto_min_ps: MS, ..newreno() }, &lost, 400);
    assert_eq!(connection.repeated(), [vec![0], (0..15).collect()].concat());
    assert_eq!(connection.sender.timeouts(), 1);
    let mut after_loss = connection.windows.iter().skip_while(|window| window.2 != State::Loss);
    assert!(after_loss.all(|window| window.2 != State::Recovery));
}

/// RFC 6298 section 3 (Karn) and 5.7: the ACK of a repeated segment is no measurement, so the back-off stays until one
/// of a new segment comes. Timestamps make it one.
#[test]
fn the_back_off_stays_until_something_is_measured() {
    for (timestamps, rto_s) in [(false, 2), (true, 1)] {
        let config = Config { timestamps, ..newreno() };
        let mut sender = run(config.clone(), &[(0, 0)], 1).sender;
        assert_eq!(sender.rto(&config), rto_s * 1_000 * MS, "timestamps: {timestamps}");
        sender.add_segments(1);
        sender.poll(5_000 * MS, &config);
        sender.on_ack(5_001 * MS, &Ack { cumulative: 2, ece: false, sack: None }, &config);
        assert_eq!(sender.rto(&config), 1_000 * MS);
    }
}

/// Slow start after a timeout doubles up to the threshold, then one per round trip: RFC 5681 3.1.
#[test]
fn the_window_after_a_timeout() {
    let config = Config { initial_window: 16, ..newreno() };
    let everything: Vec<(u32, usize)> = (0..16).map(|seq| (seq, 0)).collect();
    let connection = run(config, &everything, 200);
    assert_eq!(connection.sender.timeouts(), 1);
    assert_eq!(connection.repeated(), (0..16).collect::<Vec<_>>());
    assert_eq!(connection.sender.ssthresh(), Some(8));
    let after: Vec<u32> =
        connection.windows.iter().skip_while(|window| window.2 != State::Loss).map(|window| window.1).collect();
    let mut growth = after.clone();
    growth.dedup();
    assert_eq!(growth[..8], [1, 2, 3, 4, 5, 6, 7, 8]);
    // 16 repetitions and 184 new segments; 7 raise the window to 8, then 8 + 9 + .. + 20 = 182 raise it to 21.
    assert_eq!(connection.sender.cwnd(), 21);
}
