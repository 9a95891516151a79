//! Traffic between namespaces: echo requests with a chosen TTL, one TCP flow.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::net::sockopt::{Timeout, set_ip_ttl, set_socket_recv_buffer_size_force, set_socket_timeout};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, ipproto, recv, sendto, socket_with};

use super::netns::Namespace;

/// What an ICMP socket may hold.
const RECEIVE_BYTES: usize = 1 << 26;

/// A socket for ICMP, in one namespace.
pub struct Icmp(OwnedFd);

/// What came back or in: TTL as received, and the ICMP part.
pub struct Received {
    pub ttl: u8,
    pub tos: u8,
    pub icmp: Vec<u8>,
}

impl Icmp {
    pub fn open(namespace: &Namespace, wait: Duration) -> Self {
        let socket = namespace.enter(|| {
            socket_with(AddressFamily::INET, SocketType::RAW, SocketFlags::CLOEXEC, Some(ipproto::ICMP))
                .expect("root may open raw sockets")
        });
        set_socket_timeout(&socket, Timeout::Recv, Some(wait)).expect("a valid timeout");
        // A raw socket gets the requests of others, too: the answer must not find its queue full of them.
        set_socket_recv_buffer_size_force(&socket, RECEIVE_BYTES).expect("root may");
        Self(socket)
    }

    /// Sends an echo request with `payload` bytes and waits for its answer.
    pub fn ping(&self, to: Ipv4Addr, ttl: u8, sequence: u16, payload: usize) -> Option<Received> {
        self.send_request(to, ttl, sequence, payload);
        self.receive(0, sequence)
    }

    pub fn send_request(&self, to: Ipv4Addr, ttl: u8, sequence: u16, payload: usize) {
        set_ip_ttl(&self.0, ttl.into()).expect("a valid TTL");
        let mut request = vec![8, 0, 0, 0, 0x77, 0x65];
        request.extend(sequence.to_be_bytes());
        request.extend((0..payload).map(|n| n as u8));
        let sum = checksum(&request);
        request[2..4].copy_from_slice(&sum.to_be_bytes());
        let address = SocketAddr::V4(SocketAddrV4::new(to, 0));
        sendto(&self.0, &request, SendFlags::empty(), &address).expect("there is a route");
    }

    /// Waits for a message of this ICMP type and sequence number.
    pub fn receive(&self, kind: u8, sequence: u16) -> Option<Received> {
        let mut buffer = vec![0; 65536];
        loop {
            let (length, _) = recv(&self.0, &mut buffer[..], RecvFlags::empty()).ok()?;
            let header = usize::from(buffer[0] & 15) * 4;
            let icmp = &buffer[header..length];
            if icmp.len() >= 8 && icmp[0] == kind && icmp[6..8] == sequence.to_be_bytes() {
                return Some(Received { ttl: buffer[8], tos: buffer[1], icmp: icmp.to_vec() });
            }
        }
    }
}

fn checksum(message: &[u8]) -> u16 {
    let words = message.chunks(2).map(|word| u32::from(word[0]) << 8 | u32::from(*word.get(1).unwrap_or(&0)));
    let mut sum: u32 = words.sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

/// Bytes and time of one TCP flow, checked byte by byte at the receiver.
pub fn transfer(from: &Namespace, to: &Namespace, address: Ipv4Addr, bytes: usize) -> (usize, Duration) {
    let listener = to.enter(|| TcpListener::bind((address, 0)).expect("the address is the server's"));
    let port = listener.local_addr().expect("it is bound").port();
    let started = Instant::now();
    let received = std::thread::scope(|scope| {
        let receiver = scope.spawn(move || receive_all(&listener));
        scope.spawn(move || {
            from.move_here();
            send_all(TcpStream::connect((address, port)).expect("the path works"), bytes);
        });
        receiver.join().expect("the receiver ends")
    });
    (received, started.elapsed())
}

/// Twice the same 64 KiB of changing bytes, so that any 64 KiB of the stream are a slice of it.
fn pattern() -> Vec<u8> {
    let once: Vec<u8> = (0..PERIOD).map(|n| (n % 251) as u8).collect();
    once.repeat(2)
}

const PERIOD: usize = 1 << 16;

fn send_all(mut stream: TcpStream, bytes: usize) {
    let pattern = pattern();
    let mut left = bytes;
    while left > 0 {
        let part = left.min(PERIOD);
        stream.write_all(&pattern[..part]).expect("the receiver reads");
        left -= part;
    }
}

fn receive_all(listener: &TcpListener) -> usize {
    let (mut stream, _) = listener.accept().expect("the sender connects");
    let pattern = pattern();
    let mut buffer = vec![0; PERIOD];
    let mut total = 0;
    loop {
        match stream.read(&mut buffer).expect("the connection stays") {
            0 => return total,
            length => {
                let place = total % PERIOD;
                assert!(buffer[..length] == pattern[place..place + length], "payload changed on the way");
                total += length;
            }
        }
    }
}

/// Bytes and frames that an interface received; a super frame counts once.
pub fn received(namespace: &Namespace, interface: &str) -> (u64, u64) {
    let table = namespace.enter(|| std::fs::read_to_string("/proc/thread-self/net/dev").expect("procfs is mounted"));
    let prefix = format!("{interface}:");
    let line = table.lines().find_map(|line| line.trim().strip_prefix(&prefix)).expect("the interface exists");
    let mut numbers = line.split_whitespace().map(|number| number.parse().expect("a number"));
    (numbers.next().expect("bytes"), numbers.next().expect("frames"))
}

/// From now on the kernel cuts what a socket sends into datagrams of this size, as late as it can (`UDP_SEGMENT`).
#[allow(unsafe_code)]
pub fn segment_datagrams(socket: &std::net::UdpSocket, bytes: libc::c_int) {
    use std::os::fd::AsRawFd;
    let size = libc::socklen_t::try_from(size_of_val(&bytes)).expect("a small number");
    let value = std::ptr::from_ref(&bytes).cast();
    // SAFETY: the value lives through the call and is passed with its size.
    let set = unsafe { libc::setsockopt(socket.as_raw_fd(), libc::SOL_UDP, libc::UDP_SEGMENT, value, size) };
    assert_eq!(set, 0, "the kernel knows super frames of datagrams");
}
