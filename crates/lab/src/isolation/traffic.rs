//! The timed tenant's frames, and those that somebody sends beside them.

use std::io;
use std::net::UdpSocket;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use rand_pcg::Pcg64;
use rand_pcg::rand_core::{Rng, SeedableRng};
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{RecvFlags, SendFlags, recv, send};
use rustix::process::setpriority_process;
use rustix::time::ClockId;
use weft_wire::vxlan::{Header, UDP_PORT};

use super::bed::{Bed, STRANGER, Tenant, VTEPS};
use crate::error::LabError;
use crate::netns::{in_namespace, join};
use crate::sys::{bind_to_interface, now_ns, packet_socket};

/// Timed frames per second.
const TIMED_PER_S: f64 = 2000.0;
/// Bytes of every frame.
const FRAME_BYTES: usize = 128;
/// For local experiments (IEEE 802).
const ETHERTYPE: u16 = 0x88b5;
/// The load runs before frames are timed, and after.
const AROUND: Duration = Duration::from_millis(100);
/// What has not come by then is lost.
const LATE: Duration = Duration::from_millis(200);
/// The load stands behind the frames that are timed: what it takes of this CPU it would take of another machine's.
const BEHIND_OTHERS: i32 = 19;

/// What goes beside the timed frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Load {
    /// Frames of the other tenant between two of its machines.
    Allowed,
    /// Frames of the other tenant, each from a station and to a station that nobody heard of.
    RandomMacs,
    /// The other tenant asks everybody for addresses that nobody has.
    ArpFlood,
    /// Frames into the timed tenant's segment, from a VTEP that is no peer.
    Stranger,
}

impl Load {
    pub(super) const ATTACKS: [Self; 3] = [Self::RandomMacs, Self::ArpFlood, Self::Stranger];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Allowed => "allowed frames",
            Self::RandomMacs => "random MACs",
            Self::ArpFlood => "an ARP flood",
            Self::Stranger => "an unknown peer",
        }
    }
}

/// What became of the timed frames of a round.
pub(super) struct Seen {
    pub(super) sent: u64,
    /// Of those that came, in order of size.
    took_ns: Vec<u64>,
    /// Frames of the load per second.
    pub(super) load_per_s: f64,
}

impl Seen {
    pub(super) fn lost(&self) -> u64 {
        self.sent - self.took_ns.len() as u64
    }

    /// A quantile of the time that frames took; of none, as long as we would have waited.
    pub(super) fn at_us(&self, quantile: f64) -> f64 {
        let place = (quantile * self.took_ns.len() as f64) as usize;
        self.took_ns.get(place).map_or(LATE.as_nanos() as f64, |ns| *ns as f64) / 1e3
    }
}

/// Times frames for a while, beside a load of this rate.
pub(super) fn beside(bed: &Bed, load: Load, per_s: f64, length: Duration) -> Result<Seen, LabError> {
    say_where(bed)?;
    let over = AtomicBool::new(false);
    let done = LabError::io("send and receive frames");
    let seen = std::thread::scope(|scope| -> io::Result<Seen> {
        let sending = scope.spawn(|| {
            setpriority_process(None, BEHIND_OTHERS)?;
            Sender::open(bed, load)?.run(per_s, &over)
        });
        std::thread::sleep(AROUND);
        let timed = time(bed, length);
        std::thread::sleep(AROUND);
        over.store(true, Relaxed);
        let load_per_s = join(sending)?;
        timed.map(|(sent, took_ns)| Seen { sent, took_ns, load_per_s })
    });
    seen.map_err(done)
}

/// All machines say something, so that it is known where they are.
fn say_where(bed: &Bed) -> Result<(), LabError> {
    for host in [0, 1, 0] {
        for tenant in [Tenant::Timed, Tenant::Other] {
            let frame = frame(tenant.mac(1 - host), tenant.mac(host), ETHERTYPE);
            let said = socket(bed, host, tenant, 0).and_then(|socket| Ok(send(&socket, &frame, SendFlags::empty())?));
            said.map_err(LabError::io("send a frame"))?;
        }
    }
    Ok(())
}

/// Sends the timed tenant's frames from one host to the other; how many, and how long each took that came.
fn time(bed: &Bed, length: Duration) -> io::Result<(u64, Vec<u64>)> {
    let (from, to) = (socket(bed, 0, Tenant::Timed, 0)?, socket(bed, 1, Tenant::Timed, ETHERTYPE)?);
    set_socket_timeout(&to, Timeout::Recv, Some(LATE))?;
    std::thread::scope(|scope| {
        let receiving = scope.spawn(|| receive(&to));
        let mut frame = frame(Tenant::Timed.mac(1), Tenant::Timed.mac(0), ETHERTYPE);
        let count = (length.as_secs_f64() * TIMED_PER_S) as u64;
        let begin = Instant::now();
        for number in 0..count {
            let due = Duration::from_secs_f64(number as f64 / TIMED_PER_S);
            std::thread::sleep(due.saturating_sub(begin.elapsed()));
            frame[14..22].copy_from_slice(&now_ns(ClockId::Monotonic).to_be_bytes());
            send(&from, &frame, SendFlags::empty())?;
        }
        let mut took_ns = join(receiving)?;
        took_ns.sort_unstable();
        Ok((count, took_ns))
    })
}

/// Until nothing came for long.
fn receive(socket: &OwnedFd) -> io::Result<Vec<u64>> {
    let (mut took_ns, mut buffer) = (Vec::new(), [0; 2048]);
    let from = Tenant::Timed.mac(0);
    loop {
        match recv(socket, &mut buffer[..], RecvFlags::empty()) {
            Ok((length, _)) if length == FRAME_BYTES && buffer[6..12] == from => {
                let sent_ns = u64::from_be_bytes(buffer[14..22].try_into().expect("eight bytes"));
                took_ns.push(now_ns(ClockId::Monotonic).saturating_sub(sent_ns));
            }
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(rustix::io::Errno::AGAIN) => return Ok(took_ns),
            Err(error) => return Err(error.into()),
        }
    }
}

/// Of a load.
struct Sender {
    load: Load,
    socket: Socket,
    random: Pcg64,
}

enum Socket {
    Packet(OwnedFd),
    Udp(UdpSocket),
}

impl Sender {
    fn open(bed: &Bed, load: Load) -> io::Result<Self> {
        let socket = match load {
            Load::Stranger => in_namespace(&bed.host(0), || UdpSocket::bind((STRANGER, 0)))
                .map_err(io::Error::other)?
                .and_then(|socket| socket.connect((VTEPS[1], UDP_PORT)).map(|()| Socket::Udp(socket)))?,
            _ => Socket::Packet(self::socket(bed, 0, Tenant::Other, 0)?),
        };
        Ok(Self { load, socket, random: Pcg64::seed_from_u64(77) })
    }

    /// At a rate, until it is over; frames per second.
    fn run(mut self, per_s: f64, over: &AtomicBool) -> io::Result<f64> {
        let (begin, mut sent) = (Instant::now(), 0u64);
        while !over.load(Relaxed) {
            let due = (begin.elapsed().as_secs_f64() * per_s) as u64;
            while sent < due && !over.load(Relaxed) {
                self.send()?;
                sent += 1;
            }
            std::thread::sleep(Duration::from_micros(500));
        }
        Ok(sent as f64 / begin.elapsed().as_secs_f64())
    }

    fn send(&mut self) -> io::Result<()> {
        let [own, far] = [0, 1].map(|host| Tenant::Other.mac(host));
        let mut bytes = match self.load {
            Load::Allowed => frame(far, own, ETHERTYPE),
            Load::RandomMacs => frame(self.station(), self.station(), ETHERTYPE),
            Load::ArpFlood => self.arp(own),
            Load::Stranger => frame(Tenant::Timed.mac(1), self.station(), ETHERTYPE),
        };
        let sent = match &self.socket {
            Socket::Packet(socket) => send(socket, &bytes, SendFlags::empty()).map(drop).map_err(io::Error::from),
            Socket::Udp(socket) => {
                bytes.splice(0..0, Header { vni: Tenant::Timed as u32 }.to_bytes());
                socket.send(&bytes).map(drop)
            }
        };
        match sent {
            // A full queue is the sender's own affair.
            Err(error) if error.raw_os_error() != Some(libc::ENOBUFS) => Err(error),
            _ => Ok(()),
        }
    }

    fn station(&mut self) -> [u8; 6] {
        let [.., a, b, c, d] = self.random.next_u64().to_be_bytes();
        [2, 0x66, a, b, c, d]
    }

    /// Who has an address?
    fn arp(&mut self, own: [u8; 6]) -> Vec<u8> {
        let mut frame = frame([0xff; 6], own, 0x0806);
        frame[14..22].copy_from_slice(&[0, 1, 8, 0, 6, 4, 0, 1]);
        frame[22..28].copy_from_slice(&own);
        frame[28..32].copy_from_slice(&[192, 168, 0, 1]);
        frame[32..38].fill(0);
        let target = self.random.next_u32() & 0xffff;
        frame[38..42].copy_from_slice(&(0xc0a8_0000 | target).to_be_bytes());
        frame
    }
}

/// A packet socket of a tenant's machine.
fn socket(bed: &Bed, host: usize, tenant: Tenant, ethertype: u16) -> io::Result<OwnedFd> {
    let opened = in_namespace(&bed.tenants(host), || {
        let socket = packet_socket()?;
        bind_to_interface(&socket, &tenant.interface(), ethertype)?;
        Ok(socket)
    });
    opened.map_err(io::Error::other)?
}

fn frame(to: [u8; 6], from: [u8; 6], ethertype: u16) -> Vec<u8> {
    let mut frame = [&to[..], &from, &ethertype.to_be_bytes()].concat();
    frame.resize(FRAME_BYTES, 0);
    frame
}
