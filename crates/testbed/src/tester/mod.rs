//! The test centre's programs: a generator of live frames, an analyser, the same two for frames that are sent as they are, and emulated
//! links with a device between them.
//!
//! They count and time; what that means is for `weft-lab`'s `tester`. Latencies are between the last instruction before
//! a frame leaves and the first after it arrived, on the kernel's monotonic clock.

mod analyser;
mod digest;
mod frames;
mod generator;
mod link;
mod live;
mod recogniser;
mod replayer;

use std::os::fd::AsFd;

use libbpf_rs::{Link, ProgramMut, Xdp, XdpFlags};
use weft_datapath::DatapathError;
use weft_datapath::interface;
use weft_datapath::trill::XdpMode;

pub use analyser::{Analyser, PortReading, StreamReading};
pub use digest::digest;
pub use frames::{Frames, Length, TURNS_MAX};
pub use generator::Generator;
pub use link::{EmulatedLinks, LinkCounters, LinkParams};
pub use live::{FRAME_BYTES_MAX, SendOrder, Sent};
pub use recogniser::Recogniser;
pub use replayer::Replayer;

/// Attaches an XDP program to an interface of the caller's namespace, in the driver where it can.
pub(crate) fn attach_xdp(program: &ProgramMut<'_>, interface: &str) -> Result<(Link, XdpMode), DatapathError> {
    let index = i32::try_from(interface::index_of(interface)?).expect("interface indexes are positive ints");
    let link = program
        .attach_xdp(index)
        .map_err(|source| DatapathError::from_kernel(format!("attaching XDP to `{interface}`"), source))?;
    let found = Xdp::new(program.as_fd()).query(index, XdpFlags::NONE);
    let native = found.is_ok_and(|found| u32::from(found.attach_mode) == libbpf_sys::XDP_ATTACHED_DRV);
    Ok((link, if native { XdpMode::Native } else { XdpMode::Generic }))
}
