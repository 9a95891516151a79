//! Frames of a capture file, sent as they are at a rate: what arrives, what is lost, what comes twice. They have no room for a probe, so
//! nothing is said of latency and order; a receiver knows them by a digest of their bytes.
//!
//! | module | what it is for | IO |
//! | --- | --- | --- |
//! | `frames` | a file's frames, and which of them can be sent | yes |
//! | `path` | ports, sender and receiver: one trial | yes |
//! | `account` | what became of every frame | no |

mod account;
mod frames;
mod path;

use std::path::PathBuf;
use std::time::Duration;

use serde::Serialize;
use weft_scenario::engine::Progress;

use super::error::TesterError;
use super::measure::check_trials;
use super::path::{Means, TrialOrder};
use super::port::Port;

pub use account::ReplayAccount;
pub use frames::Recorded;
pub use path::{ReplayPath, ReplayTrial};

/// Longest trial of a number of rounds.
const ROUNDS_TIME: Duration = Duration::from_secs(3600);

/// What is replayed, and where.
#[derive(Clone, Debug)]
pub struct ReplayOptions {
    /// The sending port: `IF` or `NAMESPACE:IF`.
    pub sending: String,
    pub receiving: String,
    /// A pcap or pcapng file.
    pub file: PathBuf,
    /// Frames per second, a trial for each; none: as fast as possible.
    pub rates_pps: Vec<f64>,
    /// Length of a trial.
    pub trial: Duration,
    /// Send the file so many times in a trial, however long that takes.
    pub rounds: Option<u64>,
}

/// One trial.
#[derive(Clone, Debug, Serialize)]
pub struct ReplayRow {
    /// What was asked for, frames per second; `None`: as fast as possible.
    pub asked_pps: Option<f64>,
    /// What was sent.
    pub offered_pps: f64,
    /// What arrived.
    pub received_pps: f64,
    /// What arrived, bits per second with FCS.
    pub layer2_bps: f64,
    /// What was lost, 0 to 1.
    pub loss_ratio: f64,
    /// All frames.
    pub account: ReplayAccount,
    /// Times that the sender was held up.
    pub slips: u64,
    /// Of the lost frames those that the sending port itself dropped (never on veth).
    pub send_drops: u64,
}

/// Rows, and what is the same for all of them.
#[derive(Clone, Debug, Serialize)]
pub struct ReplayReport {
    /// Version of this form.
    pub schema_version: u32,
    /// The sending port.
    pub tx: String,
    /// The receiving port.
    pub rx: String,
    /// The file.
    pub file: PathBuf,
    /// Frames in it.
    pub frames: usize,
    /// Their mean length with FCS, bytes.
    pub frame_bytes: f64,
    /// How frames leave.
    pub means: Means,
    /// Frames are counted in the driver; otherwise in the stack.
    pub counted_in_driver: bool,
    /// Core that sends.
    pub cpu: usize,
    /// A trial for each rate.
    pub rows: Vec<ReplayRow>,
}

/// Sends a file's frames at each rate.
///
/// # Errors
/// Any [`TesterError`]; the ports are as they were.
pub fn replay(options: &ReplayOptions, progress: &dyn Progress) -> Result<ReplayReport, TesterError> {
    let ReplayOptions { sending, receiving, file, rates_pps, trial, rounds } = options;
    check_trials(rates_pps, *trial)?;
    progress.phase("ports", &format!("{sending} to {receiving}"));
    let (tx, rx) = (Port::open(sending)?, Port::open(receiving)?);
    let frames = Recorded::open(file, tx.mtu().min(rx.mtu())).map_err(TesterError::Refused)?;
    let mut path = ReplayPath::open(&tx, &rx, frames)?;
    let limit = rounds.map(|rounds| rounds.saturating_mul(path.frames().count() as u64));
    let duration = if limit.is_some() { ROUNDS_TIME } else { *trial };
    let rates: Vec<_> = if rates_pps.is_empty() { vec![None] } else { rates_pps.iter().copied().map(Some).collect() };
    let mut rows = Vec::new();
    for (place, pps) in rates.iter().enumerate() {
        progress.phase("replay", &pps.map_or("unpaced".to_owned(), |pps| format!("{pps:.0} frames/s")));
        let order = TrialOrder { pps: *pps, frames: limit, ..TrialOrder::unpaced(duration) };
        rows.push(row(*pps, path.trial(&order, &|| progress.interrupted())?));
        progress.advance((place + 1) as f64 / rates.len() as f64, "");
    }
    Ok(ReplayReport {
        schema_version: 1,
        tx: sending.clone(),
        rx: receiving.clone(),
        file: file.clone(),
        frames: path.frames().count(),
        frame_bytes: path.frames().mean_bytes(),
        means: path.means(),
        counted_in_driver: path.counts_in_driver(),
        cpu: path.cpu(),
        rows,
    })
}

fn row(asked_pps: Option<f64>, trial: ReplayTrial) -> ReplayRow {
    ReplayRow {
        asked_pps,
        offered_pps: trial.offered_pps,
        received_pps: trial.received_pps,
        layer2_bps: trial.received_bps,
        loss_ratio: trial.account.loss_ratio(),
        account: trial.account,
        slips: trial.slips,
        send_drops: trial.send_drops,
    }
}
