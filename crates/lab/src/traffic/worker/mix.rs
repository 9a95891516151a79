//! The data-centre mix of one server: so many flows at any time, a new one when one completes, sent at a steady rate or as fast
//! as TCP lets them.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

use weft_scenario::random::scramble;
use weft_scenario::workload::{MixServer, MixSpec, SizeDistribution, WorkloadError};

use super::budget::{Budget, QUANTUM_BYTES};
use super::sender::{Senders, Task};
use crate::traffic::table::{Table, now_ns};

/// Flows are looked at no more often than this.
const TICK_NS: u64 = 20_000_000;
/// Before the run, each of a server's flows is taken as having followed on so many mean flows.
const AGE_FLOWS: u64 = 512;

/// Picks and paces the flows of one server.
pub(super) struct Mix<'a> {
    table: &'a Table,
    me: u32,
    server: MixServer,
    /// When the run began.
    run_start_ns: u64,
    age_bytes: u64,
    /// `None`: flows write whenever their sockets have room.
    budget: Option<Budget>,
    next_tick_ns: u64,
    flows_begun: u64,
    flows_admitted: u64,
}

impl<'a> Mix<'a> {
    pub(super) fn new(table: &'a Table, me: u32, spec: &MixSpec, start_ns: u64) -> Result<Self, WorkloadError> {
        let config = table.config();
        Ok(Self {
            table,
            me,
            run_start_ns: start_ns,
            server: MixServer::new(spec, config.hosts.len() as u32, me, config.seed)?,
            age_bytes: AGE_FLOWS * (SizeDistribution::Vl2Mix.mean_bytes() / u64::from(spec.size_divisor)).max(1),
            budget: spec.offered_rate_per_server.map(|rate| Budget::new(rate.0, start_ns)),
            next_tick_ns: if spec.offered_rate_per_server.is_some() { start_ns + TICK_NS } else { u64::MAX },
            flows_begun: 0,
            flows_admitted: 0,
        })
    }

    /// Begins as many flows as this server keeps, in the middle of their lives as after a long time.
    ///
    /// Nearly all flows are mice and nearly all bytes in elephants. Fresh flows would be a storm of mice until every
    /// place has drawn an elephant, about a hundred flows later.
    pub(super) fn begin(&mut self, senders: &mut Senders<'_>) {
        for _ in 0..self.server.concurrency() {
            let (to, bytes) = self.server.flow_under_way(self.age_bytes);
            self.begin_flow(to, bytes, senders);
        }
    }

    /// Begins the flow that follows one that has ended.
    pub(super) fn begin_next(&mut self, senders: &mut Senders<'_>) {
        let (to, bytes) = self.server.next_flow();
        self.begin_flow(to, bytes, senders);
    }

    fn begin_flow(&mut self, to: u32, bytes: u64, senders: &mut Senders<'_>) {
        let (serial, start_ns) = (self.flows_begun, now_ns());
        self.flows_begun += 1;
        senders.add(Task { row: self.list(to, bytes, start_ns), to, bytes: Some(bytes), serial, start_ns });
    }

    /// A cell for a new flow, if one is left. It says when the flow is to start, for the run may end before it does.
    fn list(&self, to: u32, bytes: u64, start_ns: u64) -> Option<u32> {
        let (header, rows) = (self.table.header(), self.table.config().rows);
        let row = header.rows_used.fetch_update(AcqRel, Acquire, |used| (used < rows).then_some(used + 1));
        let Ok(row) = row else {
            header.unlisted_flows.fetch_add(1, Relaxed);
            return None;
        };
        let cell = &self.table.flows()[row as usize];
        cell.from.store(self.me, Relaxed);
        cell.to.store(to, Relaxed);
        cell.asked_start_ns.store(start_ns.saturating_sub(self.run_start_ns), Relaxed);
        cell.asked_bytes.store(bytes, Release);
        Some(row)
    }

    /// When [`Mix::tick`] has something to do.
    pub(super) fn next_tick_ns(&self) -> u64 {
        self.next_tick_ns
    }

    /// Hands out the budget and writes for every flow that has saved up enough.
    pub(super) fn tick(&mut self, senders: &mut Senders<'_>, epoll: &OwnedFd) -> io::Result<()> {
        let Some(budget) = &mut self.budget else { return Ok(()) };
        let now_ns = now_ns();
        let credits: Vec<&mut f64> =
            senders.open.iter_mut().filter(|it| it.may_write()).map(|sending| &mut sending.credit).collect();
        budget.share(now_ns, credits.into_iter());
        for slot in senders.open.numbers() {
            self.write(slot, senders, epoll)?;
        }
        let lacking = senders.open.iter().filter(|it| it.may_write()).map(|it| goal(it.left) - it.credit);
        let (flows, least) = lacking.fold((0, f64::INFINITY), |(flows, least), lack| (flows + 1, least.min(lack)));
        let wait_ns = self.budget.as_ref().filter(|_| flows > 0).map_or(TICK_NS, |budget| budget.wait_ns(least, flows));
        self.next_tick_ns = now_ns + wait_ns.max(TICK_NS);
        Ok(())
    }

    fn write(&mut self, slot: usize, senders: &mut Senders<'_>, epoll: &OwnedFd) -> io::Result<()> {
        let Some(sending) = senders.open.get_mut(slot).filter(|it| it.may_write()) else { return Ok(()) };
        let (credit, left) = (sending.credit, sending.left);
        if credit < goal(left) {
            return Ok(());
        }
        let written = senders.write_up_to(slot, credit as u64, epoll)?;
        if let Some(sending) = senders.open.get_mut(slot) {
            sending.credit = credit - written as f64;
            if let Some(budget) = self.budget.as_mut().filter(|_| written == left) {
                budget.give_back(std::mem::take(&mut sending.credit));
            }
        }
        Ok(())
    }

    /// Gives a flow that has just connected its part of a quantum.
    pub(super) fn admit(&mut self, slot: usize, senders: &mut Senders<'_>) {
        self.flows_admitted += 1;
        let phase = (scramble(self.flows_admitted ^ u64::from(self.me) << 32) >> 11) as f64 / (1u64 << 53) as f64;
        if let (Some(sending), Some(budget)) = (senders.open.get_mut(slot), &mut self.budget) {
            sending.credit = budget.lend(phase);
        }
    }
}

/// What a flow must have saved up before it writes.
fn goal(left: u64) -> f64 {
    QUANTUM_BYTES.min(left as f64)
}

#[cfg(test)]
mod tests {
    use weft_scenario::units::{BitsPerSec, Nanos};

    use super::*;
    use crate::traffic::table::{Config, HostConfig};

    #[test]
    fn a_flow_that_the_end_of_the_run_comes_before_was_not_there_from_the_beginning() {
        let spec =
            MixSpec { duration: Nanos(1), offered_rate_per_server: Some(BitsPerSec(1_000_000)), size_divisor: 1 };
        let host = |number: u8| HostConfig {
            name: format!("s{number}"),
            namespace: "/run/netns/none".into(),
            address: [20, 0, 0, number].into(),
        };
        let table = Table::create(Config { hosts: vec![host(1), host(2)], rows: 1, ..Config::default() }).unwrap();
        let second_ns = 1_000_000_000;
        let mut mix = Mix::new(&table, 0, &spec, now_ns() - second_ns).unwrap();
        mix.begin_next(&mut Senders::new(&table, 0, true));
        let cell = &table.flows()[0];
        assert_eq!(cell.start_ns.load(Relaxed), 0, "nobody has opened its connection");
        assert!(cell.asked_start_ns.load(Relaxed) >= second_ns);
    }
}
