//! The plain layer-2 switch, which every ratio is over: at TC and at XDP, in labs and in [`crate::bench`].

use libbpf_rs::{Object, ProgramMut};
use weft_datapath::DatapathError;
use weft_datapath::abi::{Abi, MacKey};
use weft_datapath::frame::{self, FrameInput, FrameOutput};
use weft_datapath::hook::{self, Attached, Place};
use weft_datapath::table::Table;
use weft_datapath::{interface, object};

use crate::abi::L2_OUTCOMES;
use crate::files;
use crate::tester::{EmulatedLinks, attach_xdp};

/// One switch; its programs leave the interfaces when this is dropped. It knows the MACs that it was told.
#[derive(Debug)]
pub struct PlainSwitch {
    object: Object,
    links: Vec<Attached>,
    xdp_ports: u32,
}

impl PlainSwitch {
    /// Loads it.
    ///
    /// # Errors
    /// Any [`DatapathError`].
    pub fn load() -> Result<Self, DatapathError> {
        let open = files::L2.open()?;
        Ok(Self { object: files::L2.load(open)?, links: Vec::new(), xdp_ports: 0 })
    }

    /// Makes an interface of the caller's namespace a port at the TC hook; its number. A switch has ports at one hook.
    ///
    /// # Errors
    /// Any [`DatapathError`].
    pub fn add_tc_port(&mut self, interface: &str) -> Result<u32, DatapathError> {
        let ifindex = interface::index_of(interface)?;
        self.links.push(hook::attach(
            &object::program(&self.object, "l2_forward_tc"),
            ifindex,
            interface,
            Place::Last,
        )?);
        Ok(ifindex)
    }

    /// The same at XDP, with an emulated link behind it if there is one.
    ///
    /// # Errors
    /// Any [`DatapathError`].
    pub fn add_xdp_port(&mut self, interface: &str, links: Option<&EmulatedLinks>) -> Result<u32, DatapathError> {
        let ifindex = interface::index_of(interface)?;
        let port =
            self.set_port(&links.map_or_else(|| object::device(ifindex, None), |links| links.device(ifindex)))?;
        self.links.push(attach_xdp(&self.program(), interface)?.0.into());
        Ok(port)
    }

    /// A port at XDP that leads out of an interface of the caller's namespace and has no program there; its number.
    ///
    /// # Errors
    /// [`DatapathError::Map`].
    pub fn pretend_port(&mut self, ifindex: u32) -> Result<u32, DatapathError> {
        self.set_port(&object::device(ifindex, None))
    }

    fn set_port(&mut self, device: &[u8]) -> Result<u32, DatapathError> {
        let port = self.xdp_ports;
        object::update(&self.object, "l2_ports", port.bytes(), device)?;
        self.xdp_ports += 1;
        Ok(port)
    }

    /// Sets behind which port a MAC is.
    ///
    /// # Errors
    /// [`DatapathError::Map`].
    pub fn set_mac(&self, mac: [u8; 6], port: u32) -> Result<(), DatapathError> {
        object::update(&self.object, "l2_macs", MacKey { mac, vlan: 0 }.bytes(), port.bytes())
    }

    /// What became of frames.
    ///
    /// # Errors
    /// [`DatapathError::Map`].
    pub fn counters(&self) -> Result<Vec<(&'static str, u64)>, DatapathError> {
        Table::of(&self.object, "l2_counters")?.counters(&L2_OUTCOMES)
    }

    /// One frame through the program at XDP, without a network.
    ///
    /// # Errors
    /// [`DatapathError::Program`] if the kernel refuses the frame, for example for being shorter than 14 bytes.
    pub fn run_xdp(&self, bytes: &[u8]) -> Result<FrameOutput, DatapathError> {
        frame::run_xdp(&self.program(), bytes)
    }

    /// The same at TC.
    ///
    /// # Errors
    /// As [`Self::run_xdp`].
    pub fn run_tc(&self, input: &FrameInput<'_>) -> Result<FrameOutput, DatapathError> {
        frame::run_tc(&self.tc_program(), input)
    }

    pub(crate) fn tc_program(&self) -> ProgramMut<'_> {
        object::program(&self.object, "l2_forward_tc")
    }

    pub(crate) fn program(&self) -> ProgramMut<'_> {
        object::program(&self.object, "l2_forward")
    }
}
