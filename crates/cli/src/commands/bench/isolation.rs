//! `weft bench isolation`: what somebody who misbehaves does to another tenant.

use std::process::ExitCode;

use weft_lab::isolation::{self, IsolationOptions};

use crate::commands::lab;
use crate::commands::saving::Saving;
use crate::exit::Failure;
use crate::output::{self, Rows};
use crate::progress::TerminalProgress;

pub(crate) fn isolation(quick: bool, rounds: u32, saving: Saving, quiet: bool) -> Result<ExitCode, Failure> {
    let options = IsolationOptions { weft_binary: lab::this_program().map_err(Failure::failed)?, quick, rounds };
    let progress = TerminalProgress::new(quiet)?;
    let report = isolation::run(&options, &progress);
    progress.finish();
    let report = report.map_err(lab::failure)?;
    let mut rows = Rows::new(&["beside", "sent per s", "frames", "lost", "p50 us", "p99 us", "p50 ratio"]);
    for of in &report.attacks {
        let line = |beside: String, per_s: f64, lost: u64, times: [f64; 2], ratio: String| {
            let [p50, p99] = times.map(|us| format!("{us:.1}"));
            vec![beside, output::number(per_s), of.frames.to_string(), lost.to_string(), p50, p99, ratio]
        };
        let allowed = [of.p50_us_beside_allowed, of.p99_us_beside_allowed];
        let ratio = format!("{:.2}", of.p50_ratio);
        rows.push(line(of.attack.to_owned(), of.sent_per_s, of.lost, [of.p50_us, of.p99_us], ratio));
        rows.push(line("  allowed frames".into(), of.compared_per_s, of.lost_beside_allowed, allowed, String::new()));
    }
    let format = saving.format;
    saving.print(&rows, &report, Vec::new(), &report.checks)?;
    output::judged(format, &report.checks)
}
