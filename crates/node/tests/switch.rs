//! A ToR's data path by `weft node switch`: it delivers, outlives the daemon where it is pinned, and goes when it is removed.

mod bed;
mod common;

use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use bed::{Bed, Namespace, TOR_LA};
use common::{Daemon, wait_until};
use weft_datapath::bpffs;
use weft_datapath::switch::SwitchMaps;
use weft_node::switch::{self, SwitchConfig, Tier};
use weft_node::{DaemonKind, socket};

/// A bpffs of this test alone.
struct Pins(tempfile::TempDir);

impl Drop for Pins {
    fn drop(&mut self) {
        bpffs::unmount(self.0.path()).expect("nothing holds it");
    }
}

/// Runs it in ToR 2, which is B's, and waits until it answers: a data path that was there before delivers earlier.
fn start(bed: &Bed, config: &SwitchConfig) -> Daemon {
    let (namespace, theirs) = (bed.tors[1].0.clone(), config.clone());
    let daemon = Daemon::spawn(move |stop| {
        Namespace::enter(&namespace);
        switch::run(&|| Ok(theirs.clone()), stop)
    });
    wait_until("the switch is ready", || switch::read(&config.socket).is_ok());
    daemon
}

fn arrives(bed: &Bed) -> bool {
    bed.ping("-c 1 -W 1").contains("1 received")
}

#[test]
fn it_delivers_while_it_runs_and_longer_where_it_is_pinned() {
    if !weft_needs::root() {
        return;
    }
    let pins = tempfile::tempdir().unwrap();
    bpffs::ensure_mounted(pins.path()).unwrap();
    let pins = Pins(pins);
    let Some(bed) = Bed::for_migration("switch", pins.0.path()) else { return };
    let _agents = [bed.agent(0, bed.config(0)), bed.agent(1, bed.config(1))];
    let pin_dir: PathBuf = pins.0.path().join("tor1");
    let names = |name: &str| vec![name.to_owned()];
    let pinned = SwitchConfig {
        tier: Tier::Tor,
        ports: names("fabric"),
        host_ports: names("host"),
        own_las: vec![TOR_LA[1]],
        pin_dir: Some(pin_dir.clone()),
        socket: bed.dir.path().join("switch.sock"),
        http_listen: None,
    };
    let delivered = || {
        let counters = SwitchMaps::open_pinned(&pin_dir).unwrap().counters().unwrap();
        counters.into_iter().find(|(name, _)| *name == "delivered").map(|(_, count)| count).unwrap()
    };

    // The bed's own is taken over with what it counted, and stays when the daemon goes.
    assert!(arrives(&bed));
    let before = delivered();
    let daemon = start(&bed, &pinned);
    assert!(arrives(&bed) && delivered() > before);
    let shown = switch::read(&pinned.socket).unwrap();
    assert_eq!((shown.tier, &shown.own_las[..], shown.datapath["delivered"]), (Tier::Tor, &TOR_LA[1..], delivered()));
    daemon.finish().unwrap();
    assert!(arrives(&bed), "the pinned data path went with the daemon");

    bed.tors[1].within(|| switch::remove(&pinned)).unwrap();
    assert!(!arrives(&bed), "it is still there");

    let daemon = start(&bed, &SwitchConfig { pin_dir: None, ..pinned });
    wait_until("it delivers again", || arrives(&bed));
    daemon.finish().unwrap();
    assert!(!arrives(&bed), "it stayed without pins");
}

#[test]
fn another_la_is_taken_over_by_a_reload() {
    let Some(bed) = Bed::new("switchload") else { return };
    let _agents = [bed.agent(0, bed.config(0)), bed.agent(1, bed.config(1))];
    assert!(arrives(&bed));
    let other = Ipv4Addr::new(10, 1, 0, 99);
    let config = Arc::new(Mutex::new(SwitchConfig {
        tier: Tier::Tor,
        ports: vec!["fabric".to_owned()],
        host_ports: vec!["host".to_owned()],
        own_las: vec![TOR_LA[1]],
        pin_dir: None,
        socket: bed.dir.path().join("switch.sock"),
        http_listen: None,
    }));
    let (namespace, theirs) = (bed.tors[1].0.clone(), Arc::clone(&config));
    let daemon = Daemon::spawn(move |stop| {
        Namespace::enter(&namespace);
        switch::run(&|| Ok(theirs.lock().unwrap().clone()), stop)
    });
    let socket = config.lock().unwrap().socket.clone();
    wait_until("the switch is ready", || switch::read(&socket).is_ok());
    let reload = || socket::reload(DaemonKind::Switch, &socket);
    config.lock().unwrap().own_las = vec![TOR_LA[1], other];
    assert_eq!(reload().unwrap().changed, ["own_las"]);
    assert_eq!(switch::read(&socket).unwrap().own_las, [TOR_LA[1], other]);
    assert!(arrives(&bed));
    config.lock().unwrap().ports = vec!["host2".to_owned()];
    let error = reload().unwrap_err().to_string();
    assert!(error.contains("ports: cannot change at run time"), "{error}");
    assert_eq!(switch::read(&socket).unwrap().own_las, [TOR_LA[1], other]);
    daemon.finish().unwrap();
}
