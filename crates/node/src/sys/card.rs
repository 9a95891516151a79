//! What an interface hears beside its own address, set for the interface and not for a socket: it stays when the process
//! ends, as pinned programs do, and setting it twice is setting it once.

use std::collections::BTreeSet;
use std::io;
use std::os::fd::AsRawFd;

use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, sendto, socket_with};

use super::{any_socket, interface_request};

/// Lets the interface take frames for a group, or no longer. This is what `ip maddress` does: the kernel counts it once,
/// beside the groups of sockets. An interface that hears everything anyway takes no groups, and that is no error.
pub(crate) fn set_group(interface: &str, group: [u8; 6], on: bool) -> io::Result<()> {
    let mut request = interface_request(interface)?;
    // SAFETY: an all-zero sockaddr is valid; its family, 0, says that the address is a bare one.
    let mut address: libc::sockaddr = unsafe { std::mem::zeroed() };
    for (to, from) in address.sa_data.iter_mut().zip(group) {
        *to = from as libc::c_char;
    }
    request.ifr_ifru.ifru_hwaddr = address;
    let what = if on { libc::SIOCADDMULTI } else { libc::SIOCDELMULTI };
    // SAFETY: the request names a terminated interface and holds an address; the kernel reads both.
    match unsafe { libc::ioctl(any_socket()?.as_raw_fd(), what as libc::Ioctl, &raw mut request) } {
        0 => Ok(()),
        _ => match io::Error::last_os_error() {
            // The driver filters nothing.
            error if error.raw_os_error() == Some(libc::EINVAL) => Ok(()),
            // Somebody else has removed it.
            error if !on && error.raw_os_error() == Some(libc::ENOENT) => Ok(()),
            error => Err(error),
        },
    }
}

/// The groups that were set on the interface, by us or another, and not by a socket.
pub(crate) fn set_groups(ifindex: u32) -> BTreeSet<[u8; 6]> {
    groups_in(&std::fs::read_to_string("/proc/thread-self/net/dev_mcast").unwrap_or_default(), ifindex)
}

/// Lines are: index, name, users, whether it was set for the interface, address.
fn groups_in(table: &str, ifindex: u32) -> BTreeSet<[u8; 6]> {
    let line = |line: &str| {
        let mut words = line.split_whitespace();
        let (index, _name, _users) = (words.next()?, words.next()?, words.next()?);
        let (is_set, address) = (words.next()?, words.next()?);
        let is_meant = index.parse() == Ok(ifindex) && is_set != "0" && address.len() == 12;
        let number = u64::from_str_radix(address, 16).ok().filter(|_| is_meant)?;
        let [_, _, group @ ..] = number.to_be_bytes();
        Some(group)
    };
    table.lines().filter_map(line).collect()
}

/// Whether somebody has let the interface take frames for any address, other than by a socket.
pub(crate) fn takes_all(interface: &str) -> io::Result<bool> {
    let mut request = interface_request(interface)?;
    // SAFETY: the request names a terminated interface; the kernel writes its union.
    if unsafe { libc::ioctl(any_socket()?.as_raw_fd(), libc::SIOCGIFFLAGS, &raw mut request) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the request succeeded, so its union holds the flags.
    Ok(i32::from(unsafe { request.ifr_ifru.ifru_flags }) & libc::IFF_PROMISC != 0)
}

/// Lets the interface take frames for any address, or no longer. Other flags stay what they are at that moment, for which
/// netlink has a mask and the older request has none.
pub(crate) fn take_all(ifindex: u32, on: bool) -> io::Result<()> {
    let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, None)?;
    let message = flags_message(ifindex, libc::IFF_PROMISC as u32, on);
    sendto(&socket, &message, SendFlags::empty(), &SocketAddrNetlink::new(0, 0))?;
    let mut answer = [0; 256];
    let (_, length) = recv(&socket, &mut answer[..], RecvFlags::empty())?;
    // `struct nlmsgerr` follows the header: first the negative errno.
    match answer.get(16..20).filter(|_| length >= 20).and_then(|bytes| Some(i32::from_ne_bytes(bytes.try_into().ok()?)))
    {
        Some(0) => Ok(()),
        Some(error) => Err(io::Error::from_raw_os_error(-error)),
        None => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

/// `RTM_NEWLINK` with an acknowledgement: `struct nlmsghdr` and `struct ifinfomsg`.
fn flags_message(ifindex: u32, flag: u32, on: bool) -> [u8; 32] {
    let mut message = [0; 32];
    message[..4].copy_from_slice(&32u32.to_ne_bytes());
    message[4..6].copy_from_slice(&libc::RTM_NEWLINK.to_ne_bytes());
    message[6..8].copy_from_slice(&((libc::NLM_F_REQUEST | libc::NLM_F_ACK) as u16).to_ne_bytes());
    message[20..24].copy_from_slice(&ifindex.to_ne_bytes());
    message[24..28].copy_from_slice(&(if on { flag } else { 0 }).to_ne_bytes());
    message[28..32].copy_from_slice(&flag.to_ne_bytes());
    message
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_of_sockets_and_of_other_interfaces_are_none_of_ours() {
        let table = "2    eth0            1     0     01005e000001\n\
                     2    eth0            2     1     0180c2000040\n\
                     3    eth1            1     1     0180c2000041\n\
                     4    ib0             1     1     00ffffffff12401b0000000000000000ffffffff\n\
                     nonsense\n";
        assert_eq!(groups_in(table, 2), BTreeSet::from([[0x01, 0x80, 0xc2, 0, 0, 0x40]]));
        assert_eq!(groups_in(table, 4), BTreeSet::new());
    }

    #[test]
    fn what_is_not_there_is_refused() {
        assert!(set_group("weft-none", [1; 6], true).is_err() && takes_all("weft-none").is_err());
        assert!(take_all(u32::MAX >> 1, true).is_err());
    }
}
