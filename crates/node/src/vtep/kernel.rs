//! The data path of a VTEP, in the words of [`weft_control::vtep`]: carries out steps, and tells what is there.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

use weft_control::NS_PER_S;
use weft_control::vtep::{Entry, Flood, Operation, Port, Segment, Settings, Tagged, To, Vni};
use weft_datapath::offload::{HIDDEN_FROM_TC, HIDDEN_FROM_XDP};
use weft_datapath::vxlan::{
    self, AccessRule, Capacities, OnMiss, Origin, PortRole, RateLimit, Senders, Trunk, Upcalls, Vtep, VtepOptions,
};
use weft_wire::ethernet::MacAddress;

use super::config::{AttachChoice, HookChoice, Strangers};
use super::{VtepConfig, host};
use crate::cards::{Cards, Needs};
use crate::error::NodeError;
use crate::{run_folder, sys};

/// Frames at once after a pause, as a part of a second's.
const BURSTS_PER_S: u32 = 10;

/// The data path.
pub(super) struct Kernel {
    vtep: Vtep,
    /// Interface indexes of the access ports.
    ports: BTreeMap<String, u32>,
    uplinks: BTreeMap<String, u32>,
    cards: Cards,
    /// What cards must not do to frames.
    off: &'static [&'static str],
}

/// A directory's station as the data path has it.
pub(super) type Station = (Vni, MacAddress, Ipv4Addr);

impl Kernel {
    /// Loads the programs, or takes over what is pinned, and attaches them to the uplinks.
    pub(super) fn open(config: &VtepConfig) -> Result<Self, NodeError> {
        run_folder::for_pins(config.pin_dir.as_deref())?;
        let (vtep, cards) = (Vtep::load(&options(config))?, Cards::open(&config.socket)?);
        let off = match config.hook {
            HookChoice::Tc => HIDDEN_FROM_TC,
            HookChoice::Xdp => HIDDEN_FROM_XDP,
        };
        let mut kernel = Self { vtep, ports: BTreeMap::new(), uplinks: BTreeMap::new(), cards, off };
        match kernel.attach_uplinks(&config.uplink) {
            Ok(()) => Ok(kernel),
            Err(error) => Err(kernel.give_up(error)),
        }
    }

    fn attach_uplinks(&mut self, names: &[String]) -> Result<(), NodeError> {
        let wanted: BTreeSet<u32> = names.iter().map(|name| self.attach_uplink(name)).collect::<Result<_, _>>()?;
        self.detach_strange_uplinks(&wanted)
    }

    /// Whether there is nothing from an earlier run.
    pub(super) fn is_fresh(&self) -> bool {
        !self.vtep.succeeds() && self.vtep.segments().is_ok_and(|segments| segments.is_empty())
    }

    /// Takes the place of an earlier run with other tables, if there is one: everything that is wanted is in the new ones.
    pub(super) fn succeed(&mut self) -> Result<(), NodeError> {
        if self.vtep.succeeds() {
            self.vtep.succeed()?;
            tracing::info!("an earlier run had other tables: its place is taken, and stations are learned again");
        }
        Ok(())
    }

    /// After a start that failed: leaves nothing behind, unless it was there before.
    pub(super) fn give_up(self, error: NodeError) -> NodeError {
        if self.is_fresh()
            && let Err(more) = self.remove()
        {
            tracing::warn!(error = %more, "removing what a failed start left");
        }
        error
    }

    fn attach_uplink(&mut self, name: &str) -> Result<u32, NodeError> {
        let ifindex = index_of(name)?;
        self.cards.prepare(name, ifindex, &Needs { off: self.off, ..Needs::default() })?;
        self.vtep.attach_uplink(ifindex)?;
        self.uplinks.insert(name.to_owned(), ifindex);
        Ok(ifindex)
    }

    /// Uplinks of an earlier run that are none now.
    fn detach_strange_uplinks(&mut self, wanted: &BTreeSet<u32>) -> Result<(), NodeError> {
        for port in self.vtep.ports()? {
            if port.role == PortRole::Uplink && !wanted.contains(&port.ifindex) {
                self.vtep.detach(port.ifindex)?;
            }
        }
        Ok(())
    }

    pub(super) fn upcalls(&self) -> Result<Upcalls, NodeError> {
        Ok(self.vtep.upcalls()?)
    }

    pub(super) fn view(&self) -> &vxlan::VtepView {
        &self.vtep
    }

    /// What is there from an earlier run, as settings, and the directory's stations. Ports whose interface is gone or is
    /// another one now are taken off.
    pub(super) fn found(&mut self) -> Result<(Settings, Vec<Station>), NodeError> {
        let names = host::interface_names();
        let mut settings = Settings::default();
        for port in self.vtep.ports()? {
            let found = match port.role {
                PortRole::Uplink => continue,
                PortRole::Access { vni, keep_tags } => {
                    let tagged = if keep_tags { Tagged::Keep } else { Tagged::Drop };
                    Port { tagged, ..Port::access(ours(vni)) }
                }
                PortRole::Trunk => port_of(&self.vtep.trunk(port.ifindex)?.unwrap_or_default()),
            };
            match names.get(&port.ifindex) {
                Some(name) => {
                    self.ports.insert(name.clone(), port.ifindex);
                    settings.ports.insert(name.clone(), found);
                }
                None => drop(self.vtep.detach(port.ifindex)?),
            }
        }
        let view = &*self.vtep;
        for segment in view.segments()? {
            settings.vnis.insert(ours(segment.vni), segment_of(&segment.settings));
        }
        let addresses: BTreeMap<(vxlan::Vni, [u8; 6]), Ipv4Addr> =
            view.arps(None)?.into_iter().map(|(vni, ip, mac)| ((vni, mac), ip)).collect();
        let mut stations = Vec::new();
        for entry in view.entries(None)? {
            let key = (ours(entry.vni), MacAddress(entry.mac));
            match (entry.origin, entry.to) {
                (Origin::Directory, vxlan::To::Remote(peer)) => stations.push((key.0, key.1, peer)),
                (Origin::Static, to) => {
                    let to = match to {
                        vxlan::To::Remote(peer) => To::Peer(peer),
                        // One whose port is gone: the difference removes it.
                        vxlan::To::Port(ifindex) => To::Port(names.get(&ifindex).cloned().unwrap_or_default()),
                        vxlan::To::Vlan(ifindex, vlan) => {
                            To::Vlan(names.get(&ifindex).cloned().unwrap_or_default(), vlan)
                        }
                    };
                    let ip = addresses.get(&(entry.vni, entry.mac)).copied();
                    settings.entries.insert(key, Entry { to, ip });
                }
                _ => {}
            }
        }
        // VTEPs that the directory named are peers as long as their stations are.
        let named = |peer: &Ipv4Addr| stations.iter().any(|(_, _, vtep)| vtep == peer);
        settings.peers = view.peers()?.into_iter().map(|peer| peer.address).filter(|peer| !named(peer)).collect();
        Ok((settings, stations))
    }

    /// Forgets peers and ARP answers that `wanted` does not name.
    pub(super) fn sweep(
        &mut self,
        wanted_peer: impl Fn(Ipv4Addr) -> bool,
        wanted_arp: impl Fn(Vni, Ipv4Addr, MacAddress) -> bool,
    ) -> Result<(), NodeError> {
        for peer in self.vtep.peers()?.into_iter().filter(|peer| !wanted_peer(peer.address)) {
            self.vtep.remove_peer(peer.address)?;
        }
        for (vni, ip, mac) in self.vtep.arps(None)? {
            if !wanted_arp(ours(vni), ip, MacAddress(mac)) {
                self.vtep.remove_arp(vni, ip)?;
            }
        }
        Ok(())
    }

    /// Ports of these settings whose interface has been replaced by another of the same name, or is gone.
    pub(super) fn replaced(&self, settings: &Settings) -> Vec<String> {
        let same = |name: &String| self.ports.get(name).copied() == sys::interface_index(name).ok();
        settings.ports.keys().filter(|name| !same(name)).cloned().collect()
    }

    /// Carries out these steps; segments that go, go together, and those that come and are alike come together, which is
    /// quicker than one after the other.
    pub(super) fn take_all(&mut self, steps: &[Operation]) -> Result<(), NodeError> {
        let gone = steps.iter().filter_map(|step| match step {
            Operation::RemoveVni(vni) => Some(theirs(*vni)),
            _ => None,
        });
        let mut gone: BTreeSet<vxlan::Vni> = gone.collect();
        let mut rest = steps;
        while let Some((step, after)) = rest.split_first() {
            rest = after;
            match step {
                Operation::RemoveVni(_) if gone.is_empty() => {}
                Operation::RemoveVni(_) => drop(self.vtep.remove_vnis(&std::mem::take(&mut gone))?),
                Operation::SetVni(vni, segment, copies) => {
                    let alike = |step: &&Operation| matches!(step, Operation::SetVni(_, other, others) if (other, others) == (segment, copies));
                    let more = after.iter().take_while(alike);
                    let mut vnis = BTreeSet::from([theirs(*vni)]);
                    vnis.extend(more.filter_map(|step| match step {
                        Operation::SetVni(vni, ..) => Some(theirs(*vni)),
                        _ => None,
                    }));
                    rest = &after[vnis.len() - 1..];
                    vnis.iter().try_for_each(|vni| self.set_members(*vni, segment))?;
                    self.vtep.add_vnis(&vnis, &vni_settings(segment, copies))?;
                }
                step => self.take(step)?,
            }
        }
        Ok(())
    }

    /// Carries out one step. What it removes may be gone already.
    pub(super) fn take(&mut self, step: &Operation) -> Result<(), NodeError> {
        match step {
            Operation::DetachPort(name) => {
                if let Some(ifindex) = self.ports.remove(name) {
                    self.vtep.detach(ifindex)?;
                }
            }
            Operation::RemoveEntry(vni, mac) => drop(self.vtep.remove_entry(theirs(*vni), mac.0)?),
            Operation::RemoveArp(vni, ip) => drop(self.vtep.remove_arp(theirs(*vni), *ip)?),
            Operation::RemoveVni(vni) => drop(self.vtep.remove_vni(theirs(*vni))?),
            Operation::AddPeer(peer) => self.vtep.add_peer(*peer)?,
            Operation::RemovePeer(peer) => drop(self.vtep.remove_peer(*peer)?),
            Operation::SetVni(vni, segment, copies) => {
                self.set_members(theirs(*vni), segment)?;
                self.vtep.add_vni(theirs(*vni), &vni_settings(segment, copies))?
            }
            Operation::AttachPort(name, port) => self.attach_port(name, port)?,
            Operation::SetEntry(vni, mac, entry) => {
                self.vtep.static_entry(theirs(*vni), mac.0, self.place(&entry.to)?)?;
                if let Some(ip) = entry.ip {
                    self.vtep.set_arp(theirs(*vni), ip, mac.0)?;
                }
            }
        }
        Ok(())
    }

    fn set_members(&mut self, vni: vxlan::Vni, segment: &Segment) -> Result<(), NodeError> {
        let nobody = BTreeSet::new();
        Ok(self.vtep.set_members(vni, segment.members.as_ref().unwrap_or(&nobody))?)
    }

    /// Lets interfaces hear what these settings need, and no more: ports are for any station (a ToR's servers, a bridge);
    /// uplinks are for the segments' groups. Sockets join those too, and tell routers and switches, until the daemon ends.
    pub(super) fn hear(&mut self, settings: &Settings) -> Result<(), NodeError> {
        let groups = settings.vnis.values().filter_map(|segment| match segment.flood {
            Flood::Group(group) => Some(MacAddress::of_ipv4_group(group)),
            _ => None,
        });
        let uplink = Needs { off: self.off, ..Needs::groups(groups) };
        let mut wanted: BTreeMap<String, Needs> = BTreeMap::new();
        wanted.extend(self.uplinks.keys().map(|name| (name.clone(), uplink.clone())));
        wanted.extend(settings.ports.iter().map(|(name, port)| (name.clone(), self.needs_of(port))));
        for (name, ifindex) in self.uplinks.iter().chain(&self.ports) {
            if let Some(needs) = wanted.get(name) {
                self.cards.prepare(name, *ifindex, needs)?;
            }
        }
        self.cards.settle(&wanted)
    }

    fn needs_of(&self, port: &Port) -> Needs {
        Needs { off: self.off, tags: port.is_trunk() || port.tagged == Tagged::Keep, ..Needs::everything() }
    }

    fn attach_port(&mut self, name: &str, port: &Port) -> Result<(), NodeError> {
        let ifindex = index_of(name)?;
        self.cards.prepare(name, ifindex, &self.needs_of(port))?;
        match port.vni {
            Some(vni) if !port.is_trunk() => {
                let rule = AccessRule { keep_tags: port.tagged == Tagged::Keep };
                self.vtep.attach_access(ifindex, theirs(vni), rule)?;
            }
            _ => {
                let vlans = port.vlans.iter().map(|(vlan, vni)| (*vlan, theirs(*vni))).collect();
                self.vtep.attach_trunk(ifindex, &Trunk { untagged: port.vni.map(theirs), vlans })?;
            }
        }
        self.ports.insert(name.to_owned(), ifindex);
        Ok(())
    }

    fn place(&self, to: &To) -> Result<vxlan::To, NodeError> {
        let ifindex = |name: &String| {
            let none = || NodeError::config("entry", format!("`{name}` is no access port; add it first"));
            self.ports.get(name).copied().ok_or_else(none)
        };
        Ok(match to {
            To::Peer(peer) => vxlan::To::Remote(*peer),
            To::Port(name) => vxlan::To::Port(ifindex(name)?),
            To::Vlan(name, vlan) => vxlan::To::Vlan(ifindex(name)?, *vlan),
        })
    }

    /// The name of the place of a station.
    pub(super) fn place_name(&self, to: vxlan::To) -> String {
        match to {
            vxlan::To::Remote(peer) => peer.to_string(),
            vxlan::To::Port(ifindex) => self.port_name(ifindex),
            vxlan::To::Vlan(ifindex, vlan) => To::Vlan(self.port_name(ifindex), vlan).to_string(),
        }
    }

    fn port_name(&self, ifindex: u32) -> String {
        let found = self.ports.iter().find(|(_, index)| **index == ifindex);
        found.map_or_else(|| format!("interface {ifindex}"), |(name, _)| name.clone())
    }

    /// Sends frames to a station over the VTEP that the directory named, and answers ARP for it.
    pub(super) fn set_station(
        &mut self,
        vni: Vni,
        ip: Ipv4Addr,
        mac: MacAddress,
        vtep: Option<Ipv4Addr>,
    ) -> Result<(), NodeError> {
        match vtep {
            Some(vtep) => self.vtep.directory_entry(theirs(vni), mac.0, vxlan::To::Remote(vtep))?,
            None => self.forget_directory_entry(vni, mac)?,
        }
        Ok(self.vtep.set_arp(theirs(vni), ip, mac.0)?)
    }

    pub(super) fn remove_station(&mut self, vni: Vni, ip: Ipv4Addr, mac: MacAddress) -> Result<(), NodeError> {
        self.forget_directory_entry(vni, mac)?;
        self.vtep.remove_arp(theirs(vni), ip)?;
        Ok(())
    }

    /// A learned or static entry stays.
    pub(super) fn forget_directory_entry(&mut self, vni: Vni, mac: MacAddress) -> Result<(), NodeError> {
        let entry = self.vtep.entry(theirs(vni), mac.0)?;
        if entry.is_some_and(|entry| entry.origin == Origin::Directory) {
            self.vtep.remove_entry(theirs(vni), mac.0)?;
        }
        Ok(())
    }

    pub(super) fn remove_peer(&mut self, peer: Ipv4Addr) -> Result<(), NodeError> {
        self.vtep.remove_peer(peer)?;
        Ok(())
    }

    /// Removes what was learned and is over.
    pub(super) fn age_out(&mut self) -> Result<usize, NodeError> {
        Ok(self.vtep.age_out(vxlan::now_ns())?.len())
    }

    /// Takes everything out of the kernel, pins included.
    pub(super) fn remove(mut self) -> Result<(), NodeError> {
        self.vtep.stop()?;
        self.cards.release()
    }
}

fn index_of(name: &str) -> Result<u32, NodeError> {
    sys::interface_index(name).map_err(|_| weft_datapath::DatapathError::NoInterface { name: name.to_owned() }.into())
}

fn options(config: &VtepConfig) -> VtepOptions {
    let room = config.capacity;
    VtepOptions {
        hook: match config.hook {
            HookChoice::Tc => vxlan::Hook::Tc,
            HookChoice::Xdp => vxlan::Hook::Xdp,
        },
        attachment: match config.attach {
            AttachChoice::Link => vxlan::Attachment::Link,
            AttachChoice::Filter => vxlan::Attachment::Filter,
        },
        udp_port: config.udp_port,
        unknown_peers: match config.strangers {
            Strangers::Drop => vxlan::UnknownPeers::Drop,
            Strangers::Accept => vxlan::UnknownPeers::Accept,
        },
        capacities: Capacities {
            macs: room.macs,
            vni_macs: room.vni_macs,
            port_macs: room.port_macs,
            trunk_macs: room.trunk_macs,
            told_macs: room.told_macs,
            arps: room.arps,
            vnis: room.vnis,
            ports: room.ports,
            trunks: room.trunks,
            peers: room.peers,
        },
        pin_dir: config.pin_dir.clone(),
        ..VtepOptions::new(config.local)
    }
}

pub(super) fn theirs(vni: Vni) -> vxlan::Vni {
    vxlan::Vni::new(vni.get()).expect("both have the same range")
}

pub(super) fn ours(vni: vxlan::Vni) -> Vni {
    Vni::new(vni.get()).expect("both have the same range")
}

/// A trunk of the data path, as settings.
fn port_of(trunk: &Trunk) -> Port {
    let vlans = trunk.vlans.iter().map(|(vlan, vni)| (*vlan, ours(*vni))).collect();
    Port { vni: trunk.untagged.map(ours), vlans, tagged: Tagged::Drop }
}

/// A segment's settings in the data path.
fn vni_settings(segment: &Segment, copies: &BTreeSet<Ipv4Addr>) -> vxlan::VniSettings {
    let flood = match &segment.flood {
        Flood::Group(group) => vxlan::Flood::Group(*group),
        Flood::Peers | Flood::List(_) if !copies.is_empty() => vxlan::Flood::HeadEnd(copies.iter().copied().collect()),
        _ => vxlan::Flood::None,
    };
    let miss = match (segment.directory, segment.flood_misses) {
        (true, true) => OnMiss::FloodAndUpcall,
        (true, false) => OnMiss::Upcall,
        (false, _) => OnMiss::Flood,
    };
    let limit = |per_s: Option<u32>| {
        let per_s = per_s.filter(|per_s| *per_s > 0);
        per_s.map(|per_s| RateLimit { frames_per_sec: per_s, burst_frames: (per_s / BURSTS_PER_S).max(1) })
    };
    vxlan::VniSettings {
        flood,
        senders: match (&segment.members, &segment.flood) {
            (Some(_), _) => Senders::Named,
            (None, Flood::List(_)) => Senders::Flooded,
            (None, _) => Senders::Peers,
        },
        learn: segment.learn,
        answer_arp: segment.answer_arp,
        arp_miss: miss,
        unicast_miss: if segment.unknown_per_s == Some(0) && !segment.directory { OnMiss::Drop } else { miss },
        broadcast_limit: limit(segment.broadcast_per_s),
        unknown_limit: limit(segment.unknown_per_s),
        age_ns: (segment.age_s > 0).then(|| u64::from(segment.age_s) * NS_PER_S),
    }
}

/// Enough of a segment to see that it is there: how it forwards is set again.
fn segment_of(settings: &vxlan::VniSettings) -> Segment {
    let flood = match &settings.flood {
        vxlan::Flood::None => Flood::Nowhere,
        vxlan::Flood::Group(group) => Flood::Group(*group),
        vxlan::Flood::HeadEnd(list) => Flood::List(list.iter().copied().collect()),
    };
    Segment { flood, ..Segment::default() }
}
