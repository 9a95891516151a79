//! What experiments put beside the device under test: an end for a chain of switches, and the fan that gives each stream its own
//! segment.
#![allow(unsafe_code)]

use std::net::Ipv4Addr;

use libbpf_rs::Object;

use crate::abi::Abi;
use crate::error::DatapathError;
use crate::hook::{self, Attached};
use crate::tester::abi::{BedSegment, FAN_INGRESS};
use crate::tester::attach_xdp;
use crate::{interface, object};

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
        /// The VLAN.
        vlan: u16,
    },
}

const VLAN_BITS: u32 = 12;

/// A VLAN of a trunk whose segment is held by one VXLAN device of the kernel for all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TunnelVlan {
    /// Number of the trunk; its interface index is so much above that of the first.
    pub trunk: u32,
    /// The VLAN.
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
        let open = object::BED.open()?;
        Ok(Self { object: object::BED.load(open)?, links: Vec::new() })
    }

    /// Drops every frame that comes in at an interface of the caller's namespace, in the place of an XDP program or before any
    /// other sees it, until the result is dropped.
    ///
    /// # Errors
    /// Any [`DatapathError`].
    pub fn cut(&self, interface: &str) -> Result<Cut, DatapathError> {
        let [tc, xdp] = ["bed_cut", "bed_cut_xdp"].map(|name| object::program(&self.object, name));
        hook::take((&tc, &xdp), interface::index_of(interface)?, interface).map(Cut)
    }

    /// The same at the XDP hook of an interface without a program, before the kernel makes a packet of a frame.
    ///
    /// # Errors
    /// Any [`DatapathError`].
    pub fn cut_at_xdp(&self, interface: &str) -> Result<Cut, DatapathError> {
        Ok(Cut(attach_xdp(&object::program(&self.object, "bed_cut_xdp"), interface)?.0.into()))
    }

    /// Frames that came as far as the cuts of these programs, all together.
    ///
    /// # Errors
    /// [`DatapathError::Map`].
    pub fn cut_frames(&self) -> Result<u64, DatapathError> {
        let found = object::lookup(&self.object, ".data.cut", 0u32.bytes())?;
        Ok(found.and_then(|bytes| bytes.try_into().ok()).map_or(0, u64::from_ne_bytes))
    }

    fn first(&self, program: &str, interface: &str) -> Result<Attached, DatapathError> {
        hook::attach_first(&object::program(&self.object, program), interface::index_of(interface)?, interface)
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

/// A program in front of others; it goes when this is dropped.
#[derive(Debug)]
pub struct Cut(Attached);

impl Drop for Cut {
    fn drop(&mut self) {
        // Closing the link does the same a little later.
        let _ = self.0.detach();
    }
}
