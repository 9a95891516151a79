//! IP multicast groups: what stations say goes from the data path to the snooper; what that finds out, into the data path and
//! our LSPs; its questions go out by the ports.

use std::collections::BTreeMap;

use tracing::debug;
use weft_control::snooper::{self, Snooper};
use weft_control::{Machine, NS_PER_MS, NS_PER_S};
use weft_datapath::trill::{RBridgeDatapath, Snooped};
use weft_wire::listener::{self, Family, Listeners};
use weft_wire::vlan::{VlanId, VlanSet};

use super::ports::Ports;
use super::settings::Kind;
use super::{Daemon, Input, IoFault};
use crate::error::NodeError;

pub(super) struct Groups {
    pub(super) snooper: Snooper,
    /// What the data path hands on.
    pub(super) snooped: Snooped,
    interval_s: u32,
    /// VLANs of each port that has end stations.
    vlans: BTreeMap<u8, VlanSet>,
}

impl Groups {
    pub(super) fn open(config: snooper::Config, ports: &Ports, datapath: &RBridgeDatapath) -> Result<Self, NodeError> {
        let vlans: BTreeMap<u8, VlanSet> = ports
            .all
            .iter()
            .filter(|port| port.has_stations())
            .map(|port| (port.settings.number, port.vlans()))
            .collect();
        let interval_s = u32::try_from(config.interval_ns / NS_PER_S).unwrap_or(u32::MAX);
        Ok(Self { snooper: Snooper::new(config, &vlans), snooped: datapath.snooped()?, interval_s, vlans })
    }

    /// What ports that do not want all groups of their VLANs listen to.
    pub(super) fn pruned(&self) -> BTreeMap<u8, Listeners> {
        let prunes = |(port, listeners): &(&u8, &Listeners)| !listeners.want_all_of(&self.vlans[*port]);
        self.snooper.by_port().iter().filter(prunes).map(|(port, listeners)| (*port, listeners.clone())).collect()
    }
}

impl Daemon {
    /// What stations and routers say.
    pub(super) fn receive_groups(&mut self) {
        let Some(told) = self.groups.as_ref().map(|groups| groups.snooped.take()) else { return };
        let told = match told {
            Ok(told) => told,
            Err(error) => return debug!(%error, "groups"),
        };
        for told in told {
            match listener::parse(told.ethertype, &told.packet) {
                Ok(Some((family, message))) => self.snoop(snooper::Input::Heard {
                    port: told.port,
                    vlan: told.vlan,
                    is_from_tree: told.is_from_tree,
                    family,
                    message: &message,
                }),
                Ok(None) => {}
                Err(_) => self.io.add(IoFault::OddListener),
            }
        }
    }

    pub(super) fn snoop(&mut self, input: snooper::Input<'_>) {
        let Some(groups) = &mut self.groups else { return };
        let mut outputs = Vec::new();
        groups.snooper.handle(self.clock.now_ns(), input, &mut outputs);
        for output in outputs {
            match output {
                snooper::Output::Ask { port, vlan, family, response_ns } => self.ask(port, vlan, family, response_ns),
                snooper::Output::Changed => self.tell_groups(),
            }
        }
    }

    /// What is due by now.
    pub(super) fn snoop_in_time(&mut self) {
        let due_ns = self.groups.as_ref().and_then(|groups| groups.snooper.next_deadline_ns());
        if due_ns.is_some_and(|at_ns| at_ns <= self.clock.now_ns()) {
            self.snoop(snooper::Input::Deadline);
        }
    }

    pub(super) fn tell_groups(&mut self) {
        if let Some(groups) = &self.groups {
            let all = groups.snooper.all();
            self.put(Input::Listeners(all));
            self.is_behind = true;
        }
    }

    /// Sends a general query out of a port, with a tag where the VLAN has one.
    fn ask(&mut self, number: u8, vlan: u16, family: Family, response_ns: u64) {
        let Some(port) = self.ports.by_number(number) else { return };
        let (Some(link), Some(groups)) = (port.link(), &self.groups) else { return };
        // On a shared link somebody else may be forwarder of the VLAN, and asks.
        let carries = self.control.shared_link(port.id()).is_none_or(|link| link.carried.contains(vlan));
        if !carries {
            return;
        }
        let (mac, response_ms) = (weft_wire::ethernet::MacAddress(link.mac), (response_ns / NS_PER_MS) as u32);
        let frame = match family {
            Family::Ipv4 => listener::igmp_query(mac, response_ms, groups.interval_s),
            Family::Ipv6 => listener::mld_query(mac, response_ms, groups.interval_s),
        };
        let untagged = match &port.settings.kind {
            Kind::Native { untagged, .. } => *untagged,
            Kind::Shared(shared) => Some(shared.untagged),
            Kind::Link { .. } => None,
        };
        let tag = VlanId::new(vlan).filter(|_| untagged != Some(vlan));
        let frame = tag.map_or_else(|| frame.clone(), |tag| tag.tag(&frame));
        if self.frames.send_whole(link.index, &frame).is_err() {
            self.io.add(IoFault::NotAsked);
        }
    }
}
