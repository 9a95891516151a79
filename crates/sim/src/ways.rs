//! Ways of followed flows as rows: names, headers and reasons as people read them.

use std::net::Ipv4Addr;

use weft_scenario::id::NodeId;
use weft_scenario::record::WayRow;

use crate::job::Job;
use crate::outcome::{FlowWay, Outcome, Toward, WayHop};
use crate::routes::Header;
use crate::time::PS_PER_NS;

/// A row for each hop, in order. A flow that has no way for a while has no row that says so.
pub(crate) fn rows(job: &Job, outcome: &Outcome) -> Vec<WayRow> {
    outcome.ways.iter().flat_map(|way| of_way(job, way)).collect()
}

fn of_way<'a>(job: &'a Job, way: &'a FlowWay) -> impl Iterator<Item = WayRow> {
    let last = way.hops.last().map(|hop| hop.node);
    way.hops.iter().zip(1..).map(move |(hop, number)| row(job, way, last, hop, number))
}

fn row(job: &Job, way: &FlowWay, last: Option<NodeId>, hop: &WayHop, number: u32) -> WayRow {
    let fabric = &job.fabric;
    let name = |node: NodeId| fabric.node(node).name.clone();
    let link = fabric.link(hop.link);
    let far = link.far_end(hop.node).map_or_else(String::new, |end| name(end.node));
    let headers = hop.headers.iter().map(|header| text(job, way, last, *header)).collect::<Vec<_>>();
    WayRow {
        time_ns: way.time_ps / PS_PER_NS,
        flow: way.flow.into(),
        from: way.from,
        to: way.to,
        hop: number,
        node: name(hop.node),
        interface: link.end_at(hop.node).map_or_else(String::new, |end| end.interface.clone()),
        header_bytes: hop.headers.iter().map(|header| header.bytes() as u64).sum(),
        headers: headers.join(" / "),
        toward: match hop.toward {
            Toward::AnyIntermediate => "any Intermediate".to_owned(),
            Toward::Switch(switch) => name(switch),
            Toward::Pinned => format!("{far}, as the flow is told"),
            Toward::FarEnd => far.clone(),
        },
        peer: far,
        next_hops: hop.choice.map_or(1, |choice| choice.next_hops),
        chosen: hop.choice.map_or(1, |choice| choice.chosen),
        hash: hop.choice.map_or_else(String::new, |choice| format!("{:016x}", choice.hash)),
    }
}

/// A header with where it leads. `last` is the edge switch of the receiver.
fn text(job: &Job, way: &FlowWay, last: Option<NodeId>, header: Header) -> String {
    let addresses = job.addresses.as_ref();
    let ipv4 = |address: Option<Ipv4Addr>, whose: &str| match address {
        Some(address) => format!("IPv4 to {address}, {whose}"),
        None => format!("IPv4 to {whose}"),
    };
    let name = |node: Option<NodeId>| node.map_or("nobody", |node| job.fabric.node(node).name.as_str());
    let receiver = job.fabric.servers().nth(way.to as usize);
    match header {
        Header::AnyIntermediate => {
            ipv4(addresses.zip(last).and_then(|(plan, last)| plan.anycast_for(last)), "any Intermediate")
        }
        Header::Tor => ipv4(addresses.zip(last).map(|(plan, last)| plan.la(last)), name(last)),
        Header::TunnelEnd => ipv4(addresses.zip(receiver).map(|(plan, node)| plan.la(node)), name(receiver)),
        Header::Trill => format!("TRILL to {}", name(last)),
        Header::Udp => "UDP".to_owned(),
        Header::Vxlan => "VXLAN".to_owned(),
        Header::Ethernet => "Ethernet".to_owned(),
        Header::VlanTag => "VLAN tag".to_owned(),
    }
}
