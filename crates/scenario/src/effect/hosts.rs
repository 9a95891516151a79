//! Settings of hosts: `[transport]`.

use super::{Case, Finding, Runner, broken, finding, given};
use crate::transport::{CongestionControl, TcpStack, Transport};
use crate::units::{BitsPerSec, Bytes};
use crate::workload::Workload;

/// What is marked at 10 Gbit/s in the DCTCP paper (3.4: 65 packets of 1500 bytes), and at 1 Gbit/s and less (20).
const MARK_AT_10_GBPS: u64 = 97_500;
const MARK_AT_1_GBPS: u64 = 30_000;

/// A threshold that suits servers of this rate (Alizadeh et al., SIGCOMM 2010, 3.4).
pub(super) fn usual_threshold(rate: BitsPerSec) -> Bytes {
    let scaled = u128::from(MARK_AT_10_GBPS) * u128::from(rate.0) / 10_000_000_000;
    Bytes(if rate.0 < 10_000_000_000 { MARK_AT_1_GBPS } else { u64::try_from(scaled).unwrap_or(u64::MAX) })
}

impl Case<'_> {
    pub(super) fn of_hosts(&self) -> Vec<Finding> {
        let mut findings: Vec<Finding> = given(self.transport)
            .into_iter()
            .map(|name| {
                let why_not = self.why_no_transport().or_else(|| self.why_not_on_hosts(&name));
                finding(&["transport", &name], why_not)
            })
            .collect();
        findings.extend(self.unmarked_dctcp());
        findings
    }

    /// DCTCP without marks is Reno under another name.
    fn unmarked_dctcp(&self) -> Option<Finding> {
        let is_unmarked = match self.runner {
            Runner::Sim => self.switching.ecn_threshold.is_none(),
            Runner::Lab => true,
            Runner::Calc => false,
        };
        if self.transport.congestion_control != CongestionControl::Dctcp || !is_unmarked || self.sends_no_segments() {
            return None;
        }
        let why = match self.runner {
            Runner::Lab => {
                "the lab's queues mark nothing, and DCTCP without marks is Reno; write `reno` or `cubic`, or run it in the \
                 simulator"
                    .to_owned()
            }
            _ => format!(
                "`dctcp` without marks is Reno; let switches mark by `ecn_threshold = \"{}\"` in `[switching]` (the DCTCP paper's \
                 choice for servers of this rate), or write `reno`",
                usual_threshold(self.server_rate())
            ),
        };
        Some(broken(&["transport", "congestion_control"], why))
    }

    fn server_rate(&self) -> BitsPerSec {
        let links = self.fabric.servers().filter_map(|server| self.fabric.edge_of(server));
        links.map(|(_, link)| self.fabric.link(link).spec.rate).max().unwrap_or(BitsPerSec(0))
    }

    /// True where no part of the workload goes by TCP.
    pub(super) fn sends_no_segments(&self) -> bool {
        match self.workload.1 {
            Workload::Services(spec) => !spec.sends_segments(),
            Workload::Frames(_) | Workload::Multicast(_) | Workload::Segments(_) => true,
            Workload::Model(_) | Workload::FlowLog(_) => true,
            _ => false,
        }
    }

    /// Why no setting of TCP has an effect.
    fn why_no_transport(&self) -> Option<String> {
        match self.runner {
            Runner::Calc => Some("the engine `calc` sends nothing".to_owned()),
            _ => self.sends_no_segments().then(|| format!("nothing of workload `{}` goes by TCP", self.workload.0)),
        }
    }

    fn why_not_on_hosts(&self, name: &str) -> Option<String> {
        match self.runner {
            Runner::Sim => self.why_not_in_simulated_hosts(name),
            Runner::Lab => self.why_not_in_kernels(name),
            Runner::Calc => None,
        }
    }

    fn why_not_in_simulated_hosts(&self, name: &str) -> Option<String> {
        let Transport { initial_window, window_cap_segments, sack, congestion_control, stack, .. } = self.transport;
        match name {
            "segments_per_skb" | "output_limit" => Some(match name {
                "output_limit" => {
                    "only the lab's kernels have it; the simulator's is `host_queue` of `[switching]`".to_owned()
                }
                _ => "only the lab's kernels put segments together".to_owned(),
            }),
            "initial_window" => window_cap_segments
                .filter(|cap| cap < initial_window)
                .map(|cap| format!("`window_cap_segments` lets only {cap} out")),
            "stack" if !sack && *stack == TcpStack::Linux2_6_26 => {
                // HyStart is CUBIC's.
                let differs = *congestion_control == CongestionControl::Cubic;
                (!differs).then(|| "without `sack` both stacks recover as RFC 6582 says".to_owned())
            }
            _ => None,
        }
    }

    fn why_not_in_kernels(&self, name: &str) -> Option<String> {
        match name {
            "stack" | "window_cap_segments" | "rto_initial" | "segments_per_ack" | "sack" => {
                Some("only the simulator's TCP has it; a kernel decides for itself".to_owned())
            }
            "initial_window" | "rto_min" if self.overlay.takes_frames() => Some(format!(
                "in the lab it belongs to routes, which servers of the overlay `{}` have none of",
                self.overlay
            )),
            _ => None,
        }
    }
}
