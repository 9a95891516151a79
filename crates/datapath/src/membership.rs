//! Membership in a multicast group of the underlay: sockets that the kernel keeps it by.

use std::net::Ipv4Addr;
use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::net::sockopt::{set_ip_add_membership_with_ifindex, set_ip_add_source_membership};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};

use crate::error::DatapathError;

/// Sources of a group that one socket may have (`net.ipv4.igmp_max_msf`), unless somebody changed that.
const SOURCES_MAX: usize = 10;

/// Joins a group on an interface; the membership ends with the socket.
pub(crate) fn join(group: Ipv4Addr, ifindex: u32) -> Result<OwnedFd, DatapathError> {
    let socket = socket(group, ifindex)?;
    set_ip_add_membership_with_ifindex(&socket, &group, &Ipv4Addr::UNSPECIFIED, ifindex)
        .map_err(failed(group, ifindex))?;
    Ok(socket)
}

/// Joins a group for what these sources send to it (RFC 4607), on the interface with the address `own`.
pub(crate) fn join_sources(
    group: Ipv4Addr,
    sources: &[Ipv4Addr],
    own: Ipv4Addr,
    ifindex: u32,
) -> Result<Vec<OwnedFd>, DatapathError> {
    let join = |sources: &[Ipv4Addr]| {
        let socket = socket(group, ifindex)?;
        for source in sources {
            set_ip_add_source_membership(&socket, &group, &own, source).map_err(failed(group, ifindex))?;
        }
        Ok(socket)
    };
    sources.chunks(SOURCES_MAX).map(join).collect()
}

fn socket(group: Ipv4Addr, ifindex: u32) -> Result<OwnedFd, DatapathError> {
    socket_with(AddressFamily::INET, SocketType::DGRAM, SocketFlags::CLOEXEC, None).map_err(failed(group, ifindex))
}

fn failed(group: Ipv4Addr, ifindex: u32) -> impl Fn(Errno) -> DatapathError {
    move |errno| DatapathError::Config {
        field: "group",
        why: format!("joining {group} on interface {ifindex} failed ({errno}); is the interface up, with multicast?"),
    }
}
