//! Changes a run's rows, for tests: what a network would have been measured as, had something been wrong with it.

use std::sync::atomic::Ordering::Relaxed;

use weft_scenario::record::{Column, RowKind};

use super::{Database, QueryError, StoredRun, Value, load, statement};
use crate::run_folder::FolderError;

impl Database {
    /// Executes statements on rows as the run has them, and writes the files of what they name anew. Whatever a statement leaves out
    /// of a new row is the trial's, by its number, or nothing.
    pub(crate) fn change(&self, sql: &str) -> Result<(), QueryError> {
        let words: Vec<&str> = sql.split(|c: char| !c.is_alphanumeric() && c != '_').collect();
        let tables: Vec<String> = self.tables.keys().filter(|name| words.contains(&name.as_str())).cloned().collect();
        tables.iter().try_for_each(|name| self.fill(name))?;
        self.may_write.store(true, Relaxed);
        let changed = self.connection.execute_batch(sql).map_err(statement);
        self.may_write.store(false, Relaxed);
        changed?;
        let run = self.run.as_ref().expect("it is of a run");
        let mut kinds = RowKind::ALL.iter().filter(|kind| tables.iter().any(|name| name == kind.name));
        kinds.try_for_each(|kind| self.rewrite(run, kind))
    }

    fn rewrite(&self, run: &StoredRun, kind: &RowKind) -> Result<(), QueryError> {
        let path = run.folder.join("records").join(kind.file());
        let columns = &self.tables[kind.name].columns;
        let quoted: Vec<String> =
            columns[columns.len() - kind.columns.len()..].iter().map(|name| format!("\"{name}\"")).collect();
        let answer = self.answer(&format!("select trial, {} from {}", quoted.join(", "), kind.name))?;
        let keys = run.keys()?;
        let key = |number: &Value| keys.iter().find(|key| Some(f64::from(key.trial)) == number.number()).map(load::key);
        let mut writer = csv::Writer::from_writer(Vec::new());
        let mut write = |cells: Vec<String>| writer.write_record(cells).expect("memory takes it");
        write(columns.clone());
        for row in answer.rows {
            let (trial, own) = row.split_first().expect("it begins with the trial");
            let key = key(trial)
                .ok_or_else(|| QueryError::Statement(format!("{}: no trial is called `{trial}`", kind.name)))?;
            let own = own.iter().zip(kind.columns).map(|(value, column)| text(value, column));
            write(key.iter().map(ToString::to_string).chain(own).collect());
        }
        let bytes = writer.into_inner().expect("memory takes it");
        std::fs::write(&path, bytes).map_err(FolderError::io("write", &path))?;
        Ok(())
    }
}

/// A cell; what is nothing is the least that its column holds.
fn text(value: &Value, column: &Column) -> String {
    match value {
        Value::Null if column.holds.contains("number") && !column.holds.ends_with("or empty") => "0".to_owned(),
        Value::Null if column.holds.starts_with("`bulk`") => "bulk".to_owned(),
        other => other.to_string(),
    }
}
