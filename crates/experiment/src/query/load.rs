//! A run folder into tables.

use std::path::Path;

use rusqlite::{Connection, Transaction, params, params_from_iter};
use weft_scenario::record::{Column, RowKind};
use weft_scenario::topology::from_yaml;

use super::{QueryError, statement};
use crate::run_folder::{FolderError, KEY_COLUMNS, TRIALS_FILE};

/// Reads everything of a run that has come to its end.
pub(super) fn run(connection: &mut Connection, folder: &Path) -> Result<(), QueryError> {
    if !folder.join("manifest.json").is_file() {
        return Err(QueryError::NoRun(folder.display().to_string()));
    }
    let transaction = connection.transaction().map_err(statement)?;
    for kind in RowKind::ALL {
        records(&transaction, &folder.join("records").join(kind.file()), kind.name, kind.columns)?;
    }
    records(&transaction, &folder.join("records").join(TRIALS_FILE), "trials", &[])?;
    networks(&transaction, folder)?;
    parameters(&transaction, folder)?;
    transaction.commit().map_err(statement)
}

/// One kind of rows. A run that has none of them has a table without rows.
fn records(transaction: &Transaction<'_>, path: &Path, table: &str, own: &[Column]) -> Result<(), QueryError> {
    let malformed = |message: String| FolderError::Malformed { path: path.to_owned(), message };
    let mut reader = match path.exists() {
        true => Some(csv::Reader::from_path(path).map_err(|error| malformed(error.to_string()))?),
        false => None,
    };
    let header: Vec<String> = match &mut reader {
        Some(reader) => {
            let header = reader.headers().map_err(|error| malformed(error.to_string()))?;
            header.iter().map(str::to_owned).collect()
        }
        None => KEY_COLUMNS.iter().chain(own).map(|column| column.name.to_owned()).collect(),
    };
    let columns: Vec<String> = header.iter().map(|name| format!("{} {}", quoted(name), holds(name, own))).collect();
    transaction
        .execute_batch(&format!("create table {} ({})", quoted(table), columns.join(", ")))
        .map_err(statement)?;
    let Some(mut reader) = reader else { return Ok(()) };
    let places = vec!["?"; header.len()].join(", ");
    let insert = format!("insert into {} values ({places})", quoted(table));
    let mut insert = transaction.prepare(&insert).map_err(statement)?;
    for record in reader.records() {
        let record = record.map_err(|error| malformed(error.to_string()))?;
        // Text that is a number becomes one, as its column says; an empty cell is none.
        let cells = record.iter().map(|cell| (!cell.is_empty()).then_some(cell));
        insert.execute(params_from_iter(cells)).map_err(statement)?;
    }
    Ok(())
}

/// The type of a column; a sweep's axes are numbers where their places are.
fn holds(name: &str, own: &[Column]) -> &'static str {
    let column = KEY_COLUMNS.iter().chain(own).find(|column| column.name == name);
    match column.map(|column| column.holds) {
        Some(holds) if holds.starts_with("whole number") => "integer",
        Some(holds) if holds.starts_with("number") => "real",
        Some(_) => "text",
        None => "numeric",
    }
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// Nodes and links of every network of the run.
fn networks(transaction: &Transaction<'_>, folder: &Path) -> Result<(), QueryError> {
    let tables = "create table nodes (fabric integer, node text, role text);
        create table fabric_links (fabric integer, a text, a_interface text, b text, b_interface text, class text,
            rate_bps integer, buffer_bytes integer, mtu_bytes integer, delay_ns integer)";
    transaction.execute_batch(tables).map_err(statement)?;
    for number in 0.. {
        let name = crate::run_folder::fabric_file(number);
        let path = folder.join(&name);
        if !path.exists() {
            return Ok(());
        }
        let text = std::fs::read_to_string(&path).map_err(FolderError::io("read", &path))?;
        let malformed = |message: String| FolderError::Malformed { path: path.clone(), message };
        let fabric = from_yaml(&text, &name).map_err(|error| malformed(error.to_string()))?;
        let number = number as i64 + 1;
        for node in fabric.nodes() {
            let row = params![number, node.name, format!("{:?}", node.role).to_lowercase()];
            transaction.execute("insert into nodes values (?, ?, ?)", row).map_err(statement)?;
        }
        for (id, link) in (0..).map(weft_scenario::id::LinkId).zip(fabric.links()) {
            let node = |port: &weft_scenario::topology::Port| fabric.node(port.node).name.clone();
            let (spec, class) = (&link.spec, fabric.link_class(id));
            let row = params![
                number,
                node(&link.a),
                link.a.interface,
                node(&link.b),
                link.b.interface,
                class,
                spec.rate.0 as i64,
                spec.buffer.0 as i64,
                spec.mtu_bytes,
                spec.delay.0 as i64
            ];
            let insert = "insert into fabric_links values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";
            transaction.execute(insert, row).map_err(statement)?;
        }
    }
    Ok(())
}

/// Every leaf of the manifest, by its path: `machine.cores`.
fn parameters(transaction: &Transaction<'_>, folder: &Path) -> Result<(), QueryError> {
    transaction.execute_batch("create table parameters (name text, value numeric)").map_err(statement)?;
    let path = folder.join("manifest.json");
    let text = std::fs::read_to_string(&path).map_err(FolderError::io("read", &path))?;
    let manifest: serde_json::Value = serde_json::from_str(&text)
        .map_err(|error| FolderError::Malformed { path: path.clone(), message: error.to_string() })?;
    let mut leaves = Vec::new();
    collect(String::new(), &manifest, &mut leaves);
    for (name, value) in leaves {
        transaction.execute("insert into parameters values (?, ?)", params![name, value]).map_err(statement)?;
    }
    Ok(())
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
