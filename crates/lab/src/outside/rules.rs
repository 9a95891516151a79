//! What passes a border Intermediate, as policy rules of its kernel (`ip rule`).
//!
//! From outside only what is addressed to the pool or, for BGP, to the border's own end of the link; never what claims to
//! come from the fabric. So nobody outside reaches an AA, an LA or an anycast LA, and a packet in an outer header that
//! somebody made up is not unpacked. To the outside only what comes from the pool, or from the border itself.
//!
//! The rule for addresses of the node's own is moved behind those for the outside, because it comes first otherwise.

use std::net::Ipv4Addr;

use weft_wire::block::Block;

/// Places of the rules, in the order in which the kernel looks at them.
const FORGED: u32 = 10;
const TO_POOL: u32 = 20;
const TO_BORDER: u32 = 30;
const NOTHING_ELSE: u32 = 40;
const OWN: u32 = 100;
const FROM_POOL: u32 = 200;
const INSIDE: u32 = 210;
/// Where the kernel has its own: addresses of the node, and all routes.
const KERNEL_OWN: u32 = 0;
const KERNEL_MAIN: u32 = 32_766;

/// A border's interface to the outside, and its address there.
pub(crate) struct BorderPort<'a> {
    pub(crate) interface: &'a str,
    pub(crate) address: Ipv4Addr,
}

/// `ip` lines, to run once. `inside` are the prefixes that nobody outside has.
pub(crate) fn lines(ports: &[BorderPort<'_>], pool: Block, inside: &[Block]) -> Vec<String> {
    let mut lines = vec![format!("rule add pref {OWN} lookup local"), format!("rule del pref {KERNEL_OWN}")];
    for BorderPort { interface, address } in ports {
        let forged =
            inside.iter().map(|prefix| format!("rule add pref {FORGED} iif {interface} from {prefix} blackhole"));
        lines.extend(forged);
        lines.extend([
            format!("rule add pref {TO_POOL} iif {interface} to {pool} lookup main"),
            format!("rule add pref {TO_BORDER} iif {interface} to {address}/32 lookup local"),
            format!("rule add pref {NOTHING_ELSE} iif {interface} blackhole"),
            format!("rule add pref {FROM_POOL} from {address}/32 lookup main"),
        ]);
    }
    lines.extend([
        format!("rule add pref {FROM_POOL} from {pool} lookup main"),
        // All routes but the default one.
        format!("rule add pref {INSIDE} lookup main suppress_prefixlength 0"),
        format!("rule del pref {KERNEL_MAIN}"),
    ]);
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_stand_in_the_order_that_keeps_the_fabric_to_itself() {
        let prefix = |text: &str| text.parse::<Block>().unwrap();
        let pool = prefix("198.51.100.0/24");
        let ports = [BorderPort { interface: "net", address: [192, 0, 2, 0].into() }];
        assert_eq!(
            lines(&ports, pool, &[prefix("10.0.0.0/8"), pool]),
            [
                "rule add pref 100 lookup local",
                "rule del pref 0",
                "rule add pref 10 iif net from 10.0.0.0/8 blackhole",
                "rule add pref 10 iif net from 198.51.100.0/24 blackhole",
                "rule add pref 20 iif net to 198.51.100.0/24 lookup main",
                "rule add pref 30 iif net to 192.0.2.0/32 lookup local",
                "rule add pref 40 iif net blackhole",
                "rule add pref 200 from 192.0.2.0/32 lookup main",
                "rule add pref 200 from 198.51.100.0/24 lookup main",
                "rule add pref 210 lookup main suppress_prefixlength 0",
                "rule del pref 32766",
            ]
        );
    }
}
