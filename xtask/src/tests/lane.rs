//! Executables that run one after the other.

use std::fs;
use std::io::{self, Read, Seek, Write};
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use super::executables::{Executable, cargo};
use super::tally::Ends;

/// Where namespaces have their names.
const NAMES: &str = "/run/netns";

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
    pub(super) fn on_the_machine(root: &Path, executable: &Executable) -> Self {
        let mut command = Command::new(&executable.path);
        command.current_dir(root.join(&executable.folder));
        Self { name: executable.source.display().to_string(), command }
    }

    /// The names of its namespaces are in a folder that nobody else sees; and labs, which send at rates, come first.
    pub(super) fn apart(root: &Path, executable: &Executable) -> Self {
        let mut command = Command::new("unshare");
        let script = format!("mount -t tmpfs -o mode=0755 weft-tests {NAMES} && exec nice -n 5 \"$0\"");
        command.args(["--mount", "sh", "-ec", &script]).arg(&executable.path);
        command.current_dir(root.join(&executable.folder));
        Self { name: executable.source.display().to_string(), command }
    }

    /// Those in the documentation.
    pub(super) fn examples(root: &Path) -> Self {
        let mut command = cargo();
        command.args(["test", "--release", "--locked", "--workspace", "--doc", "--no-fail-fast"]).current_dir(root);
        Self { name: "examples in the documentation".to_owned(), command }
    }

    /// Runs it to its end; what it said, on both of its outputs, and how it ended.
    fn run(mut self) -> io::Result<(String, ExitStatus)> {
        let mut said = tempfile::tempfile()?;
        let status = self.command.stdin(Stdio::null()).stdout(said.try_clone()?).stderr(said.try_clone()?).status()?;
        let mut bytes = Vec::new();
        said.rewind()?;
        said.read_to_end(&mut bytes)?;
        Ok((String::from_utf8_lossy(&bytes).into_owned(), status))
    }
}

/// Runs all of them. What each one said is printed at its end, so that two lanes do not mix.
pub(super) fn run(jobs: Vec<Job>, ends: &Mutex<Ends>) {
    for job in jobs {
        let (name, start) = (job.name.clone(), Instant::now());
        say(&format!("running {name}\n"));
        let (said, how) = match job.run() {
            Ok((said, status)) => (said, Ok(status)),
            Err(error) => (String::new(), Err(error)),
        };
        let is_well = how.as_ref().is_ok_and(ExitStatus::success);
        let how = how.map_or_else(|error| format!("does not start: {error}"), |status| status.to_string());
        ends.lock().unwrap_or_else(PoisonError::into_inner).add(&name, &said, is_well);
        say(&format!("\n{name}: {how}, {:.1} s\n{said}\n", start.elapsed().as_secs_f64()));
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
        let mut expected = Ends::default();
        expected.add("kill -9 $$", "", false);
        expected.add("gone", "", false);
        expected.add(well, "test result: ok. 2 passed; 0 failed; 0 ignored", true);
        assert_eq!(ends.into_inner().unwrap(), expected);
    }
}
