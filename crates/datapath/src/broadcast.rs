//! Broadcast and multicast of a server (VL2 4.2.3): see `bpf/lib/vl2_broadcast.h` and `bpf/lib/vl2_receive.h`.

use std::net::Ipv4Addr;
use std::os::fd::OwnedFd;

use libbpf_rs::{Object, OpenObject};
use weft_wire::block::Block;

use crate::abi::{BROADCAST_TO_GROUP, BROADCAST_TO_MEMBERS, BroadcastConstants};
use crate::error::DatapathError;
use crate::host::TokenBucket;
use crate::table::Table;
use crate::{membership, object};

/// The map of the counters of what comes in.
pub(crate) const COUNTERS: &str = "receive_counters";
const MEMBERS: &str = "broadcast_members";

/// Whom a server's broadcast and multicast reach, and how much of it leaves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broadcast {
    /// The server's AA: nothing else is a source.
    pub aa: Ipv4Addr,
    /// The server's LA: the outer headers' source.
    pub la: Ipv4Addr,
    /// The block of all LAs: outer sources from elsewhere are not believed.
    pub la_block: Block,
    /// LAs of the service's other servers: only they are believed.
    pub members: Vec<Ipv4Addr>,
    /// The service's multicast group in the underlay, which the server joins while its data path is attached by this
    /// process; `None`: every member gets a copy.
    pub group: Option<Ipv4Addr>,
    /// Largest IPv4 packet that the members' interfaces take in, outer header included, bytes; at most
    /// [`crate::host::HostConfig::underlay_mtu`]. What is larger is dropped and counted as `broadcast_too_big`.
    pub mtu: u32,
    /// What leaves, of frames without FCS and without outer headers, before copying. What is beyond is dropped and counted
    /// as `broadcast_limited`.
    pub limit: TokenBucket,
}

impl Broadcast {
    fn constants(&self) -> BroadcastConstants {
        let delivery = if self.group.is_some() { BROADCAST_TO_GROUP } else { BROADCAST_TO_MEMBERS };
        BroadcastConstants {
            limit_ps_per_byte: self.limit.ps_per_byte(),
            limit_burst_ns: self.limit.burst_ns(),
            aa: self.aa.octets(),
            la: self.la.octets(),
            la_network: self.la_block.network().octets(),
            la_mask: self.la_block.netmask().octets(),
            group: self.group.unwrap_or(Ipv4Addr::UNSPECIFIED).octets(),
            delivery,
            members: self.members.len() as u32,
            mtu: self.mtu,
        }
    }

    /// Whether it makes sense, in a fabric that carries packets of this length.
    pub(crate) fn check(&self, underlay_mtu: u32) -> Result<(), DatapathError> {
        self.limit.check("broadcast", underlay_mtu)?;
        let why = match self.group {
            Some(group) if !group.is_multicast() => format!("{group} is no multicast group"),
            _ if self.members.contains(&self.la) => format!("{} would be its own member", self.la),
            _ if self.mtu > underlay_mtu => {
                format!("packets of {} bytes do not fit the fabric, which carries {underlay_mtu}", self.mtu)
            }
            _ => return Ok(()),
        };
        Err(DatapathError::Config { field: "broadcast", why })
    }

    /// Joins the group, if there is one, for what the members send to it.
    pub(crate) fn join(&self, ifindex: u32) -> Result<Vec<OwnedFd>, DatapathError> {
        let group = self.group.map(|group| membership::join_sources(group, &self.members, self.la, ifindex));
        group.unwrap_or_else(|| Ok(Vec::new()))
    }
}

/// Sets an object up before it is loaded. Without broadcast the half for what comes in is not loaded.
pub(crate) fn prepare(
    open: &mut OpenObject,
    broadcast: Option<&Broadcast>,
    ingress: &str,
) -> Result<(), DatapathError> {
    let mut program = open.progs_mut().find(|program| program.name() == ingress).expect("the object has this program");
    program.set_autoload(broadcast.is_some());
    let Some(broadcast) = broadcast else { return Ok(()) };
    object::set_constants(open, ".rodata.broadcast", &broadcast.constants());
    object::set_max_entries(open, MEMBERS, (broadcast.members.len() as u32).max(1))
}

/// Tells a loaded object who the members are.
pub(crate) fn set_members(object: &Object, broadcast: Option<&Broadcast>) -> Result<(), DatapathError> {
    let map = Table::of(object, MEMBERS)?;
    let mut members = broadcast.iter().flat_map(|broadcast| &broadcast.members);
    members.try_for_each(|member| map.put(&member.octets(), &1u32))
}
