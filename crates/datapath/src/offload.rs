//! What an interface does for the stack: XDP needs some of it off at hosts, and GRO on where frames are sent to.
#![allow(unsafe_code)]

use std::io::{Error, ErrorKind};
use std::os::fd::AsRawFd;

use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};

use crate::error::DatapathError;

/// One of the things that can be turned on or off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offload {
    /// Leaving checksums of what is sent to the interface. A frame that XDP redirects never gets them: off at hosts.
    TxChecksum,
    /// Segmenting what is sent.
    Tso,
    /// Segmenting what is sent, late in the stack.
    Gso,
    /// Joining what is received. A veth interface without an XDP program needs it to take what is redirected to it.
    Gro,
}

/// `SIOCETHTOOL` of `linux/sockios.h`.
const ETHTOOL: u32 = 0x8946;

/// `struct ethtool_value` of `linux/ethtool.h`.
#[repr(C)]
struct Value {
    command: u32,
    data: u32,
}

impl Offload {
    /// `ETHTOOL_S...` of `linux/ethtool.h`.
    fn command(self) -> u32 {
        match self {
            Self::TxChecksum => 0x17,
            Self::Tso => 0x1f,
            Self::Gso => 0x24,
            Self::Gro => 0x2c,
        }
    }
}

/// Turns it on or off at an interface of the caller's network namespace.
///
/// # Errors
/// [`DatapathError::NoInterface`], [`DatapathError::NoRights`], or [`DatapathError::Program`] if the driver refuses.
pub fn set(interface: &str, what: Offload, on: bool) -> Result<(), DatapathError> {
    let missing = || DatapathError::NoInterface { name: interface.to_owned() };
    let failed = |source: Error| match source.kind() {
        ErrorKind::PermissionDenied => DatapathError::NoRights { what: format!("setting {what:?} of `{interface}`") },
        _ => DatapathError::from_kernel(format!("setting {what:?} of `{interface}`"), source.into()),
    };
    let socket = socket_with(AddressFamily::INET, SocketType::DGRAM, SocketFlags::CLOEXEC, None)
        .map_err(|errno| failed(errno.into()))?;
    let mut value = Value { command: what.command(), data: on.into() };
    // SAFETY: an ifreq is plain data, for which zero is a value.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    if interface.len() >= request.ifr_name.len() {
        return Err(missing());
    }
    for (to, from) in request.ifr_name.iter_mut().zip(interface.bytes()) {
        *to = from.cast_signed();
    }
    request.ifr_ifru.ifru_data = std::ptr::from_mut(&mut value).cast();
    // SAFETY: the request names a terminated interface and points to a value, both alive during the call.
    match unsafe { libc::ioctl(socket.as_raw_fd(), ETHTOOL.into(), std::ptr::from_mut(&mut request)) } {
        0 => Ok(()),
        _ => Err(match Error::last_os_error() {
            error if error.raw_os_error() == Some(libc::ENODEV) => missing(),
            error => failed(error),
        }),
    }
}
