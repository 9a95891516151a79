//! How every daemon lives: its settings are read and checked, folders made, its socket bound, it starts and says that it is
//! ready; then one loop waits for descriptors, its machine's deadline, requests by the socket and by HTTP, and signals, until the end.

use std::collections::BTreeSet;
use std::net::SocketAddrV4;
use std::path::{Path, PathBuf};
use std::time::Instant;

use rustix::thread::CapabilitySet;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tracing::{info, warn};

use crate::error::NodeError;
use crate::left::{self, Left};
use crate::poll::Poller;
use crate::service::ServiceManager;
use crate::settings_file::to_text;
use crate::socket::{Answer, ControlSocket, Reloaded, Request};
use crate::stop::Stop;
use crate::watch::{self, Metrics, Readiness, Watch};
use crate::{CHANGES_LOG, READY_LOG, descriptors, run_folder};

/// Tokens of what every daemon waits for; a daemon numbers its own from 0.
const STOP: u64 = u64::MAX;
const RELOAD: u64 = u64::MAX - 1;
const CONTROL: u64 = u64::MAX - 2;
const WATCH: u64 = u64::MAX - 3;

/// The daemons.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DaemonKind {
    Agent,
    Directory,
    Switch,
    Tor,
    Vtep,
    Rbridge,
}

impl DaemonKind {
    /// Every one.
    pub const ALL: [Self; 6] = [Self::Agent, Self::Directory, Self::Switch, Self::Tor, Self::Vtep, Self::Rbridge];

    /// As in `weft node WORD`.
    pub fn word(self) -> &'static str {
        match self {
            Self::Agent => "agent",
            Self::Directory => "directory",
            Self::Switch => "switch",
            Self::Tor => "tor",
            Self::Vtep => "vtep",
            Self::Rbridge => "rbridge",
        }
    }

    /// As in a sentence.
    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::Agent => "agent",
            Self::Directory => "directory server",
            Self::Switch => "switch",
            Self::Tor => "ToR reporter",
            Self::Vtep => "VTEP",
            Self::Rbridge => "RBridge",
        }
    }

    /// The port of its metrics in examples, and in what Prometheus is told to ask in `contrib/prometheus`.
    pub fn metrics_port(self) -> u16 {
        match self {
            Self::Agent => 9541,
            Self::Directory => 9542,
            Self::Switch => 9543,
            Self::Tor => 9544,
            Self::Vtep => 9545,
            Self::Rbridge => 9546,
        }
    }

    /// Whether it has a data path of its own, which may outlive it: a ToR reporter reads that of the switch.
    pub(crate) fn has_data_path(self) -> bool {
        matches!(self, Self::Agent | Self::Switch | Self::Vtep | Self::Rbridge)
    }

    /// What of root's rights it needs, as a service and in a lab. Started by hand it has what it was started with.
    pub fn capabilities(self) -> CapabilitySet {
        let programs = CapabilitySet::BPF | CapabilitySet::PERFMON | CapabilitySet::NET_ADMIN;
        match self {
            Self::Agent | Self::Vtep | Self::Rbridge => programs | CapabilitySet::NET_RAW,
            Self::Switch => programs,
            Self::Tor => CapabilitySet::BPF,
            Self::Directory => CapabilitySet::empty(),
        }
    }

    /// Where it listens unless its settings say otherwise.
    pub fn socket(self) -> PathBuf {
        // A folder of its own, because it is not root that a directory server runs as; its clients' sessions are there, too.
        let name = if self == Self::Directory { "directory/control" } else { self.word() };
        PathBuf::from(format!("/run/weft/{name}.sock"))
    }
}

/// Gives a daemon its settings, at the start and at each reload.
pub type Load<'a, S> = dyn Fn() -> Result<S, NodeError> + 'a;

/// What the skeleton wants to know of settings.
pub(crate) trait Settings: Clone + Serialize {
    /// Keys that may change while the daemon runs, a whole table by its name.
    const LIVE: &'static [&'static str];

    /// Whether they can work, as far as that is known before anything is made.
    fn check(&self) -> Result<(), NodeError>;

    /// The part of [`Self::check`] that looks at nothing but them.
    fn check_alone(&self) -> Result<(), NodeError> {
        self.check()
    }

    /// Its socket, and where its data path is pinned.
    fn places(&self) -> (&Path, Option<&Path>);

    /// Where `/metrics`, `/healthz` and `/readyz` are; `None`: nowhere.
    fn http_listen(&self) -> Option<SocketAddrV4>;
}

/// What differs between daemons.
pub(crate) trait Daemon: Sized {
    const KIND: DaemonKind;

    type Settings: Settings;
    /// What can be shown of it.
    type What: DeserializeOwned;
    type Shown: Serialize;
    /// What can be added and removed.
    type Item: DeserializeOwned + Serialize;

    /// Its socket and its folders are there. On failure it leaves nothing behind.
    fn start(settings: &Self::Settings) -> Result<Self, NodeError>;

    /// Who it is, for people who wait for that.
    fn ready_line(&self) -> String;

    /// Names what it waits for, each with a token of its own.
    fn watch(&self, _: &Poller) -> Result<(), NodeError> {
        Ok(())
    }

    /// Something with this token is readable. What is left unread is told again.
    fn ready(&mut self, _token: u64) -> Result<(), NodeError> {
        Ok(())
    }

    /// The clock that its machine lives by.
    fn now_ns(&self) -> u64 {
        0
    }

    /// When [`Self::deadline`] wants to be called; `None`: not at all.
    fn next_deadline_ns(&self) -> Option<u64> {
        None
    }

    /// That time has come.
    fn deadline(&mut self) -> Result<(), NodeError> {
        Ok(())
    }

    fn show(&self, what: Self::What) -> Result<Self::Shown, NodeError>;

    /// Lists its metrics of now: what it shows in numbers, every label's values bounded by a table.
    fn metrics(&self, to: &mut Metrics) -> Result<(), NodeError>;

    /// Whether it can do its work now.
    fn readiness(&self) -> Readiness {
        Box::new(|| Ok(()))
    }

    /// A veth pair that it made for its data path, by its near end.
    fn pair(_: &Self::Settings) -> Option<&str> {
        None
    }

    /// HTTP is there, at this address.
    fn is_watched_at(&mut self, _: SocketAddrV4) {}

    /// The settings in force, where they can be other than those that were read.
    fn in_force(&self, settings: &Self::Settings) -> Self::Settings {
        settings.clone()
    }

    /// Adds something, or removes it. Nobody asks for [`Nothing`](crate::socket::Nothing).
    fn change(&mut self, _: Self::Item, _add: bool) -> Result<(), NodeError> {
        Ok(())
    }

    /// Becomes what the settings say, which are good and differ from those before in [`Settings::LIVE`] only; on failure it
    /// goes on as before. Returns what is no longer there, for people.
    fn reload(&mut self, settings: &Self::Settings) -> Result<Vec<String>, NodeError>;

    /// Ends: with its data path if that is not pinned, or is to be removed.
    fn end(self, remove: bool) -> Result<(), NodeError>;
}

/// Names as in a sentence: `eth1, eth2`.
pub(crate) fn listed<T: std::fmt::Display>(all: &[T]) -> String {
    all.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// `1 segment`, `2 segments`.
pub(crate) fn counted(count: usize, one: &str) -> String {
    format!("{count} {one}{}", if count == 1 { "" } else { "s" })
}

/// Nanoseconds since a daemon began.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock(Instant);

impl Clock {
    pub(crate) fn start() -> Self {
        Self(Instant::now())
    }

    pub(crate) fn now_ns(&self) -> u64 {
        u64::try_from(self.0.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }
}

/// A daemon's whole life.
pub(crate) fn run<D: Daemon>(load: &Load<'_, D::Settings>, stop: &Stop) -> Result<(), NodeError> {
    descriptors::raise();
    descriptors::suffice()?;
    let settings = load()?;
    settings.check()?;
    let (socket, pin_dir) = settings.places();
    let control = ControlSocket::bind(socket)?;
    let http = settings.http_listen().map(watch::listen).transpose()?;
    run_folder::for_pins(pin_dir)?;
    let mut daemon = D::start(&settings)?;
    if let Some(pin_dir) = pin_dir.filter(|_| D::KIND.has_data_path()) {
        let pair = D::pair(&settings).map(str::to_owned);
        Left { pin_dir: pin_dir.to_owned(), pair }.note(socket)?;
    }
    let watch = http.map(|listener| Watch::start(listener, D::KIND)).transpose()?;
    let watched = watch.as_ref().and_then(Watch::address);
    if let Some(address) = watched {
        daemon.is_watched_at(address);
    }
    let ready = daemon.ready_line();
    let metrics = watched.map_or_else(String::new, |address| format!("; metrics at http://{address}/metrics"));
    let line = format!("{ready}; socket {}{metrics}", socket.display());
    let manager = ServiceManager::here();
    let mut served = Served { daemon, settings, load, control, watch, stop, manager, remove: false };
    let poller = Poller::new()?;
    poller.add(stop, STOP)?;
    poller.add(stop.reload_fd(), RELOAD)?;
    poller.add(&served.control, CONTROL)?;
    served.watch.as_ref().map_or(Ok(()), |watch| poller.add(watch, WATCH))?;
    served.daemon.watch(&poller)?;
    // All that it has for good is open now.
    let begun = descriptors::suffice();
    if begun.is_ok() {
        info!(target: READY_LOG, "{line}");
        served.manager.ready(&ready);
        while served.turn(&poller)? {}
        served.manager.stopping();
    }
    drop(served.watch);
    let (socket, pin_dir) = served.settings.places();
    let remove = served.remove || pin_dir.is_none();
    let ended = served.daemon.end(remove);
    if remove && ended.is_ok() {
        left::forget(socket);
    }
    begun.and(ended)
}

/// Serves a daemon that takes no more requests until it has come to an end by itself.
pub(crate) fn serve_until<D: Daemon>(daemon: &mut D, is_over: impl Fn(&D) -> bool) -> Result<(), NodeError> {
    let poller = Poller::new()?;
    daemon.watch(&poller)?;
    while !is_over(daemon) {
        for token in wait(daemon, &poller, None)? {
            daemon.ready(token)?;
        }
        meet_deadline(daemon)?;
    }
    Ok(())
}

/// Waits until something can be read, for the daemon's deadline, or for so long.
fn wait(daemon: &impl Daemon, poller: &Poller, at_most_ns: Option<u64>) -> Result<Vec<u64>, NodeError> {
    let deadline_ns = daemon.next_deadline_ns().map(|at_ns| at_ns.saturating_sub(daemon.now_ns()));
    poller.wait(deadline_ns.into_iter().chain(at_most_ns).min())
}

fn meet_deadline(daemon: &mut impl Daemon) -> Result<(), NodeError> {
    let is_due = daemon.next_deadline_ns().is_some_and(|at_ns| at_ns <= daemon.now_ns());
    if is_due { daemon.deadline() } else { Ok(()) }
}

/// A daemon, and what all have around them.
struct Served<'a, D: Daemon> {
    daemon: D,
    settings: D::Settings,
    load: &'a Load<'a, D::Settings>,
    control: ControlSocket,
    watch: Option<Watch>,
    stop: &'a Stop,
    manager: ServiceManager,
    /// Whether somebody wants the data path removed although it is pinned.
    remove: bool,
}

impl<D: Daemon> Served<'_, D> {
    /// Waits once, and hands on what happened; false: somebody asks to stop.
    fn turn(&mut self, poller: &Poller) -> Result<bool, NodeError> {
        let alive_ns = self.manager.alive();
        for token in wait(&self.daemon, poller, alive_ns)? {
            match token {
                STOP => {
                    if !self.remove {
                        let stays = self.settings.places().1.filter(|_| D::KIND.has_data_path());
                        let stays =
                            stays.map(|dir| format!("; its data path stays at work, pinned in {}", dir.display()));
                        info!(target: CHANGES_LOG, "ends by SIGTERM or SIGINT{}", stays.unwrap_or_default());
                    }
                    return Ok(false);
                }
                RELOAD => {
                    self.stop.take_reload();
                    // A refusal is in the log.
                    let _ = self.reload("SIGHUP");
                }
                CONTROL => self.answer(),
                WATCH => self.watch.iter().for_each(|watch| watch.answer(&self.daemon)),
                _ => self.daemon.ready(token)?,
            }
        }
        meet_deadline(&mut self.daemon)?;
        Ok(true)
    }

    fn answer(&mut self) {
        while let Some((request, mut reply)) = self.control.next() {
            let by = reply.peer();
            reply.send(&self.carry_out(request, &by).unwrap_or_else(|error| Answer::Refused(error.to_string())));
        }
    }

    fn carry_out(&mut self, request: Request<D::What, D::Item>, by: &str) -> Result<Answer<D::Shown>, NodeError> {
        match request {
            Request::Show(what) => return self.daemon.show(what).map(Answer::Shown),
            Request::Metrics => return watch::text_of(&self.daemon).map(Answer::Metrics),
            Request::Config => return Ok(Answer::Config(to_text(&self.daemon.in_force(&self.settings)))),
            Request::Reload => return self.reload(by).map(Answer::Reloaded),
            Request::Add(item) => self.change(item, true, by)?,
            Request::Remove(item) => self.change(item, false, by)?,
            Request::Stop => {
                info!(target: CHANGES_LOG, by, "ends, and its data path goes");
                self.remove = true;
                self.stop.request();
            }
        }
        Ok(Answer::Done)
    }

    fn change(&mut self, item: D::Item, add: bool, by: &str) -> Result<(), NodeError> {
        let what = serde_json::to_string(&item).unwrap_or_default();
        let (done, refused) = if add { ("added", "not added") } else { ("removed", "not removed") };
        let outcome = self.daemon.change(item, add);
        match &outcome {
            Ok(()) => info!(target: CHANGES_LOG, by, "{done}: {what}"),
            Err(error) => warn!(target: CHANGES_LOG, by, %error, "{refused}: {what}"),
        }
        outcome
    }

    fn reload(&mut self, by: &str) -> Result<Reloaded, NodeError> {
        let outcome = self.read_again();
        match &outcome {
            Ok(Reloaded { changed, removed }) => {
                info!(target: CHANGES_LOG, by, ?changed, ?removed, "settings read again")
            }
            Err(error) => warn!(target: CHANGES_LOG, by, %error, "the settings stay as they were"),
        }
        outcome
    }

    fn read_again(&mut self) -> Result<Reloaded, NodeError> {
        let settings = (self.load)()?;
        let changed = differences(&self.settings, &settings);
        if let Some(key) = changed.iter().find(|key| !is_live(key, D::Settings::LIVE)) {
            return Err(NodeError::Fixed { key: key.clone() });
        }
        settings.check()?;
        let removed = self.daemon.reload(&settings)?;
        self.settings = settings;
        Ok(Reloaded { changed, removed })
    }
}

fn is_live(key: &str, live: &[&str]) -> bool {
    live.iter().any(|name| key.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('.')))
}

/// Keys in which settings differ, those of a table with its name before.
fn differences(before: &impl Serialize, after: &impl Serialize) -> Vec<String> {
    let value = |settings: Result<Value, _>| settings.expect("settings have no keys that are not text");
    let mut keys = Vec::new();
    compare("", &value(serde_json::to_value(before)), &value(serde_json::to_value(after)), &mut keys);
    keys
}

fn compare(name: &str, before: &Value, after: &Value, keys: &mut Vec<String>) {
    match (before, after) {
        (Value::Object(before), Value::Object(after)) => {
            for key in before.keys().chain(after.keys()).collect::<BTreeSet<_>>() {
                let name = if name.is_empty() { key.clone() } else { format!("{name}.{key}") };
                let of = |table: &serde_json::Map<String, Value>| table.get(key).cloned().unwrap_or(Value::Null);
                compare(&name, &of(before), &of(after), keys);
            }
        }
        _ if before == after => {}
        _ => keys.push(name.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_differs_is_named_with_its_table() {
        let before = json!({"port": 1, "timing": {"hello_ms": 300, "echo_ms": null}, "key_file": "a"});
        let after = json!({"port": 1, "timing": {"hello_ms": 900}, "rate_limit": {"bits_per_s": 1}});
        assert_eq!(differences(&before, &after), ["key_file", "rate_limit", "timing.hello_ms"]);
        assert!(differences(&after, &after).is_empty());
        assert!(is_live("timing.hello_ms", &["timing"]) && is_live("port", &["port"]));
        assert!(!is_live("timing.hello_ms", &["timing.echo_ms"]) && !is_live("port_x", &["port"]));
    }
}
