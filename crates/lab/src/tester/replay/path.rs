//! One path that frames are replayed over: a port that sends, a port that knows them again, and trials between them.

use std::collections::BTreeMap;
use std::time::Duration;

use weft_datapath::DatapathError;
use weft_datapath::trill::XdpMode;
use weft_testbed::tester::{FRAME_BYTES_MAX, Recogniser, Replayer, SendOrder, Sent, digest};

use super::account::{ReplayAccount, sent_by_digest};
use super::frames::Recorded;
use crate::error::LabError;
use crate::tester::error::TesterError;
use crate::tester::packet::PacketSender;
use crate::tester::path::{
    Means, TRIAL_FRAMES, TrialOrder, check, in_use, last_cpu, rate, settle, socket_of, wait_for_carrier,
};
use crate::tester::port::Port;
use crate::tester::rate::FCS_BYTES;

/// What one trial found.
#[derive(Clone, Debug)]
pub struct ReplayTrial {
    /// Rate that was sent, frames per second.
    pub offered_pps: f64,
    /// Rate at which frames came in, between the first and the last one; 0 of none.
    pub received_pps: f64,
    /// Their bits, with FCS, a second.
    pub received_bps: f64,
    pub account: ReplayAccount,
    /// Times that the sender was held up and began a new schedule.
    pub slips: u64,
    /// Of the lost frames those that the sending port itself dropped (never on veth).
    pub send_drops: u64,
}

enum Sender {
    Live(Box<Replayer>),
    Socket(PacketSender),
}

/// Ports with programs on them. They are as they were when this is dropped.
pub struct ReplayPath {
    sending: Port,
    frames: Recorded,
    digests: Vec<u64>,
    sender: Sender,
    receiver: Recogniser,
    mode: XdpMode,
    cpu: usize,
}

impl std::fmt::Debug for ReplayPath {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "ReplayPath({}, {} frames)", self.sending.name(), self.frames.count())
    }
}

impl ReplayPath {
    /// Takes the ports. Which way frames leave is tried out with frames of our own, so that those of the file are sent in trials only.
    ///
    /// # Errors
    /// [`TesterError::Refused`] for ports that cannot be; or any other.
    pub fn open(sending: &Port, receiving: &Port, frames: Recorded) -> Result<Self, TesterError> {
        check(sending, std::slice::from_ref(receiving))?;
        let digests = frames.digests();
        let known: BTreeMap<u64, u64> = sent_by_digest(&digests, 0);
        let known = known.into_keys().chain([digest(&trial_frame())]).collect();
        let mut receiver = Recogniser::load(known)?;
        let mode = receiving.inside(|| receiver.attach(receiving.interface()))?;
        let mode = mode.map_err(|error| in_use(receiving, error))?;
        wait_for_carrier(sending, std::slice::from_ref(receiving))?;
        let cpu = last_cpu()?;
        let is_live = frames.longest_bytes() <= FRAME_BYTES_MAX && live_frames_leave(sending, &receiver, cpu)?;
        let sender = if is_live {
            Sender::Live(Box::new(sending.inside(|| Replayer::load(sending.interface(), &frames.0))??))
        } else {
            Sender::Socket(socket_of(sending)?)
        };
        Ok(Self { sending: sending.clone(), frames, digests, sender, receiver, mode, cpu })
    }

    /// How frames leave.
    pub fn means(&self) -> Means {
        match self.sender {
            Sender::Live(_) => Means::XdpLiveFrames,
            Sender::Socket(_) => Means::PacketSocket,
        }
    }

    /// Sends by packet socket from now on.
    ///
    /// # Errors
    /// [`TesterError::Lab`].
    pub fn use_socket(&mut self) -> Result<(), TesterError> {
        self.sender = Sender::Socket(socket_of(&self.sending)?);
        Ok(())
    }

    /// Where frames are counted: in the driver, or in the stack.
    pub fn counts_in_driver(&self) -> bool {
        self.mode == XdpMode::Native
    }

    /// The core that sends.
    pub fn cpu(&self) -> usize {
        self.cpu
    }

    /// What is sent.
    pub fn frames(&self) -> &Recorded {
        &self.frames
    }

    /// Sends from the first frame on, and counts.
    ///
    /// # Errors
    /// [`TesterError::Interrupted`] if `stop` says so, or any other.
    pub fn trial(&mut self, order: &TrialOrder, stop: &(dyn Fn() -> bool + Sync)) -> Result<ReplayTrial, TesterError> {
        self.receiver.begin()?;
        let order = order.to_send(0, self.cpu);
        let (sent, send_drops) = self.sending.sends(stop, |stop| self.send(&order, stop))?;
        settle(sent.frames.saturating_sub(send_drops), || Ok(self.receiver.port()?.frames))?;
        self.result(&sent, send_drops)
    }

    fn result(&self, sent: &Sent, send_drops: u64) -> Result<ReplayTrial, TesterError> {
        let port = self.receiver.port()?;
        let by_digest = sent_by_digest(&self.digests, sent.frames);
        // In the order of the digests; behind them is the frame that tried the port out.
        let each = by_digest.into_values().zip(self.receiver.received()?);
        let received_pps = rate(port.frames, port.last_ns.saturating_sub(port.first_ns));
        let mean_bytes =
            if port.frames == 0 { 0.0 } else { port.bytes as f64 / port.frames as f64 + f64::from(FCS_BYTES) };
        Ok(ReplayTrial {
            offered_pps: rate(sent.frames.saturating_sub(send_drops), sent.span_ns),
            received_pps,
            received_bps: received_pps * mean_bytes * 8.0,
            account: ReplayAccount::new(each, port.foreign),
            slips: sent.slips,
            send_drops,
        })
    }

    fn send(&self, order: &SendOrder, stop: &(dyn Fn() -> bool + Sync)) -> Result<Sent, TesterError> {
        match &self.sender {
            Sender::Live(replayer) => Ok(self.sending.inside(|| replayer.send(order, stop))??),
            Sender::Socket(socket) => Ok(socket
                .send_trial(&self.frames.0, order, stop)
                .map_err(LabError::io(format!("send from port `{}`", self.sending.name())))?),
        }
    }
}

/// A frame of our own: from and to addresses that nobody has, of the type for local experiments (IEEE 802).
fn trial_frame() -> Vec<u8> {
    let mut frame = [[0x02, 0x57, 0x54, 0xff, 0xff, 1], [0x02, 0x57, 0x54, 0xff, 0xff, 2]].concat();
    frame.extend([0x88, 0xb5]);
    frame.resize(60, 0x57);
    frame
}

/// Whether live frames arrive, or at least leave.
fn live_frames_leave(sending: &Port, receiver: &Recogniser, cpu: usize) -> Result<bool, TesterError> {
    let before = sending.traffic()?;
    let order = TrialOrder { frames: Some(TRIAL_FRAMES), ..TrialOrder::unpaced(Duration::from_secs(1)) };
    let sent = sending.inside(|| {
        let replayer = Replayer::load(sending.interface(), &[trial_frame()])?;
        replayer.send(&order.to_send(0, cpu), &|| false)
    })?;
    match sent {
        Ok(_) => {}
        // A kernel or a driver without them.
        Err(DatapathError::Program { .. }) => return Ok(false),
        Err(error) => return Err(error.into()),
    }
    settle(TRIAL_FRAMES, || Ok(receiver.port()?.frames))?;
    let left = sending.traffic()?.sent_frames - before.sent_frames;
    Ok(receiver.port()?.frames > 0 || left >= TRIAL_FRAMES)
}
