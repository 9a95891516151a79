//! Settings of switches and network cards, `[switching]`, and buffers of fabrics.

use super::{Case, Finding, Runner, finding, given};
use crate::overlay::Overlay;
use crate::routing::EcmpRoutes;
use crate::switching::{BufferPolicy, LoadBalance};
use crate::topology::{Fabric, Role};
use crate::transport::CongestionControl;
use crate::units::Bytes;

use std::collections::BTreeSet;

impl Case<'_> {
    pub(super) fn of_switches(&self) -> Vec<Finding> {
        let why_not = |name: &str| match self.runner {
            Runner::Sim => self.why_not_in_simulated_switches(name),
            Runner::Lab => self.why_not_in_lab_switches(name),
            Runner::Calc => Some("the engine `calc` sends nothing".to_owned()),
        };
        let switching = given(self.switching);
        let mut findings: Vec<Finding> =
            switching.into_iter().map(|name| finding(&["switching", &name], why_not(&name))).collect();
        let pooled = (self.runner == Runner::Sim && matches!(self.switching.buffer, BufferPolicy::SharedPool { .. }))
            .then(|| "ports have the `shared-pool` of `[switching]` in place of buffers of their own".to_owned());
        let buffers = self.spec.given_buffers().into_iter();
        findings.extend(buffers.map(|name| finding(&["fabric", name], pooled.clone())));
        findings
    }

    fn why_not_in_simulated_switches(&self, name: &str) -> Option<String> {
        let is_silent = |fault: &&crate::fault::Fault| fault.kind.is_silent();
        match name {
            "cpus" | "trees" | "groups" => Some("only RBridges of the lab have it".to_owned()),
            "reconvergence" if self.faults.is_empty() => Some("nothing fails: there is no `[[fault]]`".to_owned()),
            "bfd" if self.faults.iter().find(is_silent).is_none() => {
                Some("no `[[fault]]` is silent, and all others are noticed at once".to_owned())
            }
            "ecn_threshold" => self.why_no_marks(),
            "load_balance" => self.why_no_balance(),
            _ => None,
        }
    }

    fn why_no_marks(&self) -> Option<String> {
        if self.sends_no_segments() || self.transport.congestion_control != CongestionControl::Dctcp {
            return Some(
                "switches mark packets of DCTCP alone; write `congestion_control = \"dctcp\"` in `[transport]`"
                    .to_owned(),
            );
        }
        let (threshold, room) = (self.switching.ecn_threshold?, self.room());
        (threshold >= room).then(|| format!("no queue gets so long: the largest buffer of a port is {room}"))
    }

    /// Most that can wait at one port of a switch.
    fn room(&self) -> Bytes {
        match &self.switching.buffer {
            BufferPolicy::PerPort => {
                let ends = self.fabric.links().iter().flat_map(|link| [(&link.a, link), (&link.b, link)]);
                let of_switches = ends.filter(|(end, _)| self.fabric.node(end.node).role.is_switch());
                of_switches.map(|(_, link)| link.spec.buffer).max().unwrap_or(Bytes(0))
            }
            pool @ BufferPolicy::SharedPool { dynamic_alpha_milli, .. } => {
                let pools = self.fabric.switches().filter_map(|switch| pool.pool_of(self.fabric.node(switch).role));
                let largest = pools.max().unwrap_or(Bytes(0));
                // One port alone: alpha of what it leaves free.
                dynamic_alpha_milli.map_or(largest, |alpha| {
                    let (alpha, pool) = (u128::from(alpha), u128::from(largest.0));
                    Bytes(u64::try_from(pool * alpha / (1000 + alpha)).unwrap_or(u64::MAX))
                })
            }
        }
    }

    fn why_no_balance(&self) -> Option<String> {
        let at_last = |time: crate::units::Nanos, what: &str| {
            (time >= self.time_limit)
                .then(|| format!("`{what}` is {time}, and the run is cut after {}", self.time_limit))
        };
        match self.switching.load_balance {
            LoadBalance::FlowEcmp => None,
            LoadBalance::SpanningTree => {
                is_tree(self.fabric).then(|| "the switches are linked as a tree already".to_owned())
            }
            _ if !has_choice(self.fabric, self.overlay) => {
                Some("no two servers have several equal paths between them".to_owned())
            }
            LoadBalance::Flowlet { gap } => at_last(gap, "gap"),
            LoadBalance::Rehash { hold, .. } => at_last(hold, "hold"),
            LoadBalance::PacketSpray => None,
        }
    }

    fn why_not_in_lab_switches(&self, name: &str) -> Option<String> {
        let has = |is_it: fn(Overlay) -> bool| {
            let own = self.fabric.forwarding().values().map(|own| own.overlay);
            own.chain([self.overlay]).any(is_it)
        };
        let is_rbridge = |overlay: Overlay| matches!(overlay, Overlay::RBridge { .. });
        let snoops = |overlay: Overlay| matches!(overlay, Overlay::RBridge { .. } | Overlay::Bridge { .. });
        match name {
            "forwarding" | "buffer" | "ecn_threshold" | "reconvergence" | "host_queue" => {
                Some("the lab has Linux's queues, and routing daemons of its own".to_owned())
            }
            "load_balance" => {
                let moves =
                    matches!(self.switching.load_balance, LoadBalance::Flowlet { .. } | LoadBalance::Rehash { .. });
                (self.overlay != Overlay::Vl2 || !moves)
                    .then(|| "in the lab only agents of VL2 choose paths, by `flowlet` or `rehash`".to_owned())
            }
            "bfd" => self
                .overlay
                .forwards_frames()
                .then(|| format!("it is for routing daemons, and the overlay `{}` has none", self.overlay)),
            "cpus" | "trees" => (!has(is_rbridge)).then(|| "no switch is an RBridge".to_owned()),
            "groups" => (!has(snoops)).then(|| "no switch is an RBridge or a bridge".to_owned()),
            _ => None,
        }
    }
}

/// True where the links between switches form no circle.
fn is_tree(fabric: &Fabric) -> bool {
    let is_switch = |node| fabric.node(node).role.is_switch();
    let links = fabric.links().iter().filter(|link| is_switch(link.a.node) && is_switch(link.b.node)).count();
    links < fabric.switches().count()
}

/// Whether anywhere a switch has several equal next hops for what goes to a server.
fn has_choice(fabric: &Fabric, overlay: Overlay) -> bool {
    if is_tree(fabric) {
        return false;
    }
    if overlay == Overlay::Vl2 && fabric.with_role(Role::Intermediate).nth(1).is_some() {
        return true;
    }
    let routes = EcmpRoutes::compute(fabric, &BTreeSet::new());
    let edges: BTreeSet<_> = fabric.servers().filter_map(|server| Some(fabric.edge_of(server)?.0)).collect();
    fabric.switches().any(|from| edges.iter().any(|to| routes.next_hops(from, *to).len() > 1))
}
