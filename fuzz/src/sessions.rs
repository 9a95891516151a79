//! Any bytes as a session with a directory server: what clients send it, and what it answers them.

use serde_json::json;
use weft_node::client::bulk::{self, Format};
use weft_node::directory::protocol::MappingRow;
use weft_node::directory::protocol::codec::{Decoder, Form, Input, encode};
use weft_node::directory::protocol::{AdminRequest, AdminResponse, RulesRow};
use weft_wire::directory::update::VerdictFrame;

use crate::seeds::Seed;

/// Of the sessions here, so that lines that are too long are short.
const LINE_MAX: usize = 2000;

/// Any bytes as what a client sends: requests are the same however the bytes come in, those that are read come back, and
/// whatever is refused can be told.
///
/// # Panics
/// When an invariant of the protocol is broken.
pub fn session_lines(bytes: &[u8]) {
    let whole = inputs(bytes, bytes.len().max(1));
    let piece = 1 + bytes.first().map_or(0, |byte| usize::from(*byte) % 31);
    assert_eq!(inputs(bytes, piece), whole, "in pieces of {piece} bytes");
    for input in &whole {
        match input {
            Input::Line(request) => {
                let text = serde_json::to_string(request).expect("a request is text");
                let again: AdminRequest = serde_json::from_str(&text).expect("what was written is read");
                assert_eq!(&again, request);
            }
            Input::Frame(request) => assert_eq!(request.updates.len(), 1),
            Input::Bad(form, why) | Input::Lost(form, why) => refused(*form, why),
        }
    }
}

/// Everything in a session that ends where it has to.
fn inputs(bytes: &[u8], piece: usize) -> Vec<Input> {
    let mut decoder = Decoder::new(LINE_MAX);
    let mut inputs = Vec::new();
    for piece in bytes.chunks(piece) {
        decoder.room().extend(piece);
        while let Some(input) = decoder.next() {
            let is_last = matches!(input, Input::Lost(..));
            inputs.push(input);
            if is_last {
                return inputs;
            }
        }
        assert!(decoder.partial() <= LINE_MAX, "no more is kept than a line");
    }
    inputs
}

/// The answer to what is refused is one that a client reads.
fn refused(form: Form, why: &str) {
    let response =
        AdminResponse { kind: Some("request".to_owned()), error: Some(why.to_owned()), ..AdminResponse::default() };
    let mut answer = Vec::new();
    encode(form, &response, &mut answer);
    match form {
        Form::Json => {
            assert_eq!(answer.iter().position(|byte| *byte == b'\n'), Some(answer.len() - 1), "one line");
            assert_eq!(serde_json::from_slice::<AdminResponse>(&answer).ok(), Some(response));
        }
        Form::Frame => {
            let (frame, length) = VerdictFrame::parse(&answer).expect("a verdict is read");
            assert!(length == answer.len() && why.starts_with(&frame.text));
        }
    }
}

/// Any bytes as what a server answers: what is read comes back.
///
/// # Panics
/// When an invariant of the protocol is broken.
pub fn session_answers(bytes: &[u8]) {
    for line in bytes.split(|byte| *byte == b'\n') {
        let Ok(response) = serde_json::from_slice::<AdminResponse>(line) else { continue };
        let mut again = Vec::new();
        encode(Form::Json, &response, &mut again);
        assert_eq!(serde_json::from_slice::<AdminResponse>(&again).ok(), Some(response));
    }
}

/// Any bytes as a file of mappings, CSV or JSON lines: refused with a line that exists, or written again in both.
///
/// # Panics
/// When an invariant of a format is broken.
pub fn bulk_mappings(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let rules = RulesRow { aa_block: "20.0.0.0/8".to_owned(), tor_las: None };
    let mappings = match bulk::read(text, &rules) {
        Ok(mappings) => mappings,
        Err(bad) => {
            let lines = 1 + text.bytes().filter(|byte| matches!(byte, b'\n' | b'\r')).count() as u64;
            assert!((1..=lines).contains(&bad.line), "{bad} of {lines}");
            return assert!(!bad.why.is_empty());
        }
    };
    let row = |mapping: &weft_node::directory::protocol::MappingToSet| MappingRow {
        aa: mapping.aa,
        tor_la: mapping.tor_la,
        anycast_la: mapping.anycast_la,
        service: mapping.service,
        host_la: mapping.host_la,
        version: 1,
    };
    let rows: Vec<MappingRow> = mappings.iter().map(row).collect();
    for format in [Format::Csv, Format::JsonLines] {
        let mut out = Vec::new();
        bulk::write_header(format, &mut out).and_then(|()| bulk::write_rows(format, &rows, &mut out)).expect("memory");
        let again = String::from_utf8(out).expect("it is text");
        assert_eq!(bulk::read(&again, &rules).as_ref(), Ok(&mappings), "written and read again");
    }
}

/// Sessions, answers and files, good ones and odd ones.
pub(crate) fn seeds() -> Vec<Seed> {
    let in_target = |target| move |(name, bytes)| Seed { target, name, bytes };
    let lines = lines().into_iter().map(in_target("session_lines"));
    let answers = answers().into_iter().map(in_target("session_answers"));
    lines.chain(answers).chain(files().into_iter().map(in_target("bulk_mappings"))).collect()
}

fn lines() -> Vec<(&'static str, Vec<u8>)> {
    let line = |value: serde_json::Value| [value.to_string().into_bytes(), b"\n".to_vec()].concat();
    let place = json!({"aa": "20.0.0.1", "tor_la": "10.1.0.1", "anycast_la": "10.255.0.1", "service": 7,
        "host_la": "10.64.0.2", "if_version": 3, "version": 9});
    let of = |op: &str| {
        let mut request = place.clone();
        request["op"] = op.into();
        request["client"] = 5.into();
        request["sequence"] = 9.into();
        line(request)
    };
    let frame = weft_wire::directory::update::UpdateFrame {
        aa: [20, 0, 0, 1].into(),
        place: None,
        if_version: Some(3),
        version: None,
        client: 1,
        sequence: 2,
    };
    let status = line(json!({"op": "status"}));
    vec![
        ("set", of("set")),
        ("set-many", line(json!({"op": "set-many", "mappings": [place, place], "client": 5, "sequence": 10}))),
        ("del", line(json!({"op": "del", "aa": "20.0.0.1", "if_version": 3}))),
        ("move", line(json!({"op": "move", "aa": "20.0.0.1", "tor_la": "10.1.0.2"}))),
        ("get", line(json!({"op": "get", "aa": "20.0.0.1"}))),
        ("list", line(json!({"op": "list", "from": "20.0.0.1", "limit": 2}))),
        ("watch", line(json!({"op": "watch", "from": 18446744073709551615u64}))),
        ("policy", line(json!({"op": "policy", "changes": [{"from_service": 1, "to_service": 2, "allow": true}]}))),
        ("reads", [line(json!({"op": "policy-list"})), line(json!({"op": "rules"})), status.clone()].concat()),
        ("frame", frame.emit().to_vec()),
        ("lines-and-frames", [&status[..], &frame.emit(), b"\n \n", &status, &frame.emit()].concat()),
        ("bad-frame", [&frame.emit()[..3], &[0xff], &frame.emit()[4..], &status].concat()),
        ("unknown-op", line(json!({"op": "fly"}))),
        ("unknown-key", line(json!({"op": "get", "aa": "20.0.0.1", "color": 1}))),
        ("not-json", b"{\"op\"\n".to_vec()),
        ("not-utf8", b"{\"op\":\"\xff\"}\n".to_vec()),
        ("deep", [b"[".repeat(300), b"\n".to_vec()].concat()),
        ("no-end", b"{".repeat(60)),
        ("too-long", [vec![b'x'; LINE_MAX + 1], b"\n".to_vec()].concat()),
    ]
}

fn answers() -> Vec<(&'static str, Vec<u8>)> {
    let mapping =
        json!({"aa": "20.0.0.1", "tor_la": "10.1.0.1", "anycast_la": "10.255.0.1", "service": 7, "version": 9});
    let change = json!({"aa": "20.0.0.1", "service": 7, "version": 10});
    let counts = json!({"a": 1});
    let status = json!({"schema_version": 1, "revision": 5, "mappings": 2, "listen": "10.64.0.9:5300", "open": false,
        "lookups": counts, "ignored": counts, "updates": counts, "store_error": "no leader"});
    let all = [
        ("committed", json!({"ok": true, "revision": 5})),
        ("mapping", json!({"ok": true, "revision": 5, "mapping": mapping})),
        ("list", json!({"ok": true, "revision": 5, "mappings": [mapping, mapping], "next": "20.0.0.3"})),
        ("changed", json!({"ok": true, "event": "changed", "revision": 6, "changes": [change]})),
        ("lagged", json!({"ok": true, "event": "lagged", "revision": 6})),
        ("policy", json!({"ok": true, "policy": [{"from_service": 1, "to_service": 2, "allow": true}]})),
        ("rules", json!({"ok": true, "rules": {"aa_block": "20.0.0.0/8", "tor_las": ["10.1.0.1"]}})),
        ("status", json!({"ok": true, "status": status})),
        ("refused", json!({"ok": false, "kind": "refused", "error": "the AA is outside the block"})),
        ("unknown-key", json!({"ok": true, "color": 1})),
        ("unknown-event", json!({"ok": true, "event": "flown"})),
    ];
    all.into_iter().map(|(name, value)| (name, value.to_string().into_bytes())).collect()
}

fn files() -> Vec<(&'static str, Vec<u8>)> {
    let header = "aa,tor_la,anycast_la,service,host_la\n";
    let row = "20.0.0.1,10.1.0.1,10.255.0.1,7,10.64.0.2\n";
    let json = r#"{"aa":"20.0.0.1","tor_la":"10.1.0.1","anycast_la":"10.255.0.1"}"#;
    let all = [
        ("csv", format!("{header}{row}20.0.0.2,10.1.0.1,10.255.0.1,0,\n")),
        ("csv-comment", format!("{header}# a comment\n{row}")),
        ("csv-other-order", "anycast_la,aa,tor_la\n10.255.0.1,20.0.0.1,10.1.0.1\n".to_owned()),
        ("csv-quoted", format!("{header}\"20.0.0.1\",\"10.1.0.1\",10.255.0.1,\"7\",\n")),
        ("csv-twice", format!("{header}{row}{row}")),
        ("csv-outside", format!("{header}{}", row.replace("20.0", "21.0"))),
        ("csv-too-few", format!("{header}20.0.0.1,10.1.0.1\n")),
        ("csv-unknown-column", format!("color,{header}")),
        ("csv-crlf", format!("{header}{row}").replace('\n', "\r\n")),
        ("empty", String::new()),
        ("json", format!("{json}\n\n{}\n", json.replace("20.0.0.1", "20.0.0.2"))),
        ("json-unknown-key", json.replace("aa", "ab")),
        ("json-cut", json[..30].to_owned()),
    ];
    all.into_iter().map(|(name, text)| (name, text.into_bytes())).collect()
}
