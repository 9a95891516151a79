//! Whether the directory answers: said once when it does not, and once when it does again.

use std::net::{Ipv4Addr, SocketAddrV4};

use tracing::{info, warn};

use crate::READY_LOG;
use crate::watch::Readiness;

/// How long no question may be answered before that is said, nanoseconds: five retries fit.
const LIMIT_NS: u64 = 1_000_000_000;
const NS_PER_S: f64 = 1e9;

/// What there is to say.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Notice {
    /// No server has answered for so long.
    Silent { for_s: f64 },
    /// A server answers again.
    Answers,
}

/// Follows questions and believed answers.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Silence {
    /// When the first question was sent that nothing believed has come after.
    asked_at_ns: Option<u64>,
    is_told: bool,
    heard: u64,
}

impl Silence {
    /// A question has been sent.
    pub(crate) fn asked(&mut self, now_ns: u64) {
        self.asked_at_ns.get_or_insert(now_ns);
    }

    /// Whether no server has answered for so long that it was said.
    pub(crate) fn is_told(&self) -> bool {
        self.is_told
    }

    /// Whether a daemon can work that needs the directory.
    pub(crate) fn readiness(&self) -> Readiness {
        let is_told = self.is_told;
        Box::new(move || if is_told { Err("no directory server answers".to_owned()) } else { Ok(()) })
    }

    /// Looks at how many datagrams of servers were `heard`, ever.
    pub(crate) fn look(&mut self, now_ns: u64, heard: u64) -> Option<Notice> {
        if std::mem::replace(&mut self.heard, heard) != heard {
            self.asked_at_ns = None;
            return std::mem::take(&mut self.is_told).then_some(Notice::Answers);
        }
        let silent_ns = now_ns.saturating_sub(self.asked_at_ns?);
        if self.is_told || silent_ns < LIMIT_NS {
            return None;
        }
        self.is_told = true;
        Some(Notice::Silent { for_s: silent_ns as f64 / NS_PER_S })
    }
}

impl Notice {
    /// Says it: which servers, and from which address they were asked with a key.
    pub(crate) fn log(self, servers: &[SocketAddrV4], la: Ipv4Addr, key: &str) {
        let names: Vec<String> = servers.iter().map(SocketAddrV4::to_string).collect();
        let names = names.join(", ");
        match self {
            Self::Silent { for_s } => warn!(
                "no answer from any of {} directory server(s) ({names}) for {for_s:.1} s: not reachable from {la}, or \
                 {key} is not what `weft directory key` derives for it (`weft directory status` there counts wrong \
                 ones as `ignored: bad_tag`)",
                servers.len()
            ),
            Self::Answers => info!(target: READY_LOG, "a directory server answers again ({names})"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000_000;

    #[test]
    fn silence_is_told_once_and_its_end_once() {
        let mut silence = Silence::default();
        assert_eq!(silence.look(5 * S, 0), None, "nobody asked");
        silence.asked(5 * S);
        silence.asked(6 * S - 1);
        assert_eq!(silence.look(6 * S - 1, 0), None);
        assert_eq!(silence.look(6 * S, 0), Some(Notice::Silent { for_s: 1.0 }));
        assert_eq!(silence.look(9 * S, 0), None);
        assert_eq!(silence.look(10 * S, 1), Some(Notice::Answers));
        assert_eq!(silence.look(20 * S, 1), None);
    }

    #[test]
    fn every_believed_answer_begins_anew() {
        let mut silence = Silence::default();
        silence.asked(0);
        assert_eq!(silence.look(S / 2, 1), None);
        assert_eq!(silence.look(2 * S, 1), None, "nothing has been asked since");
        silence.asked(2 * S);
        assert_eq!(silence.look(3 * S, 1), Some(Notice::Silent { for_s: 1.0 }));
    }
}
