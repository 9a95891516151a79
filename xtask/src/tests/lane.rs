//! Executables that run one after the other, each within a limit of time.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Read, Seek, Write};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use super::Which;
use super::executables::{Executable, cargo};
use super::tally::Ends;

/// Where namespaces have their names.
const NAMES: &str = "/run/netns";

/// What hangs is ended after that: several times what the slowest executable takes, for machines that are slow and busy.
const LIMIT: Duration = Duration::from_secs(20 * 60);

/// Pause between two looks at a running job.
const LOOK: Duration = Duration::from_millis(20);

/// Whether a test can be kept apart here. One without root makes no namespace.
pub(super) fn can_be_apart() -> bool {
    let may_unshare = || Command::new("unshare").args(["--mount", "true"]).stderr(Stdio::null()).status();
    fs::create_dir_all(NAMES).is_ok() && may_unshare().is_ok_and(|status| status.success())
}

pub(super) struct Job {
    name: String,
    command: Command,
}

impl Job {
    pub(super) fn on_the_machine(root: &Path, executable: &Executable, which: Which) -> Self {
        let mut command = Command::new(&executable.path);
        command.args(flags(which)).current_dir(root.join(&executable.folder));
        Self { name: executable.source.display().to_string(), command }
    }

    /// The names of its namespaces are in a folder that nobody else sees; and labs, which send at rates, come first.
    pub(super) fn apart(root: &Path, executable: &Executable, which: Which) -> Self {
        let mut command = Command::new("unshare");
        let script = format!("mount -t tmpfs -o mode=0755 weft-tests {NAMES} && exec nice -n 5 \"$0\" \"$@\"");
        command.args(["--mount", "sh", "-ec", &script]).arg(&executable.path).args(flags(which));
        command.current_dir(root.join(&executable.folder));
        Self { name: executable.source.display().to_string(), command }
    }

    /// Those in the documentation.
    pub(super) fn examples(root: &Path) -> Self {
        let mut command = cargo();
        command.args(["test", "--release", "--locked", "--workspace", "--doc", "--no-fail-fast"]).current_dir(root);
        Self { name: "examples in the documentation".to_owned(), command }
    }

    /// Runs it to its end, or to that of its time; what it said, on both of its outputs, and what was wrong with how it ended.
    fn run(&mut self, limit: Duration) -> io::Result<(String, Option<String>)> {
        let mut said = tempfile::tempfile()?;
        let mut child =
            self.command.stdin(Stdio::null()).stdout(said.try_clone()?).stderr(said.try_clone()?).spawn()?;
        let status = wait(&mut child, limit)?;
        let mut bytes = Vec::new();
        said.rewind()?;
        said.read_to_end(&mut bytes)?;
        let said = String::from_utf8_lossy(&bytes).into_owned();
        let problem = match status {
            Some(status) => (!status.success()).then(|| status.to_string()),
            None => Some(hung(&said, limit)),
        };
        Ok((said, problem))
    }
}

/// Arguments for libtest.
fn flags(which: Which) -> &'static [&'static str] {
    match which {
        Which::Usual => &[],
        Which::Long => &["--ignored"],
    }
}

/// Waits for its end; `None`: it did not come in time, and the child was killed with all that it had started.
fn wait(child: &mut Child, limit: Duration) -> io::Result<Option<ExitStatus>> {
    let start = Instant::now();
    while start.elapsed() < limit {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        thread::sleep(LOOK);
    }
    let started = descendants(child.id());
    child.kill()?;
    for pid in started.iter().filter_map(|pid| Pid::from_raw(i32::try_from(*pid).ok()?)) {
        // It may have ended by itself.
        let _ = kill_process(pid, Signal::KILL);
    }
    child.wait()?;
    Ok(None)
}

/// Processes that a process has started, and they, as far as their parents live.
fn descendants(parent: u32) -> BTreeSet<u32> {
    let children = |of: u32| {
        let threads = fs::read_dir(format!("/proc/{of}/task")).into_iter().flatten().flatten();
        let lists = threads.filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok());
        lists.flat_map(|list| list.split(' ').filter_map(|pid| pid.parse().ok()).collect::<Vec<u32>>()).collect()
    };
    let mut found = BTreeSet::new();
    let mut open: Vec<u32> = children(parent);
    while let Some(pid) = open.pop() {
        if found.insert(pid) {
            open.extend(children(pid));
        }
    }
    found
}

/// Names the tests that libtest was still waiting for.
fn hung(said: &str, limit: Duration) -> String {
    let tests = said.lines().filter_map(|line| line.strip_prefix("test "));
    let names = |end: &str| -> BTreeSet<&str> { tests.clone().filter_map(|line| line.strip_suffix(end)).collect() };
    let ended = names(" ... ok").union(&names(" ... FAILED")).copied().collect();
    let late = names(" has been running for over 60 seconds");
    let running: Vec<&str> = late.difference(&ended).copied().collect();
    let which = if running.is_empty() { "no test says that it is late".to_owned() } else { running.join(", ") };
    let minutes = limit.as_secs() / 60;
    format!(
        "killed after {minutes} minutes, in which tests must end; still running: {which}; `weft lab down --all` removes labs"
    )
}

/// Runs all of them. What each one said is printed at its end, so that two lanes do not mix.
pub(super) fn run(jobs: Vec<Job>, ends: &Mutex<Ends>) {
    for mut job in jobs {
        let start = Instant::now();
        let name = job.name.clone();
        say(&format!("running {name}\n"));
        let (said, problem) =
            job.run(LIMIT).unwrap_or_else(|error| (String::new(), Some(format!("does not start: {error}"))));
        let took = start.elapsed();
        ends.lock().unwrap_or_else(PoisonError::into_inner).add(&name, &said, took, problem.as_deref());
        let how = problem.as_deref().unwrap_or("ended well");
        say(&format!("\n{name}: {how}, {:.1} s\n{said}\n", took.as_secs_f64()));
    }
}

/// Whoever reads may have gone; the tests go on.
fn say(text: &str) {
    let _ = io::stdout().lock().write_all(text.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Job {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        Job { name: script.to_owned(), command }
    }

    #[test]
    fn every_job_runs_and_what_ends_badly_has_failed() {
        let ends = Mutex::new(Ends::default());
        let well = "echo 'test result: ok. 2 passed; 0 failed; 0 ignored' >&2";
        let missing = Job { name: "gone".to_owned(), command: Command::new("/nonexistent/program") };
        run(vec![shell("kill -9 $$"), missing, shell(well)], &ends);
        let ends = ends.into_inner().unwrap();
        let gone = "gone: does not start: No such file or directory (os error 2)";
        assert_eq!(ends.culprits(), ["kill -9 $$: signal: 9 (SIGKILL)", gone]);
        assert_eq!(ends.counts(), (2, 2));
    }

    #[test]
    fn what_does_not_end_is_killed_with_what_it_has_started_and_says_which_tests_did_not_end() {
        let late = |test: &str| format!("echo 'test {test} has been running for over 60 seconds'; ");
        let ended = "echo 'test a ... ok'; ";
        let mut job = shell(&format!("{}{}{ended}sh -c 'sleep 1000 & echo $!; wait' & wait", late("a"), late("b::c")));
        let (said, problem) = job.run(Duration::from_secs(1)).unwrap();
        let problem = problem.unwrap();
        assert!(problem.starts_with("killed after 0 minutes") && problem.contains("still running: b::c;"), "{problem}");
        let pid = said.lines().last().unwrap();
        let state = || fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let is_gone = || state().is_empty() || state().contains(") Z ");
        assert!(
            (0..1000).any(|_| is_gone() || {
                thread::sleep(LOOK);
                false
            }),
            "{pid} lives on"
        );
    }
}
