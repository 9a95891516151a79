//! The smallest network in which every kind of VL2 forwarding happens: two servers, two ToRs and one Intermediate in a
//! line. Overlays are compared on it, so that a packet meets the same five nodes whatever carries it.

use super::builder::{Builder, LinkParams};
use super::{Fabric, Role, TopologyError};

/// Builds `s1 - tor1 - int1 - tor2 - s2`, with the directory server `dir1` below `tor1`.
pub fn overlay_pair(links: &LinkParams) -> Result<Fabric, TopologyError> {
    let mut builder = Builder::new(links);
    let intermediate = builder.node("int1", Role::Intermediate);
    let tors = builder.tier("tor", Role::Tor, 2);
    builder.link_all(&[intermediate], &tors, 1);
    builder.servers(&tors, &[1, 1]);
    builder.directory(tors[0]);
    builder.finish("overlay-pair")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn five_nodes_carry_a_packet_from_one_server_to_the_other() {
        let fabric = overlay_pair(&LinkParams::default()).unwrap();
        let names: Vec<String> =
            (0..fabric.links().len() as u32).map(|id| fabric.link_name(crate::id::LinkId(id))).collect();
        assert_eq!(
            names,
            [
                "int1:tor1 - tor1:int1",
                "int1:tor2 - tor2:int1",
                "tor1:s1 - s1:eth0",
                "tor2:s2 - s2:eth0",
                "tor1:dir1 - dir1:eth0",
            ]
        );
        assert_eq!(fabric.with_role(Role::Intermediate).count(), 1);
    }
}
