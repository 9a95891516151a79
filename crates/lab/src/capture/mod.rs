//! `weft lab capture`: frames of one interface of a lab into a pcapng file that Wireshark and tshark read.
//!
//! Frames larger than the MTU are what TCP segmentation offload hands to the interface, as with any capture on Linux.

mod filter;
mod socket;

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use weft_wire::pcapng::{self, SNAP_BYTES};

pub use filter::CaptureFilter;
pub(crate) use socket::PacketSocket;

use crate::error::LabError;
use crate::home::namespace_path;
use crate::netns;
use crate::state::LabState;

/// What to capture, where to and how much.
#[derive(Clone, Debug)]
pub struct CaptureOptions {
    /// Name of the lab.
    pub lab: String,
    /// Name of the node.
    pub node: String,
    /// Name of the interface.
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
    let node = state.node(&options.node)?;
    let namespace = namespace_path(&node.namespace);
    let socket = netns::in_namespace(&namespace, || PacketSocket::open(&options.interface))?.map_err(|error| {
        if error.raw_os_error() == Some(libc::ENODEV) {
            LabError::NoSuchInterface {
                node: options.node.clone(),
                interface: options.interface.clone(),
                known: node.interfaces.join(", "),
            }
        } else {
            LabError::io(format!("capture at {}:{}", options.node, options.interface))(error)
        }
    })?;
    let failed = || LabError::io(format!("write {}", options.file.display()));
    let output = open_output(&options.file).map_err(failed())?;
    copy_frames(&socket, output, options, stop).map_err(failed())
}

fn open_output(path: &Path) -> io::Result<Box<dyn Write>> {
    if path == Path::new("-") {
        return Ok(Box::new(io::stdout().lock()));
    }
    Ok(Box::new(BufWriter::new(File::create(path)?)))
}

fn copy_frames(
    socket: &PacketSocket,
    output: Box<dyn Write>,
    options: &CaptureOptions,
    stop: &dyn Fn() -> bool,
) -> io::Result<CaptureSummary> {
    let mut writer = pcapng::Writer::new(output, &format!("{}:{}", options.node, options.interface))?;
    let start = Instant::now();
    let mut summary = CaptureSummary::default();
    let mut buffer = vec![0; SNAP_BYTES as usize];
    while !stop()
        && options.duration.is_none_or(|limit| start.elapsed() < limit)
        && options.packets.is_none_or(|limit| summary.packets < limit)
    {
        let Some(frame) = socket.receive(&mut buffer)? else {
            // Nothing for a while: whoever reads along sees what there is.
            writer.flush()?;
            continue;
        };
        let data = &buffer[..frame.captured_bytes];
        if options.filter.keeps(data) {
            writer.write(frame.time_since_1970, frame.original_bytes, data)?;
            summary.packets += 1;
        }
    }
    writer.flush()?;
    summary.dropped = socket.dropped()?;
    Ok(summary)
}
