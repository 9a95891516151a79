//! Rings and meshes: switches on a circle, neighbours beside each other where that goes, end hosts around it behind their switches.

use std::f64::consts::{FRAC_PI_2, TAU};

use weft_scenario::id::NodeId;
use weft_scenario::topology::{Fabric, Role};

use super::{HOST_STEP, Layout, MARGIN, Place, SWITCH_STEP, home, upper, walk};

/// From the switches to their end hosts.
const SPOKE: f64 = 110.0;

pub(super) fn layout(fabric: &Fabric) -> Layout {
    let begin = upper(fabric).next().expect("a fabric has switches");
    let order = walk(fabric, begin);
    let hosts: Vec<Vec<NodeId>> = order.iter().map(|switch| hosts_of(fabric, *switch)).collect();
    let widest = hosts.iter().map(|hosts| (hosts.len() + 1) as f64 * HOST_STEP).fold(SWITCH_STEP, f64::max);
    let outer = hosts.iter().any(|hosts| !hosts.is_empty());
    let radius = (order.len() as f64 * widest / TAU - if outer { SPOKE } else { 0.0 }).max(150.0);
    let reach = radius + if outer { SPOKE } else { 0.0 };
    let middle = MARGIN + reach;
    let at = |angle: f64, far: f64| Place {
        x: middle + far * angle.cos(),
        y: middle + far * angle.sin(),
        out: (angle.cos(), angle.sin()),
    };
    let mut places = vec![Place::default(); fabric.nodes().len()];
    for (place, (switch, hosts)) in order.iter().zip(&hosts).enumerate() {
        let angle = TAU * place as f64 / order.len() as f64 - FRAC_PI_2;
        places[switch.index()] = at(angle, radius);
        for (number, host) in hosts.iter().enumerate() {
            let aside = HOST_STEP / reach * (number as f64 - (hosts.len() - 1) as f64 / 2.0);
            places[host.index()] = at(angle + aside, reach);
        }
    }
    Layout { width: 2.0 * middle, height: 2.0 * middle, tiers: Vec::new(), places, bends: Vec::new() }
}

fn hosts_of(fabric: &Fabric, switch: NodeId) -> Vec<NodeId> {
    let hosts = fabric.ids().filter(|id| fabric.node(*id).role.tier() == Role::HOST_TIER);
    hosts.filter(|host| home(fabric, *host) == Some(switch)).collect()
}
