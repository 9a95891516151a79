//! Look-ups answered by XDP: a directory server with its store, and a client at the other end of a veth pair.

mod common;
mod net;

use std::net::{Ipv4Addr, SocketAddrV4};

use common::*;
use net::Namespace;
use weft_datapath::directory::{LookupConfig, LookupDatapath};
use weft_datapath::offload;
use weft_datapath::trill::XdpMode;
use weft_node::NodeError;
use weft_node::client::{AdminClient, LookupClient};
use weft_node::directory::protocol::CardStatus;
use weft_node::directory::{self, DirectoryConfig};
use weft_node::rbridge::XdpChoice;
use weft_node::stop::Stop;
use weft_wire::directory::Status;

const SERVER: Ipv4Addr = Ipv4Addr::new(10, 64, 1, 1);
const CLIENT: Ipv4Addr = Ipv4Addr::new(10, 64, 1, 2);

/// A server and a client, each in its namespace, and their files.
struct Bed {
    server: Namespace,
    client: Namespace,
    dir: tempfile::TempDir,
    config: DirectoryConfig,
    /// At the client's end, for which the server is none: a veth end takes what the other end's program sends back only with a
    /// program of its own.
    _passes: LookupDatapath,
}

impl Bed {
    fn new(test: &str) -> Option<Self> {
        if !weft_needs::root() {
            return None;
        }
        let (server, client) = (Namespace::new(test, "server"), Namespace::new(test, "client"));
        net::link((&server, "eth0"), (&client, "eth0"), 1500);
        for (namespace, address) in [(&server, SERVER), (&client, CLIENT)] {
            namespace.ip(&format!("addr add {address}/24 dev eth0"));
        }
        let (mut passes, _) =
            LookupDatapath::load(&LookupConfig { listen: SocketAddrV4::new(CLIENT, 1), mac: [2; 6], mappings: 1 })
                .unwrap();
        client.within(|| passes.attach("eth0", XdpMode::Native)).unwrap();
        let dir = tempfile::tempdir().unwrap();
        let config = DirectoryConfig {
            listen: SocketAddrV4::new(SERVER, 5300),
            xdp_interface: Some("eth0".to_owned()),
            ..loopback_config(dir.path())
        };
        Some(Self { server, client, dir, config, _passes: passes })
    }

    fn start(&self) -> (Daemon, AdminClient) {
        let (namespace, config) = (self.server.0.clone(), self.config.clone());
        let daemon = Daemon::spawn(move |stop| {
            Namespace::enter(&namespace);
            directory::run(&|| Ok(config.clone()), stop)
        });
        let mut admin = None;
        wait_until("the directory server listens", || {
            admin = AdminClient::connect(&self.config.admin_socket).ok();
            admin.is_some() || daemon.ended()
        });
        match admin {
            Some(admin) => (daemon, admin),
            None => panic!("the directory server ended: {:?}", daemon.finish()),
        }
    }

    fn client(&self) -> LookupClient {
        let key = derived_key(self.dir.path(), 0, CLIENT);
        self.client.within(|| LookupClient::new(self.config.listen, Some(&key), 0, 0)).unwrap()
    }

    /// What a server says that must not start.
    fn refusal(&self, config: &DirectoryConfig) -> String {
        let stop = Stop::manual().unwrap();
        stop.request();
        let run = || -> Result<(), NodeError> { directory::run(&|| Ok(config.clone()), &stop) };
        let error = self.server.within(run).expect_err("it must not start").to_string();
        assert!(!error.contains('\n'), "one line: {error}");
        error
    }

    /// Whether the interface is as it was before any server.
    fn is_untouched(&self) -> bool {
        let output = self.server.command("ip").args(["-d", "link", "show", "eth0"]).output().unwrap();
        let tags = self.server.within(|| offload::features("eth0")).unwrap()["rx-vlan-hw-parse"];
        !String::from_utf8_lossy(&output.stdout).contains("xdp") && (tags.is_on || !tags.can_change)
    }
}

fn aa(k: u32) -> Ipv4Addr {
    Ipv4Addr::from(0x1400_0000 + k)
}

/// What became of frames at the card, and how many look-ups were answered in all.
fn seen(admin: &mut AdminClient) -> (CardStatus, u64) {
    let status = admin.status().unwrap();
    (status.xdp.expect("it has a card"), status.lookups["answered"])
}

#[test]
fn what_the_table_has_is_answered_at_the_card_and_all_else_by_the_server() {
    let Some(bed) = Bed::new("lookups") else { return };
    assert!(bed.is_untouched());
    let (daemon, mut admin) = bed.start();
    let mut client = bed.client();
    let mut ask = |aas: &[Ipv4Addr]| client.ask(aas, PATIENCE).unwrap();

    let revision = admin.set(mapping(aa(1), 7)).unwrap();
    let answer = ask(&[aa(1)]);
    let entry = answer.entries[0];
    assert_eq!((entry.status, entry.tor_la, entry.anycast_la), (Status::Ok, Ipv4Addr::new(10, 1, 0, 7), ANYCAST));
    assert_eq!((answer.revision, entry.version), (revision, revision));
    let (card, answered) = seen(&mut admin);
    assert_eq!((card.answered(), card.mappings, answered), (1, 1, 1), "{card:?}");

    // Whoever was told of an update sees it, each time.
    for tor in 8..28 {
        let revision = admin.set(mapping(aa(1), tor)).unwrap();
        let answer = ask(&[aa(1)]);
        assert_eq!((answer.entries[0].tor_la, answer.revision), (Ipv4Addr::new(10, 1, 0, tor), revision));
    }
    assert_eq!(seen(&mut admin).0.answered(), 21);

    assert_eq!(ask(&[aa(2)]).entries[0].status, Status::Unknown);
    let both = ask(&[aa(1), aa(2)]).entries;
    assert_eq!([both[0].status, both[1].status], [Status::Ok, Status::Unknown]);
    let (card, answered) = seen(&mut admin);
    assert_eq!(
        (card.answered(), card.frames["missing"], card.frames["not_plain"], answered),
        (21, 1, 1, 23),
        "{card:?}"
    );

    admin.del(aa(1)).unwrap();
    assert_eq!(ask(&[aa(1)]).entries[0].status, Status::Unknown);
    let revision = admin.set(mapping(aa(3), 5)).unwrap();
    drop(admin);
    daemon.finish().unwrap();
    assert!(bed.is_untouched());

    let (daemon, mut admin) = bed.start();
    assert_eq!(ask(&[aa(3)]).revision, revision);
    let (card, answered) = seen(&mut admin);
    assert_eq!((card.answered(), card.mappings, answered), (1, 1, 1), "{card:?}");
    drop(admin);
    daemon.finish().unwrap();
}

#[test]
fn in_the_stack_it_answers_too_where_that_is_asked_for() {
    let Some(mut bed) = Bed::new("generic") else { return };
    bed.config.xdp = XdpChoice::Generic;
    let (_daemon, mut admin) = bed.start();
    let revision = admin.set(mapping(aa(1), 7)).unwrap();
    assert_eq!(bed.client().ask(&[aa(1)], PATIENCE).unwrap().revision, revision);
    assert_eq!(seen(&mut admin).0.answered(), 1);
}

#[test]
fn cards_that_cannot_are_refused_and_left_alone() {
    let Some(bed) = Bed::new("refusals") else { return };
    let at = |name: &str| DirectoryConfig { xdp_interface: Some(name.to_owned()), ..bed.config.clone() };
    let error = bed.refusal(&at("none"));
    assert!(error.contains("xdp_interface: `none`: no such interface"), "{error}");
    let error = bed.refusal(&at("lo"));
    assert!(error.contains("`lo`") && error.ends_with("or set xdp = \"generic\""), "{error}");
    let error = bed.refusal(&DirectoryConfig { xdp_mappings: 0, ..bed.config.clone() });
    assert!(error.contains("xdp_mappings: 0 is not between 1 and"), "{error}");

    let other = LookupConfig { listen: bed.config.listen, mac: [2; 6], mappings: 1 };
    let mut other = LookupDatapath::load(&other).unwrap().0;
    bed.server.within(|| other.attach("eth0", XdpMode::Native)).unwrap();
    let error = bed.refusal(&bed.config);
    assert!(error.contains("end what put the program on it that is there"), "{error}");
    assert!(!bed.is_untouched(), "the other program is still there");
    bed.server.within(|| other.detach()).unwrap();
    assert!(bed.is_untouched());
}
