//! Measurements without a plan, kept like runs: what `weft measure` and `weft bench` write with `--out`.
//!
//! | file | what it is |
//! | --- | --- |
//! | `manifest.json` | [`MeasurementManifest`]: what was asked, machine, time, load |
//! | `rows.csv` | the rows that people see |
//! | `summary.json` | [`MeasurementSummary`]: readings by name, and the object of `-o json` |
//! | `report.html` | one page that opens without a network |

mod page;

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use weft_scenario::judge::{Check, Relation, Verdict};

use crate::report::ReportError;
use crate::run_folder::{FolderError, Machine, RunFolder, load_average, now_utc, program_digest};

/// Version of both files here.
const SCHEMA_VERSION: u32 = 1;

/// A number with a name, as series over builds and kernels take it: a claim of a plan, a floor of a bench, a cell of a row.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Reading {
    pub id: String,
    pub value: f64,
    pub unit: String,
    /// Which side is good: `>=` (more), `<=` (less), or `info`.
    pub relation: Relation,
    /// Lower and upper end of its interval, where it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval: Option<[f64; 2]>,
}

impl Reading {
    /// A number of which more is better, or less, or neither.
    pub fn new(id: impl Into<String>, value: f64, unit: &str, relation: Relation) -> Self {
        Self { id: id.into(), value, unit: unit.to_owned(), relation, interval: None }
    }

    fn of(check: &Check) -> Self {
        Self { interval: check.interval, ..Self::new(&check.id, check.ours, check.unit, check.relation) }
    }
}

/// The file `manifest.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct MeasurementManifest {
    pub schema_version: u32,
    /// What was measured: the command without flags that only say how it is shown or kept.
    pub kind: String,
    pub weft_version: String,
    pub git_revision: Option<String>,
    /// Digest of the program file, so that builds of one revision are told apart.
    pub program: Option<String>,
    pub command_line: Vec<String>,
    pub started_utc: String,
    pub finished_utc: Option<String>,
    pub machine: Machine,
    /// Load average over 1, 5 and 15 minutes before and after.
    pub load_before: Option<[f64; 3]>,
    pub load_after: Option<[f64; 3]>,
}

/// The file `summary.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct MeasurementSummary {
    pub schema_version: u32,
    pub kind: String,
    pub readings: Vec<Reading>,
    /// What `-o json` prints.
    pub result: serde_json::Value,
}

/// What was measured, for people and programs.
#[derive(Clone, Debug)]
pub struct Measured<'a> {
    pub headings: &'a [String],
    pub rows: &'a [Vec<String>],
    /// Numbers beside those of `checks`.
    pub readings: Vec<Reading>,
    pub checks: &'a [Check],
    /// What `-o json` prints.
    pub result: serde_json::Value,
}

/// A folder that waits for what is measured. Dropping it leaves nothing.
#[derive(Debug)]
pub struct MeasurementFolder {
    folder: RunFolder,
    manifest: MeasurementManifest,
}

impl MeasurementFolder {
    /// Makes the folder under a temporary name, so that an unusable place is found before anything is measured.
    pub fn begin(out: &Path, command_line: Vec<String>) -> Result<Self, FolderError> {
        let folder = RunFolder::begin(out.to_owned())?.without_records()?;
        let manifest = MeasurementManifest {
            schema_version: SCHEMA_VERSION,
            kind: kind(&command_line),
            weft_version: env!("CARGO_PKG_VERSION").to_owned(),
            git_revision: option_env!("WEFT_GIT_REVISION").map(str::to_owned),
            program: program_digest(),
            command_line,
            started_utc: now_utc(),
            finished_utc: None,
            machine: Machine::this(),
            load_before: load_average(),
            load_after: None,
        };
        Ok(Self { folder, manifest })
    }

    /// Writes everything and gives the folder its name.
    pub fn finish(self, measured: &Measured<'_>) -> Result<PathBuf, ReportError> {
        let Self { folder, mut manifest } = self;
        manifest.finished_utc = Some(now_utc());
        manifest.load_after = load_average();
        folder.write_json("manifest.json", &manifest)?;
        folder.write_text("rows.csv", &csv(measured)?)?;
        let mut readings: Vec<Reading> = measured.checks.iter().map(Reading::of).collect();
        readings.extend(measured.readings.iter().filter(|reading| reading.value.is_finite()).cloned());
        let (kind, result) = (manifest.kind.clone(), measured.result.clone());
        let summary = MeasurementSummary { schema_version: SCHEMA_VERSION, kind, readings, result };
        folder.write_json("summary.json", &summary)?;
        folder.write_text("report.html", &page::render(&manifest, measured)?)?;
        Ok(folder.complete()?)
    }
}

/// The command's words without those that only say how it is shown or kept, and without the seed.
fn kind(command_line: &[String]) -> String {
    const TAKES_ONE: [&str; 4] = ["--out", "-o", "--output", "--seed"];
    const TAKES_NONE: [&str; 4] = ["-q", "--quiet", "-v", "--verbose"];
    let mut words = Vec::new();
    let mut all = command_line.iter().skip(1);
    while let Some(word) = all.next() {
        let name = word.split('=').next().unwrap_or(word);
        match () {
            () if TAKES_ONE.contains(&word.as_str()) => drop(all.next()),
            () if TAKES_NONE.contains(&word.as_str()) || (name != word && TAKES_ONE.contains(&name)) => {}
            () => words.push(word.as_str()),
        }
    }
    words.join(" ")
}

fn csv(measured: &Measured<'_>) -> Result<String, FolderError> {
    let failed = |error: String| FolderError::Malformed { path: "rows.csv".into(), message: error };
    let mut writer = csv::Writer::from_writer(Vec::new());
    let rows = std::iter::once(measured.headings).chain(measured.rows.iter().map(Vec::as_slice));
    for row in rows {
        writer.write_record(row).map_err(|error| failed(error.to_string()))?;
    }
    let bytes = writer.into_inner().map_err(|error| failed(error.to_string()))?;
    String::from_utf8(bytes).map_err(|error| failed(error.to_string()))
}

/// What came out, as a sentence.
fn headline(checks: &[Check]) -> String {
    let failed: Vec<String> = checks
        .iter()
        .filter(|check| check.verdict == Verdict::Fail)
        .map(|check| format!("{} ({})", check.id, crate::table::against(check.ours, check.want, check.unit)))
        .collect();
    let hidden = checks.iter().filter(|check| check.verdict == Verdict::Inconclusive).count();
    match () {
        () if checks.is_empty() => "Measured; nothing is held against a floor.".to_owned(),
        () if !failed.is_empty() => {
            format!("{} of {} floors and ceilings are missed: {}.", failed.len(), checks.len(), failed.join(", "))
        }
        () if hidden > 0 => {
            format!("Nothing is missed; of {} floors and ceilings {hidden} are hidden by noise.", checks.len())
        }
        () => format!("All {} floors and ceilings hold.", checks.len()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn a_measurement_is_kept_with_rows_readings_and_page() {
        let dir = tempfile::tempdir().unwrap();
        let out = dir.path().join("m");
        let folder = MeasurementFolder::begin(&out, words("weft bench sim --out m --rounds 3 -o json -q")).unwrap();
        let (headings, rows) = (words("job pace"), vec![words("r1a <17>")]);
        let checks = [Check::at_least("r1a.pace", 20e6, 17e6, "1/s"), Check::at_most("r1a.rss", 11e6, 10e6, "B")];
        let readings =
            vec![Reading::new("nan", f64::NAN, "s", Relation::Info), Reading::new("hops", 8.0, "", Relation::Info)];
        let measured = Measured {
            headings: &headings,
            rows: &rows,
            readings,
            checks: &checks,
            result: serde_json::json!({"a": 1}),
        };
        assert_eq!(folder.finish(&measured).unwrap(), out);
        assert_eq!(std::fs::read_to_string(out.join("rows.csv")).unwrap(), "job,pace\nr1a,<17>\n");
        let read = |name: &str| std::fs::read_to_string(out.join(name)).unwrap();
        let summary: MeasurementSummary = serde_json::from_str(&read("summary.json")).unwrap();
        assert_eq!(summary.kind, "bench sim --rounds 3");
        let ids: Vec<_> = summary.readings.iter().map(|reading| (reading.id.as_str(), reading.relation)).collect();
        assert_eq!(ids, [("r1a.pace", Relation::AtLeast), ("r1a.rss", Relation::AtMost), ("hops", Relation::Info)]);
        let page = read("report.html");
        assert!(
            page.contains("1 of 2 floors and ceilings are missed: r1a.rss (11000000 B &gt; 10000000 B)."),
            "{page}"
        );
        assert!(page.contains("&lt;17&gt;") && !page.contains("<17>"));
        let manifest: MeasurementManifest = serde_json::from_str(&read("manifest.json")).unwrap();
        assert!(manifest.finished_utc.is_some() && manifest.program.is_some());
    }

    #[test]
    fn nothing_is_left_of_one_that_did_not_end() {
        let dir = tempfile::tempdir().unwrap();
        drop(MeasurementFolder::begin(&dir.path().join("m"), words("weft bench tester")).unwrap());
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    }
}
