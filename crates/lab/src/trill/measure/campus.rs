//! The campus of the overhead paper with everything that runs in production, as a bed of the test centre: daemons on all
//! RBridges, or bridges with 802.1D, or plain switches on the same wires.

use std::collections::BTreeMap;

use weft_datapath::trill::RBridgeMaps;
use weft_scenario::addressing::port_mac;
use weft_scenario::engine::{Hook, Overlay};
use weft_scenario::topology::{Fabric, Link, from_yaml};
use weft_scenario::units::Bytes;
use weft_scenario::workload::trill::{EmulatedLink, StpTimers, Way};
use weft_wire::ethernet::MacAddress;

use super::switch::{place_hosts, route_hosts};
use crate::batch::{self, Program};
use crate::error::LabError;
use crate::tester::TesterError;
use crate::tester::experiment::Context;
use crate::tester::port::Port;
use crate::tester::stream::Stream;
use crate::trill::rbridges::{GATEWAY_MAC, know, nickname};
use crate::trill::{Campus, CampusSpec, Failure, Links};

/// The test centre's hosts, first the sending one.
const TESTERS: [&str; 2] = ["t1", "t2"];
/// Beside the receiving host, in the VLAN of the sending one, on campuses with several VLANs.
const WITHIN_VLAN: &str = "t3";
/// The edge switch of the sending host.
const INGRESS: &str = "s1";
/// That of the receiving host.
const EGRESS: &str = "s2";
const MIDDLES: [&str; 4] = ["s3", "s4", "s5", "s6"];
const ROUTER: &str = "r1";
/// The router's interfaces, first that in the sending stations' VLAN, with addresses in the halves of 198.18.0.0/15 that the
/// test centre's stations do not use.
const LEGS: [(&str, &str); 2] = [("eth10", "198.18.255.254/16"), ("eth20", "198.19.255.254/16")];

/// A campus with the test centre at `t1` and `t2`.
pub(super) struct CampusBed(Campus);

impl CampusBed {
    /// Brings it up and waits until it forwards.
    pub(super) fn new(
        way: Way,
        link: Option<&EmulatedLink>,
        timers: StpTimers,
        context: &Context<'_>,
    ) -> Result<Self, TesterError> {
        let overlay = match way {
            Way::Trill | Way::TrillRouted | Way::TrillRouter => Overlay::RBRIDGE,
            Way::TrillElided => Overlay::RBridge { hook: Hook::Xdp, elide: true },
            Way::TrillGeneric => Overlay::RBridge { hook: Hook::XdpGeneric, elide: false },
            Way::Layer2 => Overlay::L2,
            Way::Stp => Overlay::Bridge { timers },
        };
        let links = if link.is_some() { Links::Emulated } else { Links::Bare };
        let spec = CampusSpec { fabric: fabric_of(way, link)?, overlay, links, name: None };
        Ok(Self(Campus::build(&spec, context.weft_binary, context.progress)?))
    }

    /// Who frames between VLANs are addressed to.
    pub(super) fn gateway(&self, way: Way) -> Option<MacAddress> {
        match way {
            Way::TrillRouted => Some(MacAddress(GATEWAY_MAC)),
            Way::TrillRouter => {
                let fabric = &self.0.lab().scenario.fabric;
                let router = fabric.find(ROUTER)?;
                let leg = fabric.links_of(router).first()?;
                Some(MacAddress(port_mac(fabric, *leg, router)))
            }
            _ => None,
        }
    }

    /// Tells those who do not learn where the stations are.
    pub(super) fn tell(&self, way: Way, streams: &[Stream]) -> Result<(), TesterError> {
        match way {
            Way::Layer2 => {
                let of = |stream: &Stream| [(stream.source.mac.0, TESTERS[0]), (stream.destination.mac.0, TESTERS[1])];
                Ok(self.0.know(&streams.iter().flat_map(of).collect::<Vec<_>>())?)
            }
            Way::TrillRouted => {
                // As `[[gateway.host]]` would: the ingress RBridge has no station of the other VLAN to learn from.
                let lab = self.0.lab();
                let egress = lab.scenario.fabric.find(EGRESS).expect("the shipped fabric has it");
                let maps = RBridgeMaps::open_pinned(lab.pins(INGRESS))?;
                route_hosts(&maps, streams, MacAddress(GATEWAY_MAC))?;
                Ok(place_hosts(&maps, streams, nickname(lab, egress))?)
            }
            Way::TrillRouter => {
                self.tell_of_router()?;
                Ok(self.0.inside(ROUTER, || tell_router(streams))??)
            }
            _ => Ok(()),
        }
    }

    /// Where the router is: nobody asks it for its addresses, so it would never be heard, and all for it would be flooded.
    fn tell_of_router(&self) -> Result<(), LabError> {
        let lab = self.0.lab();
        let fabric = &lab.scenario.fabric;
        let router = fabric.find(ROUTER).expect("the shipped fabric has it");
        let legs: Vec<_> = fabric.links_of(router).iter().map(|leg| (port_mac(fabric, *leg, router), *leg)).collect();
        know(lab, &fabric.switches().collect::<Vec<_>>(), &legs)
    }

    /// The test centre's ports, first the sending one.
    pub(super) fn ports(&self) -> Result<[Port; 2], TesterError> {
        Ok([Port::open(&self.0.port(TESTERS[0])?)?, Port::open(&self.0.port(TESTERS[1])?)?])
    }

    /// The port at S2 in the VLAN of the sending stations; of a way between VLANs.
    pub(super) fn port_within_vlan(&self) -> Result<Port, TesterError> {
        Port::open(&self.0.port(WITHIN_VLAN)?)
    }

    /// The middle switches, each with its port towards S1.
    pub(super) fn middles(&self) -> Result<Vec<(String, Port)>, TesterError> {
        let middle = |name: &str| {
            let port = format!("{}:{}", self.0.namespace(name)?, self.0.interface(name, INGRESS)?);
            Ok((name.to_owned(), Port::open(&port)?))
        };
        MIDDLES.into_iter().map(middle).collect()
    }

    /// Waits until nothing changes any more, and lets stations be forgotten where the next change moves them.
    pub(super) fn settle(&self, context: &Context<'_>) -> Result<(), LabError> {
        self.0.settle(context.progress)?;
        self.0.age_fast()
    }

    /// Makes a switch fail.
    pub(super) fn fail(&mut self, switch: &str, failure: Failure) -> Result<(), LabError> {
        self.0.fail(switch, failure)
    }
}

/// The shipped fabric with its gateway, if the way has one, and with other rates, if links are emulated.
fn fabric_of(way: Way, link: Option<&EmulatedLink>) -> Result<Fabric, TesterError> {
    let (name, text) = match way {
        Way::TrillRouted => ("trill-routed", include_str!("../../../../../fabrics/trill-routed.yaml")),
        Way::TrillRouter => ("trill-inter-vlan", include_str!("../../../../../fabrics/trill-inter-vlan.yaml")),
        _ => ("trill-s1-s6", include_str!("../../../../../fabrics/trill-s1-s6.yaml")),
    };
    let fabric = from_yaml(text, name).map_err(|error| TesterError::Refused(error.to_string()))?;
    link.map_or_else(|| Ok(fabric.clone()), |emulated| with_rates(&fabric, emulated))
}

/// The same fabric with the rates and queues of emulated links.
pub(super) fn with_rates(fabric: &Fabric, emulated: &EmulatedLink) -> Result<Fabric, TesterError> {
    let between_switches =
        |link: &Link| [link.a.node, link.b.node].iter().all(|end| fabric.node(*end).role.is_switch());
    let rerated = |link: &Link| {
        let mut link = link.clone();
        link.spec.rate = if between_switches(&link) { emulated.rate } else { emulated.tester_rate };
        // Bits per nanosecond are tiny: first the product.
        link.spec.buffer = Bytes((u128::from(link.spec.rate.0) * u128::from(emulated.queue.0) / 8_000_000_000) as u64);
        link
    };
    let links = fabric.links().iter().map(rerated).collect();
    let same = Fabric::new(fabric.name(), fabric.nodes().to_vec(), links);
    same.and_then(|changed| changed.with_campus(fabric.campus().clone()))
        .map_err(|error| TesterError::Refused(error.to_string()))
}

/// In the router: it is in the stations' networks, and knows the receiving ones.
fn tell_router(streams: &[Stream]) -> Result<(), LabError> {
    let mut lines: Vec<String> = LEGS.iter().map(|(leg, address)| format!("address add {address} dev {leg}")).collect();
    let hosts: BTreeMap<_, _> = streams.iter().map(|stream| (stream.destination.ip, stream.destination.mac)).collect();
    let leg = LEGS[1].0;
    lines.extend(hosts.iter().map(|(ip, mac)| format!("neigh replace {ip} lladdr {mac} dev {leg} nud permanent")));
    batch::run(Program::Ip, ROUTER, &lines)
}
