//! Stations behind a trunk: sends frames with a tag and shows the tag of those that come in, which the kernel keeps beside
//! the frame.
#![allow(unsafe_code)]

use std::mem::{size_of, zeroed};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::net::{SendFlags, send};

use super::netns::Namespace;

const FRAME_MAX: usize = 4096;
const IGNORE_OUTGOING: libc::c_int = 23; // PACKET_IGNORE_OUTGOING of linux/if_packet.h

/// A packet socket on the end of a trunk.
pub struct TrunkTap(OwnedFd);

/// `inner` with a tag of a VLAN in it; 0: as it is.
pub fn tagged(vlan: u16, inner: &[u8]) -> Vec<u8> {
    if vlan == 0 {
        return inner.to_vec();
    }
    [&inner[..12], &[0x81, 0x00], &vlan.to_be_bytes(), &inner[12..]].concat()
}

impl TrunkTap {
    pub fn open(namespace: &Namespace, interface: &str) -> Self {
        Self(namespace.enter(|| bound(interface)))
    }

    pub fn send(&self, frame: &[u8]) {
        assert_eq!(send(&self.0, frame, SendFlags::empty()), Ok(frame.len()), "the frame is sent");
    }

    /// The next frame: VLAN ID (0: no tag) and the frame without it; `None` after the wait.
    pub fn next(&self, wait: Duration) -> Option<(u16, Vec<u8>)> {
        let deadline = Instant::now() + wait;
        loop {
            if let Some(found) = self.poll() {
                return Some(found);
            }
            if Instant::now() >= deadline {
                return None;
            }
            std::thread::sleep(Duration::from_micros(100));
        }
    }

    /// The same without a wait.
    pub fn poll(&self) -> Option<(u16, Vec<u8>)> {
        let mut frame = vec![0u8; FRAME_MAX];
        let mut control = [0u64; 16];
        let mut part = libc::iovec { iov_base: frame.as_mut_ptr().cast(), iov_len: frame.len() };
        // SAFETY: plain data; the buffers outlive the call and are given with their sizes; control messages are read by
        // the kernel's own macros, within the length that it wrote.
        let (length, vlan) = unsafe {
            let mut header: libc::msghdr = zeroed();
            (header.msg_iov, header.msg_iovlen) = (&raw mut part, 1);
            (header.msg_control, header.msg_controllen) = (control.as_mut_ptr().cast(), size_of_val(&control));
            let length = libc::recvmsg(self.0.as_raw_fd(), &raw mut header, libc::MSG_DONTWAIT);
            let mut vlan = 0;
            let mut message = libc::CMSG_FIRSTHDR(&raw const header);
            while length > 0 && !message.is_null() {
                if ((*message).cmsg_level, (*message).cmsg_type) == (libc::SOL_PACKET, libc::PACKET_AUXDATA) {
                    let aux = libc::CMSG_DATA(message).cast::<libc::tpacket_auxdata>().read_unaligned();
                    if aux.tp_status & libc::TP_STATUS_VLAN_VALID != 0 {
                        vlan = aux.tp_vlan_tci & 0xfff;
                    }
                }
                message = libc::CMSG_NXTHDR(&raw const header, message);
            }
            (length, vlan)
        };
        frame.truncate(usize::try_from(length).ok()?);
        Some((vlan, frame))
    }
}

fn bound(interface: &str) -> OwnedFd {
    let name = std::ffi::CString::new(interface).expect("no NUL in it");
    // SAFETY: the name is a C string; address and options are plain data, filled and passed with their sizes; the
    // descriptor is checked, and nobody else owns it.
    unsafe {
        let raw = libc::socket(libc::AF_PACKET, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0);
        assert!(raw >= 0, "root may open packet sockets");
        let socket = OwnedFd::from_raw_fd(raw);
        for (option, value) in [(libc::PACKET_AUXDATA, 1), (IGNORE_OUTGOING, 1)] {
            let value: libc::c_int = value;
            let size = size_of_val(&value) as libc::socklen_t;
            let set = libc::setsockopt(raw, libc::SOL_PACKET, option, std::ptr::from_ref(&value).cast(), size);
            assert_eq!(set, 0, "option {option}");
        }
        let buffer: libc::c_int = 8 << 20;
        let size = size_of_val(&buffer) as libc::socklen_t;
        libc::setsockopt(raw, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, std::ptr::from_ref(&buffer).cast(), size);
        let mut address: libc::sockaddr_ll = zeroed();
        address.sll_family = libc::AF_PACKET as u16;
        address.sll_protocol = (libc::ETH_P_ALL as u16).to_be();
        address.sll_ifindex = libc::if_nametoindex(name.as_ptr()).cast_signed();
        let size = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
        assert_eq!(libc::bind(raw, std::ptr::from_ref(&address).cast(), size), 0, "it can be bound");
        socket
    }
}
