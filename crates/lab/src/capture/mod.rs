//! `weft lab capture`: frames of one interface of a lab into a pcapng file that Wireshark and tshark read.
//!
//! Frames between RBridges come from the taps of their data paths; what they exchange with hosts is seen at the hosts.
//!
//! Frames larger than the MTU are what TCP segmentation offload hands to the interface, as with any capture on Linux.

mod filter;
mod socket;

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use weft_scenario::addressing::port_mac;
use weft_scenario::engine::Overlay;
use weft_scenario::id::{LinkId, NodeId};
use weft_scenario::topology::{LoadError, from_yaml};
use weft_wire::pcapng::{self, SNAP_BYTES};

pub use filter::CaptureFilter;
pub(crate) use socket::{Frame, PacketSocket};

use crate::error::LabError;
use crate::home::{namespace_path, pin_dir};
use crate::netns;
use crate::state::{LabState, NodeState};
use crate::trill::{Trunk, TrunkEnd};

/// What to capture, where to and how much.
#[derive(Clone, Debug)]
pub struct CaptureOptions {
    pub lab: String,
    pub node: String,
    pub interface: String,
    /// File to write; `-`: standard output.
    pub file: PathBuf,
    /// Which frames to keep.
    pub filter: CaptureFilter,
    /// Stop after this many frames.
    pub packets: Option<u64>,
    /// Stop after this time.
    pub duration: Option<Duration>,
}

/// What a capture did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CaptureSummary {
    /// Frames written.
    pub packets: u64,
    /// Frames that the kernel could not hand over in time.
    pub dropped: u64,
}

/// Captures until a limit is reached or `stop` says so.
pub fn capture(options: &CaptureOptions, stop: &dyn Fn() -> bool) -> Result<CaptureSummary, LabError> {
    let state = LabState::load(&options.lab)?;
    let mut source = open_source(&state, options)?;
    let failed = || LabError::io(format!("write {}", options.file.display()));
    let output = open_output(&options.file).map_err(failed())?;
    copy_frames(&mut source, output, options, stop).map_err(failed())
}

/// Where frames come from.
enum Source {
    Socket(PacketSocket),
    Trunk(Trunk),
}

impl Source {
    fn receive(&mut self, buffer: &mut [u8]) -> io::Result<Option<Frame>> {
        match self {
            Self::Socket(socket) => socket.receive(buffer),
            Self::Trunk(trunk) => trunk.receive(buffer),
        }
    }

    /// The same without waiting.
    fn receive_now(&mut self, buffer: &mut [u8]) -> io::Result<Option<Frame>> {
        match self {
            Self::Socket(socket) => socket.receive_now(buffer),
            Self::Trunk(trunk) => trunk.receive_now(buffer),
        }
    }

    fn dropped(&self) -> io::Result<u64> {
        match self {
            Self::Socket(socket) => socket.dropped(),
            Self::Trunk(trunk) => trunk.dropped(),
        }
    }
}

/// A packet socket at the interface; where RBridges forward, what sees their frames.
fn open_source(state: &LabState, options: &CaptureOptions) -> Result<Source, LabError> {
    let node = state.node(&options.node)?;
    let here = || open_socket(node, options, &options.interface);
    match rbridge_link(state, options)? {
        None => Ok(Source::Socket(here()?)),
        Some(RBridgeLink::Trunk(ends)) => Ok(Source::Trunk(Trunk::open(here()?, &ends)?)),
        Some(RBridgeLink::Host { node, interface }) => Ok(Source::Socket(open_socket(node, options, &interface)?)),
    }
}

/// A link of an RBridge, whose frames its packet sockets do not see.
enum RBridgeLink<'a> {
    /// To another one.
    Trunk([TrunkEnd; 2]),
    /// To a host or a bridge, whose packet socket sees the same frames.
    Host { node: &'a NodeState, interface: String },
}

fn rbridge_link<'a>(state: &'a LabState, options: &CaptureOptions) -> Result<Option<RBridgeLink<'a>>, LabError> {
    if !state.overlay.forwards_frames() {
        return Ok(None);
    }
    let bad = |error: LoadError| LabError::BadState { lab: state.lab.clone(), reason: error.to_string() };
    let fabric = from_yaml(&state.fabric_yaml, "fabric").map_err(bad)?;
    let is_rbridge = |node: NodeId| {
        let kind = fabric.forwards_with(node, state.overlay);
        fabric.node(node).role.is_switch() && matches!(kind, Overlay::RBridge { .. })
    };
    let Some(node) = fabric.find(&options.node).filter(|node| is_rbridge(*node)) else { return Ok(None) };
    let is_it =
        |link: &&LinkId| fabric.link(**link).end_at(node).is_some_and(|port| port.interface == options.interface);
    let Some(link) = fabric.links_of(node).iter().find(is_it) else { return Ok(None) };
    let far = fabric.link(*link).far_end(node).expect("a link has two ends");
    let far_node = state.node(&fabric.node(far.node).name)?;
    if !is_rbridge(far.node) {
        return Ok(Some(RBridgeLink::Host { node: far_node, interface: far.interface.clone() }));
    }
    let end = |node: NodeId| {
        let name = fabric.node(node).name.clone();
        TrunkEnd { pins: pin_dir(&state.lab).join(&name), mac: port_mac(&fabric, *link, node), node: name }
    };
    Ok(Some(RBridgeLink::Trunk([end(node), end(far.node)])))
}

fn open_socket(node: &NodeState, options: &CaptureOptions, interface: &str) -> Result<PacketSocket, LabError> {
    let namespace = namespace_path(&node.namespace);
    netns::in_namespace(&namespace, || PacketSocket::open(interface))?.map_err(|error| {
        if error.raw_os_error() == Some(libc::ENODEV) {
            LabError::NoSuchInterface {
                node: node.name.clone(),
                interface: interface.to_owned(),
                known: node.interfaces.join(", "),
            }
        } else {
            LabError::io(format!("capture at {}:{}", options.node, options.interface))(error)
        }
    })
}

fn open_output(path: &Path) -> io::Result<Box<dyn Write>> {
    if path == Path::new("-") {
        return Ok(Box::new(io::stdout().lock()));
    }
    Ok(Box::new(BufWriter::new(File::create(path)?)))
}

fn copy_frames(
    source: &mut Source,
    output: Box<dyn Write>,
    options: &CaptureOptions,
    stop: &dyn Fn() -> bool,
) -> io::Result<CaptureSummary> {
    let writer = pcapng::Writer::new(output, &format!("{}:{}", options.node, options.interface))?;
    let mut copy = Copy { writer, options, summary: CaptureSummary::default() };
    match copy.all(source, stop) {
        // Whoever read along has gone away: Wireshark was closed, or `head` has enough.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {}
        written => written?,
    }
    copy.summary.dropped = source.dropped()?;
    Ok(copy.summary)
}

/// Frames on their way into the file.
struct Copy<'a> {
    writer: pcapng::Writer<Box<dyn Write>>,
    options: &'a CaptureOptions,
    summary: CaptureSummary,
}

impl Copy<'_> {
    /// Takes frames until it is told to stop, its time is over or it has enough.
    fn all(&mut self, source: &mut Source, stop: &dyn Fn() -> bool) -> io::Result<()> {
        let start = Instant::now();
        let mut buffer = vec![0; SNAP_BYTES as usize];
        while !stop() && self.options.duration.is_none_or(|limit| start.elapsed() < limit) && !self.is_full() {
            match source.receive(&mut buffer)? {
                Some(frame) => self.take(frame, &buffer)?,
                // Nothing for a while: whoever reads along sees what there is.
                None => self.writer.flush()?,
            }
        }
        // What came before the end is a part of it, however late it is read.
        let end = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        while !self.is_full()
            && let Some(frame) = source.receive_now(&mut buffer)?
            && frame.time_since_1970 <= end
        {
            self.take(frame, &buffer)?;
        }
        self.writer.flush()
    }

    fn is_full(&self) -> bool {
        self.options.packets.is_some_and(|limit| self.summary.packets >= limit)
    }

    /// Writes the frame if it is to be kept.
    fn take(&mut self, frame: Frame, buffer: &[u8]) -> io::Result<()> {
        let data = &buffer[..frame.captured_bytes];
        if self.options.filter.keeps(data) {
            self.writer.write(frame.time_since_1970, frame.original_bytes, data)?;
            self.summary.packets += 1;
        }
        Ok(())
    }
}
