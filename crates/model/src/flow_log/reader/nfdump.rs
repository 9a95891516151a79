//! The tables that nfdump prints for people:
//!
//! ```text
//! Date first seen          Duration Proto      Src IP Addr:Port          Dst IP Addr:Port   Flags Tos  Packets    Bytes ..
//! 2005-08-30 06:53:53.370    63.545 TCP    113.138.32.152:25    ->   222.33.70.124:3575   .AP.SF   0       62     3512 ..
//! ```
//!
//! `-o line` has no flags and no TOS. Large numbers are printed as `1.2 M`, so `nfdump -N` (plain numbers) is better; IPv6
//! addresses are cut (`2001..1`) without `nfdump -6`, and a cut address is refused.

use std::net::IpAddr;

use super::Line;
use super::number::{count, duration_ns, time_ns};
use super::short;

const SECOND_NS: u64 = 1_000_000_000;

/// What the header says.
#[derive(Clone, Copy, Debug)]
pub(super) struct Table {
    /// Words between the receiver and the number of packets.
    words_before_packets: usize,
}

impl Table {
    pub(super) fn is_header(line: &str) -> bool {
        line.starts_with("Date first seen") || line.starts_with("Date flow start")
    }

    pub(super) fn of_header(header: &str) -> Result<Self, String> {
        let has = |what: &str| header.contains(what);
        if !Self::is_header(header) || !has("Duration") || !has("Src IP Addr:Port") || !has("Dst IP Addr:Port") {
            return Err("this is not the header of `nfdump -o line`, `long` or `extended`; `nfdump -q` leaves it out"
                .to_owned());
        }
        if has("Event") || !has("Packets") || !has("Bytes") {
            return Err("no columns for packets and bytes; print with `nfdump -o extended`".to_owned());
        }
        Ok(Self { words_before_packets: usize::from(has("Flags")) + usize::from(has("Tos")) })
    }

    pub(super) fn line(&self, text: &str) -> Result<Line, String> {
        let (left, right) = text.split_once("->").ok_or("no `->` between sender and receiver")?;
        let mut left = left.split_whitespace();
        let mut next = |what: &str| left.next().ok_or_else(|| format!("no {what}"));
        let (date, clock, duration) = (next("date")?, next("time")?, next("duration")?);
        let (_protocol, from) = (next("protocol")?, next("sender")?);
        let start = format!("{date} {clock}");
        let start_ns = time_ns(&start, SECOND_NS).ok_or_else(|| format!("`{}` is no time", short(&start)))?;
        let lasts_ns =
            duration_ns(duration, SECOND_NS).ok_or_else(|| format!("`{}` is no duration", short(duration)))?;
        let end_ns = start_ns.checked_add(lasts_ns).ok_or_else(|| format!("`{}` is no duration", short(duration)))?;
        let mut right = right.split_whitespace().peekable();
        let to = right.next().ok_or("no receiver")?;
        let mut numbers = right.skip(self.words_before_packets).peekable();
        let mut number = |what: &str| {
            let word = numbers.next().ok_or_else(|| format!("no number of {what}"))?;
            let scale = numbers.next_if(|word| matches!(*word, "K" | "M" | "G" | "T")).unwrap_or_default();
            count(&format!("{word}{scale}")).ok_or_else(|| format!("`{}{scale}` is no number of {what}", short(word)))
        };
        number("packets")?;
        let bytes = number("bytes")?;
        Ok(Line { from: address(from)?, to: address(to)?, bytes, reverse_bytes: 0, start_ns, end_ns })
    }
}

/// The address of `10.0.0.1:80`, or of `2001:db8::1.80` and `2001:db8::1.128.0` (type and code of ICMP).
fn address(text: &str) -> Result<IpAddr, String> {
    if text.contains("..") {
        return Err(format!("`{}` is a shortened address; print with `nfdump -6`", short(text)));
    }
    let colons = text.matches(':').count();
    let address = match colons {
        0 | 1 => text.split(':').next(),
        _ => text.split('.').next(),
    };
    address
        .and_then(|address| address.parse().ok())
        .ok_or_else(|| format!("`{}` is no address with a port", short(text)))
}
