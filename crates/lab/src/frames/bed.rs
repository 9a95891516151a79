//! Where the test centre stands: at the fabric's first server, which sends, and behind another edge switch, if there is one, where it
//! receives.

use std::collections::{BTreeMap, BTreeSet};

use weft_datapath::trill::abi::STATIC;
use weft_datapath::trill::{HostRoute, Place, RBridgeMaps, Station};
use weft_scenario::addressing::port_mac;
use weft_scenario::engine::Overlay;
use weft_scenario::id::{LinkId, NodeId};
use weft_scenario::topology::{Fabric, Role};
use weft_wire::ethernet::MacAddress;

use super::{Mix, Run};
use crate::batch::Program;
use crate::error::LabError;
use crate::plan::{access, interfaces};
use crate::tester::TesterError;
use crate::tester::port::Port;
use crate::tester::stream::{Stream, StreamPlan};
use crate::trill::Held;
use crate::trill::rbridges::{self, GATEWAY_MAC, nickname};
use crate::up::Lab;

/// Addresses of a router's legs, first that in the sending stations' VLAN: in the halves of 198.18.0.0/15 that the test centre's
/// stations do not use.
const ROUTER_ADDRESSES: [&str; 2] = ["198.18.255.254/16", "198.19.255.254/16"];

/// The test centre in a lab.
pub(super) struct Bed<'a> {
    lab: &'a Lab,
    held: &'a Held,
    /// Which streams cross VLANs: all, until somebody says otherwise.
    pub(super) mix: Mix,
    pub(super) plan: StreamPlan,
    pub(super) streams: Vec<Stream>,
    pub(super) sender: NodeId,
    /// Where streams arrive, in turn; of a mix that of the other VLAN first.
    pub(super) receivers: Vec<NodeId>,
    mixes: bool,
    way: Way,
}

/// How frames get from the sending to the receiving stations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// Within their VLAN.
    Direct,
    /// By the ingress RBridge, which routes.
    Gateway { vlan: u16 },
    /// By a router with a leg in each VLAN: first that in the senders'.
    Router { node: NodeId, legs: [LinkId; 2] },
}

impl<'a> Bed<'a> {
    pub(super) fn new(run: &Run<'a>) -> Result<Self, TesterError> {
        let (lab, spec) = (run.lab, run.spec);
        let fabric = &lab.scenario.fabric;
        let refused = |what: &str| TesterError::Refused(format!("fabric `{}` has {what}", fabric.name()));
        let sender = fabric.servers().next().ok_or_else(|| refused("no server"))?;
        let edge = |server: NodeId| fabric.edge_of(server).map(|(edge, _)| edge);
        // Of a network of one edge switch the others behind it receive.
        let is_alone = fabric.servers().all(|server| edge(server) == edge(sender));
        let far = fabric.servers().skip(1).filter(|server| is_alone || edge(*server) != edge(sender));
        let mut receivers: Vec<NodeId> = far.take(spec.receivers as usize).collect();
        let (Some(first), true) = (receivers.first().copied(), receivers.len() == spec.receivers as usize) else {
            return Err(refused(&format!("fewer than {} servers to receive", spec.receivers)));
        };
        let way = Way::between(lab, sender, first).ok_or_else(|| refused("no gateway between its servers' VLANs"))?;
        let mixes = !spec.crossing_percent.is_empty();
        if mixes {
            let within = |server: &NodeId| edge(*server) == edge(first) && vlan(lab, *server) == vlan(lab, sender);
            let found = fabric.servers().find(within).filter(|_| way != Way::Direct);
            let text = "no two VLANs behind one switch, of which one is the first server's, for `crossing_percent`";
            receivers = vec![first, found.ok_or_else(|| refused(text))?];
        }
        let plan = StreamPlan { gateway: way.mac(fabric), ..stream_plan(run) };
        let streams = plan.streams().map_err(TesterError::Refused)?;
        Ok(Self { lab, held: run.held, mix: Mix::None, plan, streams, sender, receivers, mixes, way })
    }

    /// Lets another share of the streams cross VLANs. Who was told of the receivers knows them all.
    pub(super) fn set_mix(&mut self, mix: Mix) -> Result<(), TesterError> {
        self.mix = mix;
        self.plan.direct_percent = 100 - mix.percent() as u8;
        self.streams = self.plan.streams().map_err(TesterError::Refused)?;
        Ok(())
    }

    /// Whether switches learn where stations are from what these say; with several receivers for one chain they are told.
    pub(super) fn learns(&self) -> bool {
        self.mixes || self.receivers.len() == 1
    }

    /// Whether the chain of switches can be ended at every hop: a router is none of them, and a mix has two ends.
    pub(super) fn has_hops(&self) -> bool {
        self.way.is_switched() && !self.mixes
    }

    /// The test centre's port at a server.
    pub(super) fn port(&self, server: NodeId) -> Result<Port, TesterError> {
        Port::open(&format!("{}:{}", self.lab.plan.node(server).namespace, self.interface(server)))
    }

    /// A server's interface.
    pub(super) fn interface(&self, server: NodeId) -> String {
        let fabric = &self.lab.scenario.fabric;
        let (_, link) = fabric.edge_of(server).expect("a server of the bed has an edge switch");
        interfaces(&self.lab.scenario, link, server).swap_remove(0).interface
    }

    /// Where a stream arrives that nobody learns.
    fn receiver_of(&self, stream: &Stream) -> NodeId {
        self.receivers[usize::from(stream.number) % self.receivers.len()]
    }

    /// Tells those who do not learn where the stations are.
    pub(super) fn tell(&self) -> Result<(), TesterError> {
        if matches!(self.lab.scenario.overlay, Overlay::Layer2 { .. }) || !self.learns() {
            let of = |stream: &Stream| {
                [(stream.source.mac.0, self.sender), (stream.destination.mac.0, self.receiver_of(stream))]
            };
            self.held.know(self.lab, &self.streams.iter().flat_map(of).collect::<Vec<_>>())?;
        }
        match self.way {
            Way::Direct => Ok(()),
            // As `[[gateway.host]]` would: the ingress RBridge has no station of the other VLAN to learn from.
            Way::Gateway { vlan } => Ok(self.at_ingress(|maps| {
                let place = Place::RBridge(nickname(self.lab, self.edge(self.receivers[0])));
                self.destinations().try_for_each(|(ip, mac)| {
                    maps.set_host_route(ip, &HostRoute { mac: Some(mac), gateway: MacAddress(GATEWAY_MAC), vlan })?;
                    maps.set_station(&Station { mac, vlan, place, confidence: STATIC, seen_s: 0 })
                })
            })?),
            Way::Router { node, legs } => Ok(self.tell_router(node, legs)?),
        }
    }

    /// Lets switches forget the stations: the next trial has others, and tables are not endless.
    pub(super) fn forget(&self) -> Result<(), TesterError> {
        if let Way::Gateway { .. } = self.way {
            self.at_ingress(|maps| self.destinations().try_for_each(|(ip, _)| maps.remove_host_route(ip)))?;
        }
        let ends = |stream: &Stream| [stream.source.mac, stream.destination.mac];
        let gone: BTreeSet<MacAddress> = self.streams.iter().flat_map(ends).collect();
        for switch in crate::trill::rbridges(self.lab) {
            rbridges::with_maps(self.lab, switch, |maps| maps.forget(|station| gone.contains(&station.mac)))?;
        }
        Ok(())
    }

    fn edge(&self, server: NodeId) -> NodeId {
        self.lab.scenario.fabric.edge_of(server).expect("a server of the bed has an edge switch").0
    }

    fn destinations(&self) -> impl Iterator<Item = (std::net::Ipv4Addr, MacAddress)> {
        self.streams.iter().filter_map(|stream| match stream.destination.ip {
            std::net::IpAddr::V4(ip) => Some((ip, stream.destination.mac)),
            std::net::IpAddr::V6(_) => None,
        })
    }

    fn at_ingress<T>(
        &self,
        work: impl FnOnce(&RBridgeMaps) -> Result<T, weft_datapath::DatapathError>,
    ) -> Result<T, LabError> {
        rbridges::with_maps(self.lab, self.edge(self.sender), work)
    }

    /// The router is in the stations' networks and knows the receiving ones. The switches know where it is: nobody asks it for its
    /// addresses, so it would never be heard, and all for it would be flooded.
    fn tell_router(&self, router: NodeId, legs: [LinkId; 2]) -> Result<(), LabError> {
        let fabric = &self.lab.scenario.fabric;
        let known = legs.map(|leg| (port_mac(fabric, leg, router), leg));
        rbridges::know(self.lab, &known)?;
        let names =
            legs.map(|leg| fabric.link(leg).end_at(router).expect("a leg is a link of the router").interface.clone());
        let own = names.iter().zip(ROUTER_ADDRESSES);
        let mut lines: Vec<String> = own.map(|(leg, address)| format!("address replace {address} dev {leg}")).collect();
        let hosts: BTreeMap<_, _> = self.destinations().collect();
        let leg = &names[1];
        lines.extend(hosts.iter().map(|(ip, mac)| format!("neigh replace {ip} lladdr {mac} dev {leg} nud permanent")));
        self.lab.batch(router, Program::Ip, &lines)
    }
}

/// The stations of a trial, without anybody between them.
pub(super) fn stream_plan(run: &Run<'_>) -> StreamPlan {
    let unicast = u16::try_from(run.spec.stations).expect("a checked workload has at most 16,384 stations");
    StreamPlan { unicast, seed: run.trial.seed, ..StreamPlan::default() }
}

fn vlan(lab: &Lab, server: NodeId) -> Option<u16> {
    let (_, link) = lab.scenario.fabric.edge_of(server)?;
    access(&lab.scenario, link).map(|access| access.vlan)
}

impl Way {
    /// `None`: there is no way.
    fn between(lab: &Lab, from: NodeId, to: NodeId) -> Option<Self> {
        let campus = lab.scenario.fabric.campus();
        let (own, other) = (vlan(lab, from)?, vlan(lab, to)?);
        if own == other {
            return Some(Self::Direct);
        }
        if campus.gateways.contains_key(&own) && campus.gateways.contains_key(&other) {
            return Some(Self::Gateway { vlan: other });
        }
        let fabric = &lab.scenario.fabric;
        let leg = |router: NodeId, vlan: u16| {
            let mut links = fabric.links_of(router).iter().copied();
            links.find(|link| campus.access.get(link).is_some_and(|access| access.vlan == vlan))
        };
        let mut routers = fabric.with_role(Role::Router);
        routers.find_map(|node| Some(Self::Router { node, legs: [leg(node, own)?, leg(node, other)?] }))
    }

    fn is_switched(self) -> bool {
        !matches!(self, Self::Router { .. })
    }

    /// Who frames are addressed to at first, where that is not their receiver.
    fn mac(self, fabric: &Fabric) -> Option<MacAddress> {
        match self {
            Self::Direct => None,
            Self::Gateway { .. } => Some(MacAddress(GATEWAY_MAC)),
            Self::Router { node, legs } => Some(MacAddress(port_mac(fabric, legs[0], node))),
        }
    }
}
