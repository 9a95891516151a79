//! Daemons that run on this machine: what they are told, what they show, their metrics.

use std::path::PathBuf;

use serde_json::{Value, json};
use toml::Table;
use weft_node::{DaemonKind, NodeError, socket};
use weft_scenario::engine::Progress;

use super::said::within;
use super::{Item, files_of, kind_of, scrub};
use crate::LabError;

/// Where daemons' sockets are.
const SOCKETS: &str = "/run/weft";

/// One that may answer.
pub(super) struct Daemon {
    pub(super) name: String,
    kind: DaemonKind,
    socket: PathBuf,
}

/// Those whose sockets are in [`SOCKETS`]: named as by default, or with a word behind it (`vtep-blue.sock`).
pub(super) fn find() -> Vec<Daemon> {
    let usual = DaemonKind::Directory;
    let directory = Daemon { name: usual.word().to_owned(), kind: usual, socket: usual.socket() };
    let others = files_of(SOCKETS, "sock").into_iter().filter_map(|socket| {
        let name = socket.file_stem()?.to_str()?.to_owned();
        Some(Daemon { kind: kind_of(&name)?, name, socket })
    });
    others.chain(directory.socket.exists().then_some(directory)).collect()
}

impl Daemon {
    /// Its settings, and files of what it says.
    pub(super) fn tell(&self, progress: &dyn Progress) -> Result<(Option<Table>, Vec<Item>), LabError> {
        let item = |name: &str, text: String| Item::new(format!("daemons/{}/{name}", self.name), text);
        let (kind, path) = (self.kind, self.socket.clone());
        let settings = text_of(within(move || socket::config(kind, &path), progress)?);
        let Ok(table) = settings.parse::<Table>() else {
            return Ok((None, vec![item("settings.toml", format!("# {}", settings.replace('\n', " ")))]));
        };
        let mut items = vec![item("settings.toml", scrub::settings(&table))];
        for (name, what) in whats(self.kind) {
            let path = self.socket.clone();
            let shown = within(move || socket::show::<Value, Value>(kind, &path, what), progress)?;
            items.push(item(
                &format!("{name}.json"),
                text_of(shown.map(|shown| shown.map(|shown| format!("{shown:#}")))),
            ));
        }
        let path = self.socket.clone();
        items.push(item("metrics.txt", text_of(within(move || socket::metrics(kind, &path), progress)?)));
        Ok((Some(table), items))
    }
}

/// What such a daemon shows, by name.
fn whats(kind: DaemonKind) -> Vec<(&'static str, Value)> {
    match kind {
        DaemonKind::Agent | DaemonKind::Directory | DaemonKind::Switch | DaemonKind::Tor => {
            vec![("show", Value::Null)]
        }
        DaemonKind::Vtep => vec![
            ("vni", json!("vni")),
            ("fdb", json!({"fdb": {"vni": null}})),
            ("peers", json!("peers")),
            ("counters", json!("counters")),
        ],
        DaemonKind::Rbridge => {
            let whats = ["adjacency", "shared", "lsdb", "nickname", "route", "tree", "rpf", "fdb", "counters"];
            whats.map(|what| (what, json!(what))).into()
        }
    }
}

fn text_of(answer: Option<Result<String, NodeError>>) -> String {
    match answer {
        Some(Ok(text)) => text,
        Some(Err(error)) => error.to_string(),
        None => "no answer in time".to_owned(),
    }
}
