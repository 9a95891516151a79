//! Which updates a server takes: checked before they enter the log, so that the log itself means the same everywhere.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;

use super::policy::PolicyChange;
use super::ranges::AaRanges;
use super::update::{Change, Reason, Refusal, Request, RuleReason, Update};
use crate::address::Locator;
use weft_wire::block::Block;

/// What a server knows about valid mappings.
#[derive(Clone, Debug)]
pub struct Rules {
    /// Where AAs come from.
    pub aa_block: Block,
    /// The LAs of all ToR switches; `None` if any LA may be one.
    pub tor_las: Option<BTreeSet<Ipv4Addr>>,
    /// Which of them are reserved for which service.
    pub aa_ranges: AaRanges,
    /// Updates and rules that one request may have.
    pub updates_max: usize,
}

impl Rules {
    /// Checks everything about a request that does not depend on the table.
    ///
    /// # Errors
    /// The first fault, with its place.
    pub fn check(&self, request: &Request) -> Result<(), Refusal> {
        let count = request.updates.len() + request.policy.len();
        if count == 0 {
            return Err(Refusal::Empty);
        }
        if count > self.updates_max {
            return Err(Refusal::TooMany { count, max: self.updates_max });
        }
        let mut seen = BTreeSet::new();
        for (index, update) in request.updates.iter().enumerate() {
            let fault = |reason| Refusal::Update { number: index + 1, aa: update.aa, reason };
            self.check_update(update).map_err(fault)?;
            if !seen.insert(update.aa) {
                return Err(fault(Reason::Twice));
            }
        }
        check_policy(&request.policy)
    }

    fn check_update(&self, update: &Update) -> Result<(), Reason> {
        if !self.aa_block.contains(update.aa) {
            return Err(Reason::OutsideBlock { block: self.aa_block.to_string() });
        }
        match update.change {
            Change::Set { locator, service, host_la } => {
                self.aa_ranges.check(update.aa, service)?;
                host_la.map_or(Ok(()), |la| self.check_la(la))?;
                self.check_locator(locator)
            }
            Change::Delete => Ok(()),
        }
    }

    fn check_locator(&self, locator: Locator) -> Result<(), Reason> {
        self.check_la(locator.tor_la)?;
        self.check_la(locator.anycast_la)?;
        match &self.tor_las {
            Some(known) if !known.contains(&locator.tor_la) => Err(Reason::UnknownTor { la: locator.tor_la }),
            _ => Ok(()),
        }
    }

    fn check_la(&self, la: Ipv4Addr) -> Result<(), Reason> {
        let unfit = la.is_unspecified() || la.is_multicast() || la.is_broadcast() || self.aa_block.contains(la);
        if unfit { Err(Reason::NotALocator { la }) } else { Ok(()) }
    }
}

fn check_policy(policy: &[PolicyChange]) -> Result<(), Refusal> {
    let mut seen = BTreeSet::new();
    for (index, change) in policy.iter().enumerate() {
        let fault = |reason| Refusal::Rule { number: index + 1, change: *change, reason };
        if change.from_service == change.to_service {
            return Err(fault(RuleReason::Itself));
        }
        if !seen.insert((change.from_service, change.to_service)) {
            return Err(fault(RuleReason::Twice));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const AA: Ipv4Addr = Ipv4Addr::new(20, 0, 0, 5);
    const TOR: Ipv4Addr = Ipv4Addr::new(10, 1, 0, 1);
    const ANYCAST: Ipv4Addr = Ipv4Addr::new(10, 255, 255, 1);

    fn rules() -> Rules {
        let aa_block = "20.0.0.0/8".parse().unwrap();
        Rules { aa_block, tor_las: Some([TOR].into()), aa_ranges: AaRanges::default(), updates_max: 3 }
    }

    fn set(aa: Ipv4Addr, tor_la: Ipv4Addr, anycast_la: Ipv4Addr) -> Update {
        Update::set(aa, Locator { tor_la, anycast_la })
    }

    #[test]
    fn a_good_request_passes() {
        let updates = vec![set(AA, TOR, ANYCAST), Update::delete(Ipv4Addr::new(20, 0, 0, 6))];
        assert_eq!(rules().check(&Request::once(updates)), Ok(()));
    }

    #[test]
    fn each_fault_is_named_with_its_place() {
        let good = set(AA, TOR, ANYCAST);
        let other = Ipv4Addr::new(10, 1, 0, 9);
        for (bad, text) in [
            (set(Ipv4Addr::new(21, 0, 0, 1), TOR, ANYCAST), "update 2, AA 21.0.0.1: outside the AA block 20.0.0.0/8"),
            (Update::delete(Ipv4Addr::new(1, 2, 3, 4)), "update 2, AA 1.2.3.4: outside"),
            (set(AA, TOR, ANYCAST), "update 2, AA 20.0.0.5: named twice"),
            (set(Ipv4Addr::new(20, 0, 0, 6), other, ANYCAST), "LA 10.1.0.9 is none of the known ToR"),
            (set(Ipv4Addr::new(20, 0, 0, 6), TOR, AA), "20.0.0.5 cannot be an LA"),
            (set(Ipv4Addr::new(20, 0, 0, 6), Ipv4Addr::UNSPECIFIED, ANYCAST), "0.0.0.0 cannot be an LA"),
        ] {
            let error = rules().check(&Request::once(vec![good, bad])).unwrap_err().to_string();
            assert!(error.contains(text), "{error} does not say: {text}");
        }
        let elsewhere =
            Change::Set { locator: Locator { tor_la: TOR, anycast_la: ANYCAST }, service: 0, host_la: Some(AA) };
        let error = rules().check(&Request::once(vec![Update { change: elsewhere, ..good }])).unwrap_err().to_string();
        assert!(error.contains("20.0.0.5 cannot be an LA"), "{error}");
        assert_eq!(rules().check(&Request::once(Vec::new())), Err(Refusal::Empty));
        let many = vec![good; 4];
        assert_eq!(rules().check(&Request::once(many)), Err(Refusal::TooMany { count: 4, max: 3 }));
    }

    #[test]
    fn each_faulty_rule_is_named_with_its_place() {
        let rule = |from_service, to_service| PolicyChange { from_service, to_service, allow: true };
        assert_eq!(rules().check(&Request::rules(vec![rule(1, 2), rule(2, 1)])), Ok(()));
        for (bad, text) in [
            (rule(3, 3), "rule 2, service 3 to 3: a service always reaches itself"),
            (PolicyChange { allow: false, ..rule(1, 2) }, "rule 2, service 1 to 2: named twice"),
        ] {
            let error = rules().check(&Request::rules(vec![rule(1, 2), bad])).unwrap_err().to_string();
            assert!(error.contains(text) && !error.contains('\n'), "{error} does not say: {text}");
        }
        let many = Request { policy: vec![rule(1, 2), rule(2, 1)], ..Request::once(vec![set(AA, TOR, ANYCAST); 2]) };
        assert_eq!(rules().check(&many), Err(Refusal::TooMany { count: 4, max: 3 }));
    }
}
