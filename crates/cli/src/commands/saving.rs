//! What `weft measure` and `weft bench` measured: printed, and kept in a folder if that is wanted.

use serde::Serialize;
use weft_experiment::measurement::{Measured, MeasurementFolder, Reading};
use weft_scenario::judge::Check;

use crate::args::{Output, ResultFlags};
use crate::exit::Failure;
use crate::output::{self, Rows};

/// How a result is shown, and the folder that waits for it.
pub(crate) struct Saving {
    pub(crate) format: Output,
    folder: Option<MeasurementFolder>,
}

impl Saving {
    /// Before anything is measured, so that a folder that cannot be is found at once.
    pub(crate) fn begin(flags: &ResultFlags) -> Result<Self, Failure> {
        let begin = |out| MeasurementFolder::begin(out, std::env::args().collect());
        let folder = flags.out.as_deref().map(begin).transpose().map_err(Failure::failed)?;
        Ok(Self { format: flags.output.output, folder })
    }

    /// Prints rows or the whole result, and keeps both.
    pub(crate) fn print<T: Serialize>(
        self,
        rows: &Rows,
        result: &T,
        readings: Vec<Reading>,
        checks: &[Check],
    ) -> Result<(), Failure> {
        output::print(self.format, rows, result)?;
        let Some(folder) = self.folder else { return Ok(()) };
        let result = serde_json::to_value(result).map_err(Failure::failed)?;
        let measured = Measured { headings: &rows.header, rows: &rows.rows, readings, checks, result };
        let report = folder.finish(&measured).map_err(Failure::failed)?.join("report.html");
        eprintln!("report: {}", report.display());
        Ok(())
    }
}
