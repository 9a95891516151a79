//! Emulated links on ports of switches, and the tester's own device.

use std::path::Path;

use libbpf_rs::{Object, ProgramInput};
use rustix::time::ClockId;
use weft_datapath::DatapathError;
use weft_datapath::abi::Abi;
use weft_datapath::frame::{self, FrameInput, FrameOutput};
use weft_datapath::hook::{self, Attached, Place};
use weft_datapath::{clock, interface, object, trill};

use super::attach_xdp;
use crate::abi::{TesterLink, TesterRelay};
use crate::files;

const LINKS: &str = "tester_links";
const RELAYS: &str = "tester_relays";
const RELAY_PORTS: &str = "tester_relay_ports";
const TICKS_PER_NS: u128 = 1024;

/// One direction of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkParams {
    /// Bits per second on layer 1; 0: endlessly fast.
    pub rate_bps: u64,
    /// Longest wait for the line, nanoseconds: the queue's depth in time.
    pub queue_ns: u64,
    /// Propagation delay, nanoseconds.
    pub delay_ns: u64,
    /// Bytes on the line beside those that the kernel counts; 24 on Ethernet: FCS, preamble and gap.
    pub overhead_bytes: u32,
}

impl Default for LinkParams {
    fn default() -> Self {
        Self { rate_bps: 0, queue_ns: 1_000_000, delay_ns: 0, overhead_bytes: 24 }
    }
}

/// What became of a link's frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkCounters {
    /// Taken.
    pub passed: u64,
    /// Dropped because the queue was full.
    pub dropped: u64,
    /// Of those taken, the ones without a probe, which cannot be told of their delay.
    pub foreign: u64,
    /// Of those taken, the ones that were under way longer than a probe can say (4.19 ms in all).
    pub saturated: u64,
}

/// Emulated links of one network namespace.
#[derive(Debug)]
pub struct EmulatedLinks {
    object: Object,
    attached: Vec<Attached>,
    relay_ports: u32,
}

impl EmulatedLinks {
    /// Loads the programs; there are no links yet.
    ///
    /// # Errors
    /// Any [`DatapathError`].
    pub fn load() -> Result<Self, DatapathError> {
        let open = files::TESTER_LINK.open()?;
        Ok(Self { object: files::TESTER_LINK.load(open)?, attached: Vec::new(), relay_ports: 0 })
    }

    /// Sets the link behind an interface of the caller's namespace, empty and with its counters at zero.
    ///
    /// # Errors
    /// [`DatapathError::NoInterface`], or [`DatapathError::Config`] for a rate that cannot be.
    pub fn set(&self, interface: &str, params: &LinkParams) -> Result<(), DatapathError> {
        let ifindex = interface::index_of(interface)?;
        object::update(&self.object, LINKS, ifindex.bytes(), state_of(params)?.bytes())
    }

    /// Puts links of this namespace on the egress of a port that the kernel forwards to.
    ///
    /// # Errors
    /// Any [`DatapathError`].
    pub fn attach_tc(&mut self, interface: &str) -> Result<(), DatapathError> {
        let ifindex = interface::index_of(interface)?;
        let program = object::program(&self.object, "tester_link_tc");
        self.attached.push(hook::attach(&program, ifindex, interface, Place::Last)?);
        Ok(())
    }

    /// Makes an end of a veth pair poll, so that its peer can send it live frames; frames go on to the kernel.
    ///
    /// # Errors
    /// Any [`DatapathError`].
    pub fn hold(&mut self, interface: &str) -> Result<(), DatapathError> {
        // The relay leaves to the kernel what comes in where it has no way out.
        self.attached.push(attach_xdp(&object::program(&self.object, "tester_relay"), interface)?.0.into());
        Ok(())
    }

    /// Relays what comes in at one interface out of another of the caller's namespace, over that one's link if it has
    /// one, and spends `burn_ns` on every frame.
    ///
    /// # Errors
    /// Any [`DatapathError`].
    pub fn relay(&mut self, from: &str, to: &str, burn_ns: u32) -> Result<(), DatapathError> {
        let (from_index, to_index) = (interface::index_of(from)?, interface::index_of(to)?);
        let slot = self.relay_ports;
        object::update(&self.object, RELAY_PORTS, slot.bytes(), &self.device(to_index))?;
        object::update(&self.object, RELAYS, from_index.bytes(), TesterRelay { to: slot + 1, burn_ns }.bytes())?;
        self.attached.push(attach_xdp(&object::program(&self.object, "tester_relay"), from)?.0.into());
        self.relay_ports += 1;
        Ok(())
    }

    /// Puts the link of an interface of the caller's namespace behind a port of an RBridge whose data path is pinned at
    /// `pins`. Frames that have one way take the link; copies along a tree go past it. It stays until the RBridge sets up
    /// the port anew.
    ///
    /// # Errors
    /// Any [`DatapathError`].
    pub fn attach_rbridge(&self, pins: &Path, number: u8, interface: &str) -> Result<(), DatapathError> {
        trill::set_device_of_pinned(pins, number, &self.device(interface::index_of(interface)?))
    }

    /// An element of a device map: what leaves by the interface takes its link.
    pub(crate) fn device(&self, ifindex: u32) -> [u8; 8] {
        object::device(ifindex, Some(&object::program(&self.object, "tester_link_xdp")))
    }

    /// Changes what the relay spends on every frame that comes in at an interface.
    ///
    /// # Errors
    /// Any [`DatapathError`].
    pub fn set_burn(&self, from: &str, burn_ns: u32) -> Result<(), DatapathError> {
        let ifindex = interface::index_of(from)?;
        let relay = self.lookup::<TesterRelay>(RELAYS, ifindex)?;
        object::update(&self.object, RELAYS, ifindex.bytes(), TesterRelay { burn_ns, ..relay }.bytes())
    }

    /// CPU nanoseconds that the relay's program takes for a frame that comes in at an interface: the least of some series
    /// of runs without a network. It holds the true cost of a burn, which is a little above what was asked for.
    ///
    /// # Errors
    /// Any [`DatapathError`].
    pub fn relay_ns(&self, from: &str) -> Result<f64, DatapathError> {
        const RUNS: u32 = 4000;
        let frame = [0u8; 64];
        let mut context = [0u8; 24];
        context[4..8].copy_from_slice(&64u32.to_ne_bytes());
        context[12..16].copy_from_slice(&interface::index_of(from)?.to_ne_bytes());
        let program = object::program(&self.object, "tester_relay");
        let mut least = f64::MAX;
        for _ in 0..8 {
            let context_in = Some(&mut context[..]);
            let input = ProgramInput { data_in: Some(&frame), context_in, repeat: RUNS, ..ProgramInput::default() };
            let before = clock::ns(ClockId::ThreadCPUTime);
            program.test_run(input).map_err(|source| DatapathError::from_kernel("running the relay", source))?;
            least = least.min((clock::ns(ClockId::ThreadCPUTime) - before) as f64 / f64::from(RUNS));
        }
        Ok(least)
    }

    /// What became of the frames on the link behind an interface.
    ///
    /// # Errors
    /// [`DatapathError::NoInterface`] or [`DatapathError::Map`].
    pub fn counters(&self, interface: &str) -> Result<LinkCounters, DatapathError> {
        let TesterLink { passed, dropped, foreign, saturated, .. } =
            self.lookup(LINKS, interface::index_of(interface)?)?;
        Ok(LinkCounters { passed, dropped, foreign, saturated })
    }

    /// One frame through the link of loopback, as on TC egress, without a network.
    ///
    /// # Errors
    /// [`DatapathError::Program`] if the kernel refuses the frame.
    pub fn run_tc(&self, bytes: &[u8]) -> Result<FrameOutput, DatapathError> {
        let input = FrameInput { bytes, ifindex: 1, ..FrameInput::default() };
        frame::run_tc(&object::program(&self.object, "tester_link_tc"), &input)
    }

    fn lookup<T: Abi>(&self, map: &'static str, ifindex: u32) -> Result<T, DatapathError> {
        let value = object::lookup(&self.object, map, ifindex.bytes())?;
        Ok(value.and_then(|bytes| T::from_bytes(&bytes)).unwrap_or_default())
    }
}

fn state_of(params: &LinkParams) -> Result<TesterLink, DatapathError> {
    let per_second = 8_000_000_000 * TICKS_PER_NS;
    let rate = u128::from(params.rate_bps);
    let ticks_per_byte = (per_second + rate / 2).checked_div(rate).unwrap_or(0);
    if params.rate_bps > 0 && !(1..1 << 40).contains(&ticks_per_byte) {
        let why = format!("{} bit/s; a link can have 8 bit/s to 1 Tbit/s", params.rate_bps);
        return Err(DatapathError::Config { field: "rate_bps", why });
    }
    Ok(TesterLink {
        overhead_bytes: params.overhead_bytes,
        ticks_per_byte: ticks_per_byte as u64,
        queue_ns: params.queue_ns.min(1 << 40),
        delay_ns: params.delay_ns.min(1 << 40),
        ..TesterLink::default()
    })
}
