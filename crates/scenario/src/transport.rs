//! TCP and host settings. The lab sets them in real kernels, the simulator in its own TCP.

use serde::{Deserialize, Serialize};

use crate::units::{Bytes, Nanos};

/// TCP and host settings. Some only one engine can follow, and each says so; where nothing follows one, it is refused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Transport {
    /// Whose habits the simulator's TCP has where nothing here says otherwise. Simulator only.
    pub stack: TcpStack,
    /// `cubic`, `reno` or `dctcp`; never the system's default.
    pub congestion_control: CongestionControl,
    /// Initial window in segments, at least 1.
    pub initial_window: u32,
    /// Largest window in segments, as a receiver's window would bound it, at least 1; `None`: no bound. Simulator only.
    pub window_cap_segments: Option<u32>,
    /// Smallest retransmission timeout.
    pub rto_min: Nanos,
    /// Retransmission timeout before the first round-trip time is known (RFC 6298 2.1: 1 s), not below `rto_min`.
    /// Simulator only.
    pub rto_initial: Nanos,
    /// Full-size segments that one acknowledgement may cover, 1 or 2 (RFC 5681 4.2). Simulator only: a kernel decides
    /// for itself.
    pub segments_per_ack: u32,
    /// Selective acknowledgements (RFC 2018). Simulator only: in the lab they are always on.
    pub sack: bool,
    /// TCP timestamps option.
    pub timestamps: bool,
    /// Largest number of segments that travel as one buffer through the lab's hosts (`gso_max_segs`); 1: none merged.
    /// Lab only.
    pub segments_per_skb: u32,
    /// Bytes a flow may have queued below TCP in the lab (`tcp_limit_output_bytes`); `None`: the kernel's default.
    /// Lab only; see [`crate::switching::HostQueue`] for the simulator.
    pub output_limit: Option<Bytes>,
}

impl Default for Transport {
    fn default() -> Self {
        Self {
            stack: TcpStack::Current,
            congestion_control: CongestionControl::default(),
            initial_window: 10,
            window_cap_segments: None,
            rto_min: Nanos(200_000_000),
            rto_initial: Nanos(1_000_000_000),
            segments_per_ack: 2,
            sack: true,
            timestamps: true,
            segments_per_skb: 0,
            output_limit: None,
        }
    }
}

/// A TCP implementation, for habits that have no option: how losses are found and what is done about the last ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub enum TcpStack {
    /// `current`: a Linux kernel of today, with RACK and tail loss probes (RFC 8985).
    #[default]
    #[serde(rename = "current")]
    Current,
    /// `linux-2.6.26`: the leaf-spine paper's, which counts duplicates (RFC 6675) and does not probe.
    #[serde(rename = "linux-2.6.26")]
    Linux2_6_26,
}

/// A TCP congestion control.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum CongestionControl {
    /// RFC 9438.
    #[default]
    Cubic,
    /// RFC 5681.
    Reno,
    /// RFC 8257; needs switches that mark ([`crate::switching::Switching::ecn_threshold`]).
    Dctcp,
}

impl CongestionControl {
    /// The kernel's name for it.
    pub fn kernel_name(self) -> &'static str {
        match self {
            Self::Cubic => "cubic",
            Self::Reno => "reno",
            Self::Dctcp => "dctcp",
        }
    }
}

/// Why TCP settings are refused; names the setting.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{setting}` of the transport is {value}: {reason}")]
pub struct TransportError {
    pub setting: &'static str,
    pub value: String,
    /// Why it cannot be.
    pub reason: &'static str,
}

/// Longest timeout that makes sense: RFC 6298 2.5 lets the largest be 60 s or more, Linux has 120 s.
const TIMEOUT_MAX: Nanos = Nanos(120_000_000_000);

impl Transport {
    /// Whether the settings make sense, for every engine; says which does not.
    pub fn check(&self) -> Result<(), TransportError> {
        let refuse = |setting, value: String, reason| Err(TransportError { setting, value, reason });
        if self.initial_window == 0 {
            return refuse("initial_window", "0".to_owned(), "nothing could be sent; 10 segments are usual");
        }
        if self.window_cap_segments == Some(0) {
            return refuse("window_cap_segments", "0".to_owned(), "nothing could be sent; leave it out for no bound");
        }
        if !(1..=2).contains(&self.segments_per_ack) {
            return refuse("segments_per_ack", self.segments_per_ack.to_string(), "choose 1 or 2");
        }
        if !(Nanos(1)..=TIMEOUT_MAX).contains(&self.rto_min) {
            return refuse("rto_min", self.rto_min.to_string(), "choose up to 120 s; Linux has 200 ms");
        }
        if !(self.rto_min..=TIMEOUT_MAX).contains(&self.rto_initial) {
            return refuse("rto_initial", self.rto_initial.to_string(), "choose from `rto_min` up to 120 s");
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_make_sense() {
        assert_eq!(Transport::default().check(), Ok(()));
    }

    #[test]
    fn senseless_settings_are_refused_by_name() {
        let good = Transport::default();
        for (transport, message) in [
            (Transport { initial_window: 0, ..good.clone() }, "`initial_window` of the transport is 0"),
            (Transport { window_cap_segments: Some(0), ..good.clone() }, "`window_cap_segments` of the transport is 0"),
            (Transport { segments_per_ack: 3, ..good.clone() }, "`segments_per_ack` of the transport is 3"),
            (Transport { segments_per_ack: 0, ..good.clone() }, "choose 1 or 2"),
            (Transport { rto_min: Nanos(0), ..good.clone() }, "`rto_min` of the transport is 0 ns"),
            (Transport { rto_min: Nanos(u64::MAX), ..good.clone() }, "`rto_min` of the transport is"),
            (Transport { rto_initial: Nanos(199_999_999), ..good.clone() }, "choose from `rto_min` up to 120 s"),
        ] {
            let error = transport.check().unwrap_err().to_string();
            assert!(error.contains(message), "wanted `{message}`, got `{error}`");
        }
    }

    #[test]
    fn plans_name_the_congestion_control_as_the_kernel_does() {
        for control in [CongestionControl::Cubic, CongestionControl::Reno, CongestionControl::Dctcp] {
            let text = format!("congestion_control = \"{}\"", control.kernel_name());
            assert_eq!(toml::from_str::<Transport>(&text).unwrap().congestion_control, control);
        }
        assert!(toml::from_str::<Transport>("rto = \"1 s\"").is_err());
    }
}
