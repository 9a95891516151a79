//! Routing between VLANs at the RBridge where a packet comes in: the data path is told the gateway's place in every VLAN,
//! its addresses, and the hosts.

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
    let is_wanted = |station: &Station| {
        let here = |gateway: &Gateway| gateway.vlans.iter().any(|subnet| subnet.vlan == station.vlan);
        gateway.is_some_and(|gateway| gateway.mac == station.mac && here(gateway))
    };
    maps.forget(|station| station.place == Place::Gateway && !is_wanted(station))?;
    for (gateway, subnet) in
        gateway.iter().flat_map(|gateway| gateway.vlans.iter().map(move |subnet| (gateway, subnet)))
    {
        let station =
            Station { mac: gateway.mac, vlan: subnet.vlan, place: Place::Gateway, confidence: STATIC, seen_s: 0 };
        maps.set_station(&station)?;
    }
    Ok(())
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
