//! The tunnels that `weft doctor --path` sends through: two namespaces with an underlay between them, and at both ends the
//! kernel's VXLAN device or our VTEP.

use std::net::Ipv4Addr;

use weft_datapath::DatapathError;
use weft_datapath::vxlan::{AccessRule, Flood, Vni, VniSettings, Vtep, VtepOptions, interface_index};
use weft_wire::vxlan::{self, UDP_PORT};

use super::Use;
use crate::batch::{self, Program};
use crate::error::LabError;
use crate::home::{PREFIX, namespace_path};
use crate::netns;
use crate::overlay::datapath_error;

pub(super) const OVERHEAD_BYTES: u32 = vxlan::OVERHEAD_BYTES as u32;
/// Receive queues of the underlay.
pub(super) const QUEUES: u16 = 4;
pub(super) const OUTER: [Ipv4Addr; 2] = [Ipv4Addr::new(192, 0, 2, 1), Ipv4Addr::new(192, 0, 2, 2)];
pub(super) const INNER: [Ipv4Addr; 2] = [Ipv4Addr::new(198, 18, 0, 1), Ipv4Addr::new(198, 19, 0, 1)];
const VNI: u32 = 42;

/// Who makes tunnel packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Kind {
    /// The kernel's device.
    #[default]
    Kernel,
    /// Our VTEP, with a veth pair between it and the stack.
    Weft,
}

impl Kind {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Kernel => "kernel vxlan",
            Self::Weft => "weft vtep",
        }
    }

    /// What must be possible for it; `None`: no eBPF.
    pub(super) fn needs(self) -> Option<Use> {
        match self {
            Self::Kernel => None,
            Self::Weft => Some(Use::Vtep),
        }
    }
}

/// How the tunnel is set up; the defaults are right, tests set them wrong.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tunnel {
    pub(super) kind: Kind,
    pub(super) underlay_mtu: u32,
    pub(super) inner_mtu: u32,
    /// Range of the kernel device's outer source ports; `None`: the kernel's own.
    pub(super) source_ports: Option<(u16, u16)>,
}

impl Default for Tunnel {
    fn default() -> Self {
        Self { kind: Kind::Kernel, underlay_mtu: 1500, inner_mtu: 1500 - OVERHEAD_BYTES, source_ports: None }
    }
}

/// Two namespaces, which go when this is dropped, and what runs in them. Fields end in this order.
pub(super) struct Ends {
    _vteps: Vec<Vtep>,
    names: Names,
}

struct Names([String; 2]);

impl Drop for Names {
    fn drop(&mut self) {
        let _gone = netns::delete(&self.0);
    }
}

impl Ends {
    pub(super) fn new(tunnel: &Tunnel) -> Result<Self, LabError> {
        let id = std::process::id();
        let names = Names(["left", "right"].map(|node| format!("{PREFIX}doctor{id}-{node}")));
        netns::create(&names.0, |_| Ok(()))?;
        let [left, right] = &names.0;
        let mtu = tunnel.underlay_mtu;
        let pair = format!(
            "link add dev u0 mtu {mtu} numtxqueues {QUEUES} numrxqueues {QUEUES} type veth peer name u0 mtu {mtu} \
             numtxqueues {QUEUES} numrxqueues {QUEUES} netns {right}"
        );
        in_end(left, || batch::run(Program::Ip, "left", &[pair]))??;
        let mut vteps = Vec::new();
        for (place, end) in names.0.iter().enumerate() {
            in_end(end, || batch::run(Program::Ip, end, &tunnel.lines(place)))??;
            if tunnel.kind == Kind::Weft {
                vteps.push(in_end(end, || vtep(place))?.map_err(|error| datapath_error(end, &error))?);
            }
        }
        Ok(Self { _vteps: vteps, names })
    }

    pub(super) fn left(&self) -> &str {
        &self.names.0[0]
    }

    pub(super) fn right(&self) -> &str {
        &self.names.0[1]
    }
}

impl Tunnel {
    fn lines(&self, place: usize) -> Vec<String> {
        let (own, other) = (OUTER[place], OUTER[1 - place]);
        let ports = self.source_ports.map_or(String::new(), |(low, high)| format!(" srcport {low} {high}"));
        let mtu = self.inner_mtu;
        let device = match self.kind {
            Kind::Kernel => format!(
                "link add dev vx0 mtu {mtu} type vxlan id {VNI} dstport {UDP_PORT} local {own} remote {other} dev u0{ports}"
            ),
            Kind::Weft => format!("link add dev vx0 mtu {mtu} type veth peer name p0 mtu {mtu}"),
        };
        let mut lines = vec![
            format!("address add {own}/24 dev u0"),
            "link set dev u0 up".to_owned(),
            device,
            format!("address add {}/15 dev vx0", INNER[place]),
            "link set dev vx0 up".to_owned(),
        ];
        lines.extend((self.kind == Kind::Weft).then(|| "link set dev p0 up".to_owned()));
        lines
    }
}

/// The shipped data path between `p0` and `u0`.
fn vtep(place: usize) -> Result<Vtep, DatapathError> {
    let mut vtep = Vtep::load(&VtepOptions::new(OUTER[place]))?;
    let vni = Vni::new(VNI).expect("a constant that is a VNI");
    vtep.attach_uplink(interface_index("u0")?)?;
    vtep.add_vni(vni, &VniSettings { flood: Flood::HeadEnd(vec![OUTER[1 - place]]), ..VniSettings::default() })?;
    vtep.attach_access(interface_index("p0")?, vni, AccessRule::default())?;
    Ok(vtep)
}

pub(super) fn in_end<T: Send>(end: &str, work: impl FnOnce() -> T + Send) -> Result<T, LabError> {
    netns::in_namespace(&namespace_path(end), work)
}
