//! `weft bench datapath`: what our eBPF programs cost beside a layer-2 switch program in the same run.

use std::process::ExitCode;

use serde::Serialize;
use weft_datapath::DatapathError;
use weft_datapath::bench::{self, BenchOptions, BenchReport, Ceiling, LiveOptions, LiveReport, TcpOptions, TcpReport};
use weft_scenario::judge::Check;

use crate::args::Output;
use crate::exit::{self, Failure};
use crate::output::{self, Rows};

#[derive(Serialize)]
struct DatapathBench {
    schema_version: u32,
    #[serde(flatten)]
    report: BenchReport,
    #[serde(skip_serializing_if = "Option::is_none")]
    live: Option<LiveReport>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tcp: Option<TcpReport>,
    checks: Vec<Check>,
}

pub(crate) fn datapath(options: &BenchOptions, live: bool, format: Output) -> Result<ExitCode, Failure> {
    let report = bench::run(options).map_err(failure)?;
    let live = if live { Some(bench::live(&LiveOptions::default()).map_err(failure)?) } else { None };
    let tcp = if live.is_some() { Some(bench::tcp(&TcpOptions::default()).map_err(failure)?) } else { None };
    let mut rows = Rows::new(&["measured", "program", "frame bytes", "ns per packet", "ratio to l2_forward"]);
    for program in &report.programs {
        rows.push(vec![
            "program run".to_owned(),
            program.name.to_owned(),
            program.frame_bytes.to_string(),
            format!("{:.1}", program.ns_per_packet),
            format!("{:.2}", program.ratio_to_l2),
        ]);
    }
    for row in live.iter().flat_map(|live| &live.rows) {
        rows.push(vec![
            "live, one hop".to_owned(),
            row.name.to_owned(),
            row.frame_bytes.to_string(),
            format!("{:.1}", row.hop_ns),
            format!("{:.2}", row.hop_ratio_to_l2),
        ]);
    }
    let of_live = live.iter().flat_map(|live| &live.ceilings);
    let ceilings = report.ceilings.iter().chain(of_live).chain(tcp.iter().map(|tcp| &tcp.ceiling));
    let check = |Ceiling { id, ours, want_max }: &Ceiling| Check::at_most(id.clone(), *ours, *want_max, "");
    let checks: Vec<Check> = ceilings.map(check).collect();
    let bench = DatapathBench { schema_version: 2, report, live, tcp, checks };
    output::print(format, &rows, &bench)?;
    output::judged(format, &bench.checks)
}

fn failure(error: DatapathError) -> Failure {
    let code = match error {
        DatapathError::NoRights { .. } | DatapathError::NoEbpf { .. } => exit::NOT_FIT,
        _ => exit::FAILED,
    };
    Failure::new(code, error)
}
