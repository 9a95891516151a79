//! `weft lab capture`: frames of interfaces of a lab into one pcapng file that Wireshark and tshark read.
//!
//! Frames between RBridges come from the taps of their data paths; what they exchange with hosts is seen at the hosts.
//!
//! Frames larger than the MTU are what TCP segmentation offload hands to the interface, as with any capture on Linux.
//!
//! One thread takes from all sockets and writes. While a disk is slow frames wait in the sockets, whose room is bounded, and what
//! finds no room is counted.

mod drops;
mod filter;
mod ports;
mod socket;
mod source;
mod window;

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use weft_scenario::topology::{Fabric, LoadError, from_yaml};
use weft_wire::pcapng::{self, Direction, Interface, Packet, SNAP_BYTES, Statistics};

pub use filter::CaptureFilter;
pub use ports::CapturePorts;
pub(crate) use socket::{Frame, PacketSocket};

use crate::error::LabError;
use crate::state::LabState;
use drops::Drops;
use ports::{Port, peer_of};
use source::Sources;
use window::{Held, Window};

/// How long nothing may come until whoever reads along sees what there is.
const PATIENCE: Duration = Duration::from_millis(100);
/// How much later than its time a frame may come to its socket.
const LATE: Duration = Duration::from_millis(20);

/// What to capture, where to and how much.
#[derive(Clone, Debug)]
pub struct CaptureOptions {
    pub lab: String,
    /// At which ports; one that is named twice counts once.
    pub ports: Vec<CapturePorts>,
    /// File to write; `-`: standard output.
    pub file: PathBuf,
    /// Which frames to keep.
    pub filter: CaptureFilter,
    /// Stop after this many frames.
    pub packets: Option<u64>,
    /// Stop after this time.
    pub duration: Option<Duration>,
    /// Bytes of each frame to keep; `None`: all.
    pub snap_bytes: Option<u32>,
}

/// What a capture did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CaptureSummary {
    /// Ports that it looked at.
    pub ports: usize,
    /// Frames written.
    pub packets: u64,
    /// Frames that the kernel could not hand over in time.
    pub dropped: u64,
}

/// Captures until a limit is reached or `stop` says so. The file is whole in any case: it ends with what became of each port's
/// frames, and what the lab's data path and queues have dropped there meanwhile, by reason.
///
/// # Errors
/// [`LabError`]: no such lab, node or interface, or the file cannot be written.
pub fn capture(options: &CaptureOptions, stop: &dyn Fn() -> bool) -> Result<CaptureSummary, LabError> {
    capture_to(options, || open_output(&options.file), stop)
}

/// [`capture`] into something else than the file of `options`. It is opened when all sockets are.
///
/// # Errors
/// As of [`capture`].
pub fn capture_to(
    options: &CaptureOptions,
    open: impl FnOnce() -> io::Result<Box<dyn Write>>,
    stop: &dyn Fn() -> bool,
) -> Result<CaptureSummary, LabError> {
    let state = LabState::load(&options.lab)?;
    let bad = |error: LoadError| LabError::BadState { lab: state.lab.clone(), reason: error.to_string() };
    let fabric = from_yaml(&state.fabric_yaml, "fabric").map_err(bad)?;
    let ports = ports::find(&state, &fabric, &options.ports)?;
    let mut sources = Sources::open(&state, &fabric, &ports)?;
    let before = drops::now(&state, &fabric, &ports);
    let failed = || LabError::io(format!("write {}", options.file.display()));
    let output = open().map_err(failed())?;
    let interfaces: Vec<Interface> = ports.iter().map(|port| described(&fabric, port)).collect();
    let snap_bytes = options.snap_bytes.unwrap_or(SNAP_BYTES).min(SNAP_BYTES);
    let writer = match pcapng::Writer::of_all(output, &interfaces, snap_bytes) {
        Err(error) if is_gone(&error) => return Ok(CaptureSummary { ports: ports.len(), ..CaptureSummary::default() }),
        written => written.map_err(failed())?,
    };
    let mut copy = Copy { writer, options, snap_bytes, window: Window::default(), written: vec![0; ports.len()] };
    let copied = copy.all(&mut sources, stop);
    let now = || drops::now(&state, &fabric, &ports);
    copied.and_then(|()| copy.conclude(&sources, &before, now)).map_err(failed())
}

fn open_output(path: &Path) -> io::Result<Box<dyn Write>> {
    if path == Path::new("-") {
        return Ok(Box::new(io::stdout().lock()));
    }
    Ok(Box::new(BufWriter::new(File::create(path)?)))
}

/// What the file says of a port.
fn described(fabric: &Fabric, port: &Port) -> Interface {
    let end = |node, interface: &str| format!("{}:{interface}", fabric.node(node).name);
    Interface {
        name: end(port.node, &port.interface),
        description: peer_of(fabric, port).map_or_else(String::new, |(node, far)| format!("to {}", end(node, far))),
        speed_bps: port.link.map(|link| fabric.link(link).spec.rate.0),
    }
}

/// Whether whoever read along has gone away: Wireshark was closed, or `head` has enough.
fn is_gone(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::BrokenPipe
}

/// Frames on their way into the file.
struct Copy<'a> {
    writer: pcapng::Writer<Box<dyn Write>>,
    options: &'a CaptureOptions,
    snap_bytes: u32,
    window: Window,
    /// Frames of each port in the file.
    written: Vec<u64>,
}

impl Copy<'_> {
    /// Takes frames until it is told to stop, its time is over or it has enough.
    fn all(&mut self, sources: &mut Sources, stop: &dyn Fn() -> bool) -> io::Result<()> {
        match self.until_the_end(sources, stop) {
            Err(error) if is_gone(&error) => Ok(()),
            written => written,
        }
    }

    fn until_the_end(&mut self, sources: &mut Sources, stop: &dyn Fn() -> bool) -> io::Result<()> {
        let start = Instant::now();
        let mut buffer = vec![0; SNAP_BYTES as usize];
        while !stop() && self.options.duration.is_none_or(|limit| start.elapsed() < limit) && !self.is_full() {
            // Before they are asked: what comes later may be missing.
            let asked = now();
            let shown = self.take(sources, &mut buffer, None)?;
            self.write(shown.unwrap_or(asked).min(asked).saturating_sub(LATE))?;
            // Nothing for a while: whoever reads along sees what there is.
            let patience = if self.window.is_empty() { PATIENCE } else { LATE };
            if shown.is_none() && !sources.wait(patience)? && self.window.is_empty() {
                self.writer.flush()?;
            }
        }
        // What came before the end is a part of it, however late it is read.
        let end = now();
        while !self.is_full() && self.take(sources, &mut buffer, Some(end))?.is_some_and(|shown| shown <= end) {
            self.write(Duration::ZERO)?;
        }
        self.write(Duration::MAX)?;
        self.writer.flush()
    }

    /// Lets what is to be kept wait for its turn; nothing from after `end`.
    fn take(
        &mut self,
        sources: &mut Sources,
        buffer: &mut [u8],
        end: Option<Duration>,
    ) -> io::Result<Option<Duration>> {
        sources.take(buffer, |port, frame, data| {
            if end.is_none_or(|end| frame.time_since_1970 <= end) && self.options.filter.keeps(data) {
                let kept = &data[..data.len().min(self.snap_bytes as usize)];
                self.window.put(frame.time_since_1970, port, frame.outgoing, frame.original_bytes, kept);
            }
        })
    }

    /// Writes whatever nothing earlier can come before.
    fn write(&mut self, until: Duration) -> io::Result<()> {
        while !self.is_full()
            && let Some(Held { time, port, outgoing, original_bytes, data, .. }) = self.window.next(until)
        {
            self.writer.write_packet(&Packet {
                interface: port as u32,
                seen_at: time,
                direction: Some(if outgoing { Direction::Outbound } else { Direction::Inbound }),
                original_bytes,
                frame: &data,
            })?;
            self.written[port] += 1;
        }
        Ok(())
    }

    fn is_full(&self) -> bool {
        self.options.packets.is_some_and(|limit| self.written.iter().sum::<u64>() >= limit)
    }

    /// Says at the end of the file what is not in it.
    fn conclude(
        mut self,
        sources: &Sources,
        before: &[Drops],
        drops: impl FnOnce() -> Vec<Drops>,
    ) -> io::Result<CaptureSummary> {
        let counts = sources.counts()?;
        let summary = CaptureSummary {
            ports: counts.len(),
            packets: self.written.iter().sum(),
            dropped: counts.iter().map(|count| count.dropped).sum(),
        };
        let at = now();
        for (port, ((count, now), before)) in counts.iter().zip(drops()).zip(before).enumerate() {
            let said = Statistics {
                received: count.received,
                dropped: count.dropped,
                written: self.written[port],
                comments: drops::since(before, &now),
            };
            match self.writer.write_statistics(port as u32, at, &said) {
                Err(error) if is_gone(&error) => return Ok(summary),
                written => written?,
            }
        }
        match self.writer.flush() {
            Err(error) if !is_gone(&error) => Err(error),
            _ => Ok(summary),
        }
    }
}

fn now() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}
