//! `weft node vtep` runs a VTEP, `weft vtep` changes one that runs, `weft show vtep` shows it.

use std::collections::BTreeMap;
use std::process::ExitCode;

use weft_node::vtep::protocol::{FdbRow, Item, PeerRow, Request, Shown, VniRow, What};
use weft_node::vtep::{
    self, AttachChoice, EntryTable, FloodText, HookChoice, PortTable, SegmentTable, TaggedText, VniIds, VtepConfig,
};
use weft_node::{DaemonKind, NodeError, read_settings};

use super::daemon::{Document, Running, counter_table};
use crate::args::{
    AddCommand, AddVniArgs, AttachArg, HookArg, RemoveCommand, ShowArgs, VtepArgs, VtepCommand, VtepFlags, VtepWhat,
    Which,
};
use crate::exit::Failure;
use crate::output::{self, Rows};

/// Runs a VTEP in the foreground.
pub(super) fn node(args: &VtepArgs) -> Result<ExitCode, Failure> {
    let load = || {
        let mut config = match (&args.config, args.flags.local) {
            (Some(path), _) => read_settings(path)?,
            (None, Some(local)) => VtepConfig::new(local, Vec::new()),
            (None, None) => {
                let why =
                    "is missing; give --config FILE, or flags alone: --local ADDRESS --uplink IF --vni VNI --port IF"
                        .to_owned();
                return Err(NodeError::Config { field: "local", why });
            }
        };
        add_flags(&mut config, &args.flags)?;
        Ok(config)
    };
    let example = VtepConfig::example();
    super::daemon::serve(args.print_example.then_some((DaemonKind::Vtep, &example)), &load, vtep::run)
}

/// Flags win over the file; lists are added to its lists.
fn add_flags(config: &mut VtepConfig, flags: &VtepFlags) -> Result<(), NodeError> {
    let usage = |field: &'static str, why: String| NodeError::Config { field, why };
    config.local = flags.local.unwrap_or(config.local);
    config.uplink.extend(flags.uplink.iter().cloned());
    config.peers.extend(&flags.peer);
    config.udp_port = flags.udp_port.unwrap_or(config.udp_port);
    config.hook = match flags.hook {
        Some(HookArg::Tc) => HookChoice::Tc,
        Some(HookArg::Xdp) => HookChoice::Xdp,
        None => config.hook,
    };
    config.attach = match flags.attach {
        Some(AttachArg::Link) => AttachChoice::Link,
        Some(AttachArg::Filter) => AttachChoice::Filter,
        None => config.attach,
    };
    config.pin_dir = flags.pin_dir.clone().or(config.pin_dir.take());
    config.socket = flags.socket.clone().unwrap_or(std::mem::take(&mut config.socket));
    if let Some(flood) = &flags.flood {
        config.segment.flood = Some(FloodText::parse(flood).map_err(|why| usage("flood", why))?);
    }
    let segment = |text: &String| SegmentTable { id: Some(VniIds::Range(text.clone())), ..SegmentTable::default() };
    config.vni.extend(flags.vni.iter().map(segment));
    for text in &flags.port {
        let (interface, vni) = match text.split_once('=') {
            Some((interface, vni)) => (interface, vni.to_owned()),
            None => (text.as_str(), only_vni(config).map_err(|why| usage("port", format!("`{text}`: {why}")))?),
        };
        let vni = vni.parse().map_err(|_| usage("port", format!("`{text}`: `{vni}` is no VNI; write IF=VNI")))?;
        config.port.push(PortTable::access(interface, vni));
    }
    for text in &flags.trunk {
        let Some((interface, vlans)) = text.split_once(':') else {
            return Err(usage("trunk", format!("`{text}` names no VLAN; write IF:VLAN=VNI, as trunk1:10=5010")));
        };
        let vlans = vlans.split(',').map(str::to_owned).collect();
        config.port.push(PortTable { vni: None, vlans, ..PortTable::access(interface, 0) });
    }
    Ok(())
}

/// The VNI of a port that names none.
fn only_vni(config: &VtepConfig) -> Result<String, &'static str> {
    match config.vni.as_slice() {
        [SegmentTable { id: Some(VniIds::One(vni)), .. }] => Ok(vni.to_string()),
        [SegmentTable { id: Some(VniIds::Range(text)), .. }] if !text.contains('-') => Ok(text.clone()),
        [] => Err("there is no segment; add --vni N"),
        _ => Err("there are several segments; write IF=VNI"),
    }
}

/// Changes a VTEP that runs.
pub(crate) fn vtep(command: VtepCommand) -> Result<ExitCode, Failure> {
    let (which, request) = match command {
        VtepCommand::Add(item) => {
            let (item, which) = item_to_add(item)?;
            (which, Request::Add(item))
        }
        VtepCommand::Remove(item) => {
            let (item, which) = item_to_remove(item);
            (which, Request::Remove(item))
        }
    };
    let running = Running::of(DaemonKind::Vtep, which)?;
    vtep::ask(&running.path, &request).map_err(|error| running.failure(error))?;
    Ok(ExitCode::SUCCESS)
}

fn item_to_add(command: AddCommand) -> Result<(Item, Which), Failure> {
    Ok(match command {
        AddCommand::Vni(args) => segment_to_add(args)?,
        AddCommand::Port { interface, vni, vlan, keep_tags, vtep } => {
            let tagged = if keep_tags { TaggedText::Keep } else { TaggedText::Drop };
            (Item::Port(PortTable { interface, vni: vni.map(i64::from), vlans: vlan, tagged }), vtep)
        }
        AddCommand::Peer { peer, vtep } => (Item::Peer(peer), vtep),
        AddCommand::Entry { mac, vni, peer, port, vlan, ip, vtep } => {
            (Item::Entry(EntryTable { vni: vni.into(), mac, peer, port, vlan, ip }), vtep)
        }
    })
}

fn segment_to_add(args: AddVniArgs) -> Result<(Item, Which), Failure> {
    let flood = args.flood.as_deref().map(FloodText::parse).transpose().map_err(Failure::usage)?;
    let table = SegmentTable {
        id: Some(VniIds::Range(args.vni)),
        flood,
        members: args.members.map(|members| members.into_iter().collect()),
        learn: args.learn,
        age_s: args.age,
        answer_arp: args.answer_arp,
        directory: args.directory,
        flood_misses: args.flood_misses,
        unknown_per_s: args.unknown_per_s,
        broadcast_per_s: args.broadcast_per_s,
    };
    Ok((Item::Vni(table), args.vtep))
}

fn item_to_remove(command: RemoveCommand) -> (Item, Which) {
    match command {
        RemoveCommand::Vni { vni, vtep } => {
            (Item::Vni(SegmentTable { id: Some(VniIds::Range(vni)), ..SegmentTable::default() }), vtep)
        }
        RemoveCommand::Port { interface, vlan, vtep } => {
            (Item::Port(PortTable { interface, vni: None, vlans: vlan, tagged: TaggedText::Drop }), vtep)
        }
        RemoveCommand::Peer { peer, vtep } => (Item::Peer(peer), vtep),
        RemoveCommand::Entry { mac, vni, vtep } => {
            (Item::Entry(EntryTable { vni: vni.into(), mac, peer: None, port: None, vlan: None, ip: None }), vtep)
        }
    }
}

pub(super) fn show(args: ShowArgs<VtepWhat>, vni: Option<u32>) -> Result<(), Failure> {
    let (running, format) = (Running::of(DaemonKind::Vtep, args.which)?, args.output.output);
    let what = match args.what {
        VtepWhat::Config => return running.print_config(),
        VtepWhat::Counters => What::Counters,
        VtepWhat::Vni => What::Vni,
        VtepWhat::Fdb => What::Fdb { vni },
        VtepWhat::Peers => What::Peers,
    };
    let shown: Shown = running.shown(what)?;
    let rows = match &shown {
        Shown::Vnis(vnis) => vni_table(vnis),
        Shown::Fdb(fdb) => fdb_table(fdb),
        Shown::Peers(peers) => peer_table(peers),
        Shown::Counters(groups) => counter_table(groups, format),
    };
    output::print(format, &rows, &Document { schema_version: 1, shown })
}

fn vni_table(vnis: &[VniRow]) -> Rows {
    let names = traffic_names(vnis.iter().map(|row| &row.counters));
    let mut header = vec!["VNI", "ports", "flood", "MACs", "policy"];
    header.extend(names.iter().copied());
    let mut rows = Rows::new(&header);
    for row in vnis {
        let mut cells = vec![
            row.vni.to_string(),
            if row.ports.is_empty() { "-".to_owned() } else { row.ports.join(" ") },
            row.flood.clone(),
            row.macs.to_string(),
            policy(row),
        ];
        cells.extend(names.iter().map(|name| row.counters.get(*name).copied().unwrap_or(0).to_string()));
        rows.push(cells);
    }
    rows
}

/// How a segment forwards, in a few words.
fn policy(row: &VniRow) -> String {
    let mut words = Vec::new();
    match (row.learn, row.age_s) {
        (true, 0) => words.push("learns".to_owned()),
        (true, age_s) => words.push(format!("learns {age_s} s")),
        (false, _) => {}
    }
    let flags = [(row.answer_arp, "answers ARP"), (row.directory, "asks the directory")];
    words.extend(flags.iter().filter(|(set, _)| *set).map(|(_, word)| (*word).to_owned()));
    words.extend(row.unknown_per_s.map(|limit| format!("unknown {limit}/s")));
    words.extend(row.broadcast_per_s.map(|limit| format!("broadcast {limit}/s")));
    words.join(", ")
}

/// Names of counters in the order of the first row that has them.
fn traffic_names<'a>(counters: impl Iterator<Item = &'a BTreeMap<String, u64>>) -> Vec<&'static str> {
    let first = counters.into_iter().next();
    let known = ["sent_frames", "sent_bytes", "received_frames", "received_bytes"];
    known.into_iter().filter(|name| first.is_some_and(|first| first.contains_key(*name))).collect()
}

fn fdb_table(fdb: &[FdbRow]) -> Rows {
    let mut rows = Rows::new(&["VNI", "MAC", "behind", "origin", "silent_s", "IP"]);
    for row in fdb {
        rows.push(vec![
            row.vni.to_string(),
            row.mac.clone(),
            row.to.clone(),
            row.origin.clone(),
            row.silent_s.map_or_else(|| "-".to_owned(), |silent_s| format!("{silent_s:.0}")),
            row.ip.map_or_else(|| "-".to_owned(), |ip| ip.to_string()),
        ]);
    }
    rows
}

fn peer_table(peers: &[PeerRow]) -> Rows {
    let names = traffic_names(peers.iter().map(|row| &row.counters));
    let mut header = vec!["peer", "floods", "MACs"];
    header.extend(names.iter().copied());
    let mut rows = Rows::new(&header);
    for row in peers {
        let mut cells = vec![row.peer.to_string(), row.floods.to_string(), row.macs.to_string()];
        cells.extend(names.iter().map(|name| row.counters.get(*name).copied().unwrap_or(0).to_string()));
        rows.push(cells);
    }
    rows
}
