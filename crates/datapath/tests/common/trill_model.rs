//! What an RBridge must do with a frame, slowly and from the RFCs' text: the acceptance order of RFC 6325 4.6.2 as
//! corrected by RFC 7780, ingress (4.6.1), learning (4.8), the gateway. Shares no code with the programs.

use std::collections::HashMap;
use std::net::Ipv4Addr;

use weft_datapath::trill::{Elision, Fib, Hop, HostRoute, Place, PortKind, Tree};
use weft_wire::ethernet::MacAddress;
use weft_wire::listener::{Group, Listeners};

use super::checksum;
use super::trill::{ALL_EGRESS, ALL_RBRIDGES, host_routes, stations};

type Mac = [u8; 6];

pub struct Model {
    pub fib: Fib,
    pub stations: HashMap<(Mac, u16), (Place, u8)>,
    routes: HashMap<Ipv4Addr, HostRoute>,
}

/// Where the programs note the number of a set.
pub const SET_AT: usize = 8;
pub const SOME_SET: u8 = 0;

/// Ports that get a frame in TRILL, and those that get it natively.
struct Receivers {
    links: Vec<u8>,
    natives: Vec<u8>,
}

/// Outcome, and the frame where it was not dropped.
pub type Decision = (&'static str, Option<Vec<u8>>);
type Step<T> = Result<T, Decision>;

fn drop_as<T>(why: &'static str) -> Step<T> {
    Err((why, None))
}

fn mac(frame: &[u8], at: usize) -> Mac {
    frame[at..at + 6].try_into().unwrap()
}

fn u16_at(frame: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([frame[at], frame[at + 1]])
}

fn is_control(destination: Mac) -> bool {
    destination[..5] == [1, 0x80, 0xc2, 0, 0] && (destination[5] < 0x10 || destination[5] == 0x21)
}

fn is_trill_group(destination: Mac) -> bool {
    destination[..5] == [1, 0x80, 0xc2, 0, 0] && destination[5] >> 4 == 4
}

fn is_trill(kind: u16) -> bool {
    kind == 0x22f3 || kind == 0x22f4
}

fn is_usable(nickname: u16) -> bool {
    (1..=0xffbf).contains(&nickname)
}

fn bad_source(source: Mac) -> bool {
    source[0] % 2 == 1 || source == [0; 6]
}

impl Model {
    pub fn new(fib: Fib) -> Self {
        let places = stations().into_iter().map(|known| ((known.mac.0, known.vlan), (known.place, known.confidence)));
        Self { fib, stations: places.collect(), routes: host_routes().into() }
    }

    pub fn receive(&mut self, port: u8, frame: &[u8]) -> Decision {
        let decided = match self.fib.ports[&port].kind {
            PortKind::Native { .. } => self.ingress(port, frame),
            PortKind::Shared { .. } if !is_between_bridges(frame) => self.ingress(port, frame),
            _ => self.link(port, frame),
        };
        decided.unwrap_or_else(|decision| decision)
    }

    fn is_shared(&self, port: u8) -> bool {
        matches!(self.fib.ports[&port].kind, PortKind::Shared { .. })
    }

    /// A frame with its outer header, as it is handed to these ports, by links and natively: itself where there is one; else what the
    /// programs note for its copies is where the outer source was: whether `from`, a shared link, gets one, who gets none in which
    /// form, and a set.
    fn hand_out(
        &self,
        from: u8,
        mut frame: Vec<u8>,
        inner: usize,
        receivers: &Receivers,
        not: (u8, u8),
    ) -> Step<Vec<u8>> {
        match (&receivers.links[..], &receivers.natives[..]) {
            ([], []) => drop_as("no_receiver"),
            ([link], []) => self.leave(*link, frame),
            ([], [native]) if inner == 20 => {
                let native_frame = self.native(*native, u16_at(&frame, 34) & 0xfff, &frame[20..]);
                self.fits(*native, &native_frame)?;
                Ok(native_frame)
            }
            _ => {
                let flags = 1 | u8::from(self.is_shared(from)) << 1 | u8::from(not.1 > 0) << 2;
                frame[6..12].copy_from_slice(&[flags, not.0 | not.1, SOME_SET, 0, 0, 0]);
                Ok(frame)
            }
        }
    }

    /// A frame that is finished but for its outer source, as it leaves by a link.
    fn leave(&self, link: u8, mut frame: Vec<u8>) -> Step<Vec<u8>> {
        let port = &self.fib.ports[&link];
        if frame.len() > port.mtu as usize + 14 {
            return drop_as("too_long");
        }
        frame[6..12].copy_from_slice(&port.mac.0);
        let elides = matches!(port.kind, PortKind::Link { elision: Elision::Agreed, .. });
        Ok(if elides { elided(frame) } else { frame })
    }

    fn learn(&mut self, source: Mac, vlan: u16, place: Place) {
        let known = self.stations.entry((source, vlan)).or_insert((place, 0x20));
        if known.1 <= 0x20 {
            *known = (place, 0x20);
        }
    }

    fn link(&mut self, port: u8, frame: &[u8]) -> Step<Decision> {
        let mut frame = frame.to_vec();
        let ours = self.fib.ports[&port].mac.0;
        let (untagged, designated_vlan, neighbors, elision) = match &self.fib.ports[&port].kind {
            PortKind::Link { designated_vlan, neighbor, elision } => {
                let neighbors = neighbor.iter().map(|neighbor| neighbor.0).collect();
                (*designated_vlan, *designated_vlan, neighbors, *elision)
            }
            PortKind::Shared { untagged, designated_vlan, neighbors, .. } => {
                let neighbors = neighbors.iter().map(|neighbor| neighbor.0).collect::<Vec<Mac>>();
                (*untagged, *designated_vlan, neighbors, Elision::Off)
            }
            PortKind::Native { .. } => panic!("a link"),
        };
        if frame.len() < 14 {
            return drop_as("malformed");
        }
        let destination = mac(&frame, 0);
        if u16_at(&frame, 12) == 0x8100 && !is_control(destination) {
            if frame.len() < 18 {
                return drop_as("malformed");
            }
            if !is_trill(u16_at(&frame, 16)) {
                return drop_as("native_on_link");
            }
            // Of IS-IS the daemon is told the VLAN.
            if self.is_shared(port) && u16_at(&frame, 16) == 0x22f4 {
                frame[12..14].copy_from_slice(&[0x91, 0]);
                return match destination {
                    [1, 0x80, 0xc2, 0, 0, 0x41] => Ok(("is_is", Some(frame))),
                    _ if destination == ours => Ok(("is_is", Some(frame))),
                    _ if is_trill_group(destination) && destination != ALL_RBRIDGES => drop_as("other_group"),
                    ALL_RBRIDGES => drop_as("not_trill"),
                    _ => drop_as("not_for_us"),
                };
            }
            let tag = u16_at(&frame, 14) & 0xfff;
            if (if tag == 0 { untagged } else { tag }) != designated_vlan {
                return drop_as("outer_vlan");
            }
            frame.drain(12..16);
        } else if u16_at(&frame, 12) == 0x22f3 && !is_control(destination) && untagged != designated_vlan {
            return drop_as("outer_vlan");
        }
        if u16_at(&frame, 12) == 0x88b5 && !is_control(destination) {
            frame = restored(&frame, elision, ours, neighbors.first().copied().unwrap_or_default())?;
        }
        let (kind, destination) = (u16_at(&frame, 12), mac(&frame, 0));
        if is_control(destination) {
            return Ok(("l2_control", Some(frame)));
        }
        if !is_trill(kind) && !is_trill_group(destination) {
            return drop_as("native_on_link");
        }
        if kind == 0x22f4 && (destination == [1, 0x80, 0xc2, 0, 0, 0x41] || destination == ours) {
            return Ok(("is_is", Some(frame)));
        }
        if is_trill_group(destination) && destination != ALL_RBRIDGES {
            return drop_as("other_group");
        }
        if destination != ALL_RBRIDGES && destination != ours {
            return drop_as("not_for_us");
        }
        if kind != 0x22f3 {
            return drop_as("not_trill");
        }
        if frame.len() < 38 {
            return drop_as("malformed");
        }
        let flags = u16_at(&frame, 14);
        let multi = flags >> 11 & 1 == 1;
        match flags {
            flags if flags >> 14 != 0 => return drop_as("bad_version"),
            flags if flags >> 7 & 15 != 0 => return drop_as("reserved_bits"),
            flags if flags & 63 == 0 => return drop_as("hop_count"),
            _ if multi != (destination == ALL_RBRIDGES) => return drop_as("group_mismatch"),
            _ => {}
        }
        if !neighbors.contains(&mac(&frame, 6)) {
            return drop_as("no_adjacency");
        }
        self.data(port, frame, multi)
    }

    fn is_own(&self, nickname: u16) -> bool {
        self.fib.nickname.iter().chain(&self.fib.other_nicknames).any(|own| *own == nickname)
    }

    fn data(&mut self, port: u8, mut frame: Vec<u8>, multi: bool) -> Step<Decision> {
        let has_flags = frame[15] >> 6 & 1 == 1;
        let mut inner = 20;
        let mut critical = 0;
        if has_flags {
            if frame.len() < 42 {
                return drop_as("malformed");
            }
            (inner, critical) = (24, frame[20] >> 6);
        }
        if critical & 2 != 0 {
            return drop_as("critical_flag");
        }
        let (egress, ingress) = (u16_at(&frame, 16), u16_at(&frame, 18));
        if !is_usable(ingress) {
            return drop_as("reserved_ingress");
        }
        if self.is_own(ingress) {
            let is_echo = egress == ingress && !multi && matches!(check_inner(&frame, inner), Err(("channel", _)));
            return if is_echo { Ok(("channel", Some(frame))) } else { drop_as("own_ingress") };
        }
        if egress == 0xffc0 && !multi && matches!(check_inner(&frame, inner), Err(("channel", _))) {
            return Ok(("channel", Some(frame)));
        }
        if !is_usable(egress) {
            return drop_as("reserved_egress");
        }
        if multi {
            return self.along_tree(port, frame, inner);
        }
        if !self.is_own(egress) {
            return self.transit(frame, egress, inner);
        }
        if critical & 1 != 0 {
            return drop_as("critical_flag");
        }
        if has_flags {
            frame.drain(20..24);
            frame[15] &= !0x40;
        }
        self.egress(port, frame, ingress)
    }

    fn transit(&self, mut frame: Vec<u8>, egress: u16, inner: usize) -> Step<Decision> {
        let one_of = |hops: &[Hop]| choice(self.fib.hash_seed, &frame[inner..], hops.len());
        let hop = match (self.fib.routes.get(&egress), &self.fib.relays[..]) {
            (Some(hops), _) => hops[one_of(hops)],
            (None, []) => return drop_as("unknown_egress"),
            (None, relays) => {
                // Any neighbour that is not overloaded, but not back; the next one stands in for that.
                let (place, came_from) = (one_of(relays), mac(&frame, 6));
                let mut places = [place, (place + 1) % relays.len()].into_iter().map(|place| relays[place]);
                let Some(hop) = places.find(|hop| hop.mac.0 != came_from) else { return drop_as("unknown_egress") };
                hop
            }
        };
        frame[..6].copy_from_slice(&hop.mac.0);
        frame[15] -= 1;
        Ok(("transit", Some(self.leave(hop.port, frame)?)))
    }

    fn egress(&mut self, from: u8, frame: Vec<u8>, ingress: u16) -> Step<Decision> {
        let vlan = check_inner(&frame, 20)?;
        let (destination, source) = (mac(&frame, 20), mac(&frame, 26));
        if destination[0] % 2 == 1 {
            return drop_as("inner_group");
        }
        if bad_source(source) {
            return drop_as("bad_source");
        }
        if self.fib.routes.contains_key(&ingress) {
            self.learn(source, vlan, Place::RBridge(ingress));
        }
        match self.stations.get(&(destination, vlan)) {
            Some((Place::Port(port), _)) if self.carries(*port, vlan) => {
                let native = self.native(*port, vlan, &frame[20..]);
                self.fits(*port, &native)?;
                Ok(("egress", Some(native)))
            }
            _ => {
                let receivers = Receivers { links: Vec::new(), natives: self.native_ports(vlan) };
                Ok(("egress_flood", Some(self.hand_out(from, frame, 20, &receivers, (from, 0))?)))
            }
        }
    }

    fn along_tree(&mut self, port: u8, mut frame: Vec<u8>, inner: usize) -> Step<Decision> {
        let (root, ingress) = (u16_at(&frame, 16), u16_at(&frame, 18));
        // Who is overloaded takes it from wherever it comes, and keeps it.
        let mut tree = None;
        if !self.fib.overloaded {
            let known = self.fib.trees.get(&root).cloned();
            let Some(checked) = known else { return drop_as("unknown_tree") };
            if !self.fib.routes.contains_key(&ingress) {
                return drop_as("unknown_ingress");
            }
            if !checked.branches.contains_key(&port) {
                return drop_as("not_on_tree");
            }
            if checked.rpf.get(&ingress) != Some(&port) {
                return drop_as("rpf");
            }
            tree = Some(checked);
        }
        let vlan = match check_inner(&frame, inner) {
            Err(("channel", _)) => return Ok(("channel", Some(frame))),
            other => other?,
        };
        if is_control(mac(&frame, inner)) {
            return drop_as("inner_control");
        }
        let source = mac(&frame, inner + 6);
        if bad_source(source) {
            return drop_as("bad_source");
        }
        if !self.native_ports(vlan).is_empty() && self.fib.routes.contains_key(&ingress) {
            self.learn(source, vlan, Place::RBridge(ingress));
        }
        let receivers = self.receivers(tree.as_ref(), &frame[inner..], port, 0);
        frame[15] -= 1;
        Ok(("tree_flood", Some(self.hand_out(port, frame, inner, &receivers, (port, 0))?)))
    }

    fn ingress(&mut self, port: u8, frame: &[u8]) -> Step<Decision> {
        if frame.len() < 14 {
            return drop_as("malformed");
        }
        let (destination, source) = (mac(frame, 0), mac(frame, 6));
        let untagged = self.untagged(port);
        if is_control(destination) {
            return Ok(("l2_control", Some(frame.to_vec())));
        }
        let (mut control, mut kind, mut body) = (untagged.unwrap_or(0), u16_at(frame, 12), 12);
        if kind == 0x8100 {
            if frame.len() < 18 {
                return drop_as("malformed");
            }
            let tag = u16_at(frame, 14);
            (control, kind, body) = (if tag & 0xfff == 0 { tag | control } else { tag }, u16_at(frame, 16), 16);
        }
        if is_trill(kind) || is_trill_group(destination) {
            return drop_as("trill_on_native");
        }
        let vlan = control & 0xfff;
        if !self.carries(port, vlan) {
            return drop_as(if self.is_shared(port) { "not_forwarder" } else { "not_in_vlan" });
        }
        if bad_source(source) {
            return drop_as("bad_source");
        }
        self.learn(source, vlan, Place::Port(port));
        // As inside TRILL: always with a tag.
        let mut inner = frame[..12].to_vec();
        inner.extend([0x81, 0, (control >> 8) as u8, control as u8]);
        inner.extend(&frame[body..]);
        if destination[0] % 2 == 1 {
            if let Some(answer) = self.arp_answer(frame, body, vlan) {
                return Ok(("arp_answered", Some(answer)));
            }
            return self.flood(port, port, &inner);
        }
        let mut from = port;
        if let Some((Place::Gateway, _)) = self.stations.get(&(destination, vlan)) {
            self.route(&mut inner, frame)?;
            from = 0;
        }
        self.send(port, from, inner)
    }

    fn send(&self, port: u8, from: u8, inner: Vec<u8>) -> Step<Decision> {
        let vlan = u16_at(&inner, 14) & 0xfff;
        match self.stations.get(&(mac(&inner, 0), vlan)).map(|known| known.0) {
            None => self.flood(port, from, &inner),
            Some(Place::Gateway) => panic!("a gateway routes to no gateway"),
            Some(Place::RBridge(egress)) => {
                let Some(own) = self.fib.nickname else { return drop_as("no_nickname") };
                if !self.fib.routes.contains_key(&egress) && self.fib.relays.is_empty() {
                    return drop_as("no_route");
                }
                // One more hop than it leaves with, because sending it takes one.
                let header = [u16::from(self.fib.hop_count + 1), egress, own].map(u16::to_be_bytes).concat();
                let frame = [&[0; 12][..], &[0x22, 0xf3], &header, &inner].concat();
                let (_, sent) = self.transit(frame, egress, 20)?;
                Ok(("ingress", sent))
            }
            Some(Place::Port(to)) if to == from => drop_as("same_port"),
            Some(Place::Port(to)) if self.carries(to, vlan) => {
                let native = self.native(to, vlan, &inner);
                self.fits(to, &native)?;
                Ok(("switched", Some(native)))
            }
            Some(Place::Port(_)) => self.flood(port, from, &inner),
        }
    }

    /// `but`: the native port that gets none, if any.
    fn flood(&self, port: u8, but: u8, inner: &[u8]) -> Step<Decision> {
        let root = self.fib.own_trees.root(share(self.fib.hash_seed, inner));
        let tree = root.and_then(|root| self.fib.trees.get_key_value(&root)).filter(|_| self.fib.nickname.is_some());
        let receivers = self.receivers(tree.map(|(_, tree)| tree), inner, 0, but);
        let header = match tree {
            Some((root, tree)) => [0x800 | u16::from(tree.hop_count), *root, self.fib.nickname.unwrap()],
            None => [0; 3],
        };
        let header = header.map(u16::to_be_bytes).concat();
        let frame = [&ALL_RBRIDGES[..], &[0; 6], &[0x22, 0xf3], &header, inner].concat();
        Ok(("ingress_flood", Some(self.hand_out(port, frame, 20, &receivers, (0, but))?)))
    }

    fn route(&self, inner: &mut [u8], frame: &[u8]) -> Step<()> {
        if inner.len() < 18 + 20 {
            return drop_as("gateway_malformed");
        }
        let header = 18;
        if u16_at(inner, 16) != 0x0800 || inner[header] != 0x45 {
            return Err(("gateway_miss", Some(frame.to_vec())));
        }
        if u16_at(inner, header + 10) != checksum(&inner[header..header + 20]) {
            return drop_as("gateway_malformed");
        }
        let host: [u8; 4] = inner[header + 16..header + 20].try_into().unwrap();
        let route = self.routes.get(&Ipv4Addr::from(host)).filter(|route| route.mac.is_some());
        let Some(route) = route else { return Err(("gateway_miss", Some(frame.to_vec()))) };
        if inner[header + 8] <= 1 {
            return drop_as("gateway_ttl");
        }
        inner[header + 8] -= 1;
        let sum = checksum(&inner[header..header + 20]);
        inner[header + 10..header + 12].copy_from_slice(&sum.to_be_bytes());
        inner[..6].copy_from_slice(&route.mac.unwrap().0);
        inner[6..12].copy_from_slice(&route.gateway.0);
        let control = u16_at(inner, 14) & 0xf000 | route.vlan;
        inner[14..16].copy_from_slice(&control.to_be_bytes());
        Ok(())
    }

    fn arp_answer(&self, frame: &[u8], body: usize, vlan: u16) -> Option<Vec<u8>> {
        if u16_at(frame, body) != 0x0806 || frame.len() < body + 2 + 28 {
            return None;
        }
        let arp = body + 2;
        if frame[arp..arp + 8] != [0, 1, 8, 0, 6, 4, 0, 1] {
            return None;
        }
        let (asker, wanted) = (&frame[arp + 14..arp + 18], &frame[arp + 24..arp + 28]);
        let address: [u8; 4] = wanted.try_into().unwrap();
        let route =
            self.routes.get(&Ipv4Addr::from(address)).filter(|route| route.mac.is_none() && route.vlan == vlan)?;
        if asker == wanted {
            return None;
        }
        let mut answer =
            [&frame[6..12], &route.gateway.0, &frame[12..arp + 6], &[0, 2], &route.gateway.0, wanted].concat();
        answer.extend(&frame[arp + 8..arp + 14]);
        answer.extend(asker);
        answer.extend(&frame[arp + 28..]);
        Some(answer)
    }

    fn carries(&self, port: u8, vlan: u16) -> bool {
        let kind = self.fib.ports.get(&port).map(|port| &port.kind);
        match kind {
            Some(PortKind::Native { untagged, tagged }) => *untagged == Some(vlan) || tagged.contains(vlan),
            Some(PortKind::Shared { carried, .. }) => carried.contains(vlan),
            _ => false,
        }
    }

    fn untagged(&self, port: u8) -> Option<u16> {
        match self.fib.ports[&port].kind {
            PortKind::Native { untagged, .. } => untagged,
            PortKind::Shared { untagged, .. } => Some(untagged),
            PortKind::Link { .. } => panic!("a port to end stations"),
        }
    }

    fn native_ports(&self, vlan: u16) -> Vec<u8> {
        self.fib.ports.keys().copied().filter(|port| self.carries(*port, vlan)).collect()
    }

    /// Ports that get the frame, but for one of each form.
    fn receivers(&self, tree: Option<&Tree>, inner: &[u8], no_link: u8, no_native: u8) -> Receivers {
        let vlan = u16_at(inner, 14) & 0xfff;
        let wants = |listeners: Option<&Listeners>| listeners.is_none_or(|listeners| is_wanted(inner, vlan, listeners));
        let is_branch = |tree: &Tree, port: u8| tree.branches[&port].contains(vlan) && wants(tree.listeners.get(&port));
        let branches = tree.iter().flat_map(|tree| tree.branches.keys().map(|port| (*tree, *port)));
        let links = branches.filter(|(tree, port)| *port != no_link && is_branch(tree, *port)).map(|(_, port)| port);
        let mut natives = self.native_ports(vlan);
        natives.retain(|port| *port != no_native && wants(self.fib.listeners.get(port)));
        Receivers { links: links.collect(), natives }
    }

    /// An inner frame as it leaves by a native port.
    fn native(&self, port: u8, vlan: u16, inner: &[u8]) -> Vec<u8> {
        if self.untagged(port) == Some(vlan) { [&inner[..12], &inner[16..]].concat() } else { inner.to_vec() }
    }

    fn fits(&self, port: u8, native: &[u8]) -> Step<()> {
        let tag = if u16_at(native, 12) == 0x8100 { 4 } else { 0 };
        if native.len() > self.fib.ports[&port].mtu as usize + 14 + tag { drop_as("too_long") } else { Ok(()) }
    }
}

/// Whether somebody there gets a frame, by its destination; of IGMP's and MLD's reports only those who get all groups.
fn is_wanted(inner: &[u8], vlan: u16, listeners: &Listeners) -> bool {
    let (destination, packet) = (mac(inner, 0), &inner[18..]);
    let is_group = destination[0] % 2 == 1;
    let is_ipv4 = u16_at(inner, 16) == 0x0800;
    let igmp = || is_ipv4 && packet.len() >= 20 && packet[9] == 2 && packet.len() > usize::from(packet[0] & 15) * 4;
    let kind = match u16_at(inner, 16) {
        0x0800 if igmp() => packet[usize::from(packet[0] & 15) * 4],
        0x86dd if packet.len() >= 49 && packet[6] == 0 && packet[40..42] == [58, 0] => packet[48],
        _ => 0,
    };
    let all = |is_ipv4| if is_ipv4 { &listeners.all_ipv4 } else { &listeners.all_ipv6 }.contains(vlan);
    if is_group && [0x12, 0x16, 0x17, 0x22, 131, 132, 143].contains(&kind) {
        return all(is_ipv4);
    }
    let is_listed = listeners.groups.contains(&Group { vlan, mac: MacAddress(destination) });
    match destination {
        [1, 0, 0x5e, 0, 0, _] | [0x33, 0x33, 0, 0, 0, _] | [0x33, 0x33, 0xff, ..] => true,
        [1, 0, 0x5e, 0..=0x7f, ..] => all(true) || is_listed,
        [0x33, 0x33, ..] => all(false) || is_listed,
        _ => true,
    }
}

/// Whether a frame of a shared link is between RBridges or bridges, by its address or Ethertype; else it is a station's.
fn is_between_bridges(frame: &[u8]) -> bool {
    if frame.len() < 14 || is_control(mac(frame, 0)) || is_trill_group(mac(frame, 0)) {
        return true;
    }
    let kind = u16_at(frame, 12);
    is_trill(kind) || kind == 0x8100 && frame.len() >= 18 && is_trill(u16_at(frame, 16))
}

fn is_bridge_group(destination: Mac) -> bool {
    destination[..4] == [1, 0x80, 0xc2, 0]
}

/// A frame that came without its outer header, with it.
fn restored(frame: &[u8], elision: Elision, ours: Mac, neighbor: Mac) -> Step<Vec<u8>> {
    if elision == Elision::Off {
        return drop_as("not_agreed");
    }
    if frame.len() < 24 {
        return drop_as("malformed");
    }
    if is_bridge_group(mac(frame, 0)) {
        return drop_as("other_group");
    }
    if frame[15] & 0x40 != 0 {
        return drop_as("reserved_bits");
    }
    let to = if frame[14] & 8 != 0 { ALL_RBRIDGES } else { ours };
    Ok([&to[..], &neighbor, &[0x22, 0xf3], &frame[14..20], &frame[..12], &[0x81, 0], &frame[20..]].concat())
}

/// A frame without its outer header, if that says all.
fn elided(full: Vec<u8>) -> Vec<u8> {
    if full[15] & 0x40 != 0 || u16_at(&full, 32) != 0x8100 || is_bridge_group(mac(&full, 20)) {
        return full;
    }
    [&full[20..32], &[0x88, 0xb5], &full[14..20], &full[34..]].concat()
}

/// The inner VLAN, or why it is not to be forwarded.
fn check_inner(frame: &[u8], inner: usize) -> Step<u16> {
    match u16_at(frame, inner + 12) {
        0x8100 => {}
        0x893b => return drop_as("fine_grained"),
        _ => return drop_as("no_label"),
    }
    let vlan = u16_at(frame, inner + 14) & 0xfff;
    if vlan == 0 || vlan == 4095 {
        return drop_as("bad_vlan");
    }
    if mac(frame, inner) == ALL_EGRESS {
        return Err(("channel", Some(frame.to_vec())));
    }
    if is_trill(u16_at(frame, inner + 16)) { drop_as("trill_in_trill") } else { Ok(vlan) }
}

/// Which of `count` next hops an inner frame takes.
pub fn choice(seed: u32, inner: &[u8], count: usize) -> usize {
    ((hash(seed, inner) * count as u64) >> 32) as usize
}

/// Which of 64 shares a frame for many is in.
pub fn share(seed: u32, inner: &[u8]) -> usize {
    let destination: u64 = (0..6).map(|byte| u64::from(inner[byte]) << (8 * byte)).sum();
    let vlan = u64::from(u16_at(inner, 14) & 0xfff);
    (((vlan << 48 | destination) ^ u64::from(seed)).wrapping_mul(FIRST) >> 58) as usize
}

const FIRST: u64 = 0x9e37_79b9_7f4a_7c15;

fn hash(seed: u32, inner: &[u8]) -> u64 {
    const SECOND: u64 = 0xc2b2_ae3d_27d4_eb4f;
    const MIX: u64 = 0xd6e8_feb8_6659_fd93;
    if inner.len() < 18 + 24 {
        return seed.into();
    }
    // As many bytes as there are, the first of them lowest.
    let little = |bytes: &[u8]| bytes.iter().rev().fold(0_u64, |word, byte| word << 8 | u64::from(*byte));
    let packet = &inner[18..];
    let (first, second) = match u16_at(inner, 16) {
        0x0800 => {
            let plain = packet[0] == 0x45 && u16_at(packet, 6) & 0x3fff == 0 && [6, 17].contains(&packet[9]);
            (little(&packet[12..20]), if plain { little(&packet[20..24]) } else { packet[9].into() })
        }
        0x86dd if packet.len() >= 44 => {
            let fold = |sum: u64, pair: &[u8]| sum.wrapping_add(little(pair)).wrapping_mul(SECOND);
            let plain = [6, 17].contains(&packet[6]);
            (packet[8..40].chunks(8).fold(0, fold), if plain { little(&packet[40..44]) } else { packet[6].into() })
        }
        _ => (little(&inner[..8]), little(&[&inner[8..12], &[inner[14] & 0x0f, inner[15]]].concat())),
    };
    let hash = (first ^ u64::from(seed)).wrapping_mul(FIRST).wrapping_add(second.wrapping_mul(SECOND));
    (hash ^ hash >> 32).wrapping_mul(MIX) >> 32
}
