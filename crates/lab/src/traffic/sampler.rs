//! Turns counters into rows: progress, links, cores, TCP senders, flows.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Relaxed};

use weft_scenario::record::{
    CpuRow, DaemonRow, FlowRow, LinkRow, ProgressRow, Records, Reel, ServiceRow, TcpRow, replay_rows,
};
use weft_scenario::units::Nanos;
use weft_scenario::workload::services::{STORM_FOREIGN, STORM_OFFERED, STORM_OWN};

use super::counters::{CoreTicks, CoreTimes};
use super::ports::PortWatch;
use super::table::{FlowCell, HostCounters, Table};
use super::waits::Waits;
use super::{TrafficError, WatchedPort};

/// Everything that is recorded while traffic runs.
pub(super) struct Sampler<'a> {
    table: &'a Table,
    ports: PortWatch<'a>,
    cores: CoreTimes,
    waits: Waits,
    /// When each flow's TCP state was last recorded.
    tcp_seen_ns: Vec<u64>,
    records: Records,
    /// Share of the cores' time that was idle between the last two samples.
    pub(super) idle_ratio: f64,
}

impl<'a> Sampler<'a> {
    /// Takes the counters' values of now as the start.
    pub(super) fn new(table: &'a Table, watched: &'a [WatchedPort], waits: Waits) -> Result<Self, TrafficError> {
        Ok(Self {
            table,
            ports: PortWatch::open(watched)?,
            cores: CoreTimes::read()?,
            waits,
            tcp_seen_ns: vec![0; table.flows().len()],
            records: Records::default(),
            idle_ratio: 0.0,
        })
    }

    /// Payload that has arrived and flows that have ended by now.
    pub(super) fn totals(&self, time_ns: u64) -> ProgressRow {
        let (mut received_bytes, mut flows_done) = (0, 0);
        for host in self.table.hosts() {
            received_bytes += host.received_bytes.load(Relaxed);
            flows_done += host.flows_done.load(Relaxed);
        }
        ProgressRow { time_ns, received_bytes, flows_done }
    }

    /// Records progress, in all and by service, links, cores, and who waited for one.
    pub(super) fn sample(&mut self, time_ns: u64) -> Result<ProgressRow, TrafficError> {
        let progress = self.totals(time_ns);
        self.records.progress.push(progress);
        self.records.services.extend(service_rows(self.table, time_ns));
        self.records.links.extend(self.ports.rows(time_ns)?);
        self.records.core_waits.extend(self.waits.rows(time_ns));
        let cores = CoreTimes::read()?;
        let rows: Vec<CpuRow> = cpu_rows(time_ns, &self.cores, &cores).collect();
        if !rows.is_empty() {
            self.idle_ratio = rows.iter().map(|row| row.idle_ratio).sum::<f64>() / rows.len() as f64;
            self.cores = cores;
            self.records.cpu.extend(rows);
        }
        Ok(progress)
    }

    /// Keeps what a replay shows; says how long it is until the next time.
    pub(super) fn sample_replay(&mut self, reel: &mut Reel, time_ns: u64) -> Result<Nanos, TrafficError> {
        Ok(reel.keep(self.ports.moment(time_ns)?))
    }

    /// Records what daemons used of a core since the last time, by their nodes.
    pub(super) fn sample_daemons(&mut self, time_ns: u64, usage: Vec<(String, f64)>) {
        self.records.daemons.extend(usage.into_iter().map(|(node, cpu_ratio)| DaemonRow { time_ns, node, cpu_ratio }));
    }

    /// The rows of what was kept.
    pub(super) fn finish_replay(&mut self, reel: Reel, end_ns: u64) -> Result<(), TrafficError> {
        let end = self.ports.moment(end_ns)?;
        self.records.replay = replay_rows(&reel.finish(end), &self.ports.names());
        Ok(())
    }

    /// Records the TCP state that workers have read since the last time.
    pub(super) fn sample_tcp(&mut self, start_ns: u64) {
        let used = self.rows_used();
        for (cell, seen_ns) in self.table.flows()[..used].iter().zip(&mut self.tcp_seen_ns) {
            let read_ns = cell.tcp_ns.load(Acquire);
            if read_ns > *seen_ns {
                *seen_ns = read_ns;
                self.records.tcp.push(tcp_row(cell, read_ns.saturating_sub(start_ns)));
            }
        }
    }

    /// Ends the recording: flows and the facts that the table and the counters hold.
    pub(super) fn finish(mut self, start_ns: u64) -> Records {
        let cells = &self.table.flows()[..self.rows_used()];
        self.records.flows = cells.iter().map(|cell| flow_row(cell, start_ns)).collect();
        let sum = |field: fn(&FlowCell) -> u32| cells.iter().map(|cell| f64::from(field(cell))).sum::<f64>();
        let (acks, data) = (sum(|cell| cell.acks.load(Relaxed)), sum(|cell| cell.data_segments.load(Relaxed)));
        if data > 0.0 {
            self.records.facts.push(("acks_per_data_segment".to_owned(), acks / data));
        }
        let unlisted = self.table.header().unlisted_flows.load(Relaxed);
        if unlisted > 0 {
            self.records.facts.push(("flows.unlisted".to_owned(), unlisted as f64));
        }
        self.records.facts.extend(storm_facts(self.table));
        let drops = drops_by_class(&self.records.links);
        self.records.facts.extend(drops);
        self.records
    }

    fn rows_used(&self) -> usize {
        (self.table.header().rows_used.load(Acquire) as usize).min(self.table.flows().len())
    }
}

fn cpu_rows(time_ns: u64, before: &CoreTimes, now: &CoreTimes) -> impl Iterator<Item = CpuRow> {
    let pair = |now: &CoreTicks| Some((*before.cores.iter().find(|old| old.core == now.core)?, *now));
    let row = move |(before, now): (CoreTicks, CoreTicks)| {
        let total = now.total.saturating_sub(before.total);
        let ratio = |now: u64, before: u64| now.saturating_sub(before) as f64 / total as f64;
        (total > 0).then(|| CpuRow {
            time_ns,
            core: now.core,
            idle_ratio: ratio(now.idle, before.idle),
            softirq_ratio: ratio(now.softirq, before.softirq),
        })
    };
    now.cores.iter().filter_map(pair).filter_map(row)
}

fn service_rows(table: &Table, time_ns: u64) -> impl Iterator<Item = ServiceRow> {
    let received = |server: &u32| table.hosts()[*server as usize].received_bytes.load(Relaxed);
    table.config().services.iter().map(move |(service, servers)| ServiceRow {
        time_ns,
        service: service.clone(),
        received_bytes: servers.iter().map(received).sum(),
    })
}

fn tcp_row(cell: &FlowCell, time_ns: u64) -> TcpRow {
    TcpRow {
        time_ns,
        from: cell.from.load(Relaxed),
        to: cell.to.load(Relaxed),
        cwnd_segments: cell.cwnd_segments.load(Relaxed),
        srtt_ns: u64::from(cell.srtt_us.load(Relaxed)) * 1000,
        retransmits: cell.retransmits.load(Relaxed),
    }
}

fn flow_row(cell: &FlowCell, run_start_ns: u64) -> FlowRow {
    let since_start = |at_ns: u64| (at_ns > 0).then(|| at_ns.saturating_sub(run_start_ns));
    FlowRow {
        end_ns: since_start(cell.end_ns.load(Acquire)),
        from: cell.from.load(Relaxed),
        to: cell.to.load(Relaxed),
        bytes_asked: cell.asked_bytes.load(Relaxed),
        bytes_received: cell.received_bytes.load(Relaxed),
        start_ns: since_start(cell.start_ns.load(Relaxed)).unwrap_or_else(|| cell.asked_start_ns.load(Relaxed)),
        retransmits: u64::from(cell.retransmits.load(Relaxed)),
        ..FlowRow::default()
    }
}

/// What became of storms: datagrams offered, received by a server of the sender's service, the sender left out, on average, and
/// received by all others together.
fn storm_facts(table: &Table) -> Vec<(String, f64)> {
    let storms = &table.config().storms;
    if storms.is_empty() {
        return Vec::new();
    }
    let sum = |field: fn(&HostCounters) -> &AtomicU64| {
        table.hosts().iter().map(|host| field(host).load(Relaxed) as f64).sum::<f64>()
    };
    let hearers: usize = storms.iter().map(|storm| storm.members.len() - 1).sum();
    vec![
        (STORM_OFFERED.to_owned(), sum(|host| &host.storm_offered)),
        (STORM_OWN.to_owned(), sum(|host| &host.storm_own) / hearers as f64),
        (STORM_FOREIGN.to_owned(), sum(|host| &host.storm_foreign)),
    ]
}

/// `drops.CLASS` from the last row of each link.
fn drops_by_class(links: &[LinkRow]) -> Vec<(String, f64)> {
    let last_ns = links.last().map_or(0, |row| row.time_ns);
    let mut sums = std::collections::BTreeMap::new();
    for row in links.iter().rev().take_while(|row| row.time_ns == last_ns) {
        *sums.entry(row.class.as_str()).or_insert(0) += row.dropped_frames;
    }
    sums.into_iter().map(|(class, frames)| (format!("drops.{class}"), frames as f64)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drops_are_the_last_totals_of_each_class() {
        let row = |time_ns, class: &str, dropped_frames| LinkRow {
            time_ns,
            node: "t1".to_owned(),
            interface: "a".to_owned(),
            peer: "s1".to_owned(),
            class: class.to_owned(),
            sent_bytes: 0,
            dropped_frames,
        };
        let rows = [row(1, "a-b", 5), row(1, "b-c", 1), row(2, "a-b", 7), row(2, "b-c", 2), row(2, "a-b", 1)];
        assert_eq!(drops_by_class(&rows), [("drops.a-b".to_owned(), 8.0), ("drops.b-c".to_owned(), 2.0)]);
        assert_eq!(drops_by_class(&[]), []);
    }

    #[test]
    fn idle_and_softirq_are_shares_of_the_time_between_two_readings() {
        let ticks =
            |user, idle, softirq, total| CoreTimes { cores: vec![CoreTicks { core: 0, user, idle, softirq, total }] };
        let rows: Vec<CpuRow> = cpu_rows(9, &ticks(0, 100, 50, 200), &ticks(0, 110, 80, 240)).collect();
        assert_eq!(rows, [CpuRow { time_ns: 9, core: 0, idle_ratio: 0.25, softirq_ratio: 0.75 }]);
        assert_eq!(cpu_rows(9, &ticks(0, 1, 1, 2), &ticks(0, 1, 1, 2)).count(), 0);
    }
}
