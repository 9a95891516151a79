//! The flows of services, and the services that are refused.

use std::collections::BTreeSet;

use super::*;
use crate::workload::Workload;

const fn seconds(seconds: u64) -> Nanos {
    Nanos(seconds * 1_000_000_000)
}

const RAMP: RampSpec = RampSpec { begin: seconds(60), every: seconds(2), bytes_per_flow: Bytes(8_000) };
const BURSTS: BurstSpec = BurstSpec {
    begin: seconds(5),
    every: seconds(1),
    bursts: 4,
    first_flows: 10,
    more_flows: 5,
    min_bytes: Bytes(1_000),
    max_bytes: Bytes(20_000),
};
const FLOOD: FloodSpec = FloodSpec { begin: seconds(5), end: seconds(9), rate_per_server: BitsPerSec(1_000), to: 7 };

const STORM: StormSpec = StormSpec { begin: seconds(5), end: seconds(9), rate: BitsPerSec(1_000), from: 6 };

fn service(servers: impl IntoIterator<Item = u32>, role: ServiceRole) -> ServiceSpec {
    ServiceSpec { servers: servers.into_iter().collect(), role, datagram_limit: None }
}

fn spec(services: impl IntoIterator<Item = (&'static str, ServiceSpec)>) -> ServicesSpec {
    let service = services.into_iter().map(|(name, service)| (name.to_owned(), service)).collect();
    ServicesSpec { duration: seconds(200), service }
}

fn one_and(two: ServiceSpec) -> ServicesSpec {
    spec([("one", service(0..4, ServiceRole::LongFlows)), ("two", two)])
}

fn flows(spec: &ServicesSpec) -> Vec<FlowSpec> {
    Workload::Services(spec.clone()).initial_flows(20, 1).unwrap()
}

#[test]
fn long_flows_pair_servers_and_never_end() {
    let flows = flows(&spec([("one", service([8, 3, 5, 1], ServiceRole::LongFlows))]));
    let expected = [(8, 5), (3, 1), (5, 8), (1, 3)].map(|(from, to)| FlowSpec::bulk(from, to, 0, 0));
    assert_eq!(flows, expected);
}

#[test]
fn an_odd_number_of_servers_sends_and_receives_once_each() {
    let flows = flows(&spec([("two", service(0..19, ServiceRole::Ramp(RAMP)))]));
    assert_eq!(flows.iter().map(|flow| flow.to).collect::<BTreeSet<_>>().len(), 19);
    assert!(flows.iter().all(|flow| flow.from != flow.to && flow.bytes == 8_000));
    let starts: Vec<u64> = flows.iter().map(|flow| flow.start_ns / 1_000_000_000).collect();
    assert_eq!(starts, (0..19).map(|place| 60 + 2 * place).collect::<Vec<_>>());
}

#[test]
fn bursts_grow_and_stay_inside_their_service() {
    let spec = one_and(service(4..12, ServiceRole::Bursts(BURSTS)));
    let flows = flows(&spec);
    let mice: Vec<&FlowSpec> = flows.iter().filter(|flow| flow.bytes > 0).collect();
    let at = |second: u64| mice.iter().filter(|flow| flow.start_ns == second * 1_000_000_000).count();
    assert_eq!([5, 6, 7, 8].map(at), [10, 15, 20, 25]);
    assert_eq!(mice.len() as u64, BURSTS.flow_count());
    assert!(mice.iter().all(|flow| flow.from != flow.to && (1_000..=20_000).contains(&flow.bytes)));
    assert!(mice.iter().all(|flow| (4..12).contains(&flow.from) && (4..12).contains(&flow.to)));
    let with_seed = |seed| Workload::Services(spec.clone()).initial_flows(20, seed).unwrap();
    assert_eq!(with_seed(1), with_seed(1));
    assert_ne!(with_seed(1), with_seed(2));
}

#[test]
fn a_flood_has_streams_and_no_flows() {
    let limit = DatagramLimit { rate: BitsPerSec(500), burst: Bytes(3_000) };
    let two = ServiceSpec { datagram_limit: Some(limit), ..service(5..8, ServiceRole::Flood(FLOOD)) };
    let spec = one_and(two);
    assert_eq!(flows(&spec).len(), 4);
    let (start_ns, end_ns) = (FLOOD.begin.0, FLOOD.end.0);
    let stream = |from| DatagramStream { from, to: 7, rate: BitsPerSec(1_000), start_ns, end_ns, limit: Some(limit) };
    assert_eq!(spec.datagrams(), [stream(5), stream(6)]);
    assert_eq!((spec.begin_of_others(), spec.is_steady(3), spec.is_steady(5)), (FLOOD.begin, true, false));
    assert_eq!(spec.members(), [("one".to_owned(), vec![0, 1, 2, 3]), ("two".to_owned(), vec![5, 6, 7])]);
}

#[test]
fn a_storm_has_neither_flows_nor_streams() {
    let spec = one_and(service([6, 7], ServiceRole::Storm(STORM)));
    assert_eq!((flows(&spec).len(), spec.datagrams().len()), (4, 0));
    assert_eq!(spec.storms(), [Storm { spec: STORM, members: vec![6, 7] }]);
    assert_eq!((spec.begin_of_others(), spec.is_steady(6)), (STORM.begin, false));
}

#[test]
fn a_storm_fits_the_services_of_its_fabric_or_is_refused() {
    let fabric = |text: &str| crate::topology::from_yaml(text, "f.yaml").unwrap();
    let text = include_str!("../../../../../fabrics/vl2-services.yaml");
    let storm = |servers: &[u32], from| {
        let role = ServiceRole::Storm(StormSpec { from, ..STORM });
        spec([("two", service(servers.iter().copied(), role))])
    };
    assert_eq!(storm(&[5, 4, 1, 0], 0).check_fabric(&fabric(text)), Ok(()));
    assert_eq!(one_and(service([5, 6, 7], ServiceRole::Flood(FLOOD))).check_fabric(&fabric(text)), Ok(()));
    let (deaf, _) = text.split_once("broadcast: {").unwrap();
    for (text, servers, message) in [
        (deaf, &[0, 1, 4, 5][..], "a storm needs `broadcast` in its fabric, and fabric `vl2-services` has none"),
        (text, &[0, 1, 4], "server 5 is of the sender's service in the fabric; `servers` must be all"),
        (text, &[0, 1, 2, 4, 5], "server 2 is not of the sender's service in the fabric; `servers` must be all"),
    ] {
        let error = storm(servers, 0).check_fabric(&fabric(text)).unwrap_err().to_string();
        assert!(error.starts_with(&format!("service `two`: {message}")), "wanted `{message}`, got `{error}`");
    }
    assert!(storm(&[50, 51], 50).check_fabric(&fabric(text)).is_err(), "there are eight servers");
}

#[test]
fn what_makes_no_sense_is_refused_with_its_service() {
    let two = |role| one_and(service([5, 6, 7], role));
    let limited =
        |limit| one_and(ServiceSpec { datagram_limit: Some(limit), ..service([5, 6, 7], ServiceRole::Flood(FLOOD)) });
    let limit = DatagramLimit { rate: BitsPerSec(500), burst: Bytes(3_000) };
    for (spec, message) in [
        (spec([]), "`service` must name something"),
        (ServicesSpec { duration: Nanos(0), ..one_and(service([5, 6], ServiceRole::LongFlows)) }, "`duration` is 0"),
        (
            one_and(service([], ServiceRole::LongFlows)),
            "service `two`: a service needs at least 2 servers, which send to each other; `servers` names 0",
        ),
        (one_and(service([5], ServiceRole::LongFlows)), "service `two`: a service needs at least 2 servers"),
        (one_and(service([5, 20], ServiceRole::LongFlows)), "service `two`: there is no server number 20"),
        (one_and(service([5, 3], ServiceRole::LongFlows)), "service `two`: server 3 is in service `one` already"),
        (one_and(service([5, 6, 5], ServiceRole::LongFlows)), "service `two`: server 5 is in service `two` already"),
        (two(ServiceRole::Ramp(RampSpec { bytes_per_flow: Bytes(0), ..RAMP })), "service `two`: `bytes_per_flow` is 0"),
        (
            two(ServiceRole::Ramp(RampSpec { every: seconds(70), ..RAMP })),
            "service `two`: something is to happen at 200 s",
        ),
        (two(ServiceRole::Bursts(BurstSpec { min_bytes: Bytes(0), ..BURSTS })), "service `two`: `min_bytes` is 0"),
        (
            two(ServiceRole::Bursts(BurstSpec { max_bytes: Bytes(999), ..BURSTS })),
            "service `two`: `max_bytes` is 999 B, less than `min_bytes`",
        ),
        (two(ServiceRole::Bursts(BurstSpec { bursts: 0, ..BURSTS })), "service `two`: the workload starts 0 flows"),
        (
            two(ServiceRole::Bursts(BurstSpec { bursts: u32::MAX, more_flows: u32::MAX, ..BURSTS })),
            "service `two`: the workload starts",
        ),
        (two(ServiceRole::Flood(FloodSpec { to: 3, ..FLOOD })), "service `two`: `to` is server 3, which is not"),
        (two(ServiceRole::Flood(FloodSpec { end: seconds(5), ..FLOOD })), "service `two`: the flood ends at 5 s"),
        (two(ServiceRole::Flood(FloodSpec { end: seconds(201), ..FLOOD })), "service `two`: something is to happen at"),
        (
            two(ServiceRole::Flood(FloodSpec { rate_per_server: BitsPerSec(0), ..FLOOD })),
            "service `two`: `rate_per_server` is 0",
        ),
        (two(ServiceRole::Storm(StormSpec { from: 3, ..STORM })), "service `two`: `from` is server 3, which is not"),
        (two(ServiceRole::Storm(StormSpec { end: seconds(5), ..STORM })), "service `two`: the flood ends at 5 s"),
        (two(ServiceRole::Storm(StormSpec { end: seconds(201), ..STORM })), "service `two`: something is to happen at"),
        (two(ServiceRole::Storm(StormSpec { rate: BitsPerSec(0), ..STORM })), "service `two`: `rate` is 0"),
        (limited(DatagramLimit { rate: BitsPerSec(0), ..limit }), "service `two`: `datagram_limit.rate` is 0"),
        (limited(DatagramLimit { burst: Bytes(1_513), ..limit }), "service `two`: `datagram_limit.burst` is 1513 B"),
    ] {
        let error = Workload::Services(spec).initial_flows(20, 1).unwrap_err().to_string();
        assert!(error.starts_with(message), "wanted `{message}`, got `{error}`");
    }
}

#[test]
fn plans_write_services_with_units_and_no_unknown_keys() {
    let text = "kind = \"services\"\nduration = \"200 s\"\n\
                [service.one]\nservers = [0, 1, 2, 3]\nrole = \"long-flows\"\n\
                [service.two]\nservers = [5, 6, 7]\n\
                [service.two.role.ramp]\nbegin = \"60 s\"\nevery = \"2 s\"\nbytes_per_flow = \"8 kB\"";
    let read = |text: &str| toml::from_str::<Workload>(text).map_err(|error| error.message().to_owned());
    assert_eq!(read(text), Ok(Workload::Services(one_and(service([5, 6, 7], ServiceRole::Ramp(RAMP))))));
    for (from, to, message) in [
        ("servers = [5, 6, 7]", "servers = [5, 6, 7]\nrate = 1", "unknown field `rate`"),
        ("role.ramp", "role.march", "unknown variant `march`"),
        ("every = \"2 s\"", "each = \"2 s\"", "unknown field `each`"),
        ("duration = \"200 s\"", "", "missing field `duration`"),
    ] {
        let error = read(&text.replace(from, to)).unwrap_err();
        assert!(error.contains(message), "wanted `{message}`, got `{error}`");
    }
}
