//! Bytes of a session to requests, answers to bytes: JSON lines and update frames, told apart by their first byte.

use weft_control::address::Locator;
use weft_control::directory::{Change, Request, Update};
use weft_wire::directory::update::{UPDATE_LEN, UPDATE_MARKER, UpdateFrame, Verdict, VerdictFrame};

use super::{AdminRequest, AdminResponse};

/// How a request came, and so how its answer goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// A line of JSON.
    Json,
    /// An update frame, and a verdict frame for it.
    Frame,
}

/// What a client sent.
#[derive(Debug, PartialEq, Eq)]
pub enum Input {
    /// A line of the session protocol.
    Line(AdminRequest),
    /// An update frame.
    Frame(Request),
    /// What is neither, with the answer to it; the session goes on.
    Bad(Form, String),
    /// What cannot be followed by anything; the session ends after the answer.
    Lost(Form, String),
}

/// What a long line grew is given back beyond this.
const ROOM_KEPT_BYTES: usize = 256 << 10;

/// Takes whole requests out of what has come in so far.
pub struct Decoder {
    bytes: Vec<u8>,
    /// Bytes at the start that are done.
    taken: usize,
    /// Bytes from `taken` on that hold no end of a line.
    searched: usize,
    line_max: usize,
}

impl Decoder {
    /// One for a session in which no line is longer than this, bytes.
    pub fn new(line_max: usize) -> Self {
        Self { bytes: Vec::with_capacity(8192), taken: 0, searched: 0, line_max }
    }

    /// Where the next bytes go: appends to it.
    pub fn room(&mut self) -> &mut Vec<u8> {
        self.bytes.drain(..self.taken);
        self.taken = 0;
        if self.bytes.is_empty() {
            self.bytes.shrink_to(ROOM_KEPT_BYTES);
        }
        &mut self.bytes
    }

    /// Bytes of what has come in part.
    pub fn partial(&self) -> usize {
        self.bytes.len() - self.taken
    }

    /// The next whole request; `None` until more has come.
    #[expect(clippy::should_implement_trait, reason = "there is more once more has come")]
    pub fn next(&mut self) -> Option<Input> {
        loop {
            let rest = &self.bytes[self.taken..];
            match rest.first()? {
                &UPDATE_MARKER => {
                    let frame = rest.get(..UPDATE_LEN)?;
                    let input = match UpdateFrame::parse(frame) {
                        Ok(frame) => Input::Frame(request_of(&frame)),
                        Err(error) => Input::Bad(Form::Frame, format!("not an update: {error}")),
                    };
                    self.taken += UPDATE_LEN;
                    return Some(input);
                }
                byte if byte.is_ascii_whitespace() => {
                    self.taken += 1;
                    self.searched = 0;
                }
                _ => return self.line(),
            }
        }
    }

    fn line(&mut self) -> Option<Input> {
        let rest = &self.bytes[self.taken..];
        let end = rest[self.searched..].iter().position(|byte| *byte == b'\n').map(|end| end + self.searched);
        if end.unwrap_or(rest.len()) > self.line_max {
            self.bytes = Vec::new();
            (self.taken, self.searched) = (0, 0);
            let why = format!("a line is longer than {} bytes; send fewer mappings at a time", self.line_max);
            return Some(Input::Lost(Form::Json, why));
        }
        let Some(end) = end else {
            self.searched = rest.len();
            return None;
        };
        let input = match serde_json::from_slice(&rest[..end]) {
            Ok(request) => Input::Line(request),
            Err(error) => Input::Bad(Form::Json, format!("not a request: {error}")),
        };
        self.taken += end + 1;
        self.searched = 0;
        Some(input)
    }
}

/// Appends an answer.
pub fn encode(form: Form, response: &AdminResponse, out: &mut Vec<u8>) {
    match form {
        Form::Json => {
            serde_json::to_writer(&mut *out, response).expect("a response has no maps with keys that are not text");
            out.push(b'\n');
        }
        Form::Frame => VerdictFrame {
            verdict: verdict(response),
            revision: response.revision.unwrap_or(0),
            text: response.error.clone().unwrap_or_default(),
        }
        .emit_to(out),
    }
}

fn verdict(response: &AdminResponse) -> Verdict {
    match response.kind.as_deref() {
        _ if response.ok => Verdict::Committed,
        Some("request") => Verdict::Request,
        Some("refused") => Verdict::Refused,
        Some("denied") => Verdict::Denied,
        Some("busy") => Verdict::Busy,
        _ => Verdict::Store,
    }
}

fn request_of(frame: &UpdateFrame) -> Request {
    let change = frame.place.map_or(Change::Delete, |place| Change::Set {
        locator: Locator { tor_la: place.tor_la, anycast_la: place.anycast_la },
        service: place.service,
        host_la: place.host_la,
    });
    let update = Update { aa: frame.aa, change, if_version: frame.if_version, version: frame.version };
    Request { client: frame.client, sequence: frame.sequence, ..Request::once(vec![update]) }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    const STATUS: &[u8] = b"{\"op\":\"status\"}\n";

    fn frame() -> UpdateFrame {
        UpdateFrame {
            aa: Ipv4Addr::new(20, 0, 0, 1),
            place: None,
            if_version: Some(3),
            version: None,
            client: 1,
            sequence: 2,
        }
    }

    fn all(decoder: &mut Decoder) -> Vec<Input> {
        std::iter::from_fn(|| decoder.next()).collect()
    }

    #[test]
    fn lines_and_frames_mix_and_may_come_in_any_pieces() {
        let mut bytes = STATUS.to_vec();
        bytes.extend(frame().emit());
        bytes.extend(b"\n \n");
        bytes.extend(STATUS);
        bytes.extend(frame().emit());
        let expected = |inputs: &[Input]| {
            assert_eq!(inputs.len(), 4, "{inputs:?}");
            assert_eq!(inputs[0], Input::Line(AdminRequest::Status {}));
            assert_eq!(inputs[1], Input::Frame(request_of(&frame())));
            assert_eq!(inputs[3], inputs[1]);
        };
        for piece in [1, 3, 17, bytes.len()] {
            let mut decoder = Decoder::new(100);
            let mut inputs = Vec::new();
            for piece in bytes.chunks(piece) {
                decoder.room().extend(piece);
                inputs.extend(all(&mut decoder));
            }
            expected(&inputs);
            assert!(decoder.room().is_empty());
        }
    }

    #[test]
    fn what_is_no_request_gets_an_answer_and_what_has_no_end_ends_the_session() {
        let mut decoder = Decoder::new(100);
        let mut bad = frame().emit();
        bad[3] = 1;
        decoder.room().extend(bad);
        decoder.room().extend(b"{\"op\":\"fly\"}\n");
        let inputs = all(&mut decoder);
        assert!(matches!(&inputs[..], [Input::Bad(Form::Frame, _), Input::Bad(Form::Json, _)]), "{inputs:?}");
        decoder.room().extend([b'x'; 101]);
        assert!(matches!(decoder.next(), Some(Input::Lost(Form::Json, why)) if why.contains("longer than 100")));
        let mut decoder = Decoder::new(100);
        decoder.room().extend([b"{", &[b' '; 200][..], b"}\n"].concat());
        assert!(matches!(decoder.next(), Some(Input::Lost(..))));
    }
}
