//! `weft lab logs`.

use std::process::ExitCode;
use std::time::Duration;

use serde::Serialize;
use weft_lab::{Follower, LogFile, LogLine};

use super::{failure, lab_name};
use crate::args::Output;
use crate::exit::Failure;
use crate::output::{self, Rows};

/// How often it is looked for new lines.
const LOOK: Duration = Duration::from_millis(200);

/// Which lines are shown.
pub(super) struct Wanted {
    pub(super) node: String,
    pub(super) daemon: Option<String>,
    /// So many of each log at the beginning; all without it.
    pub(super) lines: Option<usize>,
    /// Whether what comes is shown, too.
    pub(super) follow: bool,
}

#[derive(Serialize)]
struct LogList {
    schema_version: u32,
    lab: String,
    logs: Vec<LogFile>,
}

#[derive(Serialize)]
struct Lines<'a> {
    schema_version: u32,
    lab: &'a str,
    node: &'a str,
    lines: Vec<LogLine>,
}

/// Lists the logs of a lab.
pub(super) fn list(lab: Option<String>, format: Output) -> Result<ExitCode, Failure> {
    let lab = lab_name(lab)?;
    let logs = weft_lab::logs(&lab, None, None).map_err(failure)?;
    let mut rows = Rows::new(&["node", "daemon", "bytes", "file"]);
    for log in &logs {
        rows.push(vec![log.node.clone(), log.daemon.clone(), log.bytes.to_string(), log.path.display().to_string()]);
    }
    output::print(format, &rows, &LogList { schema_version: 1, lab, logs })?;
    Ok(ExitCode::SUCCESS)
}

/// Shows lines of a node's logs.
pub(super) fn show(lab: Option<String>, wanted: &Wanted, format: Output) -> Result<ExitCode, Failure> {
    if wanted.follow && format == Output::Csv {
        return Err(Failure::usage("lines that come are text or -o json, an object for each"));
    }
    let lab = lab_name(lab)?;
    let logs = weft_lab::logs(&lab, Some(&wanted.node), wanted.daemon.as_deref()).map_err(failure)?;
    let several = logs.iter().any(|log| log.daemon != logs[0].daemon);
    let widest = logs.iter().map(|log| log.daemon.len()).max().unwrap_or(0);
    let text = |line: &LogLine| match several {
        true => format!("{:widest$} | {}", line.daemon, line.line),
        false => line.line.clone(),
    };
    let mut follower = Follower::new(&lab, logs);
    let first = follower.last_lines(wanted.lines.unwrap_or(usize::MAX)).map_err(failure)?;
    if wanted.follow {
        let shown = |line: &LogLine| match format {
            Output::Json => serde_json::to_string(line).map_err(Failure::failed),
            _ => Ok(text(line)),
        };
        return follow(&mut follower, first, shown);
    }
    match format {
        Output::Table => {
            for line in &first {
                if !output::stream_line(&text(line))? {
                    break;
                }
            }
        }
        _ => {
            let mut rows = Rows::new(&["daemon", "line"]);
            first.iter().for_each(|line| rows.push(vec![line.daemon.clone(), line.line.clone()]));
            let lines = Lines { schema_version: 1, lab: &lab, node: &wanted.node, lines: first };
            output::print(format, &rows, &lines)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Until the lab is gone, or nobody reads any more.
fn follow(
    follower: &mut Follower,
    mut lines: Vec<LogLine>,
    shown: impl Fn(&LogLine) -> Result<String, Failure>,
) -> Result<ExitCode, Failure> {
    loop {
        for line in &lines {
            if !output::stream_line(&shown(line)?)? {
                return Ok(ExitCode::SUCCESS);
            }
        }
        if !follower.goes_on() {
            return Ok(ExitCode::SUCCESS);
        }
        std::thread::sleep(LOOK);
        lines = follower.lines().map_err(failure)?;
    }
}
