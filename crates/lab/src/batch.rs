//! Runs iproute2 batches (`ip`, `tc`, `bridge`) in the calling thread's namespace.
//!
//! Text batches are the one way in which a lab configures links: what failed can be repeated by hand.

use std::fmt::Display;
use std::io::Write;
use std::process::Stdio;

use crate::error::LabError;
use crate::process;

/// A program of iproute2 that reads batches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Program {
    /// Links, addresses, routes, neighbours.
    Ip,
    /// Queueing disciplines and filters.
    Tc,
    /// Forwarding database of VXLAN devices.
    Bridge,
}

impl Program {
    fn name(self) -> &'static str {
        match self {
            Self::Ip => "ip",
            Self::Tc => "tc",
            Self::Bridge => "bridge",
        }
    }
}

/// Runs all lines in the calling thread's namespace; stops at the first that fails and names it and the node.
pub(crate) fn run(program: Program, node: &str, lines: &[impl Display]) -> Result<(), LabError> {
    if lines.is_empty() {
        return Ok(());
    }
    let name = program.name();
    let mut child = process::command(name)
        .args(["-batch", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| missing_program(name, error))?;
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    // A program that stops early closes its input; its own message is the one worth showing.
    let _ = child.stdin.take().expect("standard input is a pipe").write_all(text.as_bytes());
    let output = child.wait_with_output().map_err(LabError::io(format!("run {name}")))?;
    let said = String::from_utf8_lossy(&output.stderr);
    if output.status.success() && !said.contains("Command failed") {
        return Ok(());
    }
    Err(failure(name, node, &text, &said))
}

fn missing_program(name: &str, error: std::io::Error) -> LabError {
    if error.kind() == std::io::ErrorKind::NotFound {
        return LabError::not_fit(format!("program `{name}` is missing"), "install Debian's package iproute2");
    }
    LabError::io(format!("run {name}"))(error)
}

/// iproute2 says `REASON`, then `Command failed -:NUMBER`.
fn failure(program: &'static str, node: &str, batch: &str, said: &str) -> LabError {
    let number = said
        .lines()
        .find_map(|line| line.strip_prefix("Command failed "))
        .and_then(|place| place.rsplit(':').next()?.trim().parse::<usize>().ok())
        .unwrap_or(0);
    let line = number.checked_sub(1).and_then(|index| batch.lines().nth(index)).unwrap_or("-batch -").to_owned();
    let reasons: Vec<&str> =
        said.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with("Command failed")).collect();
    let reason = if reasons.is_empty() { "no reason given".into() } else { reasons.join(" ") };
    LabError::Batch { node: node.into(), program, line, number, reason }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_names_the_node_and_the_line() {
        let lines = "link set dev lo up\nlink add dev x type nonsense\n";
        let error = failure("ip", "tor1", lines, "Error: Unknown device type.\nCommand failed -:2\n");
        assert_eq!(
            error.to_string(),
            "node `tor1`: `ip link add dev x type nonsense` (line 2 of its batch) failed: Error: Unknown device type."
        );
    }

    #[test]
    fn the_real_program_is_understood() {
        if !weft_needs::program("ip") {
            return;
        }
        let lines = ["link show dev lo", "link show dev weft-absent"];
        match run(Program::Ip, "here", &lines) {
            Err(LabError::Batch { number, line, reason, .. }) => {
                assert_eq!((number, line.as_str()), (2, "link show dev weft-absent"));
                assert!(reason.contains("does not exist"), "{reason}");
            }
            other => panic!("expected a batch error, got {other:?}"),
        }
    }

    #[test]
    fn no_lines_run_no_program() {
        run(Program::Bridge, "here", &[""; 0]).unwrap();
    }
}
