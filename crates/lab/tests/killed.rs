//! Commands on a lab that is up are killed at the calls by which they change the kernel and the disk: what is broken afterwards is what
//! the lab's state says, what others have broken stays so, and `repair` brings everything back.

mod common;

use std::collections::BTreeMap;
use std::net::UdpSocket;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use common::campus::fabric;
use common::hosts::on;
use common::{Gone, Quiet, can_run, lab_name, options, scenario, wait_for};
use weft_lab::{Impairment, Lab, LabState, fail, home, impair, repair, up};
use weft_scenario::engine::Overlay;
use weft_scenario::fault::FaultKind;

/// Says what the child does, in words.
const ORDER: &str = "WEFT_KILLED_ORDER";
const SIGKILL: i32 = 9;
/// What comes is there by then, usually.
const SOON: Duration = Duration::from_millis(40);

fn silent([a, b]: [&str; 2]) -> FaultKind {
    FaultKind::LinkSilent { a: a.into(), b: b.into() }
}

fn down([a, b]: [&str; 2]) -> FaultKind {
    FaultKind::LinkDown { a: a.into(), b: b.into() }
}

/// Runs as a child of the next tests.
#[test]
fn child_that_changes_a_lab() {
    let Ok(order) = std::env::var(ORDER) else { return };
    let words: Vec<&str> = order.split(' ').collect();
    let [lab, verb, a, b] = words[..] else { panic!("{order}") };
    let changed = match verb {
        "silence" => fail(lab, &silent([a, b]), &Quiet),
        "fail" => fail(lab, &down([a, b]), &Quiet),
        "impair" => impair(lab, [a, b], &Impairment { loss_percent: 1.0, ..Impairment::default() }, false, &Quiet),
        _ => repair(lab, &[a.into(), b.into()], &Quiet),
    };
    changed.unwrap();
}

/// Has a child do this under `strace`, told so. Whether it was killed.
fn is_killed(order: &str, told: &[String]) -> bool {
    let mut strace = Command::new("strace");
    strace.args(["--follow-forks", "-qq"]).args(told).env(ORDER, order);
    strace.arg(std::env::current_exe().unwrap()).args(["--exact", "child_that_changes_a_lab"]);
    let status = strace.stdout(Stdio::null()).stderr(Stdio::null()).status().expect("strace runs");
    assert!(status.success() || status.signal() == Some(SIGKILL), "{order}: {status}");
    !status.success()
}

/// The kernel's programs, and names on disks.
const CALLS: [&str; 3] = ["bpf", "unlink", "rename"];

/// How often the thread that does so most makes this call.
fn most(trace: &str, call: &str) -> u32 {
    let mut of_threads = BTreeMap::new();
    for line in trace.lines() {
        let (thread, rest) = line.split_once(' ').expect("a thread, what it does");
        *of_threads.entry(thread).or_default() += u32::from(rest.trim_start().starts_with(&format!("{call}(")));
    }
    of_threads.into_values().max().unwrap_or_default()
}

/// A server, its switch, and a server behind the same switch or another.
type Place = [&'static str; 3];

fn link([server, switch, _]: Place) -> [&'static str; 2] {
    [server, switch]
}

/// Whether something comes over a place's link within this time.
fn is_heard(lab: &Lab, [from, _, to]: Place, within: Duration) -> bool {
    let [from, to] = [from, to].map(|name| lab.scenario.fabric.find(name).unwrap());
    let addresses = lab.server_addresses();
    let open = |node| {
        let address = addresses.iter().find(|(server, _)| *server == node).unwrap().1;
        on(lab, &lab.scenario.fabric.node(node).name, || UdpSocket::bind((address, 0)).unwrap())
    };
    let (sender, receiver) = (open(from), open(to));
    // Where there is no way it says so.
    let _ = sender.send_to(b"weft", receiver.local_addr().unwrap());
    receiver.set_read_timeout(Some(within)).unwrap();
    receiver.recv(&mut [0; 8]).is_ok()
}

fn wait_until_heard(lab: &Lab, place: Place, when: &str) {
    wait_for(&format!("{} is heard by {}: {when}", place[0], place[2]), || is_heard(lab, place, SOON));
}

/// What is kept of a lab's faults.
fn pins(lab: &str) -> Vec<String> {
    home::names_in(&Path::new(home::BPF_DIR).join(lab).join("+faults"))
}

/// One place is silent, and whoever changes this one or the other is killed at its first call of each kind, and at its last three, which
/// change something.
fn kill_everybody(lab: &Lab, here: Place, elsewhere: Place) {
    let file = tempfile::NamedTempFile::new().unwrap();
    let mut killed = 0;
    for (verb, place) in
        [("silence", elsewhere), ("fail", elsewhere), ("repair", elsewhere), ("repair", here), ("impair", here)]
    {
        let try_it = |told: &[String]| is_undone_or_written(lab, [here, elsewhere], (verb, place), told);
        assert!(!try_it(&[format!("--trace={}", CALLS.join(",")), format!("--output={}", file.path().display())]));
        let trace = std::fs::read_to_string(file.path()).unwrap();
        for call in CALLS {
            let most = most(&trace, call);
            for number in (1..=most).filter(|number| *number == 1 || number + 3 > most) {
                let inject = format!("--inject={call}:signal=SIGKILL:when={number}");
                let told = [format!("--trace={call}"), inject, "--output=/dev/null".to_owned()];
                killed += u32::from(try_it(&told));
            }
        }
    }
    eprintln!("{killed} were killed");
    assert!(killed > 20, "{killed}");
}

/// The first place is silent when it begins. Whether who does this was killed.
fn is_undone_or_written(lab: &Lab, places: [Place; 2], (verb, place): (&str, Place), told: &[String]) -> bool {
    let (name, [here, _], [a, b]) = (&lab.state.lab, places, link(place));
    fail(name, &silent(link(here)), &Quiet).unwrap();
    if verb == "repair" {
        fail(name, &silent(link(place)), &Quiet).unwrap();
    }
    let was_killed = is_killed(&format!("{name} {verb} {a} {b}"), told);
    let when = format!("{verb} {a} {b} with {told:?}");
    let state = LabState::load(name).unwrap();
    let is_written = |place| [silent(link(place)), down(link(place))].iter().any(|fault| state.faults.contains(fault));
    places.into_iter().filter(|place| !is_written(*place)).for_each(|place| wait_until_heard(lab, place, &when));
    assert!(place == here || !is_heard(lab, here, SOON), "nobody mended this: {when}");
    fail(name, &silent(link(here)), &Quiet).unwrap();
    let mut broken = places.into_iter().filter(|place| *place == here || is_written(*place));
    assert!(broken.all(|place| !is_heard(lab, place, SOON)), "the next command makes it whole: {when}");
    repair(name, &[], &Quiet).unwrap();
    places.into_iter().for_each(|place| wait_until_heard(lab, place, &when));
    assert_eq!(pins(name), Vec::<String>::new(), "{when}");
    was_killed
}

#[test]
fn on_tc_nothing_is_lost_by_a_kill() {
    if !can_run() || !weft_needs::program("strace") {
        return;
    }
    let name = lab_name("kt");
    let _gone = Gone(name.clone());
    let lab = up(&scenario(fabric("leaf-spine-small"), Overlay::Routed), &options(&name), &Quiet).unwrap();
    kill_everybody(&lab, ["s1", "leaf1", "s2"], ["s3", "leaf2", "s4"]);
}

#[test]
fn in_the_place_of_an_xdp_program_nothing_is_lost_by_a_kill() {
    if !can_run() || !weft_needs::program("strace") {
        return;
    }
    let name = lab_name("kx");
    let _gone = Gone(name.clone());
    let lab = up(&scenario(fabric("trill-s1-s6"), Overlay::RBRIDGE), &options(&name), &Quiet).unwrap();
    kill_everybody(&lab, ["h1", "s1", "h2"], ["h4", "s2", "h3"]);
}
