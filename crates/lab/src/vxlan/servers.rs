//! Traffic model B (draft 3.1): VMs of server1 send through a switch to those of server2, on several ways in turns.

use std::time::Duration;

use weft_scenario::record::{OfferedRow, Records, ServerRow};
use weft_scenario::workload::vxlan::{Path, ServersSpec};

use super::bed::{Bed, Place, Shape};
use super::cores::Cores;
use super::load::{Load, SOCKET_BYTES, Steered};
use super::lockstep::{Costs, known_and_read};
use super::vm::order::{FRAME_OVER_PAYLOAD, Order};
use crate::error::LabError;
use crate::tester::TesterError;
use crate::tester::experiment::{Context, calibration_facts};
use crate::tester::path::TrialOrder;
use crate::tester::reference::Reference;
use crate::tester::stream::StreamPlan;
use crate::tester::usage::{KernelMemory, core_mhz};

/// A cost that the method must read back, nanoseconds per frame.
const BURN_NS: u64 = 1_000;
/// Latency is read at this rate or at the benchmark, whichever is lower, frames per second.
const LATENCY_PPS: f64 = 100_000.0;
const LATENCY_TIME: Duration = Duration::from_millis(60);
/// Ends of chains, from the sending VM on.
const ENDS: usize = 5;
/// Every end is visited so often, so that slow drift meets all of them.
const ROUNDS: u32 = 2;

pub(super) fn run(spec: &ServersSpec, context: &Context<'_>) -> Result<Records, TesterError> {
    let cores = Cores::of_this_machine()?;
    let plan = StreamPlan::default();
    let machine_bytes = KernelMemory::read().map_err(LabError::io("read /proc/meminfo"))?.total_bytes();
    let mut ways = Vec::new();
    for path in &spec.paths {
        context.attend(0.0, &format!("two servers: {}", path.name()))?;
        let before = KernelMemory::read().map_err(LabError::io("read /proc/meminfo"))?;
        let shape = Shape { path: *path, two_servers: true, tor: true, vms: spec.vm_pairs };
        let bed = Bed::new(shape, &plan, context.weft_binary)?;
        let kernel_bytes = KernelMemory::read().map_or(0, |now| now.grown_since(&before).max(0) as u64);
        // Two servers were made in one go; the rest of the machine is the same for all ways.
        ways.push(Way { path: *path, kernel_bytes: machine_bytes + kernel_bytes / 2, bed });
    }
    let mut experiment = Servers { spec, context, cores, records: Records::default() };
    let rates = experiment.rates(&mut ways[0])?;
    experiment.costs(&mut ways, &rates)?;
    experiment.calibrate(&mut ways[0])?;
    experiment.offered(&mut ways, &rates)?;
    experiment.latencies(&ways, &plan, &rates)?;
    experiment.pairs(&mut ways)?;
    Ok(experiment.records)
}

/// One way, up as long as the experiment.
struct Way {
    path: Path,
    /// What the kernel holds with one of its servers.
    kernel_bytes: u64,
    bed: Bed,
}

struct Servers<'a> {
    spec: &'a ServersSpec,
    context: &'a Context<'a>,
    cores: Cores,
    records: Records,
}

impl Servers<'_> {
    fn trial(&self) -> Duration {
        Duration::from_nanos(self.spec.trial.0)
    }

    /// Frames per second that a way carries in the place of a size: as many bits as without VXLAN.
    fn rate_on(&self, path: Path, place: usize, rates: &[f64]) -> f64 {
        rates[place] * f64::from(self.spec.frame_bytes[place]) / f64::from(self.spec.size_on(path, place))
    }

    /// The benchmark of every size on the way without VXLAN, frames per second.
    fn rates(&mut self, plain: &mut Way) -> Result<Vec<f64>, TesterError> {
        let bed = &mut plain.bed;
        let _steered = Steered::new(bed, 2, self.cores)?;
        let mut load = Load::open(bed, 2, 1, self.spec.frame_bytes[0], self.cores)?;
        let loss = f64::from(self.spec.loss_percent) / 100.0;
        let mut rates = Vec::new();
        for bytes in &self.spec.frame_bytes {
            self.context.attend(0.1, &format!("benchmark at {bytes} bytes"))?;
            load.set_size(bed, *bytes)?;
            let (pps, trials) = load.find_rate(bed, loss, self.trial())?;
            self.records.offered.extend(trials.iter().map(|trial| trial.row("search", bed, 2, *bytes, 0)));
            rates.push(pps);
        }
        Ok(rates)
    }

    /// CPU time of both servers at every size, with the chain ended in all places.
    #[allow(clippy::needless_range_loop)] // The costs are by way first, which is the innermost loop here.
    fn costs(&mut self, ways: &mut [Way], rates: &[f64]) -> Result<(), TesterError> {
        let sizes = self.spec.frame_bytes.len();
        let mut costs = vec![vec![vec![Costs::default(); ENDS]; sizes]; ways.len()];
        for round in 0..ROUNDS {
            for end in 0..ENDS {
                let done = 0.2 + 0.4 * f64::from(round * ENDS as u32 + end as u32) / f64::from(ROUNDS * ENDS as u32);
                self.context.attend(done, "CPU time of both servers")?;
                let _cuts = ways
                    .iter()
                    .filter_map(|way| end_of_chain(&way.bed, end).map(|place| way.bed.cut(&place)))
                    .collect::<Result<Vec<_>, _>>()?;
                for place in 0..sizes {
                    for _ in 0..self.spec.cost.count.div_ceil(ROUNDS) {
                        for (number, way) in ways.iter_mut().enumerate() {
                            let bytes = self.spec.size_on(way.path, place);
                            costs[number][place][end].run_from_vm(&mut way.bed, bytes, self.spec.cost, self.cores)?;
                        }
                    }
                }
            }
        }
        for (way, of_way) in ways.iter().zip(&costs) {
            for (place, of_size) in of_way.iter().enumerate() {
                let (rate, bytes) = (self.rate_on(way.path, place, rates), self.spec.size_on(way.path, place));
                // Up to the first end the chain is the same on every way: the least of all of them.
                let same_size =
                    ways.iter().zip(&costs).filter(|(other, _)| self.spec.size_on(other.path, place) == bytes);
                let sending_vm_ns = same_size.map(|(_, costs)| costs[place][0].sending_ns()).fold(f64::MAX, f64::min);
                self.push_rows(way, bytes, rate, sending_vm_ns, of_size);
            }
        }
        Ok(())
    }

    /// Rows of both servers from the costs of chains that end behind the sending VM, server1, the switch, server2 and the
    /// receiving VM.
    fn push_rows(&mut self, way: &Way, bytes: u32, rate: f64, sending_vm_ns: f64, ends: &[Costs]) {
        let chain: Vec<f64> = ends.iter().map(Costs::sending_ns).collect();
        let step = |to: usize, from: usize| (chain[to] - chain[from]).max(0.0);
        let receiving_vm = step(4, 3) + ends[4].taking_ns();
        let servers = [
            ("server1", chain[1].max(sending_vm_ns), sending_vm_ns),
            ("server2", step(3, 2) + receiving_vm, receiving_vm),
        ];
        for (place, (name, server_ns, vm_ns)) in servers.into_iter().enumerate() {
            let number = place as u8 + 1;
            let vm_memory_bytes = way.bed.vm_memory_bytes(number);
            self.records.servers.push(ServerRow {
                path: way.path.name().to_owned(),
                server: name.to_owned(),
                frame_bytes: bytes,
                frames_per_s: rate,
                server_ns_per_frame: server_ns,
                vm_ns_per_frame: vm_ns,
                server_cores: server_ns * rate * 1e-9,
                vm_cores: vm_ns * rate * 1e-9,
                core_mhz: core_mhz(),
                server_memory_bytes: way.kernel_bytes + way.bed.switch_memory_bytes(number) + vm_memory_bytes,
                vm_memory_bytes,
            });
        }
    }

    /// A known cost at the switch between the servers.
    fn calibrate(&mut self, way: &mut Way) -> Result<(), TesterError> {
        let (bytes, bed) = (self.spec.frame_bytes[0], &mut way.bed);
        let (Some(end), Some(at)) = (end_of_chain(bed, 3), bed.tor_port()) else { return Ok(()) };
        let _cut = bed.cut(&end)?;
        let (mut without, mut with) = (Costs::default(), Costs::default());
        for _ in 0..ROUNDS {
            for _ in 0..self.spec.cost.count.div_ceil(ROUNDS) {
                without.run_from_vm(bed, bytes, self.spec.cost, self.cores)?;
            }
            let _burn = bed.burn(&at, BURN_NS)?;
            for _ in 0..self.spec.cost.count.div_ceil(ROUNDS) {
                with.run_from_vm(bed, bytes, self.spec.cost, self.cores)?;
            }
        }
        let (known_ns, read_ns) = known_and_read(BURN_NS as f64, &without, &with);
        self.records.facts.extend(calibration_facts(known_ns, read_ns));
        Ok(())
    }

    /// What arrives at rates around the benchmark, and the VMs' CPU.
    fn offered(&mut self, ways: &mut [Way], rates: &[f64]) -> Result<(), TesterError> {
        for way in ways {
            let bed = &mut way.bed;
            let _steered = Steered::new(bed, 2, self.cores)?;
            let mut load = Load::open(bed, 2, 1, self.spec.size_on(way.path, 0), self.cores)?;
            for place in 0..self.spec.frame_bytes.len() {
                self.context.attend(0.7, &format!("loss and overload: {}", way.path.name()))?;
                let (bytes, rate) = (self.spec.size_on(way.path, place), self.rate_on(way.path, place, rates));
                if rate <= 0.0 {
                    continue;
                }
                load.set_size(bed, bytes)?;
                for percent in &self.spec.offered_percent {
                    let offered = load.offer(bed, Some(rate * f64::from(*percent) / 100.0), self.trial())?;
                    self.records.offered.push(offered.row("offered", bed, 2, bytes, *percent));
                }
            }
        }
        Ok(())
    }

    /// One-way latency between the test centre's ports at both servers.
    fn latencies(&mut self, ways: &[Way], plan: &StreamPlan, rates: &[f64]) -> Result<(), TesterError> {
        let progress = self.context.progress;
        let stop = || progress.interrupted();
        let mut reference = Reference::open(plan, self.spec.frame_bytes[0], &stop)?;
        for way in ways {
            self.context.attend(0.85, &format!("latency: {}", way.path.name()))?;
            let mut path = way.bed.path(plan, self.spec.size_on(way.path, 0))?;
            for place in 0..self.spec.frame_bytes.len() {
                let (bytes, rate) = (self.spec.size_on(way.path, place), self.rate_on(way.path, place, rates));
                let pps = if rate > 0.0 { rate.min(LATENCY_PPS) } else { LATENCY_PPS };
                path.set_size(bytes)?;
                reference.match_to(&path, &stop)?;
                let order = TrialOrder::paced(pps, LATENCY_TIME);
                let trial = path.trial(&order, &stop)?;
                let floor = reference.own_trial(&TrialOrder { batch: Some(trial.batch), ..order }, &stop)?;
                let (here, own) = (trial.latency.summary(), floor.latency.summary());
                self.records.offered.push(OfferedRow {
                    kind: "latency".to_owned(),
                    path: way.path.name().to_owned(),
                    server: "server2".to_owned(),
                    vm_pairs: self.spec.vm_pairs,
                    frame_bytes: bytes,
                    offered_percent: 0,
                    asked_per_s: pps,
                    wall_ns: LATENCY_TIME.as_nanos() as u64,
                    sent_frames: trial.account.expected,
                    received_frames: trial.account.counts.received,
                    vm_cpu_ns: 0,
                    latency_p50_ns: here.p50,
                    latency_p99_ns: here.p99,
                    floor_p50_ns: own.p50,
                });
            }
        }
        Ok(())
    }

    /// All pairs at once, as fast as they can, on all cores.
    fn pairs(&mut self, ways: &mut [Way]) -> Result<(), TesterError> {
        let place = self.spec.frame_bytes.len() - 1;
        let duration_ns = self.spec.trial.0 * 3;
        for way in ways {
            self.context.attend(0.95, &format!("all pairs: {}", way.path.name()))?;
            let bytes = self.spec.size_on(way.path, place);
            let (bed, vms) = (&mut way.bed, self.spec.vm_pairs as u8);
            let receive = Order::Receive { duration_ns, buffer_bytes: SOCKET_BYTES, core: None };
            (1..=vms).try_for_each(|vm| bed.vm(2, vm).begin_receiving(&receive))?;
            for vm in 1..=vms {
                let to = bed.vm(2, vm).socket();
                let payload_bytes = bytes - FRAME_OVER_PAYLOAD;
                bed.vm(1, vm).begin(&Order::Send { to, payload_bytes, frames: u64::MAX, duration_ns, core: None })?;
            }
            let mut row = OfferedRow {
                kind: "pairs".to_owned(),
                path: way.path.name().to_owned(),
                server: "server2".to_owned(),
                vm_pairs: self.spec.vm_pairs,
                frame_bytes: bytes,
                ..OfferedRow::default()
            };
            for vm in 1..=vms {
                row.sent_frames += bed.vm(1, vm).reply()?.frames;
                let received = bed.vm(2, vm).reply()?;
                row.received_frames += received.frames;
                row.vm_cpu_ns += received.cpu_ns;
                row.wall_ns = row.wall_ns.max(received.wall_ns);
            }
            self.records.offered.push(row);
        }
        Ok(())
    }
}

/// Where the chain from VM 1.1 to VM 2.1 ends: behind the VM, behind server1, behind the switch, behind server2, nowhere.
fn end_of_chain(bed: &Bed, end: usize) -> Option<Place> {
    match end {
        0 => Some(bed.port_of(1, 1)),
        1 => bed.tor_port(),
        2 => Some(bed.uplink(2)),
        3 => Some(bed.in_vm(2, 1)),
        _ => None,
    }
}
