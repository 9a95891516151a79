//! Answers requests whose time is over, whatever the store does.

use std::sync::PoisonError;
use std::time::{Duration, Instant};

use super::Failure;
use super::shared::{Shared, unknown};

/// Expired requests are looked for at most this often.
const EXPIRE_EVERY: Duration = Duration::from_millis(10);

/// Runs until everything ends.
pub(super) fn run(shared: &Shared) {
    let mut queue = shared.queue();
    while !shared.stopping() {
        let now = Instant::now();
        let left = match queue.expiry() {
            None => {
                queue = shared.to_expire.wait(queue).unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            Some(expiry) => expiry.saturating_duration_since(now),
        };
        if !left.is_zero() {
            let left = left.max(EXPIRE_EVERY);
            queue = shared.to_expire.wait_timeout(queue, left).unwrap_or_else(PoisonError::into_inner).0;
            continue;
        }
        let (never_left, on_the_way) = queue.expired(now);
        drop(queue);
        let why = shared.store_error().unwrap_or_else(|| "the store is slow".to_owned());
        let late = Failure::Store(format!("the store did not take it in time, nothing was changed: {why}"));
        let lost = unknown(format_args!("no answer of the store in time: {why}"));
        shared.settle(never_left.into_iter().map(|ticket| (ticket, Err(late.clone()))));
        shared.settle(on_the_way.into_iter().map(|ticket| (ticket, Err(lost.clone()))));
        queue = shared.queue();
    }
}
