//! The few system calls that no safe wrapper offers: packet sockets, batches of datagrams, what the kernel says of an
//! interface.
#![allow(unsafe_code)]

mod card;
pub mod datagrams;
mod link;
mod packet;

pub(crate) use card::{set_group, set_groups, take_all, takes_all};
pub(crate) use datagrams::{Inbox, Outbox, receive_bursts, share_port};
pub(crate) use link::{LinkState, Links};
pub(crate) use packet::{FrameSender, PacketSocket, Received, TypeSocket, VNET_LEN};

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};

/// The index of an interface of this network namespace.
pub(crate) fn interface_index(name: &str) -> io::Result<u32> {
    let socket = any_socket()?;
    Ok(rustix::net::netdevice::name_to_index(&socket, name)?)
}

/// The MTU of an interface of this network namespace, bytes.
pub(crate) fn interface_mtu(name: &str) -> io::Result<u32> {
    let socket = any_socket()?;
    let mut request = interface_request(name)?;
    // SAFETY: SIOCGIFMTU reads the name of the request, which is terminated, and writes its union.
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCGIFMTU, &raw mut request) };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: SIOCGIFMTU succeeded, so the union holds the MTU.
    Ok(u32::try_from(unsafe { request.ifr_ifru.ifru_mtu }).unwrap_or(0))
}

/// The MAC of an interface of this network namespace.
pub(crate) fn interface_mac(name: &str) -> io::Result<[u8; 6]> {
    let socket = any_socket()?;
    let mut request = interface_request(name)?;
    // SAFETY: SIOCGIFHWADDR reads the name of the request, which is terminated, and writes its union.
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCGIFHWADDR, &raw mut request) };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: SIOCGIFHWADDR succeeded, so the union holds the address, whose first six bytes are the MAC.
    let data = unsafe { request.ifr_ifru.ifru_hwaddr.sa_data };
    Ok(std::array::from_fn(|index| data[index] as u8))
}

/// Sixteen bytes that nobody can foresee.
pub(crate) fn random_u128() -> io::Result<u128> {
    let mut bytes = [0u8; 16];
    let count = rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())?;
    // The kernel interrupts no request this short.
    if count == bytes.len() { Ok(u128::from_ne_bytes(bytes)) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
}

fn any_socket() -> io::Result<OwnedFd> {
    Ok(socket_with(AddressFamily::INET, SocketType::DGRAM, SocketFlags::CLOEXEC, None)?)
}

fn interface_request(name: &str) -> io::Result<libc::ifreq> {
    // SAFETY: an all-zero ifreq is valid.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    if name.len() >= request.ifr_name.len() {
        return Err(io::Error::from_raw_os_error(libc::ENODEV));
    }
    for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *to = from as libc::c_char;
    }
    Ok(request)
}

/// Sets an option whose value is an int.
fn set_int(fd: i32, level: i32, name: i32, value: i32) -> io::Result<()> {
    // SAFETY: the kernel reads one int from a pointer to one.
    let result = unsafe {
        libc::setsockopt(fd, level, name, (&raw const value).cast(), size_of::<libc::c_int>() as libc::socklen_t)
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
