//! A session's part of its service's share: taken at the start, given back with the session. Operators have all they want.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use weft_control::directory::{Accounts, Authority, Exceeded, Quota, Weight};

/// What is open of all services.
#[derive(Clone, Default)]
pub(super) struct Shares(Arc<Mutex<Accounts>>);

impl Shares {
    fn accounts(&self) -> MutexGuard<'_, Accounts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A place for one more session.
    ///
    /// # Errors
    /// The service has none left.
    pub(super) fn open_session(&self, who: Authority, quota: &Quota) -> Result<SessionPlace, Exceeded> {
        if let Authority::Service(service) = who {
            self.accounts().open_session(service, quota)?;
        }
        Ok(SessionPlace { shares: self.clone(), who })
    }

    /// Counts a request until [`Self::close_request`].
    ///
    /// # Errors
    /// The service may not have it open as well.
    pub(super) fn open_request(
        &self,
        who: Authority,
        weight: Weight,
        rows: usize,
        quota: &Quota,
    ) -> Result<(), Exceeded> {
        match who {
            Authority::Operator => Ok(()),
            Authority::Service(service) => self.accounts().open_request(service, weight, rows, quota),
        }
    }

    pub(super) fn close_request(&self, who: Authority, weight: Weight) {
        if let Authority::Service(service) = who {
            self.accounts().close_request(service, weight);
        }
    }

    /// How long to wait before something is done that costs as much as so many updates, nanoseconds.
    pub(super) fn charge(&self, who: Authority, updates: u64, now_ns: u64, quota: &Quota) -> u64 {
        match who {
            Authority::Operator => 0,
            Authority::Service(service) => self.accounts().charge(service, updates, now_ns, quota),
        }
    }

    /// Room for bytes that a session keeps; none yet.
    pub(super) fn buffer(&self, who: Authority) -> Buffered {
        Buffered { shares: self.clone(), who, bytes: 0 }
    }
}

/// A session that counts.
pub(super) struct SessionPlace {
    shares: Shares,
    who: Authority,
}

impl Drop for SessionPlace {
    fn drop(&mut self) {
        if let Authority::Service(service) = self.who {
            self.shares.accounts().close_session(service);
        }
    }
}

/// Bytes that count.
pub(super) struct Buffered {
    shares: Shares,
    who: Authority,
    bytes: usize,
}

impl Buffered {
    /// So many from now on.
    ///
    /// # Errors
    /// The service may not keep so many; those before count on.
    pub(super) fn set(&mut self, bytes: usize, quota: &Quota) -> Result<(), Exceeded> {
        if let Authority::Service(service) = self.who
            && bytes != self.bytes
        {
            self.shares.accounts().buffer(service, self.bytes, bytes, quota)?;
        }
        self.bytes = bytes;
        Ok(())
    }
}

impl Drop for Buffered {
    fn drop(&mut self) {
        if let Authority::Service(service) = self.who {
            // Fewer bytes always fit.
            let _ = self.shares.accounts().buffer(service, self.bytes, 0, &Quota::default());
        }
    }
}
