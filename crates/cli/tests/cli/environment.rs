//! Machines that are not fit: no root, no FRR, a full disk. One line says what is wrong and what to do, and nothing stays.

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::process::{Command, Output};

use crate::common::{Machine, one_lab_at_a_time, text};

/// User and group `nobody`.
const NOBODY: u32 = 65534;

/// Runs shell commands in a mount namespace of their own, where `$WEFT` is the binary and `$DIR` a folder that goes away.
fn with_own_mounts(script: &str) -> Output {
    let dir = tempfile::tempdir().expect("a temporary folder");
    Command::new("unshare")
        .args(["--mount", "--propagation", "private", "sh", "-euc", script])
        .env("WEFT", env!("CARGO_BIN_EXE_weft"))
        .env("DIR", dir.path())
        .output()
        .expect("unshare is part of every Debian")
}

fn assert_fails(output: &Output, code: i32, expected: &[&str]) {
    let errors = text(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{errors}");
    let line = errors.lines().find(|line| line.starts_with("weft: ")).unwrap_or_else(|| panic!("no error: {errors}"));
    assert!(expected.iter().all(|part| line.contains(part)), "{line}");
    assert!(!errors.contains("panicked"), "{errors}");
}

/// A folder that anybody may write, with the binary in it and nothing else.
///
/// Another process makes the copy: a file open for writing here would be inherited by whatever another test starts at that
/// moment, and the kernel does not run a program that somebody has open for writing (`ETXTBSY`).
fn nothing_but_the_binary() -> tempfile::TempDir {
    let dir = tempfile::tempdir().expect("a temporary folder");
    std::fs::set_permissions(dir.path(), PermissionsExt::from_mode(0o777)).expect("the folder is ours");
    let copied = Command::new("cp").arg(env!("CARGO_BIN_EXE_weft")).arg(dir.path()).status().expect("cp is everywhere");
    assert!(copied.success(), "the binary can be copied");
    dir
}

/// The binary of that folder as an ordinary user; only root can change to one, everybody else is one.
fn as_ordinary_user(dir: &tempfile::TempDir, args: &[&str]) -> Output {
    let mut command = Command::new(dir.path().join("weft"));
    command.args(args).current_dir(dir.path());
    let is_root = std::fs::metadata("/proc/self").expect("procfs is there").uid() == 0;
    if is_root {
        command.uid(NOBODY).gid(NOBODY);
    }
    command.output().expect("the copy starts")
}

#[test]
fn without_root_a_plan_runs_in_the_simulator_and_says_why() {
    let dir = nothing_but_the_binary();
    let plan = include_str!("plans/small-shuffle.toml").replace(r#"["sim"]"#, r#"["lab", "sim"]"#);
    std::fs::write(dir.path().join("plan.toml"), plan).expect("the folder is ours");
    let output = as_ordinary_user(&dir, &["run", "plan.toml", "-o", "json"]);
    let errors = text(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{errors}{}", text(&output.stdout));
    let line = errors.lines().find(|line| line.starts_with("engine: sim (")).unwrap_or_else(|| panic!("{errors}"));
    assert!(line.contains("root"), "{line}");
    assert!(text(&output.stdout).contains("\"engine\":\"sim\""), "{}", text(&output.stdout));
}

/// As in a container that was given too little: root without the rights that eBPF needs.
#[test]
fn without_cap_bpf_a_lab_is_refused_before_anything_is_made() {
    let Some(_turn) = one_lab_at_a_time() else { return };
    let before = Machine::now();
    let weft = |args: &[&str]| {
        let mut command = Command::new("setpriv");
        command.args(["--bounding-set=-bpf,-sys_admin", "--inh-caps=-bpf,-sys_admin", env!("CARGO_BIN_EXE_weft")]);
        command.args(args).output().expect("setpriv is part of every Debian")
    };
    for args in [
        &["lab", "up", "vl2-4servers", "--name", "no-bpf"][..],
        &["lab", "up", "trill-s1-s6", "--name", "no-bpf"],
        &["run", "vxlan/encapsulations", "--quick"],
        &["bench", "tester"],
    ] {
        assert_fails(&weft(args), 4, &["cannot run here", "not permitted", "CAP_BPF"]);
    }
    let doctor = weft(&["doctor", "-o", "json"]);
    assert_eq!(doctor.status.code(), Some(4), "{}", text(&doctor.stdout));
    let said: serde_json::Value = serde_json::from_slice(&doctor.stdout).expect("JSON");
    assert_eq!(said["schema_version"], 3);
    let uses = said["uses"].as_array().expect("a list");
    let (simulator, others) = uses.split_first().expect("there are uses");
    assert_eq!((&simulator["use"], &simulator["possible"]), (&"simulator".into(), &true.into()));
    assert!(others.iter().all(|one| one["possible"] == false && one["because"][0] == "rights"), "{others:?}");
    assert_eq!(before, Machine::now());
}

/// While somebody's lab is up: an ordinary user is told what works, nothing wrong of the lab, and on one screen.
#[test]
fn without_root_the_doctor_says_what_works_and_takes_no_lab_for_a_leftover() {
    let Some(_turn) = one_lab_at_a_time() else { return };
    struct Down;
    impl Drop for Down {
        fn drop(&mut self) {
            crate::common::run(&["lab", "down", "mine"]);
        }
    }
    let _down = Down;
    crate::common::ok(&["lab", "up", "vl2-4servers", "--name", "mine", "--overlay", "routed", "--unshaped", "--quiet"]);
    let dir = nothing_but_the_binary();
    let said = as_ordinary_user(&dir, &["doctor", "-o", "json"]);
    assert_eq!(said.status.code(), Some(0), "{}{}", text(&said.stdout), text(&said.stderr));
    let said: serde_json::Value = serde_json::from_slice(&said.stdout).expect("JSON");
    let all = |list: &str| said[list].as_array().expect("a list").clone();
    let check = |name: &str| all("checks").into_iter().find(|check| check["name"] == name).expect("it is there");
    assert_eq!(check("leftovers")["found"], "cannot tell without root");
    assert_eq!(
        (check("simulator")["verdict"].clone(), check("rights")["verdict"].clone()),
        ("pass".into(), "fail".into())
    );
    let possible: Vec<_> = all("uses").into_iter().filter(|one| one["possible"] == true).collect();
    assert!(possible.len() == 1 && possible[0]["use"] == "simulator", "{possible:?}");
    assert!(!said.to_string().contains("lab down"), "{said}");

    let user = format!(
        "TERM=dumb setpriv --reuid {NOBODY} --regid {NOBODY} --clear-groups {}/weft doctor",
        dir.path().display()
    );
    let (code, screen) = crate::terminal::Terminal::open(&user).end();
    assert_eq!(code, Some(0), "{screen}");
    assert!(screen.contains("simulator") && !screen.contains("lab down") && !screen.contains("NO "), "{screen}");
    assert!(
        screen.lines().count() <= 24 && screen.lines().all(|line| line.trim_end().chars().count() <= 80),
        "{screen}"
    );
}

#[test]
fn without_root_a_lab_is_refused_with_the_remedy() {
    let Some(_turn) = one_lab_at_a_time() else { return };
    let dir = nothing_but_the_binary();
    for (args, expected) in [
        (&["run", "vl2/smoke", "--engine", "lab"][..], ["root", "sudo"]),
        (&["lab", "up", "vl2-4servers"], ["root", "sudo"]),
        (&["bench", "datapath"], ["root", "CAP_BPF"]),
    ] {
        assert_fails(&as_ordinary_user(&dir, args), 4, &expected);
    }
    // Not even a place for results is looked at before.
    std::fs::set_permissions(dir.path(), PermissionsExt::from_mode(0o755)).expect("the folder is ours");
    assert_fails(&as_ordinary_user(&dir, &["run", "vl2/smoke", "--engine", "lab"]), 4, &["root", "sudo"]);
}

#[test]
fn without_frr_a_lab_names_the_package() {
    let Some(_turn) = one_lab_at_a_time() else { return };
    let before = Machine::now();
    let output = with_own_mounts("mount -t tmpfs none /usr/lib/frr; exec \"$WEFT\" lab up vl2-4servers --name no-frr");
    assert_fails(&output, 4, &["FRR is missing", "make deps"]);
    assert_eq!(before, Machine::now());
}

#[test]
fn on_a_full_disk_a_run_says_which_file_and_keeps_no_half_result() {
    let Some(_turn) = one_lab_at_a_time() else { return };
    let before = Machine::now();
    let output = with_own_mounts(
        "mount -t tmpfs -o size=100k none \"$DIR\"; status=0; \"$WEFT\" run vl2/smoke --engine lab --out \"$DIR/run\" || status=$?; \
         ls -A \"$DIR\"; exit $status",
    );
    assert_fails(&output, 1, &["cannot write", "records/", "No space left on device", "free some space"]);
    assert_eq!(text(&output.stdout), "", "something was left behind");
    assert_eq!(before, Machine::now());
}
