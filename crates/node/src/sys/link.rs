//! Interfaces as an RBridge's ports: whether they carry frames, and a socket that is readable when that may have changed.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::{AddressFamily, RecvFlags, SocketFlags, SocketType, bind, recv, socket_with};

use super::{any_socket, interface_request};

/// `RTMGRP_LINK` of `linux/rtnetlink.h`: interfaces come, go and change.
const LINK_GROUP: u32 = 1;
/// `SIOCETHTOOL` of `linux/sockios.h`.
const ETHTOOL: libc::Ioctl = 0x8946;
/// `ETHTOOL_GLINK` of `linux/ethtool.h`.
const GET_LINK: u32 = 0x0a;
/// `ETHTOOL_GSET`: settings, among them the speed.
const GET_SETTINGS: u32 = 0x01;

/// What the kernel says of an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LinkState {
    pub(crate) index: u32,
    /// It is set up and has carrier.
    pub(crate) is_up: bool,
    pub(crate) mtu: u32,
    pub(crate) mac: [u8; 6],
}

/// The interfaces of the network namespace that it was opened in.
#[derive(Debug)]
pub(crate) struct Links {
    requests: OwnedFd,
    changes: OwnedFd,
}

impl Links {
    pub(crate) fn open() -> io::Result<Self> {
        // No protocol is protocol 0, which is NETLINK_ROUTE.
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let changes = socket_with(AddressFamily::NETLINK, SocketType::RAW, flags, None)?;
        bind(&changes, &SocketAddrNetlink::new(0, LINK_GROUP))?;
        Ok(Self { requests: any_socket()?, changes })
    }

    /// Forgets which changes were told: the caller looks at all its interfaces. Whatever is lost for want of room was
    /// a change, too.
    pub(crate) fn drain(&self) {
        let mut buffer = [0; 4096];
        while matches!(recv(&self.changes, &mut buffer[..], RecvFlags::TRUNC), Ok(_) | Err(Errno::NOBUFS | Errno::INTR))
        {
        }
    }

    /// `None`: there is no interface of that name.
    pub(crate) fn state(&self, name: &str) -> Option<LinkState> {
        let index = rustix::net::netdevice::name_to_index(&self.requests, name).ok()?;
        let flags = self.get(name, libc::SIOCGIFFLAGS).ok()?;
        let mtu = self.get(name, libc::SIOCGIFMTU).ok()?;
        let mac = self.get(name, libc::SIOCGIFHWADDR).ok()?;
        // SAFETY: each request succeeded, so its union holds the flags, the MTU, the address.
        let (flags, mtu, data) =
            unsafe { (flags.ifr_ifru.ifru_flags, mtu.ifr_ifru.ifru_mtu, mac.ifr_ifru.ifru_hwaddr.sa_data) };
        let is_set_up = i32::from(flags) & libc::IFF_UP != 0;
        Some(LinkState {
            index,
            is_up: is_set_up && self.has_carrier(name),
            mtu: u32::try_from(mtu).unwrap_or(0),
            mac: std::array::from_fn(|place| data[place] as u8),
        })
    }

    /// From the driver, which knows it at once; flags and messages of the kernel may follow a second later. A driver that
    /// does not say has carrier.
    fn has_carrier(&self, name: &str) -> bool {
        let mut value = [GET_LINK, 0];
        self.ethtool(name, &mut value).is_err() || value[1] != 0
    }

    /// What the interface can send, bit/s, if it says so.
    pub(crate) fn rate_bps(&self, name: &str) -> Option<u64> {
        // `struct ethtool_cmd`: the speed in Mbit/s, its lower half in the fourth word, its upper half in the eighth.
        let mut settings = [0; 11];
        settings[0] = GET_SETTINGS;
        self.ethtool(name, &mut settings).ok()?;
        let mbit_per_s = settings[7] << 16 | (settings[3] & 0xffff);
        Some(u64::from(mbit_per_s) * 1_000_000).filter(|_| mbit_per_s != 0 && mbit_per_s != u32::MAX)
    }

    fn get(&self, name: &str, what: libc::Ioctl) -> io::Result<libc::ifreq> {
        let mut request = interface_request(name)?;
        // SAFETY: the request names a terminated interface; the kernel writes its union.
        match unsafe { libc::ioctl(self.requests.as_raw_fd(), what, &raw mut request) } {
            0 => Ok(request),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// `words` begin with the command, and are as many as it has.
    fn ethtool(&self, name: &str, words: &mut [u32]) -> io::Result<()> {
        let mut request = interface_request(name)?;
        request.ifr_ifru.ifru_data = words.as_mut_ptr().cast();
        // SAFETY: the request names a terminated interface and points to the words, alive during the call.
        match unsafe { libc::ioctl(self.requests.as_raw_fd(), ETHTOOL, &raw mut request) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

/// Readable when an interface has come, gone or changed.
impl AsFd for Links {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.changes.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_is_there_and_others_are_not() {
        let links = Links::open().unwrap();
        let state = links.state("lo").expect("loopback is everywhere");
        assert_eq!((state.index, state.mac), (1, [0; 6]));
        assert_eq!(links.state("weft-none"), None);
        assert_eq!((links.rate_bps("lo"), links.rate_bps("weft-none")), (None, None));
        links.drain();
    }
}
