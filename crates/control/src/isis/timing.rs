//! The protocol's timers. A timer is one line of the table in [`isis_timers`](crate::isis_timers): from it come the field of [`Timing`] with
//! its usual value, and the key of a daemon's settings with its range.

use crate::NS_PER_S;

/// Hands the table of all timers to a macro: their description, the key of the settings, the field of
/// [`Timing`](crate::isis::Timing), how much of the field's unit one of the key's is, the usual value and the range in the key's unit.
#[macro_export]
macro_rules! isis_timers {
    ($to:ident) => {
        $to! {
            /// Between Hellos; each is sent up to a quarter earlier. 10 s is what products use.
            hello_ms => hello_ns: $crate::NS_PER_MS, 10_000, 10..=300_000;
            /// Hellos that may be lost before a silent neighbour is: its holding time is so many intervals, in whole seconds.
            holding_multiplier => holding_multiplier: 1, 3, 2..=100;
            /// Between BFD Echoes to each neighbour (RFC 7175 section 4); by default, 0, none are sent.
            echo_ms => echo_ns: $crate::NS_PER_MS, 0, 10..=300_000;
            /// Echoes in a row that a neighbour does not return, while it says no Hello either, until it counts as gone; together
            /// longer than the time between Hellos.
            echo_multiplier => echoes_missed: 1, 3, 2..=100;
            /// Between a change and the LSP that tells it: short, for it delays every convergence.
            lsp_delay_ms => lsp_delay_ns: $crate::NS_PER_MS, 20, 0..=3_600_000;
            /// Between two versions of own LSPs, so that a flapping link does not flood the campus; the first few losses in a row do not wait.
            lsp_interval_ms => lsp_interval_ns: $crate::NS_PER_MS, 1000, 0..=3_600_000;
            /// Age at which own LSPs are issued anew, up to a quarter earlier (ISO 10589: 900 s); less than their lifetime.
            refresh_s => refresh_ns: $crate::NS_PER_S, 900, 1..=1199;
            /// Between sending an LSP and sending it again, when nothing acknowledged it (ISO 10589: 5 s).
            resend_ms => resend_ns: $crate::NS_PER_MS, 5000, 1..=3_600_000;
            /// Between receiving an LSP and acknowledging it together with others (ISO 10589: 2 s).
            psnp_ms => psnp_ns: $crate::NS_PER_MS, 2000, 0..=3_600_000;
            /// Between lists of all LSPs on a shared link (ISO 10589: 10 s): what is lost there is asked for after so long at most.
            csnp_ms => csnp_ns: $crate::NS_PER_MS, 10_000, 10..=3_600_000;
            /// How long nobody forwards for end stations of a shared link after its bridges have another root (RFC 8139: 30 s).
            root_change_s => root_change_ns: $crate::NS_PER_S, 30, 0..=30;
            /// Between a change of the campus and the new routes; the loss of an own neighbour does not wait.
            spf_delay_ms => spf_delay_ns: $crate::NS_PER_MS, 50, 0..=3_600_000;
            /// Between two computations while changes do not end; the first few follow each other faster.
            spf_interval_ms => spf_interval_ns: $crate::NS_PER_MS, 500, 0..=3_600_000;
            /// How long a nickname that was not configured waits for a neighbour's LSPs at most.
            nickname_wait_ms => nickname_wait_ns: $crate::NS_PER_MS, 5000, 0..=3_600_000;
            /// The same after a neighbour's list of LSPs has come.
            nickname_settle_ms => nickname_settle_ns: $crate::NS_PER_MS, 1000, 0..=3_600_000;
            /// Between MTU-probes.
            mtu_probe_ms => mtu_probe_ns: $crate::NS_PER_MS, 1000, 100..=3_600_000;
            /// How long the overload bit stays after an LSP found no room (ISO 10589: 60 s).
            overload_s => overload_ns: $crate::NS_PER_S, 60, 1..=3600;
        }
    };
}

macro_rules! timing {
    ($($(#[$doc:meta])* $key:ident => $field:ident: $unit:expr, $usual:literal, $range:expr;)*) => {
        /// When things happen.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct Timing {
            $($(#[$doc])* pub $field: u64,)*
        }

        impl Default for Timing {
            fn default() -> Self {
                Self { $($field: $usual * $unit,)* }
            }
        }
    };
}

isis_timers!(timing);

impl Timing {
    /// How long a neighbour may believe a Hello, seconds.
    pub fn holding_s(&self) -> u16 {
        u16::try_from((self.hello_ns * self.holding_multiplier).div_ceil(NS_PER_S)).unwrap_or(u16::MAX)
    }

    /// Whether Echoes and Hellos go together; else why not.
    ///
    /// # Errors
    /// So many Echoes that they outlast a Hello.
    pub fn check(&self) -> Result<(), String> {
        let echoes_ns = self.echo_ns * self.echoes_missed;
        if self.echo_ns == 0 || echoes_ns > self.hello_ns {
            return Ok(());
        }
        let (echoes_ms, hello_ms) = (echoes_ns / crate::NS_PER_MS, self.hello_ns / crate::NS_PER_MS);
        let missed = self.echoes_missed;
        Err(format!("{missed} Echoes take {echoes_ms} ms, and Hellos come every {hello_ms} ms; send Hellos faster"))
    }
}
