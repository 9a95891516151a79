//! One archive for a bug report: what this machine is, what its daemons are told and say, and nothing secret.
//!
//! ```text
//! weft-bundle/about.txt                   version, kernel, distribution
//! weft-bundle/doctor.json                 what `weft doctor` says
//! weft-bundle/settings/NAME.toml          files of /etc/weft
//! weft-bundle/daemons/NAME/settings.toml  settings in force of each daemon that answers
//! weft-bundle/daemons/NAME/WHAT.json      what `weft show` says of it
//! weft-bundle/daemons/NAME/metrics.txt    its metrics
//! weft-bundle/journal/UNIT.txt            last lines of each unit of ours
//! weft-bundle/pins.txt                    what is pinned in /run/weft/bpf
//! weft-bundle/interfaces/NAME.txt         links, addresses and routes of interfaces that settings name
//! ```
//!
//! `scrub` takes secrets out of every one of them; `daemons` and `said` ask. The archive is made in memory and written whole.

mod daemons;
mod said;
mod scrub;

use std::collections::BTreeSet;
use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;
use toml::Table;
use weft_node::DaemonKind;
use weft_scenario::engine::Progress;

use crate::LabError;
use crate::{doctor, process};
use said::said;
use scrub::Scrub;

/// Where settings are unless their user says otherwise.
const SETTINGS: &str = "/etc/weft";
const PINS: &str = weft_datapath::bpffs::MOUNT_POINT;
/// What all names in the archive begin with.
const ROOT: &str = "weft-bundle";
/// Lines of a unit's journal.
const JOURNAL_LINES: &str = "5000";

/// One file of the archive.
struct Item {
    name: String,
    text: String,
}

/// Writes the archive, a `.tar.gz` that only its user may read; returns the names of what is in it.
///
/// # Errors
/// [`LabError::Bundle`] if the file is there already or cannot be written, [`LabError::Interrupted`]; then there is no file.
pub fn write(out: &Path, progress: &dyn Progress) -> Result<Vec<String>, LabError> {
    let failed = |why: std::io::Error| LabError::Bundle { path: out.to_owned(), why: why.to_string() };
    if out.symlink_metadata().is_ok() {
        return Err(failed(std::io::ErrorKind::AlreadyExists.into()));
    }
    let items = gather(progress)?;
    let archive = archive(&items).map_err(failed)?;
    if progress.interrupted() {
        return Err(LabError::Interrupted);
    }
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(out);
    let written = file.and_then(|mut file| file.write_all(&archive).and_then(|()| file.sync_all()));
    written.map_err(|error| {
        if error.kind() != std::io::ErrorKind::AlreadyExists {
            // The first error is the one to tell.
            let _ = std::fs::remove_file(out);
        }
        failed(error)
    })?;
    Ok(items.into_iter().map(|item| item.name).collect())
}

/// Everything, without secrets.
fn gather(progress: &dyn Progress) -> Result<Vec<Item>, LabError> {
    let step = |name: &str, done: f64| {
        progress.phase("bundle", name);
        progress.advance(done, name);
        if progress.interrupted() { Err(LabError::Interrupted) } else { Ok(()) }
    };
    step("machine", 0.0)?;
    let mut items = vec![Item::new("about.txt", about())];
    step("doctor", 0.05)?;
    let report = serde_json::to_string_pretty(&doctor::examine());
    items.push(Item::new("doctor.json", report.unwrap_or_else(|error| error.to_string())));
    step("settings", 0.2)?;
    let (mut tables, files) = settings_files();
    items.extend(files);
    let found = daemons::find();
    for (place, daemon) in found.iter().enumerate() {
        step(&daemon.name, 0.2 + 0.4 * place as f64 / found.len() as f64)?;
        let (table, said) = daemon.tell(progress)?;
        tables.extend(table);
        items.extend(said);
    }
    step("journal", 0.6)?;
    for unit in units() {
        let mut journal = process::command("journalctl");
        journal.args(["--no-pager", "--output", "short-iso-precise", "--lines", JOURNAL_LINES, "--unit", &unit]);
        items.push(Item::new(format!("journal/{unit}.txt"), said(journal, progress)?));
    }
    step("interfaces", 0.8)?;
    items.push(Item::new("pins.txt", pins()));
    for interface in interfaces(&tables) {
        items.push(Item::new(format!("interfaces/{interface}.txt"), about_interface(&interface, progress)?));
    }
    step("scrubbing", 0.9)?;
    let scrub = Scrub::of(&tables);
    items.iter_mut().for_each(|item| item.text = scrub.clean(&item.text));
    Ok(items)
}

impl Item {
    fn new(name: impl Into<String>, text: impl Into<String>) -> Self {
        Self { name: name.into(), text: text.into() }
    }
}

fn archive(items: &[Item]) -> std::io::Result<Vec<u8>> {
    let mut archive = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::default()));
    for Item { name, text } in items {
        let mut header = tar::Header::new_gnu();
        header.set_size(text.len() as u64);
        header.set_mode(0o600);
        header.set_mtime(0);
        archive.append_data(&mut header, format!("{ROOT}/{name}"), text.as_bytes())?;
    }
    archive.into_inner()?.finish()
}

fn about() -> String {
    let read = |path| std::fs::read_to_string(path).unwrap_or_else(|error| format!("{path}: {error}\n"));
    let (kernel, system, up) = (read("/proc/version"), read("/etc/os-release"), read("/proc/uptime"));
    format!("weft {}\n{kernel}{system}uptime, seconds: {up}", env!("CARGO_PKG_VERSION"))
}

/// Settings that are files, each as a table and as text without secrets. What is no TOML stays out: nobody knows what is in it.
fn settings_files() -> (Vec<Table>, Vec<Item>) {
    let (mut tables, mut items) = (Vec::new(), Vec::new());
    for path in files_of(SETTINGS, "toml") {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let text = match std::fs::read_to_string(&path).map_err(|error| error.to_string()) {
            Ok(text) => match text.parse::<Table>() {
                Ok(table) => {
                    let clean = scrub::settings(&table);
                    tables.push(table);
                    clean
                }
                Err(error) => format!("# left out, it is no TOML: {}\n", error.message()),
            },
            Err(why) => format!("# {why}\n"),
        };
        items.push(Item::new(format!("settings/{name}"), text));
    }
    (tables, items)
}

/// Files of a folder with this ending, in order.
fn files_of(folder: &str, ending: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut files: Vec<PathBuf> =
        entries.filter(|path| path.extension().is_some_and(|found| found == ending)).collect();
    files.sort();
    files
}

/// Names of units.
fn units() -> Vec<String> {
    DaemonKind::ALL.iter().map(|kind| format!("weft-{}.service", kind.word())).collect()
}

/// Names of what is pinned.
fn pins() -> String {
    let mut names = Vec::new();
    let mut folders = vec![PathBuf::from(PINS)];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                folders.push(entry.path());
            }
            names.push(format!("{}\n", entry.path().display()));
        }
    }
    names.sort();
    names.concat()
}

/// Interfaces of this machine that settings name, and those that an agent makes.
fn interfaces(tables: &[Table]) -> BTreeSet<String> {
    let mut named: BTreeSet<String> = ["weft-up0", "weft-up1"].map(str::to_owned).into();
    for table in tables {
        scrub::each_text(table, &mut |_, text| {
            named.insert(text.to_owned());
        });
    }
    named.retain(|name| {
        !name.contains('/') && Path::new("/sys/class/net").join(name).exists() && !name.starts_with('.')
    });
    named.remove("");
    named
}

fn about_interface(name: &str, progress: &dyn Progress) -> Result<String, LabError> {
    let mut text = String::new();
    for arguments in ["-details -statistics link show dev", "address show dev", "route show table all dev"] {
        let mut command = process::command("ip");
        command.args(arguments.split(' ')).arg(name);
        text += &format!("$ ip {arguments} {name}\n{}\n", said(command, progress)?);
    }
    Ok(text)
}

/// The daemons that can be asked here.
fn kind_of(stem: &str) -> Option<DaemonKind> {
    DaemonKind::ALL
        .into_iter()
        .find(|kind| stem.strip_prefix(kind.word()).is_some_and(|rest| rest.is_empty() || rest.starts_with('-')))
}
