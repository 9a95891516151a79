//! Flow files of the reference job R1: one flow to a line, five numbers.
//!
//! ```text
//! start_ps from to packets spine
//! 48553254 70 30 33 1
//! ```
//!
//! A packet is a full-size one: 1460 bytes of payload, 1500 with its IPv4 and TCP headers. The flow's data and its
//! acknowledgements both go by the spine of this number, counted from 0. Blank lines and lines that begin with `#` are
//! skipped.

use std::fmt::Write;

use super::FlowSpec;

/// Payload of one packet of a flow file.
pub const PACKET_PAYLOAD_BYTES: u32 = 1460;

/// One flow of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PinnedFlow {
    /// When it starts, in picoseconds from the start of the run.
    pub start_ps: u64,
    /// Number of the sending server.
    pub from: u32,
    /// Number of the receiving server.
    pub to: u32,
    /// How many full-size packets it sends.
    pub packets: u32,
    /// Number of the spine that it goes by.
    pub spine: u16,
}

impl PinnedFlow {
    /// The flow with its start rounded down to a nanosecond.
    pub fn spec(&self) -> FlowSpec {
        let bytes = u64::from(self.packets) * u64::from(PACKET_PAYLOAD_BYTES);
        FlowSpec { spine: Some(self.spine), ..FlowSpec::bulk(self.from, self.to, bytes, self.start_ps / 1_000) }
    }
}

/// Why a flow file is refused; lines are counted from 1.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FlowFileError {
    /// Not five numbers.
    #[error("line {line}: `{text}` is no flow; write `start_ps from to packets spine`, five whole numbers")]
    Malformed { line: usize, text: String },
    /// Sender and receiver are the same.
    #[error("line {line}: server {server} cannot send to itself")]
    ToItself {
        line: usize,
        /// The server's number.
        server: u32,
    },
    /// Nothing to send.
    #[error("line {line}: a flow of 0 packets sends nothing")]
    NoPackets { line: usize },
}

/// Reads a flow file.
pub fn parse(text: &str) -> Result<Vec<PinnedFlow>, FlowFileError> {
    let lines =
        text.lines().zip(1..).filter(|(line, _)| !line.trim().is_empty() && !line.trim_start().starts_with('#'));
    lines.map(|(text, line)| parse_line(text, line)).collect()
}

fn parse_line(text: &str, line: usize) -> Result<PinnedFlow, FlowFileError> {
    let malformed = || FlowFileError::Malformed { line, text: text.chars().take(80).collect() };
    let words: Vec<&str> = text.split_whitespace().collect();
    let [start, from, to, packets, spine] = words[..] else { return Err(malformed()) };
    let number = |word: &str| word.parse().map_err(|_| malformed());
    let (start_ps, spine) = (start.parse().map_err(|_| malformed())?, spine.parse().map_err(|_| malformed())?);
    let flow = PinnedFlow { start_ps, from: number(from)?, to: number(to)?, packets: number(packets)?, spine };
    match flow {
        PinnedFlow { from, to, .. } if from == to => Err(FlowFileError::ToItself { line, server: from }),
        PinnedFlow { packets: 0, .. } => Err(FlowFileError::NoPackets { line }),
        flow => Ok(flow),
    }
}

/// The text of a flow file.
pub fn to_text(flows: &[PinnedFlow]) -> String {
    flows.iter().fold(String::new(), |mut text, flow| {
        let PinnedFlow { start_ps, from, to, packets, spine } = flow;
        writeln!(text, "{start_ps} {from} {to} {packets} {spine}").expect("a string takes everything");
        text
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn lines_comments_and_blanks_are_read() {
        let flows = parse("# start_ps from to packets spine\n\n48553254 70 30 33 1\n  7\t1 2 3 4\n").unwrap();
        let first = PinnedFlow { start_ps: 48_553_254, from: 70, to: 30, packets: 33, spine: 1 };
        assert_eq!(flows, [first, PinnedFlow { start_ps: 7, from: 1, to: 2, packets: 3, spine: 4 }]);
        assert_eq!(first.spec(), FlowSpec { spine: Some(1), ..FlowSpec::bulk(70, 30, 33 * 1460, 48_553) });
        assert_eq!(parse(""), Ok(Vec::new()));
    }

    #[test]
    fn what_is_no_flow_is_refused_with_its_line() {
        for (text, message) in [
            ("0 1 2 3 4\n0 1 2 3", "line 2: `0 1 2 3` is no flow"),
            ("0 1 2 3 4 5", "line 1: `0 1 2 3 4 5` is no flow"),
            ("-1 1 2 3 4", "line 1"),
            ("0 1 2 3.5 4", "line 1"),
            ("0 1 2 99999999999 4", "line 1"),
            ("0 1 2 3 65536", "line 1"),
            ("#\n0 5 5 3 4", "line 2: server 5 cannot send to itself"),
            ("0 1 2 0 4", "line 1: a flow of 0 packets"),
        ] {
            let error = parse(text).unwrap_err().to_string();
            assert!(error.starts_with(message), "wanted `{message}`, got `{error}`");
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(rows in proptest::collection::vec((any::<u64>(), 0u32..9, 1..=u32::MAX, any::<u16>()), 0..9)) {
            let flows: Vec<PinnedFlow> = rows
                .into_iter()
                .map(|(start_ps, from, packets, spine)| PinnedFlow { start_ps, from, to: from + 1, packets, spine })
                .collect();
            prop_assert_eq!(parse(&to_text(&flows)), Ok(flows));
        }

        #[test]
        fn no_text_breaks_the_reader(text in "[ -~\n]{0,200}") {
            let _ = parse(&text);
        }
    }
}
