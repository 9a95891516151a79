//! Fabrics that commands name, and what carries packets in them where nobody says it.

use weft_experiment::plan::fabric_text;
use weft_scenario::engine::Overlay;
use weft_scenario::topology::{Fabric, Role, from_yaml};

use crate::exit::Failure;

/// Reads a fabric by its short name or the path of its file.
pub(super) fn read(name: &str) -> Result<Fabric, Failure> {
    let text = fabric_text(name).map_err(|reason| Failure::usage(format!("fabric `{name}`: {reason}")))?;
    from_yaml(&text, name).map_err(Failure::usage)
}

/// What the fabric is made for.
pub(super) fn default_overlay(fabric: &Fabric) -> Overlay {
    if fabric.is_campus() {
        Overlay::RBRIDGE
    } else if fabric.with_role(Role::Intermediate).next().is_some() {
        Overlay::Vl2
    } else {
        Overlay::Routed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shipped_fabric_has_an_overlay_that_it_can_carry() {
        for (name, overlay) in [
            ("vl2-4servers", Overlay::Vl2),
            ("trill-s1-s6", Overlay::RBRIDGE),
            ("leaf-spine-small", Overlay::Routed),
            ("overlay-pair", Overlay::Vl2),
        ] {
            assert_eq!(default_overlay(&read(name).expect("it is embedded")), overlay, "{name}");
        }
    }
}
