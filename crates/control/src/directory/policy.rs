//! Which services may reach which: the directory's access control (VL2 4.2.1, 4.3).
//!
//! A server cannot send to an AA whose LA it is not told, so services are isolated by what look-ups say. Unless a rule
//! says otherwise:
//!
//! * a service reaches itself;
//! * service 0, the common one, reaches every service and every service reaches it: what all use must be able to answer
//!   all. Mappings set without a service belong to it, so a fabric without policy is one open layer 2;
//! * no other service reaches another.
//!
//! A rule is for one direction. Two services can talk when each reaches the other, because answers need a look-up too.

use std::collections::HashSet;
use std::hash::BuildHasherDefault;

use super::hash::{NumberHasher, mix};

/// The service that all others share.
pub const COMMON_SERVICE: u32 = 0;

/// Rules that differ from what holds without them; a table has at most so many.
pub const RULES_MAX: usize = 65_536;

/// A rule to set: may servers of one service look up AAs of another?
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PolicyChange {
    /// Whose servers ask.
    pub from_service: u32,
    /// Whose AAs are asked for.
    pub to_service: u32,
    /// Whether they are told.
    pub allow: bool,
}

/// What holds without a rule.
pub fn default_allows(from_service: u32, to_service: u32) -> bool {
    from_service == to_service || from_service == COMMON_SERVICE || to_service == COMMON_SERVICE
}

/// All rules. Only those that differ from the default are kept, so equal policies are equal values.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Policy {
    exceptions: HashSet<u64, BuildHasherDefault<NumberHasher>>,
    hash: u64,
}

impl Policy {
    /// Whether servers of `from` may be told where AAs of `to` are.
    pub(super) fn allows(&self, from: u32, to: u32) -> bool {
        let excepted = !self.exceptions.is_empty() && self.exceptions.contains(&pair(from, to));
        default_allows(from, to) != excepted
    }

    /// Whether the change would add a rule to those kept.
    pub(super) fn grows_by(&self, change: &PolicyChange) -> bool {
        let PolicyChange { from_service, to_service, allow } = *change;
        allow != default_allows(from_service, to_service) && !self.exceptions.contains(&pair(from_service, to_service))
    }

    pub(super) fn set(&mut self, change: &PolicyChange) {
        let PolicyChange { from_service, to_service, allow } = *change;
        let pair = pair(from_service, to_service);
        let changed = if allow == default_allows(from_service, to_service) {
            self.exceptions.remove(&pair)
        } else {
            self.exceptions.insert(pair)
        };
        if changed {
            // Comes and goes by the same operation.
            self.hash ^= mix(0x706f_6c69_6379, &[pair]);
        }
    }

    pub(super) fn len(&self) -> usize {
        self.exceptions.len()
    }

    /// The rules that differ from the default, in order.
    pub(super) fn rules(&self) -> Vec<PolicyChange> {
        let rule = |pair: &u64| {
            let (from_service, to_service) = ((pair >> 32) as u32, *pair as u32);
            PolicyChange { from_service, to_service, allow: !default_allows(from_service, to_service) }
        };
        let mut rules: Vec<_> = self.exceptions.iter().map(rule).collect();
        rules.sort_unstable();
        rules
    }

    /// A number that is equal for equal policies.
    pub(super) fn hash(&self) -> u64 {
        self.hash
    }
}

fn pair(from: u32, to: u32) -> u64 {
    u64::from(from) << 32 | u64::from(to)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(from_service: u32, to_service: u32, allow: bool) -> PolicyChange {
        PolicyChange { from_service, to_service, allow }
    }

    #[test]
    fn without_rules_services_are_apart_and_share_the_common_one() {
        let policy = Policy::default();
        for (from, to, allowed) in
            [(0, 0, true), (5, 5, true), (5, 0, true), (0, 5, true), (5, 6, false), (6, 5, false)]
        {
            assert_eq!(policy.allows(from, to), allowed, "{from} -> {to}");
        }
    }

    #[test]
    fn a_rule_is_for_one_direction_and_the_default_is_no_rule() {
        let mut policy = Policy::default();
        policy.set(&change(5, 6, true));
        policy.set(&change(0, 5, false));
        assert!(policy.allows(5, 6) && !policy.allows(6, 5) && !policy.allows(0, 5) && policy.allows(5, 0));
        assert_eq!(policy.rules(), [change(0, 5, false), change(5, 6, true)]);
        assert_ne!(policy.hash(), Policy::default().hash());
        policy.set(&change(5, 6, false));
        policy.set(&change(0, 5, true));
        policy.set(&change(7, 7, true));
        assert_eq!(policy, Policy::default());
    }
}
