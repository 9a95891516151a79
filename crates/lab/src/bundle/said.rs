//! What a program or a daemon says within a time, unless the user asks to stop before.

use std::process::{Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use weft_scenario::engine::Progress;

use crate::LabError;

/// How long anybody may take.
const PATIENCE: Duration = Duration::from_secs(20);
/// How often it is looked whether the user asks to stop.
const LOOK: Duration = Duration::from_millis(50);

/// What a program prints. That it is not there, fails, or takes too long is said in its place.
pub(super) fn said(mut command: Command, progress: &dyn Progress) -> Result<String, LabError> {
    let name = command.get_program().to_string_lossy().into_owned();
    let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let child = match child {
        Ok(child) => child,
        Err(error) => return Ok(format!("{name}: {error}\n")),
    };
    let pid = i32::try_from(child.id()).ok().and_then(rustix::process::Pid::from_raw);
    let answer = within(move || child.wait_with_output(), progress);
    if !matches!(answer, Ok(Some(_)))
        && let Some(pid) = pid
    {
        // It is a child of ours that nobody has waited for to the end: the number is still its own.
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
    }
    Ok(match answer? {
        None => format!("{name}: not within {} s\n", PATIENCE.as_secs()),
        Some(Err(error)) => format!("{name}: {error}\n"),
        Some(Ok(output)) => {
            String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
        }
    })
}

/// What `work` returns; `None` if it takes too long. Then its thread is left to itself.
///
/// # Errors
/// [`LabError::Interrupted`].
pub(super) fn within<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
    progress: &dyn Progress,
) -> Result<Option<T>, LabError> {
    let (sender, answer) = channel();
    std::thread::spawn(move || {
        // Nobody may wait any more.
        let _ = sender.send(work());
    });
    let until = Instant::now() + PATIENCE;
    while Instant::now() < until {
        match answer.recv_timeout(LOOK) {
            Ok(answer) => return Ok(Some(answer)),
            Err(RecvTimeoutError::Disconnected) => return Ok(None),
            Err(RecvTimeoutError::Timeout) if progress.interrupted() => return Err(LabError::Interrupted),
            Err(RecvTimeoutError::Timeout) => {}
        }
    }
    Ok(None)
}
