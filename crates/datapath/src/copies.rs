//! Whether the kernel's copies of a frame are each their own, at XDP in the stack.
//!
//! Before the summer of 2026 they were not: all copies of a broadcast had the same bytes, so that a station heard what a program
//! had written for another port (Linux, `kernel/bpf/devmap.c`, "Fix generic devmap egress skb sharing"). XDP in the driver has
//! always copied.
#![allow(unsafe_code)]

use std::net::UdpSocket;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use rustix::thread::{UnshareFlags, unshare_unsafe};

use crate::abi::Abi;
use crate::error::DatapathError;
use crate::{interface, object};

/// What came of the copies: `struct copies_seen`.
#[derive(Clone, Copy, Default)]
struct Seen {
    /// That were numbered.
    written: u32,
    /// That came back.
    came: u32,
    /// A bit for each number that came back.
    numbers: u32,
}

impl Seen {
    fn read(bytes: &[u8]) -> Self {
        let mut words = bytes.as_chunks().0.iter().map(|word| u32::from_ne_bytes(*word));
        let mut next = || words.next().unwrap_or(0);
        Self { written: next(), came: next(), numbers: next() }
    }

    fn are_all_back(&self) -> bool {
        self.written > 1 && self.came >= self.written
    }

    fn are_own(&self) -> bool {
        self.numbers.count_ones() == self.written
    }
}

/// Sends a frame through loopback of a network namespace that is made for this and gone afterwards, once in the life of this
/// process.
///
/// # Errors
/// Any [`DatapathError`]; nothing is known then.
pub fn are_own() -> Result<bool, DatapathError> {
    static KNOWN: OnceLock<bool> = OnceLock::new();
    if let Some(known) = KNOWN.get() {
        return Ok(*known);
    }
    let seen = std::thread::scope(|scope| scope.spawn(look).join())
        .unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
    Ok(*KNOWN.get_or_init(|| seen))
}

/// On a thread of its own, whose namespace ends with it.
fn look() -> Result<bool, DatapathError> {
    const PATIENCE: Duration = Duration::from_secs(5);
    let failed = |what: &str, source: std::io::Error| {
        DatapathError::from_kernel(format!("looking at copies of frames: {what}"), source.into())
    };
    // SAFETY: only the network namespace is unshared, no file table, and the thread ends after this.
    unsafe { unshare_unsafe(UnshareFlags::NEWNET) }.map_err(|error| failed("a network namespace", error.into()))?;
    interface::set_up("lo").map_err(|error| failed("setting loopback up", error))?;
    let object = object::COPIES.load(object::COPIES.open()?)?;
    let number = object::program(&object, "number_copy");
    for place in [0_u32, 1] {
        object::update(&object, "copy_ports", place.bytes(), &object::device(LOOPBACK, Some(&number)))?;
    }
    let attached = object::program(&object, "copy_and_look").attach_xdp(LOOPBACK.cast_signed());
    let _link = attached.map_err(|source| DatapathError::from_kernel("attaching XDP to `lo`", source))?;
    let frame = UdpSocket::bind("127.0.0.1:0").and_then(|socket| socket.send_to(b"weft", "127.0.0.1:9"));
    frame.map_err(|error| failed("sending a frame", error))?;
    let until = Instant::now() + PATIENCE;
    while Instant::now() < until {
        let seen = Seen::read(&object::lookup(&object, "copies_seen", 0_u32.bytes())?.unwrap_or_default());
        if seen.are_all_back() {
            return Ok(seen.are_own());
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    Err(failed("waiting for them", std::io::ErrorKind::TimedOut.into()))
}

/// Index of the loopback interface in every network namespace.
const LOOPBACK: u32 = 1;

#[cfg(test)]
#[allow(clippy::print_stderr)]
mod tests {
    use super::*;

    #[test]
    fn copies_with_one_number_share_their_bytes() {
        let seen = |written, came, numbers| Seen { written, came, numbers };
        assert!(!seen(0, 0, 0).are_all_back() && !seen(2, 1, 1).are_all_back());
        assert!(seen(2, 2, 0b11).are_own() && seen(3, 3, 0b111).are_own());
        assert!(!seen(2, 2, 0b10).are_own());
    }

    #[test]
    fn this_kernel_gives_an_answer() {
        if !weft_needs::root() {
            return;
        }
        let own = are_own().expect("loopback brings copies back");
        eprintln!("copies at XDP in the stack are {}", if own { "each their own" } else { "shared" });
    }
}
