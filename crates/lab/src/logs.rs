//! What the daemons of a lab have written: a file for each daemon's output, and FRR's own logs of what changed.

use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags, openat};
use serde::Serialize;

use crate::error::LabError;
use crate::home::{frr_dir, lab_dir, log_dir, names_in};
use crate::state::{LabState, NodeState};

/// A log of a lab.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LogFile {
    /// The node that the daemon runs on.
    pub node: String,
    /// What it is: `agent`, `ospfd`.
    pub daemon: String,
    /// The file.
    pub path: PathBuf,
    /// Its length.
    pub bytes: u64,
}

/// A line of a log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LogLine {
    /// The daemon that wrote it.
    pub daemon: String,
    /// What it wrote, without the end of the line.
    pub line: String,
}

/// The logs of a lab's nodes, or of one of them, or of one daemon there; in the order of the nodes.
///
/// # Errors
/// [`LabError`]: no such lab or node, or a daemon that the node does not have, with those that it has.
pub fn logs(lab: &str, node: Option<&str>, daemon: Option<&str>) -> Result<Vec<LogFile>, LabError> {
    let state = LabState::load(lab)?;
    let nodes: Vec<&NodeState> = match node {
        Some(node) => vec![state.node(node)?],
        None => state.nodes.iter().collect(),
    };
    let mut found: Vec<LogFile> = nodes.iter().flat_map(|node| of_node(lab, node)).collect();
    if let Some(daemon) = daemon {
        let mut known: Vec<String> = found.iter().map(|log| log.daemon.clone()).collect();
        known.dedup();
        found.retain(|log| log.daemon == daemon);
        if found.is_empty() {
            let node = node.unwrap_or("any").to_owned();
            return Err(LabError::NoSuchDaemon { node, daemon: daemon.to_owned(), known: known.join(", ") });
        }
    }
    Ok(found)
}

fn of_node(lab: &str, node: &NodeState) -> Vec<LogFile> {
    let of = |folder: &Path, file: &str, daemon: &str| {
        let path = folder.join(file);
        let data = fs::symlink_metadata(&path).ok().filter(fs::Metadata::is_file)?;
        Some(LogFile { node: node.name.clone(), daemon: daemon.to_owned(), path, bytes: data.len() })
    };
    let (own, routing) = (log_dir(lab), frr_dir(&node.namespace));
    let own_names = names_in(&own);
    // What a node is called may have a dot, what a daemon is called has none.
    let outputs = own_names.iter().filter_map(|file| {
        let (of_node, daemon) = file.strip_suffix(".log")?.rsplit_once('.')?;
        if of_node == node.name { of(&own, file, daemon) } else { None }
    });
    let names = names_in(&routing);
    let further = names.iter().filter_map(|file| of(&routing, file, file.strip_suffix(".log")?));
    let mut found: Vec<LogFile> = outputs.chain(further).collect();
    found.sort_by(|a, b| (&a.daemon, &a.path).cmp(&(&b.daemon, &b.path)));
    found
}

/// Reads logs to their ends, again and again.
#[derive(Debug)]
pub struct Follower {
    lab: String,
    logs: Vec<Followed>,
}

#[derive(Debug)]
struct Followed {
    log: LogFile,
    /// Bytes of the file that have been read.
    read_bytes: u64,
    /// What has been read of a line that has no end yet.
    begun: Vec<u8>,
}

impl Follower {
    /// Begins with the first line of each.
    pub fn new(lab: &str, logs: Vec<LogFile>) -> Self {
        let logs = logs.into_iter().map(|log| Followed { log, read_bytes: 0, begun: Vec::new() }).collect();
        Self { lab: lab.to_owned(), logs }
    }

    /// Whole lines that have come since, log by log. A log that begins anew is read from its beginning.
    ///
    /// # Errors
    /// [`LabError::Io`]: a log cannot be read.
    pub fn lines(&mut self) -> Result<Vec<LogLine>, LabError> {
        let mut lines = Vec::new();
        for followed in &mut self.logs {
            followed.read(&mut lines)?;
        }
        Ok(lines)
    }

    /// The last lines of each log so far, also one that has no end yet.
    ///
    /// # Errors
    /// [`LabError::Io`]: a log cannot be read.
    pub fn last_lines(&mut self, most: usize) -> Result<Vec<LogLine>, LabError> {
        let mut lines = Vec::new();
        for followed in &mut self.logs {
            let mut own = Vec::new();
            followed.read(&mut own)?;
            own.extend(followed.take_begun());
            lines.extend(own.split_off(own.len().saturating_sub(most)));
        }
        Ok(lines)
    }

    /// Whether the lab is still there.
    pub fn goes_on(&self) -> bool {
        lab_dir(&self.lab).is_dir()
    }
}

impl Followed {
    fn read(&mut self, lines: &mut Vec<LogLine>) -> Result<(), LabError> {
        let Some(mut file) = open(&self.log.path)? else { return Ok(()) };
        let failed = || LabError::io(format!("read {}", self.log.path.display()));
        let length = file.metadata().map_err(failed())?.len();
        if length < self.read_bytes {
            self.read_bytes = 0;
            self.begun.clear();
        }
        file.seek(SeekFrom::Start(self.read_bytes)).map_err(failed())?;
        self.read_bytes += file.read_to_end(&mut self.begun).map_err(failed())? as u64;
        let Some(end) = self.begun.iter().rposition(|byte| *byte == b'\n') else { return Ok(()) };
        let rest = self.begun.split_off(end + 1);
        let whole = std::mem::replace(&mut self.begun, rest);
        lines.extend(String::from_utf8_lossy(&whole).lines().map(|line| self.line(line)));
        Ok(())
    }

    /// What has been read of a line that has no end yet, as a line.
    fn take_begun(&mut self) -> Option<LogLine> {
        let begun = std::mem::take(&mut self.begun);
        (!begun.is_empty()).then(|| self.line(&String::from_utf8_lossy(&begun)))
    }

    fn line(&self, line: &str) -> LogLine {
        LogLine { daemon: self.log.daemon.clone(), line: line.to_owned() }
    }
}

/// A link in its place is not followed: FRR's logs are in folders of another user. `None`: it is not there any more.
fn open(path: &Path) -> Result<Option<File>, LabError> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    match openat(CWD, path, flags, Mode::empty()) {
        Ok(file) => Ok(Some(File::from(file))),
        Err(rustix::io::Errno::NOENT) => Ok(None),
        Err(error) => Err(LabError::errno(format!("read {}", path.display()))(error)),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn whole_lines_come_once_and_a_new_log_is_read_from_its_beginning() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s1.agent.log");
        let log = LogFile { node: "s1".into(), daemon: "agent".into(), path: path.clone(), bytes: 0 };
        let mut follower = Follower::new("x", vec![log]);
        let mut read = || follower.lines().unwrap().into_iter().map(|line| line.line).collect::<Vec<_>>();
        assert!(read().is_empty(), "it is not there yet");
        let mut file = File::create(&path).unwrap();
        file.write_all(b"one\ntwo\nthr").unwrap();
        assert_eq!(read(), ["one", "two"]);
        file.write_all(b"ee\n").unwrap();
        assert_eq!(read(), ["three"]);
        assert!(read().is_empty());
        fs::write(&path, "anew\n").unwrap();
        assert_eq!(read(), ["anew"]);
        fs::write(&path, "b\nc").unwrap();
        let last = follower.last_lines(2).unwrap().into_iter().map(|line| line.line).collect::<Vec<_>>();
        assert_eq!(last, ["b", "c"]);
    }

    #[test]
    fn no_link_is_followed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s1.agent.log");
        std::os::unix::fs::symlink("/etc/passwd", &path).unwrap();
        assert!(open(&path).is_err());
    }
}
