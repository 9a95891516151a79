//! What XDP cannot do on a kernel or a card, said before anything is attached: frames would be lost or spoilt without a word.

use tracing::warn;
use weft_datapath::copies;
use weft_datapath::probe::{self, XdpFeatures};

use crate::error::NodeError;

/// Frames of interfaces up to this MTU, bytes, are in one buffer: a page without the room before and behind them.
const ONE_BUFFER_MTU: u32 = 3400;

/// Longer frames are in several buffers, which kernels before 6.3 redirect to no other port (they say nothing of it either). A port
/// that `must` carry them is refused, others may have room that nobody uses.
pub(crate) fn check_mtu(interface: &str, mtu: u32, must: bool, instead: &str) -> Result<(), NodeError> {
    if mtu <= ONE_BUFFER_MTU || probe::xdp_features(interface)?.has(XdpFeatures::RX_SG) {
        return Ok(());
    }
    let why = format!(
        "`{interface}` has MTU {mtu}, and XDP in the driver loses frames above {ONE_BUFFER_MTU} bytes here (Linux 6.3 and a \
         driver that takes frames in several buffers do not); ip link set {interface} mtu {ONE_BUFFER_MTU}, or {instead}"
    );
    if must {
        return Err(NodeError::config("port", why));
    }
    warn!("{why}");
    Ok(())
}

/// Between more than two ports a frame may be copied, which kernels before June 2026 spoil at XDP in the stack.
pub(crate) fn check_copies(ports: usize) -> Result<(), NodeError> {
    if ports <= 2 {
        return Ok(());
    }
    match copies::are_own() {
        Ok(true) => Ok(()),
        Ok(false) => {
            let why = format!(
                "\"generic\" with {ports} ports: this kernel mixes up the copies of a broadcast (mended in June 2026, and in kept \
                 releases since then); xdp = \"native\", a newer kernel, or two ports"
            );
            Err(NodeError::config("xdp", why))
        }
        Err(error) => {
            warn!(%error, "whether this kernel keeps the copies of a broadcast apart is not known");
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Loopback's driver has no XDP at all, as old kernels say of every driver.
    #[test]
    fn long_frames_are_refused_where_the_driver_does_not_take_them() {
        assert!(check_mtu("lo", ONE_BUFFER_MTU, true, "").is_ok() && check_mtu("lo", 9000, false, "").is_ok());
        let error = check_mtu("lo", 9000, true, "xdp = \"generic\"").expect_err("it says nothing of several buffers");
        let text = error.to_string();
        assert!(text.contains("`lo` has MTU 9000") && text.ends_with("or xdp = \"generic\""), "{text}");
    }

    #[test]
    fn two_ports_need_no_copies() {
        assert!(check_copies(2).is_ok());
    }
}
