//! Interfaces of the caller's network namespace by name.
#![allow(unsafe_code)]

use std::io::Error;
use std::os::fd::AsRawFd;

use rustix::net::{AddressFamily, SocketFlags, SocketType, netdevice, socket_with};

use crate::error::DatapathError;

/// Its index.
///
/// # Errors
/// [`DatapathError::NoInterface`].
pub fn index_of(name: &str) -> Result<u32, DatapathError> {
    let missing = || DatapathError::NoInterface { name: name.to_owned() };
    let any_socket = socket_with(AddressFamily::INET, SocketType::DGRAM, SocketFlags::CLOEXEC, None)
        .map_err(|_no_ipv4_here| missing())?;
    netdevice::name_to_index(&any_socket, name).map_err(|_no_such_device| missing())
}

/// `None`: there is none with this index.
pub(crate) fn name_of(ifindex: u32) -> Option<String> {
    let any_socket = socket_with(AddressFamily::INET, SocketType::DGRAM, SocketFlags::CLOEXEC, None).ok()?;
    netdevice::index_to_name(&any_socket, ifindex).ok()
}

/// Sets an interface of the calling thread's namespace up.
pub(crate) fn set_up(name: &str) -> Result<(), Error> {
    let flags = libc::__c_anonymous_ifr_ifru { ifru_flags: libc::IFF_UP as libc::c_short };
    // SAFETY: the request has flags.
    unsafe { ask(name, libc::SIOCSIFFLAGS, flags) }
}

/// A request about an interface of the calling thread's namespace.
///
/// # Safety
/// `what` is as the request has it, and what it points to is alive.
pub(crate) unsafe fn ask(name: &str, request: libc::Ioctl, what: libc::__c_anonymous_ifr_ifru) -> Result<(), Error> {
    let any_socket = socket_with(AddressFamily::INET, SocketType::DGRAM, SocketFlags::CLOEXEC, None)?;
    let mut asked = libc::ifreq { ifr_name: [0; libc::IFNAMSIZ], ifr_ifru: what };
    if name.len() >= asked.ifr_name.len() {
        return Err(Error::from_raw_os_error(libc::ENODEV));
    }
    asked.ifr_name.iter_mut().zip(name.bytes()).for_each(|(to, byte)| *to = byte.cast_signed());
    // SAFETY: the interface's name is terminated; the rest is up to the caller.
    match unsafe { libc::ioctl(any_socket.as_raw_fd(), request, &raw mut asked) } {
        0.. => Ok(()),
        _ => Err(Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_is_first_and_unknown_names_are_refused_by_name() {
        assert_eq!(index_of("lo").ok(), Some(1));
        for name in ["weft-none", "", "a-name-of-more-than-fifteen-bytes"] {
            let error = index_of(name).expect_err("no such interface");
            assert!(error.to_string().contains(&format!("`{name}`")), "{error}");
        }
    }
}
