//! What a run folder holds, as rows of tables.

use std::path::Path;

use weft_scenario::topology::{Fabric, Port, from_yaml};
use weft_scenario::workload::Workload;

use super::{QueryError, StoredRun, Value};
use crate::analysis::TrialKey;
use crate::analysis::completion::size_divisor;
use crate::plan::Point;
use crate::run_folder::{FolderError, key_cells, read_trials};

/// The rows of one kind. A run that has none of them has a table without rows. Text that is a number becomes one by the
/// column's type; an empty cell is nothing.
pub(super) fn records(run: &StoredRun, name: &str, columns: &[String]) -> Result<Vec<Vec<Value>>, QueryError> {
    let path = run.folder.join("records").join(format!("{name}.csv"));
    if !path.exists() {
        return Ok(Vec::new());
    }
    let malformed = |message: String| FolderError::Malformed { path: path.clone(), message };
    let mut reader = csv::Reader::from_path(&path).map_err(|error| malformed(error.to_string()))?;
    let found = reader.headers().map_err(|error| malformed(error.to_string()))?;
    if !found.iter().eq(columns.iter().map(String::as_str)) {
        return Err(malformed(format!("line 1: the columns are not {}", columns.join(","))).into());
    }
    let mut rows = Vec::new();
    for record in reader.records() {
        let record = record.map_err(|error| malformed(error.to_string()))?;
        let cell = |text: &str| if text.is_empty() { Value::Null } else { Value::Text(text.to_owned()) };
        rows.push(record.iter().map(cell).collect());
    }
    Ok(rows)
}

/// A network of a run.
pub(crate) fn read_fabric(folder: &Path, file: &str) -> Result<Fabric, FolderError> {
    let path = folder.join(file);
    let text = std::fs::read_to_string(&path).map_err(FolderError::io("read", &path))?;
    from_yaml(&text, file).map_err(|error| FolderError::Malformed { path, message: error.to_string() })
}

impl StoredRun {
    /// The point of a trial, with the number of its network's file, from 1.
    fn point(&self, key: &TrialKey) -> Option<(&Point, usize)> {
        let place = self.spec.points.iter().position(|point| point.labels == key.point)?;
        let file = self.fabrics.get(place)?;
        let mut files: Vec<&String> = Vec::new();
        for one in &self.fabrics {
            if !files.contains(&one) {
                files.push(one);
            }
        }
        Some((&self.spec.points[place], files.iter().position(|one| *one == file)? + 1))
    }

    pub(super) fn keys(&self) -> Result<Vec<TrialKey>, QueryError> {
        let trials = read_trials(&self.folder.join("records"), &self.spec.axes, &[])?;
        Ok(trials.into_iter().map(|trial| trial.key).collect())
    }

    /// The network of every point.
    pub(super) fn networks_of_points(&self) -> Result<Vec<Fabric>, QueryError> {
        Ok(self.fabrics.iter().map(|file| read_fabric(&self.folder, file)).collect::<Result<_, _>>()?)
    }

    /// Every network once, with its number.
    fn networks(&self) -> Result<Vec<(i64, Fabric)>, QueryError> {
        let mut networks = Vec::new();
        for number in 0.. {
            let file = crate::run_folder::fabric_file(number);
            if !self.folder.join(&file).exists() {
                break;
            }
            networks.push((number as i64 + 1, read_fabric(&self.folder, &file)?));
        }
        Ok(networks)
    }
}

/// The cells that rows of a trial begin with.
pub(super) fn key(key: &TrialKey) -> Vec<Value> {
    key_cells(key).into_iter().map(Value::Text).collect()
}

/// The trials, each with its network and what its plan leaves out of measuring.
pub(super) fn trials(run: &StoredRun) -> Result<Vec<Vec<Value>>, QueryError> {
    let row = |key: &TrialKey| {
        let point = run.point(key);
        let sampling = point.map(|(point, _)| &point.spec.sampling);
        let workload = point.and_then(|(point, _)| point.spec.workload.get(&key.workload));
        let own = [
            point.map(|(_, number)| number as i64),
            sampling.map(|sampling| sampling.warm_up.0 as i64),
            sampling.and_then(|sampling| sampling.measure_until).map(|until| until.0 as i64),
            workload.map(|workload: &Workload| i64::from(size_divisor(workload))),
        ];
        [self::key(key), own.map(|cell| cell.map_or(Value::Null, Value::Integer)).to_vec()].concat()
    };
    Ok(run.keys()?.iter().map(row).collect())
}

/// What the plan says at every trial.
pub(super) fn settings(run: &StoredRun) -> Result<Vec<Vec<Value>>, QueryError> {
    let of_trial = |key: &TrialKey| {
        let number = Value::Integer(i64::from(key.trial));
        let settings = run.point(key).map_or(&[][..], |(point, _)| &point.settings);
        settings
            .iter()
            .map(move |(name, value)| vec![number.clone(), Value::Text(name.clone()), value.clone()])
            .collect::<Vec<_>>()
    };
    Ok(run.keys()?.iter().flat_map(of_trial).collect())
}

/// Every node of every network.
pub(super) fn nodes(run: &StoredRun) -> Result<Vec<Vec<Value>>, QueryError> {
    let mut rows = Vec::new();
    for (number, fabric) in run.networks()? {
        for node in fabric.nodes() {
            let role = format!("{:?}", node.role).to_lowercase();
            rows.push(vec![Value::Integer(number), Value::Text(node.name.clone()), Value::Text(role)]);
        }
    }
    Ok(rows)
}

/// Every link of every network.
pub(super) fn fabric_links(run: &StoredRun) -> Result<Vec<Vec<Value>>, QueryError> {
    let mut rows = Vec::new();
    for (number, fabric) in run.networks()? {
        let node = |port: &Port| fabric.node(port.node).name.clone();
        for (id, link) in (0..).map(weft_scenario::id::LinkId).zip(fabric.links()) {
            let texts = [node(&link.a), link.a.interface.clone(), node(&link.b), link.b.interface.clone()];
            let spec = &link.spec;
            let numbers = [spec.rate.0, spec.buffer.0, u64::from(spec.mtu_bytes), spec.delay.0];
            let class = Value::Text(fabric.link_class(id));
            let mut row = vec![Value::Integer(number)];
            row.extend(texts.map(Value::Text));
            row.push(class);
            row.extend(numbers.map(|number| Value::Integer(number as i64)));
            rows.push(row);
        }
    }
    Ok(rows)
}

/// Every leaf of the manifest, by its path: `machine.cores`.
pub(super) fn parameters(run: &StoredRun) -> Result<Vec<Vec<Value>>, QueryError> {
    let path = run.folder.join("manifest.json");
    let text = std::fs::read_to_string(&path).map_err(FolderError::io("read", &path))?;
    let malformed =
        |error: serde_json::Error| FolderError::Malformed { path: path.clone(), message: error.to_string() };
    let manifest: serde_json::Value = serde_json::from_str(&text).map_err(malformed)?;
    let mut leaves = Vec::new();
    collect(String::new(), &manifest, &mut leaves);
    Ok(leaves.into_iter().map(|(name, value)| vec![Value::Text(name), Value::Text(value)]).collect())
}

fn collect(name: String, value: &serde_json::Value, leaves: &mut Vec<(String, String)>) {
    let below = |part: &str| if name.is_empty() { part.to_owned() } else { format!("{name}.{part}") };
    match value {
        serde_json::Value::Object(parts) => parts.iter().for_each(|(part, value)| collect(below(part), value, leaves)),
        serde_json::Value::Array(parts) => {
            parts.iter().enumerate().for_each(|(place, value)| collect(below(&place.to_string()), value, leaves));
        }
        serde_json::Value::Null => {}
        serde_json::Value::String(text) => leaves.push((name, text.clone())),
        other => leaves.push((name, other.to_string())),
    }
}
