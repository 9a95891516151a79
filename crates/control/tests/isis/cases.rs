//! Conformance cases: a folder for each rule, a numbered file for each step.
//!
//! `00-config.txt` says `ports NUMBER:COST[:mtu-test|:elision] ..`, `nickname any|last 0x11|configured 0x11`, `lsps-max N`,
//! `trees-max N`, `restarted PORT ..` (with neighbours on these ports). In a step
//! `#` says why, `>` is done, `<` is every output of the step in order, with what is forwarded otherwise since an output said
//! so, `=` must hold afterwards. `WEFT_BLESS=1` writes the `<` lines; whoever blesses must read them against the RFC. Words are explained where they are read: [`Case::act`].

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use rand::SeedableRng;
use rand_pcg::Pcg64;
use weft_control::isis::{
    AdjacencyState, Bounds, Config, Former, Forwarding, Input, LinkKind, Output, PortConfig, PortId, RBridge, Timing,
    TreePort, TreeState, Wish,
};
use weft_control::{Machine, NS_PER_MS, NS_PER_S};
use weft_wire::ethernet::MacAddress;
use weft_wire::isis::group::GroupSub;
use weft_wire::isis::hello::{HandshakeState, PortSub, Restart};
use weft_wire::isis::lsp::{CapabilitySub, TreeList};
use weft_wire::isis::pdu::{LanHello, Lsp, Mtu, P2pHello};
use weft_wire::isis::tlv::LspEntry;
use weft_wire::isis::{LspId, NodeId, PDU_LEN_MIN, Pdu, SystemId, Tlv};
use weft_wire::listener::{Group, Listeners};
use weft_wire::trill::ALL_IS_IS_RBRIDGES;
use weft_wire::trill::channel::Echo;
use weft_wire::vlan::VlanSet;

use super::peer::{self, ME, Says, mac, my_mac, system};

#[test]
fn every_case() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/isis/cases");
    let cases = sorted(&folder);
    assert!(cases.len() >= 20, "{} cases", cases.len());
    let failures: Vec<String> = cases.iter().filter_map(|case| run(case).err()).collect();
    assert!(failures.is_empty(), "{} of {} cases:\n{}", failures.len(), cases.len(), failures.join("\n"));
}

/// A point-to-point port with a neighbour.
fn former(port: &str) -> Former {
    Former {
        port: PortId(port.parse().unwrap()),
        neighbors: Vec::new(),
        carried: VlanSet::default(),
        designated_vlan: 1,
    }
}

fn sorted(folder: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
}

fn run(folder: &Path) -> Result<(), String> {
    let mut files = sorted(folder).into_iter();
    let config = fs::read_to_string(files.next().expect("a case has a configuration")).unwrap();
    let mut case = Case::new(&config);
    for file in files {
        let text = fs::read_to_string(&file).unwrap();
        let name = format!("{}/{}", folder.file_name().unwrap().display(), file.file_name().unwrap().display());
        case.step(&name, &text, &file)?;
    }
    Ok(())
}

struct Case {
    bridge: RBridge,
    now_ns: u64,
    /// Outputs of the step.
    told: Vec<String>,
    probe: Option<Mtu>,
}

impl Case {
    fn new(text: &str) -> Self {
        let (mut ports, mut nicknames, mut bounds, mut trees_max) = (Vec::new(), Vec::new(), Bounds::default(), 1);
        let mut restarted: Option<Vec<Former>> = None;
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            match line.split_whitespace().collect::<Vec<_>>()[..] {
                ["ports", ref list @ ..] => ports = list.iter().map(|text| port_config(text)).collect(),
                ["nickname", "any"] => nicknames.push(Wish::Any),
                ["nickname", "last", value] => nicknames.push(Wish::Last(hex(value))),
                ["nickname", "configured", value] => nicknames.push(Wish::Configured(hex(value))),
                ["lsps-max", most] => bounds.lsps_max = most.parse().unwrap(),
                ["restarted", ref list @ ..] => {
                    restarted = Some(list.iter().map(|port| former(port)).collect());
                }
                ["trees-max", most] => trees_max = most.parse().unwrap(),
                ref other => panic!("no such configuration: {other:?}"),
            }
        }
        let config = Config {
            system: system(ME),
            hostname: "me".to_owned(),
            ports,
            nicknames,
            root_priority: 0x8000,
            vlans: VlanSet::default(),
            trees_max,
            trees_used: 1,
            lsp_buffer_bytes: PDU_LEN_MIN,
            keys: None,
            // Periodic Hellos would hide what a step does.
            timing: Timing { hello_ns: 100_000 * NS_PER_S, ..Timing::default() },
            bounds,
        };
        let rng = Pcg64::seed_from_u64(1);
        let bridge = match restarted {
            Some(ports) => RBridge::restarted(config, rng, ports),
            None => RBridge::new(config, rng),
        };
        Self { bridge, now_ns: 0, told: Vec::new(), probe: None }
    }

    fn step(&mut self, name: &str, text: &str, file: &Path) -> Result<(), String> {
        let lines =
            |mark: &str| text.lines().filter_map(|line| line.strip_prefix(mark)).map(str::trim).collect::<Vec<_>>();
        for line in lines(">") {
            self.act(&line.split_whitespace().collect::<Vec<_>>());
        }
        let done = std::mem::take(&mut self.told);
        if std::env::var_os("WEFT_BLESS").is_some() {
            let kept = |mark: char| text.lines().filter(move |line| line.starts_with(mark)).map(str::to_owned);
            let new: Vec<String> = kept('#')
                .chain(kept('>'))
                .chain(done.iter().map(|line| format!("< {line}")))
                .chain(kept('='))
                .collect();
            fs::write(file, new.join("\n") + "\n").unwrap();
        } else if done != lines("<") {
            return Err(format!("{name}: outputs are\n  {}", done.join("\n  ")));
        }
        for line in lines("=") {
            self.check(&line.split_whitespace().collect::<Vec<_>>())
                .map_err(|found| format!("{name}: {line}: is {found}"))?;
        }
        Ok(())
    }

    /// One input: `port-up P`, `port-down P`, `wait 5s`, `overload on`, `vlans 10-19`,
    /// `listen 10:01005e010203,..` (to nothing else; `-`: to nothing), or a PDU on port P from node N:
    /// `hello P N ..`, `lsp P N ID ..`, `csnp P N ..`, `psnp P N ..`, `mtu-probe P N LEN`, `mtu-ack P N`, `lan-hello P N`.
    fn act(&mut self, words: &[&str]) {
        match *words {
            ["port-up", port] => self.put(Input::PortUp(PortId(port.parse().unwrap()))),
            ["port-down", port] => self.put(Input::PortDown(PortId(port.parse().unwrap()))),
            ["wait", time] => self.wait(duration_ns(time)),
            ["overload", on] => self.put(Input::Overload(on == "on")),
            ["vlans", range] => {
                let mut vlans = VlanSet::default();
                let (first, last) = pair(range, '-');
                vlans.add_range(first.parse().unwrap(), last.parse().unwrap());
                self.put(Input::Interest(vlans));
            }
            ["listen", list] => {
                self.put(Input::Listeners(Listeners {
                    groups: groups(list).into_iter().collect(),
                    ..Listeners::default()
                }));
            }
            [kind, port, node, ref rest @ ..] => {
                let node: u8 = node.parse().unwrap();
                let mut bytes = self.pdu(kind, port.parse().unwrap(), node, rest).emit().unwrap();
                if rest.contains(&"damaged") {
                    // A flag of the LSP: every length stays right.
                    bytes[26] ^= 0x40;
                }
                if let Some(areas) = value(rest, "max-areas") {
                    bytes[7] = areas.parse().unwrap();
                }
                let source = mac(value(rest, "mac").map_or(node, |node| node.parse().unwrap()));
                let port = PortId(port.parse().unwrap());
                let destination = if rest.contains(&"misaddressed") { MacAddress([2; 6]) } else { ALL_IS_IS_RBRIDGES };
                self.put(Input::Pdu { port, vlan: 1, destination, source, bytes: &bytes });
            }
            _ => panic!("nothing to do: {words:?}"),
        }
    }

    fn put(&mut self, input: Input<'_>) {
        let (before, mut outputs) = (self.bridge.forwarding().clone(), Vec::new());
        self.bridge.handle(self.now_ns, input, &mut outputs);
        for output in &outputs {
            match output {
                Output::ForwardingChanged => self.told.extend(changes(&before, self.bridge.forwarding())),
                other => self.told.push(describe(other)),
            }
            if let Output::Send { pdu, .. } = output
                && let Ok(Pdu::MtuProbe(probe)) = Pdu::parse(pdu)
            {
                self.probe = Some(probe);
            }
        }
    }

    fn wait(&mut self, time_ns: u64) {
        let until_ns = self.now_ns + time_ns;
        while let Some(at_ns) = self.bridge.next_deadline_ns().filter(|at_ns| *at_ns <= until_ns) {
            self.now_ns = at_ns.max(self.now_ns);
            self.put(Input::Deadline);
        }
        self.now_ns = until_ns;
    }

    fn pdu(&self, kind: &str, port: u32, node: u8, rest: &[&str]) -> Pdu {
        match kind {
            "hello" => Pdu::P2pHello(hello(port, node, rest)),
            "lan-hello" => {
                let P2pHello { circuit_type, source, holding_time_s, tlvs, .. } = hello(port, node, rest);
                let lan_id = NodeId([0x0a, 0, 0, 0, 0, node, 1]);
                Pdu::LanHello(LanHello { circuit_type, source, holding_time_s, priority: 64, lan_id, tlvs })
            }
            "lsp" => {
                let number = |name, default: u32| value(rest, name).map_or(default, number);
                peer::lsp(lsp_id(rest[0]), number("seq", 1), number("life", 1000) as u16, &says(rest))
            }
            "csnp" => {
                let end = |name, default| value(rest, name).map_or(default, lsp_id);
                peer::csnp(node, (end("from", LspId::FIRST), end("to", LspId::LAST)), self.entries(rest))
            }
            "psnp" => peer::psnp(node, self.entries(rest)),
            "mtu-probe" => {
                let (probe_id, ack_source) = ([7; 6], SystemId::default());
                let probe = Mtu { probe_id, probe_source: system(node), ack_source, tlvs: vec![] };
                Pdu::MtuProbe(probe.padded_to(rest[0].parse().unwrap()))
            }
            "mtu-ack" => {
                let probe = self.probe.clone().expect("a probe was sent");
                Pdu::MtuAck(Mtu { ack_source: system(node), ..probe })
            }
            _ => panic!("no such PDU: {kind}"),
        }
    }

    /// `ID:SEQUENCE[:LIFETIME[:CHECKSUM]]` with commas between; without a checksum that of the LSP held.
    fn entries(&self, rest: &[&str]) -> Vec<LspEntry> {
        let entry = |text: &str| {
            let parts: Vec<&str> = text.split(':').collect();
            let id = lsp_id(parts[0]);
            let held = self.bridge.lsdb().get(id).map(|held| held.entry(id, self.now_ns).checksum);
            LspEntry {
                lifetime_s: parts.get(2).map_or(1000, |life| life.parse().unwrap()),
                id,
                sequence: number(parts[1]),
                checksum: parts.get(3).map_or(held.unwrap_or(0x1111), |sum| hex(sum)),
            }
        };
        value(rest, "entries").into_iter().flat_map(|list| list.split(',')).map(entry).collect()
    }

    /// `adjacency P STATE`, `elision P true|false` (what the neighbour offers), `lsp ID SEQUENCE|purged|none`, `nickname VALUE`, `trees NUMBER:ROOT,..`, or a counter's name
    /// and value.
    fn check(&self, words: &[&str]) -> Result<(), String> {
        let found = match *words {
            ["adjacency", port, _] => {
                let port = PortId(port.parse().unwrap());
                let state = self.bridge.adjacencies().find(|(id, _)| *id == port);
                format!("{:?}", state.map_or(AdjacencyState::Down, |(_, adjacency)| adjacency.state)).to_lowercase()
            }
            ["elision", port, _] => {
                let port = PortId(port.parse().unwrap());
                let heard = self.bridge.adjacencies().find(|(id, _)| *id == port);
                heard.is_some_and(|(_, adjacency)| adjacency.takes_elided).to_string()
            }
            ["lsp", id, _] => match self.bridge.lsdb().get(lsp_id(id)) {
                None => "none".to_owned(),
                Some(entry) if entry.is_purged() => "purged".to_owned(),
                Some(entry) => entry.sequence().to_string(),
            },
            ["nickname", ..] => {
                let held: Vec<String> = self.bridge.nicknames().map(|nickname| format!("{nickname:#06x}")).collect();
                if held.is_empty() { "none".to_owned() } else { held.join(",") }
            }
            ["trees", _] => {
                let trees = &self.bridge.forwarding().trees;
                let mut trees: Vec<_> = trees.iter().map(|(root, tree)| (tree.number, *root)).collect();
                trees.sort_unstable();
                trees.iter().map(|(number, root)| format!("{number}:{root:#x}")).collect::<Vec<_>>().join(",")
            }
            [name, _] => {
                let counters = self.bridge.counters();
                let mut all = counters.dropped.iter().chain(counters.events.iter());
                all.find(|(known, _)| *known == name).unwrap_or_else(|| panic!("no counter {name}")).1.to_string()
            }
            _ => panic!("nothing to check: {words:?}"),
        };
        if Some(&found.as_str()) == words.last() { Ok(()) } else { Err(found) }
    }
}

fn describe(output: &Output) -> String {
    match output {
        Output::Send { port, vlan: _, destination, pdu } => {
            let what = describe_pdu(&Pdu::parse(pdu).expect("what is sent is well formed"));
            let to = if *destination == ALL_IS_IS_RBRIDGES { String::new() } else { format!(" to {destination}") };
            format!("send {} {what}{to}", port.0)
        }
        Output::Echo { port, frame } => {
            let (echo, _) = Echo::parse(frame).expect("what is sent is well formed");
            format!("echo {} {}", port.0, echo.number)
        }
        Output::TopologyChange { port, .. } => format!("topology change {}", port.0),
        Output::Adjacency { port, neighbor, state, .. } => {
            format!("adjacency {} {} {}", port.0, node(neighbor.node()), format!("{state:?}").to_lowercase())
        }
        Output::Access { port, vlans } => format!("access {} {vlans:?}", port.0),
        Output::Nicknames(held) if held.is_empty() => "nickname none".to_owned(),
        Output::Nicknames(held) => {
            held.iter().fold("nickname".to_owned(), |told, nickname| format!("{told} {nickname:#06x}"))
        }
        Output::ForwardingChanged => unreachable!("described by what changed"),
    }
}

/// What turns one state of forwarding into the other, a line for each change.
fn changes(old: &Forwarding, new: &Forwarding) -> Vec<String> {
    let roots: BTreeSet<u16> = old.trees.keys().chain(new.trees.keys()).copied().collect();
    let tree = |of: &Forwarding, root: &u16| of.trees.get(root).cloned().unwrap_or_default();
    let pairs: Vec<_> = roots.iter().map(|root| (root, tree(old, root), tree(new, root))).collect();
    let mut lines = Vec::new();
    for (root, old, new) in &pairs {
        for ingress in differing(&old.rpf, &new.rpf) {
            let port = new.rpf.get(&ingress).map_or("none".to_owned(), |port| port.0.to_string());
            lines.push(format!("rpf tree {root:#06x} ingress {ingress:#06x} from {port}"));
        }
    }
    let differ = |(_, old, new): &&(_, TreeState, TreeState)| (old.depth, &old.ports) != (new.depth, &new.ports);
    for (root, _, new) in pairs.iter().filter(differ) {
        let ports = new.ports.iter().map(|branch| format!("{}{:?}{}", branch.port.0, branch.vlans, pruned(branch)));
        lines.push(format!("tree {root:#06x} depth {} ports {}", new.depth, listed(ports, " ")));
    }
    for nickname in differing(&old.routes, &new.routes) {
        let hops = new.routes.get(&nickname).into_iter().flatten().map(|hop| hop.port.0.to_string());
        lines.push(format!("route {nickname:#06x} via {}", listed(hops, ",")));
    }
    lines
}

/// What a branch wants of groups, unless it is everything.
fn pruned(branch: &TreePort) -> String {
    let Listeners { all_ipv4, all_ipv6, groups } = &branch.listeners;
    if *all_ipv4 == branch.vlans && *all_ipv6 == branch.vlans {
        return String::new();
    }
    format!("/4{all_ipv4:?}/6{all_ipv6:?}/{}", listed(groups.iter().map(|group| told(group.vlan, group.mac.0)), ","))
}

fn told(vlan: u16, [a, b, c, d, e, f]: [u8; 6]) -> String {
    format!("{vlan}:{a:02x}{b:02x}{c:02x}{d:02x}{e:02x}{f:02x}")
}

/// `10:01005e010203,..`
fn groups(list: &str) -> Vec<Group> {
    let group = |text: &str| {
        let (vlan, mac) = pair(text, ':');
        let [.., a, b, c, d, e, f] = u64::from_str_radix(mac, 16).unwrap().to_be_bytes();
        Group { vlan: vlan.parse().unwrap(), mac: MacAddress([a, b, c, d, e, f]) }
    };
    list.split(',').filter(|text| *text != "-").map(group).collect()
}

fn listed(items: impl Iterator<Item = String>, between: &str) -> String {
    let items: Vec<String> = items.collect();
    if items.is_empty() { "none".to_owned() } else { items.join(between) }
}

/// Keys whose values differ, or that only one of the two has.
fn differing<V: PartialEq>(old: &BTreeMap<u16, V>, new: &BTreeMap<u16, V>) -> Vec<u16> {
    let gone = old.keys().filter(|key| !new.contains_key(key));
    let changed = new.iter().filter(|(key, value)| old.get(key) != Some(value)).map(|(key, _)| key);
    gone.chain(changed).copied().collect()
}

/// `state=down|init|up`, `names=me|N`, `circuit=C` (ours, as the neighbour repeats it), `theirs=C` (its own), `hold=S`, `without=CODE`, `areas=XX`,
/// `protocols=XX`, `flags=COUNT`, `type=T`, `elision`.
fn hello(port: u32, node: u8, rest: &[&str]) -> P2pHello {
    let state = match value(rest, "state") {
        Some("init") => HandshakeState::Initializing,
        Some("up") => HandshakeState::Up,
        _ => HandshakeState::Down,
    };
    let circuit = value(rest, "circuit").map_or(port, |text| text.parse().unwrap());
    let named = |name: &str| (if name == "me" { ME } else { name.parse().unwrap() }, circuit);
    let hold = value(rest, "hold").map_or(30, |text| text.parse().unwrap());
    let mut hello = peer::hello(node, state, value(rest, "names").map(named), hold);
    if let Some(theirs) = value(rest, "theirs") {
        for tlv in &mut hello.tlvs {
            if let Tlv::ThreeWay(told) = tlv {
                told.local_circuit = Some(number(theirs));
            }
        }
    }
    if let Some(code) = value(rest, "without") {
        hello.tlvs.retain(|tlv| tlv.code() != code.parse::<u8>().unwrap());
    }
    for tlv in &mut hello.tlvs {
        match tlv {
            Tlv::Areas(areas) => value(rest, "areas").into_iter().for_each(|text| *areas = vec![vec![hex(text) as u8]]),
            Tlv::Protocols(list) => value(rest, "protocols").into_iter().for_each(|text| *list = vec![hex(text) as u8]),
            Tlv::PortCapability { subs, .. } => {
                if let (Some(count), [PortSub::VlanFlags(flags)]) = (value(rest, "flags"), &subs[..]) {
                    *subs = vec![PortSub::VlanFlags(*flags); count.parse().unwrap()];
                }
            }
            _ => {}
        }
    }
    if rest.contains(&"elision") {
        hello.tlvs.push(Tlv::Elision);
    }
    hello.tlvs.extend(value(rest, "restart").map(restart));
    hello.circuit_type = value(rest, "type").map_or(1, |text| text.parse().unwrap());
    hello
}

/// `restart=none`, `rr`, `sa`, or `ra:30` with the remaining seconds.
fn restart(text: &str) -> Tlv {
    let (word, remaining_s) = text.split_once(':').map_or((text, None), |(word, left)| (word, left.parse().ok()));
    let flags = match word {
        "none" => 0,
        "rr" => Restart::REQUEST,
        "ra" => Restart::ACKNOWLEDGEMENT,
        "sa" => Restart::SUPPRESS,
        _ => panic!("no such restart: {text}"),
    };
    Tlv::Restart(Restart { flags, remaining_s, neighbor: None })
}

/// `reach=me:10,3:20`, `nickname=0x22/0x40[/0x8000]`, `vlans=10-19`, `groups=10:01005e010203,..`, `overload`, `trees=COMPUTE/MAX`,
/// `roots=START:0x22,0x33;START:..`, `unsigned` (a withdrawal that does not say by whom).
fn says(rest: &[&str]) -> Says {
    let reach = value(rest, "reach").into_iter().flat_map(|list| list.split(','));
    let reach = reach.map(|text| {
        let (node, cost) = pair(text, ':');
        (if node == "me" { ME } else { node.parse().unwrap() }, cost.parse().unwrap())
    });
    let nicknames = value(rest, "nickname").into_iter().flat_map(|list| list.split(','));
    let nicknames = nicknames.map(|text| {
        let parts: Vec<u16> = text.split('/').map(hex).collect();
        (parts[0], parts.get(1).map_or(0x40, |priority| *priority as u8), parts.get(2).copied().unwrap_or(0x8000))
    });
    let vlans = value(rest, "vlans").map(|range| pair(range, '-'));
    Says {
        reach: reach.collect(),
        nicknames: nicknames.collect(),
        vlans: vlans.map(|(first, last)| (first.parse().unwrap(), last.parse().unwrap())),
        groups: value(rest, "groups").map(groups),
        overloaded: rest.contains(&"overload"),
        trees: value(rest, "trees").map(|text| {
            let (compute, most) = pair(text, '/');
            (compute.parse().unwrap(), most.parse().unwrap())
        }),
        roots: value(rest, "roots").into_iter().flat_map(|lists| lists.split(';')).map(tree_list).collect(),
        lsp_buffer_bytes: None,
        unsigned: rest.contains(&"unsigned"),
    }
}

fn tree_list(text: &str) -> TreeList {
    let (start, roots) = pair(text, ':');
    TreeList { start: start.parse().unwrap(), roots: roots.split(',').map(hex).collect() }
}

fn describe_pdu(pdu: &Pdu) -> String {
    match pdu {
        Pdu::P2pHello(hello) => {
            let told = hello.tlvs.iter().find_map(|tlv| if let Tlv::ThreeWay(told) = tlv { Some(*told) } else { None });
            let told = told.expect("a Hello shakes hands");
            let names = told.neighbor.map_or(String::new(), |system| format!(" names {}", node(system.node())));
            let elision = if hello.tlvs.contains(&Tlv::Elision) { " elision" } else { "" };
            let signal =
                hello.tlvs.iter().find_map(|tlv| if let Tlv::Restart(told) = tlv { Some(*told) } else { None });
            let signal = signal.expect("every Hello says whether it restarts");
            let asks = if signal.has(Restart::REQUEST) { " rr" } else { "" };
            let left_s = signal.remaining_s.map_or(String::new(), |left_s| format!(" ra:{left_s}"));
            assert_eq!(signal.has(Restart::ACKNOWLEDGEMENT), signal.remaining_s.is_some(), "{signal:?}");
            format!("hello {}{names}{elision}{asks}{left_s}", format!("{:?}", told.state).to_lowercase())
        }
        Pdu::Lsp(lsp) => describe_lsp(lsp),
        Pdu::Csnp(csnp) => format!("csnp {}..{}{}", id(csnp.start), id(csnp.end), describe_entries(&csnp.tlvs)),
        Pdu::Psnp(psnp) => format!("psnp{}", describe_entries(&psnp.tlvs)),
        Pdu::MtuProbe(_) => format!("mtu-probe {}", pdu.emit().unwrap().len()),
        Pdu::MtuAck(_) => format!("mtu-ack {}", pdu.emit().unwrap().len()),
        other => panic!("never sent: {other:?}"),
    }
}

fn describe_entries(tlvs: &[Tlv]) -> String {
    let lists = tlvs.iter().map(|tlv| if let Tlv::LspEntries(list) = tlv { &list[..] } else { panic!("{tlv:?}") });
    let dead = |entry: &LspEntry| if entry.lifetime_s == 0 { " dead" } else { "" };
    lists.flatten().map(|entry| format!(" {}:{:#x}{}", id(entry.id), entry.sequence, dead(entry))).collect()
}

fn describe_lsp(lsp: &Lsp) -> String {
    let mut text = format!("lsp {} seq={:#x} life={}", id(lsp.id), lsp.sequence, lsp.lifetime_s);
    if lsp.flags.is_overloaded() {
        text += " overload";
    }
    for tlv in &lsp.tlvs {
        match tlv {
            Tlv::Reach(list) => {
                list.iter().for_each(|reach| write!(text, " reach={}:{}", node(reach.node), reach.metric).unwrap());
            }
            Tlv::PurgeOriginator { originator, received_from } => {
                write!(text, " purged-by={}", node(originator.node())).unwrap();
                received_from.iter().for_each(|from| write!(text, " from={}", node(from.node())).unwrap());
            }
            Tlv::Hostname(name) if lsp.lifetime_s == 0 => write!(text, " host={}", name.escape_ascii()).unwrap(),
            Tlv::Groups(subs) => subs.iter().for_each(|sub| match sub {
                GroupSub::Mac(groups) => groups
                    .records
                    .iter()
                    .for_each(|record| write!(text, " group={}", told(groups.vlan, record.group)).unwrap()),
                other => panic!("never sent: {other:?}"),
            }),
            Tlv::Capability { subs, .. } => subs.iter().for_each(|sub| describe_sub(sub, &mut text)),
            _ => {}
        }
    }
    text
}

fn describe_sub(sub: &CapabilitySub, text: &mut String) {
    match sub {
        CapabilitySub::Nicknames(list) => list.iter().for_each(|record| {
            write!(text, " nickname={:#06x}/{:#04x}", record.nickname, record.priority).unwrap();
        }),
        CapabilitySub::InterestedVlans(interest) => {
            let all = match (interest.all_ipv4_groups, interest.all_ipv6_groups) {
                (true, true) => "",
                (true, false) => "/m4",
                (false, true) => "/m6",
                (false, false) => "/listed",
            };
            write!(text, " vlans={}-{}{all}", interest.start_vlan, interest.end_vlan).unwrap();
        }
        CapabilitySub::TreesUsed(list) => {
            list.roots.iter().for_each(|root| write!(text, " uses={root:#06x}").unwrap());
        }
        _ => {}
    }
}

fn node(node: NodeId) -> String {
    let [.., number, pseudonode] = node.0;
    if pseudonode == 0 { number.to_string() } else { format!("{number}.{pseudonode}") }
}

fn id(id: LspId) -> String {
    match id {
        LspId::FIRST => "first".to_owned(),
        LspId::LAST => "last".to_owned(),
        id => format!("{}-{:02x}", node(id.node()), id.fragment()),
    }
}

/// `2-00`, or `2.1-00` for a pseudonode.
fn lsp_id(text: &str) -> LspId {
    let (owner, fragment) = pair(text, '-');
    let (number, pseudonode) = owner.split_once('.').unwrap_or((owner, "0"));
    NodeId([0x0a, 0, 0, 0, 0, number.parse().unwrap(), pseudonode.parse().unwrap()]).lsp(hex(fragment) as u8)
}

fn port_config(text: &str) -> PortConfig {
    let parts: Vec<&str> = text.split(':').collect();
    let id = PortId(parts[0].parse().unwrap());
    let (cost, option) = (parts[1].parse().unwrap(), parts.get(2));
    let (mtu_test, offers_elision) = (option == Some(&"mtu-test"), option == Some(&"elision"));
    PortConfig { id, mac: my_mac(id), cost, link: LinkKind::PointToPoint, designated_vlan: 1, mtu_test, offers_elision }
}

fn value<'a>(words: &[&'a str], name: &str) -> Option<&'a str> {
    words.iter().find_map(|word| word.strip_prefix(name)?.strip_prefix('='))
}

fn pair(text: &str, between: char) -> (&str, &str) {
    text.split_once(between).unwrap_or_else(|| panic!("{text} has no {between}"))
}

fn hex(text: &str) -> u16 {
    u16::from_str_radix(text.trim_start_matches("0x"), 16).unwrap()
}

fn number(text: &str) -> u32 {
    text.strip_prefix("0x").map_or_else(|| text.parse().unwrap(), |digits| u32::from_str_radix(digits, 16).unwrap())
}

fn duration_ns(text: &str) -> u64 {
    match text.strip_suffix("ms") {
        Some(ms) => ms.parse::<u64>().unwrap() * NS_PER_MS,
        None => text.strip_suffix('s').unwrap().parse::<u64>().unwrap() * NS_PER_S,
    }
}
