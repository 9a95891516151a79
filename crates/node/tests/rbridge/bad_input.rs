//! Settings that cannot work: refused in one line that names the place and the remedy, and nothing is left behind.

use weft_node::rbridge::{self, AuthenticationTable, PortTable, RBridgeConfig};
use weft_node::read_settings;
use weft_node::stop::Stop;

use crate::bed::Square;
use crate::net::hearing;

/// Runs an RBridge that must not start, and returns its error.
fn refused(square: &Square, config: &RBridgeConfig) -> String {
    let error = square.corner(1).within(|| {
        let stop = Stop::manual().unwrap();
        stop.request();
        rbridge::run(&|| Ok(config.clone()), &stop).expect_err("it must not start").to_string()
    });
    assert!(!error.contains('\n'), "one line: {error}");
    error
}

#[test]
fn settings_that_cannot_work_are_refused_in_one_line() {
    let Some(square) = Square::new("bad") else { return };
    let before = hearing(square.corner(1), &["s2", "s4", "a"]);
    type Spoil = fn(&mut RBridgeConfig);
    let cases: Vec<(Spoil, &str)> = vec![
        (|config| config.port.push(PortTable::p2p("eth7")), "port: 4 (`eth7`): no such interface"),
        (|config| config.port.push(PortTable::p2p("a")), "port: 4 (`a`): its interface is another port's already"),
        (|config| config.port[2].vlan = Some(4095), "port: 3 (`a`): VLAN 4095"),
        (|config| config.nickname = Some(0xffc0), "nickname: 0xffc0 is reserved"),
        (|config| config.pin_dir = Some("/tmp".into()), "not on a bpffs"),
        (|config| config.socket = "/dev/null".into(), "exists and is no socket"),
        (
            |config| {
                let key_file = "/nonexistent/campus.keys".into();
                config.authentication =
                    Some(AuthenticationTable { key_file, accept_unsigned: false, replay_check: false });
            },
            "key file /nonexistent/campus.keys: ",
        ),
    ];
    for (spoil, says) in cases {
        let mut config = square.config(1);
        spoil(&mut config);
        let error = refused(&square, &config);
        assert!(error.contains(says), "{error} does not say {says}");
    }
    square.corner(1).ip("link set dev s4 mtu 1500");
    let error = refused(&square, &square.config(1));
    let says = "port: 2 (`s4`): MTU 1500 is too small for frames of `a` (MTU 1500) with 24 bytes of TRILL; \
                ip link set s4 mtu 1524, or more";
    assert_eq!(error, says);
    square.corner(1).ip("link set dev s4 mtu 1400");
    square.corner(1).ip("link set dev a mtu 1000");
    assert!(refused(&square, &square.config(1)).contains("MTU 1400 is too small for LSPs"));
    // A driver's own limit: of veth, which says so like a network card.
    square.corner(1).ip("link set dev s4 mtu 1600");
    square.corner(1).ip("link set dev a mtu 1500");
    let queues = "numrxqueues 1 numtxqueues 4";
    square.corner(1).ip(&format!("link add dev q1 mtu 1600 {queues} type veth peer name q2 mtu 1600 {queues}"));
    let mut config = square.config(1);
    config.port.push(PortTable::p2p("q1"));
    let error = refused(&square, &config);
    for says in ["xdp: `q1` (veth) takes no program in its driver", "rx queues", "ethtool -L q1", "xdp = \"generic\""] {
        assert!(error.contains(says), "{error} does not say {says}");
    }
    assert_eq!(hearing(square.corner(1), &["s2", "s4", "a"]), before, "nothing is left at cards");
    let links = square.corner(1).command("ip").args(["-d", "link"]).output().unwrap();
    assert!(!String::from_utf8_lossy(&links.stdout).contains("xdp"), "nothing is left behind");
}

#[test]
fn a_file_names_the_line() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("rbridge.toml");
    for (text, says) in [
        ("", "missing field `name`"),
        ("name = \"s1\"\nnicknam = 3\n", "line 2: unknown field `nicknam`"),
        ("name = \"s1\"\nnickname = 70000\n", "line 2: nickname: invalid value: integer `70000`"),
        ("name = \"s1\"\n[[port]]\ninterface = \"e\"\nkind = \"hub\"\n", "line 4: kind: unknown variant `hub`"),
        ("name = ", "line 1: "),
    ] {
        std::fs::write(&file, text).unwrap();
        let error = read_settings::<RBridgeConfig>(&file).expect_err("it is bad").to_string();
        assert!(error.contains(says) && !error.contains('\n'), "{error} does not say {says}");
    }
}
