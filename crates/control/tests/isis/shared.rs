//! What RBridges should be to each other on shared links, from who hears whom alone: DRB, adjacencies, pseudonode, forwarders
//! by the text of RFC 6325 section 4.4, RFC 7177 and RFC 8139. Shares no code with what it judges.

use weft_control::isis::{AdjacencyState, PortId, PortState, RBridge, Role};
use weft_wire::ethernet::MacAddress;
use weft_wire::isis::{NodeId, SystemId};
use weft_wire::vlan::VlanSet;

use super::lan::{Attached, Seat};
use super::net::Net;
use super::oracle::{Way, mac_of};

/// Ports that hear each other.
#[derive(Debug)]
pub(crate) struct Domain {
    seats: Vec<Seat>,
    drb: Seat,
    /// The DRB's name for the link.
    pub(crate) lan_id: NodeId,
    /// Whether LSPs leave it out.
    pub(crate) bypass: bool,
}

/// All domains of RBridges that run.
pub(crate) fn domains(net: &Net) -> Vec<Domain> {
    let runs = |seat: &Seat| net.nodes[net.lans.member(*seat).wanted.node].bridge.is_some();
    let all = net.lans.domains().into_iter();
    let alive = all.map(|domain| domain.into_iter().filter(runs).collect::<Vec<Seat>>());
    alive.filter(|domain| !domain.is_empty()).map(|domain| Domain::of(net, domain)).collect()
}

/// "The DRB is the port with the highest priority; ties are broken by address, port number, system" (RFC 7177 section 4.2.1).
fn claim(net: &Net, seat: Seat) -> (u8, MacAddress, u16, SystemId) {
    let member = net.lans.member(seat);
    let node = member.wanted.node;
    (member.wanted.config.priority, mac_of((node, member.port)), member.port.0, net.nodes[node].system)
}

impl Domain {
    fn of(net: &Net, seats: Vec<Seat>) -> Self {
        let drb = seats.iter().copied().max_by_key(|seat| claim(net, *seat)).expect("somebody is there");
        let domain = Self { seats, drb, lan_id: NodeId::default(), bypass: true };
        // How the DRB calls the link is its own affair, as long as it is its name.
        let speaker = domain.bridge(net, drb).shared_link(domain.member(net, drb).port).expect("a shared port");
        // "Unless it has seen at least two simultaneous adjacencies since it last rebooted": who sees one now may have.
        let reports = domain.seats.iter().filter(|other| domain.is_report(net, drb, **other)).count();
        let bypass = reports < 2 && speaker.bypass;
        Self { lan_id: speaker.lan_id, bypass, ..domain }
    }

    /// The shared link that the DRB's port is on.
    pub(crate) fn link(&self) -> usize {
        self.drb.0
    }

    fn member<'a>(&self, net: &'a Net, seat: Seat) -> &'a Attached {
        net.lans.member(seat)
    }

    fn bridge<'a>(&self, net: &'a Net, seat: Seat) -> &'a RBridge {
        net.nodes[self.member(net, seat).wanted.node].bridge.as_ref().expect("it runs")
    }

    /// The VLAN that the DRB wants.
    fn designated_vlan(&self, net: &Net) -> u16 {
        self.member(net, self.drb).wanted.designated_vlan
    }

    /// Whether two ports are adjacent: of different RBridges, both in the Designated VLAN, neither an access port.
    fn is_report(&self, net: &Net, a: Seat, b: Seat) -> bool {
        let vlan = self.designated_vlan(net);
        let is_open = |seat: Seat| {
            let config = &self.member(net, seat).wanted.config;
            config.role != Role::Access && config.enabled.contains(vlan)
        };
        let node = |seat: Seat| self.member(net, seat).wanted.node;
        node(a) != node(b) && is_open(a) && is_open(b)
    }

    /// Links that follow from it. With a pseudonode a port has links only if it is the DRB's or adjacent to the DRB's
    /// (RFC 7177 section 7), and frames go to any adjacent port of an RBridge that is told of.
    pub(crate) fn ways(&self, net: &Net, vertex: Option<usize>) -> Vec<Way> {
        let is_told = |seat: Seat| vertex.is_none() || seat == self.drb || self.is_report(net, self.drb, seat);
        let pairs = self.seats.iter().flat_map(|a| self.seats.iter().map(move |b| (*a, *b)));
        let node = |seat: Seat| self.member(net, seat).wanted.node;
        let is_node_told = |of: Seat| self.seats.iter().any(|seat| node(*seat) == node(of) && is_told(*seat));
        let linked = pairs.filter(|(a, b)| is_told(*a) && is_node_told(*b) && self.is_report(net, *a, *b));
        let way = |(a, b): (Seat, Seat)| {
            let (from, to) = (self.member(net, a), self.member(net, b));
            Way {
                from: (from.wanted.node, from.port),
                to: (to.wanted.node, to.port),
                cost: from.wanted.cost.into(),
                via: vertex.unwrap_or(to.wanted.node),
                lan_id: Some(self.lan_id),
            }
        };
        linked.map(way).collect()
    }

    /// Everybody is what it should be.
    pub(crate) fn judge(&self, net: &Net) -> Result<(), String> {
        for seat in &self.seats {
            let (node, port) = (self.member(net, *seat).wanted.node, self.member(net, *seat).port.0);
            self.judge_one(net, *seat).map_err(|what| format!("rb{node}, shared port {port}: {what}"))?;
        }
        self.judge_forwarders(net)
    }

    fn judge_one(&self, net: &Net, seat: Seat) -> Result<(), String> {
        let (bridge, port) = (self.bridge(net, seat), self.member(net, seat).port);
        let link = bridge.shared_link(port).ok_or("it is none")?;
        let state = if seat == self.drb { PortState::Drb } else { PortState::NotDrb };
        let drb = net.nodes[self.member(net, self.drb).wanted.node].system;
        let should = (state, drb, self.designated_vlan(net), self.lan_id, self.bypass);
        let is = (link.state, link.drb, link.designated_vlan, link.lan_id, link.bypass);
        if is != should {
            return Err(format!("it is {is:?}, should be {should:?}"));
        }
        if !link.lan_id.is_pseudonode() || link.lan_id.system() != drb {
            return Err(format!("{} is no name of {drb}", link.lan_id));
        }
        self.judge_adjacencies(net, seat, port)
    }

    fn judge_adjacencies(&self, net: &Net, seat: Seat, port: PortId) -> Result<(), String> {
        let mut should = Vec::new();
        for other in self.seats.iter().filter(|other| **other != seat && self.is_heard(net, **other, seat)) {
            let to = self.member(net, *other);
            let is_report = self.is_report(net, seat, *other);
            let state = if is_report { AdjacencyState::Report } else { AdjacencyState::Detect };
            should.push((mac_of((to.wanted.node, to.port)), state));
        }
        should.sort();
        let all = self.bridge(net, seat).adjacencies().filter(|(at, _)| *at == port);
        let mut is: Vec<_> = all.map(|(_, with)| (with.mac, with.state)).collect();
        is.sort();
        if is == should { Ok(()) } else { Err(format!("adjacencies are {is:?}, should be {should:?}")) }
    }

    /// Whether Hellos of one come in a VLAN of the other; all have the Designated VLANs that are wanted.
    fn is_heard(&self, net: &Net, from: Seat, to: Seat) -> bool {
        let config = |seat: Seat| &self.member(net, seat).wanted.config;
        let vlan = self.designated_vlan(net);
        config(from).enabled.contains(vlan) && config(to).enabled.contains(vlan)
    }

    /// Of each VLAN that somebody could serve exactly one does, and it has the VLAN. Who is none of the DRB's neighbours cannot
    /// be appointed; of several ports of one RBridge one alone serves.
    fn judge_forwarders(&self, net: &Net) -> Result<(), String> {
        let serves = |seat: &Seat| self.member(net, *seat).wanted.config.role != Role::Trunk && self.leads(net, *seat);
        let able = |seat: &Seat| {
            let is_hybrid = self.member(net, *seat).wanted.config.role == Role::Hybrid;
            serves(seat) && (*seat == self.drb || (is_hybrid && self.is_report(net, self.drb, *seat)))
        };
        for vlan in 1..=4094 {
            let has = |seat: &&Seat| self.member(net, **seat).wanted.config.enabled.contains(vlan);
            let could = self.seats.iter().filter(has).filter(|seat| able(seat)).count();
            let carries = |seat: &&Seat| {
                let member = self.member(net, **seat);
                carried(net, member.wanted.node, member.port).is_some_and(|vlans| vlans.contains(vlan))
            };
            let do_it: Vec<&Seat> = self.seats.iter().filter(carries).collect();
            if do_it.len() != could.min(1) || !do_it.iter().all(|seat| has(seat) && able(seat)) {
                return Err(format!("VLAN {vlan} has the forwarders {do_it:?}, {could} could"));
            }
        }
        Ok(())
    }

    /// Of the ports of one RBridge the one with the highest claim.
    fn leads(&self, net: &Net, seat: Seat) -> bool {
        let node = |seat: Seat| self.member(net, seat).wanted.node;
        let ours = self.seats.iter().filter(|other| node(**other) == node(seat));
        ours.max_by_key(|other| claim(net, **other)) == Some(&seat)
    }
}

fn carried(net: &Net, node: usize, port: PortId) -> Option<&VlanSet> {
    net.nodes[node].access.get(&port)
}

/// At no time two forwarders of one VLAN hear each other's stations.
pub(crate) fn no_two_carry(net: &Net) -> Result<(), String> {
    for domain in net.lans.domains() {
        let mut seen = VlanSet::default();
        for seat in domain {
            let member = net.lans.member(seat);
            let Some(vlans) = carried(net, member.wanted.node, member.port) else { continue };
            if let Some(vlan) = vlans.iter().find(|vlan| seen.contains(*vlan)) {
                return Err(format!(
                    "VLAN {vlan} has two forwarders at {} ms, link {}",
                    net.now_ns / 1_000_000,
                    seat.0
                ));
            }
            seen.add_all(vlans);
        }
    }
    Ok(())
}
