//! The UDP socket by which a daemon speaks with directory servers.

use std::io::ErrorKind;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, UdpSocket};

use crate::error::NodeError;

/// A socket for directory datagrams on this host's LA.
pub(crate) fn bind(la: Ipv4Addr, port: u16) -> Result<UdpSocket, NodeError> {
    let address = SocketAddrV4::new(la, port);
    let socket = UdpSocket::bind(address).map_err(|error| match error.kind() {
        ErrorKind::AddrInUse => NodeError::AddressInUse { address },
        ErrorKind::AddrNotAvailable => {
            NodeError::config("la", format!("{la} is not an address of this host; add it first"))
        }
        _ => NodeError::system(format!("binding UDP {address}"))(error),
    })?;
    crate::directory::set_up_socket(&socket).map_err(NodeError::system("setting up the UDP socket"))?;
    Ok(socket)
}

/// Where its datagrams come from.
pub(crate) fn local(socket: &UdpSocket) -> Result<SocketAddrV4, NodeError> {
    match socket.local_addr().map_err(NodeError::system("reading the UDP socket's address"))? {
        SocketAddr::V4(address) => Ok(address),
        SocketAddr::V6(address) => unreachable!("{address}: it was bound to an IPv4 address"),
    }
}
