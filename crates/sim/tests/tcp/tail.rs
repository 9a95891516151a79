//! Losses at the end of a flow: tail loss probes (RFC 8985 section 7).

use weft_scenario::engine::CongestionControl;
use weft_sim::tcp::{Ack, Config, Expiry, LossDetection, SackBlocks, Sender, State, Transmit};

use crate::channel::{MS, Scripted, US};
use crate::connection::Connection;

fn linux() -> Config {
    Config { segments_per_ack: 1, ..Config::default() }
}

fn ack(cumulative: u32) -> Ack {
    Ack { cumulative, ece: false, sack: None }
}

fn run(config: Config, lost: &[(u32, usize)], segments: u32) -> Connection<Scripted> {
    Connection::new(config, Scripted::new(50 * US, lost), segments).run()
}

/// The last two of ten are lost. The ACK of the eighth comes at 208.4 us; after two round trips of 100 us and the margin
/// of 8 ms the probe repeats the last. Its SACK shows the other loss.
#[test]
fn a_probe_repairs_the_tail() {
    let connection = run(linux(), &[(8, 0), (9, 0)], 10);
    assert_eq!((connection.repeated(), connection.sender.timeouts()), (vec![9, 8], 0));
    assert_eq!(connection.sent[10].0, 208 * US + 400_000 + 200 * US + 8 * MS);
    assert_eq!(connection.sent[11].0, connection.sent[10].0 + 100 * US);
}

#[test]
fn without_probes_the_timer_repairs_it() {
    let connection = run(Config { tail_loss_probe: false, ..linux() }, &[(8, 0), (9, 0)], 10);
    assert_eq!((connection.repeated(), connection.sender.timeouts()), (vec![8, 9], 1));
    // Linux: the smoothed round-trip time and 200 ms.
    assert_eq!(connection.sent[10].0, 208 * US + 400_000 + 100 * US + 200 * MS);
}

/// A single segment outstanding may wait for its delayed ACK, so its probe comes no earlier than the timeout.
#[test]
fn a_single_segment_waits_for_the_timer() {
    let connection = run(linux(), &[(9, 0)], 10);
    assert_eq!((connection.repeated(), connection.sender.timeouts()), (vec![9], 1));
}

/// RFC 8985 7.4: of ten segments the last two are not ACKed until the probe repeats the last. If both copies of it
/// arrive, the second is reported; if not, the probe repaired a loss, and the window answers for it with the next ACK.
#[test]
fn a_loss_that_the_probe_repaired_reduces_the_window() {
    for (both_arrive, want) in [(true, None), (false, Some(9))] {
        let config = Config { congestion_control: CongestionControl::Reno, ..linux() };
        let mut sender = Sender::new(&config, 10);
        sender.connect(0, &config);
        sender.opened(100 * US, &config);
        while sender.poll(100 * US, &config).is_some() {}
        sender.on_ack(200 * US, &ack(8), &config);
        let due_ps = sender.deadline().expect("a probe");
        assert_eq!(due_ps, 200 * US + 200 * US + 8 * MS);
        assert_eq!(sender.on_deadline(due_ps, &config), Expiry::Poll);
        // The NIC is busy for 10 us; the retransmission timer starts with the probe.
        let sent_ps = due_ps + 10 * US;
        assert_eq!(sender.poll(sent_ps, &config), Some(Transmit { seq: 9, retransmission: true }));
        assert_eq!(sender.poll(sent_ps, &config), None);
        assert_eq!(sender.deadline(), Some(sent_ps + sender.rto(&config)));
        sender.on_ack(due_ps + 100 * US, &ack(10), &config);
        if both_arrive {
            let sack = Some(SackBlocks { ranges: [(9, 10), (0, 0), (0, 0)] });
            sender.on_ack(due_ps + 101 * US, &Ack { sack, ..ack(10) }, &config);
        }
        assert_eq!((sender.ssthresh(), sender.cwnd()), (None, 18));
        sender.add_segments(1);
        assert!(sender.poll(30 * MS, &config).is_some());
        sender.on_ack(31 * MS, &ack(11), &config);
        assert_eq!(sender.ssthresh(), want);
        assert_eq!(sender.state(), State::Open);
    }
}

/// A SACK ends the wait for a probe, and the retransmission timer counts from when the oldest segment was sent, not from
/// the SACK: 0.1 ms after the start, plus the round trip and 200 ms.
#[test]
fn a_sack_does_not_postpone_the_timer() {
    let config = Config { loss_detection: LossDetection::DuplicateThreshold, ..linux() };
    let connection = run(config, &[(0, 0)], 2);
    assert_eq!((connection.repeated(), connection.sender.timeouts()), (vec![0], 1));
    assert_eq!(connection.sent[2].0, 100 * US + 100 * US + 200 * MS);
}

/// The whole flight is lost: a probe, then the timer.
#[test]
fn a_lost_probe_leaves_it_to_the_timer() {
    let everything: Vec<(u32, usize)> = (0..5).map(|seq| (seq, 0)).chain([(4, 1)]).collect();
    let connection = run(linux(), &everything, 5);
    assert_eq!((connection.repeated(), connection.sender.timeouts()), (vec![4, 0, 1, 2, 3, 4], 1));
}
