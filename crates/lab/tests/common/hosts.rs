//! Real programs on the hosts of a small VL2 fabric, and what a switch's ports see of them.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use weft_lab::{CaptureFilter, CaptureOptions, CaptureSummary, Lab, capture, deps, home, in_namespace};
use weft_scenario::engine::{Overlay, Scenario};
use weft_scenario::topology::from_yaml;

use super::wait_for;

/// Two Intermediates, two Aggregations, two ToRs, two servers below each, a directory server below the second.
const FABRIC: &str = include_str!("../../../../fabrics/vl2-4servers.yaml");

/// The small fabric with these lines beside its topology.
pub(crate) fn four_servers(lines: &str) -> Scenario {
    super::scenario(from_yaml(&format!("{FABRIC}{lines}"), "four-servers").expect("a fabric"), Overlay::Vl2)
}

/// A program that a test cannot do without.
pub(crate) fn program(name: &str) -> PathBuf {
    let package = deps::all().into_iter().find(|dependency| dependency.provides == name);
    let package = package.unwrap_or_else(|| panic!("`{name}` is in no line of deps/debian.txt")).package;
    deps::find_program(name)
        .unwrap_or_else(|| panic!("`{name}` is missing; install Debian's package {package}: make deps-test"))
}

/// A program that runs on a node until it is dropped.
pub(crate) struct Running(Child);

impl Running {
    pub(crate) fn id(&self) -> u32 {
        self.0.id()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn namespace(lab: &Lab, node: &str) -> PathBuf {
    home::namespace_path(&lab.state.node(node).expect("a node of the lab").namespace)
}

/// Starts a program on a node.
pub(crate) fn start(lab: &Lab, node: &str, command: &mut Command) -> Running {
    command.stdin(Stdio::null());
    Running(in_namespace(&namespace(lab, node), || command.spawn()).unwrap().expect("the program starts"))
}

/// Runs a program on a node to its end: whether it succeeded, and everything it said.
pub(crate) fn run(lab: &Lab, node: &str, command: &mut Command) -> (bool, String) {
    let output = in_namespace(&namespace(lab, node), || command.output()).unwrap().expect("the program runs");
    let said = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8_lossy(&said).into_owned())
}

/// Does something on a node.
pub(crate) fn on<T: Send>(lab: &Lab, node: &str, work: impl FnOnce() -> T + Send) -> T {
    in_namespace(&namespace(lab, node), work).unwrap()
}

/// Long enough for what must not come.
pub(crate) const SETTLE: Duration = Duration::from_millis(500);

/// Captures while something happens: from before it begins until it has ended.
pub(crate) fn capturing(all: &[CaptureOptions], work: impl FnOnce()) -> Vec<CaptureSummary> {
    /// Ends the captures also when the work panics.
    struct End<'a>(&'a AtomicBool);
    impl Drop for End<'_> {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let end = End(&over);
        let captures: Vec<_> =
            all.iter().map(|one| scope.spawn(|| capture(one, &|| over.load(Ordering::Relaxed)).unwrap())).collect();
        // A capture listens before it makes its file.
        wait_for("captures begin", || all.iter().all(|one| one.file.exists()));
        work();
        drop(end);
        captures.into_iter().map(|capture| capture.join().unwrap()).collect()
    })
}

/// Captures ports of a node while something happens, which must have come by when it ends; each frame that the display
/// filter keeps as one line of its fields.
pub(crate) fn seen_during(
    lab: &Lab,
    ports: &[(&str, &str)],
    filter: &str,
    fields: &[&str],
    work: impl FnOnce(),
) -> Vec<String> {
    let directory = tempfile::tempdir().unwrap();
    let options = |(node, interface): &(&str, &str)| CaptureOptions {
        lab: lab.state.lab.clone(),
        ports: vec![format!("{node}:{interface}").parse().unwrap()],
        file: directory.path().join(format!("{node}-{interface}.pcapng")),
        filter: CaptureFilter::default(),
        packets: None,
        duration: None,
        snap_bytes: None,
    };
    let all: Vec<CaptureOptions> = ports.iter().map(options).collect();
    capturing(&all, || {
        work();
        std::thread::sleep(SETTLE);
    });
    all.iter().flat_map(|one| tshark(&one.file, filter, fields)).collect()
}

fn tshark(file: &Path, filter: &str, fields: &[&str]) -> Vec<String> {
    let mut tshark = Command::new(program("tshark"));
    tshark.arg("-r").arg(file).args(["-Y", filter, "-T", "fields"]).args(fields.iter().flat_map(|field| ["-e", field]));
    let output = tshark.output().expect("tshark runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
}
