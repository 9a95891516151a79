//! Some megabytes over TCP between two namespaces, every byte of which shows if it is misplaced.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddrV4, TcpListener, TcpStream};
use std::path::Path;
use std::time::{Duration, Instant};

use crate::error::LabError;
use crate::netns::{self, join};

pub(super) const TRANSFER_BYTES: usize = 4 << 20;
const PATIENCE: Duration = Duration::from_secs(5);

/// Bytes whose every misplacement shows.
pub(super) fn pattern() -> Vec<u8> {
    (0..TRANSFER_BYTES as u32 / 4).flat_map(|word| word.wrapping_mul(2_654_435_761).to_be_bytes()).collect()
}

/// Sends the pattern to an address of another namespace; what arrived in time, if something stalls.
pub(super) fn between(from: &Path, to: &Path, address: Ipv4Addr) -> Result<Vec<u8>, LabError> {
    let failed = || LabError::io("send data over TCP");
    let listener = netns::in_namespace(to, || TcpListener::bind(SocketAddrV4::new(address, 0)))?.map_err(failed())?;
    let port = listener.local_addr().map_err(failed())?.port();
    std::thread::scope(|scope| {
        let receiving = scope.spawn(|| receive_all(&listener));
        let sent = netns::in_namespace(from, || send_all(SocketAddrV4::new(address, port)));
        let received = join(receiving);
        // A sender that could not send has been heard of by the receiver, too.
        let _stalled = sent?;
        received.map_err(failed())
    })
}

fn send_all(to: SocketAddrV4) -> std::io::Result<()> {
    let mut stream = TcpStream::connect_timeout(&to.into(), PATIENCE)?;
    stream.set_write_timeout(Some(PATIENCE))?;
    stream.write_all(&pattern())
}

/// Accepts one connection and reads it to its end.
fn receive_all(listener: &TcpListener) -> std::io::Result<Vec<u8>> {
    listener.set_nonblocking(true)?;
    let deadline = Instant::now() + PATIENCE + Duration::from_secs(1);
    let mut stream = loop {
        match listener.accept() {
            Ok((stream, _)) => break stream,
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                if Instant::now() > deadline {
                    return Ok(Vec::new());
                }
                std::thread::sleep(Duration::from_millis(5));
            }
            Err(error) => return Err(error),
        }
    };
    stream.set_nonblocking(false)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let mut received = Vec::with_capacity(TRANSFER_BYTES);
    match stream.read_to_end(&mut received) {
        Err(error) if !matches!(error.kind(), std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut) => {
            Err(error)
        }
        _ => Ok(received),
    }
}
