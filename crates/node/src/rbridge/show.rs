//! An RBridge's state as it is shown.

use std::collections::{BTreeMap, BTreeSet};

use weft_control::NS_PER_S;
use weft_control::isis::{Adjacency, AdjacencyState, Hop, PortId, PortState, SharedLink, TreePort};
use weft_datapath::trill::abi::OBSERVED;
use weft_datapath::trill::{Place, Station};
use weft_wire::ethernet::MacAddress;
use weft_wire::isis::lsp::{CapabilitySub, NicknameRecord};
use weft_wire::isis::{LspId, SystemId, Tlv, View};
use weft_wire::listener::{Family, Group, Listeners};
use weft_wire::vlan::VlanSet;

use super::ports::Port;
use super::protocol::{
    AdjacencyRow, BranchRow, FdbRow, ForwarderRow, GroupRow, HopRow, LspRow, NicknameRow, RouteRow, RpfRow, SharedRow,
    Shown, TreeRow, What,
};
use super::settings::Kind;
use super::{Daemon, monotonic_s, port_config};
use crate::error::NodeError;
use crate::socket::named;

/// Who is who, as LSPs tell.
struct Names {
    hosts: BTreeMap<SystemId, String>,
    /// In the order of their IDs.
    holders: BTreeMap<u16, Vec<(SystemId, NicknameRecord)>>,
    /// Who has announced to send on the tree of this root.
    users: BTreeMap<u16, Vec<SystemId>>,
    /// Who listens to which IP multicast groups.
    listeners: BTreeMap<SystemId, Listeners>,
}

impl Names {
    fn host(&self, system: SystemId) -> String {
        self.hosts.get(&system).cloned().unwrap_or_else(|| system.to_string())
    }

    /// Of the strongest holder (RFC 7780 section 4).
    fn holder(&self, nickname: u16) -> String {
        let holders = self.holders.get(&nickname).map(Vec::as_slice).unwrap_or_default();
        let strongest = holders.iter().max_by_key(|(system, record)| (record.priority, *system));
        strongest.map_or_else(|| "?".to_owned(), |(system, _)| self.host(*system))
    }
}

impl Daemon {
    pub(super) fn shown(&self, what: What) -> Result<Shown, NodeError> {
        let names = self.names();
        Ok(match what {
            What::Adjacency => Shown::Adjacencies(self.adjacency_rows(&names)),
            What::Shared => Shown::SharedLinks(self.shared_rows(&names)),
            What::Lsdb => Shown::Lsps(self.lsp_rows(&names)),
            What::Nickname => Shown::Nicknames(self.nickname_rows(&names)),
            What::Route => Shown::Routes(self.route_rows(&names)),
            What::Tree => Shown::Trees(self.tree_rows(&names)),
            What::Rpf => Shown::Rpf(self.rpf_rows(&names)),
            What::Groups => Shown::Groups(self.group_rows(&names)),
            What::Fdb => Shown::Stations(self.fdb_rows(&names)?),
            What::Counters => Shown::Counters(self.counters()?),
        })
    }

    fn names(&self) -> Names {
        let mut names = Names {
            hosts: BTreeMap::new(),
            holders: BTreeMap::new(),
            users: BTreeMap::new(),
            listeners: BTreeMap::new(),
        };
        let lsps = self.control.lsdb().iter().filter(|(_, entry)| !entry.is_purged());
        for (id, entry) in lsps {
            let Ok(view) = View::new(entry.bytes()) else { continue };
            for (code, value) in view.tlvs() {
                names.take(id, Tlv::parse(code, value));
            }
        }
        names
    }

    fn interface(&self, port: PortId) -> String {
        self.ports.by_id(port).map_or_else(String::new, |port| port.settings.interface.clone())
    }

    /// Host names of the neighbours on a port, of one with this address if there is one.
    fn neighbor(&self, port: PortId, mac: Option<MacAddress>, names: &Names) -> String {
        let there = self.control.adjacencies().filter(|(other, _)| *other == port).map(|(_, adjacency)| adjacency);
        let there = there.filter(|adjacency| mac.is_none_or(|mac| mac == adjacency.mac));
        let hosts: Vec<String> = there.map(|adjacency| names.host(adjacency.neighbor)).collect();
        if hosts.is_empty() { "-".to_owned() } else { hosts.join(",") }
    }

    fn adjacency_rows(&self, names: &Names) -> Vec<AdjacencyRow> {
        let mut by_port: BTreeMap<PortId, Vec<&Adjacency>> = BTreeMap::new();
        self.control.adjacencies().for_each(|(port, adjacency)| by_port.entry(port).or_default().push(adjacency));
        let links = self.ports.all.iter().filter(|port| port.is_link());
        let row = |port: &Port, adjacency: Option<&Adjacency>| {
            let holding_ns = |adjacency: &Adjacency| adjacency.until_ns.saturating_sub(self.clock.now_ns());
            AdjacencyRow {
                port: port.settings.number,
                interface: port.settings.interface.clone(),
                link: match port.link() {
                    None => "missing",
                    Some(link) if link.is_up => "up",
                    Some(_) => "down",
                }
                .to_owned(),
                state: state(adjacency.map_or(AdjacencyState::Down, |adjacency| adjacency.state)).to_owned(),
                neighbor: adjacency.map(|adjacency| names.host(adjacency.neighbor)),
                system: adjacency.map(|adjacency| adjacency.neighbor.to_string()),
                mac: adjacency.map(|adjacency| adjacency.mac.to_string()),
                circuit: adjacency.map(|adjacency| adjacency.circuit),
                echoes: adjacency.is_some_and(|adjacency| adjacency.returns_echoes()),
                holding_s: adjacency.map(holding_ns).map(|ns| ns as f64 / NS_PER_S as f64),
                elision: elision(&port.settings.kind, adjacency).to_owned(),
                refused: self.control.refused(port.id()),
                cost: port_config(port).map_or(0, |config| config.cost),
                mtu: port.link().map_or(0, |link| link.mtu),
                tested_bytes: adjacency.map(|adjacency| adjacency.tested_bytes).filter(|bytes| *bytes > 0),
                sz_bytes: self.control.sz_bytes(),
            }
        };
        let rows_of = |port: &Port| match by_port.get(&port.id()) {
            None => vec![row(port, None)],
            Some(there) => there.iter().map(|adjacency| row(port, Some(adjacency))).collect(),
        };
        links.flat_map(rows_of).collect()
    }

    fn shared_rows(&self, names: &Names) -> Vec<SharedRow> {
        let row = |port: &Port| {
            let link = self.control.shared_link(port.id())?;
            let inhibited: VlanSet = link.appointed.iter().filter(|vlan| !link.carried.contains(*vlan)).collect();
            Some(SharedRow {
                port: port.settings.number,
                interface: port.settings.interface.clone(),
                state: port_state(link.state).to_owned(),
                drb: names.host(link.drb),
                designated_vlan: link.designated_vlan,
                lan_id: link.lan_id.to_string(),
                bypass: link.bypass,
                appointed: link.appointed.to_string(),
                carried: link.carried.to_string(),
                inhibited: inhibited.to_string(),
                forwarders: if link.state == PortState::Drb { self.forwarder_rows(&link, names) } else { Vec::new() },
            })
        };
        self.ports.all.iter().filter_map(row).collect()
    }

    /// Those that we appoint, and ourselves.
    fn forwarder_rows(&self, link: &SharedLink<'_>, names: &Names) -> Vec<ForwarderRow> {
        let mut vlans: BTreeMap<u16, VlanSet> = BTreeMap::new();
        for range in link.appointments {
            vlans.entry(range.nickname).or_default().add_range(range.start_vlan, range.end_vlan);
        }
        if let Some(own) = self.control.nickname().filter(|_| !link.appointed.is_empty()) {
            vlans.entry(own).or_default().add_all(link.appointed);
        }
        let row = |(nickname, vlans): (u16, VlanSet)| ForwarderRow {
            nickname,
            hostname: names.holder(nickname),
            vlans: vlans.to_string(),
        };
        vlans.into_iter().map(row).collect()
    }

    fn lsp_rows(&self, names: &Names) -> Vec<LspRow> {
        let (now_ns, me) = (self.clock.now_ns(), self.control.config().system);
        let row = |(id, entry): (LspId, &weft_control::isis::LsdbEntry)| LspRow {
            lsp: id.to_string(),
            hostname: names.host(id.system()),
            sequence: entry.sequence(),
            checksum: entry.entry(id, now_ns).checksum,
            remaining_s: entry.remaining_s(now_ns),
            bytes: entry.bytes().len(),
            lsp_buffer_bytes: entry.lsp_buffer_bytes(),
            overloaded: entry.flags().is_overloaded(),
            own: id.system() == me,
        };
        self.control.lsdb().iter().map(row).collect()
    }

    fn nickname_rows(&self, names: &Names) -> Vec<NicknameRow> {
        let (me, routes) = (self.control.config().system, &self.control.forwarding().routes);
        let row = |nickname: u16, (system, record): &(SystemId, NicknameRecord)| NicknameRow {
            nickname,
            hostname: names.host(*system),
            system: system.to_string(),
            priority: record.priority,
            root_priority: record.root_priority,
            own: *system == me,
            reachable: *system == me || routes.contains_key(&nickname),
        };
        let rows =
            names.holders.iter().flat_map(|(nickname, holders)| holders.iter().map(|holder| row(*nickname, holder)));
        rows.collect()
    }

    fn route_rows(&self, names: &Names) -> Vec<RouteRow> {
        let forwarding = self.control.forwarding();
        let hop = |hop: &Hop| HopRow {
            port: hop.port.0 as u8,
            interface: self.interface(hop.port),
            neighbor: self.neighbor(hop.port, Some(hop.mac), names),
            mac: hop.mac.to_string(),
        };
        let rows = forwarding.routes.iter().map(|(egress, hops)| RouteRow {
            egress: *egress,
            hostname: names.holder(*egress),
            cost: forwarding.costs.get(egress).copied().unwrap_or(0),
            hops: hops.iter().map(hop).collect(),
        });
        rows.collect()
    }

    fn tree_rows(&self, names: &Names) -> Vec<TreeRow> {
        let used = self.datapath.fib().own_trees.roots();
        let branch = |branch: &TreePort| BranchRow {
            port: branch.port.0 as u8,
            interface: self.interface(branch.port),
            neighbor: self.neighbor(branch.port, None, names),
            vlans: branch.vlans.to_string(),
        };
        let rows = self.control.forwarding().trees.iter().map(|(root, tree)| TreeRow {
            number: tree.number,
            root: *root,
            hostname: names.holder(*root),
            depth: tree.depth,
            used: used.contains(root),
            users: names.users.get(root).into_iter().flatten().map(|system| names.host(*system)).collect(),
            branches: tree.ports.iter().map(branch).collect(),
        });
        let mut rows: Vec<TreeRow> = rows.collect();
        rows.sort_by_key(|row| row.number);
        rows
    }

    fn rpf_rows(&self, names: &Names) -> Vec<RpfRow> {
        let row = |root: u16, ingress: u16, port: PortId| RpfRow {
            root,
            ingress,
            hostname: names.holder(ingress),
            port: port.0 as u8,
            interface: self.interface(port),
        };
        let trees = self.control.forwarding().trees.iter();
        trees.flat_map(|(root, tree)| tree.rpf.iter().map(|(ingress, port)| row(*root, *ingress, *port))).collect()
    }

    /// Groups first, then who wants all of a family.
    fn group_rows(&self, names: &Names) -> Vec<GroupRow> {
        let hosts = |listens: &dyn Fn(&Listeners) -> bool| {
            names.listeners.iter().filter(|(_, there)| listens(there)).map(|(system, _)| names.host(*system)).collect()
        };
        let groups: BTreeSet<Group> = names.listeners.values().flat_map(|there| &there.groups).copied().collect();
        let row = |group: &Group| GroupRow {
            vlans: group.vlan.to_string(),
            group: group.mac.to_string(),
            interfaces: self.listening(&|there| there.groups.contains(group)),
            rbridges: hosts(&|there| there.groups.contains(group)),
        };
        let mut rows: Vec<GroupRow> = groups.iter().map(row).collect();
        for (family, text) in [(Family::Ipv4, "all IPv4"), (Family::Ipv6, "all IPv6")] {
            let sets: BTreeSet<String> = names.listeners.values().map(|there| there.all(family).to_string()).collect();
            rows.extend(sets.into_iter().filter(|vlans| !vlans.is_empty()).map(|vlans| GroupRow {
                group: text.to_owned(),
                interfaces: self.listening(&|there| there.all(family).to_string() == vlans),
                rbridges: hosts(&|there| there.all(family).to_string() == vlans),
                vlans,
            }));
        }
        rows
    }

    /// Interfaces of ports that listen so.
    fn listening(&self, listens: &dyn Fn(&Listeners) -> bool) -> Vec<String> {
        let Some(groups) = &self.groups else { return Vec::new() };
        let ports = groups.snooper.by_port().iter().filter(|(_, there)| listens(there));
        let names = ports.filter_map(|(port, _)| self.ports.by_number(*port));
        names.map(|port| port.settings.interface.clone()).collect()
    }

    fn fdb_rows(&self, names: &Names) -> Result<Vec<FdbRow>, NodeError> {
        let now_s = monotonic_s();
        let mut stations = self.datapath.maps().stations()?;
        stations.sort_by_key(|station| (station.vlan, station.mac.0));
        let row = |station: Station| {
            let (place, port, nickname) = match station.place {
                Place::Port(number) => ("port", self.ports.by_number(number), None),
                Place::RBridge(nickname) => ("rbridge", None, Some(nickname)),
                Place::Gateway => ("gateway", None, None),
            };
            let learned = station.confidence == OBSERVED;
            FdbRow {
                vlan: station.vlan,
                mac: station.mac.to_string(),
                place: place.to_owned(),
                interface: port.map(|port| port.settings.interface.clone()),
                nickname,
                hostname: nickname.map(|nickname| names.holder(nickname)),
                origin: if learned { "learned" } else { "static" }.to_owned(),
                silent_s: learned.then(|| now_s.saturating_sub(station.seen_s)),
            }
        };
        Ok(stations.into_iter().map(row).collect())
    }

    fn counters(&self) -> Result<BTreeMap<String, BTreeMap<String, u64>>, NodeError> {
        let mut groups = BTreeMap::new();
        let counters = self.control.counters();
        groups.insert("control".to_owned(), named(counters.events.iter()));
        groups.insert("control_dropped".to_owned(), named(counters.dropped.iter()));
        groups.insert("daemon".to_owned(), named(self.io.iter()));
        let snooped = self.groups.as_ref().map(|groups| named(groups.snooper.counters().iter()));
        groups.extend(snooped.map(|snooped| ("groups".to_owned(), snooped)));
        for port in self.datapath.maps().counters()? {
            let interface = self.ports.by_number(port.port).map(|port| port.settings.interface.as_str());
            let group = interface.map_or_else(|| "no port".to_owned(), |interface| format!("port {interface}"));
            groups.insert(group, named(port.counts));
        }
        Ok(groups)
    }
}

impl Names {
    fn take(&mut self, id: LspId, tlv: Tlv) {
        match tlv {
            Tlv::Hostname(name) if id.fragment() == 0 => {
                let name = String::from_utf8_lossy(&name).escape_default().to_string();
                self.hosts.insert(id.system(), name);
            }
            Tlv::Groups(subs) => {
                let there = self.listeners.entry(id.system()).or_default();
                subs.iter().for_each(|sub| there.groups.extend(sub.groups()));
            }
            Tlv::Capability { subs, .. } => {
                for sub in subs {
                    match sub {
                        CapabilitySub::InterestedVlans(interest) => {
                            let there = self.listeners.entry(id.system()).or_default();
                            for (all, family) in
                                [(interest.all_ipv4_groups, Family::Ipv4), (interest.all_ipv6_groups, Family::Ipv6)]
                            {
                                if all {
                                    there.all_mut(family).add_range(interest.start_vlan, interest.end_vlan);
                                }
                            }
                        }
                        CapabilitySub::Nicknames(records) => records.into_iter().for_each(|record| {
                            self.holders.entry(record.nickname).or_default().push((id.system(), record));
                        }),
                        CapabilitySub::TreesUsed(list) => list.roots.into_iter().for_each(|root| {
                            self.users.entry(root).or_default().push(id.system());
                        }),
                        _ => {}
                    }
                }
            }
            _ => {}
        }
    }
}

fn elision(kind: &Kind, adjacency: Option<&Adjacency>) -> &'static str {
    let takes = adjacency.is_some_and(|there| there.state == AdjacencyState::Report && there.takes_elided);
    match kind {
        Kind::Link { elide: true, .. } if takes => "agreed",
        Kind::Link { elide: true, .. } => "offered",
        _ => "off",
    }
}

fn port_state(state: PortState) -> &'static str {
    match state {
        PortState::Down => "down",
        PortState::Suspended => "suspended",
        PortState::Drb => "drb",
        PortState::NotDrb => "not-drb",
    }
}

pub(super) fn state(state: AdjacencyState) -> &'static str {
    match state {
        AdjacencyState::Down => "down",
        AdjacencyState::Detect => "detect",
        AdjacencyState::TwoWay => "2-way",
        AdjacencyState::Report => "report",
    }
}
