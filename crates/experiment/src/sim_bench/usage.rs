//! What another program costs: the kernel's account of a process once it has ended.

#![allow(unsafe_code)]

use std::fs::File;
use std::io::{self, Read, Seek};
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitStatus, Stdio};

use weft_scenario::engine::{EngineError, Progress};

use super::{failed, program};

/// Most of a program's messages that is looked at.
const LINE_BYTES_MAX: u64 = 4_096;

/// CPU time and memory of a process, with all its threads.
#[derive(Clone, Copy, Debug)]
pub(super) struct Usage {
    /// User and system, from the start of the process to its end.
    pub(super) cpu_s: f64,
    /// Largest resident size. It begins with that of this process, of which the other is a copy at first.
    pub(super) peak_rss_bytes: u64,
}

/// Runs a program to its end, with nothing to read and standard output thrown away; an error has a line of what it said.
pub(super) fn run(command: &mut Command, name: &str, progress: &dyn Progress) -> Result<Usage, EngineError> {
    let said = tempfile::tempfile().map_err(failed)?;
    let for_child = said.try_clone().map_err(failed)?;
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(for_child);
    let ended = program::run(command, progress, |child| wait(child.id()))?;
    let (status, usage) = ended.map_err(|error| EngineError::Failed(format!("{name} cannot be started: {error}")))?;
    match status.success() {
        true => Ok(usage),
        false => Err(EngineError::Failed(format!("{name} failed: {} ({status})", first_line(said)))),
    }
}

/// Waits for a child that nobody else waits for.
fn wait(pid: u32) -> io::Result<(ExitStatus, Usage)> {
    let mut status = 0;
    // SAFETY: rusage is integers, of which all bits may be 0.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    loop {
        // SAFETY: both pointers are to locals that outlive the call.
        let ended = unsafe { libc::wait4(pid as libc::pid_t, &raw mut status, 0, &raw mut usage) };
        if ended >= 0 {
            break;
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
    let cpu_s = seconds(usage.ru_utime) + seconds(usage.ru_stime);
    Ok((ExitStatus::from_raw(status), Usage { cpu_s, peak_rss_bytes: usage.ru_maxrss.max(0) as u64 * 1024 }))
}

/// The first line that a program wrote, of what fits into a message.
fn first_line(mut said: File) -> String {
    let mut bytes = Vec::new();
    let read = said.rewind().and_then(|()| said.take(LINE_BYTES_MAX).read_to_end(&mut bytes));
    let text = String::from_utf8_lossy(&bytes);
    match (read, text.lines().find(|line| !line.trim().is_empty())) {
        (Ok(_), Some(line)) => line.trim().to_owned(),
        _ => "no message".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::program::User;
    use super::*;

    fn sh(script: &str) -> Result<Usage, EngineError> {
        run(Command::new("sh").args(["-c", script]), "sh", &User { stops: false })
    }

    #[test]
    fn a_process_is_charged_for_what_it_did_and_not_for_its_sleep() {
        let started = Instant::now();
        let busy = sh("i=0; while [ $i -lt 100000 ]; do i=$((i + 1)); done").expect("it counts");
        assert!(busy.cpu_s > 0.001 && busy.cpu_s <= started.elapsed().as_secs_f64() + 0.01, "{busy:?}");
        assert!(busy.peak_rss_bytes > 100_000, "{busy:?}");
        let idle = sh("sleep 0.2").expect("it sleeps");
        assert!(idle.cpu_s < 0.15, "{idle:?}");
    }

    #[test]
    fn a_failure_says_what_the_program_said() {
        let why = |script| sh(script).expect_err("it fails").to_string();
        assert_eq!(why("echo; echo first >&2; echo second >&2; exit 3"), "sh failed: first (exit status: 3)");
        assert_eq!(why("exit 1"), "sh failed: no message (exit status: 1)");
        assert!(why("kill -9 $$").contains("signal: 9"));
        let missing = run(&mut Command::new("/nowhere/at/all"), "it", &User { stops: false })
            .expect_err("there is none")
            .to_string();
        assert!(missing.starts_with("it cannot be started: "), "{missing}");
    }
}
