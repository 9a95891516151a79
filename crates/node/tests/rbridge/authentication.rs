//! A campus with keys: frames pass, who has another key or none stays outside, and keys change while frames pass.

use std::collections::BTreeMap;
use std::fs::{Permissions, set_permissions, write};
use std::os::unix::fs::PermissionsExt;

use weft_node::rbridge::protocol::{AdjacencyRow, LspRow, Shown, What};
use weft_node::rbridge::{AuthenticationTable, RBridgeConfig};
use weft_wire::ethernet::{self, MacAddress};
use weft_wire::isis::hello::{HandshakeState, PortSub, ThreeWay, VlanFlags};
use weft_wire::isis::pdu::{Lsp, P2pHello};
use weft_wire::isis::view::LspFlags;
use weft_wire::isis::{self, Kind, Pdu, SystemId, Tlv, View};
use weft_wire::trill::ALL_IS_IS_RBRIDGES;

use crate::bed::{Running, Square, address};
use crate::common::wait_until;
use crate::net::tap::Tap;
use crate::net::{Pins, Stream};

const OLD: &str = "1 hmac-sha-256 00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";
const NEW: &str = "2 hmac-sha-512 ffeeddccbbaa99887766554433221100ffeeddccbbaa99887766554433221100";
/// The ID of the old one, with another secret.
const STRANGE: &str = "1 hmac-sha-256 a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5";

/// The keys of a corner, in a file of its own.
fn keys(square: &Square, corner: usize, lines: &[&str]) -> AuthenticationTable {
    let key_file = square.dir.path().join(format!("s{corner}.keys"));
    write(&key_file, lines.join("\n")).unwrap();
    set_permissions(&key_file, Permissions::from_mode(0o600)).unwrap();
    AuthenticationTable { key_file, accept_unsigned: false, replay_check: false }
}

fn config(square: &Square, corner: usize, lines: &[&str]) -> RBridgeConfig {
    RBridgeConfig { authentication: Some(keys(square, corner, lines)), ..square.config(corner) }
}

fn adjacency(running: &Running, interface: &str) -> AdjacencyRow {
    match running.show(What::Adjacency) {
        Shown::Adjacencies(rows) => rows.into_iter().find(|row| row.interface == interface).expect("a link"),
        other => panic!("{other:?}"),
    }
}

fn lsdb(running: &Running) -> Vec<LspRow> {
    match running.show(What::Lsdb) {
        Shown::Lsps(rows) => rows,
        other => panic!("{other:?}"),
    }
}

fn wait_for_line(running: &[Running]) {
    wait_until("S1, S2 and S3 know each other", || running.iter().all(|running| running.routes().len() == 2));
}

#[test]
fn frames_pass_with_a_key_and_who_has_another_stays_outside() {
    let Some(square) = Square::new("keys") else { return };
    let running: Vec<Running> = (1..=3).map(|corner| square.start(&config(&square, corner, &[OLD]), corner)).collect();
    let stranger = square.start(&config(&square, 4, &[STRANGE]), 4);
    wait_for_line(&running);
    assert!(square.host(0).ping("-c 1 -W 2 10.0.10.2").contains("1 received"));
    wait_until("the stranger is heard", || running[0].count("control_dropped", "auth_digest") > 5);
    let row = adjacency(&running[0], "s4");
    assert_eq!((&row.link[..], &row.state[..], row.neighbor), ("up", "down", None));
    assert_eq!(row.refused, running[0].count("control_dropped", "auth_digest"));
    assert_eq!(adjacency(&running[0], "s2").refused, 0);
    assert!(stranger.routes().is_empty() && stranger.count("control_dropped", "auth_digest") > 5);
    assert_eq!((lsdb(&running[0]).len(), lsdb(&stranger).len()), (3, 1));
}

/// From the link between S1 and S2, in the name of S2: withdrawals of all LSPs, and Hellos that would end the adjacency.
#[test]
fn without_a_key_nothing_can_be_said() {
    let Some(square) = Square::new("unsigned") else { return };
    let running: Vec<Running> = (1..=3).map(|corner| square.start(&config(&square, corner, &[OLD]), corner)).collect();
    wait_for_line(&running);
    let (before, neighbor) = (lsdb(&running[0]), adjacency(&running[0], "s2"));
    let source: MacAddress = neighbor.mac.expect("S2 is adjacent").parse().unwrap();
    let stream = Stream::start(square.host(0), square.host(1), address(1));
    let tap = Tap::open(square.corner(2), "s1", false);
    let header = ethernet::Header { destination: ALL_IS_IS_RBRIDGES, source, ethertype: isis::ETHERTYPE };
    let purge = |corner: u8, sequence| {
        let (id, flags) = (SystemId([2, 0, 0, 0, 0, corner]).lsp(0), LspFlags::LEVEL_1);
        Pdu::Lsp(Lsp { lifetime_s: 0, id, sequence, flags, tlvs: vec![] })
    };
    let mut forged: Vec<Pdu> = Vec::new();
    for corner in 1..=3 {
        forged.extend([1, 2, 3, 100, u32::MAX].map(|sequence| purge(corner, sequence)));
    }
    forged.push(down(SystemId([2, 0, 0, 0, 0, 2])));
    for pdu in &forged {
        tap.send(&header.emit_with(&pdu.emit().unwrap()));
    }
    let said = forged.len() as u64;
    wait_until("all were heard", || running[0].count("control_dropped", "auth_missing") == said);
    assert_eq!(adjacency(&running[0], "s2").refused, said);
    // Longer than it would take to follow them.
    assert!(square.host(0).ping("-c 30 -i 0.05 -W 2 10.0.10.2").contains("30 received"));
    let version = |row: &LspRow| (row.lsp.clone(), row.sequence, row.remaining_s > 0);
    let versions = |rows: &[LspRow]| rows.iter().map(version).collect::<Vec<_>>();
    assert_eq!(versions(&lsdb(&running[0])), versions(&before));
    assert_eq!((running[0].count("control", "adjacency_down"), running[0].routes().len()), (0, 2));
    let (sent, lost) = stream.end();
    assert!(sent > 100 && lost == 0, "{lost} of {sent} lost");
}

/// What S2 said on its link to S1, word for word: without numbers nothing would tell that it is old.
#[test]
fn what_is_said_again_is_dropped_where_numbers_are_checked() {
    let Some(square) = Square::new("replay") else { return };
    let mut heard = Tap::open(square.corner(2), "s1", true);
    let checked = |corner| {
        let authentication = AuthenticationTable { replay_check: true, ..keys(&square, corner, &[OLD]) };
        RBridgeConfig { authentication: Some(authentication), ..square.config(corner) }
    };
    let running: Vec<Running> = (1..=3).map(|corner| square.start(&checked(corner), corner)).collect();
    wait_for_line(&running);
    let source: MacAddress = adjacency(&running[0], "s2").mac.expect("S2 is adjacent").parse().unwrap();
    let mut said = BTreeMap::new();
    wait_until("S2 says Hello, which LSPs it has, and which it wants or got", || {
        while let Some(frame) = heard.poll() {
            if let Some(kind) = kind_from(source, frame) {
                said.entry(kind).or_insert_with(|| frame.to_vec());
            }
        }
        [Kind::P2pHello, Kind::Csnp, Kind::Psnp].iter().all(|kind| said.contains_key(&(*kind as u8)))
    });
    said.retain(|kind, _| [Kind::P2pHello, Kind::Csnp, Kind::Psnp].iter().any(|of| *of as u8 == *kind));
    let tap = Tap::open(square.corner(2), "s1", false);
    for times in 1..=2 {
        said.values().for_each(|frame| tap.send(frame));
        wait_until("all three are dropped", || running[0].count("control_dropped", "replayed") == 3 * times);
    }
    assert_eq!((running[0].count("control", "adjacency_down"), running[0].routes().len()), (0, 2));
    assert_eq!(running.iter().map(|running| running.count("control_dropped", "no_number")).sum::<u64>(), 0);
}

/// What kind of PDU a frame brings, if it is of this sender.
fn kind_from(source: MacAddress, frame: &[u8]) -> Option<u8> {
    let (header, payload) = frame.split_at_checked(14)?;
    let is_theirs = header[6..12] == source.0 && header[12..] == isis::ETHERTYPE.to_be_bytes();
    is_theirs.then(|| View::new(payload).ok().map(|view| view.kind() as u8))?
}

/// A Hello that knows of nobody, and is over at once.
fn down(source: SystemId) -> Pdu {
    let flags = VlanFlags { outer_vlan: 1, designated_vlan: 1, ..VlanFlags::default() };
    let three_way =
        ThreeWay { state: HandshakeState::Down, local_circuit: Some(1), neighbor: None, neighbor_circuit: None };
    let tlvs = vec![
        Tlv::Areas(vec![isis::AREA.to_vec()]),
        Tlv::PortCapability { topology: 0, subs: vec![PortSub::VlanFlags(flags)] },
        Tlv::ThreeWay(three_way),
    ];
    Pdu::P2pHello(P2pHello { circuit_type: 1, source, holding_time_s: 0, local_circuit: 1, tlvs })
}

#[test]
fn a_key_is_changed_by_restarts_that_lose_no_frame() {
    let Some(square) = Square::new("rekey") else { return };
    let pins = Pins::new(square.dir.path());
    let start = |corner, lines: &[&str]| {
        let mut config = config(&square, corner, lines);
        config.pin_dir = Some(pins.dir(&format!("s{corner}")));
        // However long a daemon waits for a core: what is tried is keys.
        config.timing.holding_multiplier = Some(100);
        square.start(&config, corner)
    };
    let mut running: Vec<Running> = (1..=3).map(|corner| start(corner, &[OLD])).collect();
    wait_for_line(&running);
    assert!(square.host(0).ping("-c 1 -W 2 10.0.10.2").contains("1 received"));
    let stream = Stream::start(square.host(0), square.host(1), address(1));
    for lines in [&[OLD, NEW][..], &[NEW, OLD], &[NEW]] {
        for place in 0..3 {
            running.remove(place).finish();
            running.insert(place, start(place + 1, lines));
            wait_for_line(&running);
            let lost: u64 = running.iter().map(|running| running.count("control", "adjacency_down")).sum();
            let refused = ["auth_missing", "auth_type", "auth_key", "auth_digest"]
                .map(|reason| running.iter().map(|running| running.count("control_dropped", reason)).sum::<u64>());
            assert_eq!((lost, refused), (0, [0; 4]), "S{} has {lines:?}", place + 1);
        }
    }
    let (sent, lost) = stream.end();
    assert!(sent > 500 && lost == 0, "{lost} of {sent} lost");
    running.into_iter().for_each(Running::stop);
}

/// Key files change below settings that do not, timers with them; nobody is restarted.
#[test]
fn keys_and_timers_are_changed_by_reloads_that_lose_no_frame() {
    let Some(square) = Square::new("reload") else { return };
    let settings = |corner: usize| square.dir.path().join(format!("s{corner}.toml"));
    let write_settings =
        |corner, config: &RBridgeConfig| write(settings(corner), weft_node::settings_text(config)).unwrap();
    let start = |corner| {
        let (config, path) = (config(&square, corner, &[OLD]), settings(corner));
        write_settings(corner, &config);
        square.start_with(&config, corner, move || weft_node::read_settings(&path))
    };
    let running: Vec<Running> = (1..=3).map(start).collect();
    wait_for_line(&running);
    assert!(square.host(0).ping("-c 1 -W 2 10.0.10.2").contains("1 received"));
    let stream = Stream::start(square.host(0), square.host(1), address(1));
    for lines in [&[OLD, NEW][..], &[NEW, OLD], &[NEW]] {
        for corner in 1..=3 {
            keys(&square, corner, lines);
            assert!(running[corner - 1].reload().unwrap().changed.is_empty(), "only the key file is another one");
        }
        wait_until("LSPs are signed anew", || running.iter().all(|running| lsdb(running).len() == 3));
    }
    // A key that is gone everywhere takes nobody with it.
    for (place, running) in running.iter().enumerate() {
        let mut config = config(&square, place + 1, &[NEW]);
        config.timing.hello_ms = Some(900);
        config.timing.holding_multiplier = Some(5);
        write_settings(place + 1, &config);
        assert_eq!(running.reload().unwrap().changed, ["timing.hello_ms", "timing.holding_multiplier"]);
    }
    wait_until("neighbours believe a Hello for longer", || {
        let believed = adjacency(&running[0], "s2").holding_s;
        believed.is_some_and(|believed| believed > 4.0)
    });

    let mut bad = config(&square, 1, &[NEW]);
    for (spoil, says) in [
        (
            Box::new(|bad: &mut RBridgeConfig| bad.timing.hello_ms = Some(1)) as Box<dyn Fn(&mut RBridgeConfig)>,
            "timing.hello_ms: 1 is",
        ),
        (Box::new(|bad| bad.root_priority = 9), "root_priority: cannot change at run time"),
        (Box::new(|bad| bad.port[0].cost = Some(9)), "port: cannot change at run time"),
    ] {
        bad = RBridgeConfig { port: square.config(1).port, root_priority: 0x8000, ..bad };
        spoil(&mut bad);
        write_settings(1, &bad);
        let error = running[0].reload().unwrap_err().to_string();
        assert!(error.contains(says) && !error.contains('\n'), "{error} does not say {says}");
    }
    write(settings(1), "name = \"s1\"\n\nnickname = \"x\"\n").unwrap();
    assert!(running[0].reload().unwrap_err().to_string().contains("line 3"));
    let lost: u64 = running.iter().map(|running| running.count("control", "adjacency_down")).sum();
    assert_eq!((lost, running[0].routes().len()), (0, 2), "nobody noticed");
    let (sent, lost) = stream.end();
    assert!(sent > 100 && lost == 0, "{lost} of {sent} lost");
}
