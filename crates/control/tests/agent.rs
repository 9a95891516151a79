//! The agent step by step: what it sends, installs, releases and drops, and what it does not believe.

mod bench;

use std::net::{Ipv4Addr, SocketAddrV4};

use bench::crowd::{Crowd, DEAD, Server, WELL};
use bench::*;
use weft_control::address::Mapping;
use weft_control::agent::{Bounds, Config, DropReason, Event, IgnoreReason, Input, Output};
use weft_control::{Machine, NS_PER_MS, NS_PER_S};
use weft_wire::directory::{Entry, Key, Kind, Message, Path, Status};

fn release(frame: &[u8]) -> Output {
    Output::Release { aa: AA, held: frame.to_vec() }
}

#[test]
fn a_miss_asks_two_servers_and_the_first_answer_releases_the_frames_in_order() {
    let mut bench = Bench::new(config(3));
    assert_eq!(bench.miss(AA, b"one"), []);
    assert_eq!(bench.miss(AA, b"two"), []);
    let questions = bench.ask();
    assert_eq!(questions.len(), 2, "two servers");
    assert_ne!(questions[0].0, questions[1].0);
    assert_eq!(questions[0].1, questions[1].1, "one request");
    assert_eq!(questions[0].1.entries, [Entry::question(AA, 0)], "both misses are one question");
    let done = bench.answer(&questions[1], Status::Ok, mapping(4, 9));
    let install = Output::Install { aa: AA, mapping: mapping(4, 9) };
    assert_eq!(done, [install, release(b"one"), release(b"two")]);
    assert_eq!(bench.answer(&questions[0], Status::Ok, mapping(4, 9)), []);
    assert_eq!(bench.ignored(IgnoreReason::NothingNew), 1);
}

#[test]
fn misses_within_100_us_share_datagrams_of_forty() {
    let mut bench = Bench::new(config(1));
    for k in 0..39 {
        bench.now_ns += 1000;
        assert_eq!(bench.miss(Ipv4Addr::new(20, 0, 1, k), b"frame"), []);
    }
    let full = sent(&bench.miss(Ipv4Addr::new(20, 0, 1, 39), b"frame"));
    assert_eq!((full.len(), full[0].1.entries.len()), (1, 40), "a full datagram does not wait");
    bench.miss(AA, b"frame");
    let began_ns = bench.now_ns;
    assert_eq!(bench.agent.next_deadline_ns(), Some(began_ns + 100_000));
}

#[test]
fn a_late_frame_of_a_known_aa_is_released_at_once_and_the_mapping_installed_again() {
    let mut bench = Bench::new(config(1));
    bench.miss(AA, b"one");
    let questions = bench.ask();
    bench.answer(&questions[0], Status::Ok, mapping(4, 9));
    let done = bench.miss(AA, b"late");
    assert_eq!(done, [Output::Install { aa: AA, mapping: mapping(4, 9) }, release(b"late")]);
}

#[test]
fn retries_double_go_elsewhere_and_end_after_two_seconds() {
    let mut bench = Bench::new(config(4));
    bench.miss(AA, b"one");
    let mut asked = Vec::new();
    let mut times_ms = Vec::new();
    let mut dropped = Vec::new();
    while let Some(at_ns) = bench.agent.next_deadline_ns().filter(|at_ns| *at_ns < 2100 * NS_PER_MS) {
        let outputs = bench.run_to(at_ns);
        let servers: Vec<_> = sent(&outputs).iter().map(|(to, _)| *to).collect();
        if !servers.is_empty() {
            times_ms.push(at_ns / NS_PER_MS);
            asked.push(servers);
        }
        dropped.extend(outputs.into_iter().filter(|output| !matches!(output, Output::Send { .. })));
    }
    assert_eq!(times_ms, [0, 20, 60, 140, 300, 620, 1260]);
    for pair in asked.windows(2) {
        assert!(pair[0].iter().all(|server| !pair[1].contains(server)), "a retry goes to other servers: {pair:?}");
    }
    assert_eq!(dropped, [Output::Drop { aa: AA, reason: DropReason::NoAnswer }]);
    assert_eq!(bench.miss(AA, b"two"), [Output::Drop { aa: AA, reason: DropReason::NoAnswer }]);
    bench.run_to(2600 * NS_PER_MS);
    assert_eq!(bench.miss(AA, b"three"), [], "after the negative time it is asked for anew");
}

#[test]
fn unknown_and_refused_drop_the_frames_and_are_believed_for_half_a_second() {
    for (status, reason) in [(Status::Unknown, DropReason::Unknown), (Status::Refused, DropReason::Refused)] {
        let mut bench = Bench::new(config(1));
        bench.miss(AA, b"one");
        let questions = bench.ask();
        let gone = Output::Drop { aa: AA, reason };
        let mut outputs = bench.answer(&questions[0], status, mapping(0, 0));
        assert_eq!(outputs.pop().as_ref(), Some(&gone));
        let refused = status == Status::Refused;
        assert_eq!(outputs == [Output::Refuse { aa: AA }], refused, "the data path need not ask again");
        assert_eq!(bench.miss(AA, b"two"), [gone]);
        let expired = bench.run_to(bench.now_ns + 500 * NS_PER_MS);
        assert_eq!(expired == [Output::Remove { aa: AA }], refused);
        assert_eq!(bench.miss(AA, b"three"), []);
        let questions = bench.ask();
        let done = bench.answer(&questions[0], Status::Ok, mapping(4, 9));
        assert_eq!(done[1..], [release(b"three")]);
    }
}

/// An agent that has `mapping(4, 9)` of `AA`, and the question that brought it.
fn with_mapping(servers: u8) -> (Bench, (SocketAddrV4, Message)) {
    let mut bench = Bench::new(config(servers));
    bench.miss(AA, b"one");
    let question = bench.ask().remove(0);
    bench.answer(&question, Status::Ok, mapping(4, 9));
    (bench, question)
}

#[test]
fn a_mapping_is_confirmed_before_its_lifetime_ends_and_stays_while_nobody_answers() {
    let (mut bench, _) = with_mapping(1);
    let at_ns = bench.agent.next_deadline_ns().unwrap();
    assert!((225 * NS_PER_S..=271 * NS_PER_S).contains(&at_ns), "{at_ns}");
    bench.run_to(at_ns);
    let question = bench.ask().remove(0);
    assert_eq!(question.1.entries, [Entry::question(AA, 9)]);
    assert_eq!(question.1.revision, 9, "not older than what was seen");
    let later_ns = at_ns + 100 * NS_PER_S;
    let retries = sent(&bench.run_to(later_ns));
    assert!((15..25).contains(&retries.len()), "every 10 s in the end: {}", retries.len());
    assert_eq!(bench.agent.mappings().count(), 1, "a silent directory cuts nothing");
    let late = bench.answer(retries.first().unwrap(), Status::Ok, mapping(4, 9));
    assert_eq!((late, bench.ignored(IgnoreReason::WrongRequest)), (vec![], 1), "forgotten after 2 s");
    bench.run_to(bench.agent.next_deadline_ns().unwrap());
    let question = bench.ask().remove(0);
    assert_eq!(bench.answer(&question, Status::Ok, mapping(4, 9)), []);
    assert_eq!(bench.agent.counters().events.get(Event::Confirmed), 1);
    assert!(bench.agent.next_deadline_ns().unwrap() > later_ns + 200 * NS_PER_S);
}

#[test]
fn a_confirmation_may_bring_a_newer_mapping_or_take_it_away() {
    for (status, answer, expected) in [
        (Status::Ok, mapping(5, 10), Output::Install { aa: AA, mapping: mapping(5, 10) }),
        (Status::Unknown, mapping(0, 10), Output::Remove { aa: AA }),
        (Status::Refused, mapping(0, 0), Output::Refuse { aa: AA }),
    ] {
        let (mut bench, _) = with_mapping(1);
        bench.run_to(bench.agent.next_deadline_ns().unwrap());
        let question = bench.ask().remove(0);
        assert_eq!(bench.answer(&question, status, answer), [expected]);
    }
}

#[test]
fn an_older_mapping_is_never_taken() {
    let (mut bench, _) = with_mapping(2);
    bench.run_to(bench.agent.next_deadline_ns().unwrap());
    let question = bench.ask().remove(0);
    assert_eq!(bench.answer(&question, Status::Ok, mapping(3, 8)), []);
    assert_eq!(bench.answer(&question, Status::Unknown, mapping(0, 8)), []);
    assert_eq!(bench.ignored(IgnoreReason::Older), 2);
    assert_eq!(bench.agent.mappings().collect::<Vec<_>>(), [(AA, mapping(4, 9))]);
}

#[test]
fn an_answer_below_a_revision_seen_since_does_not_fill_an_empty_entry() {
    let mut bench = Bench::new(config(2));
    bench.miss(AA, b"one");
    let questions = bench.ask();
    let other = Ipv4Addr::new(20, 0, 0, 6);
    bench.miss(other, b"x");
    let newer = bench.ask();
    bench.answer(&newer[0], Status::Ok, mapping(4, 20));
    assert_eq!(bench.answer(&questions[0], Status::Ok, mapping(3, 10)), []);
    assert_eq!(bench.ignored(IgnoreReason::Behind), 1);
}

#[test]
fn corrections_are_taken_when_newer_and_cached() {
    let (mut bench, _) = with_mapping(2);
    let correct = |aa, status, mapping: Mapping| Message {
        kind: Kind::Correct,
        service: 0,
        request_id: 0,
        revision: mapping.version,
        key_id: 1,
        entries: vec![answer(aa, status, mapping)],
    };
    assert_eq!(bench.datagram(server(2), &correct(AA, Status::Ok, mapping(5, 9))), []);
    let other = Ipv4Addr::new(20, 0, 0, 6);
    assert_eq!(bench.datagram(server(2), &correct(other, Status::Ok, mapping(5, 12))), [], "not cached");
    let install = Output::Install { aa: AA, mapping: mapping(5, 12) };
    assert_eq!(bench.datagram(server(2), &correct(AA, Status::Ok, mapping(5, 12))), [install]);
    let remove = Output::Remove { aa: AA };
    assert_eq!(bench.datagram(server(1), &correct(AA, Status::Unknown, mapping(0, 13))), [remove]);
    assert_eq!(bench.agent.counters().events.get(Event::Corrected), 2);
}

#[test]
fn what_cannot_be_trusted_is_counted_and_changes_nothing() {
    let mut bench = Bench::new(config(3));
    bench.miss(AA, b"one");
    let questions = bench.ask();
    let (asked, question) = questions[0].clone();
    let good = Message { kind: Kind::Answer, entries: vec![answer(AA, Status::Ok, mapping(6, 9))], ..question.clone() };
    let not_asked = (1..=3).map(server).find(|s| questions.iter().all(|(to, _)| to != s)).unwrap();
    let stranger = SocketAddrV4::new(Ipv4Addr::new(10, 9, 9, 9), 5300);
    let moved = answer(Ipv4Addr::new(20, 0, 0, 7), Status::Ok, mapping(6, 9));
    for (from, message, reason) in [
        (stranger, good.clone(), IgnoreReason::WrongSource),
        (not_asked, good.clone(), IgnoreReason::WrongRequest),
        (asked, Message { request_id: question.request_id ^ 1, ..good.clone() }, IgnoreReason::WrongRequest),
        (asked, Message { entries: vec![moved], ..good.clone() }, IgnoreReason::WrongEntries),
        (asked, Message { service: 5, ..good.clone() }, IgnoreReason::WrongService),
        (asked, Message { kind: Kind::Ask, ..good.clone() }, IgnoreReason::WrongKind),
        (
            asked,
            Message { entries: vec![answer(AA, Status::Other(9), mapping(6, 9))], ..good.clone() },
            IgnoreReason::Meaningless,
        ),
        (
            asked,
            Message { entries: vec![answer(AA, Status::Behind, mapping(6, 9))], ..good.clone() },
            IgnoreReason::Behind,
        ),
        (
            asked,
            Message { entries: vec![answer(AA, Status::Overloaded, mapping(6, 9))], ..good.clone() },
            IgnoreReason::Overloaded,
        ),
    ] {
        let before = bench.ignored(reason);
        assert_eq!(bench.datagram(from, &message), [], "{reason:?}");
        assert_eq!(bench.ignored(reason), before + 1, "{reason:?}");
    }
    let path = Path { source: asked, destination: LOCAL };
    let forged = good.emit(&Key::from_bytes([8; 16]), &path);
    assert_eq!(bench.input(Input::Datagram { from: asked, bytes: &forged }), []);
    let replayed = good.emit(&key(), &Path { source: not_asked, destination: LOCAL });
    assert_eq!(bench.input(Input::Datagram { from: asked, bytes: &replayed }), []);
    assert_eq!(bench.ignored(IgnoreReason::BadTag), 2);
    assert_eq!(bench.input(Input::Datagram { from: asked, bytes: b"garbage" }), []);
    assert_eq!(bench.ignored(IgnoreReason::Malformed), 1);
    assert_eq!(bench.datagram(asked, &good).len(), 2, "the good one still works");
}

#[test]
fn frames_that_are_not_ours_or_too_long_do_not_ask() {
    let mut bench = Bench::new(config(1));
    let outside = Ipv4Addr::new(21, 0, 0, 1);
    assert_eq!(bench.miss(outside, b"x"), [Output::Drop { aa: outside, reason: DropReason::OutsideBlock }]);
    assert_eq!(bench.miss(OWN, b"x"), [Output::Drop { aa: OWN, reason: DropReason::OwnAa }]);
    let long = bench.input(Input::Miss { aa: AA, packet_bytes: 1501, held: b"long".to_vec() });
    assert_eq!(long, [Output::IcmpTooBig { held: b"long".to_vec(), mtu: 1500 }]);
    assert_eq!(bench.agent.counters().dropped.total(), 3);
    assert_eq!(bench.agent.next_deadline_ns(), None);
}

#[test]
fn the_cache_and_the_look_ups_are_bounded() {
    let bounds = Bounds { entries_max: 3, lookups_max: 2, ..Bounds::default() };
    let mut bench = Bench::new(Config { bounds, ..config(1) });
    let aa = |k| Ipv4Addr::new(20, 0, 1, k);
    for k in 1..=5 {
        bench.now_ns += NS_PER_MS;
        bench.miss(aa(k), b"x");
        let questions = bench.ask();
        let done = bench.answer(&questions[0], Status::Ok, mapping(1, u64::from(k)));
        assert_eq!(done.len(), 2, "installed and released");
    }
    assert_eq!(bench.agent.summary().mappings, 3);
    assert_eq!(bench.agent.counters().events.get(Event::Evicted), 2);
    bench.miss(aa(6), b"x");
    bench.miss(aa(7), b"x");
    assert_eq!(bench.miss(aa(8), b"x"), [Output::Drop { aa: aa(8), reason: DropReason::LookupsFull }]);
}

#[test]
fn mappings_found_at_start_serve_at_once_and_are_confirmed_soon() {
    let mut bench = Bench::new(config(1));
    bench.input(Input::Adopt { aa: AA, mapping: mapping(4, 0) });
    assert_eq!(bench.miss(AA, b"x")[1..], [release(b"x")]);
    let at_ns = bench.agent.next_deadline_ns().unwrap();
    assert!(at_ns < 2 * NS_PER_S);
    bench.run_to(at_ns);
    let question = bench.ask().remove(0);
    assert_eq!(question.1.entries, [Entry::question(AA, 0)]);
    let done = bench.answer(&question, Status::Ok, mapping(4, 9));
    assert_eq!(done, [Output::Install { aa: AA, mapping: mapping(4, 9) }], "the data path learns the version");
}

#[test]
fn a_version_found_at_start_holds_also_after_the_entry_made_room() {
    let bounds = Bounds { entries_max: 1, ..Bounds::default() };
    let mut bench = Bench::new(Config { bounds, ..config(1) });
    bench.input(Input::Adopt { aa: AA, mapping: mapping(4, 9) });
    let other = Ipv4Addr::new(20, 0, 0, 6);
    assert_eq!(bench.miss(other, b"x"), [Output::Remove { aa: AA }]);
    let question = bench.ask().remove(0);
    bench.answer(&question, Status::Unknown, mapping(0, 0));
    bench.run_to(bench.now_ns + NS_PER_S);
    bench.miss(AA, b"one");
    let question = bench.ask().remove(0);
    assert_eq!(question.1.entries, [Entry::question(AA, 9)]);
    assert_eq!(bench.answer(&question, Status::Ok, mapping(3, 8)), [], "a server that lags");
    assert_eq!(bench.answer(&question, Status::Unknown, mapping(0, 8)), []);
    assert_eq!(bench.ignored(IgnoreReason::Older), 2);
    assert_eq!(bench.answer(&question, Status::Ok, mapping(4, 9))[1..], [release(b"one")]);
}

/// An answer or correction that says of `AA` what is said of one that never was.
fn hidden(kind: Kind, question: &Message, revision: u64) -> Message {
    let nothing = Entry { status: Status::Unknown, ..Entry::question(AA, 0) };
    Message { kind, revision, entries: vec![nothing], ..question.clone() }
}

#[test]
fn a_mapping_that_the_policy_hides_is_given_up_at_the_next_question_or_correction() {
    let (mut bench, _) = with_mapping(1);
    bench.run_to(bench.agent.next_deadline_ns().unwrap());
    let (server, question) = bench.ask().remove(0);
    assert_eq!(bench.datagram(server, &hidden(Kind::Answer, &question, 8)), [], "older than what was seen");
    assert_eq!(bench.datagram(server, &hidden(Kind::Answer, &question, 9)), [Output::Remove { aa: AA }]);

    let (mut bench, (server, question)) = with_mapping(1);
    assert_eq!(bench.datagram(server, &hidden(Kind::Correct, &question, 8)), []);
    assert_eq!(bench.ignored(IgnoreReason::Older), 1);
    assert_eq!(bench.datagram(server, &hidden(Kind::Correct, &question, 10)), [Output::Remove { aa: AA }]);
}

#[test]
fn a_mapping_found_at_start_is_not_given_up_to_a_server_that_lags() {
    let mut bench = Bench::new(config(1));
    bench.input(Input::Adopt { aa: AA, mapping: mapping(4, 9) });
    bench.run_to(bench.agent.next_deadline_ns().unwrap());
    let (server, question) = bench.ask().remove(0);
    assert_eq!(bench.datagram(server, &hidden(Kind::Answer, &question, 8)), []);
    assert_eq!(bench.ignored(IgnoreReason::Older), 1);
    assert_eq!(bench.datagram(server, &hidden(Kind::Answer, &question, 9)), [Output::Remove { aa: AA }]);
}

#[test]
fn a_correction_with_another_key_or_from_elsewhere_changes_nothing() {
    let (mut bench, _) = with_mapping(2);
    let good = Message {
        kind: Kind::Correct,
        service: 0,
        request_id: 0,
        revision: 12,
        key_id: 1,
        entries: vec![answer(AA, Status::Ok, mapping(5, 12))],
    };
    let path = Path { source: server(2), destination: LOCAL };
    for (from, bytes, reason) in [
        (server(2), good.emit(&Key::from_bytes([8; 16]), &path), IgnoreReason::BadTag),
        (server(1), good.emit(&key(), &path), IgnoreReason::BadTag),
        (server(3), good.emit(&key(), &Path { source: server(3), ..path }), IgnoreReason::WrongSource),
        (server(2), Message { service: 1, ..good.clone() }.emit(&key(), &path), IgnoreReason::WrongService),
    ] {
        let before = bench.ignored(reason);
        assert_eq!(bench.input(Input::Datagram { from, bytes: &bytes }), []);
        assert_eq!(bench.ignored(reason), before + 1, "{reason:?}");
    }
    assert_eq!(bench.agent.mappings().collect::<Vec<_>>(), [(AA, mapping(4, 9))]);
    assert_eq!(bench.datagram(server(2), &good).len(), 1, "the good one works");
    assert_eq!(bench.datagram(server(2), &good), [], "once");
}

/// Questions a hundred in a second, each with a datagram of its own.
const EVERY_NS: u64 = 10 * NS_PER_MS;
const QUESTIONS: u32 = 2000;

#[test]
fn a_dead_server_among_three_costs_no_repeats_and_is_asked_now_and_then() {
    let mut crowd = Crowd::new(&[WELL, WELL, WELL]);
    crowd.ask(100, EVERY_NS);
    crowd.set(&[WELL, WELL, DEAD]);
    let cost = crowd.ask(QUESTIONS, EVERY_NS);
    assert_eq!((cost.answered, cost.given_up), (u64::from(QUESTIONS), 0));
    assert!(cost.total() <= 2 * u64::from(QUESTIONS), "{cost:?}");
    assert!(cost.datagrams[&server(3)] <= 20, "{cost:?}");
    crowd.set(&[WELL, WELL, WELL]);
    crowd.ask(1000, EVERY_NS);
    let back = crowd.ask(900, EVERY_NS);
    assert!(back.datagrams[&server(3)] >= 500, "it is asked again like the others: {back:?}");
}

/// Two datagrams for each question, and for repeats half of one for each answer, ten a second and 64 more; the last pair may
/// be one too many.
#[test]
fn repeats_are_bounded_by_answers_whether_servers_are_dead_or_only_late() {
    const LATE: Server = Server { after_ns: Some(30 * NS_PER_MS), loss_percent: 0 };
    let free = 64 + 10 * (u64::from(QUESTIONS) * EVERY_NS / NS_PER_S + 2) + 1;
    let mut crowd = Crowd::new(&[DEAD, DEAD, DEAD]);
    let cost = crowd.ask(QUESTIONS, EVERY_NS);
    assert_eq!((cost.answered, cost.given_up), (0, u64::from(QUESTIONS)));
    assert!(cost.total() <= 2 * u64::from(QUESTIONS) + free, "{cost:?}");
    crowd.set(&[WELL, WELL, WELL]);
    assert_eq!(crowd.ask(100, EVERY_NS).answered, 100, "silence is forgotten at the first answer");
    let cost = Crowd::new(&[LATE, LATE, LATE]).ask(QUESTIONS, EVERY_NS);
    assert_eq!((cost.answered, cost.given_up), (u64::from(QUESTIONS), 0));
    assert!(cost.total() <= 2 * u64::from(QUESTIONS) + u64::from(QUESTIONS) / 2 + free, "{cost:?}");
}

#[test]
fn with_a_tenth_lost_each_way_every_question_is_answered_in_time() {
    for server in [WELL, DEAD] {
        let lossy = Server { loss_percent: 10, ..WELL };
        let cost = Crowd::new(&[lossy, lossy, Server { loss_percent: 10, ..server }]).ask(QUESTIONS, EVERY_NS);
        assert_eq!((cost.answered, cost.given_up), (u64::from(QUESTIONS), 0), "{cost:?}");
    }
}
