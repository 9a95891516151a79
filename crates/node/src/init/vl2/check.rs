//! The file as a whole: addresses, blocks, room for headers, who is behind whom, services.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

use weft_wire::block::Block;
use weft_wire::ethernet::MacAddress;
use weft_wire::vl2::OVERHEAD_BYTES;

use super::super::addresses::{self, Addresses, Interface};
use super::super::hosts_file::{At, HostsFile};
use super::super::names::{Interfaces, Names};
use super::{Core, Vl2};
use crate::aa_block;
use crate::error::NodeError;

pub(super) fn check(file: &HostsFile, vl2: &Vl2) -> Result<(), NodeError> {
    room(file, vl2)?;
    roles(file, vl2)?;
    let blocks = blocks(file, vl2)?;
    las_and_aas(file, vl2, blocks)?;
    racks(file, vl2)?;
    links(file, vl2)?;
    services(file, vl2)
}

fn room(file: &HostsFile, vl2: &Vl2) -> Result<(), NodeError> {
    let headers = OVERHEAD_BYTES as u32;
    let least = vl2.server_mtu.saturating_add(headers);
    if vl2.mtu < least {
        let why = format!("{} leaves no room for VL2's {headers} bytes of headers; set {least} or more", vl2.mtu);
        return Err(file.fault(At::top("mtu"), format!("{why}, or a smaller `server_mtu`")));
    }
    let mac: Result<MacAddress, _> = vl2.gateway_mac.parse();
    mac.map(drop).map_err(|error| file.fault(At::top("gateway_mac"), error))
}

fn roles(file: &HostsFile, vl2: &Vl2) -> Result<(), NodeError> {
    let mut names = Names::new(file);
    let mut all = |list: &'static str, hosts: Vec<&String>| {
        hosts.into_iter().enumerate().try_for_each(|(index, name)| names.take(list, index, name))
    };
    all("directory", vl2.directory.iter().map(|host| &host.name).collect())?;
    all("server", vl2.server.iter().map(|host| &host.name).collect())?;
    all("tor", vl2.tor.iter().map(|host| &host.name).collect())?;
    all("intermediate", vl2.intermediate.iter().map(|host| &host.name).collect())?;
    all("aggregation", vl2.aggregation.iter().map(|host| &host.name).collect())?;
    let some = [
        ("directory", vl2.directory.len()),
        ("server", vl2.server.len()),
        ("tor", vl2.tor.len()),
        ("intermediate", vl2.intermediate.len()),
    ];
    if let Some((list, _)) = some.into_iter().find(|(_, count)| *count == 0) {
        return Err(file.fault(At::top(list), "there is none; a network has one at least"));
    }
    if vl2.directory.len() > 1 && vl2.etcd.is_none() {
        let why = "is a second server without a store that they share; set `etcd` to the URLs of a cluster";
        return Err(file.fault(At::of("directory", 1, "name"), why));
    }
    Ok(())
}

fn blocks(file: &HostsFile, vl2: &Vl2) -> Result<(Block, Block), NodeError> {
    let aas = aa_block::read(&vl2.aa_block).map_err(|error| match error {
        NodeError::Config { why, .. } => file.fault(At::top("aa_block"), why),
        other => other,
    })?;
    Ok((aas, addresses::la_block(file, &vl2.la_block, aas)?))
}

/// Each address once, AAs and LAs in their blocks.
fn las_and_aas(file: &HostsFile, vl2: &Vl2, (aas, las): (Block, Block)) -> Result<(), NodeError> {
    let mut taken = Addresses::new(file);
    let mut la = |at: At, address: Ipv4Addr, owner: String| {
        if !las.contains(address) {
            return Err(file.fault(at, format!("{address} is outside the LA block {las}")));
        }
        taken.take(at, address, owner)
    };
    la(At::top("anycast"), vl2.anycast, "the Intermediates' anycast LA".to_owned())?;
    for (index, host) in vl2.directory.iter().enumerate() {
        la(At::of("directory", index, "la"), host.la, format!("the LA of {}", host.name))?;
    }
    for (index, host) in vl2.server.iter().enumerate() {
        la(At::of("server", index, "la"), host.la, format!("the LA of {}", host.name))?;
    }
    for (index, host) in vl2.tor.iter().enumerate() {
        la(At::of("tor", index, "la"), host.la, format!("the LA of {}", host.name))?;
        la(At::of("tor", index, "gateway"), host.gateway, format!("the gateway of {}", host.name))?;
    }
    for (list, index, host) in cores(vl2) {
        la(At::of(list, index, "la"), host.la, format!("the LA of {}", host.name))?;
    }
    for (list, index, name, uplinks) in switches(vl2) {
        for (port, text) in uplinks {
            let at = At::of(list, index, "uplinks");
            let interface = Interface::parse(text).map_err(|why| file.fault(at, format!("{port}: {why}")))?;
            if interface.subnet.overlaps(aas) {
                return Err(file.fault(at, format!("{port}: {text} is in the AA block {aas}")));
            }
            taken.take(at, interface.address, format!("{port} of {name}"))?;
        }
    }
    for (index, host) in vl2.server.iter().enumerate() {
        let at = At::of("server", index, "aa");
        if !aas.contains(host.aa) {
            return Err(file.fault(at, format!("{} is outside the AA block {aas}", host.aa)));
        }
        taken.take(at, host.aa, format!("the AA of {}", host.name))?;
    }
    Ok(())
}

fn cores(vl2: &Vl2) -> impl Iterator<Item = (&'static str, usize, &Core)> {
    let intermediates = vl2.intermediate.iter().enumerate().map(|(index, core)| ("intermediate", index, core));
    intermediates.chain(vl2.aggregation.iter().enumerate().map(|(index, core)| ("aggregation", index, core)))
}

fn switches(vl2: &Vl2) -> impl Iterator<Item = (&'static str, usize, &str, &BTreeMap<String, String>)> {
    let tors = vl2.tor.iter().enumerate().map(|(index, tor)| ("tor", index, &*tor.name, &tor.uplinks));
    tors.chain(cores(vl2).map(|(list, index, core)| (list, index, &*core.name, &core.uplinks)))
}

/// Everybody is behind a ToR that there is, at a port of his own.
fn racks(file: &HostsFile, vl2: &Vl2) -> Result<(), NodeError> {
    let mut interfaces = Interfaces::default();
    for (list, index, name, uplinks) in switches(vl2) {
        for port in uplinks.keys() {
            interfaces.take(file, At::of(list, index, "uplinks"), (name, port), "an uplink".to_owned())?;
        }
    }
    let directory = vl2
        .directory
        .iter()
        .enumerate()
        .map(|(index, host)| ("directory", index, (&*host.name, &*host.interface), (&*host.tor, &*host.tor_port)));
    let servers = vl2
        .server
        .iter()
        .enumerate()
        .map(|(index, host)| ("server", index, (&*host.name, &*host.interface), (&*host.tor, &*host.tor_port)));
    for (list, index, uplink, port) in directory.chain(servers) {
        if !vl2.tor.iter().any(|tor| tor.name == port.0) {
            return Err(file.fault(At::of(list, index, "tor"), format!("there is no [[tor]] called `{}`", port.0)));
        }
        interfaces.take(file, At::of(list, index, "interface"), uplink, "an uplink".to_owned())?;
        let what = format!("the port of {}", uplink.0);
        interfaces.take(file, At::of(list, index, "tor_port"), port, what)?;
    }
    match vl2.tor.iter().position(|tor| vl2.behind(&tor.name).next().is_none()) {
        Some(index) => {
            Err(file.fault(At::of("tor", index, "name"), "nobody is behind it; name it as somebody's `tor`"))
        }
        None => Ok(()),
    }
}

/// A link has two ends.
fn links(file: &HostsFile, vl2: &Vl2) -> Result<(), NodeError> {
    let mut ends: BTreeMap<String, Vec<(At, String)>> = BTreeMap::new();
    for (list, index, name, uplinks) in switches(vl2) {
        if uplinks.is_empty() {
            return Err(file.fault(At::of(list, index, "uplinks"), "is empty; a switch has a link to another one"));
        }
        for (port, text) in uplinks {
            let subnet = Interface::parse(text).expect("it was read before").subnet;
            ends.entry(subnet.to_string())
                .or_default()
                .push((At::of(list, index, "uplinks"), format!("{port} of {name}")));
        }
    }
    for (subnet, ends) in ends {
        match ends.as_slice() {
            [_, _] => {}
            [(at, end)] => {
                let why =
                    format!("{end} is alone in {subnet}; who has the other end? Aggregations are [[aggregation]]");
                return Err(file.fault(*at, why));
            }
            [_, (_, second), (at, end), ..] => {
                return Err(
                    file.fault(*at, format!("{end} is in {subnet} with {second} and another; a link has two ends"))
                );
            }
            [] => {}
        }
    }
    Ok(())
}

/// Services that are spoken of are there, and their AAs where they say.
fn services(file: &HostsFile, vl2: &Vl2) -> Result<(), NodeError> {
    let mut known = BTreeSet::from([0]);
    for (index, service) in vl2.service.iter().enumerate() {
        if !known.insert(service.number) {
            let why = format!("{} is there already; 0 always is", service.number);
            return Err(file.fault(At::of("service", index, "number"), why));
        }
    }
    for (index, service) in vl2.service.iter().enumerate() {
        if let Some(to) = service.may_reach.iter().find(|to| !known.contains(to)) {
            return Err(file.fault(At::of("service", index, "may_reach"), format!("there is no [[service]] {to}")));
        }
    }
    let ranges = ranges(file, vl2)?;
    for (index, server) in vl2.server.iter().enumerate() {
        if !known.contains(&server.service) {
            let why = format!("there is no [[service]] with number = {}", server.service);
            return Err(file.fault(At::of("server", index, "service"), why));
        }
        let whose = ranges.iter().find(|(range, _)| range.contains(server.aa)).map(|(_, service)| *service);
        let has_own = ranges.iter().any(|(_, service)| *service == server.service);
        let why = match whose {
            Some(service) if service != server.service => format!("{} is service {service}'s", server.aa),
            None if has_own => format!("{} is in no range of service {}", server.aa, server.service),
            _ => continue,
        };
        return Err(file.fault(At::of("server", index, "aa"), why));
    }
    Ok(())
}

fn ranges(file: &HostsFile, vl2: &Vl2) -> Result<Vec<(Block, u32)>, NodeError> {
    let mut ranges = Vec::new();
    for (index, service) in vl2.service.iter().enumerate() {
        for text in &service.aa_ranges {
            let at = At::of("service", index, "aa_ranges");
            ranges.push((text.parse::<Block>().map_err(|error| file.fault(at, error))?, service.number));
        }
    }
    Ok(ranges)
}
