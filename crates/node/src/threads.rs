//! Threads that end everything they are part of when they end, and say why: also by a panic, which otherwise nobody would
//! hear of until all others have ended.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::error::NodeError;
use crate::stop::Stop;

/// Runs what this thread is for. However that ends, the others are asked to end then.
pub(crate) fn guarded(
    thread: &str,
    over: &Stop,
    work: impl FnOnce() -> Result<(), NodeError>,
) -> Result<(), NodeError> {
    let failed = |panic: Box<dyn Any + Send>| {
        let said = said(panic.as_ref()).replace('\n', " ");
        Err(NodeError::Panic { thread: thread.to_owned(), said })
    };
    let outcome = catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(failed);
    over.request();
    outcome
}

/// What a panic said.
pub(crate) fn said(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("without a word")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_panics_ends_the_others_and_says_so_in_one_line() {
        let over = Stop::manual().unwrap();
        let outcome = guarded("lookup-3", &over, || panic!("no table\nat all"));
        assert!(over.requested());
        let said = outcome.unwrap_err().to_string();
        assert_eq!(said, "the thread `lookup-3` failed (no table at all): a bug; restart the daemon");
    }
}
