//! ARP requests that a VTEP answers itself.

use std::net::Ipv4Addr;

use weft_wire::arp::Packet;
use weft_wire::ethernet::MacAddress;

/// Somebody who asks by ARP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asker {
    pub mac: MacAddress,
    /// Its address; unspecified while it probes an address before it takes it (RFC 5227).
    pub ip: Ipv4Addr,
}

impl Asker {
    /// Whether the question about `sought` is one about somebody else. A station that announces its own address wants no
    /// answer.
    pub fn asks_for(self, sought: Ipv4Addr) -> bool {
        self.ip != sought && !sought.is_unspecified()
    }

    /// The frame that tells it: `mac` has `sought`. `None` when it has that MAC itself, as a station that probes its own
    /// address and must find nobody.
    pub fn answer(self, sought: Ipv4Addr, mac: MacAddress) -> Option<Vec<u8>> {
        (self.mac != mac).then(|| Packet::request(self.mac, self.ip, sought).reply(mac).to_frame())
    }
}

#[cfg(test)]
mod tests {
    use weft_wire::arp::Operation;
    use weft_wire::ethernet;

    use super::*;

    const IP: [Ipv4Addr; 2] = [Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 2)];
    const ASKER: Asker = Asker { mac: MacAddress([2, 0x42, 10, 0, 0, 1]), ip: IP[0] };
    const OTHER: MacAddress = MacAddress([2, 0x42, 10, 0, 0, 2]);

    #[test]
    fn a_request_is_answered_to_the_one_who_asks() {
        assert!(ASKER.asks_for(IP[1]));
        let answer = ASKER.answer(IP[1], OTHER).unwrap();
        let view = ethernet::View::new(&answer).unwrap();
        assert_eq!((view.destination(), view.source()), (ASKER.mac, OTHER));
        let packet = Packet::parse(view.payload()).unwrap();
        assert_eq!((packet.operation, packet.sender_ip, packet.sender_mac), (Operation::Reply, IP[1], OTHER));
        assert_eq!((packet.target_ip, packet.target_mac), (IP[0], ASKER.mac));
    }

    #[test]
    fn whoever_looks_for_itself_is_not_told_that_somebody_is_there() {
        assert!(!ASKER.asks_for(IP[0]), "it announces its address");
        let probing = Asker { ip: Ipv4Addr::UNSPECIFIED, ..ASKER };
        assert!(probing.asks_for(IP[0]) && !probing.asks_for(Ipv4Addr::UNSPECIFIED));
        assert_eq!(probing.answer(IP[0], ASKER.mac), None);
        assert!(probing.answer(IP[0], OTHER).is_some(), "a conflict is told");
    }
}
