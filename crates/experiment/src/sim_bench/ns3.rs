//! Our simulator beside ns-3 on a tenth of r1a, in the same run: builds our driver against Debian's libns3-dev.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde::Serialize;
use weft_scenario::engine::{EngineError, Progress};
use weft_scenario::workload::{flow_file, r1};

use super::child::{self, Counts};
use super::measure::{check_interrupted, median, pace, paired_ratio};
use super::{failed, program};

/// The driver: R1 on ns-3.
const SOURCE: &str = include_str!("../../../../bench/ns3/r1.cc");
const LIBRARIES: [&str; 6] =
    ["ns3-core", "ns3-network", "ns3-internet", "ns3-point-to-point", "ns3-applications", "ns3-traffic-control"];
const REMEDY: &str = "apt-get install g++ pkg-config libns3-dev libgsl-dev libxml2-dev, or leave out --vs ns3";
/// Packets of one flow: a tenth of r1a's.
const PACKETS: u32 = 1_000;
const DIVISOR: &str = "10";

/// Both simulators on the same flows; CPU times are medians. Completion times are those to the last byte at the receiver; ns-3's
/// packets have two bytes of PPP that ours have not.
#[derive(Clone, Debug, Serialize)]
pub struct Ns3Row {
    /// What both ran.
    pub job: &'static str,
    /// As pkg-config says.
    pub ns3_version: String,
    /// Transmissions of packets over links, in ns-3.
    pub ns3_packet_hops: u64,
    /// Mean time to the last byte received, in ns-3.
    pub ns3_mean_received_us: f64,
    /// CPU time of ns-3.
    pub ns3_cpu_s: f64,
    /// Pace of ns-3.
    pub ns3_hops_per_cpu_s: f64,
    /// What our simulator counted.
    #[serde(flatten)]
    pub counts: Counts,
    /// Our CPU time.
    pub cpu_s: f64,
    /// Our pace.
    pub hops_per_cpu_s: f64,
    /// Our packet-hops per CPU second over ns-3's: the median of the rounds.
    pub ratio: f64,
}

/// The driver, built, with its flows beside it.
pub(super) struct Driver {
    dir: tempfile::TempDir,
    version: String,
}

/// One line of the driver.
struct Said {
    packet_hops: u64,
    mean_received_us: f64,
    cpu_s: f64,
}

impl Driver {
    /// Builds the driver in a folder that goes away with it; says what to install where something is missing.
    pub(super) fn build(progress: &dyn Progress) -> Result<Self, EngineError> {
        let version = pkg_config(&["--modversion", LIBRARIES[0]], progress)?;
        let flags = pkg_config(&[&["--cflags", "--libs"][..], &LIBRARIES].concat(), progress)?;
        let dir = tempfile::tempdir().map_err(failed)?;
        let source = dir.path().join("r1.cc");
        std::fs::write(&source, SOURCE).map_err(failed)?;
        std::fs::write(dir.path().join("r1.flows"), flow_file::to_text(&r1::permutation(PACKETS))).map_err(failed)?;
        let driver = Self { dir, version };
        let mut compiler = Command::new("g++");
        compiler.args(["-std=c++17", "-O3", "-o"]).arg(driver.program()).arg(&source).args(flags.split_whitespace());
        let output = program::output(&mut compiler, progress)?
            .map_err(|error| missing(&format!("g++ cannot be started: {error}")))?;
        match output.status.success() {
            true => Ok(driver),
            false => Err(EngineError::Failed(format!("the ns-3 driver was not built: {}", first_line(&output)))),
        }
    }

    /// Runs both in turn.
    pub(super) fn compare(&self, rounds: u32, progress: &dyn Progress) -> Result<Ns3Row, EngineError> {
        progress.phase("ns-3", "r1a with a tenth of its packets");
        // Counting hops costs ns-3 time, so it is done once and not timed.
        let counted = self.run(true, progress)?;
        let (mut theirs, mut ours) = (Vec::new(), Vec::new());
        for round in 0..rounds {
            check_interrupted(progress)?;
            theirs.push(self.run(false, progress)?.cpu_s);
            ours.push(child::start(&["r1a", "--divisor", DIVISOR], progress)?);
            progress.advance(f64::from(round + 1) / f64::from(rounds), &format!("round {} of {rounds}", round + 1));
        }
        let counts = ours[0].counts;
        let our_times: Vec<f64> = ours.iter().map(|report| report.cpu_s).collect();
        // As many hops for the same CPU time: the inverse of the ratio of times, for not quite the same hops.
        let hops_ratio = counts.packet_hops as f64 / counted.packet_hops.max(1) as f64;
        let (ns3_cpu_s, cpu_s) = (median(&theirs), median(&our_times));
        Ok(Ns3Row {
            job: "r1a/10",
            ns3_version: self.version.clone(),
            ns3_packet_hops: counted.packet_hops,
            ns3_mean_received_us: counted.mean_received_us,
            ns3_cpu_s,
            ns3_hops_per_cpu_s: pace(counted.packet_hops, ns3_cpu_s),
            counts,
            cpu_s,
            hops_per_cpu_s: pace(counts.packet_hops, cpu_s),
            ratio: paired_ratio(&theirs, &our_times) * hops_ratio,
        })
    }

    fn program(&self) -> PathBuf {
        self.dir.path().join("r1")
    }

    fn run(&self, count_hops: bool, progress: &dyn Progress) -> Result<Said, EngineError> {
        let flows: &Path = &self.dir.path().join("r1.flows");
        let mut command = Command::new(self.program());
        command.arg(flows).arg(format!("--count={}", u8::from(count_hops)));
        let output = program::output(&mut command, progress)?.map_err(failed)?;
        if !output.status.success() {
            return Err(EngineError::Failed(format!("the ns-3 driver failed: {}", first_line(&output))));
        }
        let text = String::from_utf8_lossy(&output.stdout);
        read(&text).ok_or_else(|| EngineError::Failed(format!("the ns-3 driver said `{}`", text.trim())))
    }
}

/// Reads `hops=8 mean_received_us=1.5 cpu_s=0.2`.
fn read(text: &str) -> Option<Said> {
    let value = |name: &str| {
        let word = text.split_whitespace().find_map(|word| word.strip_prefix(name)?.strip_prefix('='))?;
        word.parse::<f64>().ok()
    };
    Some(Said {
        packet_hops: value("hops")? as u64,
        mean_received_us: value("mean_received_us")?,
        cpu_s: value("cpu_s")?,
    })
}

fn pkg_config(arguments: &[&str], progress: &dyn Progress) -> Result<String, EngineError> {
    let output = program::output(Command::new("pkg-config").args(arguments), progress)?;
    let output = output.map_err(|error| missing(&format!("pkg-config cannot be started: {error}")))?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned()),
        false => Err(missing("ns-3 is not installed")),
    }
}

fn missing(what: &str) -> EngineError {
    EngineError::NotFit { what: what.to_owned(), remedy: REMEDY.to_owned() }
}

fn first_line(output: &Output) -> String {
    let said = String::from_utf8_lossy(&output.stderr);
    let line = said.lines().find(|line| line.contains("error")).or_else(|| said.lines().next());
    format!("{} ({})", line.unwrap_or("no message"), output.status)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_drivers_line_is_read_by_its_names() {
        let said =
            read("ns-3 flows=100 done=100 hops=800800 mean_received_us=1271.5 cpu_s=4.75\n").expect("it is whole");
        assert_eq!((said.packet_hops, said.mean_received_us, said.cpu_s), (800_800, 1_271.5, 4.75));
        assert!(read("ns-3 hops=8").is_none());
    }
}
