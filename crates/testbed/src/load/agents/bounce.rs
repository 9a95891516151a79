//! The same datagrams to sockets that send everything back: what this machine takes for an outage without a directory.

use std::net::SocketAddrV4;
use std::time::Instant;

use hdrhistogram::Histogram;
use weft_control::NS_PER_S;
use weft_node::NodeError;
use weft_node::stop::Stop;
use weft_wire::directory::{DATAGRAM_LEN_MAX, datagram_len};

use super::{Agents, READ_MAX, WAIT_MAX_NS};
use crate::cpu;
use crate::load::report::{histogram, record};

/// What is not back by then is lost, as a look-up's answer would be.
const LOST_NS: u64 = 2 * NS_PER_S;
/// Agents that send before datagrams are read again.
const BEGIN_MAX: usize = 32;

/// Datagrams that came back.
#[derive(Clone, Debug)]
pub struct BounceReport {
    /// Datagrams sent: one of each agent to each address.
    pub sent: u64,
    pub back: u64,
    /// From the common instant on, nanoseconds.
    pub since_instant_ns: Histogram<u64>,
    /// CPU time of this thread, nanoseconds.
    pub own_cpu_ns: u64,
}

impl Agents {
    /// Every agent sends a datagram as long as its question to each of these addresses, once.
    ///
    /// # Errors
    /// [`NodeError::System`].
    pub fn bounce(&mut self, echoes: &[SocketAddrV4], stop: &Stop) -> Result<BounceReport, NodeError> {
        self.begin()?;
        let question = vec![0; datagram_len(self.load.questions)];
        let mut report = BounceReport { sent: 0, back: 0, since_instant_ns: histogram(), own_cpu_ns: 0 };
        self.start = Instant::now();
        let cpu_ns = cpu::this_thread_ns();
        let (mut next, count) = (0, self.hosts.len());
        while (next < count || report.back < report.sent) && self.now_ns() < LOST_NS && !stop.requested() {
            for host in self.hosts[next..].iter().take(BEGIN_MAX) {
                for echo in echoes {
                    report.sent += u64::from(self.socket.send(host.la(), *echo, &question).is_ok());
                }
            }
            next = (next + BEGIN_MAX).min(count);
            if next >= count {
                self.wait(WAIT_MAX_NS)?;
            }
            for _ in 0..READ_MAX {
                let Some((_, _, length)) = self.socket.receive(&mut [0; DATAGRAM_LEN_MAX]) else { break };
                if length == question.len() {
                    report.back += 1;
                    record(&mut report.since_instant_ns, self.now_ns());
                }
            }
        }
        report.own_cpu_ns = cpu::this_thread_ns() - cpu_ns;
        Ok(report)
    }
}
