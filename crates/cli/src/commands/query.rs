//! `weft query`: questions to a finished run in SQL.

use std::process::ExitCode;

use serde::Serialize;
use weft_experiment::query::{Answer, Database, QueryError};

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

/// The tables, each with what is in it.
const TABLES: &str = "select m.name as \"table\", group_concat(c.name, ' ') as columns
    from sqlite_schema m join pragma_table_info(m.name) c where m.type = 'table' group by m.name order by m.rowid";

pub(crate) fn query(args: &QueryArgs) -> Result<ExitCode, Failure> {
    let database = Database::of_run(&args.run).map_err(failure)?;
    let answer = database.ask(args.sql.as_deref().unwrap_or(TABLES)).map_err(failure)?;
    let mut rows = Rows::new(&answer.columns);
    answer.rows.iter().for_each(|row| rows.push(row.iter().map(ToString::to_string).collect()));
    output::print(args.output.output, &rows, &Said { schema_version: 1, answer: &answer })?;
    Ok(ExitCode::SUCCESS)
}

fn failure(error: QueryError) -> Failure {
    match error {
        QueryError::Statement(_) | QueryError::NoRun(_) => Failure::usage(error),
        QueryError::Folder(_) | QueryError::TooLarge => Failure::failed(error),
    }
}
