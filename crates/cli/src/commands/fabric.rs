//! Fabrics that commands name.

use weft_experiment::plan::fabric_text;
use weft_scenario::topology::{Fabric, from_yaml};

use crate::exit::Failure;

/// Reads a fabric by its short name or the path of its file.
pub(super) fn read(name: &str) -> Result<Fabric, Failure> {
    let text = fabric_text(name).map_err(|reason| Failure::usage(format!("fabric `{name}`: {reason}")))?;
    from_yaml(&text, name).map_err(Failure::usage)
}

#[cfg(test)]
mod tests {
    use weft_scenario::engine::Overlay;

    use super::*;

    #[test]
    fn every_shipped_fabric_has_an_overlay_that_it_can_carry() {
        for (name, overlay) in [
            ("vl2-4servers", Overlay::Vl2),
            ("trill-s1-s6", Overlay::RBRIDGE),
            ("leaf-spine-small", Overlay::Routed),
            ("overlay-pair", Overlay::Vl2),
        ] {
            assert_eq!(read(name).expect("it is embedded").default_overlay(), overlay, "{name}");
        }
    }
}
