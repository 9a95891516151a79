//! Calls of schedulers' own commands.

use std::io::ErrorKind;
use std::process::Command;

use super::ClusterError;

/// A scheduler's command.
pub(super) struct Tool {
    /// Its name on the PATH.
    pub(super) program: &'static str,
    /// What to do where it is missing.
    pub(super) remedy: &'static str,
}

impl Tool {
    /// What it prints on standard output; its own words where it fails.
    pub(super) fn call<S: AsRef<std::ffi::OsStr>>(
        &self,
        args: impl IntoIterator<Item = S>,
    ) -> Result<String, ClusterError> {
        let mut command = Command::new(self.program);
        command.args(args).stdin(std::process::Stdio::null());
        let output = command.output().map_err(|error| self.failed(&error))?;
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned());
        }
        let said = String::from_utf8_lossy(&output.stderr);
        let said = said.lines().map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join("; ");
        let said = if said.is_empty() { output.status.to_string() } else { said };
        Err(ClusterError::Refused { program: self.program, said })
    }

    /// Why it could not be started.
    pub(super) fn failed(&self, error: &std::io::Error) -> ClusterError {
        match error.kind() {
            ErrorKind::NotFound => ClusterError::NoScheduler { program: self.program, remedy: self.remedy },
            _ => ClusterError::Refused { program: self.program, said: error.to_string() },
        }
    }
}
