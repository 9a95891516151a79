//! Counters over time as rows.

use weft_scenario::record::Records;
use weft_scenario::topology::Role;

use super::Value;
use crate::analysis::series::{Cumulative, Window};
use crate::analysis::{Input, TrialRecords, cpu, links};

/// Parts of what is measured where the plan gives no interval.
const PARTS: usize = 10;
/// Runs from this length on are shown second by second, shorter ones four times as often.
const LONG_S: f64 = 10.0;

/// The time in which the bytes from 10 to 90 % of all arrive. `None` if fewer arrived.
pub(crate) fn plateau_of(records: &Records) -> Option<Window> {
    let asked: u64 = records.flows.iter().map(|flow| flow.bytes_asked).sum();
    let payload = Cumulative::of_payload(records);
    let window = Window { from_s: payload.time_of(0.1 * asked as f64)?, to_s: payload.time_of(0.9 * asked as f64)? };
    (window.to_s > window.from_s).then_some(window)
}

pub(super) fn plateau(_: &Input<'_>, trial: &TrialRecords, _: Window) -> Vec<Vec<Value>> {
    let payload = Cumulative::of_payload(&trial.records);
    let row = |window: Window| {
        let bps = |from_s, to_s| payload.rate(from_s, to_s) * 8.0;
        let (plateau, whole) = (bps(window.from_s, window.to_s), bps(0.0, payload.end()));
        [window.from_s, window.to_s, plateau, whole, payload.end()].map(Value::Real).to_vec()
    };
    plateau_of(&trial.records).map(row).into_iter().collect()
}

pub(super) fn goodput(_: &Input<'_>, trial: &TrialRecords, _: Window) -> Vec<Vec<Value>> {
    let payload = Cumulative::of_payload(&trial.records);
    let step_s = if payload.end() >= LONG_S { 1.0 } else { 0.25 };
    let row = |(time_s, bytes_per_s): (f64, f64)| vec![Value::Real(time_s), Value::Real(bytes_per_s * 8.0)];
    payload.rates(step_s).into_iter().map(row).collect()
}

pub(super) fn link_parts(input: &Input<'_>, trial: &TrialRecords, window: Window) -> Vec<Vec<Value>> {
    let Some((spec, fabric)) = input.at(&trial.key) else { return Vec::new() };
    let parts: Vec<Window> = match spec.sampling.split_interval {
        None => window.parts(PARTS).collect(),
        Some(interval) => {
            let length = interval.as_secs_f64();
            let count = (window.seconds() / length + 1e-9).floor() as usize;
            Window { to_s: window.from_s + count as f64 * length, ..window }.parts(count).collect()
        }
    };
    let role = |role: Role| Value::Text(format!("{role:?}").to_lowercase());
    let mut rows = Vec::new();
    for link in links::all(&trial.records.links, fabric) {
        for (number, part) in (1..).zip(&parts) {
            let sent = link.sent.at(part.to_s) - link.sent.at(part.from_s);
            rows.push(vec![
                Value::Text(link.node.clone()),
                role(link.role),
                Value::Text(link.interface.clone()),
                Value::Text(link.peer.clone()),
                role(link.peer_role),
                Value::Text(link.class.clone()),
                Value::Real(link.rate_bps),
                Value::Integer(number),
                Value::Real(part.from_s),
                Value::Real(part.to_s),
                Value::Real(sent),
            ]);
        }
    }
    rows
}

pub(super) fn idle(_: &Input<'_>, trial: &TrialRecords, window: Window) -> Vec<Vec<Value>> {
    let row = |(core, ratio): (u32, f64)| vec![Value::Integer(i64::from(core)), Value::Real(ratio)];
    cpu::mean_idle(&trial.records.cpu, window).into_iter().map(row).collect()
}

pub(super) fn pressure(_: &Input<'_>, trial: &TrialRecords, window: Window) -> Vec<Vec<Value>> {
    let pressure = cpu::Pressure::of(&trial.records, window);
    let number = |value: Option<f64>| value.map_or(Value::Null, Value::Real);
    let row = [number(pressure.wait_ms), number(pressure.idle_ratio), Value::Integer(i64::from(pressure.is_bound()))];
    (pressure != cpu::Pressure::default()).then(|| row.to_vec()).into_iter().collect()
}
