//! Answers requests whose time is over, whatever the store does.

use std::sync::PoisonError;
use std::time::Duration;

use super::shared::Shared;

/// Expired requests are looked for at most this often.
const EXPIRE_EVERY: Duration = Duration::from_millis(10);

/// Runs until everything ends.
pub(super) fn run(shared: &Shared) {
    let mut queue = shared.queue();
    while !shared.stopping() {
        let now_ns = shared.clock.now_ns();
        let left = match queue.expiry_ns() {
            None => {
                queue = shared.to_expire.wait(queue).unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            Some(expiry_ns) => Duration::from_nanos(expiry_ns.saturating_sub(now_ns)),
        };
        if !left.is_zero() {
            let left = left.max(EXPIRE_EVERY);
            queue = shared.to_expire.wait_timeout(queue, left).unwrap_or_else(PoisonError::into_inner).0;
            continue;
        }
        let health = shared.health();
        let settled = queue.expired(now_ns, health.store_error().unwrap_or("the store is slow"));
        drop((health, queue));
        shared.settle(settled);
        queue = shared.queue();
    }
}
