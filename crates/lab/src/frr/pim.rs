//! `pimd`'s configuration: source-specific multicast (RFC 4607) by PIM sparse mode (RFC 7761) between switches and IGMPv3
//! (RFC 3376) towards servers.
//!
//! A service's servers are known, so each agent joins every other's packets by their source: trees stand before the first
//! packet, none is lost or comes twice while a tree is built, no rendezvous point can die, and a group gets nothing from a
//! server that nobody joined. Multicast routes follow OSPF's: a tree is mended as fast as they are.

use std::path::Path;

/// Addresses of the services' groups (organisation-local scope, RFC 2365); all are source-specific.
const GROUPS: &str = "239.192.0.0/16";
/// Name of the list of groups in the configuration.
const LIST: &str = "services";
/// Time between two hellos of neighbours, and how long one is believed, in seconds; the least that `pimd` takes.
const HELLO_S: u32 = 1;
const HELLO_HOLD_S: u32 = 4;
/// Time between two refreshments of a tree, in seconds.
const JOIN_S: u32 = 5;
/// Time between two questions to servers, in seconds: what one that vanished had joined is forgotten after twice that.
const QUERY_S: u32 = 10;

/// The text of `pimd.conf`: `to_switches` speak PIM, `to_servers` are asked by IGMP.
pub(super) fn config(hostname: &str, directory: &Path, to_switches: &[String], to_servers: &[String]) -> String {
    let mut text = format!(
        "hostname {hostname}\nlog file {} informational\nip prefix-list {LIST} permit {GROUPS} le 32\n\
         ip pim ssm prefix-list {LIST}\nip pim ecmp\nip pim join-prune-interval {JOIN_S}\n",
        directory.join("pimd.log").display()
    );
    for interface in to_switches {
        text.push_str(&format!("interface {interface}\n ip pim\n ip pim hello {HELLO_S} {HELLO_HOLD_S}\n"));
    }
    for interface in to_servers {
        text.push_str(&format!(
            "interface {interface}\n ip pim\n ip pim passive\n ip igmp\n ip igmp version 3\n \
             ip igmp query-interval {QUERY_S}\n"
        ));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tor_asks_its_servers_and_joins_trees_towards_other_switches() {
        let expected = "hostname tor1
log file /run/x/pimd.log informational
ip prefix-list services permit 239.192.0.0/16 le 32
ip pim ssm prefix-list services
ip pim ecmp
ip pim join-prune-interval 5
interface agg1
 ip pim
 ip pim hello 1 4
interface s1
 ip pim
 ip pim passive
 ip igmp
 ip igmp version 3
 ip igmp query-interval 10
";
        assert_eq!(config("tor1", Path::new("/run/x"), &["agg1".into()], &["s1".into()]), expected);
    }

    #[test]
    fn other_switches_ask_nobody() {
        let text = config("int1", Path::new("/run/x"), &["agg1".into(), "agg2".into()], &[]);
        assert_eq!((text.matches(" ip pim hello").count(), text.contains("igmp")), (2, false));
    }
}
