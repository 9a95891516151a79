//! One path under measurement: a port that sends, ports that receive, and trials between them.

use std::time::{Duration, Instant};

use serde::Serialize;
use weft_datapath::DatapathError;
use weft_datapath::trill::XdpMode;
use weft_testbed::tester::{
    Analyser, FRAME_BYTES_MAX, Frames, Generator, Length, PortReading, SendOrder, Sent, StreamReading,
};

use super::account::{Account, PortCounts, StreamCounts, StreamResult, account, expected, total};
use super::error::TesterError;
use super::latency::{Exact, Latencies};
use super::packet::{PacketSender, Probed};
use super::port::Port;
use super::rate::FrameSize;
use super::search::Outcome;
use super::sizes::Sizes;
use super::stream::{Cast, Headers, Stream, StreamPlan};
use crate::error::LabError;
use crate::sys;

/// Later than this a paced generator begins a new schedule: a burst to catch up would measure the burst.
const SLIP_NS: u64 = 20_000;
/// Frames a second up to which waiting is done inside the program.
const SPIN_PPS: f64 = 10_000.0;
/// How long the last frames may be under way; RFC 2544 waits two seconds, which only matters if frames are missing.
const SETTLE: Duration = Duration::from_millis(250);
/// How long a port may take to come back.
const CARRIER: Duration = Duration::from_secs(10);
const SETTLE_STEP: Duration = Duration::from_millis(2);
/// Frames that show whether live frames leave a port.
pub(super) const TRIAL_FRAMES: u64 = 16;
/// The payload is checked in one frame of so many when the rate is what counts; otherwise in every one.
const SAMPLED_PAYLOAD: u32 = 15;

/// How frames leave the sending port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Means {
    /// The kernel sends pages straight to the driver (`BPF_PROG_RUN` with live frames): no allocation for each frame.
    XdpLiveFrames,
    /// A packet socket past the queueing discipline: an allocation and a copy for each frame.
    PacketSocket,
}

/// What one trial sends.
#[derive(Clone, Copy, Debug)]
pub struct TrialOrder {
    /// Frames a second over all streams; `None`: as fast as possible.
    pub pps: Option<f64>,
    /// How long.
    pub duration: Duration,
    /// Most frames; `None`: as many as the time allows.
    pub frames: Option<u64>,
    /// Look at every frame's payload, not at one of 16.
    pub every_payload: bool,
    /// Frames in one go; `None`: as few as the rate allows.
    pub batch: Option<u32>,
}

impl TrialOrder {
    /// As fast as possible.
    pub fn unpaced(duration: Duration) -> Self {
        Self { pps: None, duration, frames: None, every_payload: false, batch: None }
    }

    /// At a rate, frames per second.
    pub fn paced(pps: f64, duration: Duration) -> Self {
        Self { pps: Some(pps), ..Self::unpaced(duration) }
    }

    /// As the generator is told it.
    pub(crate) fn to_send(self, seed: u8, cpu: usize) -> SendOrder {
        let paced = self.pps.filter(|pps| *pps > 0.0);
        SendOrder {
            interval_ns: paced.map_or(0.0, |pps| 1e9 / pps),
            duration_ns: u64::try_from(self.duration.as_nanos()).unwrap_or(u64::MAX),
            limit: self.frames.unwrap_or(u64::MAX),
            batch: self.batch.unwrap_or_else(|| batch_for(paced)),
            spin: paced.is_some_and(|pps| pps < SPIN_PPS),
            slip_ns: SLIP_NS,
            seed,
            cpu,
        }
    }

    /// The same, with every payload looked at.
    #[must_use]
    pub fn checking_payloads(self) -> Self {
        Self { every_payload: true, ..self }
    }
}

/// What one trial found.
#[derive(Clone, Debug)]
pub struct Trial {
    /// Rate that was asked for, frames per second; `None`: as fast as possible.
    pub asked_pps: Option<f64>,
    /// Rate that was sent, frames per second.
    pub offered_pps: f64,
    /// Rate at which frames came in at the first receiving port, between its first and its last one; 0 if none did.
    pub received_pps: f64,
    /// What became of the frames.
    pub account: Account,
    /// The same for each stream.
    pub streams: Vec<StreamResult>,
    /// One-way latency at all receiving ports.
    pub latency: Latencies,
    /// Times between frames at the sender; `None` when unpaced.
    pub gaps: Option<Latencies>,
    /// Times that the generator was held up and began a new schedule.
    pub slips: u64,
    /// Frames that the sending port itself dropped, which were therefore never offered (never on veth).
    pub send_drops: u64,
    /// CPU time of the sending core for the whole path as far as it runs there, nanoseconds.
    pub cpu_ns: u64,
    /// Frames that the kernel sent in one go.
    pub batch: u32,
}

impl Trial {
    /// For a search. The first `asked_pps` of an unpaced trial is what it offered.
    pub fn outcome(&self) -> Outcome {
        Outcome {
            asked_pps: self.asked_pps.unwrap_or(self.offered_pps),
            offered_pps: self.offered_pps,
            expected: self.account.expected,
            lost: self.account.lost,
        }
    }

    /// CPU nanoseconds per frame that arrived; `None` of none.
    pub fn cpu_ns_per_frame(&self) -> Option<f64> {
        let arrived = self.account.counts.received;
        (arrived > 0).then(|| self.cpu_ns as f64 / arrived as f64)
    }
}

enum Sender {
    Live(Box<Generator>),
    Socket(PacketSender),
}

/// Stations behind the receiving ports.
pub struct Stations(Vec<BehindPort>);

struct BehindPort {
    socket: PacketSender,
    frames: Vec<Vec<u8>>,
}

impl Stations {
    /// One frame from each, with a pause after it: links drop what is too much for them.
    ///
    /// # Errors
    /// [`TesterError::Lab`].
    pub fn speak(&self, pause: Duration) -> Result<(), TesterError> {
        // A full queue drops what hosts say now and then.
        let say = |socket: &PacketSender, frame: &Vec<u8>| {
            let _dropped = socket.send(frame)?;
            if !pause.is_zero() {
                std::thread::sleep(pause);
            }
            Ok(())
        };
        let send = |port: &BehindPort| port.frames.iter().try_for_each(|frame| say(&port.socket, frame));
        Ok(self.0.iter().try_for_each(send).map_err(LabError::io("send from a receiving port"))?)
    }
}

/// Ports with programs on them. They are as they were when this is dropped.
pub struct Path {
    sending: Port,
    receiving: Vec<Port>,
    streams: Vec<Stream>,
    headers: Headers,
    sizes: Sizes,
    lengths: Vec<FrameSize>,
    frames: Frames,
    sender: Sender,
    analysers: Vec<Analyser>,
    modes: Vec<XdpMode>,
    cpu: usize,
    trial: u32,
}

impl std::fmt::Debug for Path {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "Path({} to {})", self.sending.name(), self.receiving[0].name())
    }
}

impl Path {
    /// Takes the ports: analysers onto the receiving ones, the fastest generator that works for the sending one, and
    /// one frame from every receiving station, so that bridges know where it is.
    ///
    /// # Errors
    /// [`TesterError::Refused`] for ports, sizes and streams that cannot be; or any other.
    pub fn open(
        sending: &Port,
        receiving: &[Port],
        plan: &StreamPlan,
        sizes: impl Into<Sizes>,
    ) -> Result<Self, TesterError> {
        let sizes = sizes.into();
        check(sending, receiving)?;
        let lengths = lengths(sending, receiving, plan.headers(), &sizes)?;
        let streams = plan.streams().map_err(TesterError::Refused)?;
        let frames = frames_of(&streams, &lengths, &sizes);
        let mut analysers = Vec::new();
        let mut modes = Vec::new();
        for (place, port) in receiving.iter().enumerate() {
            let mut analyser = Analyser::load(&stations(&streams, place, receiving.len()))?;
            modes.push(port.inside(|| analyser.attach(port.interface()))?.map_err(|error| in_use(port, error))?);
            analysers.push(analyser);
        }
        wait_for_carrier(sending, receiving)?;
        let sender = live(sending, &frames)?;
        let mut path = Self {
            sending: sending.clone(),
            receiving: receiving.to_vec(),
            streams,
            headers: plan.headers(),
            sizes,
            lengths,
            frames,
            sender,
            analysers,
            modes,
            cpu: last_cpu()?,
            trial: 0,
        };
        path.teach(Duration::ZERO)?;
        path.choose_sender()?;
        Ok(path)
    }

    /// How frames leave.
    pub fn means(&self) -> Means {
        match self.sender {
            Sender::Live(_) => Means::XdpLiveFrames,
            Sender::Socket(_) => Means::PacketSocket,
        }
    }

    /// Sends by other means from now on, those of another path that this one is compared with.
    ///
    /// # Errors
    /// Any [`TesterError`].
    pub fn set_means(&mut self, means: Means) -> Result<(), TesterError> {
        if means != self.means() {
            self.sender = match means {
                Means::XdpLiveFrames => live(&self.sending, &self.frames)?,
                Means::PacketSocket => self.socket()?,
            };
        }
        Ok(())
    }

    /// The ports as the user wrote them: `A to B, C`.
    pub fn ports_text(&self) -> String {
        let receiving: Vec<&str> = self.receiving.iter().map(Port::name).collect();
        format!("`{}` to `{}`", self.sending.name(), receiving.join("`, `"))
    }

    /// Where frames are counted: in the driver at every port, or in the stack at some.
    pub fn counts_in_driver(&self) -> bool {
        self.modes.iter().all(|mode| *mode == XdpMode::Native)
    }

    /// The core that sends.
    pub fn cpu(&self) -> usize {
        self.cpu
    }

    /// The sizes of frames.
    pub fn sizes(&self) -> &Sizes {
        &self.sizes
    }

    /// Other frames for the same streams.
    ///
    /// # Errors
    /// [`TesterError::Refused`] for a size that does not fit.
    pub fn set_sizes(&mut self, sizes: impl Into<Sizes>) -> Result<(), TesterError> {
        let sizes = sizes.into();
        let lengths = lengths(&self.sending, &self.receiving, self.headers, &sizes)?;
        self.frames = frames_of(&self.streams, &lengths, &sizes);
        (self.sizes, self.lengths) = (sizes, lengths);
        let is_live = self.frames.longest_bytes() <= FRAME_BYTES_MAX;
        match &mut self.sender {
            Sender::Live(generator) if is_live && generator.takes(&self.frames) => {
                generator.set_frames(&self.frames)?
            }
            Sender::Live(_) if is_live => self.sender = live(&self.sending, &self.frames)?,
            Sender::Live(_) => self.sender = self.socket()?,
            Sender::Socket(_) => {}
        }
        Ok(())
    }

    /// Sends and counts.
    ///
    /// # Errors
    /// [`TesterError::Interrupted`] if `stop` says so, or any other.
    pub fn trial(&mut self, order: &TrialOrder, stop: &(dyn Fn() -> bool + Sync)) -> Result<Trial, TesterError> {
        self.trial += 1;
        let (trial, seed) = (self.trial, self.trial as u8);
        // Unpaced frames are many: looking at every payload would make the analyser the bottleneck.
        let mask = if order.every_payload { 0 } else { SAMPLED_PAYLOAD };
        for analyser in &self.analysers {
            analyser.begin(trial, seed, mask)?;
        }
        let send = order.to_send(seed, self.cpu);
        let (sent, send_drops) = self.sending.sends(stop, |stop| self.send(&send, stop))?;
        let frames = sent.frames.saturating_sub(send_drops);
        settle(expected(&self.streams, frames, self.analysers.len()), || self.arrived())?;
        self.result(order, &send, &sent, frames, send_drops)
    }

    fn result(
        &self,
        order: &TrialOrder,
        send: &SendOrder,
        sent: &Sent,
        frames: u64,
        send_drops: u64,
    ) -> Result<Trial, TesterError> {
        let readings = self.readings()?;
        let streams = account(&self.streams, frames, &self.counts()?);
        let ports: Vec<PortCounts> = readings.iter().map(port_counts_of).collect();
        let first = &readings[0].port;
        Ok(Trial {
            asked_pps: order.pps,
            offered_pps: rate(frames, sent.span_ns),
            received_pps: rate(first.frames, first.last_ns.saturating_sub(first.first_ns)),
            account: total(&streams, &ports),
            streams,
            latency: latencies_of(&readings),
            gaps: (!sent.gaps.is_empty()).then(|| Latencies::new(&sent.gaps, Exact::default())),
            slips: sent.slips,
            send_drops,
            cpu_ns: sent.cpu_ns,
            batch: send.batch,
        })
    }

    /// What each receiving port has counted of each stream in the last trial.
    pub(crate) fn counts(&self) -> Result<Vec<Vec<StreamCounts>>, DatapathError> {
        let of_port = |analyser: &Analyser| Ok(analyser.streams(self.trial)?.iter().map(counts_of).collect());
        self.analysers.iter().map(of_port).collect()
    }

    fn send(&self, order: &SendOrder, stop: &(dyn Fn() -> bool + Sync)) -> Result<Sent, TesterError> {
        match &self.sender {
            Sender::Live(generator) => Ok(self.sending.inside(|| generator.send(order, stop))??),
            Sender::Socket(socket) => Ok(socket
                .send_trial(&Probed::new(&self.frames, order.seed), order, stop)
                .map_err(LabError::io(format!("send from port `{}`", self.sending.name())))?),
        }
    }

    fn arrived(&self) -> Result<u64, TesterError> {
        Ok(self.readings()?.iter().map(|reading| reading.port.frames).sum())
    }

    fn readings(&self) -> Result<Vec<PortReading>, TesterError> {
        Ok(self.analysers.iter().map(Analyser::port).collect::<Result<_, _>>()?)
    }

    /// One frame from every receiving unicast station, with a pause after it.
    ///
    /// # Errors
    /// [`TesterError::Lab`].
    pub fn teach(&self, pause: Duration) -> Result<(), TesterError> {
        self.receiving_stations()?.speak(pause)
    }

    /// The receiving unicast stations, who may speak also while a trial runs.
    ///
    /// # Errors
    /// [`TesterError::Lab`].
    pub fn receiving_stations(&self) -> Result<Stations, TesterError> {
        let ports = self.receiving.len();
        let behind = |(place, port): (usize, &Port)| {
            let socket = socket_of(port)?;
            let streams = self.streams.iter().filter(|stream| comes_to(stream, place, ports));
            Ok(BehindPort { socket, frames: streams.map(|stream| self.word_of(stream)).collect() })
        };
        self.receiving.iter().enumerate().map(behind).collect::<Result<_, TesterError>>().map(Stations)
    }

    /// What the receiver of a stream says.
    fn word_of(&self, stream: &Stream) -> Vec<u8> {
        let mut frame = stream.reversed().head(self.lengths[0]);
        frame.resize(self.lengths[0].kernel_bytes() as usize, 0);
        frame
    }

    /// Live frames if they arrive, or at least leave; otherwise the packet socket.
    fn choose_sender(&mut self) -> Result<(), TesterError> {
        if self.frames.longest_bytes() > FRAME_BYTES_MAX {
            self.sender = self.socket()?;
            return Ok(());
        }
        let before = self.sending.traffic()?;
        let order = TrialOrder { frames: Some(TRIAL_FRAMES), ..TrialOrder::unpaced(Duration::from_secs(1)) };
        let arrived = match self.trial(&order, &|| false) {
            Ok(trial) => trial.account.counts.received,
            // A kernel or a driver without them.
            Err(TesterError::Datapath(DatapathError::Program { .. })) => 0,
            Err(error) => return Err(error),
        };
        let left = self.sending.traffic()?.sent_frames - before.sent_frames;
        if arrived == 0 && left < TRIAL_FRAMES {
            self.sender = self.socket()?;
        }
        Ok(())
    }

    fn socket(&self) -> Result<Sender, TesterError> {
        Ok(Sender::Socket(socket_of(&self.sending)?))
    }
}

/// A packet socket that sends out of a port.
pub(crate) fn socket_of(port: &Port) -> Result<PacketSender, TesterError> {
    let socket = port.inside(|| PacketSender::open(port.interface()))?;
    Ok(socket.map_err(LabError::io(format!("send from port `{}`", port.name())))?)
}

/// Waits until all frames are there, or no more come.
pub(super) fn settle(expected: u64, arrived: impl Fn() -> Result<u64, TesterError>) -> Result<(), TesterError> {
    let deadline = Instant::now() + SETTLE;
    let mut last = (u64::MAX, Instant::now());
    loop {
        let arrived = arrived()?;
        if last.0 != arrived {
            last = (arrived, Instant::now());
        }
        let still = last.1.elapsed() > SETTLE / 5;
        if arrived >= expected || still || Instant::now() >= deadline {
            return Ok(());
        }
        std::thread::sleep(SETTLE_STEP);
    }
}

/// Some drivers begin anew when a program is put onto their port.
pub(super) fn wait_for_carrier(sending: &Port, receiving: &[Port]) -> Result<(), TesterError> {
    let deadline = Instant::now() + CARRIER;
    for port in receiving.iter().chain([sending]).filter(|port| !port.is_veth()) {
        loop {
            match Port::open(port.name()) {
                Err(_) if Instant::now() < deadline => std::thread::sleep(Duration::from_millis(50)),
                found => break found.map(drop)?,
            }
        }
    }
    Ok(())
}

pub(super) fn check(sending: &Port, receiving: &[Port]) -> Result<(), TesterError> {
    let refused = |why: String| Err(TesterError::Refused(why));
    if receiving.is_empty() {
        return refused("there is no receiving port; give one with --rx".to_owned());
    }
    for (place, port) in receiving.iter().enumerate() {
        if port.is_same(sending) {
            return refused(format!("port `{}` cannot send to itself; give two different ports", port.name()));
        }
        if receiving[..place].iter().any(|other| other.is_same(port)) {
            return refused(format!("port `{}` is given twice", port.name()));
        }
    }
    Ok(())
}

fn lengths(sending: &Port, receiving: &[Port], headers: Headers, sizes: &Sizes) -> Result<Vec<FrameSize>, TesterError> {
    let mtu = receiving.iter().map(Port::mtu).fold(sending.mtu(), u32::min);
    sizes.lengths(mtu, headers).map_err(TesterError::Refused)
}

pub(super) fn in_use(port: &Port, error: DatapathError) -> TesterError {
    match error {
        DatapathError::Program { source, .. } => TesterError::Refused(format!(
            "port `{}` takes no analyser ({source}): another XDP program may be on it; see: ip link show {}",
            port.name(),
            port.interface()
        )),
        other => other.into(),
    }
}

/// Frames in one go: one where latency and even spacing count, more where single frames would not be fast enough.
fn batch_for(pps: Option<f64>) -> u32 {
    match pps {
        Some(pps) if pps <= 1_000_000.0 => 1,
        Some(pps) if pps <= 2_000_000.0 => 8,
        _ => 64,
    }
}

fn live(port: &Port, frames: &Frames) -> Result<Sender, TesterError> {
    Ok(Sender::Live(Box::new(port.inside(|| Generator::load(port.interface(), frames))??)))
}

fn frames_of(streams: &[Stream], lengths: &[FrameSize], sizes: &Sizes) -> Frames {
    let length = |size: &FrameSize| Length { frame_bytes: size.kernel_bytes() as usize, heads: heads(streams, *size) };
    Frames { lengths: lengths.iter().map(length).collect(), turns: sizes.turns() }
}

fn heads(streams: &[Stream], size: FrameSize) -> Vec<Vec<u8>> {
    streams.iter().map(|stream| stream.head(size)).collect()
}

/// The frames of streams at one size.
pub(crate) fn frames_of_size(streams: &[Stream], size: FrameSize) -> Frames {
    Frames::of_one_length(size.kernel_bytes() as usize, heads(streams, size))
}

/// What must come to the port at `place` of so many: unicast to one port only, groups to all.
fn stations(streams: &[Stream], place: usize, ports: usize) -> Vec<Option<([u8; 6], u16)>> {
    let wanted = |stream: &Stream| stream.cast != Cast::Unicast || comes_to(stream, place, ports);
    streams.iter().map(|stream| wanted(stream).then(|| stream.arrival())).collect()
}

/// Whether a unicast stream's station is behind the port at `place` of so many.
fn comes_to(stream: &Stream, place: usize, ports: usize) -> bool {
    stream.cast == Cast::Unicast && stream.receiver.place(ports) == place
}

/// Frames per second from the first to the last of `frames`.
pub(super) fn rate(frames: u64, span_ns: u64) -> f64 {
    if frames < 2 || span_ns == 0 { 0.0 } else { (frames - 1) as f64 * 1e9 / span_ns as f64 }
}

fn counts_of(reading: &StreamReading) -> StreamCounts {
    let StreamReading { received, misdelivered, corrupt, stale, reordered, duplicated, .. } = *reading;
    StreamCounts { received, misdelivered, corrupt, stale, reordered, duplicated }
}

fn port_counts_of(reading: &PortReading) -> PortCounts {
    PortCounts { damaged: reading.port.damaged, earlier: reading.port.earlier, unknown: reading.port.unknown }
}

fn latencies_of(readings: &[PortReading]) -> Latencies {
    let mut buckets = vec![0; readings[0].histogram.len()];
    let mut exact = Exact::default();
    for reading in readings {
        buckets.iter_mut().zip(&reading.histogram).for_each(|(sum, count)| *sum += count);
        exact.count += reading.port.frames;
        exact.sum_ns += reading.port.latency_sum_ns;
        exact.max_ns = exact.max_ns.max(reading.port.latency_max_ns);
        exact.jitter_sum_ns += reading.port.jitter_sum_ns;
        exact.jitter_count += reading.port.jitter_count;
    }
    Latencies::new(&buckets, exact)
}

/// The core that sends.
pub(crate) fn last_cpu() -> Result<usize, TesterError> {
    Ok(sys::last_core().map_err(LabError::io("find a core to send from"))?)
}
