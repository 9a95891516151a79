//! On a terminal: Ctrl-C and the like reach the whole foreground process group, which no test by `kill` shows.

use std::io::{Read, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Arc, Mutex};

use crate::common::{Machine, ok, one_lab_at_a_time, our_workers, run, text, wait_for};

const CTRL_C: &str = "\x03";
const CTRL_BACKSLASH: &str = "\x1c";

/// A terminal in which a shell command runs; `$WEFT` is the binary.
pub(crate) struct Terminal {
    script: Child,
    keys: ChildStdin,
    screen: Arc<Mutex<String>>,
    reader: Option<std::thread::JoinHandle<()>>,
}

impl Terminal {
    pub(crate) fn open(command: &str) -> Self {
        let command = format!("stty cols 80 rows 24; ulimit -c 0; {command}");
        // Whoever runs the tests may have these signals ignored, as `nohup` and shells without job control do.
        let mut script = Command::new("env");
        script.args(["--default-signal=INT,QUIT,HUP", "script"]);
        script
            .args(["--quiet", "--return", "--command", &command, "/dev/null"])
            .env("WEFT", env!("CARGO_BIN_EXE_weft"));
        script.env("SHELL", "/bin/sh").env("TERM", "xterm").stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut script = script.spawn().expect("script is part of every Debian");
        let screen = Arc::new(Mutex::new(String::new()));
        let (shown, mut output) = (screen.clone(), script.stdout.take().expect("a pipe"));
        let reader = std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(count @ 1..) = output.read(&mut bytes) {
                shown.lock().expect("nobody panics with it").push_str(&text(&bytes[..count]));
            }
        });
        Self { keys: script.stdin.take().expect("a pipe"), script, screen, reader: Some(reader) }
    }

    pub(crate) fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).expect("the terminal is there");
        self.keys.flush().expect("the terminal is there");
    }

    pub(crate) fn enter(&mut self, line: &str) {
        self.press(&format!("{line}\n"));
    }

    fn shows(&self, words: &str) -> bool {
        self.screen.lock().expect("nobody panics with it").contains(words)
    }

    /// Waits until it shows the words; not those that were typed: a terminal shows them, too.
    pub(crate) fn wait_for(&mut self, words: &str) {
        wait_for(&format!("`{words}` on the terminal"), || {
            let has_ended = self.script.try_wait().expect("it is ours").is_some();
            let shows = self.shows(words);
            assert!(shows || !has_ended, "it ended without `{words}`: {}", self.screen.lock().expect("whole"));
            shows
        });
    }

    /// Waits for the end of the command: its exit code, and everything that was to be seen.
    pub(crate) fn end(mut self) -> (Option<i32>, String) {
        let code = self.script.wait().expect("it is ours").code();
        self.reader.take().map(std::thread::JoinHandle::join);
        (code, self.screen.lock().expect("nobody panics with it").clone())
    }

    /// The window is closed.
    fn vanish(mut self) {
        self.script.kill().expect("it is ours");
        self.script.wait().expect("it is ours");
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.script.kill();
        let _ = self.script.wait();
    }
}

struct Sweep;

impl Drop for Sweep {
    fn drop(&mut self) {
        let _ = run(&["lab", "down", "--all", "--yes"]);
    }
}

/// A trial in the lab whose workers are at work.
fn trial(out: &std::path::Path) -> Terminal {
    let terminal = Terminal::open(&format!("exec \"$WEFT\" run vl2/smoke --engine lab --out {}", out.display()));
    wait_for("traffic workers", || our_workers() >= 4);
    terminal
}

#[test]
fn ctrl_c_in_a_trial_of_a_lab_ends_it_as_interrupted() {
    let Some(_turn) = one_lab_at_a_time() else { return };
    let _sweep = Sweep;
    let before = Machine::now();
    let out = tempfile::tempdir().expect("a temporary folder");
    let mut terminal = trial(&out.path().join("run"));
    terminal.press(CTRL_C);
    let (code, screen) = terminal.end();
    assert_eq!(code, Some(130), "{screen}");
    assert!(screen.contains("interrupted") && !screen.contains("killed by signal"), "{screen}");
    assert_eq!(before, Machine::now());
}

#[test]
fn a_terminal_that_goes_away_leaves_no_lab() {
    let Some(_turn) = one_lab_at_a_time() else { return };
    let _sweep = Sweep;
    let before = Machine::now();
    let out = tempfile::tempdir().expect("a temporary folder");
    trial(&out.path().join("run")).vanish();
    wait_for("the end of the lab", || before == Machine::now());
}

/// Whoever wants an end at once has one, and the next command cleans up.
#[test]
fn ctrl_backslash_ends_workers_too_and_the_sweep_has_the_rest() {
    let Some(_turn) = one_lab_at_a_time() else { return };
    let _sweep = Sweep;
    let before = Machine::now();
    let out = tempfile::tempdir().expect("a temporary folder");
    let mut terminal = trial(&out.path().join("run"));
    terminal.press(CTRL_BACKSLASH);
    let (code, screen) = terminal.end();
    assert_ne!(code, Some(0), "{screen}");
    wait_for("the end of the workers", || our_workers() == 0);
    ok(&["lab", "down", "--all", "--yes"]);
    assert_eq!(before, Machine::now());
}

#[test]
fn ctrl_c_while_a_lab_comes_up_leaves_nothing() {
    let Some(_turn) = one_lab_at_a_time() else { return };
    let _sweep = Sweep;
    let before = Machine::now();
    for phase in ["namespaces", "links", "routing", "overlay"] {
        let mut terminal = Terminal::open("exec \"$WEFT\" lab up vl2-4servers --name stopped");
        terminal.wait_for(phase);
        terminal.press(CTRL_C);
        let (code, screen) = terminal.end();
        assert_eq!(code, Some(130), "{phase}: {screen}");
        assert!(screen.contains("interrupted"), "{phase}: {screen}");
        assert_eq!(before, Machine::now(), "{phase}");
    }
}

/// Two namespaces with a link between them, which go when this is dropped.
struct Link;

impl Link {
    fn new() -> Self {
        let script = "ip netns add tt-a && ip netns add tt-b && \
                      ip -n tt-a link add p0 type veth peer name p0 netns tt-b && \
                      ip -n tt-a link set p0 up && ip -n tt-b link set p0 up";
        assert!(Command::new("sh").args(["-c", script]).status().expect("sh is there").success());
        Self
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        let _ = Command::new("sh").args(["-c", "ip netns del tt-a; ip netns del tt-b"]).status();
    }
}

#[test]
fn ctrl_c_ends_measurements_and_benchmarks_as_interrupted() {
    let Some(_turn) = one_lab_at_a_time() else { return };
    let _link = Link::new();
    let before = Machine::now();
    for (command, sign) in [
        ("measure throughput --tx tt-a:p0 --rx tt-b:p0 --size 64", "throughput"),
        ("bench sim --jobs r1a", "r1a"),
        ("bench isolation", "isolation"),
    ] {
        let mut terminal = Terminal::open(&format!("exec \"$WEFT\" {command}"));
        terminal.wait_for(sign);
        terminal.press(CTRL_C);
        let (code, screen) = terminal.end();
        assert_eq!(code, Some(130), "{command}: {screen}");
        assert!(!screen.contains("signal"), "{command}: {screen}");
        assert_eq!(before, Machine::now(), "{command}");
    }
}

#[test]
fn down_all_asks_on_a_terminal() {
    let Some(_turn) = one_lab_at_a_time() else { return };
    let _sweep = Sweep;
    ok(&["lab", "up", "vl2-4servers", "--name", "asked", "--overlay", "routed", "--unshaped", "--quiet"]);
    let answered = |answer: &str| {
        let mut terminal = Terminal::open("exec \"$WEFT\" lab down --all");
        terminal.wait_for("[y/N]");
        terminal.enter(answer);
        let (code, screen) = terminal.end();
        assert!(screen.contains("lab asked (vl2-4servers, routed, 11 nodes, up)"), "{screen}");
        code
    };
    assert_eq!(answered(""), Some(1));
    assert_eq!(answered("n"), Some(1));
    assert!(ok(&["lab", "ps"]).contains("asked"));
    assert_eq!(answered("y"), Some(0));
    assert!(!ok(&["lab", "ps"]).contains("asked"));
}
