//! Interfaces of the caller's network namespace by name.

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
#[allow(unsafe_code)]
pub(crate) fn set_up(name: &str) -> std::io::Result<()> {
    use std::os::fd::AsRawFd;

    let any_socket = socket_with(AddressFamily::INET, SocketType::DGRAM, SocketFlags::CLOEXEC, None)?;
    // SAFETY: all bits zero is a request.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    let room = request.ifr_name.iter_mut().take(libc::IFNAMSIZ - 1);
    room.zip(name.bytes()).for_each(|(to, byte)| *to = byte.cast_signed());
    request.ifr_ifru.ifru_flags = libc::IFF_UP as libc::c_short;
    // SAFETY: the request names a terminated interface and has its flags.
    match unsafe { libc::ioctl(any_socket.as_raw_fd(), libc::SIOCSIFFLAGS, &raw const request) } {
        0 => Ok(()),
        _ => Err(std::io::Error::last_os_error()),
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
