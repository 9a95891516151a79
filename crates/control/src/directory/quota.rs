//! What one service may take of a directory server, so that none starves the others.
//!
//! Every limit is declared here, with what it is where nobody says otherwise. Operators have none: who may do everything is
//! trusted not to.

use std::collections::BTreeMap;

use crate::NS_PER_S;

/// A service's share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quota {
    /// Sessions at a time.
    pub sessions: usize,
    /// Bytes of requests that have come in part, and of lists that are read in parts, in all its sessions.
    pub buffered_bytes: usize,
    /// Requests that wait for the store at a time.
    pub requests_open: usize,
    /// Updates in them.
    pub updates_open: usize,
    /// Rows of the table: its mappings, and those of its deleted ones that are remembered.
    pub rows: usize,
    /// Updates a second, reads weighed by what they cost; who asks for more is read more slowly.
    pub updates_per_s: u64,
    /// Updates that may come at once after a silence.
    pub updates_burst: u64,
}

/// Updates that a request costs more if it is refused: who asks for what it may not have is soon read more slowly, and who
/// is told so now and then does not notice.
pub const REFUSED_COST: u64 = 16;

impl Default for Quota {
    fn default() -> Self {
        Self {
            sessions: 64,
            buffered_bytes: 32 << 20,
            requests_open: 4096,
            updates_open: 65_536,
            rows: 65_536,
            updates_per_s: 20_000,
            updates_burst: 65_536,
        }
    }
}

/// More than its share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("service {service} may have {max} {what}, and this would be more; {remedy}, or ask an operator for more")]
pub struct Exceeded {
    service: u32,
    /// Its quota.
    max: usize,
    /// Of what.
    what: &'static str,
    remedy: &'static str,
    /// Whether it may be asked again later.
    pub passes: bool,
}

/// What a request counts for, as long as it is open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Weight {
    pub updates: usize,
    /// AAs without a row.
    pub new_rows: usize,
}

/// What all services have open now.
#[derive(Clone, Debug, Default)]
pub struct Accounts {
    /// One for each service that ever came; as many as there are certificates.
    of: BTreeMap<u32, Account>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Account {
    sessions: usize,
    buffered_bytes: usize,
    requests: usize,
    open: Weight,
    /// When what was asked for would be done at the rate of the quota (GCRA's theoretical arrival time).
    paid_ns: u64,
}

impl Accounts {
    /// One more session.
    ///
    /// # Errors
    /// [`Exceeded`]: it may not be.
    pub fn open_session(&mut self, service: u32, quota: &Quota) -> Result<(), Exceeded> {
        let account = self.account(service);
        let sessions = account.sessions + 1;
        within(service, sessions, quota.sessions, "sessions", "end one of them")?;
        account.sessions = sessions;
        Ok(())
    }

    /// One session less.
    pub fn close_session(&mut self, service: u32) {
        let account = self.account(service);
        account.sessions = account.sessions.saturating_sub(1);
    }

    /// A session keeps so many bytes now, in the place of those before.
    ///
    /// # Errors
    /// [`Exceeded`]: it may not, and what is counted stays.
    pub fn buffer(&mut self, service: u32, before: usize, now: usize, quota: &Quota) -> Result<(), Exceeded> {
        let account = self.account(service);
        let bytes = account.buffered_bytes.saturating_sub(before) + now;
        if now > before {
            within(service, bytes, quota.buffered_bytes, "bytes of unfinished requests", "send less at a time")?;
        }
        account.buffered_bytes = bytes;
        Ok(())
    }

    /// A request begins to wait for the store. `rows` is how many the service has in the table.
    ///
    /// # Errors
    /// [`Exceeded`]: it may not.
    pub fn open_request(&mut self, service: u32, weight: Weight, rows: usize, quota: &Quota) -> Result<(), Exceeded> {
        let account = self.account(service);
        let requests = account.requests + 1;
        let updates = account.open.updates + weight.updates;
        let new_rows = account.open.new_rows + weight.new_rows;
        within(service, requests, quota.requests_open, "requests open", "wait for answers")?;
        within(service, updates, quota.updates_open, "updates open", "wait for answers")?;
        if weight.new_rows > 0 {
            within(service, rows + new_rows, quota.rows, ROWS, "delete what it does not need and use those AAs again")?;
        }
        account.requests = requests;
        account.open = Weight { updates, new_rows };
        Ok(())
    }

    /// A request was answered.
    pub fn close_request(&mut self, service: u32, weight: Weight) {
        let account = self.account(service);
        account.requests = account.requests.saturating_sub(1);
        account.open.updates = account.open.updates.saturating_sub(weight.updates);
        account.open.new_rows = account.open.new_rows.saturating_sub(weight.new_rows);
    }

    /// Takes note of something that costs as much as so many updates. Returns how long to wait before it is done.
    pub fn charge(&mut self, service: u32, updates: u64, now_ns: u64, quota: &Quota) -> u64 {
        let ns = |updates: u64| {
            let ns = u128::from(updates) * u128::from(NS_PER_S) / u128::from(quota.updates_per_s.max(1));
            u64::try_from(ns).unwrap_or(u64::MAX)
        };
        let account = self.account(service);
        account.paid_ns = account.paid_ns.max(now_ns).saturating_add(ns(updates));
        account.paid_ns.saturating_sub(now_ns).saturating_sub(ns(quota.updates_burst))
    }

    fn account(&mut self, service: u32) -> &mut Account {
        self.of.entry(service).or_default()
    }
}

/// What does not go away by waiting.
const ROWS: &str = "rows";

fn within(service: u32, count: usize, max: usize, what: &'static str, remedy: &'static str) -> Result<(), Exceeded> {
    let passes = what != ROWS;
    if count > max { Err(Exceeded { service, max, what, remedy, passes }) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: Quota = Quota {
        sessions: 2,
        buffered_bytes: 100,
        requests_open: 3,
        updates_open: 10,
        rows: 5,
        updates_per_s: 1000,
        updates_burst: 50,
    };

    fn said<T: std::fmt::Debug>(outcome: Result<T, Exceeded>) -> String {
        let text = outcome.unwrap_err().to_string();
        assert!(text.starts_with("service 7 may have ") && !text.contains('\n'), "{text}");
        text
    }

    #[test]
    fn sessions_and_bytes_are_counted_for_each_service_and_come_back() {
        let mut accounts = Accounts::default();
        for _ in 0..2 {
            accounts.open_session(7, &SMALL).unwrap();
        }
        assert!(said(accounts.open_session(7, &SMALL)).contains("2 sessions"));
        accounts.open_session(8, &SMALL).unwrap();
        accounts.close_session(7);
        accounts.open_session(7, &SMALL).unwrap();
        accounts.buffer(7, 0, 90, &SMALL).unwrap();
        assert!(said(accounts.buffer(7, 0, 20, &SMALL)).contains("100 bytes"));
        accounts.buffer(8, 0, 20, &SMALL).unwrap();
        accounts.buffer(7, 90, 5, &SMALL).unwrap();
        accounts.buffer(7, 0, 95, &SMALL).unwrap();
    }

    #[test]
    fn open_requests_their_updates_and_rows_are_bounded_together() {
        let mut accounts = Accounts::default();
        let of = |updates, new_rows| Weight { updates, new_rows };
        accounts.open_request(7, of(4, 2), 2, &SMALL).unwrap();
        assert!(said(accounts.open_request(7, of(2, 2), 2, &SMALL)).contains("5 rows"), "those on their way count");
        accounts.open_request(7, of(4, 0), 5, &SMALL).expect("nothing new");
        assert!(said(accounts.open_request(7, of(3, 0), 2, &SMALL)).contains("10 updates"));
        accounts.open_request(7, of(1, 0), 2, &SMALL).unwrap();
        assert!(said(accounts.open_request(7, of(1, 0), 2, &SMALL)).contains("3 requests"));
        accounts.open_request(8, of(10, 5), 0, &SMALL).expect("others have their own");
        accounts.close_request(7, of(4, 2));
        accounts.open_request(7, of(2, 1), 4, &SMALL).unwrap();
    }

    #[test]
    fn who_asks_faster_than_the_rate_waits_as_long_as_that_takes() {
        let mut accounts = Accounts::default();
        let ms = crate::NS_PER_MS;
        assert_eq!(accounts.charge(7, 50, 0, &SMALL), 0, "a burst");
        assert_eq!(accounts.charge(7, 10, 0, &SMALL), 10 * ms);
        assert_eq!(accounts.charge(8, 50, 0, &SMALL), 0, "another service is another account");
        assert_eq!(accounts.charge(7, 10, 20 * ms, &SMALL), 0);
        assert_eq!(accounts.charge(7, 1, 20 * ms, &SMALL), ms);
        assert_eq!(accounts.charge(7, 50, 900_000 * ms, &SMALL), 0, "a silence earns no more than a burst");
        assert_eq!(accounts.charge(7, 1, 900_000 * ms, &SMALL), ms);
        assert_eq!(accounts.charge(7, u64::MAX, 0, &Quota { updates_per_s: 0, ..SMALL }), u64::MAX - 50 * NS_PER_S);
    }
}
