//! A point of a series from the folder of a run or of a measurement.

use std::hash::Hasher;
use std::path::Path;

use serde::de::DeserializeOwned;
use siphasher::sip::SipHasher13;

use super::Point;
use crate::measurement::{MeasurementManifest, MeasurementSummary, Reading};
use crate::run_folder::{FolderError, Manifest, manifest_of};
use crate::summary::RunSummary;

/// Reads the folder that `weft run`, `weft sim --out`, `weft measure --out` or `weft bench --out` made.
pub fn read(folder: &Path) -> Result<Point, FolderError> {
    manifest_of(folder)?;
    let manifest: serde_json::Value = json(folder, "manifest.json")?;
    match manifest.get("kind").is_some() {
        true => measurement(folder),
        false => run(folder),
    }
}

fn measurement(folder: &Path) -> Result<Point, FolderError> {
    let manifest: MeasurementManifest = json(folder, "manifest.json")?;
    let summary: MeasurementSummary = json(folder, "summary.json")?;
    Ok(Point {
        folder: folder.to_owned(),
        subject: manifest.kind,
        started_utc: manifest.started_utc,
        build: build(&manifest.weft_version, manifest.git_revision.as_deref(), manifest.program.as_deref()),
        kernel: manifest.machine.kernel,
        readings: summary.readings,
    })
}

fn run(folder: &Path) -> Result<Point, FolderError> {
    let manifest = Manifest::read(folder)?;
    let summary: RunSummary = json(folder, "summary.json")?;
    let subject = match &manifest.scenario {
        Some(title) => format!("{title} ({}, {})", manifest.engine, scenario_digest(folder, &manifest)?),
        None => of_plan(&manifest),
    };
    let reading = |claim: &crate::summary::ClaimResult| {
        let reading = Reading::new(&claim.id, claim.ours?, &claim.unit, claim.relation);
        Some(Reading { interval: claim.interval, ..reading })
    };
    Ok(Point {
        folder: folder.to_owned(),
        subject,
        build: build(&manifest.weft_version, manifest.git_revision.as_deref(), manifest.program.as_deref()),
        started_utc: manifest.started_utc,
        kernel: manifest.machine.kernel,
        readings: summary.numbers().iter().filter_map(reading).collect(),
    })
}

fn of_plan(manifest: &Manifest) -> String {
    let mode = serde_json::to_value(manifest.mode).ok().and_then(|mode| Some(mode.as_str()?.to_owned()));
    // A step is another series, because its rates and floors are others.
    let words: Vec<&str> = [Some(mode.as_deref().unwrap_or_default()), Some(&*manifest.engine), manifest.step_name()]
        .into_iter()
        .flatten()
        .collect();
    format!("{} ({})", manifest.plan, words.join(", "))
}

/// What tells scenarios of one name apart: a digest of all that they say, the network included. Seeds are repetitions.
fn scenario_digest(folder: &Path, manifest: &Manifest) -> Result<String, FolderError> {
    let mut hasher = SipHasher13::new();
    hasher.write(manifest.plan_text.as_bytes());
    for file in &manifest.fabrics {
        let path = folder.join(file);
        hasher.write(&std::fs::read(&path).map_err(FolderError::io("read", &path))?);
    }
    Ok(format!("{:08x}", hasher.finish() >> 32))
}

/// `0.1.0 28e1f56 (6b01c9a2)`: version, revision and the beginning of the program's digest.
fn build(version: &str, revision: Option<&str>, program: Option<&str>) -> String {
    let revision = revision.map(|revision| format!(" {revision}")).unwrap_or_default();
    let program =
        program.and_then(|program| program.get(..8)).map(|program| format!(" ({program})")).unwrap_or_default();
    format!("{version}{revision}{program}")
}

fn json<T: DeserializeOwned>(folder: &Path, name: &str) -> Result<T, FolderError> {
    let path = folder.join(name);
    let text = std::fs::read_to_string(&path).map_err(FolderError::io("read", &path))?;
    serde_json::from_str(&text).map_err(|error| FolderError::Malformed { path, message: error.to_string() })
}
