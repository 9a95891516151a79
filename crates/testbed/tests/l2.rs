//! The plain switch: whole frames in and out, at both hooks.

#[path = "../../datapath/tests/common/mod.rs"]
mod common;

use common::*;
use weft_datapath::frame::{FrameInput, Verdict};
use weft_testbed::l2::PlainSwitch;

#[test]
fn the_plain_switch_forwards_known_macs_and_drops_others() {
    let Some(mut switch) = available(PlainSwitch::load()) else { return };
    switch.pretend_port(1).unwrap();
    let other = switch.pretend_port(1).unwrap();
    switch.set_mac(OTHER_MAC, other).unwrap();
    let known = Ipv4::default().frame();
    let unknown = ethernet(SERVER_MAC, OTHER_MAC, 0x0800, &Ipv4::default().bytes());
    for (frame, verdict) in [(known, Verdict::Redirect), (unknown, Verdict::Drop)] {
        let input = FrameInput { bytes: &frame, ..FrameInput::default() };
        for output in [switch.run_xdp(&frame).unwrap(), switch.run_tc(&input).unwrap()] {
            assert_eq!((output.verdict, output.bytes), (verdict, frame.clone()));
        }
    }
    assert_eq!(counted(switch.counters().unwrap()), [("forwarded", 2), ("unknown", 2)]);
}
