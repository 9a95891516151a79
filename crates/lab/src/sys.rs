//! System calls that several parts of the lab need and no library offers in this form.
#![allow(unsafe_code)]

use std::io;
use std::mem::{size_of, zeroed};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use rustix::net::{AddressFamily, SocketFlags, SocketType, netdevice, socket_with};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::thread::{CpuSet, sched_getaffinity};

/// A clock's time, nanoseconds.
pub(crate) use weft_datapath::clock::ns as now_ns;

/// Lets this process open so many files, or as many as it may.
pub(crate) fn raise_file_limit(files: u64) {
    let limit = getrlimit(Resource::Nofile);
    if limit.current.is_some_and(|current| current < files) {
        let current = Some(limit.maximum.map_or(files, |most| most.min(files)));
        let _ = setrlimit(Resource::Nofile, Rlimit { current, maximum: limit.maximum });
    }
}

/// The last core that this process may use: the first ones have the kernel's own work.
pub(crate) fn last_core() -> io::Result<usize> {
    let allowed = sched_getaffinity(None)?;
    (0..CpuSet::MAX_CPU).rfind(|&core| allowed.is_set(core)).ok_or_else(|| io::Error::other("no core is allowed"))
}

/// Sets a socket option that is one number.
pub(crate) fn set_option(socket: impl AsFd, level: i32, option: i32, value: i32) -> io::Result<()> {
    // SAFETY: pointer and length describe `value`, which lives through the call.
    check(unsafe {
        libc::setsockopt(
            socket.as_fd().as_raw_fd(),
            level,
            option,
            (&raw const value).cast(),
            size_of::<libc::c_int>() as libc::socklen_t,
        )
    })
}

/// A packet socket (`AF_PACKET`) of the calling thread's namespace. Nothing arrives until it is bound.
pub(crate) fn packet_socket() -> io::Result<OwnedFd> {
    Ok(socket_with(AddressFamily::PACKET, SocketType::RAW, SocketFlags::CLOEXEC, None)?)
}

/// Binds a packet socket to an interface of the namespace that it was opened in, to receive frames of an Ethertype; of
/// none with 0. `ENODEV` if there is no interface of that name.
pub(crate) fn bind_to_interface(socket: &OwnedFd, interface: &str, ethertype: u16) -> io::Result<()> {
    let index = netdevice::name_to_index(socket, interface)?;
    // SAFETY: all-zero is a valid value of this plain C structure.
    let mut address: libc::sockaddr_ll = unsafe { zeroed() };
    address.sll_family = libc::AF_PACKET as u16;
    address.sll_protocol = ethertype.to_be();
    address.sll_ifindex = index as i32;
    // SAFETY: the pointer and length describe `address`, which lives through the call.
    check(unsafe {
        libc::bind(socket.as_raw_fd(), (&raw const address).cast(), size_of::<libc::sockaddr_ll>() as libc::socklen_t)
    })
}

/// What a system call returned, as a result.
pub(crate) fn check(result: libc::c_int) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interface_that_is_not_there_is_said_so() {
        if !weft_needs::root() {
            return;
        }
        let socket = packet_socket().unwrap();
        for name in ["weft-nowhere", "", "a-name-that-is-too-long", "with\0zero"] {
            let error = bind_to_interface(&socket, name, 0).unwrap_err();
            assert_eq!(error.raw_os_error(), Some(libc::ENODEV), "{name:?}");
        }
        bind_to_interface(&socket, "lo", 0).unwrap();
    }
}
