//! Questions to a run in SQL: its rows are the tables of an SQLite database in memory, with a few functions that statistics need.
//!
//! | table | what it is |
//! | --- | --- |
//! | `flows`, `links` .. | a kind of rows ([`RowKind`](weft_scenario::record::RowKind)), each with the columns of its trial |
//! | `trials` | the trials |
//! | `nodes`, `fabric_links` | the networks as they ran, by the number of their file |
//! | `parameters` | the manifest: name and value of everything in it |
//!
//! A question reads; it can neither change anything nor reach a file.

mod functions;
mod load;

use std::path::Path;

use rusqlite::hooks::{AuthAction, Authorization};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, ErrorCode};
use serde::Serialize;

use crate::run_folder::FolderError;

/// What all tables and one question may take.
const HEAP_MOST_BYTES: u64 = 4 << 30;

/// Why a question has no answer; one line.
#[derive(Debug, thiserror::Error)]
pub enum QueryError {
    /// The run's files cannot be read.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// There is no run.
    #[error("{0} is no run folder; `weft run` makes one and says where")]
    NoRun(String),
    /// A question that is none.
    #[error("{0}")]
    Statement(String),
    /// A question for more than a machine should give.
    #[error("the question needs more than {} GiB; ask for less at a time", HEAP_MOST_BYTES >> 30)]
    TooLarge,
}

/// A cell of an answer.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Value {
    /// Nothing.
    Null,
    /// A whole number.
    Integer(i64),
    /// A number.
    Real(f64),
    /// Text.
    Text(String),
}

impl std::fmt::Display for Value {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Null => Ok(()),
            Self::Integer(value) => write!(formatter, "{value}"),
            Self::Real(value) => write!(formatter, "{value}"),
            Self::Text(text) => formatter.write_str(text),
        }
    }
}

/// An answer.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Answer {
    /// Names of the columns.
    pub columns: Vec<String>,
    /// Rows with a cell for each.
    pub rows: Vec<Vec<Value>>,
}

/// A run's tables.
#[derive(Debug)]
pub struct Database(Connection);

impl Database {
    /// The tables of a finished run.
    ///
    /// # Errors
    /// [`QueryError`], naming the file.
    pub fn of_run(folder: &Path) -> Result<Self, QueryError> {
        let mut connection = Connection::open_in_memory().map_err(statement)?;
        // Large sorts stay in memory, and the bound holds for all of it.
        let bounds = format!("pragma temp_store = memory; pragma hard_heap_limit = {HEAP_MOST_BYTES}");
        connection.execute_batch(&bounds).map_err(statement)?;
        functions::add(&connection).map_err(statement)?;
        load::run(&mut connection, folder)?;
        connection
            .authorizer(Some(|context: rusqlite::hooks::AuthContext<'_>| may(&context.action)))
            .map_err(statement)?;
        Ok(Self(connection))
    }

    /// Answers a question.
    ///
    /// # Errors
    /// [`QueryError::Statement`] or [`QueryError::TooLarge`].
    pub fn ask(&self, sql: &str) -> Result<Answer, QueryError> {
        let mut prepared = self.0.prepare(sql).map_err(statement)?;
        let columns: Vec<String> = prepared.column_names().map(str::to_owned).collect();
        let mut found = prepared.query([]).map_err(statement)?;
        let mut rows = Vec::new();
        while let Some(row) = found.next().map_err(statement)? {
            let cell = |column| row.get_ref(column).map(value);
            rows.push((0..columns.len()).map(cell).collect::<Result<_, _>>().map_err(statement)?);
        }
        Ok(Answer { columns, rows })
    }
}

/// Reading, and nothing else.
fn may(action: &AuthAction<'_>) -> Authorization {
    match action {
        AuthAction::Select | AuthAction::Read { .. } | AuthAction::Recursive => Authorization::Allow,
        AuthAction::Function { function_name } if *function_name != "load_extension" => Authorization::Allow,
        // As a table: `pragma_table_info('flows')`.
        AuthAction::Pragma { pragma_name: "table_info", .. } => Authorization::Allow,
        _ => Authorization::Deny,
    }
}

fn value(cell: ValueRef<'_>) -> Value {
    match cell {
        ValueRef::Null => Value::Null,
        ValueRef::Integer(value) => Value::Integer(value),
        ValueRef::Real(value) => Value::Real(value),
        ValueRef::Text(text) | ValueRef::Blob(text) => Value::Text(String::from_utf8_lossy(text).into_owned()),
    }
}

fn statement(error: rusqlite::Error) -> QueryError {
    if error.sqlite_error_code() == Some(ErrorCode::OutOfMemory) {
        return QueryError::TooLarge;
    }
    let text = error.to_string().split_whitespace().collect::<Vec<_>>().join(" ");
    QueryError::Statement(match error.sqlite_error_code() {
        Some(ErrorCode::AuthorizationForStatementDenied) => format!("{text}: a question can only read (select ..)"),
        _ => text,
    })
}

#[cfg(test)]
mod tests;
