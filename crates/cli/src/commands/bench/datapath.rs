//! `weft bench datapath`: what our eBPF programs cost beside a layer-2 switch program in the same run.

use std::process::ExitCode;

use serde::Serialize;
use weft_datapath::DatapathError;
use weft_datapath::bench::{self, BenchOptions, BenchReport, Check, LiveOptions, LiveReport, TcpOptions, TcpReport};

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
    let checks: Vec<&Check> = report
        .checks
        .iter()
        .chain(live.iter().flat_map(|live| &live.checks))
        .chain(tcp.iter().map(|tcp| &tcp.check))
        .collect();
    let passed = checks.iter().all(|check| check.pass);
    if format == Output::Table {
        for check in checks {
            let word = if check.pass { "pass" } else { "FAIL" };
            rows.push(vec![
                word.to_owned(),
                check.id.clone(),
                String::new(),
                format!("{:.2}", check.ours),
                format!("want <= {}", check.want_max),
            ]);
        }
    }
    output::print(format, &rows, &DatapathBench { schema_version: 1, report, live, tcp })?;
    Ok(if passed { ExitCode::SUCCESS } else { ExitCode::from(exit::CLAIM_FAILED) })
}

fn failure(error: DatapathError) -> Failure {
    let code = match error {
        DatapathError::NoRights { .. } | DatapathError::NoEbpf { .. } => exit::NOT_FIT,
        _ => exit::FAILED,
    };
    Failure::new(code, error)
}
