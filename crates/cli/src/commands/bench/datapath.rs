//! `weft bench datapath`: what our eBPF programs cost beside a layer-2 switch program in the same run.

use std::process::ExitCode;

use serde::Serialize;
use weft_datapath::DatapathError;
use weft_experiment::measurement::Reading;
use weft_scenario::judge::{Check, Relation};
use weft_testbed::bench::{self, BenchOptions, BenchReport, Ceiling, ProgramCost};

use crate::commands::saving::Saving;
use crate::exit::{self, Failure};
use crate::output::{self, Rows};

#[derive(Serialize)]
struct DatapathBench {
    schema_version: u32,
    #[serde(flatten)]
    report: BenchReport,
    checks: Vec<Check>,
}

pub(crate) fn datapath(options: &BenchOptions, saving: Saving) -> Result<ExitCode, Failure> {
    let report = bench::run(options).map_err(failure)?;
    let mut rows = Rows::new(&["program", "frame bytes", "ns per packet", "ratio to layer 2"]);
    for program in &report.programs {
        rows.push(vec![
            program.name.to_owned(),
            program.frame_bytes.to_string(),
            format!("{:.1}", program.ns_per_packet),
            format!("{:.2}", program.ratio_to_l2),
        ]);
    }
    let check = |Ceiling { id, ours, want_max }: &Ceiling| Check::at_most(id.clone(), *ours, *want_max, "");
    let checks: Vec<Check> = report.ceilings.iter().map(check).collect();
    let bench = DatapathBench { schema_version: 4, report, checks };
    let readings = bench.report.programs.iter().flat_map(readings).collect();
    let format = saving.format;
    saving.print(&rows, &bench, readings, &bench.checks)?;
    output::judged(format, &bench.checks)
}

fn readings(program: &ProgramCost) -> [Reading; 2] {
    let place = format!("{}.{}", program.name, program.frame_bytes);
    [
        Reading::new(format!("ratio_to_l2.{place}"), program.ratio_to_l2, "ratio", Relation::AtMost),
        Reading::new(format!("ns_per_packet.{place}"), program.ns_per_packet, "ns", Relation::AtMost),
    ]
}

fn failure(error: DatapathError) -> Failure {
    let code = match error {
        DatapathError::NoRights { .. } | DatapathError::NoEbpf { .. } => exit::NOT_FIT,
        _ => exit::FAILED,
    };
    Failure::new(code, error)
}
