//! `weft directory import` and `export`.

use std::io::{BufWriter, Read, Write};
use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

use serde::Serialize;
use weft_node::client::bulk::{self, Format};
use weft_scenario::engine::Progress;

use super::{connect, failure};
use crate::args::{AdminArgs, Output};
use crate::exit::{self, Failure};
use crate::output::{self, Rows};
use crate::progress::TerminalProgress;

#[derive(Serialize)]
struct Report {
    schema_version: u32,
    mappings: usize,
    imported: usize,
    revision: u64,
    seconds: f64,
    mappings_per_s: f64,
    interrupted: bool,
}

pub(super) fn import(file: &Path, admin: &AdminArgs, quiet: bool) -> Result<ExitCode, Failure> {
    let text = read(file)?;
    let mut client = connect(&admin.session)?;
    let progress = TerminalProgress::new(quiet)?;
    progress.phase("import", "checking the file");
    let rules = client.rules().map_err(failure)?;
    let mappings = bulk::read(&text, &rules).map_err(|error| Failure::usage(format!("{}, {error}", file.display())))?;
    drop(text);
    let total = mappings.len();
    let start = Instant::now();
    progress.phase("import", &format!("{total} mappings"));
    let imported = bulk::import(&mut client, &mappings, &mut |done| {
        progress.advance(done as f64 / total as f64, &format!("{done} of {total} mappings"));
        !progress.interrupted()
    });
    progress.finish();
    let imported = imported.map_err(failure)?;
    let seconds = start.elapsed().as_secs_f64();
    let report = Report {
        schema_version: 1,
        mappings: total,
        imported: imported.mappings,
        revision: imported.revision,
        seconds,
        mappings_per_s: imported.mappings as f64 / seconds.max(1e-9),
        interrupted: imported.interrupted,
    };
    print(&report, admin)?;
    if imported.interrupted {
        let why = format!("interrupted: {} of {total} mappings are in; import the file again", imported.mappings);
        return Err(Failure::new(exit::INTERRUPTED, why));
    }
    Ok(ExitCode::SUCCESS)
}

fn print(report: &Report, admin: &AdminArgs) -> Result<(), Failure> {
    let mut rows = Rows::new(&["mappings", "imported", "revision", "seconds", "mappings/s"]);
    rows.push(vec![
        report.mappings.to_string(),
        report.imported.to_string(),
        report.revision.to_string(),
        format!("{:.2}", report.seconds),
        format!("{:.0}", report.mappings_per_s),
    ]);
    output::print(admin.output.output, &rows, report)
}

fn read(file: &Path) -> Result<String, Failure> {
    let mut text = String::new();
    let read = if file == Path::new("-") {
        std::io::stdin().lock().read_to_string(&mut text).map(drop)
    } else {
        std::fs::read_to_string(file).map(|content| text = content)
    };
    read.map_err(|error| Failure::usage(format!("{}: {error}; nothing was imported", file.display())))?;
    Ok(text)
}

pub(super) fn export(admin: &AdminArgs) -> Result<ExitCode, Failure> {
    let mut client = connect(&admin.session)?;
    let format = if admin.output.output == Output::Json { Format::JsonLines } else { Format::Csv };
    let mut out = BufWriter::new(std::io::stdout().lock());
    let mut written = bulk::write_header(format, &mut out);
    client
        .list_each(|rows| {
            if written.is_ok() {
                written = bulk::write_rows(format, &rows, &mut out);
            }
            Ok(())
        })
        .map_err(failure)?;
    match written.and_then(|()| out.flush()) {
        // A reader that has gone away (`| head`) is no error.
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(Failure::failed(format!("standard output: {error}")))
        }
        _ => Ok(ExitCode::SUCCESS),
    }
}
