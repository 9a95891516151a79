//! The MAC of a station in a segment whose addresses the directory knows: a prefix of two bytes and the IPv4 address.
//!
//! The directory maps an IPv4 address to a VTEP and knows no MAC. A virtual switch that gives its VMs their interfaces also
//! gives them their MACs, and those of container hosts have made `02:42` and the IPv4 address a common choice. So a
//! directory-driven segment asks that of its stations (decision 0013); others have a static entry.

use std::net::Ipv4Addr;

use weft_wire::ethernet::MacAddress;

/// The first two bytes of the MACs of stations in directory-driven segments: a locally administered unicast address.
pub const MAC_PREFIX: [u8; 2] = [0x02, 0x42];

/// The MAC of the station with this address.
pub fn mac_of(ip: Ipv4Addr) -> MacAddress {
    let ([x, y], [a, b, c, d]) = (MAC_PREFIX, ip.octets());
    MacAddress([x, y, a, b, c, d])
}

/// The address of the station with this MAC; `None` if it was not made by [`mac_of`].
pub fn ip_of(mac: MacAddress) -> Option<Ipv4Addr> {
    let [x, y, a, b, c, d] = mac.0;
    ([x, y] == MAC_PREFIX).then_some(Ipv4Addr::new(a, b, c, d))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn address_and_mac_name_each_other() {
        let ip = Ipv4Addr::new(10, 0, 3, 7);
        assert_eq!(mac_of(ip).to_string(), "02:42:0a:00:03:07");
        assert_eq!(ip_of(mac_of(ip)), Some(ip));
        assert_eq!(ip_of(MacAddress([0x02, 0x43, 10, 0, 3, 7])), None);
        assert!(!mac_of(Ipv4Addr::BROADCAST).is_group());
    }
}
