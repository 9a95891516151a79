//! Configurations of FRR's `bgpd`.
//!
//! A border takes a default route from outside and nothing else, and tells the outside of the pool as one prefix and of
//! nothing else, as long as it knows the way to one of its addresses: a border that is cut off from the fabric draws no
//! traffic. Inside, every switch hears of the default route from each border that has one, and spreads over them.

use std::fmt::Write as _;
use std::net::Ipv4Addr;

use weft_wire::block::Block;

use crate::frr::{BFD_PROFILE, frr_log};

/// The fabric's autonomous system, and that of the world outside (both for documentation, RFC 5398).
const FABRIC_AS: u32 = 64_500;
const OUTSIDE_AS: u32 = 64_501;
/// Most next hops that one route may have; FRR in Debian is built for so many.
const MAXIMUM_PATHS: usize = 64;

/// Keepalive and hold time of a session, seconds. Across the border silence must be noticed soon; inside OSPF notices.
const OUTSIDE_TIMERS: &str = "1 3";
const FABRIC_TIMERS: &str = "3 9";

/// What every `bgpd.conf` begins with.
pub(crate) struct BgpInput<'a> {
    pub(crate) hostname: &'a str,
    pub(crate) namespace: &'a str,
    pub(crate) router_id: Ipv4Addr,
    /// Whether BFD watches sessions across the border.
    pub(crate) bfd: bool,
}

impl BgpInput<'_> {
    /// Of a border Intermediate, which reflects routes between the other switches. The way out keeps the outside's address as
    /// its next hop, which OSPF knows by the border's link: when that goes down, OSPF tells the others before this `bgpd`
    /// has waited the 50 ms that each takes before it chooses paths.
    pub(crate) fn border(&self, pool: Block, outside: &[Ipv4Addr], switches: &[Ipv4Addr]) -> String {
        let mut text = self.head();
        let _ = write!(text, "ip prefix-list default permit 0.0.0.0/0\nip prefix-list pool permit {pool}\n");
        self.router(&mut text, FABRIC_AS);
        self.group(&mut text, &Group::fabric("fabric", self.router_id), switches);
        self.group(&mut text, &Group::outside("outside", OUTSIDE_AS), outside);
        let _ = write!(
            text,
            " address-family ipv4 unicast\n  aggregate-address {pool}\n  neighbor fabric route-reflector-client\n  \
             neighbor outside prefix-list default in\n  neighbor outside prefix-list pool out\n  maximum-paths {MAXIMUM_PATHS}\n  \
             maximum-paths ibgp {MAXIMUM_PATHS}\n"
        );
        text
    }

    /// Of any other switch: it tells the borders of its own servers' public LAs, while the kernel has routes to them.
    pub(crate) fn switch(&self, borders: &[Ipv4Addr], public: &[Ipv4Addr]) -> String {
        let mut text = self.head();
        self.router(&mut text, FABRIC_AS);
        text.push_str(" bgp network import-check\n");
        self.group(&mut text, &Group::fabric("border", self.router_id), borders);
        text.push_str(" address-family ipv4 unicast\n");
        for la in public {
            let _ = writeln!(text, "  network {la}/32");
        }
        let _ = writeln!(text, "  maximum-paths ibgp {MAXIMUM_PATHS}");
        text
    }

    /// Of the node outside: everything is behind it, and it would take any route, so that its table shows what leaks.
    pub(crate) fn outside(&self, borders: &[Ipv4Addr]) -> String {
        let mut text = self.head();
        text.push_str("ip prefix-list default permit 0.0.0.0/0\nip prefix-list any permit 0.0.0.0/0 le 32\n");
        self.router(&mut text, OUTSIDE_AS);
        self.group(&mut text, &Group::outside("fabric", FABRIC_AS), borders);
        let _ = write!(
            text,
            " address-family ipv4 unicast\n  neighbor fabric default-originate\n  \
             neighbor fabric prefix-list any in\n  neighbor fabric prefix-list default out\n  \
             maximum-paths {MAXIMUM_PATHS}\n"
        );
        text
    }

    fn head(&self) -> String {
        let log = frr_log(self.namespace, "bgpd");
        format!("hostname {}\nlog file {} informational\nlog timestamp precision 3\n", self.hostname, log.display())
    }

    fn router(&self, text: &mut String, autonomous_system: u32) {
        let _ = write!(
            text,
            "router bgp {autonomous_system}\n bgp router-id {}\n bgp log-neighbor-changes\n",
            self.router_id
        );
    }

    fn group(&self, text: &mut String, group: &Group, members: &[Ipv4Addr]) {
        let Group { name, remote_as, timers, source } = group;
        let mut say = |what: &str| text.push_str(&format!(" neighbor {what}\n"));
        say(&format!("{name} peer-group"));
        say(&format!("{name} remote-as {remote_as}"));
        say(&format!("{name} timers {timers}"));
        say(&format!("{name} timers connect 1"));
        match source {
            Some(source) => say(&format!("{name} update-source {source}")),
            // Inside this is 0 anyway; across the border FRR would wait 3 s before it withdraws a route.
            None => say(&format!("{name} advertisement-interval 0")),
        }
        if self.bfd && source.is_none() {
            say(&format!("{name} bfd profile {BFD_PROFILE}"));
        }
        members.iter().for_each(|member| say(&format!("{member} peer-group {name}")));
    }
}

/// Neighbours that are treated alike.
struct Group {
    name: &'static str,
    remote_as: u32,
    timers: &'static str,
    /// Address to speak from, between loopbacks.
    source: Option<Ipv4Addr>,
}

impl Group {
    fn fabric(name: &'static str, source: Ipv4Addr) -> Self {
        Self { name, remote_as: FABRIC_AS, timers: FABRIC_TIMERS, source: Some(source) }
    }

    fn outside(name: &'static str, remote_as: u32) -> Self {
        Self { name, remote_as, timers: OUTSIDE_TIMERS, source: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn input(hostname: &'static str, router_id: [u8; 4], bfd: bool) -> BgpInput<'static> {
        BgpInput { hostname, namespace: "weft-x-n", router_id: router_id.into(), bfd }
    }

    #[test]
    fn a_border_tells_the_outside_of_the_pool_only_and_takes_a_default_route_only() {
        let pool = "198.51.100.0/24".parse().unwrap();
        let text = input("int1", [10, 3, 0, 1], false).border(pool, &[[192, 0, 2, 1].into()], &[[10, 1, 0, 1].into()]);
        let expected = "hostname int1
log file /var/run/frr/weft-x-n/bgpd.log informational
log timestamp precision 3
ip prefix-list default permit 0.0.0.0/0
ip prefix-list pool permit 198.51.100.0/24
router bgp 64500
 bgp router-id 10.3.0.1
 bgp log-neighbor-changes
 neighbor fabric peer-group
 neighbor fabric remote-as 64500
 neighbor fabric timers 3 9
 neighbor fabric timers connect 1
 neighbor fabric update-source 10.3.0.1
 neighbor 10.1.0.1 peer-group fabric
 neighbor outside peer-group
 neighbor outside remote-as 64501
 neighbor outside timers 1 3
 neighbor outside timers connect 1
 neighbor outside advertisement-interval 0
 neighbor 192.0.2.1 peer-group outside
 address-family ipv4 unicast
  aggregate-address 198.51.100.0/24
  neighbor fabric route-reflector-client
  neighbor outside prefix-list default in
  neighbor outside prefix-list pool out
  maximum-paths 64
  maximum-paths ibgp 64
";
        assert_eq!(text, expected);
    }

    #[test]
    fn a_switch_tells_the_borders_of_its_own_public_servers() {
        let borders = [[10, 3, 0, 1].into(), [10, 3, 0, 2].into()];
        let text = input("tor1", [10, 1, 0, 1], true).switch(&borders, &[[198, 51, 100, 2].into()]);
        let expected = "hostname tor1
log file /var/run/frr/weft-x-n/bgpd.log informational
log timestamp precision 3
router bgp 64500
 bgp router-id 10.1.0.1
 bgp log-neighbor-changes
 bgp network import-check
 neighbor border peer-group
 neighbor border remote-as 64500
 neighbor border timers 3 9
 neighbor border timers connect 1
 neighbor border update-source 10.1.0.1
 neighbor 10.3.0.1 peer-group border
 neighbor 10.3.0.2 peer-group border
 address-family ipv4 unicast
  network 198.51.100.2/32
  maximum-paths ibgp 64
";
        assert_eq!(text, expected);
    }

    #[test]
    fn bfd_watches_the_border_from_both_sides_where_it_is_asked_for() {
        let peer = [[192, 0, 2, 0].into()];
        let of = |bfd| input("net", [203, 0, 113, 1], bfd).outside(&peer);
        assert_eq!(of(true).replace(" neighbor fabric bfd profile weft\n", ""), of(false));
        let expected = "hostname net
log file /var/run/frr/weft-x-n/bgpd.log informational
log timestamp precision 3
ip prefix-list default permit 0.0.0.0/0
ip prefix-list any permit 0.0.0.0/0 le 32
router bgp 64501
 bgp router-id 203.0.113.1
 bgp log-neighbor-changes
 neighbor fabric peer-group
 neighbor fabric remote-as 64500
 neighbor fabric timers 1 3
 neighbor fabric timers connect 1
 neighbor fabric advertisement-interval 0
 neighbor fabric bfd profile weft
 neighbor 192.0.2.0 peer-group fabric
 address-family ipv4 unicast
  neighbor fabric default-originate
  neighbor fabric prefix-list any in
  neighbor fabric prefix-list default out
  maximum-paths 64
";
        assert_eq!(of(true), expected);
        let border = input("int1", [10, 3, 0, 1], true).border("198.51.100.0/24".parse().unwrap(), &peer, &peer);
        assert_eq!(border.matches("bfd").count(), 1, "inside, OSPF's BFD watches the links: {border}");
    }
}
