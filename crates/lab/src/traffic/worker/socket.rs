//! Sockets as the workers use them: non-blocking, with known ports; of TCP, their state from the kernel.
#![allow(unsafe_code)]

use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, connect, listen, socket_with, sockopt};
use weft_scenario::random::scramble;

use crate::sys::set_option;

/// Where every server listens.
pub(super) const PORT: u16 = 5001;
/// Where every server listens for broadcast.
pub(in crate::traffic) const STORM_PORT: u16 = 5002;
/// Source ports are chosen from here upwards, above all well-known ports.
const FIRST_SOURCE_PORT: u16 = 16_384;
const PORT_ATTEMPTS: u64 = 256;
const BACKLOG: i32 = 4096;

fn tcp_socket() -> io::Result<OwnedFd> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = socket_with(AddressFamily::INET, SocketType::STREAM, flags, None)?;
    sockopt::set_socket_reuseaddr(&socket, true)?;
    Ok(socket)
}

/// A socket that listens on [`PORT`] of this server.
pub(super) fn listener(address: Ipv4Addr) -> io::Result<OwnedFd> {
    let socket = tcp_socket()?;
    bind(&socket, &SocketAddrV4::new(address, PORT))?;
    listen(&socket, BACKLOG)?;
    Ok(socket)
}

/// Begins a connection. The source port follows from `seed` alone unless it is taken, so that the five-tuples, and with
/// them the paths that hashing switches choose, repeat from run to run.
pub(super) fn start_connection(from: Ipv4Addr, to: Ipv4Addr, seed: u64) -> io::Result<OwnedFd> {
    let range = u64::from(u16::MAX - FIRST_SOURCE_PORT) + 1;
    for attempt in 0..PORT_ATTEMPTS {
        let port = FIRST_SOURCE_PORT + (scramble(seed.wrapping_add(attempt << 48)) % range) as u16;
        let socket = tcp_socket()?;
        match bind(&socket, &SocketAddrV4::new(from, port)) {
            Ok(()) => {}
            Err(Errno::ADDRINUSE) => continue,
            Err(error) => return Err(error.into()),
        }
        match connect(&socket, &SocketAddrV4::new(to, PORT)) {
            Ok(()) | Err(Errno::INPROGRESS) => return Ok(socket),
            // The same five-tuple is in use or in TIME-WAIT.
            Err(Errno::ADDRNOTAVAIL | Errno::ADDRINUSE) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Err(Errno::ADDRNOTAVAIL.into())
}

/// A socket that sends to [`PORT`] of a server; what is written at once travels as one buffer and arrives as datagrams of
/// `payload_bytes`.
pub(super) fn datagram_sender(from: Ipv4Addr, to: Ipv4Addr, payload_bytes: u32) -> io::Result<OwnedFd> {
    let socket = datagram_socket()?;
    bind(&socket, &SocketAddrV4::new(from, 0))?;
    set_option(&socket, libc::SOL_UDP, libc::UDP_SEGMENT, payload_bytes as i32)?;
    connect(&socket, &SocketAddrV4::new(to, PORT))?;
    Ok(socket)
}

/// A socket that receives datagrams on [`PORT`] of this server, whole buffers at a time.
pub(super) fn datagram_receiver(address: Ipv4Addr) -> io::Result<OwnedFd> {
    let socket = datagram_socket()?;
    bind(&socket, &SocketAddrV4::new(address, PORT))?;
    set_option(&socket, libc::SOL_UDP, libc::UDP_GRO, 1)?;
    Ok(socket)
}

/// A socket that sends datagrams to [`STORM_PORT`] of everybody.
pub(super) fn storm_sender(from: Ipv4Addr) -> io::Result<OwnedFd> {
    let socket = datagram_socket()?;
    sockopt::set_socket_broadcast(&socket, true)?;
    bind(&socket, &SocketAddrV4::new(from, 0))?;
    connect(&socket, &SocketAddrV4::new(Ipv4Addr::BROADCAST, STORM_PORT))?;
    Ok(socket)
}

/// A socket that receives whatever arrives for [`STORM_PORT`]: one that is bound to an address hears no broadcast.
pub(super) fn storm_receiver() -> io::Result<OwnedFd> {
    let socket = datagram_socket()?;
    bind(&socket, &SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, STORM_PORT))?;
    Ok(socket)
}

fn datagram_socket() -> io::Result<OwnedFd> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    Ok(socket_with(AddressFamily::INET, SocketType::DGRAM, flags, None)?)
}

/// The beginning of the kernel's `struct tcp_info` (linux/tcp.h), which only ever grows at its end.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct KernelTcpInfo {
    states: [u8; 8],
    timers_and_sizes: [u32; 15],
    rtt_us: u32,
    rtt_variance_us: u32,
    ssthresh: u32,
    cwnd_segments: u32,
    receiver: [u32; 4],
    total_retransmits: u32,
    rates_and_bytes: [u64; 4],
    segments_out: u32,
    segments_in: u32,
    unsent_bytes: u32,
    min_rtt_us: u32,
    data_segments_in: u32,
    data_segments_out: u32,
}

/// State of a sender.
#[derive(Clone, Copy, Debug)]
pub(super) struct TcpState {
    pub(super) cwnd_segments: u32,
    pub(super) srtt_us: u32,
    pub(super) retransmits: u32,
    pub(super) data_segments_out: u32,
    pub(super) segments_in: u32,
}

/// Asks the kernel for a connection's state (the paper's extended TCP statistics).
pub(super) fn tcp_state(socket: impl AsFd) -> io::Result<TcpState> {
    let mut info = KernelTcpInfo::default();
    let mut length = size_of::<KernelTcpInfo>() as libc::socklen_t;
    // SAFETY: the kernel writes at most `length` bytes to `info`, which is plain integers and outlives the call.
    let result = unsafe {
        libc::getsockopt(
            socket.as_fd().as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            (&raw mut info).cast(),
            &raw mut length,
        )
    };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(TcpState {
        cwnd_segments: info.cwnd_segments,
        srtt_us: info.rtt_us,
        retransmits: info.total_retransmits,
        data_segments_out: info.data_segments_out,
        segments_in: info.segments_in,
    })
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn the_kernels_state_of_a_connection_makes_sense() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut sender = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let mut receiver = listener.accept().unwrap().0;
        sender.write_all(&[0; 1000]).unwrap();
        receiver.read_exact(&mut [0; 1000]).unwrap();
        let state = tcp_state(&sender).unwrap();
        assert_eq!((state.data_segments_out, state.retransmits), (1, 0));
        assert!((1..=3).contains(&state.segments_in), "{state:?}");
        assert!(state.cwnd_segments >= 1 && state.srtt_us < 1_000_000, "{state:?}");
        assert_eq!(std::mem::offset_of!(KernelTcpInfo, data_segments_out), 156);
    }

    #[test]
    fn a_source_port_follows_from_the_seed_and_moves_on_when_it_is_taken() {
        let local = Ipv4Addr::new(127, 77, 5, 1);
        let _listener = listener(local).unwrap();
        let first = start_connection(local, local, 42).unwrap();
        let port = |socket: &OwnedFd| {
            let address = rustix::net::getsockname(socket).unwrap();
            SocketAddrV4::try_from(address).unwrap().port()
        };
        let second = start_connection(local, local, 42).unwrap();
        assert_eq!(port(&first), FIRST_SOURCE_PORT + (scramble(42) % 49_152) as u16);
        assert_ne!(port(&first), port(&second));
    }
}
