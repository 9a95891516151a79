//! Routing between VLANs at the RBridge where a packet comes in: the data path is told the gateway's place in every VLAN,
//! its addresses, the hosts, and where they are as far as that is configured.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use weft_datapath::trill::abi::STATIC;
use weft_datapath::trill::{HostRoute, Place, RBridgeMaps, Station};

use super::settings::Gateway;
use crate::error::NodeError;

/// Makes the tables say what is configured, and nothing that an earlier run was told.
pub(super) fn set(maps: &RBridgeMaps, gateway: Option<&Gateway>) -> Result<(), NodeError> {
    let wanted = gateway.map(routes).unwrap_or_default();
    for (host, _) in maps.host_routes()?.into_iter().filter(|(host, _)| !wanted.contains_key(host)) {
        maps.remove_host_route(host)?;
    }
    for (host, route) in &wanted {
        maps.set_host_route(*host, route)?;
    }
    let wanted = gateway.map(stations).unwrap_or_default();
    let is_ours = |station: &Station| station.confidence == STATIC && !matches!(station.place, Place::Port(_));
    maps.forget(|station| is_ours(station) && !wanted.contains(station))?;
    Ok(wanted.iter().try_for_each(|station| maps.set_station(station))?)
}

/// Where the gateway is, and the hosts whose RBridge is known.
fn stations(gateway: &Gateway) -> Vec<Station> {
    let at = |mac, vlan, place| Station { mac, vlan, place, confidence: STATIC, seen_s: 0 };
    let own = gateway.vlans.iter().map(|subnet| at(gateway.mac, subnet.vlan, Place::Gateway));
    let behind = gateway.hosts.iter().filter_map(|host| Some((host, host.behind?)));
    let hosts = behind.map(|(host, nickname)| at(host.mac, host.vlan, Place::RBridge(nickname)));
    own.chain(hosts).collect()
}

/// The gateway's own addresses, and the hosts.
fn routes(gateway: &Gateway) -> BTreeMap<Ipv4Addr, HostRoute> {
    let own = gateway
        .vlans
        .iter()
        .map(|subnet| (subnet.address, HostRoute { mac: None, gateway: gateway.mac, vlan: subnet.vlan }));
    let hosts = gateway
        .hosts
        .iter()
        .map(|host| (host.address, HostRoute { mac: Some(host.mac), gateway: gateway.mac, vlan: host.vlan }));
    own.chain(hosts).collect()
}
