//! Every test of the workspace in two lanes side by side: packages that make labs in one, all others in the other one, in each one
//! executable after the other. Labs leave a core idle for half of their time. Tests that take long have libtest's mark `ignore` and
//! run apart.

mod executables;
mod lane;
mod tally;

use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::thread;

use lane::Job;
use tally::Ends;

/// Packages whose tests bring labs up and compare the machine before and after.
const WITH_LABS: [&str; 2] = ["crates/cli", "crates/lab"];

/// What sends at rates all the time, or judges numbers: it comes last, when the other lane has ended.
const LAST: [&str; 2] = ["crates/lab/tests/frames.rs", "crates/cli"];

/// Which tests of an executable run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Which {
    /// All but those with the mark `ignore`, and the examples in the documentation: `make test`.
    Usual,
    /// Those with the mark `ignore`: `make test-long`.
    Long,
}

/// Builds the tests, runs them, and prints what they say and what they came to; `recorded` is the file that skips are appended to.
/// Whether all is as it must be.
pub(crate) fn run(root: &Path, which: Which, recorded: &Path) -> Result<bool, String> {
    let (mut labs, others): (Vec<_>, Vec<_>) = executables::build(root)?
        .into_iter()
        .partition(|one| WITH_LABS.iter().any(|package| one.folder == Path::new(package)));
    labs.sort_by_key(|one| LAST.iter().position(|last| one.source.starts_with(last)));
    let labs: Vec<Job> = labs.iter().map(|one| Job::on_the_machine(root, one, which)).collect();
    let beside = if lane::can_be_apart() { Job::apart } else { Job::on_the_machine };
    let examples = (which == Which::Usual).then(|| Job::examples(root));
    let others: Vec<Job> = examples.into_iter().chain(others.iter().map(|one| beside(root, one, which))).collect();
    let ends = Mutex::new(Ends::default());
    thread::scope(|scope| {
        scope.spawn(|| lane::run(labs, &ends));
        lane::run(others, &ends);
    });
    Ok(tally::tell(&ends.into_inner().unwrap_or_else(PoisonError::into_inner), recorded))
}
