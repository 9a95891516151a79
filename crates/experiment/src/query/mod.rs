//! Questions to a run in SQL: its rows are the tables of an SQLite database in memory, with a few functions that statistics need.
//!
//! | table | what it is |
//! | --- | --- |
//! | `flows`, `links` .. | a kind of rows ([`RowKind`](weft_scenario::record::RowKind)), each with the columns of its trial |
//! | `trials` | the trials, with the network of each and what its sampling leaves out |
//! | `settings` | what the plan says at each trial: `workload.all.bytes_per_flow`, units taken off |
//! | `nodes`, `fabric_links` | the networks as they ran, by the number of their file |
//! | `parameters` | the manifest: name and value of everything in it |
//! | `fct`, `plateau`, `phases` .. | what takes more than a few lines to ask ([`derived`]) |
//! | a plan's `[[views]]` | what its questions share |
//!
//! A question reads; it can neither change anything nor reach a file. Tables are filled when a question needs them.

mod catalog;
pub mod derived;
mod functions;
pub(crate) mod load;

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use rusqlite::fallible_iterator::FallibleIterator as _;
use rusqlite::hooks::{AuthAction, AuthContext, Authorization};
use rusqlite::types::ValueRef;
use rusqlite::{Batch, Connection, ErrorCode, params_from_iter};
use serde::Serialize;

pub(crate) use self::catalog::is_column;
use self::catalog::{Source, Table};
use crate::plan::{Axis, PlanError, PlanSpec};
use crate::run_folder::{FolderError, Manifest};

/// What all tables and one question may take.
const HEAP_MOST_BYTES: u64 = 4 << 30;

/// Why a question has no answer; one line.
#[derive(Debug, thiserror::Error)]
pub enum QueryError {
    /// The run's files cannot be read.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// The plan that the folder keeps cannot be read any more.
    #[error("{}: {source}", folder.display())]
    Plan {
        folder: PathBuf,
        /// What is wrong with its plan.
        source: Box<PlanError>,
    },
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
    Real(f64),
    Text(String),
}

impl Value {
    /// It as a number, if it is one.
    pub fn number(&self) -> Option<f64> {
        match self {
            Self::Integer(value) => Some(*value as f64),
            Self::Real(value) => Some(*value),
            Self::Null | Self::Text(_) => None,
        }
    }
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
    pub columns: Vec<String>,
    /// Rows with a cell for each.
    pub rows: Vec<Vec<Value>>,
}

/// A run's tables, or those of a plan that has not run: then they have no rows.
#[derive(Debug)]
pub struct Database {
    connection: Connection,
    /// Tables are being made or filled.
    may_write: Arc<AtomicBool>,
    tables: BTreeMap<String, Table>,
    filled: RefCell<BTreeSet<String>>,
    run: Option<StoredRun>,
}

/// Where the rows come from.
#[derive(Debug)]
struct StoredRun {
    folder: PathBuf,
    spec: PlanSpec,
    /// The file of the network of every point.
    fabrics: Vec<String>,
}

impl Database {
    /// The tables of a run, finished or all but its report.
    ///
    /// # Errors
    /// [`QueryError`], naming the file.
    pub fn of_run(folder: &Path) -> Result<Self, QueryError> {
        let manifest = Manifest::read(folder)?;
        let spec = manifest
            .spec()
            .map_err(|source| QueryError::Plan { folder: folder.to_owned(), source: Box::new(source) })?
            .ok_or_else(|| FolderError::Malformed {
                path: folder.join("manifest.json"),
                message: "its plan does not run on its engine".to_owned(),
            })?;
        Self::with_spec(folder, &manifest.fabrics, &spec)
    }

    /// The same where the plan is at hand, with the file of the network of each of its points.
    ///
    /// # Errors
    /// [`QueryError`], naming the view.
    pub fn with_spec(folder: &Path, fabrics: &[String], spec: &PlanSpec) -> Result<Self, QueryError> {
        let run = StoredRun { folder: folder.to_owned(), spec: spec.clone(), fabrics: fabrics.to_vec() };
        Ok(Self { run: Some(run), ..Self::empty(spec)? })
    }

    /// The tables of a plan without rows, so that questions can be checked.
    ///
    /// # Errors
    /// [`QueryError::Statement`], naming the view that is none.
    pub fn empty(spec: &PlanSpec) -> Result<Self, QueryError> {
        let mut connection = Connection::open_in_memory().map_err(statement)?;
        // Large sorts stay in memory, and the bound holds for all of it.
        let bounds = format!("pragma temp_store = memory; pragma hard_heap_limit = {HEAP_MOST_BYTES}");
        connection.execute_batch(&bounds).map_err(statement)?;
        functions::add(&connection).map_err(statement)?;
        let may_write = Arc::new(AtomicBool::new(true));
        let watched = may_write.clone();
        let decide = move |context: AuthContext<'_>| may(&context.action, watched.load(Relaxed));
        connection.authorizer(Some(decide)).map_err(statement)?;
        let mut database =
            Self { connection, may_write, tables: BTreeMap::new(), filled: RefCell::default(), run: None };
        for table in catalog::tables(&spec.axes) {
            database.add(table)?;
        }
        let own = spec.views.iter().map(|view| (view.id.clone(), view.sql.clone()));
        for (name, sql) in derived::views(spec.measured.as_deref()).into_iter().chain(own) {
            database.add_view(name, sql)?;
        }
        database.may_write.store(false, Relaxed);
        Ok(database)
    }

    /// Answers a question.
    ///
    /// # Errors
    /// [`QueryError::Statement`] or [`QueryError::TooLarge`]; others where a table cannot be filled.
    pub fn ask(&self, sql: &str) -> Result<Answer, QueryError> {
        for table in self.reads(sql)? {
            self.fill(&table)?;
        }
        self.answer(sql)
    }

    /// The columns of the answer to a question.
    ///
    /// # Errors
    /// [`QueryError::Statement`] for what is no question.
    pub fn columns(&self, sql: &str) -> Result<Vec<String>, QueryError> {
        let prepared = self.connection.prepare(sql).map_err(statement)?;
        let columns: Vec<String> = prepared.column_names().map(str::to_owned).collect();
        match columns.is_empty() {
            true => Err(QueryError::Statement("it asks nothing; begin with `select`".to_owned())),
            false => Ok(columns),
        }
    }

    /// Whether these statements change rows of the run's tables.
    ///
    /// # Errors
    /// [`QueryError::Statement`] for what does not.
    pub(crate) fn check_change(&self, sql: &str) -> Result<(), QueryError> {
        self.may_write.store(true, Relaxed);
        let checked = self.prepare_changes(sql);
        self.may_write.store(false, Relaxed);
        checked
    }

    fn prepare_changes(&self, sql: &str) -> Result<(), QueryError> {
        let mut batch = Batch::new(&self.connection, sql);
        while let Some(prepared) = batch.next().map_err(statement)? {
            if prepared.readonly() {
                return Err(QueryError::Statement(
                    "it changes nothing; begin with `update`, `insert` or `delete`".to_owned(),
                ));
            }
        }
        Ok(())
    }

    /// Every table with its columns, rows before what is derived from them.
    pub fn tables(&self) -> impl Iterator<Item = (&str, &[String])> {
        let mut tables: Vec<(&String, &Table)> = self.tables.iter().collect();
        tables.sort_by_key(|(_, table)| table.place);
        tables.into_iter().map(|(name, table)| (name.as_str(), table.columns.as_slice()))
    }

    fn answer(&self, sql: &str) -> Result<Answer, QueryError> {
        let mut prepared = self.connection.prepare(sql).map_err(statement)?;
        let columns: Vec<String> = prepared.column_names().map(str::to_owned).collect();
        let mut found = prepared.query([]).map_err(statement)?;
        let mut rows = Vec::new();
        while let Some(row) = found.next().map_err(statement)? {
            let cell = |column| row.get_ref(column).map(value);
            rows.push((0..columns.len()).map(cell).collect::<Result<_, _>>().map_err(statement)?);
        }
        Ok(Answer { columns, rows })
    }

    /// The tables that a question reads: those that SQLite's program for it opens. (Words of the question are names of columns and
    /// texts, too, and what its authorizer hears of leaves out a table of which only columns behind `using` are read.)
    fn reads(&self, sql: &str) -> Result<Vec<String>, QueryError> {
        self.columns(sql)?;
        let opened = |row: Vec<Value>| (row[1] == Value::Text("OpenRead".to_owned())).then(|| row[3].clone());
        let program =
            self.answer(&format!("explain {sql}")).map_or_else(|_explains_itself| Vec::new(), |answer| answer.rows);
        let opened: Vec<Value> = program.into_iter().filter_map(opened).collect();
        let tables = self.answer("select name, rootpage from sqlite_schema")?.rows.into_iter();
        Ok(tables.filter(|table| opened.contains(&table[1])).map(|table| table[0].to_string()).collect())
    }

    fn add(&mut self, table: Table) -> Result<(), QueryError> {
        let columns: Vec<String> =
            table.columns.iter().zip(&table.holds).map(|(name, holds)| format!("{} {holds}", quoted(name))).collect();
        let create = format!("create table {} ({})", quoted(&table.name), columns.join(", "));
        self.connection.execute_batch(&create).map_err(statement)?;
        let table = Table { place: self.tables.len(), ..table };
        self.tables.insert(table.name.clone(), table);
        Ok(())
    }

    /// A view's columns are those of its question, which may ask views before it.
    fn add_view(&mut self, name: String, sql: String) -> Result<(), QueryError> {
        let named = |error| QueryError::Statement(format!("view `{name}`: {error}"));
        if self.tables.contains_key(&name) {
            return Err(named(QueryError::Statement("there is a table of that name".to_owned())));
        }
        self.may_write.store(false, Relaxed);
        let columns = self.columns(&sql).map_err(named);
        self.may_write.store(true, Relaxed);
        let columns = columns?;
        let holds = vec![""; columns.len()];
        self.add(Table { name: name.clone(), columns, holds, source: Source::View(sql), place: 0 }).map_err(named)
    }

    /// Puts the rows into a table; what is asked for first is filled first. SQLite's own tables are always full.
    fn fill(&self, name: &str) -> Result<(), QueryError> {
        let (Some(run), Some(table)) = (&self.run, self.tables.get(name)) else { return Ok(()) };
        if !self.filled.borrow_mut().insert(name.to_owned()) {
            return Ok(());
        }
        match &table.source {
            Source::Rows(kind) => self.insert(table, load::records(run, kind.name, &table.columns)?),
            Source::Stored(rows) => self.insert(table, rows(run)?),
            Source::View(sql) => {
                let named = |error| match error {
                    QueryError::Statement(text) => QueryError::Statement(format!("view `{name}`: {text}")),
                    other => other,
                };
                let answer = self.ask(sql).map_err(named)?;
                self.insert(table, answer.rows)
            }
            Source::Estimates => self.insert(table, crate::analysis::asked::rows(&run.spec, self)?),
            Source::Derived(derived) => {
                let windows = if derived.windowed { self.windows()? } else { BTreeMap::new() };
                self.insert(table, derived.rows(run, &windows)?)
            }
        }
    }

    /// The stretch of every trial that is measured, in seconds.
    fn windows(&self) -> Result<derived::Windows, QueryError> {
        let answer = self.ask("select trial, from_s, to_s from measured")?;
        let window = |row: &Vec<Value>| match row.iter().map(Value::number).collect::<Option<Vec<f64>>>()?[..] {
            [trial, from_s, to_s] => Some((trial as u32, crate::analysis::series::Window { from_s, to_s })),
            _ => None,
        };
        Ok(answer.rows.iter().filter_map(window).collect())
    }

    fn insert(&self, table: &Table, rows: Vec<Vec<Value>>) -> Result<(), QueryError> {
        self.may_write.store(true, Relaxed);
        let inserted = self.insert_all(table, rows);
        self.may_write.store(false, Relaxed);
        inserted.map_err(statement)
    }

    fn insert_all(&self, table: &Table, rows: Vec<Vec<Value>>) -> rusqlite::Result<()> {
        let transaction = self.connection.unchecked_transaction()?;
        let places = vec!["?"; table.columns.len()].join(", ");
        let mut insert = transaction.prepare(&format!("insert into {} values ({places})", quoted(&table.name)))?;
        for row in rows {
            insert.execute(params_from_iter(row))?;
        }
        drop(insert);
        transaction.commit()
    }
}

impl rusqlite::ToSql for Value {
    fn to_sql(&self) -> rusqlite::Result<rusqlite::types::ToSqlOutput<'_>> {
        Ok(match self {
            Self::Null => rusqlite::types::Null.into(),
            Self::Integer(value) => (*value).into(),
            Self::Real(value) => (*value).into(),
            Self::Text(text) => text.as_str().into(),
        })
    }
}

/// Reading, and nothing else unless tables are being filled.
fn may(action: &AuthAction<'_>, write: bool) -> Authorization {
    match action {
        _ if write => Authorization::Allow,
        AuthAction::Select | AuthAction::Read { .. } | AuthAction::Recursive => Authorization::Allow,
        AuthAction::Function { function_name } if *function_name != "load_extension" => Authorization::Allow,
        // As a table: `pragma_table_info('flows')`.
        AuthAction::Pragma { pragma_name: "table_info", .. } => Authorization::Allow,
        _ => Authorization::Deny,
    }
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
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
mod change;
#[cfg(test)]
mod tests;
