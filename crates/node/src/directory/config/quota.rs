//! What services may take of a server: shares and AA ranges, as they are set.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use weft_control::directory::{AaRanges, Quota};
use weft_wire::block::Block;

use crate::error::NodeError;

/// A service's share. What is left out is as for all services, and for those as
/// [`Quota`](weft_control::directory::Quota) has it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct QuotaConfig {
    /// Sessions over TLS at a time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sessions: Option<usize>,
    /// Bytes of requests that have come in part, and of lists that are read in parts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub buffered_bytes: Option<usize>,
    /// Requests that wait for the store at a time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requests_open: Option<usize>,
    /// Updates in them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub updates_open: Option<usize>,
    /// Rows of the table, those of deleted mappings that are remembered included.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rows: Option<usize>,
    /// Updates a second; who sends more is read more slowly.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub updates_per_s: Option<u64>,
    /// Updates that may come at once after a silence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub updates_burst: Option<u64>,
}

/// What is said of one service.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServiceConfig {
    /// Its number.
    pub service: u32,
    /// Where its AAs are, as `20.7.0.0/16`: it has none elsewhere, and no other service has any there. Without ranges it may
    /// have every AA that is in nobody's.
    #[serde(default)]
    pub aa_ranges: Vec<String>,
    /// Its own share, where that differs from all services'.
    #[serde(default)]
    pub quota: QuotaConfig,
}

/// How long sessions over TLS are waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SessionTimers {
    /// Silence after which a session without a watch ends, seconds.
    pub idle_s: u64,
    /// How long a request may be unfinished, or an answer unread, before the session ends, seconds.
    pub stall_s: u64,
}

impl Default for SessionTimers {
    fn default() -> Self {
        Self { idle_s: 600, stall_s: 30 }
    }
}

impl SessionTimers {
    pub(in crate::directory) fn idle(self) -> Duration {
        Duration::from_secs(self.idle_s.max(1))
    }

    pub(in crate::directory) fn stall(self) -> Duration {
        Duration::from_secs(self.stall_s.max(1))
    }
}

/// The shares of all services.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::directory) struct Quotas {
    each: Quota,
    of: BTreeMap<u32, Quota>,
}

impl Quotas {
    pub(in crate::directory) fn new(each: &QuotaConfig, services: &[ServiceConfig]) -> Self {
        let each = each.over(Quota::default());
        Self { each, of: services.iter().map(|service| (service.service, service.quota.over(each))).collect() }
    }

    /// The share of a service.
    pub(in crate::directory) fn of(&self, service: u32) -> &Quota {
        self.of.get(&service).unwrap_or(&self.each)
    }
}

impl QuotaConfig {
    /// What holds where nothing is said, for people who change it.
    pub(super) fn example() -> Self {
        let Quota { sessions, buffered_bytes, requests_open, updates_open, rows, updates_per_s, updates_burst } =
            Quota::default();
        Self {
            sessions: Some(sessions),
            buffered_bytes: Some(buffered_bytes),
            requests_open: Some(requests_open),
            updates_open: Some(updates_open),
            rows: Some(rows),
            updates_per_s: Some(updates_per_s),
            updates_burst: Some(updates_burst),
        }
    }

    fn over(&self, base: Quota) -> Quota {
        Quota {
            sessions: self.sessions.unwrap_or(base.sessions),
            buffered_bytes: self.buffered_bytes.unwrap_or(base.buffered_bytes),
            requests_open: self.requests_open.unwrap_or(base.requests_open),
            updates_open: self.updates_open.unwrap_or(base.updates_open),
            rows: self.rows.unwrap_or(base.rows),
            updates_per_s: self.updates_per_s.unwrap_or(base.updates_per_s),
            updates_burst: self.updates_burst.unwrap_or(base.updates_burst),
        }
    }
}

/// The AA ranges, all inside the block.
pub(super) fn aa_ranges(block: Block, services: &[ServiceConfig]) -> Result<AaRanges, NodeError> {
    let fault = |why: String| NodeError::config("services", why);
    let mut of = BTreeMap::new();
    for ServiceConfig { service, aa_ranges, .. } in services {
        let ranges = aa_ranges.iter().map(|text| {
            let range: Block = text.parse().map_err(|error| fault(format!("service {service}: {error}")))?;
            let inside = block.contains(range.network()) && block.contains(range.last());
            let outside = || fault(format!("service {service}: {range} is not inside the AA block {block}"));
            inside.then_some(range).ok_or_else(outside)
        });
        if of.insert(*service, ranges.collect::<Result<Vec<_>, _>>()?).is_some() {
            return Err(fault(format!("service {service} is named twice; say all of it in one place")));
        }
    }
    AaRanges::new(of).map_err(|overlap| fault(overlap.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn service(service: u32, ranges: &[&str]) -> ServiceConfig {
        let aa_ranges = ranges.iter().map(|range| (*range).to_owned()).collect();
        ServiceConfig { service, aa_ranges, quota: QuotaConfig::default() }
    }

    #[test]
    fn what_is_said_of_a_service_goes_before_what_is_said_of_all() {
        let each = QuotaConfig { rows: Some(10), sessions: Some(3), ..QuotaConfig::default() };
        let seven =
            ServiceConfig { quota: QuotaConfig { rows: Some(99), ..QuotaConfig::default() }, ..service(7, &[]) };
        let quotas = Quotas::new(&each, &[seven]);
        assert_eq!((quotas.of(7).rows, quotas.of(7).sessions), (99, 3));
        assert_eq!((quotas.of(8).rows, quotas.of(8).updates_open), (10, Quota::default().updates_open));
        assert_eq!(QuotaConfig::example().over(Quota::default()), Quota::default());
    }

    #[test]
    fn ranges_that_cannot_be_are_refused_with_the_service() {
        let block = "20.0.0.0/8".parse().unwrap();
        for (services, says) in [
            (vec![service(7, &["21.0.0.0/16"])], "service 7: 21.0.0.0/16 is not inside"),
            (vec![service(7, &["0.0.0.0/0"])], "service 7: 0.0.0.0/0 is not inside"),
            (vec![service(7, &["20.7.0.0"])], "service 7: `20.7.0.0` is not an address block"),
            (vec![service(7, &[]), service(7, &[])], "service 7 is named twice"),
            (vec![service(7, &["20.7.0.0/16"]), service(8, &["20.0.0.0/9"])], "both have 20.7.0.0"),
        ] {
            let error = aa_ranges(block, &services).unwrap_err().to_string();
            assert!(error.starts_with("services: ") && error.contains(says), "{error}");
        }
        assert!(aa_ranges(block, &[service(7, &["20.7.0.0/16"]), service(8, &["20.8.0.0/16"])]).is_ok());
    }
}
