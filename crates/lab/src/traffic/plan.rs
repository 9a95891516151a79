//! What a trial asks of the workers: the flows to list, how long to send, and when the run is over.

use std::sync::atomic::Ordering::{Relaxed, Release};

use weft_scenario::engine::Trial;
use weft_scenario::record::FlowRow;
use weft_scenario::workload::services::{DatagramStream, ServicesSpec, Storm};
use weft_scenario::workload::{FlowSpec, MixSpec, Workload};

use super::table::{Config, HostConfig, Table};
use super::{TrafficError, TrafficSetup};
use crate::sys;

/// Cells for flows of the mix; flows beyond them run and count in the totals but get no row of their own.
const MIX_ROWS: u32 = 1 << 19;

/// A trial made ready for its workers.
pub(super) struct Plan {
    flows: Vec<FlowSpec>,
    mix: Option<MixSpec>,
    datagrams: Vec<DatagramStream>,
    storms: Vec<Storm>,
    /// Names of services with their servers.
    services: Vec<(String, Vec<u32>)>,
    duration_ns: Option<u64>,
}

impl Plan {
    pub(super) fn new(trial: &Trial, servers: usize) -> Result<Self, TrafficError> {
        let too_many = || TrafficError::Invalid(format!("{servers} servers are too many"));
        let servers = u32::try_from(servers).map_err(|_| too_many())?;
        let workload = &trial.workload;
        workload.check(servers)?;
        let (mix, duration_ns) = match workload {
            Workload::Mix(spec) => (Some(spec.clone()), Some(spec.duration.0)),
            Workload::OneToOne { duration, .. } | Workload::Services(ServicesSpec { duration, .. }) => {
                (None, Some(duration.0))
            }
            Workload::Shuffle { .. }
            | Workload::Permutation { .. }
            | Workload::Flows { .. }
            | Workload::Traffic(_)
            | Workload::Directory(_)
            | Workload::Migration(_)
            | Workload::Outside(_)
            | Workload::Segments(_)
            | Workload::Frames(_)
            | Workload::Multicast(_)
            | Workload::Elephants(_)
            | Workload::Model(_)
            | Workload::FlowLog(_) => (None, None),
        };
        // Servers of the mix draw their flows themselves.
        let flows = if mix.is_some() { Vec::new() } else { workload.initial_flows(servers, trial.seed)? };
        let (datagrams, storms, services) = match workload {
            Workload::Services(spec) => (spec.datagrams(), spec.storms(), spec.members()),
            _ => (Vec::new(), Vec::new(), Vec::new()),
        };
        Ok(Self { flows, mix, datagrams, storms, services, duration_ns })
    }

    /// The shared memory with everything the workers need.
    pub(super) fn table(&self, setup: &TrafficSetup, trial: &Trial) -> Result<Table, TrafficError> {
        let listed = u32::try_from(self.flows.len()).map_err(|_| TrafficError::Invalid("too many flows".to_owned()))?;
        let host = |host: &super::TrafficHost| HostConfig {
            name: host.name.clone(),
            namespace: host.namespace.clone(),
            address: host.address,
        };
        let cost_core = if trial.pin_and_measure_cost { Some(sys::last_core()) } else { None };
        let config = Config {
            parent: std::process::id() as i32,
            hosts: setup.hosts.iter().map(host).collect(),
            congestion_control: setup.congestion_control,
            seed: trial.seed,
            rows: if self.mix.is_some() { MIX_ROWS } else { listed },
            duration_ns: self.duration_ns,
            mix: self.mix.clone(),
            datagrams: self.datagrams.clone(),
            storms: self.storms.clone(),
            datagrams_per_write: setup.segments_per_skb.max(1),
            services: self.services.clone(),
            tcp_interval_ns: trial.tcp_interval.map(|interval| interval.0.max(1_000_000)),
            cost_core: cost_core.transpose().map_err(TrafficError::system("choose a core"))?,
        };
        let table = Table::create(config).map_err(TrafficError::system("make shared memory"))?;
        for (cell, flow) in table.flows().iter().zip(&self.flows) {
            cell.from.store(flow.from, Relaxed);
            cell.to.store(flow.to, Relaxed);
            cell.asked_bytes.store(flow.bytes, Relaxed);
            cell.asked_start_ns.store(flow.start_ns, Relaxed);
        }
        table.header().rows_used.store(listed, Release);
        Ok(table)
    }

    /// Says of each row what kind of traffic its flow was; rows of the mix are of no particular kind.
    pub(super) fn label(&self, rows: &mut [FlowRow]) {
        for (row, flow) in rows.iter_mut().zip(&self.flows) {
            (row.class, row.request) = (flow.class, flow.request);
        }
    }

    /// Flows known in advance; `None` for the mix.
    pub(super) fn flows(&self) -> Option<u64> {
        self.mix.is_none().then_some(self.flows.len() as u64)
    }

    /// When the run ends by itself, from its start; `None`: when all flows have ended.
    pub(super) fn duration_ns(&self) -> Option<u64> {
        self.duration_ns
    }

    /// Share of the run that is done, 0 to 1.
    pub(super) fn done_ratio(&self, received_bytes: u64, time_ns: u64) -> f64 {
        let ratio = match self.duration_ns {
            Some(duration_ns) => time_ns as f64 / duration_ns.max(1) as f64,
            None => received_bytes as f64 / self.flows.iter().map(|flow| flow.bytes as f64).sum::<f64>(),
        };
        ratio.min(1.0)
    }
}
