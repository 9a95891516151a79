//! A capture is a file that an independent reader understands.

mod common;

use std::process::Command;
use std::time::Duration;

use common::{Gone, PATIENCE, Quiet, can_run, lab_name, options, pair};
use weft_lab::{CaptureFilter, CaptureOptions, LabError, capture, up};
use weft_scenario::engine::Overlay;

#[test]
fn tshark_reads_what_was_captured() {
    if !can_run() {
        return;
    }
    let name = lab_name("cap");
    let _gone = Gone(name.clone());
    up(&pair(Overlay::Routed), &options(&name), &Quiet).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let wanted = CaptureOptions {
        lab: name.clone(),
        node: "tor1".into(),
        interface: "int1".into(),
        file: directory.path().join("ospf.pcapng"),
        filter: CaptureFilter { protocol: Some(89), ..CaptureFilter::default() },
        packets: Some(8),
        duration: Some(PATIENCE),
    };
    let summary = capture(&wanted, &|| false).unwrap();
    assert_eq!((summary.packets, summary.dropped), (8, 0));
    let fields = ["-T", "fields", "-e", "frame.interface_name", "-e", "ospf.msg", "-e", "ip.checksum.status"];
    let mut tshark = Command::new("tshark");
    tshark.arg("-r").arg(&wanted.file).args(["-o", "ip.check_checksum:TRUE"]).args(fields);
    if weft_needs::program("tshark") {
        let text = String::from_utf8(tshark.output().unwrap().stdout).unwrap();
        assert_eq!(text.lines().count(), 8, "{text}");
        // Updates and acknowledgements of what routing learned a moment ago may be among the hellos.
        let good = |line: &str| ["1", "4", "5"].iter().any(|kind| line == format!("tor1:int1\t{kind}\t1"));
        assert!(text.lines().all(good), "OSPF with good checksums: {text}");
        assert!(text.lines().filter(|line| *line == "tor1:int1\t1\t1").count() >= 4, "hellos: {text}");
    }
    let nothing = CaptureOptions {
        filter: CaptureFilter { arp: true, ..CaptureFilter::default() },
        duration: Some(Duration::from_millis(200)),
        ..wanted.clone()
    };
    assert_eq!(capture(&nothing, &|| false).unwrap().packets, 0);
    let error = capture(&CaptureOptions { interface: "eth9".into(), ..wanted.clone() }, &|| false).unwrap_err();
    assert_eq!(error.to_string(), "node `tor1` has no interface `eth9`; it has: int1, s1, dir1");
    assert!(matches!(
        capture(&CaptureOptions { node: "x".into(), ..wanted }, &|| false),
        Err(LabError::NoSuchNode { .. })
    ));
}
