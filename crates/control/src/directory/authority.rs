//! Who changes mappings, and what it may do.

use std::net::Ipv4Addr;

use super::table::{Record, Table};
use super::update::{Change, Request};

/// Why it may not.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Denied {
    /// It never may, or no more.
    #[error("{0}")]
    Forbidden(String),
    /// The table does not know what the request knows.
    #[error(
        "AA {aa}: this server has seen version {found}, not {expected}, nothing was changed; ask again, or another server"
    )]
    Behind { aa: Ipv4Addr, expected: u64, found: u64 },
}

/// Who asks for a change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Authority {
    /// May do everything.
    #[default]
    Operator,
    /// May change AAs of this service and see what it may reach.
    Service(u32),
}

impl Authority {
    /// Reads a name as certificates have it (a URI among the subject's alternative names): `weft:operator`, or
    /// `weft:service:7`.
    pub fn from_uri(uri: &str) -> Option<Self> {
        match uri.strip_prefix("weft:")? {
            "operator" => Some(Self::Operator),
            other => other.strip_prefix("service:")?.parse().ok().map(Self::Service),
        }
    }

    /// Whether it may know of this record.
    pub fn sees(self, table: &Table, record: &Record) -> bool {
        match self {
            Self::Operator => true,
            Self::Service(service) => table.allows(service, record.service),
        }
    }

    /// Whether it may do everything.
    pub fn is_operator(self) -> bool {
        self == Self::Operator
    }

    /// Checks a request of this client, puts its name on it, and ties its updates to the versions that were checked: so an
    /// AA that changes hands between the check and the commit is not touched. Returns how many AAs it names that the table
    /// has no row of.
    ///
    /// A request that came before has its verdict ([`Table::judged_before`]), whatever has become of its AAs since.
    ///
    /// # Errors
    /// Why it may not, in one line.
    pub fn check(self, table: &Table, request: &mut Request) -> Result<usize, Denied> {
        request.authority = self;
        let Self::Service(service) = self else { return Ok(0) };
        if !request.policy.is_empty() {
            let why = "the policy is for operators; use an operator's certificate";
            return Err(Denied::Forbidden(why.to_owned()));
        }
        let mut new_rows = 0;
        for update in &mut request.updates {
            if matches!(update.change, Change::Set { service: wanted, .. } if wanted != service) {
                return Err(foreign(update.aa, service));
            }
            let record = table.record(update.aa);
            if record.is_some_and(|record| record.service != service) {
                return Err(foreign(update.aa, service));
            }
            new_rows += usize::from(record.is_none());
            let current = record.map_or(0, |record| record.version);
            let expected = *update.if_version.get_or_insert(current);
            if expected > current {
                // Versions never go back: it is this table that is not the latest.
                return Err(Denied::Behind { aa: update.aa, expected, found: current });
            }
            if expected != current {
                let what = format!("expected version {expected}, found {current}; read it again and decide anew");
                return Err(Denied::Forbidden(format!("AA {}: {what}", update.aa)));
            }
        }
        Ok(new_rows)
    }
}

fn foreign(aa: Ipv4Addr, service: u32) -> Denied {
    Denied::Forbidden(format!("AA {aa} is not of service {service}; a service changes its own AAs only"))
}

#[cfg(test)]
mod tests {
    use super::super::{Batch, PolicyChange, Update};
    use super::*;
    use crate::address::Locator;

    const OWN: Ipv4Addr = Ipv4Addr::new(20, 0, 0, 7);
    const FOREIGN: Ipv4Addr = Ipv4Addr::new(20, 0, 0, 8);
    const NEW: Ipv4Addr = Ipv4Addr::new(20, 0, 0, 9);

    fn set(aa: Ipv4Addr, service: u32) -> Update {
        let locator = Locator { tor_la: Ipv4Addr::new(10, 1, 0, 1), anycast_la: Ipv4Addr::new(10, 255, 255, 1) };
        Update { change: Change::Set { locator, service, host_la: None }, ..Update::delete(aa) }
    }

    fn table() -> Table {
        let mut table = Table::default();
        table.apply(5, &Batch::of(Request::once(vec![set(OWN, 7), set(FOREIGN, 8)])));
        table
    }

    fn check(authority: Authority, updates: Vec<Update>) -> Result<Request, String> {
        let mut request = Request::once(updates);
        authority.check(&table(), &mut request).map(|_| request).map_err(|denied| denied.to_string())
    }

    #[test]
    fn names_of_certificates_are_read_strictly() {
        assert_eq!(Authority::from_uri("weft:operator"), Some(Authority::Operator));
        assert_eq!(Authority::from_uri("weft:service:7"), Some(Authority::Service(7)));
        for other in
            ["operator", "weft:", "weft:Operator", "weft:service:", "weft:service:-1", "weft:service:4294967296"]
        {
            assert_eq!(Authority::from_uri(other), None, "{other}");
        }
    }

    #[test]
    fn a_service_changes_its_own_and_nobody_elses() {
        let seven = Authority::Service(7);
        let request = check(seven, vec![set(OWN, 7), Update::delete(OWN), set(NEW, 7)]).unwrap();
        let conditions: Vec<_> = request.updates.iter().map(|update| update.if_version).collect();
        assert_eq!(conditions, [Some(5), Some(5), Some(0)], "tied to what was checked");
        assert_eq!(request.authority, seven);
        let mut again = request.clone();
        assert_eq!(seven.check(&table(), &mut again), Ok(1), "one of them has no row yet");
        for update in [set(FOREIGN, 7), set(FOREIGN, 8), set(OWN, 8), set(NEW, 0), Update::delete(FOREIGN)] {
            let error = check(seven, vec![set(OWN, 7), update]).unwrap_err();
            assert!(error.contains("not of service 7"), "{error}");
            assert!(check(Authority::Operator, vec![update]).unwrap().updates[0].if_version.is_none());
        }
        let stale = Update { if_version: Some(4), ..set(OWN, 7) };
        assert!(check(seven, vec![stale]).unwrap_err().contains("expected version 4, found 5"));
        let mut ahead = Request::once(vec![Update { if_version: Some(9), ..set(OWN, 7) }]);
        let behind = seven.check(&table(), &mut ahead);
        assert_eq!(behind, Err(Denied::Behind { aa: OWN, expected: 9, found: 5 }), "another server may have seen it");
    }

    #[test]
    fn a_deleted_aa_stays_its_services() {
        let mut table = table();
        table.apply(6, &Batch::of(Request::once(vec![Update::delete(FOREIGN)])));
        let mut request = Request::once(vec![set(FOREIGN, 7)]);
        assert!(Authority::Service(7).check(&table, &mut request).is_err());
    }

    #[test]
    fn the_policy_is_for_operators() {
        let rule = PolicyChange { from_service: 7, to_service: 8, allow: true };
        let mut request = Request::rules(vec![rule]);
        assert!(Authority::Service(7).check(&table(), &mut request).is_err());
        assert!(Authority::Operator.check(&table(), &mut request).is_ok());
    }

    #[test]
    fn what_is_seen_follows_the_policy() {
        let mut table = table();
        let foreign = table.record(FOREIGN).unwrap();
        assert!(!Authority::Service(7).sees(&table, &foreign) && Authority::Operator.sees(&table, &foreign));
        let rule = PolicyChange { from_service: 7, to_service: 8, allow: true };
        table.apply(6, &Batch::of(Request::rules(vec![rule])));
        assert!(Authority::Service(7).sees(&table, &foreign));
    }
}
