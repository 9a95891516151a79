//! Rate, queue and delay of a campus's links: the test centre's virtual-time link behind every port of every switch, at
//! whatever hook the switch forwards.
//!
//! The way from a switch to its neighbour or host is emulated, the way from a host into its switch is not. Copies of
//! multi-destination frames go past an RBridge's links, as does what its daemon sends.

use std::collections::BTreeMap;

use weft_scenario::engine::{Hook, Overlay};
use weft_scenario::id::NodeId;
use weft_scenario::topology::LinkSpec;
use weft_testbed::tester::{EmulatedLinks, LinkParams};

use super::port_number;
use crate::error::LabError;
use crate::plan::interfaces;
use crate::up::Lab;

/// The links behind the ports of each switch.
#[derive(Debug, Default)]
pub(super) struct CampusLinks(BTreeMap<NodeId, EmulatedLinks>);

impl CampusLinks {
    /// Puts links behind all ports of bridges or RBridges.
    pub(super) fn emulate(lab: &Lab) -> Result<Self, LabError> {
        let mut all = BTreeMap::new();
        for switch in lab.scenario.fabric.switches() {
            all.insert(switch, of_switch(lab, switch)?);
        }
        Ok(Self(all))
    }

    /// The links of one switch, for a plain switch that sends over them.
    pub(super) fn of(&self, switch: NodeId) -> Option<&EmulatedLinks> {
        self.0.get(&switch)
    }
}

fn of_switch(lab: &Lab, switch: NodeId) -> Result<EmulatedLinks, LabError> {
    let kind = lab.scenario.forwarding(switch);
    lab.inside(switch, || {
        let mut links = EmulatedLinks::load()?;
        for (interface, spec) in ports(lab, switch) {
            links.set(&interface, &params(&spec))?;
            if let Overlay::Bridge { .. } | Overlay::Layer2 { hook: Hook::Tc } = kind {
                links.attach_tc(&interface)?;
            }
        }
        if let Overlay::RBridge { .. } = kind {
            attach_rbridge(lab, switch, &links)?;
        }
        Ok(links)
    })
}

fn attach_rbridge(lab: &Lab, switch: NodeId, links: &EmulatedLinks) -> Result<(), weft_datapath::DatapathError> {
    let fabric = &lab.scenario.fabric;
    let pins = lab.pins(&lab.plan.node(switch).name);
    for link in fabric.links_of(switch) {
        let port = fabric.link(*link).end_at(switch).zip(port_number(fabric, switch, *link));
        if let Some((port, number)) = port {
            links.attach_rbridge(&pins, number, &port.interface)?;
        }
    }
    Ok(())
}

/// Every interface of a switch with the link behind it. Where each VLAN has interfaces of its own, each has the whole rate.
fn ports(lab: &Lab, switch: NodeId) -> Vec<(String, LinkSpec)> {
    let fabric = &lab.scenario.fabric;
    let of_link = |link: &weft_scenario::id::LinkId| {
        let spec = fabric.link(*link).spec.clone();
        interfaces(&lab.scenario, *link, switch).into_iter().map(move |port| (port.interface, spec.clone()))
    };
    fabric.links_of(switch).iter().flat_map(of_link).collect()
}

/// The buffer is told as the time that it takes to send it.
fn params(spec: &LinkSpec) -> LinkParams {
    let queue_ns = u128::from(spec.buffer.0) * 8_000_000_000 / u128::from(spec.rate.0.max(1));
    LinkParams {
        rate_bps: spec.rate.0,
        queue_ns: u64::try_from(queue_ns).unwrap_or(u64::MAX),
        delay_ns: spec.delay.0,
        ..LinkParams::default()
    }
}

#[cfg(test)]
mod tests {
    use weft_scenario::units::{BitsPerSec, Bytes, Nanos};

    use super::*;

    #[test]
    fn a_buffer_is_the_time_to_send_it() {
        let spec =
            |rate, buffer| LinkSpec { rate: BitsPerSec(rate), buffer: Bytes(buffer), mtu_bytes: 1500, delay: Nanos(7) };
        let link = params(&spec(10_000_000_000, 1_250_000));
        assert_eq!(
            (link.rate_bps, link.queue_ns, link.delay_ns, link.overhead_bytes),
            (10_000_000_000, 1_000_000, 7, 24)
        );
        assert_eq!(params(&spec(100_000_000, 12_500)).queue_ns, 1_000_000);
    }
}
