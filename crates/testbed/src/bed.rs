//! What experiments put beside the device under test: the fan that gives each stream its own segment, and ends that poll.

use std::net::Ipv4Addr;

use libbpf_rs::Object;
use weft_datapath::DatapathError;
use weft_datapath::abi::Abi;
use weft_datapath::hook::{self, Attached, Place};
use weft_datapath::{interface, object};

use crate::abi::{BedSegment, FAN_INGRESS};
use crate::files;
use crate::tester::attach_xdp;

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
    /// Into this interface with the tag of a VLAN: a trunk of a VTEP.
    Trunk {
        /// Its index.
        ifindex: u32,
        vlan: u16,
    },
}

const VLAN_BITS: u32 = 12;

/// A VLAN of a trunk whose segment is held by one VXLAN device of the kernel for all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TunnelVlan {
    /// Number of the trunk; its interface index is so much above that of the first.
    pub trunk: u32,
    pub vlan: u16,
    /// The segment's VNI, below 8192.
    pub vni: u32,
    /// The VTEP that has it.
    pub remote: Ipv4Addr,
}

/// The programs of one bed and what they are attached to. What has a link ends with this.
#[derive(Debug)]
pub struct BedPrograms {
    object: Object,
    links: Vec<Attached>,
}

impl BedPrograms {
    /// Loads them.
    ///
    /// # Errors
    /// Any [`DatapathError`].
    pub fn load() -> Result<Self, DatapathError> {
        let open = files::BED.open()?;
        Ok(Self { object: files::BED.load(open)?, links: Vec::new() })
    }

    /// Makes an end of a veth pair poll, so that its peer can send it live frames; frames go on to the kernel.
    ///
    /// # Errors
    /// Any [`DatapathError`].
    pub fn poll(&mut self, interface: &str) -> Result<(), DatapathError> {
        self.links.push(attach_xdp(&object::program(&self.object, "bed_poll"), interface)?.0.into());
        Ok(())
    }

    /// From now on frames that come in at an interface go where [`Self::set_segment`] says.
    ///
    /// # Errors
    /// Any [`DatapathError`].
    pub fn fan_out(&mut self, interface: &str) -> Result<(), DatapathError> {
        let program = object::program(&self.object, "bed_fan_out");
        self.links.push(hook::attach(&program, interface::index_of(interface)?, interface, Place::First)?);
        Ok(())
    }

    /// Sets where frames to a MAC that ends in these two bytes go.
    ///
    /// # Errors
    /// [`DatapathError::Map`].
    pub fn set_segment(&self, number: u16, target: SegmentTarget) -> Result<(), DatapathError> {
        let entry = match target {
            SegmentTarget::Device { ifindex } => BedSegment { ifindex, ..BedSegment::default() },
            SegmentTarget::Port { ifindex } => BedSegment { ifindex, flags: FAN_INGRESS, ..BedSegment::default() },
            SegmentTarget::Trunk { ifindex, vlan } => {
                BedSegment { ifindex, flags: FAN_INGRESS, vlan: vlan.into(), zero: 0 }
            }
        };
        object::update(&self.object, "bed_segments", u32::from(number).bytes(), entry.bytes())
    }

    /// Where [`Self::fan_in`] sends frames.
    ///
    /// # Errors
    /// [`DatapathError::NoInterface`] or [`DatapathError::Map`].
    pub fn deliver_to(&self, interface: &str) -> Result<(), DatapathError> {
        object::update(&self.object, ".data.deliver", 0u32.bytes(), interface::index_of(interface)?.bytes())
    }

    /// Frames that come in at an interface leave by the one of [`Self::deliver_to`], until that interface is gone.
    ///
    /// # Errors
    /// Any [`DatapathError`].
    pub fn fan_in(&self, ifindex: u32) -> Result<(), DatapathError> {
        hook::attach_for_good(&object::program(&self.object, "bed_fan_in"), ifindex)
    }

    /// Joins trunks, whose interface indexes follow each other, with one VXLAN device of the kernel that takes the VNI of
    /// each frame from a program; [`Self::set_tunnel_vlan`] says which. It lasts until the interfaces are gone.
    ///
    /// # Errors
    /// Any [`DatapathError`].
    pub fn join_tunnel(&self, tunnel: u32, first_trunk: u32, trunks: u32) -> Result<(), DatapathError> {
        object::update(&self.object, ".data.tunnel", 0u32.bytes(), tunnel.bytes())?;
        object::update(&self.object, ".data.trunk", 0u32.bytes(), first_trunk.bytes())?;
        hook::attach_for_good(&object::program(&self.object, "bed_tunnel_to_trunk"), tunnel)?;
        let program = object::program(&self.object, "bed_trunk_to_tunnel");
        (0..trunks).try_for_each(|trunk| hook::attach_for_good(&program, first_trunk + trunk))
    }

    /// Sets the VNI of a VLAN of a trunk, and the other way round.
    ///
    /// # Errors
    /// [`DatapathError::Map`].
    pub fn set_tunnel_vlan(&self, first_trunk: u32, of: TunnelVlan) -> Result<(), DatapathError> {
        let (number, vlan) = (of.trunk << VLAN_BITS | u32::from(of.vlan), u32::from(of.vlan));
        object::update(&self.object, "bed_vlans", number.bytes(), &pair(of.vni, of.remote.into()))?;
        object::update(&self.object, "bed_circuits", of.vni.bytes(), &pair(first_trunk + of.trunk, vlan))
    }

    /// The same as [`Self::fan_in`] for frames that an interface would send, without the tag of a trunk's VLAN.
    ///
    /// # Errors
    /// Any [`DatapathError`].
    pub fn fan_in_egress(&self, ifindex: u32) -> Result<(), DatapathError> {
        hook::attach_for_good(&object::program(&self.object, "bed_fan_in_egress"), ifindex)
    }
}

fn pair(first: u32, second: u32) -> Vec<u8> {
    [first.to_ne_bytes(), second.to_ne_bytes()].concat()
}
