//! ICMP echo from inside a namespace, without a program for it: the proof that a lab carries packets.

use std::io;
use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::net::sockopt::{set_ip_mtu_discover, set_ip_ttl};
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, ipproto, socket_with};
use weft_wire::icmp::{self, DESTINATION_UNREACHABLE, FRAGMENTATION_NEEDED};
use weft_wire::{checksum, ipv4};

use crate::error::LabError;
use crate::netns;

const ECHO_REPLY: u8 = 0;
const ECHO_REQUEST: u8 = 8;
const TIME_EXCEEDED: u8 = 11;

/// One echo request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Echo {
    pub(crate) source: Ipv4Addr,
    pub(crate) destination: Ipv4Addr,
    /// Length of the whole IP packet; at least 28.
    pub(crate) packet_bytes: usize,
    /// Time to live; 0: the kernel's default.
    pub(crate) ttl: u32,
    /// How long to wait for an answer.
    pub(crate) timeout: Duration,
}

/// What came back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// The destination answered after this time.
    Reply(Duration),
    /// A router on the way saw the TTL run out.
    TimeExceeded(Ipv4Addr),
    /// A router or this host says the packet is too large.
    TooBig,
    /// Some router knows no way.
    Unreachable(Ipv4Addr),
    Nothing,
}

impl Echo {
    pub(crate) fn new(source: Ipv4Addr, destination: Ipv4Addr) -> Self {
        Self { source, destination, packet_bytes: 84, ttl: 0, timeout: Duration::from_millis(500) }
    }

    /// Sends it once in a namespace, never fragmented, and waits for what comes back.
    pub(crate) fn send_in(self, namespace: &Path) -> Result<Answer, LabError> {
        netns::in_namespace(namespace, || self.send())?
            .map_err(LabError::io(format!("send an echo request from {} to {}", self.source, self.destination)))
    }

    fn send(self) -> io::Result<Answer> {
        let socket = self.socket()?;
        let identifier = (std::process::id() ^ u32::from(self.destination)) as u16;
        let request = echo_request(identifier, self.packet_bytes);
        let start = Instant::now();
        match socket.send_to(&request, SocketAddrV4::new(self.destination, 0)) {
            Ok(_) => {}
            Err(error) if error.raw_os_error() == Some(libc::EMSGSIZE) => return Ok(Answer::TooBig),
            Err(error) => return Err(error),
        }
        let mut packet = vec![0; 65_536];
        while let Some(left) = self.timeout.checked_sub(start.elapsed()).filter(|left| !left.is_zero()) {
            socket.set_read_timeout(Some(left))?;
            match socket.recv_from(&mut packet) {
                Ok((length, from)) => {
                    let std::net::IpAddr::V4(from) = from.ip() else { continue };
                    if let Some(answer) = classify(&packet[..length], from, identifier, start.elapsed()) {
                        return Ok(answer);
                    }
                }
                Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => break,
                Err(error) if error.raw_os_error() == Some(libc::EMSGSIZE) => return Ok(Answer::TooBig),
                Err(error) => return Err(error),
            }
        }
        Ok(Answer::Nothing)
    }

    /// A raw ICMP socket, in the clothes of a UDP socket for its `send_to` and `recv_from`.
    fn socket(self) -> io::Result<UdpSocket> {
        let raw: OwnedFd =
            socket_with(AddressFamily::INET, SocketType::RAW, SocketFlags::CLOEXEC, Some(ipproto::ICMP))?;
        bind(&raw, &SocketAddrV4::new(self.source, 0))?;
        set_ip_mtu_discover(&raw, rustix::net::sockopt::Ipv4PathMtuDiscovery::DO)?;
        if self.ttl > 0 {
            set_ip_ttl(&raw, self.ttl)?;
        }
        Ok(UdpSocket::from(raw))
    }
}

/// Repeats small echo requests until one is answered; how long that took.
pub(crate) fn wait_for_answer(
    namespace: &Path,
    echo: Echo,
    timeout: Duration,
    interrupted: impl Fn() -> bool,
) -> Result<Option<Duration>, LabError> {
    let start = Instant::now();
    while start.elapsed() < timeout {
        if interrupted() {
            return Err(LabError::Interrupted);
        }
        // Before a route exists the kernel refuses to send; that is as good as no answer.
        match (Echo { timeout: Duration::from_millis(90), ..echo }).send_in(namespace) {
            Ok(Answer::Reply(_)) => return Ok(Some(start.elapsed())),
            Ok(Answer::Nothing) => {}
            Ok(_) | Err(_) => std::thread::sleep(Duration::from_millis(20)),
        }
    }
    Ok(None)
}

fn echo_request(identifier: u16, packet_bytes: usize) -> Vec<u8> {
    let length = packet_bytes.saturating_sub(ipv4::HEADER_LEN).max(icmp::HEADER_LEN);
    let mut request = vec![0; length];
    request[0] = ECHO_REQUEST;
    request[4..6].copy_from_slice(&identifier.to_be_bytes());
    request[7] = 1;
    for (index, byte) in request[icmp::HEADER_LEN..].iter_mut().enumerate() {
        *byte = index as u8;
    }
    let sum = checksum::of(&request);
    request[2..4].copy_from_slice(&sum.to_be_bytes());
    request
}

/// Reads a received IP packet: an answer to the request with this identifier, or an error about it.
fn classify(packet: &[u8], from: Ipv4Addr, identifier: u16, elapsed: Duration) -> Option<Answer> {
    let icmp = ipv4::View::of_prefix(packet).ok()?.payload();
    let [kind, code, ..] = *icmp else { return None };
    let asked =
        if kind == ECHO_REPLY { icmp } else { ipv4::View::of_prefix(icmp.get(icmp::HEADER_LEN..)?).ok()?.payload() };
    if asked.get(4..6)? != identifier.to_be_bytes() {
        return None;
    }
    match (kind, code) {
        (ECHO_REPLY, _) => Some(Answer::Reply(elapsed)),
        (TIME_EXCEEDED, _) => Some(Answer::TimeExceeded(from)),
        (DESTINATION_UNREACHABLE, FRAGMENTATION_NEEDED) => Some(Answer::TooBig),
        (DESTINATION_UNREACHABLE, _) => Some(Answer::Unreachable(from)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_has_a_valid_checksum_and_the_asked_length() {
        for bytes in [28, 29, 84, 1500] {
            let request = echo_request(0x1234, bytes);
            assert_eq!((request.len(), checksum::of(&request)), (bytes - 20, 0));
        }
    }

    #[test]
    fn errors_about_other_packets_are_not_ours() {
        let mut packet = vec![0x45; 1];
        packet.resize(20, 0);
        let mut error = packet.clone();
        error.extend([TIME_EXCEEDED, 0, 0, 0, 0, 0, 0, 0]);
        error.extend(&packet);
        error.extend(&echo_request(7, 28));
        let router = Ipv4Addr::new(10, 1, 0, 1);
        assert_eq!(classify(&error, router, 7, Duration::ZERO), Some(Answer::TimeExceeded(router)));
        assert_eq!(classify(&error, router, 8, Duration::ZERO), None);
        for length in 0..error.len() - 2 {
            classify(&error[..length], router, 7, Duration::ZERO);
        }
    }

    #[test]
    fn the_own_host_answers() {
        if !weft_needs::root() {
            return;
        }
        let answer = Echo::new(Ipv4Addr::LOCALHOST, Ipv4Addr::LOCALHOST).send().unwrap();
        assert!(matches!(answer, Answer::Reply(_)), "{answer:?}");
    }
}
