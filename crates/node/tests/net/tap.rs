//! The far end of a link: sends and receives whole frames of an interface, without a host behind it.
#![allow(unsafe_code)]

use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use rustix::net::sockopt::set_socket_recv_buffer_size_force;
use rustix::net::{RecvFlags, SendFlags, recv, send};

use super::Namespace;

const FRAME_MAX: usize = 65_600;

/// A packet socket on one interface.
pub(crate) struct Tap {
    socket: OwnedFd,
    buffer: Vec<u8>,
}

impl Tap {
    /// One that sees what comes in, and with `outgoing` what goes out as well.
    pub(crate) fn open(namespace: &Namespace, interface: &str, outgoing: bool) -> Self {
        let socket = namespace.within(|| bound(interface, outgoing));
        set_socket_recv_buffer_size_force(&socket, 16 << 20).expect("root may have long buffers");
        Self { socket, buffer: vec![0; FRAME_MAX] }
    }

    pub(crate) fn send(&self, frame: &[u8]) {
        assert_eq!(send(&self.socket, frame, SendFlags::empty()), Ok(frame.len()), "the frame is sent");
    }

    /// The next frame, if there is one, without the tag around it.
    pub(crate) fn poll(&mut self) -> Option<&[u8]> {
        let (length, _) = recv(&self.socket, &mut self.buffer[..], RecvFlags::DONTWAIT).ok()?;
        Some(&self.buffer[..length])
    }

    /// The same with its tag in it, and the tag's VLAN; 0: there is none.
    pub(crate) fn poll_tagged(&mut self) -> Option<(u16, Vec<u8>)> {
        let mut beside = [0_u64; 16];
        let mut part = libc::iovec { iov_base: self.buffer.as_mut_ptr().cast(), iov_len: self.buffer.len() };
        // SAFETY: plain data; the buffers outlive the call and are given with their sizes; what lies beside the frame is read by the
        // kernel's own macros, within the length that it wrote.
        let (length, control) = unsafe {
            let mut header: libc::msghdr = std::mem::zeroed();
            (header.msg_iov, header.msg_iovlen) = (&raw mut part, 1);
            (header.msg_control, header.msg_controllen) = (beside.as_mut_ptr().cast(), size_of_val(&beside));
            let length = libc::recvmsg(self.socket.as_raw_fd(), &raw mut header, libc::MSG_DONTWAIT);
            let message = libc::CMSG_FIRSTHDR(&raw const header);
            let said = (length > 0 && !message.is_null())
                .then(|| libc::CMSG_DATA(message).cast::<libc::tpacket_auxdata>().read_unaligned());
            let has_tag = |said: &libc::tpacket_auxdata| said.tp_status & libc::TP_STATUS_VLAN_VALID != 0;
            (length, said.filter(has_tag).map(|said| said.tp_vlan_tci))
        };
        let frame = &self.buffer[..usize::try_from(length).ok()?];
        let Some(control) = control else { return Some((0, frame.to_vec())) };
        let tag = [[0x81, 0], control.to_be_bytes()].concat();
        Some((control & 0xfff, [&frame[..12], &tag, &frame[12..]].concat()))
    }
}

fn bound(interface: &str, outgoing: bool) -> OwnedFd {
    let name = std::ffi::CString::new(interface).expect("no NUL in it");
    // SAFETY: the name is a C string; the address and the option are plain data, passed with their size; the descriptor
    // is checked, and nobody else owns it.
    unsafe {
        let raw = libc::socket(libc::AF_PACKET, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0);
        assert!(raw >= 0, "root may open packet sockets");
        let socket = OwnedFd::from_raw_fd(raw);
        for (option, value) in [(libc::PACKET_IGNORE_OUTGOING, i32::from(!outgoing)), (libc::PACKET_AUXDATA, 1)] {
            let size = libc::socklen_t::try_from(size_of_val(&value)).expect("small");
            assert_eq!(libc::setsockopt(raw, libc::SOL_PACKET, option, std::ptr::from_ref(&value).cast(), size), 0);
        }
        let mut address: libc::sockaddr_ll = std::mem::zeroed();
        address.sll_family = libc::AF_PACKET as u16;
        address.sll_protocol = (libc::ETH_P_ALL as u16).to_be();
        address.sll_ifindex = libc::if_nametoindex(name.as_ptr()).cast_signed();
        let size = libc::socklen_t::try_from(size_of_val(&address)).expect("small");
        assert_eq!(libc::bind(socket.as_raw_fd(), std::ptr::from_ref(&address).cast(), size), 0, "it can be bound");
        socket
    }
}
