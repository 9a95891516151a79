//! The packet-rate variants: the bodies of the TC programs on XDP, next hops in maps instead of the kernel's routes.
//!
//! For real NICs and for [`crate::bench`]. Not for TCP between namespaces: XDP has no GSO.

use std::net::Ipv4Addr;

use libbpf_rs::{Link, Object};
use weft_datapath::DatapathError;
use weft_datapath::abi::{AaMapping, Abi, HOST_OUTCOMES, HostConstants, OwnLas, SWITCH_OUTCOMES};
use weft_datapath::frame::{self, FrameOutput};
use weft_datapath::host::Mapping;
use weft_datapath::object;
use weft_datapath::switch::Tier;
use weft_datapath::table::Table;

use crate::abi::{NextHop, ROUTE_SLOTS, RouteSlot, SwitchConstants};
use crate::files;

/// Which program of the object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum XdpProgram {
    /// Both outer headers on, next hop by anycast LA.
    Encap,
    /// One outer header off, next hop by what is then the destination.
    Decap,
}

impl XdpProgram {
    /// Name of the program in the object and in results.
    pub fn name(self) -> &'static str {
        match self {
            Self::Encap => "vl2_encap",
            Self::Decap => "vl2_decap",
        }
    }
}

/// Constants of the XDP programs.
#[derive(Clone, Copy, Debug)]
pub struct XdpConfig {
    /// The AA block: network and prefix length.
    pub aa_block: (Ipv4Addr, u8),
    /// Largest IPv4 packet that the fabric carries, outer headers included, bytes.
    pub underlay_mtu: u32,
    /// Which switch the decapsulation is for.
    pub tier: Tier,
}

/// The loaded XDP programs and their maps.
#[derive(Debug)]
pub struct XdpDatapath {
    object: Object,
    links: Vec<Link>,
}

impl XdpDatapath {
    /// Loads the programs.
    ///
    /// # Errors
    /// Any [`DatapathError`].
    pub fn load(config: &XdpConfig) -> Result<Self, DatapathError> {
        let (network, length) = config.aa_block;
        let mask = u32::MAX.checked_shl(32 - u32::from(length)).unwrap_or(0);
        let constants = HostConstants {
            aa_network: (u32::from(network) & mask).to_be_bytes(),
            aa_mask: mask.to_be_bytes(),
            underlay_mtu: config.underlay_mtu,
            ..HostConstants::default()
        };
        let mut open = files::XDP.open()?;
        object::set_constants(&mut open, ".rodata.host", &constants);
        let is_tor = u32::from(config.tier == Tier::Tor);
        object::set_constants(&mut open, ".rodata.switch", &SwitchConstants { is_tor });
        Ok(Self { object: files::XDP.load(open)?, links: Vec::new() })
    }

    /// Sets where an AA is.
    ///
    /// # Errors
    /// [`DatapathError::Map`].
    pub fn set_mapping(&self, aa: Ipv4Addr, mapping: &Mapping) -> Result<(), DatapathError> {
        object::update(&self.object, "aa_map", &aa.octets(), AaMapping::from(mapping).bytes())
    }

    /// Sets the next hop towards an LA (or, at a ToR, towards a server's AA).
    ///
    /// The first LA with its low 12 bits gets the slot of that number, later ones are found by hash. A frame that is
    /// forwarded while its own next hop changes may get half of the old one.
    ///
    /// # Errors
    /// [`DatapathError::Map`].
    pub fn set_route(&self, la: Ipv4Addr, next: &NextHop) -> Result<(), DatapathError> {
        object::update(&self.object, "la_route", &la.octets(), next.bytes())?;
        let index = u32::from(la) % ROUTE_SLOTS;
        let slot = object::lookup(&self.object, "la_slots", index.bytes())?
            .and_then(|bytes| RouteSlot::from_bytes(&bytes))
            .unwrap_or_default();
        if slot.la != [0; 4] && slot.la != la.octets() {
            return Ok(());
        }
        // The LA last: until it is there, programs use the hash.
        object::update(&self.object, "la_slots", index.bytes(), RouteSlot { next: *next, la: [0; 4] }.bytes())?;
        object::update(&self.object, "la_slots", index.bytes(), RouteSlot { next: *next, la: la.octets() }.bytes())
    }

    /// Sets which interface, of the caller's network namespace, is behind a port.
    ///
    /// # Errors
    /// [`DatapathError::Map`].
    pub fn set_port(&self, port: u32, ifindex: u32) -> Result<(), DatapathError> {
        object::update(&self.object, "ports", port.bytes(), ifindex.bytes())
    }

    /// Sets the LAs to decapsulate for.
    ///
    /// # Errors
    /// [`DatapathError::Config`] for more than 16 LAs, or [`DatapathError::Map`].
    pub fn set_own_las(&self, las: &[Ipv4Addr]) -> Result<(), DatapathError> {
        let own = OwnLas::new(las).ok_or_else(|| DatapathError::Config {
            field: "own_las",
            why: format!("{} LAs are more than a switch takes", las.len()),
        })?;
        object::update(&self.object, ".data.own_las", 0u32.bytes(), own.bytes())
    }

    /// Puts a program on an interface of the caller's network namespace, until this value is dropped.
    ///
    /// # Errors
    /// [`DatapathError::NoInterface`]; [`DatapathError::Program`] where another XDP program is attached.
    pub fn attach(&mut self, program: XdpProgram, interface: &str) -> Result<(), DatapathError> {
        let (link, _) = crate::tester::attach_xdp(&self.program(program), interface)?;
        self.links.push(link);
        Ok(())
    }

    /// The counters of one program.
    ///
    /// # Errors
    /// [`DatapathError::Map`].
    pub fn counters(&self, program: XdpProgram) -> Result<Vec<(&'static str, u64)>, DatapathError> {
        let (map, names): (_, &[&str]) = match program {
            XdpProgram::Encap => ("host_counters", &HOST_OUTCOMES),
            XdpProgram::Decap => ("switch_counters", &SWITCH_OUTCOMES),
        };
        Table::of(&self.object, map)?.counters(names)
    }

    /// One frame through a program, without a network.
    ///
    /// # Errors
    /// [`DatapathError::Program`] if the kernel refuses the frame, for example for being shorter than 14 bytes.
    pub fn run(&self, program: XdpProgram, bytes: &[u8]) -> Result<FrameOutput, DatapathError> {
        frame::run_xdp(&self.program(program), bytes)
    }

    pub(crate) fn program(&self, program: XdpProgram) -> libbpf_rs::ProgramMut<'_> {
        object::program(&self.object, program.name())
    }
}
