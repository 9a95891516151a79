//! Whole frames, compared with what the server says to the same datagram.

use std::net::{Ipv4Addr, SocketAddrV4};

use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::{Rng, SeedableRng};
use weft_control::address::Locator;
use weft_control::directory::{Authority, Change as Changes, PolicyChange, Received, Request, Responder, Update};
use weft_datapath::frame::Verdict;
use weft_wire::directory::{Entry, Key, Kind, Message, Path, Secret, Status, View};

use super::*;

const SERVER: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(10, 64, 0, 9), 5300);
const SERVER_MAC: [u8; 6] = [0x02, 0, 0, 0, 0, 0x09];
const ROUTER_MAC: [u8; 6] = [0x02, 0x33, 0x44, 0x55, 0x66, 0x77];
const LA: Ipv4Addr = Ipv4Addr::new(10, 64, 1, 2);
/// Where the datagram begins.
const DATAGRAM: usize = 42;

fn secret(id: u32) -> Secret {
    Secret::from_bytes([id as u8 + 1; 16])
}

/// A card without a network, and the server that it stands before.
struct Bed {
    card: Card,
    table: Table,
    responder: Responder,
    _dir: tempfile::TempDir,
}

impl Bed {
    /// `None` without the right to eBPF.
    fn new(mappings: u32, keys: KeyRing) -> Option<Self> {
        if !weft_needs::root() {
            return None;
        }
        let dir = tempfile::tempdir().unwrap();
        let config = LookupConfig { listen: SERVER, mac: SERVER_MAC, mappings };
        let (datapath, table) = LookupDatapath::load(&config).unwrap();
        let card = Card {
            interface: "none".to_owned(),
            datapath: Mutex::new(datapath),
            table: Mutex::new(table),
            failed: AtomicBool::new(false),
            changes: Mutex::new(Cards::open(&dir.path().join("socket")).unwrap()),
        };
        let table = Table::at(1000);
        card.set_keys(&keys);
        card.show_all(&table);
        Some(Self { card, table, responder: Responder { keys }, _dir: dir })
    }

    fn with_keys(mappings: u32) -> Option<Self> {
        Self::new(mappings, KeyRing::new([(0, secret(0)), (7, secret(7))]))
    }

    /// As the replica does: the server first, then the card.
    fn apply(&mut self, updates: Vec<Update>, policy: Vec<PolicyChange>) {
        let request = Request { authority: Authority::Operator, client: 0, sequence: 0, updates, policy };
        let batch = Batch { requests: vec![request] };
        let verdicts = self.table.apply(self.table.revision() + 1, &batch);
        assert!(verdicts.iter().all(Result::is_ok), "{verdicts:?}");
        self.card.show(&self.table, [&batch].into_iter());
    }

    fn set(&mut self, aa: Ipv4Addr, service: u32, tor: u32) {
        self.apply(vec![set(aa, service, tor)], Vec::new());
    }

    fn count(&self, outcome: &str) -> u64 {
        self.card.status().frames[outcome]
    }

    /// What the program makes of a frame: its answer, or nothing and then it left the frame as it was.
    fn at_card(&self, frame: &[u8]) -> Option<Vec<u8>> {
        let output = locked(&self.card.datapath).run(frame).unwrap();
        match output.verdict {
            Verdict::Return => Some(output.bytes),
            Verdict::Next => {
                assert!(output.bytes == frame, "a frame that goes on was changed");
                None
            }
            other => panic!("{other:?}"),
        }
    }

    /// The server's answer to a datagram, if it says where one AA is.
    fn of_server(&self, path: &Path, datagram: &[u8]) -> Option<Vec<u8>> {
        let mut answer = datagram.to_vec();
        let received = self.responder.respond(&self.table, path, &mut answer).ok()?;
        let view = View::new(&answer).unwrap();
        let tells = received == Received::Answered { questions: 1 } && view.entry(0)?.status == Status::Ok;
        tells.then_some(answer)
    }

    /// The frame that the server's answer goes out in, from what its rules say of the frame that came.
    fn expected(&self, frame: &[u8]) -> Option<Vec<u8>> {
        let (packet, datagram) = (frame.get(14..DATAGRAM)?, frame.get(DATAGRAM..)?);
        let half = |at: usize| u16::from_be_bytes([packet[at], packet[at + 1]]);
        let address = |at: usize| Ipv4Addr::new(packet[at], packet[at + 1], packet[at + 2], packet[at + 3]);
        let path = Path {
            source: SocketAddrV4::new(address(12), half(20)),
            destination: SocketAddrV4::new(address(16), half(22)),
        };
        let ip = path.source.ip();
        let is_good = frame[..6] == SERVER_MAC
            && frame[12..14] == [8, 0]
            && packet[0] == 0x45
            && usize::from(half(2)) == frame.len() - 14
            && half(6) & 0x3fff == 0
            && packet[9] == 17
            && sum(&packet[..20]) == 0xffff
            && path.destination == SERVER
            && usize::from(half(24)) == frame.len() - 34
            && !(ip.octets()[0] == 0 || ip.is_loopback() || ip.octets()[0] >= 224 || ip == SERVER.ip());
        let answer = self.of_server(&path, datagram).filter(|_| is_good)?;
        Some(frame_of([frame[6..12].try_into().unwrap(), SERVER_MAC], &path.reversed(), 0xc0, &answer))
    }

    #[track_caller]
    fn check(&self, frame: &[u8]) -> bool {
        let (expected, got) = (self.expected(frame), self.at_card(frame));
        assert!(got == expected, "{:02x?}\ngot {got:02x?}\nexpected {expected:02x?}", frame);
        got.is_some()
    }
}

fn set(aa: Ipv4Addr, service: u32, tor: u32) -> Update {
    let locator =
        Locator { tor_la: Ipv4Addr::from(0x0a01_0000 + tor), anycast_la: Ipv4Addr::from(0x0aff_ff00 + tor % 9) };
    Update { aa, change: Changes::Set { locator, service, host_la: None }, if_version: None, version: None }
}

fn delete(aa: Ipv4Addr) -> Update {
    Update { aa, change: Changes::Delete, if_version: None, version: None }
}

fn aa(n: u32) -> Ipv4Addr {
    Ipv4Addr::from(0x1400_0000 + n)
}

/// Ones' complement sum (RFC 1071).
fn sum(bytes: &[u8]) -> u32 {
    let words = bytes.chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0)));
    let sum: u32 = words.sum();
    let sum = (sum >> 16) + (sum & 0xffff);
    (sum >> 16) + (sum & 0xffff)
}

/// A datagram as the stack sends it: checksums, "do not fragment", TTL 64.
fn frame_of([to, from]: [[u8; 6]; 2], path: &Path, tos: u8, datagram: &[u8]) -> Vec<u8> {
    let (udp, total) = (8 + datagram.len() as u16, 28 + datagram.len() as u16);
    let ends = [path.source.ip().octets(), path.destination.ip().octets()].concat();
    let mut header = vec![0x45, tos, (total >> 8) as u8, total as u8, 0, 0, 0x40, 0, 64, 17, 0, 0];
    header.extend(&ends);
    let checksum = !(sum(&header) as u16);
    header[10..12].copy_from_slice(&checksum.to_be_bytes());
    let ports = [path.source.port(), path.destination.port(), udp].map(u16::to_be_bytes).concat();
    let pseudo = [&ends[..], &[0, 17], &udp.to_be_bytes(), &ports, &[0, 0], datagram].concat();
    let checksum = match !(sum(&pseudo) as u16) {
        0 => 0xffff,
        checksum => checksum,
    };
    [&to[..], &from, &[8, 0], &header, &ports, &checksum.to_be_bytes(), datagram].concat()
}

fn path_from(la: Ipv4Addr) -> Path {
    Path { source: SocketAddrV4::new(la, 40_123), destination: SERVER }
}

fn message(aas: &[(Ipv4Addr, u64)]) -> Message {
    let entries = aas.iter().map(|(aa, version)| Entry::question(*aa, *version)).collect();
    Message { kind: Kind::Ask, service: 0, request_id: 0x1122_3344_5566_7788, revision: 0, key_id: 0, entries }
}

fn frame(message: &Message, key: &Key, path: &Path) -> Vec<u8> {
    frame_of([SERVER_MAC, ROUTER_MAC], path, 0, &message.emit(key, path))
}

/// A question of service 0 with the first secret.
fn question(aa: Ipv4Addr) -> Vec<u8> {
    frame(&message(&[(aa, 0)]), &secret(0).derive(0, LA), &path_from(LA))
}

#[test]
fn whatever_is_asked_the_answer_is_the_servers_or_nobodys() {
    let Some(mut bed) = Bed::with_keys(10_000) else { return };
    let mut random = Pcg64Mcg::seed_from_u64(20_261_126);
    let mut below = |limit: u32| random.next_u32() % limit;
    let (mut answered, mut silent) = (0, 0);
    for round in 0..60 {
        let mut updates: Vec<Update> = (0..40).map(|_| set(aa(below(400)), below(4), below(200))).collect();
        updates.sort_by_key(|update| update.aa);
        updates.dedup_by_key(|update| update.aa);
        let mapped = |update: &Update| bed.table.mapping(update.aa).is_some();
        let gone: Vec<Update> = updates.iter().filter(|one| mapped(one)).step_by(3).map(|one| delete(one.aa)).collect();
        let changes = (0..2).map(|n| PolicyChange { from_service: below(4), to_service: n, allow: below(2) == 0 });
        let policy = if round % 4 == 3 { changes.collect() } else { Vec::new() };
        updates.retain(|update| gone.iter().all(|gone| gone.aa != update.aa));
        bed.apply(updates.into_iter().chain(gone).collect(), policy);
        let revision = bed.table.revision();
        for _ in 0..80 {
            let count = if below(10) == 0 { 1 + below(4) } else { 1 };
            let version = [0, 0, 0, 0, 0, revision - 30, revision, revision + 1][below(8) as usize];
            let mut asked = message(&(0..count).map(|_| (aa(below(420)), version)).collect::<Vec<_>>());
            asked.service = below(4);
            asked.key_id = [0, 0, 0, 0, 7, 7, 7, 9][below(8) as usize];
            asked.revision = [0, 0, 0, revision - 1, revision, revision + 1][below(6) as usize];
            match below(30) {
                0 => asked.kind = Kind::ReportStale,
                1 => (asked.kind, asked.entries) = (Kind::Ping, Vec::new()),
                2 => asked.kind = Kind::Answer,
                _ => {}
            }
            let la = Ipv4Addr::from(0x0a40_0100 + below(50));
            let tagged_for = if below(12) == 0 { LA } else { la };
            let key = secret(asked.key_id).derive(asked.service, tagged_for);
            if bed.check(&frame(&asked, &key, &path_from(la))) {
                answered += 1;
            } else {
                silent += 1;
            }
        }
    }
    assert!(answered > 500 && silent > 1000, "{answered} {silent}");
    for outcome in ["answered", "not_plain", "missing", "policy", "behind", "key_id", "tag"] {
        assert!(bed.count(outcome) > 20, "{outcome} hardly met: {:?}", bed.card.status());
    }
}

#[test]
fn frames_that_are_cut_or_changed_anywhere_are_the_servers() {
    let Some(mut bed) = Bed::with_keys(1000) else { return };
    bed.set(aa(1), 0, 1);
    bed.set(aa(257), 0, 2);
    let whole = question(aa(1));
    assert!(bed.check(&whole));
    for length in 34..whole.len() {
        assert!(!bed.check(&whole[..length]), "{length}");
    }
    for extra in 1..40 {
        assert!(!bed.check(&[&whole[..], &vec![0; extra]].concat()), "{extra}");
    }
    for place in 0..whole.len() {
        for bits in [0x01, 0x80, 0xff, 0x10] {
            let mut changed = whole.clone();
            changed[place] ^= bits;
            // Who sent it on, and the checksum that the tag makes superfluous.
            let harmless = (6..12).contains(&place) || (40..42).contains(&place);
            assert_eq!(bed.check(&changed), harmless, "byte {place} changed by {bits:#x}");
        }
    }
}

#[test]
fn unusual_packets_are_the_servers() {
    let Some(mut bed) = Bed::with_keys(1000) else { return };
    bed.set(aa(1), 0, 1);
    let changed = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut frame = question(aa(1));
        change(&mut frame);
        frame[24..26].fill(0);
        let checksum = !(sum(&frame[14..34]) as u16);
        frame[24..26].copy_from_slice(&checksum.to_be_bytes());
        frame
    };
    assert!(bed.check(&changed(&|frame| frame[22] = 1)), "any TTL is good at the last hop");
    assert!(bed.check(&changed(&|frame| (frame[15], frame[19]) = (0xb8, 7))), "class and id are the sender's");
    for (what, change) in [
        ("more fragments", &(|frame: &mut Vec<u8>| frame[20] = 0x20) as &dyn Fn(&mut Vec<u8>)),
        ("an offset", &|frame| frame[21] = 1),
        ("another protocol", &|frame| frame[23] = 6),
        ("options", &|frame| frame[14] = 0x46),
        ("a longer packet", &|frame| frame[17] += 1),
        ("a VLAN tag", &|frame| frame[12..14].copy_from_slice(&[0x81, 0])),
        ("another host", &|frame| frame[33] ^= 1),
    ] {
        assert!(!bed.check(&changed(change)), "{what}");
    }
    for source in ["0.1.2.3", "127.0.0.1", "224.0.0.5", "255.255.255.255", "240.0.0.1", "10.64.0.9"] {
        let la: Ipv4Addr = source.parse().unwrap();
        let asked = frame(&message(&[(aa(1), 0)]), &secret(0).derive(0, la), &path_from(la));
        assert!(!bed.check(&asked), "{source}");
    }
    let mut for_another = question(aa(1));
    for_another[5] ^= 1;
    assert!(!bed.check(&for_another));
}

#[test]
fn an_update_is_seen_by_the_next_look_up_and_none_is_answered_while_it_is_made() {
    let Some(mut bed) = Bed::with_keys(1000) else { return };
    let asked = question(aa(1));
    assert!(!bed.check(&asked), "nobody has it");
    for (tor, there) in [(1, true), (2, true), (0, false), (3, true)] {
        bed.apply(vec![if there { set(aa(1), 0, tor) } else { delete(aa(1)) }], Vec::new());
        assert_eq!(bed.check(&asked), there);
    }
    // What another AA does moves the revision, which every answer has.
    bed.set(aa(2), 0, 1);
    assert!(bed.check(&asked));
    let before = bed.count("changing");
    bed.card.change(|change| {
        change.set_revision(5);
        change.remove(aa(1));
        assert_eq!(bed.at_card(&asked), None);
        change.set_revision(bed.table.revision());
        assert_eq!(bed.at_card(&asked), None);
        change.set(&Row { aa: aa(1), service: 0, tor_la: LA, anycast_la: LA, version: 1 });
        assert_eq!(bed.at_card(&asked), None);
        Ok(())
    });
    assert_eq!(bed.count("changing"), before + 3);
    bed.card.show_all(&bed.table);
    assert!(bed.check(&asked));
}

#[test]
fn a_card_whose_table_could_not_be_changed_leaves_all_to_the_server() {
    let Some(mut bed) = Bed::with_keys(1000) else { return };
    bed.set(aa(1), 0, 1);
    assert!(bed.check(&question(aa(1))) && bed.card.status().answers);
    bed.card.change(|_| Err(DatapathError::Config { field: "a test", why: String::new() }));
    assert!(!bed.card.status().answers);
    for _ in 0..2 {
        assert_eq!(bed.at_card(&question(aa(1))), None);
        bed.set(aa(1), 0, 2);
    }
}

#[test]
fn rules_come_and_go_with_the_table() {
    let Some(mut bed) = Bed::with_keys(1000) else { return };
    bed.apply(vec![set(aa(1), 5, 1), set(aa(2), 0, 1)], Vec::new());
    let asked = |service: u32, n: u32| {
        let asked = Message { service, ..message(&[(aa(n), 0)]) };
        frame(&asked, &secret(0).derive(service, LA), &path_from(LA))
    };
    let told = |bed: &Bed| [(5, 1), (6, 1), (0, 1), (6, 2)].map(|(service, n)| bed.check(&asked(service, n)));
    let rule = |from_service, to_service, allow| vec![PolicyChange { from_service, to_service, allow }];
    assert_eq!(told(&bed), [true, false, true, true]);
    bed.apply(Vec::new(), rule(6, 5, true));
    assert_eq!(told(&bed), [true, true, true, true]);
    bed.apply(Vec::new(), rule(0, 5, false));
    bed.apply(Vec::new(), rule(6, 0, false));
    assert_eq!(told(&bed), [true, true, false, false]);
    bed.card.show_all(&bed.table);
    assert_eq!(told(&bed), [true, true, false, false]);
    // Another table, without rules and with other mappings.
    bed.table = Table::at(bed.table.revision() + 1);
    bed.card.show_all(&bed.table);
    bed.set(aa(1), 5, 1);
    assert_eq!(told(&bed), [true, false, true, false]);
    assert_eq!(bed.card.status().mappings, 1);
}

#[test]
fn keys_are_those_of_the_server_and_open_ones_everybodys() {
    let Some(mut bed) = Bed::new(1000, KeyRing::new((1..=5).map(|id| (id, secret(id))))) else { return };
    bed.set(aa(1), 3, 1);
    let asked =
        |key_id: u32, key: &Key| frame(&Message { key_id, service: 3, ..message(&[(aa(1), 0)]) }, key, &path_from(LA));
    for id in 1..=4 {
        assert!(bed.check(&asked(id, &secret(id).derive(3, LA))), "{id}");
    }
    assert_eq!(bed.at_card(&asked(5, &secret(5).derive(3, LA))), None, "a fifth is the server's");
    assert!(!bed.check(&asked(1, &secret(2).derive(3, LA))) && !bed.check(&asked(1, &Key::OPEN)));
    bed.responder.keys = KeyRing::new([(2, secret(2))]);
    bed.card.set_keys(&bed.responder.keys);
    assert!(!bed.check(&asked(1, &secret(1).derive(3, LA))) && bed.check(&asked(2, &secret(2).derive(3, LA))));
    bed.responder.keys = KeyRing::open();
    bed.card.set_keys(&bed.responder.keys);
    assert!(!bed.check(&asked(2, &secret(2).derive(3, LA))) && bed.check(&asked(9, &Key::OPEN)));
}

#[test]
fn what_a_full_card_has_no_room_for_is_the_servers() {
    let Some(mut bed) = Bed::with_keys(100) else { return };
    let spread = |n: u32| Ipv4Addr::from(n.wrapping_mul(2_654_435_761));
    bed.apply((1..=3000).map(|n| set(spread(n), 0, n)).collect(), Vec::new());
    let answered = |bed: &Bed| (1..=3000).filter(|n| bed.at_card(&question(spread(*n))).is_some()).count();
    let held = bed.card.status().mappings;
    assert!((900..=1024).contains(&held) && answered(&bed) == held, "{held}");
    for n in 1..=3000 {
        let asked = question(spread(n));
        let at_card = bed.at_card(&asked);
        assert!(at_card.is_none() || at_card == bed.expected(&asked), "{n}");
    }
    bed.apply((1..=3000).step_by(2).map(|n| delete(spread(n))).collect(), Vec::new());
    assert_eq!(answered(&bed), bed.card.status().mappings);
    assert!(bed.at_card(&question(spread(1))).is_none());
    bed.card.show_all(&bed.table);
    assert!(bed.card.status().mappings > 1000, "there is room again: {:?}", bed.card.status());
}

/// SipHash-2-4-128 of whole words and a rest.
fn sip(key: &Key, bytes: &[u8]) -> [u8; 16] {
    let hex = key.to_hex();
    let word = |bytes: &[u8]| bytes.iter().rev().fold(0u64, |word, byte| word << 8 | u64::from(*byte));
    let key: Vec<u8> = (0..16).map(|n| u8::from_str_radix(&hex[2 * n..2 * n + 2], 16).unwrap()).collect();
    let (low, high) = (word(&key[..8]), word(&key[8..]));
    let mut v = [0x736f_6d65_7073_6575, 0x646f_7261_6e64_6f6d, 0x6c79_6765_6e65_7261, 0x7465_6462_7974_6573u64];
    v = [v[0] ^ low, v[1] ^ high ^ 0xee, v[2] ^ low, v[3] ^ high];
    let rounds = |v: &mut [u64; 4], count: u32| {
        for _ in 0..count {
            for (a, b, c, turn, [left, right]) in [(0, 1, 32, 13, [2, 3]), (0, 3, 0, 21, [2, 1])] {
                let other = if b == 1 { 16 } else { 17 };
                v[a] = v[a].wrapping_add(v[b]);
                v[b] = v[b].rotate_left(turn) ^ v[a];
                v[a] = v[a].rotate_left(c);
                v[left] = v[left].wrapping_add(v[right]);
                v[right] = v[right].rotate_left(other) ^ v[left];
                v[left] = v[left].rotate_left(32 - c);
            }
        }
    };
    for chunk in bytes.chunks(8).chain(bytes.len().is_multiple_of(8).then_some(&[][..])) {
        let length = if chunk.len() < 8 { (bytes.len() as u64) << 56 } else { 0 };
        let word = word(chunk) | length;
        v[3] ^= word;
        rounds(&mut v, 2);
        v[0] ^= word;
    }
    v[2] ^= 0xee;
    rounds(&mut v, 4);
    let first = v.iter().fold(0, |sum, word| sum ^ word);
    v[1] ^= 0xdd;
    rounds(&mut v, 4);
    let second = v.iter().fold(0, |sum, word| sum ^ word);
    (u128::from(second) << 64 | u128::from(first)).to_le_bytes()
}

#[test]
fn who_has_a_key_and_writes_what_no_question_has_is_the_servers() {
    let Some(mut bed) = Bed::with_keys(1000) else { return };
    bed.set(aa(1), 0, 1);
    let (key, path) = (secret(0).derive(0, LA), path_from(LA));
    let tagged = |change: &dyn Fn(&mut [u8])| {
        let mut datagram = message(&[(aa(1), 0)]).emit(&key, &path);
        let length = datagram.len() - 16;
        change(&mut datagram[..length]);
        let ends =
            [&LA.octets()[..], &path.source.port().to_be_bytes(), &SERVER.ip().octets(), &SERVER.port().to_be_bytes()];
        let tag = sip(&key, &[&datagram[..length], &ends.concat()].concat());
        datagram[length..].copy_from_slice(&tag);
        frame_of([SERVER_MAC, ROUTER_MAC], &path, 0, &datagram)
    };
    assert!(bed.check(&tagged(&|_| {})));
    assert!(bed.check(&tagged(&|datagram| datagram[32 + 12] = 9)), "a question's status is not looked at");
    assert!(bed.check(&tagged(&|datagram| datagram[32 + 4..32 + 12].fill(7))), "nor are its LAs");
    for place in [0, 1, 2, 3, 28, 29, 30, 31, 32 + 13, 32 + 14, 32 + 15] {
        assert!(!bed.check(&tagged(&|datagram| datagram[place] ^= 0x10)), "byte {place}");
    }
}

#[test]
fn no_answer_has_the_mapping_of_one_revision_with_the_number_of_another() {
    let Some(bed) = Bed::with_keys(1000) else { return };
    let (over, asked) = (AtomicBool::new(false), question(aa(1)));
    let write = || {
        for number in (1..).take_while(|_| !over.load(Ordering::Relaxed)) {
            bed.card.change(|change| {
                change.set_revision(number);
                let la = Ipv4Addr::from(number as u32);
                change.set(&Row { aa: aa(1), service: 0, tor_la: la, anycast_la: la, version: number });
                Ok(())
            });
        }
    };
    let mut answered = 0u64;
    std::thread::scope(|scope| {
        scope.spawn(write);
        let begin = std::time::Instant::now();
        while begin.elapsed() < std::time::Duration::from_millis(700) {
            let Some(answer) = bed.at_card(&asked) else { continue };
            let view = View::new(&answer[DATAGRAM..]).unwrap();
            let entry = view.entry(0).unwrap();
            let number = view.revision();
            assert_eq!(
                (entry.version, u32::from(entry.tor_la), u32::from(entry.anycast_la)),
                (number, number as u32, number as u32)
            );
            answered += 1;
        }
        over.store(true, Ordering::Relaxed);
    });
    assert!(answered > 0 && bed.count("changing") > 0, "{answered} {:?}", bed.card.status());
}
