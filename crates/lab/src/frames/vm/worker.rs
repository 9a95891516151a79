//! The VM's side: `weft internal vm ADDRESS`. Orders come in on standard input, replies go out on standard output; it ends
//! with its input, so it does not outlive whoever started it.
#![allow(unsafe_code)]

use std::ffi::OsString;
use std::io::{self, BufRead, Write};
use std::mem::zeroed;
use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};
use std::os::fd::AsRawFd;
use std::process::ExitCode;
use std::time::Duration;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use rustix::time::ClockId;
use weft_testbed::cpu;

use super::order::{Order, PORT, Reply};
use crate::sys::{now_ns, set_option};

/// Datagrams in one system call.
const BATCH: usize = 32;
/// Longest payload of a frame of a VM.
const PAYLOAD_MOST: usize = 1500;
/// Room for what lock step sends before it is taken.
const LARGE_BUFFER_BYTES: u32 = 256 << 20;
/// Between two bursts of a paced sender: short beside what a socket holds, long beside a system call.
const PAUSE: Duration = Duration::from_micros(100);
/// A sender that is later than this goes on from where it is: a burst to catch up would measure the burst.
const LATE_NS: f64 = 5e6;
/// How often a receiver without frames looks at the clock.
const PATIENCE: Duration = Duration::from_millis(2);

/// Runs the VM with the arguments behind `weft internal vm`.
pub fn worker_main(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let address = args.into_iter().next().and_then(|text| text.to_str()?.parse().ok());
    let outcome = match address {
        Some(address) => serve(address),
        None => Err(io::Error::other("give the VM's address")),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Standard error is the reader's of the whole run.
            let _ = writeln!(io::stderr(), "VM: {error}");
            ExitCode::FAILURE
        }
    }
}

struct Worker {
    receiver: UdpSocket,
    sender: Option<(SocketAddrV4, UdpSocket)>,
    every_core: CpuSet,
}

fn serve(address: Ipv4Addr) -> io::Result<()> {
    let receiver = UdpSocket::bind((address, PORT))?;
    let mut worker = Worker { receiver, sender: None, every_core: sched_getaffinity(None)? };
    set_buffer(&worker.receiver, LARGE_BUFFER_BYTES)?;
    answer(Reply::default())?;
    for line in io::stdin().lock().lines() {
        let order: Order = serde_json::from_str(&line?)?;
        let reply = worker.carry_out(order)?;
        answer(reply)?;
    }
    Ok(())
}

fn answer(reply: Reply) -> io::Result<()> {
    let mut out = io::stdout().lock();
    serde_json::to_writer(&mut out, &reply)?;
    out.write_all(b"\n")?;
    out.flush()
}

impl Worker {
    fn carry_out(&mut self, order: Order) -> io::Result<Reply> {
        match order {
            Order::Send { to, payload_bytes, frames, per_s, duration_ns, core } => {
                self.go_to(core)?;
                let socket = self.sender_to(to)?;
                let payload = vec![0x57; (payload_bytes as usize).min(PAYLOAD_MOST)];
                timed(|begin_ns| match per_s {
                    0 => send(socket, &payload, frames, begin_ns + duration_ns),
                    _ => send_paced(socket, &payload, f64::from(per_s), begin_ns + duration_ns),
                })
            }
            Order::Drain { core } => {
                self.go_to(Some(core))?;
                timed(|_| receive(&self.receiver, libc::MSG_DONTWAIT, || true))
            }
            Order::Receive { duration_ns, buffer_bytes, core } => {
                self.go_to(core)?;
                // What is left of an earlier trial is not of this one.
                receive(&self.receiver, libc::MSG_DONTWAIT, || true)?;
                set_buffer(&self.receiver, buffer_bytes)?;
                self.receiver.set_read_timeout(Some(PATIENCE))?;
                answer(Reply::default())?;
                let reply = timed(|begin_ns| {
                    let end_ns = begin_ns + duration_ns;
                    receive(&self.receiver, libc::MSG_WAITFORONE, || now_ns(ClockId::Monotonic) >= end_ns)
                });
                set_buffer(&self.receiver, LARGE_BUFFER_BYTES)?;
                reply
            }
        }
    }

    fn go_to(&self, core: Option<usize>) -> io::Result<()> {
        match core {
            Some(core) => cpu::take(core).map_err(io::Error::other),
            None => Ok(sched_setaffinity(None, &self.every_core)?),
        }
    }

    fn sender_to(&mut self, to: SocketAddrV4) -> io::Result<&UdpSocket> {
        if self.sender.as_ref().is_none_or(|(known, _)| *known != to) {
            let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
            socket.connect(to)?;
            // As the test centre's frames: no checksum (RFC 768), so that hooks which cannot finish one carry it as well.
            set_option(&socket, libc::SOL_SOCKET, libc::SO_NO_CHECK, 1)?;
            self.sender = Some((to, socket));
        }
        Ok(&self.sender.as_ref().expect("just set").1)
    }
}

/// Runs `work` with the time at which it begins, and says how many frames it made and what it took.
fn timed(work: impl FnOnce(u64) -> io::Result<u64>) -> io::Result<Reply> {
    let (wall, cpu) = (now_ns(ClockId::Monotonic), now_ns(ClockId::ThreadCPUTime));
    let frames = work(wall)?;
    let cpu_ns = now_ns(ClockId::ThreadCPUTime) - cpu;
    Ok(Reply { frames, cpu_ns, wall_ns: now_ns(ClockId::Monotonic) - wall })
}

fn set_buffer(socket: &UdpSocket, bytes: u32) -> io::Result<()> {
    set_option(socket, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, i32::try_from(bytes / 2).unwrap_or(i32::MAX))
}

/// Sends up to so many frames until a time; how many went.
fn send(socket: &UdpSocket, payload: &[u8], frames: u64, end_ns: u64) -> io::Result<u64> {
    // SAFETY: all-zero is a valid value of these plain C structures.
    let mut messages: [libc::mmsghdr; BATCH] = unsafe { zeroed() };
    let mut vector = libc::iovec { iov_base: payload.as_ptr().cast_mut().cast(), iov_len: payload.len() };
    for message in &mut messages {
        message.msg_hdr.msg_iov = &raw mut vector;
        message.msg_hdr.msg_iovlen = 1;
    }
    let mut sent = 0;
    while sent < frames && now_ns(ClockId::Monotonic) < end_ns {
        let count = (frames - sent).min(BATCH as u64) as u32;
        // SAFETY: the messages point at `vector`, and that at `payload`; both outlive the call, which only reads them.
        let result = unsafe { libc::sendmmsg(socket.as_raw_fd(), messages.as_mut_ptr(), count, 0) };
        match result {
            0.. => sent += result as u64,
            _ => match io::Error::last_os_error() {
                error if matches!(error.raw_os_error(), Some(libc::ENOBUFS | libc::EINTR | libc::ECONNREFUSED)) => {}
                error => return Err(error),
            },
        }
    }
    Ok(sent)
}

/// Sends frames at a rate until a time, sleeping between those that are due; how many went.
fn send_paced(socket: &UdpSocket, payload: &[u8], per_s: f64, end_ns: u64) -> io::Result<u64> {
    let (mut sent, mut due_ns) = (0, now_ns(ClockId::Monotonic) as f64);
    loop {
        let now = now_ns(ClockId::Monotonic);
        if now >= end_ns {
            return Ok(sent);
        }
        due_ns = due_ns.max(now as f64 - LATE_NS);
        let due = ((now as f64 - due_ns) * per_s * 1e-9) as u64;
        sent += send(socket, payload, due, end_ns)?;
        due_ns += due as f64 * 1e9 / per_s;
        if due < BATCH as u64 {
            std::thread::sleep(PAUSE);
        }
    }
}

/// Takes frames until there are none and `is_over` says so; how many there were.
fn receive(socket: &UdpSocket, flags: i32, is_over: impl Fn() -> bool) -> io::Result<u64> {
    let mut buffer = [0u8; BATCH * 64];
    let mut vectors = [libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 0 }; BATCH];
    // SAFETY: all-zero is a valid value of these plain C structures.
    let mut messages: [libc::mmsghdr; BATCH] = unsafe { zeroed() };
    for (place, (message, vector)) in messages.iter_mut().zip(&mut vectors).enumerate() {
        // The start of each datagram is enough: they are counted.
        vector.iov_base = buffer[place * 64..].as_mut_ptr().cast();
        vector.iov_len = 64;
        message.msg_hdr.msg_iov = &raw mut *vector;
        message.msg_hdr.msg_iovlen = 1;
    }
    let mut received = 0;
    loop {
        // SAFETY: messages, vectors and buffer outlive the call and are nobody else's meanwhile; no time limit is passed.
        let result = unsafe {
            libc::recvmmsg(socket.as_raw_fd(), messages.as_mut_ptr(), BATCH as u32, flags, std::ptr::null_mut())
        };
        match result {
            0.. => received += result as u64,
            _ => match io::Error::last_os_error() {
                error if matches!(error.raw_os_error(), Some(libc::EAGAIN | libc::EINTR)) => {
                    if is_over() {
                        return Ok(received);
                    }
                    continue;
                }
                error => return Err(error),
            },
        }
        // A flood never leaves the socket empty.
        if flags != libc::MSG_DONTWAIT && is_over() {
            return Ok(received);
        }
    }
}
