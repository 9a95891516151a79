//! What the machine's own network cards do with XDP: asked by netlink, nothing is attached to them.

use std::fs;
use std::path::Path;

use weft_datapath::probe::{self, XdpFeatures};

use super::Check;

const CLASS: &str = "/sys/class/net";
/// From this MTU on a frame does not fit a page with what XDP wants around it.
const MTU_MOST: u32 = 3498;
const REMEDY: &str = "weft node rbridge with xdp = \"generic\"; weft node vtep --hook tc";

/// A network card.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Card {
    pub(super) interface: String,
    pub(super) driver: String,
    pub(super) mtu_bytes: u32,
    /// Queues that it receives by.
    pub(super) queues: usize,
    /// `None`: this kernel cannot be asked, or did not answer.
    pub(super) features: Option<XdpFeatures>,
}

/// Interfaces with a device behind them, of the caller's namespace. `askable`: the kernel is 6.3 or newer.
pub(super) fn of_this_machine(askable: bool) -> Vec<Card> {
    let names = crate::home::names_in(Path::new(CLASS));
    names.into_iter().filter_map(|interface| card(interface, askable)).collect()
}

fn card(interface: String, askable: bool) -> Option<Card> {
    let folder = Path::new(CLASS).join(&interface);
    let driver = fs::read_link(folder.join("device/driver")).ok()?;
    let mtu = fs::read_to_string(folder.join("mtu")).ok()?;
    let queues = crate::home::names_in(&folder.join("queues"));
    let features = if askable { probe::xdp_features(&interface).ok() } else { None };
    Some(Card {
        driver: driver.file_name()?.to_string_lossy().into_owned(),
        mtu_bytes: mtu.trim().parse().ok()?,
        queues: queues.iter().filter(|name| name.starts_with("rx-")).count(),
        interface,
        features,
    })
}

/// One line for a card.
pub(super) fn judge(card: &Card) -> Check {
    let name = format!("XDP on {}", card.interface);
    let about = format!("driver {}, MTU {}, {} receive queues", card.driver, card.mtu_bytes, card.queues);
    let Some(features) = card.features else {
        let remedy = "weft node rbridge says at its start whether the driver takes its program";
        return Check::warn(&name, format!("unknown before Linux 6.3: {about}"), remedy);
    };
    if !features.has(XdpFeatures::BASIC | XdpFeatures::REDIRECT) {
        return Check::warn(&name, format!("not in the driver: {about}"), format!("slower, but works: {REMEDY}"));
    }
    if card.mtu_bytes > MTU_MOST {
        let remedy = format!("an MTU of at most {MTU_MOST} for XDP in the driver; or {REMEDY}");
        return Check::warn(&name, format!("in the driver, but not with so large an MTU: {about}"), remedy);
    }
    if !features.has(XdpFeatures::NDO_XMIT) {
        let remedy =
            "many drivers do once a program is attached to them; others need a queue for each core: ethtool -L";
        let found = format!("in the driver; takes no frames from other ports as it is now: {about}");
        return Check::warn(&name, found, remedy);
    }
    Check::ok(&name, format!("in the driver: {about}"))
}

#[cfg(test)]
mod tests {
    use weft_scenario::judge::Verdict;

    use super::*;

    const ALL: u64 = XdpFeatures::BASIC | XdpFeatures::REDIRECT | XdpFeatures::NDO_XMIT;

    fn card(features: Option<u64>, mtu_bytes: u32) -> Card {
        let features = features.map(XdpFeatures);
        Card { interface: "eth0".into(), driver: "virtio_net".into(), mtu_bytes, queues: 2, features }
    }

    #[test]
    fn a_card_is_judged_by_what_its_driver_says() {
        for (found, verdict, word) in [
            (card(Some(ALL), 1500), Verdict::Pass, "in the driver: driver virtio_net, MTU 1500, 2 receive queues"),
            (card(None, 1500), Verdict::Info, "unknown before Linux 6.3"),
            (card(Some(0), 1500), Verdict::Info, "not in the driver"),
            (card(Some(XdpFeatures::BASIC), 1500), Verdict::Info, "not in the driver"),
            (card(Some(ALL), 9000), Verdict::Info, "so large an MTU"),
            (card(Some(XdpFeatures::BASIC | XdpFeatures::REDIRECT), 1500), Verdict::Info, "no frames from other ports"),
        ] {
            let check = judge(&found);
            assert!(check.verdict == verdict && check.found.contains(word), "{check:?}");
            assert_eq!(check.remedy.is_empty(), verdict == Verdict::Pass, "{check:?}");
        }
    }
}
