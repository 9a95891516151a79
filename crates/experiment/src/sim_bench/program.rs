//! Programs that the benchmark starts: each is in a process group of its own, so that Ctrl-C reaches this process alone, and ends
//! when the user asks to stop or this process is killed.

#![allow(unsafe_code)]

use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal, set_parent_process_death_signal};
use weft_scenario::engine::{EngineError, Progress};

/// How often it is looked whether the program has ended, or the user asks to stop.
const LOOK: Duration = Duration::from_millis(10);

/// Runs a program to its end and returns what it wrote.
///
/// # Errors
/// [`EngineError::Interrupted`]; within it, why the program could not be started.
pub(super) fn output(command: &mut Command, progress: &dyn Progress) -> Result<io::Result<Output>, EngineError> {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    run(command, progress, Child::wait_with_output)
}

/// Starts a program and has `wait` wait for its end.
///
/// # Errors
/// [`EngineError::Interrupted`]; within it, why the program could not be started.
pub(super) fn run<T: Send>(
    command: &mut Command,
    progress: &dyn Progress,
    wait: impl FnOnce(Child) -> io::Result<T> + Send,
) -> Result<io::Result<T>, EngineError> {
    let die_with_us = || Ok(set_parent_process_death_signal(Some(Signal::KILL))?);
    // SAFETY: between fork and exec one system call is made; nothing allocates or takes a lock.
    unsafe { command.process_group(0).pre_exec(die_with_us) };
    let child = match command.spawn() {
        Ok(child) => child,
        Err(error) => return Ok(Err(error)),
    };
    let process = pidfd_open(Pid::from_child(&child), PidfdFlags::empty());
    std::thread::scope(|scope| {
        let waiting = scope.spawn(move || wait(child));
        while !waiting.is_finished() {
            if progress.interrupted() {
                // It may end by itself just now. Without a descriptor it has ended.
                let _ = process.as_ref().map(|process| pidfd_send_signal(process, Signal::KILL));
                let _ = waiting.join();
                return Err(EngineError::Interrupted);
            }
            std::thread::sleep(LOOK);
        }
        Ok(waiting.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    })
}

/// A user who has asked to stop, or has not.
#[cfg(test)]
pub(super) struct User {
    pub(super) stops: bool,
}

#[cfg(test)]
impl Progress for User {
    fn phase(&self, _: &str, _: &str) {}
    fn advance(&self, _: f64, _: &str) {}
    fn note(&self, _: &str) {}
    fn interrupted(&self) -> bool {
        self.stops
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    #[test]
    fn a_program_runs_to_its_end_in_a_group_of_its_own() {
        let mut command = Command::new("sh");
        command.args(["-c", "cut -d' ' -f1,5 /proc/$$/stat"]);
        let output = output(&mut command, &User { stops: false }).expect("nobody stops it").expect("it runs");
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let ids: Vec<&str> = said.split_whitespace().collect();
        assert!(ids.len() == 2 && ids[0] == ids[1], "{said}");
    }

    #[test]
    fn who_asks_to_stop_is_not_kept_waiting() {
        let start = Instant::now();
        let outcome = output(Command::new("sleep").arg("600"), &User { stops: true });
        assert!(matches!(outcome, Err(EngineError::Interrupted)));
        assert!(start.elapsed() < Duration::from_secs(60));
    }

    #[test]
    fn what_is_not_there_cannot_be_started() {
        let outcome = output(&mut Command::new("/nowhere/at/all"), &User { stops: false });
        assert!(outcome.expect("nobody stops it").is_err());
    }
}
