//! `weft query`: questions to a finished run in SQL.

use std::process::ExitCode;

use serde::Serialize;
use weft_experiment::query::{Answer, Database, QueryError, Value};

use crate::args::QueryArgs;
use crate::exit::Failure;
use crate::output::{self, Rows};

/// What `-o json` prints.
#[derive(Serialize)]
struct Said<'a> {
    schema_version: u32,
    #[serde(flatten)]
    answer: &'a Answer,
}

pub(crate) fn query(args: &QueryArgs) -> Result<ExitCode, Failure> {
    let database = Database::of_run(&args.run).map_err(failure)?;
    let answer = match &args.sql {
        Some(sql) => database.ask(sql).map_err(failure)?,
        None => tables(&database),
    };
    let mut rows = Rows::new(&answer.columns);
    answer.rows.iter().for_each(|row| rows.push(row.iter().map(ToString::to_string).collect()));
    output::print(args.output.output, &rows, &Said { schema_version: 1, answer: &answer })?;
    Ok(ExitCode::SUCCESS)
}

/// The tables, each with its columns.
fn tables(database: &Database) -> Answer {
    let row = |(name, columns): (&str, &[String])| vec![Value::Text(name.to_owned()), Value::Text(columns.join(" "))];
    Answer { columns: ["table", "columns"].map(str::to_owned).to_vec(), rows: database.tables().map(row).collect() }
}

fn failure(error: QueryError) -> Failure {
    match error {
        QueryError::Folder(ref folder) if folder.is_misnamed() => Failure::usage(error),
        QueryError::Statement(_) => Failure::usage(error),
        QueryError::Folder(_) | QueryError::Plan { .. } | QueryError::TooLarge => Failure::failed(error),
    }
}
