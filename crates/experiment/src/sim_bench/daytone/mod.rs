//! Our simulator beside daytone, one made of actors, on fat trees with sparse traffic: the same network, streams and ways.
//!
//! daytone is a program of its own (`pip install --target DIR daytone`), which is run and no part of us. Both sides are whole
//! processes: what they cost contains that a network is made and a configuration read.

mod config;
mod result;

use std::ffi::OsString;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde::Serialize;
use weft_scenario::engine::{EngineError, Progress};

pub use config::{Network, configuration};

use self::result::Arrived;
use super::child::{self, ChildReport};
use super::failed;
use super::measure::{check_interrupted, median, pace, paired_ratio};
use super::usage::{self, Usage};

/// Where daytone is, if not in the user's cache.
const FOLDER: &str = "WEFT_DAYTONE";
/// Jobs, and by how much their packets are divided: daytone takes 1 to 15 s of CPU for each.
const JOBS: [(&str, &str); 3] = [("fat8", "1"), ("fat16", "5"), ("fat32", "25")];
/// One packet of each stream of the smallest job, which shows whether daytone runs at all.
const TRIAL: (&str, &str) = ("fat8", "1500");

/// Both simulators on the same streams; times and memory are medians, of whole processes.
#[derive(Clone, Debug, Serialize)]
pub struct DaytoneRow {
    /// What both ran.
    pub job: &'static str,
    /// As its folder says.
    pub daytone_version: String,
    /// Servers of the network.
    pub servers: u64,
    /// Streams of packets, and those of them whose mean delay is the same in both.
    pub streams: u64,
    pub equal_streams: u64,
    /// Packets that arrived, in daytone.
    pub daytone_packets: u64,
    /// Mean one-way delay, in daytone.
    pub daytone_mean_delay_us: f64,
    /// CPU time of daytone.
    pub daytone_cpu_s: f64,
    /// Pace of daytone: packets go the same ways, and so over as many links.
    pub daytone_hops_per_cpu_s: f64,
    /// Largest resident size of daytone.
    pub daytone_peak_rss_bytes: u64,
    /// The same for each server.
    pub daytone_bytes_per_server: u64,
    /// Packets that arrived here.
    pub packets: u64,
    /// Mean one-way delay here.
    pub mean_delay_us: f64,
    /// Transmissions of packets over links.
    pub packet_hops: u64,
    /// Our CPU time.
    pub cpu_s: f64,
    /// Our pace.
    pub hops_per_cpu_s: f64,
    /// Our largest resident size.
    pub peak_rss_bytes: u64,
    /// The same for each server.
    pub bytes_per_server: u64,
    /// daytone's CPU time over ours: the median of the rounds.
    pub ratio: f64,
}

/// One run of each simulator.
type Round = ((Usage, Arrived), ChildReport);

/// daytone where it was found, with a folder for configurations and results that goes away with it.
#[derive(Debug)]
pub(super) struct Daytone {
    program: PathBuf,
    version: String,
    dir: tempfile::TempDir,
}

impl Daytone {
    /// Looks for it, and has it run a little; says what to install where it is missing.
    pub(super) fn find(progress: &dyn Progress) -> Result<Self, EngineError> {
        let folder = folder(|name| std::env::var_os(name))?;
        let (program, version) = installed(&folder)?;
        let daytone = Self { program, version, dir: tempfile::tempdir().map_err(failed)? };
        daytone.prepare(TRIAL, progress)?;
        daytone.run(TRIAL.0, progress)?;
        Ok(daytone)
    }

    /// Runs both in turn on each job.
    pub(super) fn compare(&self, rounds: u32, progress: &dyn Progress) -> Result<Vec<DaytoneRow>, EngineError> {
        progress.phase("daytone", "fat trees with sparse traffic");
        JOBS.iter().try_for_each(|job| self.prepare(*job, progress))?;
        let mut runs = vec![Vec::new(); JOBS.len()];
        for round in 0..rounds {
            for (place, (job, divisor)) in JOBS.iter().enumerate() {
                check_interrupted(progress)?;
                runs[place].push((self.run(job, progress)?, child::start(&[job, "--divisor", divisor], progress)?));
                let done = f64::from(round) + (place + 1) as f64 / JOBS.len() as f64;
                progress.advance(done / f64::from(rounds), &format!("round {} of {rounds}, {job}", round + 1));
            }
        }
        let row = |((job, divisor), runs): (&(&'static str, &str), &Vec<Round>)| {
            row(job, &self.version, runs, &child::stream_delays(job, divisor, progress)?)
        };
        JOBS.iter().zip(&runs).map(row).collect()
    }

    /// Has a child write the configuration, so that no network makes this process large: its size is where the count of a child's
    /// begins.
    fn prepare(&self, (job, divisor): (&str, &str), progress: &dyn Progress) -> Result<(), EngineError> {
        let (file, results) = (self.file(job), self.results(job));
        child::write_network(job, divisor, &file, &results, progress)
    }

    fn run(&self, job: &str, progress: &dyn Progress) -> Result<(Usage, Arrived), EngineError> {
        let mut command = Command::new(&self.program);
        command.arg(self.file(job)).env("RUST_LOG", "error").env_remove("RUST_BACKTRACE").current_dir(self.dir.path());
        let usage = usage::run(&mut command, "daytone", progress)?;
        let sinks = self.results(job).join("sinks.csv");
        let table = File::open(&sinks).map_err(|error| failed(format!("daytone's sinks.csv: {error}")))?;
        Ok((usage, result::read(table)?))
    }

    fn file(&self, job: &str) -> PathBuf {
        self.dir.path().join(format!("{job}.toml"))
    }

    fn results(&self, job: &str) -> PathBuf {
        self.dir.path().join(job)
    }
}

/// Where daytone should be.
fn folder(variable: impl Fn(&str) -> Option<OsString>) -> Result<PathBuf, EngineError> {
    let set = |name: &str| variable(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let cache = || set("XDG_CACHE_HOME").or_else(|| Some(set("HOME")?.join(".cache")));
    let folder = set(FOLDER).or_else(|| Some(cache()?.join("weft/daytone")));
    folder.ok_or_else(|| EngineError::NotFit {
        what: "there is no folder for daytone: neither HOME nor XDG_CACHE_HOME is set".to_owned(),
        remedy: format!("pip install --target DIR daytone, and {FOLDER}=DIR; or leave out --vs daytone"),
    })
}

/// The program in a folder, and its version.
fn installed(folder: &Path) -> Result<(PathBuf, String), EngineError> {
    let program = folder.join("bin/daytone");
    if !program.is_file() {
        let dir = folder.display();
        return Err(EngineError::NotFit {
            what: format!("daytone is not installed: {} is no file", program.display()),
            remedy: format!(
                "pip install --target {dir} daytone, name another folder by {FOLDER}, or leave out --vs daytone"
            ),
        });
    }
    let version = |name: OsString| {
        let name = name.to_string_lossy().into_owned();
        Some(name.strip_prefix("daytone-")?.strip_suffix(".dist-info")?.to_owned())
    };
    let names = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.file_name());
    Ok((program, names.filter_map(version).next().unwrap_or_else(|| "of unknown version".to_owned())))
}

fn row(job: &'static str, version: &str, runs: &[Round], delays_us: &[f64]) -> Result<DaytoneRow, EngineError> {
    let of = |field: fn(&Round) -> f64| runs.iter().map(field).collect::<Vec<f64>>();
    let Some(((_, arrived), report)) = runs.first() else { return Err(failed("no round was run")) };
    let is_same = |((_, other), own): &Round| other == arrived && own.counts == report.counts;
    if !runs.iter().all(is_same) {
        return Err(EngineError::Failed(format!("job {job} did not give the same result in every round")));
    }
    let (theirs, ours) = (of(|((usage, _), _)| usage.cpu_s), of(|(_, report)| report.process_cpu_s));
    let (daytone_cpu_s, cpu_s) = (median(&theirs), median(&ours));
    let daytone_peak_rss_bytes = median(&of(|((usage, _), _)| usage.peak_rss_bytes as f64)) as u64;
    let peak_rss_bytes = median(&of(|(_, report)| report.peak_rss_bytes as f64)) as u64;
    let hops_each = report.counts.packet_hops as f64 / report.counts.datagrams.max(1) as f64;
    Ok(DaytoneRow {
        job,
        daytone_version: version.to_owned(),
        servers: report.servers,
        streams: delays_us.len() as u64,
        equal_streams: arrived.as_fast(delays_us),
        daytone_packets: arrived.packets,
        daytone_mean_delay_us: arrived.mean_delay_us,
        daytone_cpu_s,
        daytone_hops_per_cpu_s: pace((arrived.packets as f64 * hops_each) as u64, daytone_cpu_s),
        daytone_peak_rss_bytes,
        daytone_bytes_per_server: daytone_peak_rss_bytes / report.servers.max(1),
        packets: report.counts.datagrams,
        mean_delay_us: report.counts.mean_delay_us,
        packet_hops: report.counts.packet_hops,
        cpu_s,
        hops_per_cpu_s: pace(report.counts.packet_hops, cpu_s),
        peak_rss_bytes,
        bytes_per_server: peak_rss_bytes / report.servers.max(1),
        ratio: paired_ratio(&theirs, &ours),
    })
}

#[cfg(test)]
mod tests {
    use super::super::child::Counts;
    use super::*;

    #[test]
    fn the_variable_goes_before_the_cache_and_that_before_the_home() {
        let found = |set: &[(&str, &str)]| {
            let variable =
                |name: &str| set.iter().find(|(one, _)| *one == name).map(|(_, value)| OsString::from(value));
            folder(variable).map_err(|error| error.to_string())
        };
        let (home, cache) = (("HOME", "/h"), ("XDG_CACHE_HOME", "/c"));
        assert_eq!(found(&[home, cache, (FOLDER, "/d")]), Ok("/d".into()));
        assert_eq!(found(&[home, cache, (FOLDER, "")]), Ok("/c/weft/daytone".into()));
        assert_eq!(found(&[home]), Ok("/h/.cache/weft/daytone".into()));
        assert!(found(&[]).is_err_and(|error| error.contains("WEFT_DAYTONE=DIR")));
    }

    #[test]
    fn what_is_missing_is_said_with_its_remedy_and_what_is_there_by_its_version() {
        let dir = tempfile::tempdir().expect("there is room");
        let missing = installed(dir.path()).expect_err("it is empty").to_string();
        let path = dir.path().display();
        assert!(
            missing.contains(&format!("{path}/bin/daytone is no file; pip install --target {path} daytone")),
            "{missing}"
        );
        std::fs::create_dir_all(dir.path().join("bin")).expect("there is room");
        std::fs::write(dir.path().join("bin/daytone"), "").expect("there is room");
        let version = || installed(dir.path()).expect("it is there").1;
        assert_eq!(version(), "of unknown version");
        std::fs::create_dir(dir.path().join("daytone-0.3.4.dist-info")).expect("there is room");
        assert_eq!(version(), "0.3.4");
    }

    fn round(daytone_s: f64, ours_s: f64) -> Round {
        let stream_delays_us = [(0, 48_000.0), (1, 48_000.0)].into();
        let arrived = Arrived { packets: 100, mean_delay_us: 48_000.0, stream_delays_us };
        let counts = Counts { packet_hops: 600, datagrams: 100, mean_delay_us: 48_000.0, ..Counts::default() };
        let report =
            ChildReport { counts, process_cpu_s: ours_s, peak_rss_bytes: 800, servers: 8, ..ChildReport::default() };
        ((Usage { cpu_s: daytone_s, peak_rss_bytes: 8_000 }, arrived), report)
    }

    #[test]
    fn ratios_are_those_of_the_same_round_and_memory_is_shared_out() {
        let rounds = [round(30.0, 1.0), round(60.0, 3.0), round(50.0, 2.0)];
        let row = row("fat8", "0.3.4", &rounds, &[48_000.0, 49_000.0]).expect("rounds agree");
        assert_eq!((row.streams, row.equal_streams), (2, 1));
        assert_eq!((row.daytone_cpu_s, row.cpu_s, row.ratio), (50.0, 2.0, 25.0));
        assert_eq!((row.daytone_hops_per_cpu_s, row.hops_per_cpu_s), (12.0, 300.0));
        assert_eq!((row.daytone_bytes_per_server, row.bytes_per_server), (1_000, 100));
    }

    #[test]
    fn rounds_that_disagree_are_no_result() {
        let mut other = round(1.0, 1.0);
        other.0.1.packets = 99;
        assert!(row("fat8", "", &[round(1.0, 1.0), other], &[]).is_err());
        let mut other = round(1.0, 1.0);
        other.1.counts.drops = 1;
        assert!(row("fat8", "", &[round(1.0, 1.0), other], &[]).is_err());
        assert!(row("fat8", "", &[], &[]).is_err());
    }
}
