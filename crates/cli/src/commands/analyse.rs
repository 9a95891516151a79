//! `weft analyse`: flow sizes, concurrent flows and traffic matrices of a flow log, beside what VL2 says.

use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::path::Path;
use std::process::ExitCode;

use weft_experiment::flow_report::FlowReport;
use weft_experiment::run_folder::RunFolder;
use weft_model::flow_log::generated::{self, GenerateError};
use weft_model::flow_log::places::{Places, RackRule};
use weft_model::flow_log::reader::{self, Format, ReadError, ReadOptions};
use weft_model::flow_log::{Options, Recorder};
use weft_scenario::engine::Progress;
use weft_scenario::record::Records;
use weft_scenario::units::BitsPerSec;
use weft_scenario::workload::{FlowLogSpec, Servers};

use crate::args::{AnalyseArgs, FormatChoice, GenerateArgs, Output, RackArgs};
use crate::exit::{self, Failure};
use crate::output::{self, Rows};
use crate::progress::TerminalProgress;

/// Large reads: a log is read once from start to end.
const BUFFER_LEN: usize = 1 << 18;
/// Links of the servers of a generated log, as in the paper.
const SERVER_RATE: BitsPerSec = BitsPerSec(1_000_000_000);

pub(crate) fn analyse(args: &AnalyseArgs, quiet: bool) -> Result<ExitCode, Failure> {
    if args.interval.0 == 0 {
        return Err(Failure::usage("--interval is 0; choose a time such as `100 s`"));
    }
    let folder = args.out.clone().map(RunFolder::begin).transpose().map_err(Failure::failed)?;
    let progress = TerminalProgress::new(quiet)?;
    let made = match &args.flows {
        Some(path) => read(path, args, &progress),
        None => generate(&args.generate, options(args), &progress),
    };
    progress.finish();
    let (name, records) = made?;
    let report = FlowReport::of(&name, &records);
    if let Some(folder) = folder {
        report.write(&folder, &records, args.generate.seed).map_err(Failure::failed)?;
        folder.complete().map_err(Failure::failed)?;
    }
    show(&report, args)?;
    Ok(ExitCode::SUCCESS)
}

fn options(args: &AnalyseArgs) -> Options {
    Options { interval: (!args.no_matrices).then_some(args.interval), best_clusters: args.clusters as usize }
}

/// Reads the user's log; `-` is standard input.
fn read(path: &Path, args: &AnalyseArgs, progress: &TerminalProgress) -> Result<(String, Records), Failure> {
    let name = path.display().to_string();
    let mut places = Places::new(rack_rule(&args.racks)?);
    let unreadable = |error: std::io::Error| Failure::usage(format!("flow log {name}: {error}"));
    let (source, length): (Box<dyn BufRead>, Option<u64>) = match name.as_str() {
        "-" => (Box::new(BufReader::with_capacity(BUFFER_LEN, std::io::stdin())), None),
        _ => {
            let file = File::open(path).map_err(unreadable)?;
            let about = file.metadata().map_err(unreadable)?;
            (Box::new(BufReader::with_capacity(BUFFER_LEN, file)), about.is_file().then_some(about.len()))
        }
    };
    let format = args.format.map(|format| match format {
        FormatChoice::Csv | FormatChoice::Ipfix => Format::Columns,
        FormatChoice::Nfdump => Format::Nfdump,
    });
    let mut recorder = Recorder::new(options(args));
    progress.phase("read", &name);
    let on_pace = |pace: reader::Pace| {
        let done = length.map_or(0.0, |length| pace.bytes as f64 / length.max(1) as f64);
        progress.advance(done, &format!("{} lines", pace.lines));
        !progress.interrupted()
    };
    let read_options = ReadOptions { format, reorder_ns: args.reorder.0 };
    reader::read(source, read_options, &mut places, &mut recorder, on_pace).map_err(|error| match error {
        ReadError::Interrupted => interrupted(),
        ReadError::Io(_) => Failure::failed(format!("flow log {name}: {error}")),
        ReadError::Line { .. } | ReadError::Empty => Failure::usage(format!("flow log {name}: {error}")),
    })?;
    progress.phase("cluster", &format!("{} flows, {} racks", recorder.flows(), places.racks()));
    let on_merge = |done| {
        progress.advance(done, "");
        !progress.interrupted()
    };
    let records = recorder.finish(None, on_merge).ok_or_else(interrupted)?;
    Ok((name, records))
}

fn rack_rule(args: &RackArgs) -> Result<RackRule, Failure> {
    if let Some(file) = &args.racks {
        let named = |problem: String| Failure::usage(format!("rack file {}: {problem}", file.display()));
        let text = std::fs::read_to_string(file).map_err(|error| named(error.to_string()))?;
        return RackRule::parse(&text).map_err(named);
    }
    let inside = if args.inside.is_empty() { RackRule::private_blocks() } else { args.inside.clone() };
    Ok(RackRule::Prefix { inside, v4_bits: args.rack_prefix, v6_bits: args.rack_prefix_v6 })
}

/// Generates a log, writing it down where that is asked for.
fn generate(args: &GenerateArgs, options: Options, progress: &TerminalProgress) -> Result<(String, Records), Failure> {
    let spec = FlowLogSpec::vl2(args.duration);
    let servers = Servers::alike(args.rack_count * args.servers_per_rack, SERVER_RATE, args.servers_per_rack);
    let text = args.write.as_deref().map(Text::create).transpose()?;
    let mut text = text;
    progress.phase("generate", &format!("{} of {} servers, seed {}", args.duration, servers.count(), args.seed));
    let on_progress = |done| {
        progress.advance(done, "");
        !progress.interrupted()
    };
    let sink = text.as_mut().map(|text| &mut text.file as &mut dyn Write);
    let made = generated::record(&spec, &servers, args.seed, options, sink, on_progress);
    let records = made.map_err(|error| match error {
        GenerateError::Interrupted => interrupted(),
        GenerateError::Workload(_) | GenerateError::Record(_) | GenerateError::NoAddresses => Failure::usage(error),
        GenerateError::Write(_) => Failure::failed(format!("the log cannot be written: {error}")),
    })?;
    text.map_or(Ok(()), Text::keep)?;
    Ok((format!("generated (seed {})", args.seed), records))
}

/// A log that is being written, under a name of its own until it is whole.
struct Text {
    file: BufWriter<tempfile::NamedTempFile>,
    path: std::path::PathBuf,
}

impl Text {
    fn create(path: &Path) -> Result<Self, Failure> {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        // Like any file that a program writes: what the umask leaves of these.
        let plain = std::os::unix::fs::PermissionsExt::from_mode(0o666);
        let file = tempfile::Builder::new()
            .permissions(plain)
            .tempfile_in(folder)
            .map_err(|error| Failure::failed(format!("cannot write {}: {error}", path.display())))?;
        Ok(Self { file: BufWriter::with_capacity(BUFFER_LEN, file), path: path.to_owned() })
    }

    fn keep(self) -> Result<(), Failure> {
        let failed = |error: String| Failure::failed(format!("cannot write {}: {error}", self.path.display()));
        let file = self.file.into_inner().map_err(|error| failed(error.to_string()))?;
        file.persist(&self.path).map_err(|error| failed(error.to_string()))?;
        Ok(())
    }
}

fn interrupted() -> Failure {
    Failure::new(exit::INTERRUPTED, "interrupted; nothing was written")
}

fn show(report: &FlowReport, args: &AnalyseArgs) -> Result<(), Failure> {
    let mut rows = Rows::new(&["what", "value", "VL2 says", "meaning"]);
    for line in report.lines() {
        rows.push(line.cells().to_vec());
    }
    output::print(args.output.output, &rows, report)?;
    match &args.out {
        Some(out) if args.output.output == Output::Table => {
            output::print_line(&format!("\nfigures: {}", out.join("figures.html").display()))
        }
        _ => Ok(()),
    }
}
