//! `weft node vtep` runs a VTEP; `weft vtep` shows and changes one that runs.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;

use serde::Serialize;
use weft_node::stop::{Hangup, Stop};
use weft_node::vtep::protocol::{Answer, FdbRow, Item, PeerRow, Request, VniRow, What};
use weft_node::vtep::{
    self, AttachChoice, EntryTable, FloodText, HookChoice, PortTable, SOCKET_DEFAULT, SegmentTable, TaggedText, VniIds,
    VtepConfig,
};
use weft_node::{NodeError, read_settings, settings_text};

use crate::args::{
    AddCommand, AddVniArgs, AttachArg, HookArg, Output, RemoveCommand, ShowCommand, VtepArgs, VtepCommand, VtepFlags,
    VtepSocket,
};
use crate::exit::{self, Failure};
use crate::output::{self, Rows};

/// Runs a VTEP in the foreground.
pub(crate) fn run(args: &VtepArgs) -> Result<ExitCode, Failure> {
    if args.print_example {
        output::print_line(&settings_text(&VtepConfig::example()))?;
        return Ok(ExitCode::SUCCESS);
    }
    let load = || {
        let mut config = match (&args.config, args.flags.local) {
            (Some(path), _) => read_settings(path)?,
            (None, Some(local)) => VtepConfig::new(local, Vec::new()),
            (None, None) => unreachable!("clap asks for one of them"),
        };
        add_flags(&mut config, &args.flags)?;
        Ok(config)
    };
    let stop = Stop::on_signals().map_err(Failure::failed)?;
    let hangup = Hangup::on_signal().map_err(Failure::failed)?;
    vtep::run(&load, &stop, &hangup).map_err(|error| exit::of_daemon(&error))?;
    Ok(ExitCode::SUCCESS)
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

/// Shows or changes a VTEP that runs.
pub(crate) fn vtep(command: VtepCommand) -> Result<ExitCode, Failure> {
    match command {
        VtepCommand::Show(what) => show(what)?,
        VtepCommand::Add(item) => {
            let (item, socket) = item_to_add(item)?;
            ask(&socket, Request::Add(item))?;
        }
        VtepCommand::Remove(item) => {
            let (item, socket) = item_to_remove(item);
            ask(&socket, Request::Remove(item))?;
        }
        VtepCommand::Reload { vtep } => {
            if let Answer::Reloaded(removed) = ask(&vtep, Request::Reload)? {
                tell_removed(&removed)?;
            }
        }
        VtepCommand::Stop { vtep } => vtep::stop(&path_of(&vtep)).map_err(Failure::failed)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn ask(socket: &VtepSocket, request: Request) -> Result<Answer, Failure> {
    vtep::ask(&path_of(socket), &request).map_err(Failure::failed)
}

fn path_of(socket: &VtepSocket) -> PathBuf {
    match (&socket.socket, &socket.node) {
        (Some(path), _) => path.clone(),
        (None, Some(node)) => PathBuf::from(format!("/run/weft/vtep-{node}.sock")),
        (None, None) => PathBuf::from(SOCKET_DEFAULT),
    }
}

/// What was added at run time, and what the file no longer has, goes with a reload.
fn tell_removed(removed: &[String]) -> Result<(), Failure> {
    const SHOWN: usize = 12;
    if removed.is_empty() {
        return Ok(());
    }
    let more = removed.len().saturating_sub(SHOWN);
    let rest = if more > 0 { format!(" and {more} more") } else { String::new() };
    let shown = removed.iter().take(SHOWN).map(String::as_str).collect::<Vec<_>>().join(", ");
    output::print_line(&format!("removed, as the configuration does not have it: {shown}{rest}"))
}

fn item_to_add(command: AddCommand) -> Result<(Item, VtepSocket), Failure> {
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

fn segment_to_add(args: AddVniArgs) -> Result<(Item, VtepSocket), Failure> {
    let flood = args.flood.as_deref().map(FloodText::parse).transpose().map_err(Failure::usage)?;
    let table = SegmentTable {
        id: Some(VniIds::Range(args.vni)),
        flood,
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

fn item_to_remove(command: RemoveCommand) -> (Item, VtepSocket) {
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

fn show(command: ShowCommand) -> Result<(), Failure> {
    let (what, vtep, format) = match command {
        ShowCommand::Vni(args) => (What::Vni, args.vtep, args.output.output),
        ShowCommand::Fdb { vni, show } => (What::Fdb { vni }, show.vtep, show.output.output),
        ShowCommand::Peers(args) => (What::Peers, args.vtep, args.output.output),
        ShowCommand::Counters(args) => (What::Counters, args.vtep, args.output.output),
        ShowCommand::Config { vtep } => (What::Config, vtep, Output::Table),
    };
    match ask(&vtep, Request::Show(what))? {
        Answer::Vnis(vnis) => show_vnis(&vnis, format),
        Answer::Fdb(fdb) => show_fdb(&fdb, format),
        Answer::Peers(peers) => show_peers(&peers, format),
        Answer::Counters(groups) => show_counters(&groups, format),
        Answer::Config(text) => output::print_line(&text),
        Answer::Done | Answer::Reloaded(_) | Answer::Refused(_) => {
            Err(Failure::failed("the VTEP answered without what was asked for"))
        }
    }
}

/// What `-o json` prints.
#[derive(Serialize)]
struct Shown<T> {
    schema_version: u32,
    #[serde(flatten)]
    what: T,
}

fn print<T: Serialize>(format: Output, rows: &Rows, what: T) -> Result<(), Failure> {
    output::print(format, rows, &Shown { schema_version: 1, what })
}

fn show_vnis(vnis: &[VniRow], format: Output) -> Result<(), Failure> {
    #[derive(Serialize)]
    struct Vnis<'a> {
        vnis: &'a [VniRow],
    }
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
    print(format, &rows, Vnis { vnis })
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

fn show_fdb(fdb: &[FdbRow], format: Output) -> Result<(), Failure> {
    #[derive(Serialize)]
    struct Fdb<'a> {
        fdb: &'a [FdbRow],
    }
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
    print(format, &rows, Fdb { fdb })
}

fn show_peers(peers: &[PeerRow], format: Output) -> Result<(), Failure> {
    #[derive(Serialize)]
    struct Peers<'a> {
        peers: &'a [PeerRow],
    }
    let names = traffic_names(peers.iter().map(|row| &row.counters));
    let mut header = vec!["peer", "floods", "MACs"];
    header.extend(names.iter().copied());
    let mut rows = Rows::new(&header);
    for row in peers {
        let mut cells = vec![row.peer.to_string(), row.floods.to_string(), row.macs.to_string()];
        cells.extend(names.iter().map(|name| row.counters.get(*name).copied().unwrap_or(0).to_string()));
        rows.push(cells);
    }
    print(format, &rows, Peers { peers })
}

fn show_counters(groups: &BTreeMap<String, BTreeMap<String, u64>>, format: Output) -> Result<(), Failure> {
    #[derive(Serialize)]
    struct Counters<'a> {
        counters: &'a BTreeMap<String, BTreeMap<String, u64>>,
    }
    let mut rows = Rows::new(&["group", "counter", "count"]);
    for (group, counters) in groups {
        for (name, count) in counters {
            rows.push(vec![group.clone(), name.clone(), count.to_string()]);
        }
    }
    print(format, &rows, Counters { counters: groups })
}
