//! Datagrams in batches: one system call reads up to 64 messages, one sends as many.
//!
//! With UDP's generic receive offload (`UDP_GRO`) a message holds a whole burst of equally long datagrams of one sender;
//! with segmentation (`UDP_SEGMENT`) one message to the kernel is such a burst. Both save the way through the stack, which
//! is nearly all that a look-up costs. Nothing here allocates once its arrays have grown.

mod inbox;
mod outbox;

pub use inbox::Inbox;
pub use outbox::{Outbox, Sent};

use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::{AsRawFd, BorrowedFd};

/// Messages per system call.
pub const BATCH: usize = 64;

/// Lets the kernel hand over bursts as one message. False where it cannot.
pub fn receive_bursts(socket: BorrowedFd<'_>) -> bool {
    super::set_int(socket.as_raw_fd(), libc::SOL_UDP, libc::UDP_GRO, 1).is_ok()
}

/// Lets several sockets share an address, each getting its part of the senders.
pub(crate) fn share_port(socket: BorrowedFd<'_>) -> io::Result<()> {
    super::set_int(socket.as_raw_fd(), libc::SOL_SOCKET, libc::SO_REUSEPORT, 1)
}

fn to_socket_address(address: SocketAddrV4) -> libc::sockaddr_in {
    libc::sockaddr_in {
        sin_family: libc::AF_INET as libc::sa_family_t,
        sin_port: address.port().to_be(),
        sin_addr: libc::in_addr { s_addr: u32::from(*address.ip()).to_be() },
        sin_zero: [0; 8],
    }
}

fn from_socket_address(address: &libc::sockaddr_in) -> SocketAddrV4 {
    SocketAddrV4::new(Ipv4Addr::from(u32::from_be(address.sin_addr.s_addr)), u16::from_be(address.sin_port))
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;
    use std::os::fd::AsFd;
    use std::time::{Duration, Instant};

    use super::*;

    fn socket() -> (UdpSocket, SocketAddrV4) {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let std::net::SocketAddr::V4(address) = socket.local_addr().unwrap() else { panic!("IPv4") };
        (socket, address)
    }

    /// Everything that comes until `count` datagrams are there: each with its sender.
    fn receive(inbox: &mut Inbox, socket: &UdpSocket, count: usize) -> Vec<(SocketAddrV4, Vec<u8>)> {
        let mut all = Vec::new();
        let deadline = Instant::now() + Duration::from_secs(60);
        while all.len() < count {
            assert!(Instant::now() < deadline, "{} of {count} came", all.len());
            inbox.receive(socket.as_fd()).unwrap();
            inbox.for_each(|from, bytes| {
                all.push((from, bytes.to_vec()));
                false
            });
        }
        all
    }

    #[test]
    fn bursts_and_single_datagrams_arrive_whole_and_in_order() {
        for offload in [false, true] {
            let ((sender, from), (receiver, to)) = (socket(), socket());
            if offload {
                assert!(receive_bursts(receiver.as_fd()));
            }
            let mut outbox = Outbox::default();
            let bytes: Vec<u8> = (0..40 * 72u32).map(|index| (index / 72) as u8).collect();
            // A burst of 40, one that ends with a shorter datagram, and one alone.
            outbox.push(Some(to), 72, 0..40 * 72);
            outbox.push(Some(to), 100, 0..250);
            outbox.push(Some(to), 9, 11..20);
            let sent = outbox.send(sender.as_fd(), &bytes);
            assert_eq!((sent.datagrams, sent.failed), (44, 0));
            let mut expected: Vec<Vec<u8>> = bytes.chunks(72).map(<[u8]>::to_vec).collect();
            expected.extend(bytes[..250].chunks(100).map(<[u8]>::to_vec));
            expected.push(bytes[11..20].to_vec());
            let all = receive(&mut Inbox::default(), &receiver, 44);
            assert!(all.iter().all(|(sender, _)| *sender == from));
            assert_eq!(all.into_iter().map(|(_, bytes)| bytes).collect::<Vec<_>>(), expected, "offload: {offload}");
        }
    }

    #[test]
    fn answers_go_back_to_their_senders_and_only_those_that_were_kept() {
        let (server, address) = socket();
        assert!(receive_bursts(server.as_fd()));
        let clients: Vec<_> = (0..3).map(|_| socket().0).collect();
        let mut burst = Outbox::default();
        for (index, client) in clients.iter().enumerate() {
            // A burst of nine (72 bytes each) and four alone; the server drops those that begin with 3.
            let bytes: Vec<u8> = (0..13u8).flat_map(|k| [vec![k, index as u8], vec![0; 70]].concat()).collect();
            burst.push(Some(address), 72, 0..9 * 72);
            burst.send(client.as_fd(), &bytes);
            for k in 9..13 {
                client.send_to(&bytes[k * 72..][..72], address).unwrap();
            }
        }
        let mut inbox = Inbox::default();
        let mut outbox = Outbox::default();
        let (mut seen, mut sent) = (0, 0);
        while seen < 39 {
            inbox.receive(server.as_fd()).unwrap();
            inbox.for_each(|_, bytes| {
                seen += 1;
                bytes[2] = 0xaa;
                bytes[0] != 3
            });
            sent += inbox.send_back(server.as_fd(), &mut outbox).datagrams;
        }
        assert_eq!(sent, 36);
        for (index, client) in clients.iter().enumerate() {
            let answers = receive(&mut Inbox::default(), client, 12);
            let heads: Vec<_> = answers.iter().map(|(_, bytes)| [bytes[0], bytes[1], bytes[2]]).collect();
            let expected: Vec<_> = (0..13).filter(|k| *k != 3).map(|k| [k, index as u8, 0xaa]).collect();
            assert_eq!(heads, expected);
        }
    }

    #[test]
    fn what_cannot_be_sent_is_counted_and_the_rest_goes_out() {
        let ((sender, _), (receiver, to)) = (socket(), socket());
        let mut outbox = Outbox::default();
        let nobody = SocketAddrV4::new(Ipv4Addr::new(255, 255, 255, 255), 9);
        outbox.push(Some(nobody), 72, 0..72);
        outbox.push(Some(to), 72, 0..72);
        // A burst whose datagrams are larger than a segment may be on loopback goes out one by one or not at all.
        outbox.push(Some(nobody), 72, 0..144);
        outbox.push(Some(to), 72, 72..144);
        let sent = outbox.send(sender.as_fd(), &[7; 144]);
        assert_eq!((sent.datagrams, sent.failed), (2, 3));
        assert_eq!(receive(&mut Inbox::default(), &receiver, 2).len(), 2);
    }
}
