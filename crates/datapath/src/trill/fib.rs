//! The forwarding table as a value: what the control plane decided, which the programs then go by.
//!
//! [`Fib::encode`] makes the bytes of the programs' table, [`Fib::decode`] reads a running one back, so that a restarted
//! daemon continues with what is in use.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::mem::offset_of;

use weft_wire::ethernet::{self, MacAddress};
use weft_wire::listener::Listeners;
use weft_wire::trill::{HOP_COUNT_MAX, elided, nickname};
use weft_wire::vlan::VlanSet;

use super::abi::{
    GROUPS, HOPS_MAX, INTERFACES, OTHER_NICKNAMES_MAX, PORTS, SHARERS, SHARES, TREES_MAX, TRILL_ELIDES_BOTH,
    TRILL_ELIDES_IN, TRILL_LINK, TRILL_OVERLOADED, TRILL_PRUNES, TRILL_SHARED, TRILL_SNOOPS, TRILL_WHOLE_MAX, TrillFib,
    TrillHop, TrillListeners, TrillPort, TrillTree,
};
use super::groups;
use super::shares::OwnTrees;
use crate::abi::Abi;
use crate::error::DatapathError;

const ETHERNET_BYTES: u32 = ethernet::HEADER_LEN as u32;
/// What an interface can have at most, bytes.
const MTU_MAX: u32 = 65_521;
/// What a plain frame's Ethertype and header begin with, but for color and alert.
const PLAIN: u32 = u32::from_ne_bytes([0x22, 0xf3, 0, 0]);
/// The same of a plain frame without outer header.
const PLAIN_ELIDED: u32 =
    u32::from_ne_bytes([elided::ETHERTYPE.to_be_bytes()[0], elided::ETHERTYPE.to_be_bytes()[1], 0, 0]);
/// The group of next hops that no route leads to.
const RELAYS: usize = 0;
/// So many groups are kept for single hops, which stand in for sets when there are too many of those.
const SINGLES: usize = PORTS;

/// Everything that forwarding goes by.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fib {
    /// The nickname that our frames come in with.
    pub nickname: Option<u16>,
    /// Others of ours, at most [`OTHER_NICKNAMES_MAX`]: frames may be for them, too.
    pub other_nicknames: Vec<u16>,
    /// Hop count of unicast frames that come in here, 1 to 63: more than RBridges on any path (RFC 6325 section 3.6).
    pub hop_count: u8,
    /// Seed of the hash that chooses among next hops. Unlike other RBridges', or all in a row would choose alike.
    pub hash_seed: u32,
    /// By number, 1 to 63.
    pub ports: BTreeMap<u8, Port>,
    /// Next hops by egress nickname, 1 to 16 of them; all equally good.
    pub routes: BTreeMap<u16, Vec<Hop>>,
    /// Next hops for what has no route, at most 16: who is overloaded may not know it (RFC 7780 sections 2.3.1, 2.4.1).
    pub relays: Vec<Hop>,
    /// Trees by the nickname of their root, at most [`TREES_MAX`].
    pub trees: BTreeMap<u16, Tree>,
    /// The trees that frames which come in here are sent on.
    pub own_trees: OwnTrees,
    /// What is said about IP multicast groups is handed on to user space.
    pub snoops: bool,
    /// What is known of trees may be wrong: none is checked or gone along any further (RFC 7780 section 2.3.2).
    pub overloaded: bool,
    /// Groups that somebody behind a port to end stations listens to; a port that is not here wants all.
    pub listeners: BTreeMap<u8, Listeners>,
}

/// A port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Port {
    /// Index of its interface.
    pub ifindex: u32,
    pub mac: MacAddress,
    /// Longest IP packet, or whatever follows the outer Ethernet header; bytes.
    pub mtu: u32,
    /// What is behind it.
    pub kind: PortKind,
}

/// What is behind a port (RFC 7780 section 6).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PortKind {
    /// End stations.
    Native {
        /// VLAN of frames without a tag; `None`: they are dropped.
        untagged: Option<u16>,
        /// VLANs of frames with a tag.
        tagged: VlanSet,
    },
    /// Another RBridge, point to point.
    Link {
        /// An outer tag with this VLAN, or with none, is taken off.
        designated_vlan: u16,
        /// The port of the RBridge whose adjacency is in Report; frames of nobody else are accepted.
        neighbor: Option<MacAddress>,
        /// Whether outer headers are left out.
        elision: Elision,
    },
    /// Other RBridges and end stations, all on one link.
    Shared {
        /// VLAN of frames without a tag.
        untagged: u16,
        /// VLAN of frames between RBridges, which have a tag where it is not `untagged`.
        designated_vlan: u16,
        /// VLANs whose end stations' frames are carried (RFC 8139): of no others are any accepted or delivered.
        carried: VlanSet,
        /// Ports of the RBridges whose adjacency is in Report, at most [`SHARERS`]; TRILL frames of nobody else are accepted.
        neighbors: BTreeSet<MacAddress>,
    },
}

/// Whether a link goes without outer headers ([`weft_wire::trill::elided`]): no standard's, and only where both ends agree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Elision {
    /// All frames have one; one without is dropped.
    #[default]
    Off,
    /// Frames without are taken and not sent: the neighbour does not take them, as far as is known.
    Offered,
    /// Frames go without, where they can.
    Agreed,
}

impl PortKind {
    /// Whether it carries frames of the VLAN's end stations.
    pub(super) fn carries(&self, vlan: u16) -> bool {
        match self {
            Self::Native { untagged, tagged } => *untagged == Some(vlan) || tagged.contains(vlan),
            Self::Shared { carried, .. } => carried.contains(vlan),
            Self::Link { .. } => false,
        }
    }

    /// A port whose stations know nothing of VLANs.
    pub fn access(vlan: u16) -> Self {
        Self::Native { untagged: Some(vlan), tagged: VlanSet::default() }
    }

    /// A port whose frames have tags.
    pub fn trunk(tagged: VlanSet) -> Self {
        Self::Native { untagged: None, tagged }
    }

    /// A link without a neighbour yet.
    pub fn link(designated_vlan: u16) -> Self {
        Self::Link { designated_vlan, neighbor: None, elision: Elision::Off }
    }

    /// A shared link without a neighbour yet, and without a VLAN to carry. RBridges need no tag there.
    pub fn shared(untagged: u16) -> Self {
        Self::Shared { untagged, designated_vlan: untagged, carried: VlanSet::default(), neighbors: BTreeSet::new() }
    }

    /// Whether frames between RBridges leave with a tag.
    pub(super) fn tags_trill(&self) -> bool {
        matches!(self, Self::Shared { untagged, designated_vlan, .. } if untagged != designated_vlan)
    }
}

/// A next hop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Hop {
    /// Over this port.
    pub port: u8,
    /// To the RBridge whose port has this address.
    pub mac: MacAddress,
}

/// A distribution tree, as seen from here (RFC 6325 section 4.5).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tree {
    /// Hop count of frames that come in here, 1 to 63: at least the hops to the farthest RBridge (RFC 6325 section 3.6).
    pub hop_count: u8,
    /// The ports that are branches, each with the VLANs that somebody behind it is interested in.
    pub branches: BTreeMap<u8, VlanSet>,
    /// The IP multicast groups of them; a branch that is not here wants all.
    pub listeners: BTreeMap<u8, Listeners>,
    /// By ingress nickname, the only port that its frames are accepted from.
    pub rpf: BTreeMap<u16, u8>,
}

impl Fib {
    /// Whether an RBridge can be told so.
    ///
    /// # Errors
    /// [`DatapathError::Config`] with what cannot be.
    pub fn check(&self) -> Result<(), DatapathError> {
        let refuse = |field, why: String| Err(DatapathError::Config { field, why });
        let usable = |nickname: &u16| nickname::is_usable(*nickname);
        if self.other_nicknames.len() > OTHER_NICKNAMES_MAX {
            let why = format!("{} beside the first; at most {OTHER_NICKNAMES_MAX}", self.other_nicknames.len());
            return refuse("other_nicknames", why);
        }
        let ours = self.nickname.iter().chain(&self.other_nicknames);
        if let Some(bad) = ours.chain(self.routes.keys()).chain(self.trees.keys()).find(|n| !usable(n)) {
            return refuse("nickname", format!("{bad:#06x} is no RBridge's; use 0x0001 to 0xffbf"));
        }
        if !(1..=HOP_COUNT_MAX).contains(&self.hop_count) {
            return refuse("hop_count", format!("{} is not 1 to {HOP_COUNT_MAX}", self.hop_count));
        }
        if let Some((number, port)) = self.ports.iter().find(|(n, _)| !(1..PORTS as u8).contains(n)) {
            return refuse("port", format!("number {number} (interface {}); use 1 to {}", port.ifindex, PORTS - 1));
        }
        if let Some((number, port)) = self.ports.iter().find(|(_, port)| port.mtu > MTU_MAX) {
            return refuse("port", format!("number {number}: MTU {}; at most {MTU_MAX}", port.mtu));
        }
        if let Some(port) = self.ports.values().find(|port| port.ifindex as usize >= INTERFACES) {
            let why =
                format!("interface index {} is above {}; use a new network namespace", port.ifindex, INTERFACES - 1);
            return refuse("port", why);
        }
        let crowded =
            |port: &&Port| matches!(&port.kind, PortKind::Shared { neighbors, .. } if neighbors.len() > SHARERS);
        if let Some(port) = self.ports.values().find(crowded) {
            return refuse("port", format!("interface {} has more than {SHARERS} neighbours", port.ifindex));
        }
        for (egress, hops) in &self.routes {
            if !(1..=HOPS_MAX).contains(&hops.len()) {
                return refuse("routes", format!("{egress:#06x} has {} next hops; use 1 to {HOPS_MAX}", hops.len()));
            }
            if let Some(hop) = hops.iter().find(|hop| !self.is_link(hop.port)) {
                return refuse("routes", format!("{egress:#06x} by port {}, which is no link", hop.port));
            }
        }
        if self.relays.len() > HOPS_MAX {
            return refuse("relays", format!("{} relays; at most {HOPS_MAX}", self.relays.len()));
        }
        if let Some(hop) = self.relays.iter().find(|hop| !self.is_link(hop.port)) {
            return refuse("relays", format!("relay by port {}, which is no link", hop.port));
        }
        self.check_trees()
    }

    fn check_trees(&self) -> Result<(), DatapathError> {
        let refuse = |why: String| Err(DatapathError::Config { field: "trees", why });
        if self.trees.len() > TREES_MAX {
            return refuse(format!("{} trees; at most {TREES_MAX}", self.trees.len()));
        }
        if let Some(root) = self.own_trees.roots().into_iter().find(|root| !self.trees.contains_key(root)) {
            return refuse(format!("own tree {root:#06x} is not among them"));
        }
        for (root, tree) in &self.trees {
            if !(1..=HOP_COUNT_MAX).contains(&tree.hop_count) {
                return refuse(format!("{root:#06x}: hop count {} is not 1 to {HOP_COUNT_MAX}", tree.hop_count));
            }
            let ports = tree.branches.keys().chain(tree.rpf.values());
            if let Some(port) = ports.copied().find(|port| !self.is_link(*port)) {
                return refuse(format!("{root:#06x}: port {port} is no link"));
            }
        }
        Ok(())
    }

    fn is_link(&self, number: u8) -> bool {
        let kind = self.ports.get(&number).map(|port| &port.kind);
        matches!(kind, Some(PortKind::Link { .. } | PortKind::Shared { .. }))
    }

    /// The table's bytes, as the programs read them.
    ///
    /// # Errors
    /// [`DatapathError::Config`] as [`Self::check`], or for more different sets of next hops than the table holds even
    /// when each is reduced to one hop.
    pub fn encode(&self) -> Result<Vec<u8>, DatapathError> {
        self.check()?;
        let mut table = Table(vec![0; size_of::<TrillFib>()]);
        table.put(offset_of!(TrillFib, own_nickname), &self.nickname.unwrap_or(0).to_ne_bytes());
        for (place, nickname) in self.other_nicknames.iter().enumerate() {
            table.put(other_nickname_at(place), &nickname.to_ne_bytes());
        }
        table.put(offset_of!(TrillFib, hop_count), &[self.hop_count]);
        table.put(offset_of!(TrillFib, hash_seed), &self.hash_seed.to_ne_bytes());
        for (number, port) in &self.ports {
            table.put_port(*number, port);
        }
        table.put(offset_of!(TrillFib, relays), &[self.relays.len() as u8]);
        table.put_hops(self, RELAYS, &self.relays);
        table.put_routes(self)?;
        for (place, (root, tree)) in self.trees.iter().enumerate() {
            table.put_tree(place, *root, tree);
            for share in (0..SHARES).filter(|share| self.own_trees.root(*share) == Some(*root)) {
                table.put(offset_of!(TrillFib, own_tree) + share, &[place as u8 + 1]);
            }
        }
        table.put_listeners(self);
        Ok(table.0)
    }

    /// The value of a table in use, but for who listens to which groups; `None` for anything that [`Self::encode`] does not make.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        if bytes.len() != size_of::<TrillFib>() {
            return None;
        }
        let table = Image(bytes);
        let mut fib = Self {
            nickname: Some(table.u16_at(offset_of!(TrillFib, own_nickname))).filter(|nickname| *nickname != 0),
            other_nicknames: (0..OTHER_NICKNAMES_MAX)
                .map(|place| table.u16_at(other_nickname_at(place)))
                .filter(|nickname| *nickname != 0)
                .collect(),
            hop_count: bytes[offset_of!(TrillFib, hop_count)],
            hash_seed: u32::from_bytes(bytes.get(offset_of!(TrillFib, hash_seed)..)?.get(..4)?)?,
            ..Self::default()
        };
        fib.relays = table.hops(RELAYS, bytes[offset_of!(TrillFib, relays)].into())?;
        for number in 1..PORTS as u8 {
            fib.ports.extend(table.port(number)?.map(|port| (number, port)));
        }
        for nickname in 1..=nickname::LARGEST {
            fib.routes.extend(table.route(nickname)?.map(|hops| (nickname, hops)));
        }
        let trees: Vec<(u16, Tree)> = (0..TREES_MAX).map_while(|place| table.tree(place, &fib)).collect();
        let places = &bytes[offset_of!(TrillFib, own_tree)..][..SHARES];
        if places != [0; SHARES] {
            let root = |place: &u8| Some(trees.get(usize::from(*place).checked_sub(1)?)?.0);
            fib.own_trees = OwnTrees::of_shares(places.iter().map(root).collect::<Option<_>>()?);
        }
        fib.trees = trees.into_iter().collect();
        fib.check().ok()?;
        Some(fib)
    }
}

fn other_nickname_at(place: usize) -> usize {
    offset_of!(TrillFib, own_others) + 2 * place
}

fn port_at(number: u8) -> usize {
    offset_of!(TrillFib, ports) + usize::from(number) * size_of::<TrillPort>()
}

fn native_ports_at(vlan: u16) -> usize {
    offset_of!(TrillFib, native_ports) + usize::from(vlan) * 8
}

fn sharer_at(number: u8, place: usize) -> usize {
    offset_of!(TrillFib, sharers) + (usize::from(number) * SHARERS + place) * 8
}

/// An address as programs compare it; no address is [`NO_SHARER`].
fn sharer_of(mac: MacAddress) -> u64 {
    let [a, b, c, d, e, f] = mac.0;
    u64::from_ne_bytes([a, b, c, d, e, f, 0, 0])
}

const NO_SHARER: u64 = u64::MAX;

fn route_at(nickname: u16) -> usize {
    offset_of!(TrillFib, route) + usize::from(nickname.to_be()) * 4
}

fn hop_at(group: usize, place: usize) -> usize {
    offset_of!(TrillFib, group) + (group * HOPS_MAX + place) * size_of::<TrillHop>()
}

fn tree_at(place: usize) -> usize {
    offset_of!(TrillFib, tree) + place * size_of::<TrillTree>()
}

fn vlan_ports_at(place: usize, vlan: u16) -> usize {
    tree_at(place) + offset_of!(TrillTree, vlan_ports) + usize::from(vlan) * 8
}

fn rpf_at(place: usize, nickname: u16) -> usize {
    tree_at(place) + offset_of!(TrillTree, rpf) + usize::from(nickname)
}

/// A table that is being made.
struct Table(Vec<u8>);

impl Table {
    fn put(&mut self, at: usize, bytes: &[u8]) {
        self.0[at..at + bytes.len()].copy_from_slice(bytes);
    }

    fn add_bit(&mut self, at: usize, port: u8) {
        let word = Image(&self.0).u64_at(at) | 1 << port;
        self.put(at, &word.to_ne_bytes());
    }

    fn put_port(&mut self, number: u8, port: &Port) {
        let mut entry = TrillPort {
            mac: port.mac.0,
            ifindex: port.ifindex as u16,
            frame_max: frame_max(port),
            ..TrillPort::default()
        };
        match &port.kind {
            PortKind::Link { designated_vlan, neighbor, elision } => {
                entry.kind = TRILL_LINK;
                (entry.vlan, entry.designated_vlan) = (*designated_vlan, *designated_vlan);
                entry.adjacent = u8::from(neighbor.is_some());
                entry.plain = if neighbor.is_some() { PLAIN } else { 0 };
                entry.elides = match elision {
                    Elision::Off => 0,
                    Elision::Offered => TRILL_ELIDES_IN,
                    Elision::Agreed => TRILL_ELIDES_BOTH,
                };
                entry.plain_elided = if neighbor.is_some() && entry.elides > 0 { PLAIN_ELIDED } else { 0 };
                entry.neighbor = neighbor.unwrap_or(MacAddress([0; 6])).0;
            }
            PortKind::Native { untagged, tagged } => {
                entry.vlan = untagged.unwrap_or(0);
                for vlan in untagged.iter().copied().filter(|vlan| (1..4095).contains(vlan)).chain(tagged.iter()) {
                    self.add_bit(native_ports_at(vlan), number);
                }
            }
            PortKind::Shared { untagged, designated_vlan, carried, neighbors } => {
                (entry.kind, entry.adjacent) = (TRILL_SHARED, neighbors.len() as u8);
                (entry.vlan, entry.designated_vlan) = (*untagged, *designated_vlan);
                carried.iter().for_each(|vlan| self.add_bit(native_ports_at(vlan), number));
                self.put_sharers(number, neighbors);
            }
        }
        self.put(port_at(number), entry.bytes());
        self.put(offset_of!(TrillFib, port_of) + port.ifindex as usize, &[number]);
    }

    /// In order, so that programs find one by halving.
    fn put_sharers(&mut self, number: u8, neighbors: &BTreeSet<MacAddress>) {
        let mut sharers: Vec<u64> = neighbors.iter().map(|mac| sharer_of(*mac)).collect();
        sharers.resize(SHARERS, NO_SHARER);
        sharers.sort_unstable();
        for (place, sharer) in sharers.into_iter().enumerate() {
            self.put(sharer_at(number, place), &sharer.to_ne_bytes());
        }
    }

    fn put_hops(&mut self, fib: &Fib, group: usize, hops: &[Hop]) {
        for (place, hop) in hops.iter().enumerate() {
            self.put(hop_at(group, place), entry_of(fib, hop).bytes());
        }
    }

    /// Each set of next hops is there once. When there are more sets than places, single hops stand in for the rest:
    /// what is left is less spread, and nothing is lost.
    fn put_routes(&mut self, fib: &Fib) -> Result<(), DatapathError> {
        let mut groups: HashMap<Vec<Hop>, usize> = HashMap::new();
        for (nickname, hops) in &fib.routes {
            let mut set = hops.clone();
            if !groups.contains_key(&set) && groups.len() + 1 >= GROUPS - SINGLES {
                set = vec![hops[usize::from(*nickname) % hops.len()]];
            }
            let next = groups.len() + 1;
            let group = *groups.entry(set.clone()).or_insert(next);
            if group >= GROUPS {
                let why = format!("more than {GROUPS} different next hops");
                return Err(DatapathError::Config { field: "routes", why });
            }
            if group == next {
                self.put_hops(fib, group, &set);
            }
            self.put(route_at(*nickname), &((group << 8 | set.len()) as u32).to_ne_bytes());
        }
        Ok(())
    }

    fn put_listeners(&mut self, fib: &Fib) {
        let wanted = groups::wanted(fib);
        let flags =
            [(!wanted.is_empty(), TRILL_PRUNES), (fib.snoops, TRILL_SNOOPS), (fib.overloaded, TRILL_OVERLOADED)];
        let flags = flags.into_iter().filter(|(is_set, _)| *is_set).fold(0, |flags, (_, flag)| flags | flag);
        self.put(offset_of!(TrillFib, flags), &[flags]);
        for (place, entry) in groups::places(&wanted) {
            self.put(offset_of!(TrillFib, listeners) + place * size_of::<TrillListeners>(), entry.bytes());
        }
    }

    fn put_tree(&mut self, place: usize, root: u16, tree: &Tree) {
        self.put(tree_at(place) + offset_of!(TrillTree, root), &root.to_ne_bytes());
        self.put(tree_at(place) + offset_of!(TrillTree, hop_count), &[tree.hop_count]);
        for (port, vlans) in &tree.branches {
            self.add_bit(tree_at(place) + offset_of!(TrillTree, ports), *port);
            for vlan in vlans.iter() {
                self.add_bit(vlan_ports_at(place, vlan), *port);
            }
        }
        for (ingress, port) in &tree.rpf {
            self.put(rpf_at(place, *ingress), &[*port]);
        }
    }
}

fn entry_of(fib: &Fib, hop: &Hop) -> TrillHop {
    let port = &fib.ports[&hop.port];
    let elides = matches!(port.kind, PortKind::Link { elision: Elision::Agreed, .. });
    let plain_max = if elides { 0 } else { frame_max(port).min(TRILL_WHOLE_MAX) };
    TrillHop { destination: hop.mac.0, source: port.mac.0, port: hop.port, elides: elides.into(), plain_max }
}

/// The longest frame of a port. The kernel has none longer than 65535 bytes.
fn frame_max(port: &Port) -> u16 {
    u16::try_from(port.mtu.saturating_add(ETHERNET_BYTES)).unwrap_or(u16::MAX)
}

/// A table that is read.
struct Image<'a>(&'a [u8]);

impl Image<'_> {
    fn u16_at(&self, at: usize) -> u16 {
        u16::from_ne_bytes([self.0[at], self.0[at + 1]])
    }

    fn u64_at(&self, at: usize) -> u64 {
        u64::from_ne_bytes(self.0[at..at + 8].try_into().expect("eight bytes"))
    }

    fn value<T: Abi>(&self, at: usize) -> Option<T> {
        T::from_bytes(&self.0[at..at + size_of::<T>()])
    }

    /// Outer `None`: nothing that we would have written.
    fn port(&self, number: u8) -> Option<Option<Port>> {
        let entry: TrillPort = self.value(port_at(number))?;
        if entry.ifindex == 0 {
            return Some(None);
        }
        let is_in = |vlan: &u16| self.u64_at(native_ports_at(*vlan)) & 1 << number != 0;
        let kind = if entry.kind == TRILL_LINK {
            let neighbor = (entry.adjacent == 1).then_some(MacAddress(entry.neighbor));
            let elision = match entry.elides {
                0 => Elision::Off,
                TRILL_ELIDES_IN => Elision::Offered,
                TRILL_ELIDES_BOTH => Elision::Agreed,
                _ => return None,
            };
            PortKind::Link { designated_vlan: entry.vlan, neighbor, elision }
        } else if entry.kind == TRILL_SHARED {
            let sharers =
                (0..usize::from(entry.adjacent)).map(|place| self.u64_at(sharer_at(number, place)).to_ne_bytes());
            PortKind::Shared {
                untagged: entry.vlan,
                designated_vlan: entry.designated_vlan,
                carried: (1..4095).filter(is_in).collect(),
                neighbors: sharers.map(|[a, b, c, d, e, f, ..]| MacAddress([a, b, c, d, e, f])).collect(),
            }
        } else {
            let untagged = Some(entry.vlan).filter(|vlan| *vlan != 0);
            PortKind::Native {
                untagged,
                tagged: (1..4095).filter(is_in).filter(|vlan| Some(*vlan) != untagged).collect(),
            }
        };
        let mtu = u32::from(entry.frame_max).checked_sub(ETHERNET_BYTES)?;
        Some(Some(Port { ifindex: entry.ifindex.into(), mac: MacAddress(entry.mac), mtu, kind }))
    }

    fn route(&self, nickname: u16) -> Option<Option<Vec<Hop>>> {
        let route: u32 = self.value(route_at(nickname))?;
        if route == 0 {
            return Some(None);
        }
        self.hops((route >> 8) as usize, (route & 0xff) as usize).map(Some)
    }

    fn hops(&self, group: usize, count: usize) -> Option<Vec<Hop>> {
        if group >= GROUPS || count > HOPS_MAX {
            return None;
        }
        let hop = |place| {
            let entry: TrillHop = self.value(hop_at(group, place))?;
            Some(Hop { port: entry.port, mac: MacAddress(entry.destination) })
        };
        (0..count).map(hop).collect()
    }

    fn tree(&self, place: usize, fib: &Fib) -> Option<(u16, Tree)> {
        let root = self.u16_at(tree_at(place) + offset_of!(TrillTree, root));
        if root == 0 {
            return None;
        }
        let ports = self.u64_at(tree_at(place) + offset_of!(TrillTree, ports));
        let wanted = |port: u8| (1..4095).filter(move |vlan| self.u64_at(vlan_ports_at(place, *vlan)) & 1 << port != 0);
        let branches = fib.ports.keys().filter(|port| ports & 1 << **port != 0);
        let ingresses = (1..=nickname::LARGEST).map(|nickname| (nickname, self.0[rpf_at(place, nickname)]));
        let tree = Tree {
            hop_count: self.0[tree_at(place) + offset_of!(TrillTree, hop_count)],
            branches: branches.map(|port| (*port, wanted(*port).collect())).collect(),
            rpf: ingresses.filter(|(_, port)| *port != 0).collect(),
            listeners: BTreeMap::new(),
        };
        Some((root, tree))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn port(ifindex: u32, kind: PortKind) -> Port {
        Port { ifindex, mac: MacAddress([2, 0, 0, 0, 0, ifindex as u8]), mtu: 1600, kind }
    }

    fn hop(port: u8, last: u8) -> Hop {
        Hop { port, mac: MacAddress([2, 1, 0, 0, 0, last]) }
    }

    fn fib() -> Fib {
        let neighbor = Some(MacAddress([2, 9, 9, 9, 9, 9]));
        let ports = [
            (1, port(7, PortKind::Link { designated_vlan: 1, neighbor, elision: Elision::Agreed })),
            (2, port(8, PortKind::Link { designated_vlan: 2, neighbor: None, elision: Elision::Offered })),
            (3, port(9, PortKind::access(10))),
            (4, port(10, PortKind::shared(1))),
            (
                5,
                port(
                    11,
                    PortKind::Shared {
                        untagged: 4,
                        designated_vlan: 4094,
                        carried: VlanSet::of_ranges(&[(4, 9), (4094, 4094)]),
                        neighbors: (0..SHARERS as u8).map(|n| MacAddress([2, n, 9, 9, 9, 255 - n])).collect(),
                    },
                ),
            ),
            (
                63,
                port(
                    65_535,
                    PortKind::Native { untagged: Some(10), tagged: VlanSet::of_ranges(&[(20, 30), (4094, 4095)]) },
                ),
            ),
        ];
        let routes = [(1, vec![hop(1, 1)]), (0xffbf, vec![hop(1, 1), hop(2, 2)]), (77, vec![hop(1, 1), hop(2, 2)])];
        let tree = Tree {
            hop_count: 9,
            branches: [(1, VlanSet::of_ranges(&[(1, 4094)])), (2, VlanSet::default())].into(),
            rpf: [(1, 1), (0xffbf, 2)].into(),
            ..Tree::default()
        };
        Fib {
            nickname: Some(5),
            relays: vec![hop(2, 9), hop(1, 1)],
            other_nicknames: vec![6, 900],
            hop_count: 63,
            hash_seed: 0x1234_5678,
            ports: ports.into(),
            routes: routes.into(),
            trees: [(1, tree.clone()), (77, tree)].into(),
            own_trees: OwnTrees::of([1, 77]),
            ..Fib::default()
        }
    }

    #[test]
    fn what_was_told_is_read_back() {
        let minimal = Fib { hop_count: 1, ..Fib::default() };
        for fib in [fib(), minimal] {
            assert_eq!(Fib::decode(&fib.encode().unwrap()), Some(fib));
        }
        assert_eq!(Fib::decode(&[0; 100]), None);
        assert_eq!(Fib::decode(&vec![0; size_of::<TrillFib>()]), None, "a fresh map is no table");
        assert_eq!(Fib::decode(&vec![0xff; size_of::<TrillFib>()]), None);
    }

    #[test]
    fn what_cannot_be_is_refused_with_its_reason() {
        type Change = fn(&mut Fib);
        let cases: [(Change, &str); 16] = [
            (
                |fib| match &mut fib.ports.get_mut(&5).unwrap().kind {
                    PortKind::Shared { neighbors, .. } => drop(neighbors.insert(MacAddress([4; 6]))),
                    _ => panic!("a shared link"),
                },
                "interface 11 has more than 64 neighbours",
            ),
            (|fib| fib.nickname = Some(0), "0x0000 is no RBridge's"),
            (|fib| fib.nickname = Some(0xffc0), "0xffc0 is no RBridge's"),
            (|fib| fib.other_nicknames = vec![6, 0], "0x0000 is no RBridge's"),
            (|fib| fib.other_nicknames = vec![6, 7, 8, 9], "4 beside the first; at most 3"),
            (|fib| fib.hop_count = 64, "64 is not 1 to 63"),
            (|fib| fib.relays = vec![hop(1, 1); 17], "17 relays; at most 16"),
            (|fib| fib.relays = vec![hop(3, 1)], "relay by port 3, which is no link"),
            (|fib| drop(fib.routes.insert(9, Vec::new())), "0x0009 has 0 next hops"),
            (|fib| drop(fib.routes.insert(9, vec![hop(1, 1); 17])), "0x0009 has 17 next hops"),
            (|fib| drop(fib.routes.insert(9, vec![hop(3, 1)])), "by port 3, which is no link"),
            (|fib| drop(fib.ports.insert(64, port(1, PortKind::access(1)))), "number 64"),
            (|fib| drop(fib.ports.insert(4, port(65_536, PortKind::access(1)))), "index 65536 is above 65535"),
            (|fib| fib.own_trees = OwnTrees::of([6]), "own tree 0x0006 is not among them"),
            (|fib| fib.trees.get_mut(&1).unwrap().hop_count = 0, "hop count 0"),
            (|fib| fib.trees.get_mut(&1).unwrap().rpf.extend([(3, 3)]), "port 3 is no link"),
        ];
        for (change, why) in cases {
            let mut fib = fib();
            change(&mut fib);
            let error = fib.encode().expect_err(why).to_string();
            assert!(error.contains(why), "{error}");
        }
    }

    #[test]
    fn too_many_sets_of_next_hops_become_single_ones() {
        let mut fib = Fib { hop_count: 1, ..Fib::default() };
        fib.ports = (1..64).map(|number| (number, port(number.into(), PortKind::link(1)))).collect();
        let pairs = (1..64).flat_map(|a| (1..64).filter(move |b| *b != a).map(move |b| vec![hop(a, a), hop(b, b)]));
        fib.routes = (1..).zip(pairs).collect();
        let back = Fib::decode(&fib.encode().unwrap()).unwrap();
        assert_eq!(back.routes.len(), fib.routes.len());
        let mut whole = 0;
        for (nickname, hops) in &fib.routes {
            let kept = &back.routes[nickname];
            assert!(kept.iter().all(|hop| hops.contains(hop)), "{nickname}");
            whole += usize::from(kept == hops);
        }
        assert_eq!(whole, GROUPS - SINGLES - 1);
    }
}
