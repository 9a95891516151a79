//! Why a table refuses a request: of the reasons of a [`Refusal`] those that depend on the state, as they are remembered.

use std::net::Ipv4Addr;

use super::policy::RULES_MAX;
use super::update::{Reason, Refusal};

/// Why a request changed nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    Update { number: u32, aa: Ipv4Addr, reason: UpdateFault },
    PolicyFull,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum UpdateFault {
    VersionMismatch { expected: u64, current: u64 },
    VersionBack { version: u64, current: u64 },
    NotFound,
}

impl From<Fault> for Refusal {
    fn from(fault: Fault) -> Self {
        let Fault::Update { number, aa, reason } = fault else { return Self::PolicyFull { max: RULES_MAX } };
        let reason = match reason {
            UpdateFault::VersionMismatch { expected, current } => Reason::VersionMismatch { expected, current },
            UpdateFault::VersionBack { version, current } => Reason::VersionBack { version, current },
            UpdateFault::NotFound => Reason::NotFound,
        };
        Self::Update { number: number as usize, aa, reason }
    }
}

impl Fault {
    /// As numbers: its kind, from 1, and three words. What is hashed and stored.
    pub(super) fn words(self) -> (u8, [u64; 3]) {
        let Self::Update { number, aa, reason } = self else { return (4, [0; 3]) };
        let place = u64::from(number) << 32 | u64::from(u32::from(aa));
        match reason {
            UpdateFault::VersionMismatch { expected, current } => (1, [place, expected, current]),
            UpdateFault::VersionBack { version, current } => (2, [place, version, current]),
            UpdateFault::NotFound => (3, [place, 0, 0]),
        }
    }

    /// The fault that has these words, if there is one of this kind.
    pub(super) fn of_words(kind: u8, [place, one, two]: [u64; 3]) -> Option<Self> {
        let reason = match kind {
            1 => UpdateFault::VersionMismatch { expected: one, current: two },
            2 => UpdateFault::VersionBack { version: one, current: two },
            3 => UpdateFault::NotFound,
            4 => return Some(Self::PolicyFull),
            _ => return None,
        };
        Some(Self::Update { number: (place >> 32) as u32, aa: Ipv4Addr::from(place as u32), reason })
    }
}
