//! Traffic model A (draft 2.5): the test centre at a server's uplink sends to its two VMs.

use std::time::Duration;

use weft_scenario::record::{Records, ServerRow};
use weft_scenario::workload::vxlan::{BenchmarkSpec, Path};

use super::bed::{Bed, Place, Shape};
use super::cores::Cores;
use super::load::{Load, SOCKET_BYTES, Steered};
use super::lockstep::{Costs, known_and_read};
use super::vm::order::Order;
use crate::error::LabError;
use crate::tester::TesterError;
use crate::tester::experiment::{Context, calibration_facts};
use crate::tester::stream::StreamPlan;
use crate::tester::usage::{KernelMemory, core_mhz};

/// VMs of a server (draft 2.4).
const VMS: u8 = 2;
/// A cost that the method must read back, nanoseconds per frame.
const BURN_NS: u64 = 1_000;
/// How long an idle server is watched.
const IDLE: Duration = Duration::from_millis(100);

pub(super) fn run(spec: &BenchmarkSpec, context: &Context<'_>) -> Result<Records, TesterError> {
    let mut records = Records::default();
    let cores = Cores::of_this_machine()?;
    for server in ["server1", "server2"] {
        let before = KernelMemory::read().map_err(LabError::io("read /proc/meminfo"))?;
        let shape = Shape { path: Path::Bridge, two_servers: false, tor: false, vms: u32::from(VMS) };
        let mut bed = Bed::new(shape, &StreamPlan::default(), context.weft_binary)?;
        let load = Load::open(&bed, 1, VMS, spec.frame_bytes[0], cores)?;
        let mut benchmark = Benchmark { spec, context, cores, server, before, load, records: &mut records };
        match server {
            "server1" => benchmark.whole(&mut bed)?,
            // The servers are alike; of the second only the rate is needed, because the lower one counts.
            _ => benchmark.rates_only(&mut bed)?,
        }
    }
    Ok(records)
}

struct Benchmark<'a> {
    spec: &'a BenchmarkSpec,
    context: &'a Context<'a>,
    cores: Cores,
    server: &'static str,
    before: KernelMemory,
    load: Load,
    records: &'a mut Records,
}

impl Benchmark<'_> {
    fn whole(&mut self, bed: &mut Bed) -> Result<(), TesterError> {
        let idle = self.idle(bed)?;
        self.records.servers.push(idle);
        let sizes = self.spec.frame_bytes.clone();
        for (place, bytes) in sizes.iter().enumerate() {
            self.context.attend(place as f64 / sizes.len() as f64, &format!("{}: {bytes} bytes", self.server))?;
            self.load.set_size(bed, *bytes)?;
            let pps = self.rate(bed, *bytes)?;
            self.around(bed, *bytes, pps)?;
            let row = self.cost(bed, *bytes, pps)?;
            self.records.servers.push(row);
        }
        self.calibrate(bed)
    }

    fn rates_only(&mut self, bed: &mut Bed) -> Result<(), TesterError> {
        for bytes in self.spec.frame_bytes.clone() {
            self.context.attend(0.9, &format!("{}: {bytes} bytes", self.server))?;
            self.load.set_size(bed, bytes)?;
            let pps = self.rate(bed, bytes)?;
            let row = ServerRow { frames_per_s: pps, ..self.row(bed, bytes) };
            self.records.servers.push(row);
        }
        Ok(())
    }

    fn trial(&self) -> Duration {
        Duration::from_nanos(self.spec.trial.0)
    }

    /// The highest rate within the loss, frames per second.
    fn rate(&mut self, bed: &mut Bed, bytes: u32) -> Result<f64, TesterError> {
        let _steered = Steered::new(bed, 1, self.cores)?;
        let loss = f64::from(self.spec.loss_percent) / 100.0;
        let (pps, trials) = self.load.find_rate(bed, loss, self.trial())?;
        if self.server == "server1" {
            self.records.offered.extend(trials.iter().map(|trial| trial.row("search", bed, 1, bytes, 0)));
        }
        Ok(pps)
    }

    /// What arrives at rates around the benchmark.
    fn around(&mut self, bed: &mut Bed, bytes: u32, pps: f64) -> Result<(), TesterError> {
        if pps <= 0.0 {
            return Ok(());
        }
        let _steered = Steered::new(bed, 1, self.cores)?;
        for percent in &self.spec.offered_percent {
            let offered = self.load.offer(bed, Some(pps * f64::from(*percent) / 100.0), self.trial())?;
            self.records.offered.push(offered.row("offered", bed, 1, bytes, *percent));
        }
        Ok(())
    }

    /// CPU time per frame with the chain cut at the uplink, at the VMs and nowhere.
    fn cost(&self, bed: &mut Bed, bytes: u32, pps: f64) -> Result<ServerRow, TesterError> {
        let at_vms: Vec<Place> = (1..=VMS).map(|vm| bed.in_vm(1, vm)).collect();
        let tester = self.chain(bed, &[bed.uplink(1)])?;
        let switched = self.chain(bed, &at_vms)?;
        let whole = self.chain(bed, &[])?;
        let switch_ns = (switched.sending_ns() - tester.sending_ns()).max(0.0);
        let vm_ns = (whole.sending_ns() - switched.sending_ns()).max(0.0) + whole.taking_ns();
        let cores = |ns: f64| ns * pps * 1e-9;
        Ok(ServerRow {
            frames_per_s: pps,
            server_ns_per_frame: switch_ns + vm_ns,
            vm_ns_per_frame: vm_ns,
            server_cores: cores(switch_ns + vm_ns),
            vm_cores: cores(vm_ns),
            ..self.row(bed, bytes)
        })
    }

    /// Runs with the chain ended at some places.
    fn chain(&self, bed: &mut Bed, ends: &[Place]) -> Result<Costs, TesterError> {
        let _cuts = ends.iter().map(|place| bed.cut(place)).collect::<Result<Vec<_>, _>>()?;
        let mut costs = Costs::default();
        for _ in 0..self.spec.cost.count {
            costs.run_from_tester(bed, &self.load, (1, VMS), self.spec.cost, self.cores)?;
        }
        Ok(costs)
    }

    /// CPU time of the VMs when nothing is sent.
    fn idle(&self, bed: &mut Bed) -> Result<ServerRow, TesterError> {
        let order = Order::Receive {
            duration_ns: IDLE.as_nanos() as u64,
            buffer_bytes: SOCKET_BYTES,
            core: Some(self.cores.server),
        };
        (1..=VMS).try_for_each(|vm| bed.vm(1, vm).begin_receiving(&order))?;
        let mut cores = 0.0;
        for vm in 1..=VMS {
            let reply = bed.vm(1, vm).reply()?;
            cores += reply.cpu_ns as f64 / reply.wall_ns.max(1) as f64;
        }
        Ok(ServerRow { server_cores: cores, vm_cores: cores, ..self.row(bed, 0) })
    }

    /// What is the same for every row.
    fn row(&self, bed: &Bed, bytes: u32) -> ServerRow {
        let vm_memory_bytes = bed.vm_memory_bytes(1);
        // The whole machine's, as the draft's: the server is all that runs on it beside the test centre.
        let kernel = KernelMemory::read().unwrap_or(self.before).total_bytes();
        ServerRow {
            path: Path::Bridge.name().to_owned(),
            server: self.server.to_owned(),
            frame_bytes: bytes,
            core_mhz: core_mhz(),
            server_memory_bytes: kernel + bed.switch_memory_bytes(1) + vm_memory_bytes,
            vm_memory_bytes,
            ..ServerRow::default()
        }
    }

    /// Puts a known cost in front of the cut at the VMs and reads it back.
    fn calibrate(&mut self, bed: &mut Bed) -> Result<(), TesterError> {
        let at_vms: Vec<Place> = (1..=VMS).map(|vm| bed.in_vm(1, vm)).collect();
        let without = self.chain(bed, &at_vms)?;
        let with = {
            let _burn = bed.burn(&bed.uplink(1), BURN_NS)?;
            self.chain(bed, &at_vms)?
        };
        let (known_ns, read_ns) = known_and_read(BURN_NS as f64, &without, &with);
        self.records.facts.extend(calibration_facts(known_ns, read_ns));
        Ok(())
    }
}
