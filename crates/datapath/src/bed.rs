//! Parts of beds for experiments, beside the device under test: an end for a chain of switches, a known cost, the plain
//! layer-2 switches that VTEPs at the same hook are compared with, and the fan that gives each stream its own segment.
#![allow(unsafe_code)]

use std::net::Ipv4Addr;

use libbpf_rs::{Link, MapCore, MapFlags, Object};

use crate::abi::{Abi, abi_struct};
use crate::error::DatapathError;
use crate::tester::attach_xdp;
use crate::{interface, link, object};

/// Where the frames of one segment go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SegmentTarget {
    /// Out of this interface: a VXLAN device of the kernel that has this segment alone.
    Device {
        /// Its index.
        ifindex: u32,
    },
    /// Into this interface, as if they had come in there: a port of a VTEP.
    Port {
        /// Its index.
        ifindex: u32,
    },
    /// Out of one VXLAN device for all segments, which is told the segment and the peer of each frame.
    Tunnel {
        /// Its index.
        ifindex: u32,
        /// The segment's VNI.
        vni: u32,
        /// The VTEP that has it.
        remote: Ipv4Addr,
    },
}

abi_struct! {
    /// `struct bed_segment` of `bed.bpf.c`.
    SegmentEntry = "bed_segment" {
        /// Where to; 0: nowhere.
        ifindex: u32,
        /// `FAN_*`.
        flags: u32,
        /// For one device for all.
        vni: u32,
        /// For the same, in the processor's order.
        remote: u32,
    }
}

const FAN_INGRESS: u32 = 1;
const FAN_TUNNEL: u32 = 2;

/// The programs of one bed and what they are attached to. What has a link ends with this.
#[derive(Debug)]
pub struct BedPrograms {
    object: Object,
    links: Vec<Link>,
    ports: u32,
}

impl BedPrograms {
    /// Loads them.
    ///
    /// # Errors
    /// Any [`DatapathError`].
    pub fn load() -> Result<Self, DatapathError> {
        let open = object::BED.open()?;
        Ok(Self { object: object::BED.load(open)?, links: Vec::new(), ports: 0 })
    }

    /// Drops every frame that comes in at an interface of the caller's namespace, before any other program sees it, until
    /// the result is dropped.
    ///
    /// # Errors
    /// Any [`DatapathError`].
    pub fn cut(&self, interface: &str) -> Result<Cut, DatapathError> {
        self.first("bed_cut", interface).map(Cut)
    }

    /// Spends so much CPU time on every frame that comes in at an interface, until the result is dropped.
    ///
    /// # Errors
    /// Any [`DatapathError`].
    pub fn burn(&self, interface: &str, burn_ns: u64) -> Result<Cut, DatapathError> {
        self.update(".data.bed", 0u32.bytes(), &burn_ns.to_ne_bytes())?;
        self.first("bed_burn", interface).map(Cut)
    }

    fn first(&self, program: &str, interface: &str) -> Result<Link, DatapathError> {
        link::attach_first(&object::program(&self.object, program), interface::index_of(interface)?, interface)
    }

    /// Makes an interface of the caller's namespace a port of the plain switch at the TC hook; its index.
    ///
    /// # Errors
    /// Any [`DatapathError`].
    pub fn add_tc_port(&mut self, interface: &str) -> Result<u32, DatapathError> {
        let ifindex = interface::index_of(interface)?;
        self.links.push(link::attach(&object::program(&self.object, "bed_switch"), ifindex, interface)?);
        Ok(ifindex)
    }

    /// The same for an interface that stays a port until it is gone.
    ///
    /// # Errors
    /// Any [`DatapathError`].
    pub fn add_lasting_tc_port(&self, ifindex: u32) -> Result<(), DatapathError> {
        link::attach_for_good(&object::program(&self.object, "bed_switch"), false, ifindex)
    }

    /// The same for the plain switch in XDP; its place among the ports.
    ///
    /// # Errors
    /// Any [`DatapathError`].
    pub fn add_xdp_port(&mut self, interface: &str) -> Result<u32, DatapathError> {
        let port = self.ports;
        self.update("bed_ports", port.bytes(), interface::index_of(interface)?.bytes())?;
        self.links.push(attach_xdp(&object::program(&self.object, "bed_switch_xdp"), interface)?.0);
        self.ports += 1;
        Ok(port)
    }

    /// Sets behind which port of the plain switch a MAC is.
    ///
    /// # Errors
    /// [`DatapathError::Map`].
    pub fn set_mac(&self, mac: [u8; 6], port: u32) -> Result<(), DatapathError> {
        self.update("bed_macs", &[&mac[..], &[0; 2]].concat(), port.bytes())
    }

    /// Makes an end of a veth pair poll, so that its peer can send it live frames; frames go on to the kernel.
    ///
    /// # Errors
    /// Any [`DatapathError`].
    pub fn poll(&mut self, interface: &str) -> Result<(), DatapathError> {
        self.links.push(attach_xdp(&object::program(&self.object, "bed_poll"), interface)?.0);
        Ok(())
    }

    /// From now on frames that come in at an interface go where [`Self::set_segment`] says.
    ///
    /// # Errors
    /// Any [`DatapathError`].
    pub fn fan_out(&mut self, interface: &str) -> Result<(), DatapathError> {
        let link = self.first("bed_fan_out", interface)?;
        self.links.push(link);
        Ok(())
    }

    /// Sets where frames to a MAC that ends in these two bytes go.
    ///
    /// # Errors
    /// [`DatapathError::Map`].
    pub fn set_segment(&self, number: u16, target: SegmentTarget) -> Result<(), DatapathError> {
        let entry = match target {
            SegmentTarget::Device { ifindex } => SegmentEntry { ifindex, ..SegmentEntry::default() },
            SegmentTarget::Port { ifindex } => SegmentEntry { ifindex, flags: FAN_INGRESS, ..SegmentEntry::default() },
            SegmentTarget::Tunnel { ifindex, vni, remote } => {
                SegmentEntry { ifindex, flags: FAN_TUNNEL, vni, remote: u32::from(remote) }
            }
        };
        self.update("bed_segments", u32::from(number).bytes(), entry.bytes())
    }

    /// Where [`Self::fan_in`] sends frames.
    ///
    /// # Errors
    /// [`DatapathError::NoInterface`] or [`DatapathError::Map`].
    pub fn deliver_to(&self, interface: &str) -> Result<(), DatapathError> {
        self.update(".data.deliver", 0u32.bytes(), interface::index_of(interface)?.bytes())
    }

    /// Frames that come in at an interface leave by the one of [`Self::deliver_to`], until that interface is gone.
    ///
    /// # Errors
    /// Any [`DatapathError`].
    pub fn fan_in(&self, ifindex: u32) -> Result<(), DatapathError> {
        link::attach_for_good(&object::program(&self.object, "bed_fan_in"), false, ifindex)
    }

    /// The same for frames that an interface would send.
    ///
    /// # Errors
    /// Any [`DatapathError`].
    pub fn fan_in_egress(&self, ifindex: u32) -> Result<(), DatapathError> {
        link::attach_for_good(&object::program(&self.object, "bed_fan_in_egress"), true, ifindex)
    }

    fn update(&self, map: &'static str, key: &[u8], value: &[u8]) -> Result<(), DatapathError> {
        object::map_handle(&self.object, map)?.update(key, value, MapFlags::ANY).map_err(|source| DatapathError::Map {
            map,
            what: "setting an entry",
            source,
        })
    }
}

/// A program in front of others; it goes when this is dropped.
#[derive(Debug)]
pub struct Cut(Link);

impl Drop for Cut {
    fn drop(&mut self) {
        // Closing the link does the same a little later.
        let _ = link::detach(&self.0);
    }
}
