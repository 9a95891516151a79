//! Sockets for directory datagrams: one for each thread, all on one address.

use std::io;
use std::net::{SocketAddr, SocketAddrV4, UdpSocket};
use std::os::fd::{AsFd, OwnedFd};

use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with, sockopt};

use crate::error::NodeError;
use crate::sys;

/// Type of service of directory datagrams: internetwork control, so that bulk traffic does not delay them.
const TOS_CONTROL: u8 = 0xc0;

/// Room for a burst of look-ups while the reader waits for a CPU.
const RECEIVE_BUFFER_BYTES: usize = 4 << 20;

/// Makes a socket fit for directory datagrams: no waiting, control class, room for bursts.
///
/// # Errors
/// The kernel's.
pub fn set_up_socket(socket: &UdpSocket) -> io::Result<()> {
    socket.set_nonblocking(true)?;
    sockopt::set_ip_tos(socket, TOS_CONTROL)?;
    // Beyond the system's limit where this user may do that.
    if sockopt::set_socket_recv_buffer_size_force(socket, RECEIVE_BUFFER_BYTES).is_err() {
        sockopt::set_socket_recv_buffer_size(socket, RECEIVE_BUFFER_BYTES)?;
    }
    Ok(())
}

/// Binds `count` sockets, at least one, and says where (a port 0 is chosen by the kernel).
pub(super) fn bind(listen: SocketAddrV4, count: usize) -> Result<(Vec<UdpSocket>, SocketAddrV4), NodeError> {
    let failed = || NodeError::system("setting up the look-up sockets");
    // The first shares the port only once it has it: so it is refused where somebody else listens already.
    let first = UdpSocket::bind(listen).map_err(|error| refusal(listen, error))?;
    let listen = match first.local_addr().map_err(failed())? {
        SocketAddr::V4(address) => address,
        SocketAddr::V6(_) => listen,
    };
    let mut sockets = vec![first];
    if count > 1 {
        sys::share_port(sockets[0].as_fd()).map_err(failed())?;
    }
    while sockets.len() < count {
        sockets.push(bind_another(listen).map_err(failed())?);
    }
    for socket in &sockets {
        set_up_socket(socket).map_err(failed())?;
        // Without it every datagram is a message of its own: slower, nothing else.
        let _ = sys::receive_bursts(socket.as_fd());
    }
    Ok((sockets, listen))
}

fn bind_another(listen: SocketAddrV4) -> io::Result<UdpSocket> {
    let socket: OwnedFd = socket_with(AddressFamily::INET, SocketType::DGRAM, SocketFlags::CLOEXEC, None)?;
    sys::share_port(socket.as_fd())?;
    rustix::net::bind(&socket, &listen)?;
    Ok(socket.into())
}

fn refusal(listen: SocketAddrV4, error: io::Error) -> NodeError {
    match error.kind() {
        io::ErrorKind::AddrInUse => NodeError::AddressInUse { address: listen },
        io::ErrorKind::AddrNotAvailable => {
            NodeError::config("listen", format!("{} is not an address of this host; add it first", listen.ip()))
        }
        _ => NodeError::system(format!("binding UDP {listen}"))(error),
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;
    use std::time::{Duration, Instant};

    use super::*;

    #[test]
    fn an_address_is_shared_by_the_threads_of_one_server_and_with_nobody_else() {
        let any = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0);
        let (sockets, listen) = bind(any, 3).unwrap();
        assert_eq!(sockets.len(), 3);
        for count in [1, 3] {
            assert!(matches!(bind(listen, count), Err(NodeError::AddressInUse { .. })), "{count}");
        }
    }

    #[test]
    fn every_thread_gets_its_part_of_the_senders() {
        let (sockets, listen) = bind(SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0), 2).unwrap();
        let senders: Vec<_> = (0..64).map(|_| UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap()).collect();
        for sender in &senders {
            sender.send_to(b"x", listen).unwrap();
        }
        let mut got = [0; 2];
        let deadline = Instant::now() + Duration::from_secs(60);
        while got.iter().sum::<usize>() < senders.len() {
            assert!(Instant::now() < deadline, "{got:?}");
            for (count, socket) in got.iter_mut().zip(&sockets) {
                while socket.recv(&mut [0; 8]).is_ok() {
                    *count += 1;
                }
            }
        }
        assert!(got.iter().all(|count| *count >= 10), "{got:?}");
    }
}
