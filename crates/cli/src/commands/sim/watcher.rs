//! Watches a simulation: progress with the pace of the machine, the trace of a flow, the packets of a link.

use std::fs::File;
use std::io::{self, BufWriter};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use weft_scenario::engine::{EngineError, Progress as _};
use weft_sim::{Job, Observer, Outcome, PS_PER_NS, Progress, SimError, Source, TraceLine};
use weft_wire::pcapng;

use super::show::TraceRow;
use crate::args::Output;
use crate::exit::Failure;
use crate::progress::TerminalProgress;

/// Everything that looks at a run.
pub(super) struct Watcher<'a> {
    progress: &'a TerminalProgress,
    started: Instant,
    /// Flows of the list; `None` for the mix.
    flows: Option<usize>,
    trace: Option<Trace>,
    capture: Option<Capture>,
    failed: Option<Failure>,
}

impl<'a> Watcher<'a> {
    pub(super) fn new(
        progress: &'a TerminalProgress,
        job: &Job,
        trace: Option<Trace>,
        capture: Option<Capture>,
    ) -> Self {
        let flows = match &job.source {
            Source::Flows(flows) => Some(flows.len()),
            Source::Mix(_) => None,
        };
        Self { progress, started: Instant::now(), flows, trace, capture, failed: None }
    }

    /// The outcome, unless something could not be written on the way.
    pub(super) fn check(&mut self, outcome: Result<Outcome, SimError>) -> Result<Outcome, EngineError> {
        self.failed.take().map_or_else(|| outcome.map_err(EngineError::from), |failure| Err(failure.into()))
    }

    /// How long it took, for people.
    pub(super) fn say_pace(&self, outcome: &Outcome) {
        let (wall_s, hops) = (self.started.elapsed().as_secs_f64(), outcome.totals.packet_hops as f64);
        let pace = hops / wall_s.max(1e-6) / 1e6;
        let simulated_ms = outcome.end_ps as f64 / 1e9;
        self.progress.note(&format!("{simulated_ms:.3} ms simulated in {wall_s:.2} s, {pace:.1} M packet-hops/s"));
    }

    pub(super) fn into_parts(self) -> (Option<Trace>, Option<Capture>) {
        (self.trace, self.capture)
    }

    fn note(&mut self, result: Result<(), Failure>) {
        if let Err(failure) = result {
            self.failed.get_or_insert(failure);
        }
    }
}

impl Observer for Watcher<'_> {
    fn progress(&mut self, now: &Progress) -> ControlFlow<()> {
        if self.failed.is_some() || self.progress.interrupted() {
            return ControlFlow::Break(());
        }
        let done_ratio = f64::from(now.done_milli) / 1e3;
        let text = progress_text(now, self.flows, self.started.elapsed());
        self.progress.advance(done_ratio, &text);
        ControlFlow::Continue(())
    }

    fn trace(&mut self, line: TraceLine) {
        let result = self.trace.as_mut().map_or(Ok(()), |trace| trace.add(line));
        self.note(result);
    }

    fn packet(&mut self, time_ps: u64, frame: &[u8]) {
        let result = self.capture.as_mut().map_or(Ok(()), |capture| capture.add(time_ps, frame));
        self.note(result);
    }
}

/// Simulated time, flows done, packet-hops per second, time left.
fn progress_text(now: &Progress, flows: Option<usize>, elapsed: Duration) -> String {
    let elapsed_s = elapsed.as_secs_f64().max(1e-3);
    let flows = flows.map_or_else(|| now.flows_started.to_string(), |flows| flows.to_string());
    let time_ms = now.time_ns as f64 / 1e6;
    let pace = now.packet_hops as f64 / elapsed_s / 1e6;
    let left = match now.done_milli {
        0 => String::new(),
        done => format!(", {:.0} s left", elapsed_s * (1e3 / f64::from(done) - 1.0)),
    };
    format!("{time_ms:.2} ms simulated, {}/{flows} flows, {pace:.1} M packet-hops/s{left}", now.flows_done)
}

/// What happens to one flow: printed at once for people, kept for programs.
pub(super) struct Trace {
    print: bool,
    rows: Vec<TraceRow>,
}

impl Trace {
    /// Says which flow it is, where its list is known.
    pub(super) fn begin(format: Output, job: &Job, flow: u32) -> Result<Self, Failure> {
        let print = format == Output::Table;
        let listed = match &job.source {
            Source::Flows(flows) => flows.get(flow as usize),
            Source::Mix(_) => None,
        };
        if let Some(spec) = listed.map(|listed| listed.spec).filter(|_| print) {
            let servers: Vec<_> = job.fabric.servers().collect();
            let name = |server: u32| job.fabric.node(servers[server as usize]).name.as_str();
            let (from, to, start_us) = (name(spec.from), name(spec.to), spec.start_ns as f64 / 1e3);
            crate::output::print_line(&format!(
                "flow {flow}: {} bytes from {from} to {to}, starts at {start_us:.3} us",
                spec.bytes
            ))?;
        }
        Ok(Self { print, rows: Vec::new() })
    }

    pub(super) fn into_rows(self) -> Vec<TraceRow> {
        self.rows
    }

    fn add(&mut self, line: TraceLine) -> Result<(), Failure> {
        if self.print {
            return crate::output::print_line(&format!("{:>14.3} us  {}", line.time_ps as f64 / 1e6, line.text));
        }
        self.rows.push(TraceRow { time_ns: line.time_ps / PS_PER_NS, text: line.text });
        Ok(())
    }
}

/// A pcapng file, under another name until it is complete. Dropping it before [`Capture::keep`] removes it.
pub(super) struct Capture {
    writer: Option<pcapng::Writer<BufWriter<File>>>,
    partial: PathBuf,
    last: PathBuf,
}

impl Capture {
    pub(super) fn create(last: &Path, interface: &str) -> Result<Self, Failure> {
        let mut name = last.file_name().unwrap_or_default().to_owned();
        name.push(".partial");
        let partial = last.with_file_name(name);
        let open = || pcapng::Writer::new(BufWriter::new(File::create(&partial)?), interface);
        let writer = open().map_err(|error| cannot_write(last, &error))?;
        Ok(Self { writer: Some(writer), partial, last: last.to_owned() })
    }

    fn add(&mut self, time_ps: u64, frame: &[u8]) -> Result<(), Failure> {
        let Some(writer) = &mut self.writer else { return Ok(()) };
        let time = Duration::from_nanos(time_ps / PS_PER_NS);
        writer.write(time, frame.len() as u32, frame).map_err(|error| cannot_write(&self.last, &error))
    }

    /// Gives the file its name.
    pub(super) fn keep(mut self) -> Result<(), Failure> {
        let flushed = self.writer.take().map_or(Ok(()), |mut writer| writer.flush());
        flushed
            .and_then(|()| std::fs::rename(&self.partial, &self.last))
            .map_err(|error| cannot_write(&self.last, &error))
    }
}

impl Drop for Capture {
    fn drop(&mut self) {
        // After `keep` there is nothing under this name any more.
        let _ = std::fs::remove_file(&self.partial);
    }
}

fn cannot_write(path: &Path, error: &io::Error) -> Failure {
    Failure::failed(format!("cannot write {}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_says_time_flows_pace_and_what_is_left() {
        let now = Progress {
            time_ns: 1_500_000,
            flows_done: 3,
            flows_started: 5,
            packet_hops: 40_000_000,
            received_bytes: 1,
            done_milli: 250,
        };
        let text = progress_text(&now, Some(10), Duration::from_secs(2));
        assert_eq!(text, "1.50 ms simulated, 3/10 flows, 20.0 M packet-hops/s, 6 s left");
        let early = progress_text(&Progress { done_milli: 0, ..now }, None, Duration::from_secs(2));
        assert_eq!(early, "1.50 ms simulated, 3/5 flows, 20.0 M packet-hops/s");
    }

    #[test]
    fn a_capture_that_is_not_kept_leaves_nothing() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let file = dir.path().join("a.pcapng");
        drop(Capture::create(&file, "a:b").expect("the folder is ours"));
        assert_eq!(std::fs::read_dir(dir.path()).expect("it is there").count(), 0);
        Capture::create(&file, "a:b").expect("the folder is ours").keep().expect("the folder is ours");
        assert!(file.is_file());
    }
}
