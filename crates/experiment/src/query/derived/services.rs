//! Services beside each other (VL2 5.3): the one of long flows, and what it has before and while the others are at work.
//!
//! The others work from the first one's begin until their last flow has ended or their flood or storm is over.

use weft_scenario::record::Records;
use weft_scenario::workload::Workload;
use weft_scenario::workload::services::{ServiceRole, ServicesSpec};

use super::Value;
use crate::analysis::series::{Cumulative, Window};
use crate::analysis::{Input, TrialRecords};

/// Stretches that the time before the others is cut into; theirs are as long.
const STRETCHES: usize = 8;
/// Parts of a time among which the lowest and the highest are looked for.
const PARTS: usize = 40;
/// Parts of the whole run, to be drawn.
const BINS: usize = 120;

pub(super) const PART_COLUMNS: &[&str] = &["side", "phase", "cut", "part", "from_s", "to_s", "goodput_bps"];
pub(super) const MEMBER_COLUMNS: &[&str] = &["server", "service", "is_steady", "rate_bps"];

/// Goodput of both sides in every part; nothing unless service one had some both before and during.
pub(super) fn parts(input: &Input<'_>, trial: &TrialRecords, _: Window) -> Vec<Vec<Value>> {
    let Some((spec, _)) = input.at(&trial.key) else { return Vec::new() };
    let Some(Workload::Services(services)) = spec.workload.get(&trial.key.workload) else { return Vec::new() };
    let begin_s = services.begin_of_others().as_secs_f64();
    let before = Window { from_s: spec.sampling.warm_up.as_secs_f64(), to_s: begin_s };
    let during = Window { from_s: begin_s, to_s: end_of_others(services, &trial.records) };
    let sides = [true, false].map(|is_one| payload(services, &trial.records, is_one));
    if [before, during].iter().any(|window| sides[0].rate(window.from_s, window.to_s) <= 0.0) {
        return Vec::new();
    }
    let stretches = (during.seconds() * STRETCHES as f64 / before.seconds()).round().max(1.0) as usize;
    let all = Window { from_s: 0.0, to_s: sides[0].end() };
    let cuts = [
        ("before", before, "whole", 1),
        ("before", before, "stretch", STRETCHES),
        ("during", during, "whole", 1),
        ("during", during, "stretch", stretches),
        ("during", during, "part", PARTS),
        ("all", all, "bin", BINS),
    ];
    let mut rows = Vec::new();
    for (side, payload) in ["one", "two"].into_iter().zip(&sides) {
        for (phase, window, cut, count) in cuts {
            for (number, part) in (1..).zip(window.parts(count)) {
                let words = [side, phase, cut].map(|word| Value::Text(word.to_owned()));
                let numbers = [part.from_s, part.to_s, 8.0 * payload.rate(part.from_s, part.to_s)].map(Value::Real);
                rows.push(words.into_iter().chain([Value::Integer(number)]).chain(numbers).collect());
            }
        }
    }
    rows
}

/// Every server of a service, with the rate of its link.
pub(super) fn members(input: &Input<'_>, trial: &TrialRecords, _: Window) -> Vec<Vec<Value>> {
    let Some((spec, fabric)) = input.at(&trial.key) else { return Vec::new() };
    let Some(Workload::Services(services)) = spec.workload.get(&trial.key.workload) else { return Vec::new() };
    let servers: Vec<_> = fabric.servers().collect();
    let rate = |server: u32| {
        let (_, link) = fabric.edge_of(*servers.get(server as usize)?)?;
        i64::try_from(fabric.link(link).spec.rate.0).ok()
    };
    let of_one = |(name, server): (&String, u32)| {
        vec![
            Value::Integer(server.into()),
            Value::Text(name.clone()),
            Value::Integer(services.is_steady(server).into()),
            rate(server).map_or(Value::Null, Value::Integer),
        ]
    };
    let all = services.service.iter().flat_map(|(name, service)| service.servers.iter().map(move |one| (name, *one)));
    all.map(of_one).collect()
}

/// The end of their last flow, flood or storm; that of the run if flows were still open.
fn end_of_others(services: &ServicesSpec, records: &Records) -> f64 {
    let others = records.flows.iter().filter(|flow| !services.is_steady(flow.from));
    let flow_ends = others.map(|flow| flow.end_ns.unwrap_or(services.duration.0));
    let flood_ends = services.datagrams().into_iter().map(|stream| stream.end_ns);
    let storm_ends = services.storms().into_iter().map(|storm| storm.spec.end.0);
    let end_ns = flow_ends.chain(flood_ends).chain(storm_ends).max().unwrap_or(services.duration.0);
    end_ns.min(services.duration.0) as f64 / 1e9
}

/// What the service of long flows received, or all others together.
fn payload(services: &ServicesSpec, records: &Records, is_one: bool) -> Cumulative {
    let mut by_time: Vec<(u64, u64)> = Vec::new();
    for row in &records.services {
        let steady = services.service.get(&row.service).is_some_and(|one| one.role == ServiceRole::LongFlows);
        if steady == is_one {
            match by_time.last_mut().filter(|last| last.0 == row.time_ns) {
                Some(last) => last.1 += row.received_bytes,
                None => by_time.push((row.time_ns, row.received_bytes)),
            }
        }
    }
    Cumulative::new(by_time)
}
