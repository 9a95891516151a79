//! Records as CSV: one file per kind of row, every row with the trial it belongs to, so that a file can be read alone.

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::path::Path;

use weft_scenario::record::{
    AvailabilityRow, ChainRow, ConcurrencyRow, CostRow, CpuRow, CrossingRow, DirectoryRow, ElephantRow, EventRow,
    FailureRow, FittingRow, FlowRow, FlowSizeRow, GapRow, LatencyRow, LinkRow, LinkUseRow, MatrixRow, MigrationRow,
    NetworkRow, OfferedRow, PathCostRow, PathShareRow, ProgressRow, QueueRow, Records, RoutedMatrixRow, SegmentRow,
    ServerRow, ServiceRow, SwitchLossRow, TcpRow, VlanMixRow,
};
use weft_scenario::workload::FlowClass;

use super::FolderError;
use super::key::{KEY_COLUMNS, key_cells, key_from_cells};
use crate::analysis::{RowKind, TrialKey, TrialRecords};
use crate::plan::Axis;

/// The list of trials.
const TRIALS_FILE: &str = "trials.csv";

/// One cell of a CSV file.
trait Cell: Sized {
    fn write(&self) -> String;
    fn read(text: &str) -> Option<Self>;
}

macro_rules! plain_cell {
    ($($kind:ty),*) => { $(impl Cell for $kind {
        fn write(&self) -> String { self.to_string() }
        fn read(text: &str) -> Option<Self> { text.parse().ok() }
    })* };
}
plain_cell!(u32, u64, f64, String);

macro_rules! optional_cell {
    ($($kind:ty),*) => { $(impl Cell for Option<$kind> {
        fn write(&self) -> String { self.map_or_else(String::new, |value| value.to_string()) }
        fn read(text: &str) -> Option<Self> {
            if text.is_empty() { Some(None) } else { text.parse().ok().map(Some) }
        }
    })* };
}
optional_cell!(u32, u64);

/// A name, or nothing.
impl Cell for Option<String> {
    fn write(&self) -> String {
        self.clone().unwrap_or_default()
    }

    fn read(text: &str) -> Option<Self> {
        Some((!text.is_empty()).then(|| text.to_owned()))
    }
}

impl Cell for FlowClass {
    fn write(&self) -> String {
        self.name().to_owned()
    }

    fn read(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|class| class.name() == text)
    }
}

/// A kind of row: its file and its columns, which are the names of its fields.
trait Row: Sized {
    const FILE: &'static str;
    const COLUMNS: &'static [&'static str];
    fn cells(&self) -> Vec<String>;
    fn from_cells(cells: &[&str]) -> Option<Self>;
}

macro_rules! row {
    ($kind:ident, $file:literal, $($field:ident),+) => {
        impl Row for $kind {
            const FILE: &'static str = $file;
            const COLUMNS: &'static [&'static str] = &[$(stringify!($field)),+];

            fn cells(&self) -> Vec<String> {
                vec![$(Cell::write(&self.$field)),+]
            }

            fn from_cells(cells: &[&str]) -> Option<Self> {
                let mut cells = cells.iter();
                Some(Self { $($field: Cell::read(cells.next()?)?),+ })
            }
        }
    };
}

/// A name and a value.
struct FactRow {
    name: String,
    value: f64,
}

row!(
    FlowRow,
    "flows.csv",
    from,
    to,
    bytes_asked,
    bytes_received,
    start_ns,
    end_ns,
    retransmits,
    class,
    request,
    ideal_ns
);
row!(ProgressRow, "progress.csv", time_ns, received_bytes, flows_done);
row!(ServiceRow, "services.csv", time_ns, service, received_bytes);
row!(LinkRow, "links.csv", time_ns, node, interface, peer, class, sent_bytes, dropped_frames);
row!(QueueRow, "queues.csv", node, interface, peer, class, bytes_at_most, time_ns);
row!(TcpRow, "tcp.csv", time_ns, from, to, cwnd_segments, srtt_ns, retransmits);
row!(CpuRow, "cpu.csv", time_ns, core, idle_ratio, softirq_ratio);
row!(EventRow, "events.csv", time_ns, kind, subject);
row!(LatencyRow, "latencies.csv", kind, step, server, latency_at_most_ns, requests);
row!(
    DirectoryRow,
    "directory.csv",
    kind,
    step,
    offered_per_s,
    wall_ns,
    sent,
    messages,
    answered,
    wrong,
    unanswered,
    skipped,
    longest_gap_ns,
    lost,
    server_cpu_ns,
    foreign_cpu_ratio
);
row!(
    MigrationRow,
    "migrations.csv",
    left_ns,
    arrived_ns,
    told_ns,
    last_stale_ns,
    stale_packets,
    lost_packets,
    silence_ns
);
row!(
    ServerRow,
    "servers.csv",
    path,
    server,
    frame_bytes,
    frames_per_s,
    server_ns_per_frame,
    vm_ns_per_frame,
    server_cores,
    vm_cores,
    core_mhz,
    server_memory_bytes,
    vm_memory_bytes
);
row!(
    OfferedRow,
    "offered.csv",
    kind,
    path,
    server,
    vm_pairs,
    frame_bytes,
    offered_percent,
    asked_per_s,
    wall_ns,
    sent_frames,
    received_frames,
    vm_cpu_ns,
    latency_p50_ns,
    latency_p99_ns,
    floor_p50_ns
);
row!(
    PathCostRow,
    "path_costs.csv",
    path,
    frame_bytes,
    chain_ns_per_frame,
    chain_quartile_ns_per_frame,
    tester_ns_per_frame,
    runs,
    lost_frames
);
row!(
    SegmentRow,
    "segments.csv",
    store,
    segments,
    active_segments,
    setup_ns,
    removal_ns,
    memory_bytes,
    frame_bytes,
    chain_ns_per_frame,
    sent_frames,
    received_frames,
    latency_p50_ns,
    latency_p99_ns
);
row!(
    CrossingRow,
    "crossings.csv",
    way,
    frame_bytes,
    load_percent,
    asked_per_s,
    wall_ns,
    sent_frames,
    received_frames,
    reordered_frames,
    latency_mean_ns,
    latency_p50_ns,
    latency_p99_ns,
    floor_mean_ns,
    floor_p50_ns
);
row!(PathShareRow, "path_shares.csv", way, frame_bytes, load_percent, switch, frames, bytes);
row!(
    ChainRow,
    "chains.csv",
    way,
    until,
    frame_bytes,
    chain_ns_per_frame,
    chain_quartile_ns_per_frame,
    most_per_s,
    runs,
    lost_frames
);
row!(
    SwitchLossRow,
    "switch_losses.csv",
    way,
    loss,
    switch,
    flows,
    hit_flows,
    sent_frames,
    lost_frames,
    outage_ns,
    recovery_s
);
row!(ElephantRow, "elephants.csv", split, round, elephant, connections, received_bytes, wall_ns);
row!(
    VlanMixRow,
    "vlan_mixes.csv",
    way,
    crossing_percent,
    round,
    frame_bytes,
    offered_per_s,
    sent_frames,
    received_frames,
    latency_mean_ns,
    latency_p50_ns,
    latency_p99_ns,
    floor_mean_ns,
    floor_p50_ns,
    quiet,
    chain_ns_per_frame,
    tester_ns_per_frame
);
row!(
    NetworkRow,
    "networks.csv",
    design,
    servers,
    oversubscription,
    actual_oversubscription,
    servers_most,
    switch_ports,
    tors,
    aggregations,
    upper_switches,
    ports,
    server_links,
    cables,
    switches_usd,
    tors_and_cables_usd
);
row!(LinkUseRow, "link_uses.csv", routing, node, peer, use_ratio);
row!(RoutedMatrixRow, "routed_matrices.csv", routing, time_ns, offered_bps, use_ratio);
row!(
    AvailabilityRow,
    "availability.csv",
    time_ns,
    lasts_ns,
    down,
    servers_ratio,
    demand_ratio,
    capacity_ratio,
    cut_ratio
);
row!(FailureRow, "failures.csv", time_ns, lasts_ns, switches, takes_group);
row!(FlowSizeRow, "flow_sizes.csv", bytes_at_most, flows, bytes);
row!(ConcurrencyRow, "concurrency.csv", flows, server_s);
row!(MatrixRow, "matrices.csv", interval, bytes, pairs, cluster);
row!(FittingRow, "fitting.csv", clusters, error_ratio, excess_ratio);
row!(GapRow, "gaps.csv", from, to, time_ns, lost, outage_ns);
row!(CostRow, "cost.csv", cpu_ns, payload_bytes, wall_ns);
row!(FactRow, "facts.csv", name, value);

/// Whether some file of rows has a column of this name.
pub(crate) fn is_column(name: &str) -> bool {
    let rows = [
        FlowRow::COLUMNS,
        ProgressRow::COLUMNS,
        ServiceRow::COLUMNS,
        LinkRow::COLUMNS,
        QueueRow::COLUMNS,
        TcpRow::COLUMNS,
        CpuRow::COLUMNS,
        EventRow::COLUMNS,
        LatencyRow::COLUMNS,
        DirectoryRow::COLUMNS,
        MigrationRow::COLUMNS,
        ServerRow::COLUMNS,
        OfferedRow::COLUMNS,
        PathCostRow::COLUMNS,
        SegmentRow::COLUMNS,
        CrossingRow::COLUMNS,
        PathShareRow::COLUMNS,
        ChainRow::COLUMNS,
        SwitchLossRow::COLUMNS,
        NetworkRow::COLUMNS,
        LinkUseRow::COLUMNS,
        RoutedMatrixRow::COLUMNS,
        AvailabilityRow::COLUMNS,
        FailureRow::COLUMNS,
        FlowSizeRow::COLUMNS,
        ConcurrencyRow::COLUMNS,
        MatrixRow::COLUMNS,
        FittingRow::COLUMNS,
        GapRow::COLUMNS,
        CostRow::COLUMNS,
        FactRow::COLUMNS,
    ];
    KEY_COLUMNS.contains(&name) || rows.concat().contains(&name)
}

/// Appends one trial's rows to the files below `folder`, and the trial itself to `trials.csv`.
pub fn write_trial_rows(folder: &Path, axes: &[Axis], trial: &TrialRecords) -> Result<(), FolderError> {
    let TrialRecords { key, records } = trial;
    let sink = Sink { folder, axes, key };
    let facts: Vec<_> =
        records.facts.iter().map(|(name, value)| FactRow { name: name.clone(), value: *value }).collect();
    sink.append(TRIALS_FILE, &[], std::iter::once(Vec::new()))?;
    sink.append_rows(&records.flows)?;
    sink.append_rows(&records.progress)?;
    sink.append_rows(&records.services)?;
    sink.append_rows(&records.links)?;
    sink.append_rows(&records.queues)?;
    sink.append_rows(&records.tcp)?;
    sink.append_rows(&records.cpu)?;
    sink.append_rows(&records.events)?;
    sink.append_rows(&records.latencies)?;
    sink.append_rows(&records.directory)?;
    sink.append_rows(&records.migrations)?;
    sink.append_rows(&records.servers)?;
    sink.append_rows(&records.offered)?;
    sink.append_rows(&records.path_costs)?;
    sink.append_rows(&records.segments)?;
    sink.append_rows(&records.crossings)?;
    sink.append_rows(&records.path_shares)?;
    sink.append_rows(&records.chains)?;
    sink.append_rows(&records.switch_losses)?;
    sink.append_rows(&records.vlan_mixes)?;
    sink.append_rows(&records.elephants)?;
    sink.append_rows(&records.networks)?;
    sink.append_rows(&records.link_uses)?;
    sink.append_rows(&records.routed_matrices)?;
    sink.append_rows(&records.availability)?;
    sink.append_rows(&records.failures)?;
    sink.append_rows(&records.flow_sizes)?;
    sink.append_rows(&records.concurrency)?;
    sink.append_rows(&records.matrices)?;
    sink.append_rows(&records.fitting)?;
    sink.append_rows(&records.gaps)?;
    sink.append_rows(records.cost.as_slice())?;
    sink.append_rows(&facts)
}

/// Where the rows of one trial go.
struct Sink<'a> {
    folder: &'a Path,
    axes: &'a [Axis],
    key: &'a TrialKey,
}

impl Sink<'_> {
    fn append_rows<R: Row>(&self, rows: &[R]) -> Result<(), FolderError> {
        if rows.is_empty() {
            return Ok(());
        }
        self.append(R::FILE, R::COLUMNS, rows.iter().map(Row::cells))
    }

    fn append(&self, file: &str, columns: &[&str], rows: impl Iterator<Item = Vec<String>>) -> Result<(), FolderError> {
        let path = self.folder.join(file);
        let write = || -> std::io::Result<()> {
            let file = OpenOptions::new().create(true).append(true).open(&path)?;
            let fresh = file.metadata()?.len() == 0;
            let mut writer = csv::Writer::from_writer(file);
            if fresh {
                let head = header(self.axes.iter().map(|axis| axis.name.as_str()), columns);
                writer.write_record(head).map_err(cause)?;
            }
            let key = key_cells(self.key);
            for cells in rows {
                writer.write_record(key.iter().chain(&cells)).map_err(cause)?;
            }
            writer.flush()
        };
        write().map_err(FolderError::io("write", &path))
    }
}

/// What the system said: the library's own conversion hides whether the disk was full.
fn cause(error: csv::Error) -> std::io::Error {
    match error.into_kind() {
        csv::ErrorKind::Io(error) => error,
        other => std::io::Error::other(format!("{other:?}")),
    }
}

/// The first line of a file.
fn header<'a>(axes: impl Iterator<Item = &'a str>, columns: &[&'a str]) -> Vec<&'a str> {
    KEY_COLUMNS.into_iter().chain(axes).chain(columns.iter().copied()).collect()
}

/// Reads all trials back, in order, with the kinds of rows that are asked for.
pub fn read_trials(folder: &Path, axes: &[Axis], kinds: &[RowKind]) -> Result<Vec<TrialRecords>, FolderError> {
    let mut source = Source { folder, axes, kinds, trials: BTreeMap::new() };
    source.read(TRIALS_FILE, &[], |trials, key, _| {
        trials.insert(key.trial, TrialRecords { key, records: Records::default() });
        Some(())
    })?;
    source.read_rows(RowKind::Flows, |records| &mut records.flows)?;
    source.read_rows(RowKind::Progress, |records| &mut records.progress)?;
    source.read_rows(RowKind::Services, |records| &mut records.services)?;
    source.read_rows(RowKind::Links, |records| &mut records.links)?;
    source.read_rows(RowKind::Queues, |records| &mut records.queues)?;
    source.read_rows(RowKind::Tcp, |records| &mut records.tcp)?;
    source.read_rows(RowKind::Cpu, |records| &mut records.cpu)?;
    source.read_rows(RowKind::Events, |records| &mut records.events)?;
    source.read_rows(RowKind::Latencies, |records| &mut records.latencies)?;
    source.read_rows(RowKind::Directory, |records| &mut records.directory)?;
    source.read_rows(RowKind::Migrations, |records| &mut records.migrations)?;
    source.read_rows(RowKind::Servers, |records| &mut records.servers)?;
    source.read_rows(RowKind::Offered, |records| &mut records.offered)?;
    source.read_rows(RowKind::PathCosts, |records| &mut records.path_costs)?;
    source.read_rows(RowKind::Segments, |records| &mut records.segments)?;
    source.read_rows(RowKind::Crossings, |records| &mut records.crossings)?;
    source.read_rows(RowKind::PathShares, |records| &mut records.path_shares)?;
    source.read_rows(RowKind::Chains, |records| &mut records.chains)?;
    source.read_rows(RowKind::SwitchLosses, |records| &mut records.switch_losses)?;
    source.read_rows(RowKind::VlanMixes, |records| &mut records.vlan_mixes)?;
    source.read_rows(RowKind::Elephants, |records| &mut records.elephants)?;
    source.read_rows(RowKind::Networks, |records| &mut records.networks)?;
    source.read_rows(RowKind::LinkUses, |records| &mut records.link_uses)?;
    source.read_rows(RowKind::RoutedMatrices, |records| &mut records.routed_matrices)?;
    source.read_rows(RowKind::Availability, |records| &mut records.availability)?;
    source.read_rows(RowKind::Failures, |records| &mut records.failures)?;
    source.read_rows(RowKind::FlowSizes, |records| &mut records.flow_sizes)?;
    source.read_rows(RowKind::Concurrency, |records| &mut records.concurrency)?;
    source.read_rows(RowKind::Matrices, |records| &mut records.matrices)?;
    source.read_rows(RowKind::Fitting, |records| &mut records.fitting)?;
    source.read_rows(RowKind::Gaps, |records| &mut records.gaps)?;
    source.read(CostRow::FILE, CostRow::COLUMNS, |trials, key, cells| {
        trials.get_mut(&key.trial)?.records.cost = Some(CostRow::from_cells(cells)?);
        Some(())
    })?;
    source.read(FactRow::FILE, FactRow::COLUMNS, |trials, key, cells| {
        let fact = FactRow::from_cells(cells)?;
        trials.get_mut(&key.trial)?.records.facts.push((fact.name, fact.value));
        Some(())
    })?;
    Ok(source.trials.into_values().collect())
}

type Trials = BTreeMap<u32, TrialRecords>;

/// Where rows come from, and what was read so far.
struct Source<'a> {
    folder: &'a Path,
    axes: &'a [Axis],
    kinds: &'a [RowKind],
    trials: Trials,
}

impl Source<'_> {
    fn read_rows<R: Row>(&mut self, kind: RowKind, list: fn(&mut Records) -> &mut Vec<R>) -> Result<(), FolderError> {
        if !self.kinds.contains(&kind) {
            return Ok(());
        }
        self.read(R::FILE, R::COLUMNS, |trials, key, cells| {
            let row = R::from_cells(cells)?;
            list(&mut trials.get_mut(&key.trial)?.records).push(row);
            Some(())
        })
    }

    /// Calls `row` with the key and the other cells of each row; `None` from it refuses the row. A file that is not
    /// there has no rows, except the list of trials.
    fn read(
        &mut self,
        file: &str,
        columns: &[&str],
        mut row: impl FnMut(&mut Trials, TrialKey, &[&str]) -> Option<()>,
    ) -> Result<(), FolderError> {
        let path = self.folder.join(file);
        if !columns.is_empty() && !path.exists() {
            return Ok(());
        }
        let malformed = |message: String| FolderError::Malformed { path: path.clone(), message };
        let opened = std::fs::File::open(&path).map_err(FolderError::io("read", &path))?;
        let mut reader = csv::Reader::from_reader(opened);
        let expected = header(self.axes.iter().map(|axis| axis.name.as_str()), columns);
        let found = reader.headers().map_err(|error| malformed(error.to_string()))?;
        if !found.iter().eq(expected.iter().copied()) {
            return Err(malformed(format!("line 1: the columns are not {}", expected.join(","))));
        }
        for record in reader.records() {
            let record = record.map_err(|error| malformed(error.to_string()))?;
            let line = record.position().map_or(0, csv::Position::line);
            let cells: Vec<&str> = record.iter().collect();
            let (key, rest) = cells.split_at(KEY_COLUMNS.len() + self.axes.len());
            key_from_cells(key)
                .and_then(|key| row(&mut self.trials, key, rest))
                .ok_or_else(|| malformed(format!("line {line}: `{}` is not a row of this file", cells.join(","))))?;
        }
        Ok(())
    }
}
