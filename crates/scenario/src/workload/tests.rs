//! The flows that workloads start with, and the workloads that are refused.

use std::collections::BTreeSet;

use super::*;

const SECOND: Nanos = Nanos(1_000_000_000);

fn shuffle() -> Workload {
    Workload::Shuffle { bytes_per_flow: Bytes(1000) }
}

fn mix() -> MixSpec {
    MixSpec { duration: SECOND, offered_rate_per_server: Some(BitsPerSec(1_000_000)), size_divisor: 50 }
}

#[test]
fn the_shuffle_sends_from_every_server_to_every_other_once() {
    let flows = shuffle().initial_flows(75, 1).unwrap();
    assert_eq!(flows.len(), 5550);
    let pairs: BTreeSet<(u32, u32)> = flows.iter().map(|flow| (flow.from, flow.to)).collect();
    assert_eq!(pairs.len(), 5550);
    assert!(pairs.iter().all(|(from, to)| from != to && *from < 75 && *to < 75));
    assert!(flows.iter().all(|flow| flow.bytes == 1000 && flow.start_ns == 0));
}

#[test]
fn each_sender_has_an_order_of_its_own_and_the_seed_decides() {
    let order = |seed: u64, from: u32| -> Vec<u32> {
        let flows = shuffle().initial_flows(30, seed).unwrap();
        flows.iter().filter(|flow| flow.from == from).map(|flow| flow.to).collect()
    };
    assert_eq!(order(1, 0), order(1, 0));
    assert_ne!(order(1, 0), order(2, 0));
    let shifted: Vec<u32> = order(1, 0).iter().map(|to| (to + 1) % 30).collect();
    assert_ne!(order(1, 1), shifted);
    assert_ne!(order(1, 0), (1..30).collect::<Vec<_>>());
}

#[test]
fn a_permutation_gives_everyone_one_to_send_to_and_one_to_receive_from() {
    for shift in [1, 3, 6] {
        let flows = Workload::Permutation { bytes_per_flow: Bytes(5), shift }.initial_flows(7, 1).unwrap();
        assert!(flows.iter().zip(0..).all(|(flow, from)| flow.from == from && flow.to == (from + shift) % 7));
        assert_eq!(flows.iter().map(|flow| flow.to).collect::<BTreeSet<_>>().len(), 7);
    }
}

#[test]
fn one_to_one_flows_are_open_ended() {
    let workload = Workload::OneToOne { from: 1, to: 0, flows: 8, duration: SECOND };
    assert_eq!(workload.initial_flows(2, 1).unwrap(), [FlowSpec::bulk(1, 0, 0, 0); 8]);
}

#[test]
fn a_list_of_flows_is_sorted_by_its_starts_and_otherwise_kept() {
    let flows = vec![FlowSpec::bulk(3, 1, 10, 7), FlowSpec::bulk(2, 1, 20, 5), FlowSpec::bulk(0, 1, 30, 7)];
    let workload = Workload::Flows { flows: flows.clone() };
    assert_eq!(workload.initial_flows(4, 1).unwrap(), flows);
    let sorted = workload.open_loop_flows(&Servers::alike(4, BitsPerSec(1), 0), 1).unwrap();
    assert_eq!(sorted, [flows[1], flows[0], flows[2]]);
}

#[test]
fn what_is_known_before_the_run_needs_neither_links_nor_the_mix() {
    let servers = Servers::alike(5, BitsPerSec(1_000_000), 0);
    let shuffle = shuffle();
    assert_eq!(shuffle.open_loop_flows(&servers, 1), shuffle.initial_flows(5, 1));
    assert_eq!(Workload::Mix(mix()).open_loop_flows(&servers, 1), Err(WorkloadError::ClosedLoop));
    let query = QuerySpec { fan_in: 1, response: Bytes(1), rate: QueryRate::LoadPercent(1), jitter: Nanos(0) };
    let traffic = Workload::Traffic(TrafficSpec { duration: SECOND, background: None, query: Some(query) });
    assert_eq!(traffic.initial_flows(5, 1), Err(WorkloadError::NeedsRates));
    assert!(traffic.open_loop_flows(&servers, 1).is_ok());
}

#[test]
fn the_mix_begins_with_the_first_flows_of_each_server() {
    let flows = Workload::Mix(mix()).initial_flows(20, 9).unwrap();
    let mut rest = &flows[..];
    for me in 0..20 {
        let server = MixServer::new(&mix(), 20, me, 9).unwrap();
        let (mine, others) = rest.split_at(server.concurrency() as usize);
        let expected: Vec<(u32, u64)> = server.take(mine.len()).collect();
        assert_eq!(mine.iter().map(|flow| (flow.to, flow.bytes)).collect::<Vec<_>>(), expected);
        assert!(mine.iter().all(|flow| flow.from == me));
        rest = others;
    }
    assert!(rest.is_empty());
}

#[test]
fn flows_find_the_spines_that_they_name() {
    let flow = |spine| FlowSpec { spine, ..FlowSpec::bulk(0, 1, 9, 0) };
    let workload = Workload::Flows { flows: vec![flow(None), flow(Some(1))] };
    assert_eq!((workload.check_spines(2), workload.names_spines()), (Ok(()), true));
    let error = workload.check_spines(1).unwrap_err().to_string();
    assert_eq!(error, "flow 2 of the list: there is no spine number 1; the fabric's 1 spines are numbered from 0");
    let free = Workload::Flows { flows: vec![flow(None)] };
    assert_eq!((free.check_spines(0), free.names_spines()), (Ok(()), false));
    // Millions of them are kept.
    assert_eq!(size_of::<FlowSpec>(), 40);
}

#[test]
fn what_makes_no_sense_is_refused_by_name() {
    let one_to_one = |from, to, flows, duration| Workload::OneToOne { from, to, flows, duration };
    let permutation = |bytes, shift| Workload::Permutation { bytes_per_flow: Bytes(bytes), shift };
    let list = |flows: &[(u32, u32, u64)]| Workload::Flows {
        flows: flows.iter().map(|(from, to, bytes)| FlowSpec::bulk(*from, *to, *bytes, 0)).collect(),
    };
    for (workload, servers, message) in [
        (shuffle(), 0, "needs at least 2 servers; the fabric has 0"),
        (shuffle(), 1, "needs at least 2 servers; the fabric has 1"),
        (shuffle(), 103_680, "starts 10749438720 flows; allowed are 1 to 16777216"),
        (Workload::Shuffle { bytes_per_flow: Bytes(0) }, 4, "`bytes_per_flow` is 0"),
        (permutation(1, 0), 4, "`shift` is 0; with this fabric it is 1 to 3"),
        (permutation(1, 4), 4, "`shift` is 4"),
        (permutation(0, 1), 4, "`bytes_per_flow` is 0"),
        (one_to_one(0, 4, 1, SECOND), 4, "there is no server number 4; the fabric's 4 servers"),
        (one_to_one(9, 0, 1, SECOND), 4, "there is no server number 9"),
        (one_to_one(2, 2, 1, SECOND), 4, "server 2 cannot send to itself"),
        (one_to_one(0, 1, 0, SECOND), 4, "starts 0 flows"),
        (one_to_one(0, 1, u32::MAX, SECOND), 4, "starts 4294967295 flows"),
        (one_to_one(0, 1, 1, Nanos(0)), 4, "`duration` is 0"),
        (Workload::Mix(MixSpec { duration: Nanos(0), ..mix() }), 4, "`duration` is 0"),
        (
            Workload::Mix(MixSpec { offered_rate_per_server: Some(BitsPerSec(0)), ..mix() }),
            4,
            "`offered_rate_per_server` is 0",
        ),
        (Workload::Mix(MixSpec { size_divisor: 0, ..mix() }), 4, "`size_divisor` is 0"),
        (list(&[]), 4, "starts 0 flows"),
        (list(&[(0, 1, 1), (2, 2, 1)]), 4, "flow 2 of the list: server 2 cannot send to itself"),
        (list(&[(0, 4, 1)]), 4, "flow 1 of the list: there is no server number 4"),
        (list(&[(0, 1, 0)]), 4, "flow 1 of the list: `bytes` is 0"),
    ] {
        let error = workload.initial_flows(servers, 1).unwrap_err().to_string();
        assert!(error.contains(message), "wanted `{message}`, got `{error}`");
    }
}

#[test]
fn plans_write_workloads_with_units_and_no_unknown_keys() {
    let read = |text: &str| toml::from_str::<Workload>(text).map_err(|error| error.message().to_owned());
    assert_eq!(read("kind = \"shuffle\"\nbytes_per_flow = \"1 kB\""), Ok(shuffle()));
    let text = "kind = \"mix\"\nduration = \"1 s\"\noffered_rate_per_server = \"1 Mbit/s\"\nsize_divisor = 50";
    assert_eq!(read(text), Ok(Workload::Mix(mix())));
    let unpaced = "kind = \"mix\"\nduration = \"1 s\"\nsize_divisor = 50";
    assert_eq!(read(unpaced), Ok(Workload::Mix(MixSpec { offered_rate_per_server: None, ..mix() })));
    let answer = FlowSpec { class: FlowClass::Query, request: Some(5), ..FlowSpec::bulk(0, 1, 9, 0) };
    let text = "kind = \"flows\"\n[[flows]]\nfrom = 0\nto = 1\nbytes = 9\nstart_ns = 0\nclass = \"query\"\nrequest = 5\n\
                [[flows]]\nfrom = 1\nto = 0\nbytes = 8\nstart_ns = 3";
    assert_eq!(read(text), Ok(Workload::Flows { flows: vec![answer, FlowSpec::bulk(1, 0, 8, 3)] }));
    let with_units = text.replace("bytes = 9", "bytes = \"9 B\"").replace("start_ns = 3", "start_ns = \"3 ns\"");
    assert_eq!(read(&with_units), read(text));
    let load = |load: &str| {
        let background =
            format!("{{ sizes = {{ table = [[\"1 kB\", \"50%\"], [\"1 MB\", 1.0]] }}, load_percent = {load} }}");
        let query = format!("{{ fan_in = 2, response = \"1 kB\", rate = {{ load-percent = {load} }} }}");
        read(&format!("kind = \"traffic\"\nduration = \"1 s\"\nbackground = {background}\nquery = {query}"))
    };
    assert!(load("80").is_ok());
    assert_eq!(load("\"80%\""), load("80"));
    assert!(load("0.8").unwrap_err().contains("a percentage, `0.8%`, or a share, `80%`"), "{:?}", load("0.8"));
    assert!(load("\"80\"").unwrap_err().ends_with("a percentage, `80%`"));
    for (text, message) in [
        ("kind = \"shuffle\"\nbytes_per_flow = \"1 kB\"\nshift = 1", "unknown field `shift`"),
        (
            "kind = \"mix\"\nduration = \"1 s\"\noffered_rate_per_server = \"1 Mbit/s\"\nsize_divisor = 1\nx = 1",
            "unknown field `x`",
        ),
        ("kind = \"storm\"", "unknown variant `storm`"),
        ("kind = \"flows\"\n[[flows]]\nfrom = 0\nto = 1\nbytes = 9\nstart_ns = 0\nleaf = 3", "unknown field `leaf`"),
        ("kind = \"shuffle\"", "missing field `bytes_per_flow`"),
        ("kind = \"shuffle\"\nbytes_per_flow = \"1\"", "`1` is not a size; write for example `4 MiB`"),
    ] {
        let error = read(text).unwrap_err();
        assert!(error.contains(message), "wanted `{message}`, got `{error}`");
    }
}
