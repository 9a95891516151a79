//! A single update as a frame of fixed length, and its verdict: what busy clients send over a session instead of JSON.
//!
//! Numbers are big-endian. The first byte of each is no first byte of a JSON text, so both can be mixed.
//!
//! ```text
//! update, 56 bytes                          verdict, 12 bytes and a text
//!  0  marker 0xb1                            0  marker 0xb2
//!  1  operation: 1 set, 2 delete             1  verdict: 0 committed, else why not
//!  2  flags: 1 if-version, 2 version,        2  length of the text, bytes
//!     4 host LA                              4  revision
//!  3  reserved = 0                          12  text, UTF-8: why not, in one line
//!  4  AA
//!  8  ToR LA
//! 12  anycast LA
//! 16  host LA
//! 20  service
//! 24  only if this is the current version
//! 32  version that results
//! 40  client
//! 48  the client's sequence number
//! ```
//!
//! Fields whose flag is not set, and of a deletion all places, are 0.

use std::net::Ipv4Addr;

use crate::bytes::{ipv4_at, put, u16_at, u32_at, u64_at};
use crate::error::{ParseError, need};

/// First byte of an update.
pub const UPDATE_MARKER: u8 = 0xb1;
/// First byte of a verdict.
pub const VERDICT_MARKER: u8 = 0xb2;
/// Length of an update, bytes.
pub const UPDATE_LEN: usize = 56;
/// Length of a verdict without its text, bytes.
pub const VERDICT_LEN: usize = 12;
/// Longest text of a verdict, bytes.
pub const VERDICT_TEXT_MAX: usize = 1024;

const SET: u8 = 1;
const DELETE: u8 = 2;
const HAS_IF_VERSION: u8 = 1;
const HAS_VERSION: u8 = 2;
const HAS_HOST: u8 = 4;

/// Where an AA is to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Place {
    /// LA of its ToR.
    pub tor_la: Ipv4Addr,
    /// Anycast LA to bounce off.
    pub anycast_la: Ipv4Addr,
    pub host_la: Option<Ipv4Addr>,
    pub service: u32,
}

/// An update of one AA.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct UpdateFrame {
    pub aa: Ipv4Addr,
    /// Where it is to be; `None`: nowhere.
    pub place: Option<Place>,
    /// Only if this is the current version (0: never set).
    pub if_version: Option<u64>,
    /// The version that results.
    pub version: Option<u64>,
    /// Who asks; 0 for a client that does not repeat requests.
    pub client: u64,
    /// The client's number of this request.
    pub sequence: u64,
}

/// What became of an update.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// It is kept.
    Committed = 0,
    /// It was not understood.
    Request = 1,
    /// It is against the rules.
    Refused = 2,
    /// The store did not take it, or not in time.
    Store = 3,
    /// Too much is waiting.
    Busy = 4,
    /// This client may not do that.
    Denied = 5,
}

/// The answer to an [`UpdateFrame`].
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct VerdictFrame {
    /// What became of it.
    pub verdict: Verdict,
    /// Revision at which it was committed.
    pub revision: u64,
    /// Why it was not; empty if it was.
    pub text: String,
}

impl UpdateFrame {
    /// The frame.
    pub fn emit(&self) -> [u8; UPDATE_LEN] {
        let mut bytes = [0; UPDATE_LEN];
        let flag = |set: bool, bit: u8| if set { bit } else { 0 };
        let host_la = self.place.and_then(|place| place.host_la);
        bytes[0] = UPDATE_MARKER;
        bytes[1] = if self.place.is_some() { SET } else { DELETE };
        bytes[2] = flag(self.if_version.is_some(), HAS_IF_VERSION)
            | flag(self.version.is_some(), HAS_VERSION)
            | flag(host_la.is_some(), HAS_HOST);
        put(&mut bytes, 4, &self.aa.octets());
        if let Some(place) = self.place {
            put(&mut bytes, 8, &place.tor_la.octets());
            put(&mut bytes, 12, &place.anycast_la.octets());
            put(&mut bytes, 16, &host_la.unwrap_or(Ipv4Addr::UNSPECIFIED).octets());
            put(&mut bytes, 20, &place.service.to_be_bytes());
        }
        for (offset, number) in [
            (24, self.if_version.unwrap_or(0)),
            (32, self.version.unwrap_or(0)),
            (40, self.client),
            (48, self.sequence),
        ] {
            put(&mut bytes, offset, &number.to_be_bytes());
        }
        bytes
    }

    /// Reads the frame at the start of `bytes`.
    ///
    /// # Errors
    /// Too few bytes, another marker, or bits without a meaning.
    pub fn parse(bytes: &[u8]) -> Result<Self, ParseError> {
        need(bytes, UPDATE_LEN)?;
        if bytes[0] != UPDATE_MARKER {
            return Err(ParseError::Magic(bytes[0].into()));
        }
        let flags = bytes[2];
        if flags & !(HAS_IF_VERSION | HAS_VERSION | HAS_HOST) != 0 || bytes[3] != 0 {
            return Err(ParseError::Reserved);
        }
        let with = |bit: u8, offset: usize| (flags & bit != 0).then(|| u64_at(bytes, offset));
        let place = match bytes[1] {
            SET => Some(Place {
                tor_la: ipv4_at(bytes, 8),
                anycast_la: ipv4_at(bytes, 12),
                host_la: (flags & HAS_HOST != 0).then(|| ipv4_at(bytes, 16)),
                service: u32_at(bytes, 20),
            }),
            DELETE => None,
            other => return Err(ParseError::Kind(other.into())),
        };
        let frame = Self {
            aa: ipv4_at(bytes, 4),
            place,
            if_version: with(HAS_IF_VERSION, 24),
            version: with(HAS_VERSION, 32),
            client: u64_at(bytes, 40),
            sequence: u64_at(bytes, 48),
        };
        if frame.emit() == bytes[..UPDATE_LEN] { Ok(frame) } else { Err(ParseError::Reserved) }
    }
}

impl Verdict {
    /// Every verdict, in the order of the code points.
    pub const ALL: [Self; 6] = [Self::Committed, Self::Request, Self::Refused, Self::Store, Self::Busy, Self::Denied];
}

impl VerdictFrame {
    /// Appends the frame; a text that is too long is cut.
    pub fn emit_to(&self, bytes: &mut Vec<u8>) {
        let mut length = self.text.len().min(VERDICT_TEXT_MAX);
        while !self.text.is_char_boundary(length) {
            length -= 1;
        }
        bytes.extend([VERDICT_MARKER, self.verdict as u8]);
        bytes.extend((length as u16).to_be_bytes());
        bytes.extend(self.revision.to_be_bytes());
        bytes.extend(&self.text.as_bytes()[..length]);
    }

    /// Reads the frame at the start of `bytes`, and says how long it is.
    ///
    /// # Errors
    /// [`ParseError::Truncated`] if it is not complete yet; else another marker, an unknown verdict, or a text that is none
    /// or longer than [`VERDICT_TEXT_MAX`].
    pub fn parse(bytes: &[u8]) -> Result<(Self, usize), ParseError> {
        need(bytes, VERDICT_LEN)?;
        if bytes[0] != VERDICT_MARKER {
            return Err(ParseError::Magic(bytes[0].into()));
        }
        let code = bytes[1];
        let verdict = Verdict::ALL.into_iter().find(|verdict| *verdict as u8 == code);
        let verdict = verdict.ok_or(ParseError::Kind(code.into()))?;
        let length = VERDICT_LEN + usize::from(u16_at(bytes, 2));
        if length > VERDICT_LEN + VERDICT_TEXT_MAX {
            return Err(ParseError::Length { expected_bytes: VERDICT_LEN + VERDICT_TEXT_MAX, found_bytes: length });
        }
        need(bytes, length)?;
        let text = std::str::from_utf8(&bytes[VERDICT_LEN..length]).map_err(|_| ParseError::Reserved)?;
        Ok((Self { verdict, revision: u64_at(bytes, 4), text: text.to_owned() }, length))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn frames() -> impl Strategy<Value = UpdateFrame> {
        let place = (any::<u32>(), any::<u32>(), any::<Option<u32>>(), any::<u32>()).prop_map(
            |(tor_la, anycast_la, host_la, service)| Place {
                tor_la: tor_la.into(),
                anycast_la: anycast_la.into(),
                host_la: host_la.map(Ipv4Addr::from),
                service,
            },
        );
        (any::<u32>(), proptest::option::of(place), any::<[Option<u64>; 2]>(), any::<[u64; 2]>()).prop_map(
            |(aa, place, [if_version, version], [client, sequence])| UpdateFrame {
                aa: aa.into(),
                place,
                if_version,
                version,
                client,
                sequence,
            },
        )
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(frame in frames()) {
            prop_assert_eq!(UpdateFrame::parse(&frame.emit()), Ok(frame));
        }

        #[test]
        fn junk_is_refused_or_read_as_what_it_is(mut bytes in any::<[u8; UPDATE_LEN]>(), marked: bool) {
            if marked {
                bytes = bytes.map(|byte| byte & 7);
                (bytes[0], bytes[1], bytes[3]) = (UPDATE_MARKER, 1 + bytes[1] % 2, 0);
            }
            if let Ok(frame) = UpdateFrame::parse(&bytes) {
                prop_assert_eq!(frame.emit(), bytes);
            }
        }

        #[test]
        fn verdicts_are_read_as_written(code in 0usize..6, revision: u64, text in "\\PC{0,2000}") {
            let frame = VerdictFrame { verdict: Verdict::ALL[code], revision, text };
            let mut bytes = Vec::new();
            frame.emit_to(&mut bytes);
            let whole = bytes.len();
            bytes.push(7);
            let (read, length) = VerdictFrame::parse(&bytes).unwrap();
            prop_assert_eq!(length, whole);
            prop_assert_eq!((read.verdict, read.revision), (frame.verdict, frame.revision));
            prop_assert!(frame.text.starts_with(&read.text) && read.text.len() <= VERDICT_TEXT_MAX);
            for cut in 0..whole {
                prop_assert!(VerdictFrame::parse(&bytes[..cut]).is_err());
            }
        }
    }

    #[test]
    fn a_verdict_that_says_too_much_is_refused_and_not_read_as_two() {
        let mut bytes = vec![VERDICT_MARKER, 0, 0x04, 0x01, 0, 0, 0, 0, 0, 0, 0, 9];
        bytes.resize(VERDICT_LEN + VERDICT_TEXT_MAX + 1, b'x');
        assert!(matches!(VerdictFrame::parse(&bytes), Err(ParseError::Length { found_bytes: 1037, .. })));
        bytes[3] = 0;
        assert_eq!(VerdictFrame::parse(&bytes).unwrap().1, VERDICT_LEN + VERDICT_TEXT_MAX);
    }

    #[test]
    fn the_layout_is_the_one_that_is_drawn() {
        let frame = UpdateFrame {
            aa: Ipv4Addr::new(20, 0, 0, 5),
            place: Some(Place {
                tor_la: Ipv4Addr::new(10, 1, 0, 2),
                anycast_la: Ipv4Addr::new(10, 255, 255, 1),
                host_la: Some(Ipv4Addr::new(10, 64, 0, 2)),
                service: 7,
            }),
            if_version: Some(3),
            version: None,
            client: 0x0102_0304_0506_0708,
            sequence: 9,
        };
        let expected = [
            0xb1, 1, 5, 0, 20, 0, 0, 5, 10, 1, 0, 2, 10, 255, 255, 1, 10, 64, 0, 2, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0, 3,
            0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 0, 0, 0, 0, 0, 0, 0, 9,
        ];
        assert_eq!(frame.emit(), expected);
    }
}
