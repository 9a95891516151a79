//! Runs the steps of a load on a directory tier: look-ups, updates, losses and a kill at once, and what came of it.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use weft_node::client::AdminClient;
use weft_node::stop::Stop;
use weft_scenario::engine::Progress;
use weft_scenario::record::{DirectoryRow, DirectoryTickRow, EventRow, Records};
use weft_scenario::workload::directory::{DirectoryStep, ECHO_RATE_MAX};
use weft_scenario::workload::{Arrivals, DirectorySpec, LookupLoad, UpdateLoad};
use weft_testbed::load::{
    Access, Arrivals as Arriving, LookupLoad as Asking, LookupReport, Pace, TICK_NS, Tick, UpdateLoad as Sending,
    UpdateReport,
};

use super::echo::Echo;
use super::rows::Latencies;
use super::tier::{self, FIRST_AA, ServerView, Tier, mark};
use super::usage::{Usage, Used, wait_until};
use super::visible::{self, Issued, Issuing, Visible};
use crate::error::LabError;
use crate::netns;

/// From "go" to the first request that counts: sockets and connections are made in it.
const LEAD: Duration = Duration::from_millis(200);
/// The user's wish to stop is looked at this often.
const ATTENTION: Duration = Duration::from_millis(50);
/// Sockets of a client to each server, so that a server's threads share the load.
const FLOWS: usize = 4;

/// Runs a load: fills the directory, then step after step, then looks whether every acknowledged update is there.
pub fn run(tier: &mut dyn Tier, spec: &DirectorySpec, seed: u64, progress: &dyn Progress) -> Result<Records, LabError> {
    let asked = spec.servers as usize;
    let known = tier.servers().len();
    if asked > known {
        return Err(LabError::DirectoryLoad(format!(
            "the load asks {asked} directory servers, but there are {known}; lower `servers` or set `directory = \"etcd3\"`"
        )));
    }
    if spec.updates.is_some() && asked > 1 && !tier.is_shared() {
        return Err(LabError::DirectoryLoad(
            "updates through several directory servers need a store that they share; set `directory = \"etcd3\"`"
                .into(),
        ));
    }
    tier::fill(tier, spec.mappings, progress)?;
    tier.set_loss(spec.loss_percent)?;
    let start = Instant::now();
    let steps = spec.steps();
    let mut run =
        Run { spec, asked, seed, start, records: Records::default(), latest: BTreeMap::new(), next_update: 1 };
    let mut outcome = Ok(());
    for (number, step) in (1..).zip(&steps) {
        progress.advance(f64::from(number - 1) / steps.len() as f64, &text_of(*step));
        outcome = run.step(tier, number, *step, progress);
        if outcome.is_err() {
            break;
        }
    }
    tier.set_loss(0)?;
    outcome?;
    run.check(tier, progress)?;
    Ok(run.records)
}

fn text_of(step: DirectoryStep) -> String {
    format!("{} look-ups/s, {} updates/s", step.lookups_per_s, step.updates_per_s)
}

struct Run<'a> {
    spec: &'a DirectorySpec,
    asked: usize,
    seed: u64,
    start: Instant,
    records: Records,
    /// Of each AA the revision of the last acknowledged update.
    latest: BTreeMap<Ipv4Addr, u64>,
    next_update: u32,
}

/// What the threads of a step came back with.
#[derive(Default)]
struct Outcome {
    lookups: Option<LookupReport>,
    updates: Option<Updates>,
    visible: Option<Visible>,
    used: Used,
    /// When what counts began.
    begin: Option<Instant>,
}

/// What became of updates, whichever way they were sent.
struct Updates {
    row: DirectoryRow,
    latencies: Latencies,
    ticks: Vec<Tick>,
    acknowledged: BTreeMap<Ipv4Addr, u64>,
    first_error: Option<String>,
}

impl Run<'_> {
    fn step(
        &mut self,
        tier: &mut dyn Tier,
        number: u32,
        step: DirectoryStep,
        progress: &dyn Progress,
    ) -> Result<(), LabError> {
        let before_ns = self.echo_p99_ns(tier, step)?;
        let Outcome { lookups, updates, visible, used, begin } = self.offer(tier, number, step, progress)?;
        let echo_p99_ns = self.echo_p99_ns(tier, step)?.max(before_ns);
        self.mend(tier, progress)?;
        let place = |row: DirectoryRow, offered_per_s: u32| DirectoryRow {
            step: number,
            offered_per_s: u64::from(offered_per_s),
            server_cpu_ns: used.servers_ns(),
            busiest_server_cpu_ns: used.busiest_server_ns(),
            store_cpu_ns: used.store_ns,
            foreign_cpu_ratio: used.foreign_ratio(),
            ..row
        };
        let begin_ns = begin.map_or(0, |begin| begin.duration_since(self.start).as_nanos() as u64);
        let records = &mut self.records;
        if let (Some(report), Some(load)) = (&lookups, &self.spec.lookups) {
            let row = DirectoryRow { echo_p99_ns, ..lookup_row(report, load) };
            records.directory.push(place(row, step.lookups_per_s));
            let questions = u64::from(load.questions_per_datagram);
            records.directory_ticks.extend(tick_rows("lookup", number, begin_ns, &report.ticks, questions));
            let latencies = latencies_of(&report.latency_ns, questions);
            records.latencies.extend(latencies.rows("lookup", number, None));
        }
        if let Some(updates) = updates {
            records.directory.push(place(updates.row, step.updates_per_s));
            records.latencies.extend(updates.latencies.rows("update", number, None));
            records.directory_ticks.extend(tick_rows("update", number, begin_ns, &updates.ticks, 1));
            self.latest.extend(updates.acknowledged);
            if let Some(error) = updates.first_error {
                progress.note(&format!("some updates were not carried out: {error}"));
            }
        }
        if let Some(visible) = visible {
            records.latencies.extend(visible.everywhere.rows("visible", number, None));
            records.latencies.extend(visible.pushed.rows("pushed", number, None));
            for (server, latencies) in tier.servers().iter().zip(&visible.by_server) {
                records.latencies.extend(latencies.rows("visible", number, Some(&server.name)));
            }
        }
        Ok(())
    }

    /// Runs everything of a step at once.
    fn offer(
        &mut self,
        tier: &mut dyn Tier,
        number: u32,
        step: DirectoryStep,
        progress: &dyn Progress,
    ) -> Result<Outcome, LabError> {
        let stop = Stop::manual().map_err(|error| failed(&error))?;
        let (namespace, access) = (tier.client_namespace(), tier.access());
        let servers: Vec<ServerView> = tier.servers().into_iter().take(self.asked).collect();
        let begin = Instant::now() + LEAD;
        let asking = self.spec.lookups.as_ref().map(|load| self.asking(tier, &servers, load, step));
        let updating = self.spec.updates.as_ref();
        let (watching, sending): (Option<&UpdateLoad>, Option<&UpdateLoad>) =
            (updating.filter(|load| load.until_visible), updating.filter(|load| !load.until_visible));
        let sending = sending.map(|load| self.sending(tier, &servers, load, step, number));
        let watching = watching.map(|load| self.watching(tier, &servers, load, step, begin));
        let timeout = Duration::from_nanos(self.spec.timeout.0);
        std::thread::scope(|scope| {
            let (place, access, stop) = (namespace.as_deref(), &access, &stop);
            let lookups = asking
                .map(|load| scope.spawn(move || inside(place, || load.run(stop).map_err(|error| failed(&error)))));
            let sent = sending.map(|load| {
                scope.spawn(move || {
                    inside(place, || load.run(stop).map_err(|error| failed(&error)).map(Updates::of_load))
                })
            });
            let watched =
                watching.map(|load| scope.spawn(move || inside(place, move || watch_updates(&load, access, timeout))));
            let used = self.attend(tier, begin, progress);
            if used.is_err() {
                stop.request();
            }
            let lookups = lookups.map(join).transpose();
            let sent = sent.map(join).transpose();
            let watched = watched.map(join).transpose();
            let (lookups, sent, watched, used) = (lookups?, sent?, watched?, used?);
            let (issued, visible) = watched.unzip();
            Ok(Outcome { lookups, updates: sent.or(issued), visible, used, begin: Some(begin) })
        })
    }

    /// Measures what a step costs, kills what it is to kill, and starts it again if that is to be seen.
    fn attend(&mut self, tier: &mut dyn Tier, begin: Instant, progress: &dyn Progress) -> Result<Used, LabError> {
        sleep_until(begin, progress)?;
        let mut before = Usage::read(tier, self.asked);
        let mut used = Used::default();
        if let Some(kill) = self.spec.kill {
            sleep_until(begin + Duration::from_nanos(kill.at.0), progress)?;
            // What a process has used cannot be read any more when it is gone.
            used = Usage::read(tier, self.asked).since(&before);
            let subjects = tier.kill(kill.what, self.asked)?;
            before = Usage::read(tier, self.asked);
            self.events("fault", subjects);
            if let Some(back_at) = kill.back_at {
                sleep_until(begin + Duration::from_nanos(back_at.0), progress)?;
                used = used.and(Usage::read(tier, self.asked).since(&before));
                self.mend(tier, progress)?;
                before = Usage::read(tier, self.asked);
            }
        }
        sleep_until(begin + Duration::from_nanos(self.spec.duration.0), progress)?;
        Ok(used.and(Usage::read(tier, self.asked).since(&before)))
    }

    /// Starts again what was killed, and waits until it is ready.
    fn mend(&mut self, tier: &mut dyn Tier, progress: &dyn Progress) -> Result<(), LabError> {
        let time_ns = self.start.elapsed().as_nanos() as u64;
        let subjects = tier.mend(progress)?;
        self.events_at(time_ns, "repair", subjects.clone());
        self.events("ready", subjects);
        Ok(())
    }

    fn events(&mut self, kind: &str, subjects: Vec<String>) {
        self.events_at(self.start.elapsed().as_nanos() as u64, kind, subjects);
    }

    fn events_at(&mut self, time_ns: u64, kind: &str, subjects: Vec<String>) {
        let event = |subject| EventRow { time_ns, kind: kind.to_owned(), subject };
        self.records.events.extend(subjects.into_iter().map(event));
    }

    /// 99th percentile of an echo of the step's datagrams between client and first server; 0 where the load asks for none.
    fn echo_p99_ns(&self, tier: &dyn Tier, step: DirectoryStep) -> Result<u64, LabError> {
        let Some((load, length)) = self.spec.lookups.as_ref().and_then(|load| Some((load, load.echo?))) else {
            return Ok(0);
        };
        let servers = tier.servers();
        let server = servers.first().expect("a load asks at least one server");
        let copies = load.ask.min(self.spec.servers);
        let per_s = f64::from(step.lookups_per_s) / f64::from(load.questions_per_datagram) * f64::from(copies);
        let client = tier.client_namespace();
        let echo = Echo {
            places: [server.namespace.as_deref(), client.as_deref()],
            address: *server.lookups.ip(),
            cpus: [None, None],
            per_s: per_s.min(f64::from(ECHO_RATE_MAX)),
            length: Duration::from_nanos(length.0),
        };
        echo.p99_ns()
    }

    fn asking(&self, tier: &dyn Tier, servers: &[ServerView], load: &LookupLoad, step: DirectoryStep) -> Asking {
        let first = servers.first().expect("a load asks at least one server").lookups;
        Asking {
            servers: servers.iter().map(|server| server.lookups).collect(),
            fanout: (load.ask as usize).min(servers.len()),
            flows: FLOWS,
            questions: load.questions_per_datagram as usize,
            burst: load.burst as usize,
            arrivals: arriving(load.arrivals),
            pace: Pace::Rate(f64::from(step.lookups_per_s) / f64::from(load.questions_per_datagram)),
            warm_up: LEAD,
            duration: Duration::from_nanos(self.spec.duration.0),
            timeout: Duration::from_nanos(self.spec.timeout.0),
            retry: load.retry_after.map(|after| Duration::from_nanos(after.0)),
            seed: self.seed,
            ..Asking::of(first, tier.access(), FIRST_AA, self.spec.mappings)
        }
    }

    fn sending(
        &self,
        tier: &dyn Tier,
        servers: &[ServerView],
        load: &UpdateLoad,
        step: DirectoryStep,
        number: u32,
    ) -> Sending {
        Sending {
            servers: servers.iter().map(|server| server.sessions.clone()).collect(),
            sessions: load.sessions() as usize,
            open: load.clients_per_session() as usize,
            mappings: 1,
            first_aa: FIRST_AA,
            aas: self.spec.mappings,
            tor_las: vec![tier.tor_la()],
            anycast_la: mark(0),
            service: 0,
            pace: Pace::Rate(f64::from(step.updates_per_s)),
            burst: load.burst as usize,
            arrivals: arriving(load.arrivals),
            warm_up: LEAD,
            duration: Duration::from_nanos(self.spec.duration.0),
            timeout: Duration::from_nanos(self.spec.timeout.0),
            cpu: None,
            seed: session_seed(self.seed, number),
        }
    }

    fn watching(
        &mut self,
        tier: &dyn Tier,
        servers: &[ServerView],
        load: &UpdateLoad,
        step: DirectoryStep,
        start: Instant,
    ) -> Issuing {
        let first_update = self.next_update;
        self.next_update += (f64::from(step.updates_per_s) * self.spec.duration.as_secs_f64()).ceil() as u32 + 1;
        Issuing {
            servers: servers.to_vec(),
            clients: load.clients as usize,
            per_s: f64::from(step.updates_per_s),
            aas: self.spec.mappings,
            tor_la: tier.tor_la(),
            first_update,
            start,
            duration: Duration::from_nanos(self.spec.duration.0),
        }
    }

    /// Counts acknowledged updates that a server does not have once it has applied everything.
    fn check(&mut self, tier: &dyn Tier, progress: &dyn Progress) -> Result<(), LabError> {
        if self.latest.is_empty() {
            return Ok(());
        }
        let servers: Vec<ServerView> = tier.servers().into_iter().take(self.asked).collect();
        let lost = lost_updates(&servers, &self.latest, progress)?;
        if let Some(row) = self.records.directory.iter_mut().rfind(|row| row.kind == "update") {
            row.lost = lost;
        }
        Ok(())
    }
}

/// Issues updates, watches when they are visible and when a subscriber has them.
fn watch_updates(load: &Issuing, access: &Access, timeout: Duration) -> Result<(Updates, Visible), LabError> {
    let (over, (sender, fresh)) = (AtomicBool::new(false), mpsc::channel());
    let subscribed = load.servers.last().expect("a load asks at least one server");
    std::thread::scope(|scope| {
        let over = &over;
        let watching = scope.spawn(move || visible::watch(&load.servers, access, load.start, timeout, &fresh));
        let subscriber = scope.spawn(move || visible::subscribe(subscribed, load.start, over));
        let issued = load.run(&sender);
        // The last end of the channel: the watcher knows that nothing more comes.
        drop(sender);
        let watched = join(watching);
        over.store(true, Relaxed);
        let seen = join(subscriber);
        let (mut visible, fresh) = watched?;
        visible.add_pushed(&fresh, &seen?);
        Ok((Updates::of_issued(issued?, load.duration), visible))
    })
}

impl Updates {
    fn of_load(report: UpdateReport) -> Self {
        let latencies = latencies_of(&report.latency_ns, 1);
        let row = DirectoryRow {
            kind: "update".into(),
            wall_ns: report.elapsed_ns,
            sent: report.committed + report.refused + report.failed + report.unanswered,
            messages: report.committed + report.refused + report.failed + report.unanswered,
            answered: report.committed,
            wrong: report.refused,
            unanswered: report.failed + report.unanswered,
            longest_gap_ns: report.longest_gap_ns,
            ..DirectoryRow::default()
        };
        Self { row, latencies, ticks: report.ticks, acknowledged: report.acknowledged, first_error: report.first_error }
    }

    fn of_issued(issued: Issued, duration: Duration) -> Self {
        let row = DirectoryRow {
            kind: "update".into(),
            wall_ns: duration.as_nanos() as u64,
            sent: issued.sent,
            messages: issued.sent,
            answered: issued.answered,
            wrong: issued.wrong,
            longest_gap_ns: issued.longest_gap_ns(duration),
            ..DirectoryRow::default()
        };
        Self {
            row,
            latencies: issued.latencies,
            ticks: Vec::new(),
            acknowledged: issued.acknowledged,
            first_error: issued.first_error,
        }
    }
}

/// Acknowledged updates that some server does not have, once all have applied the same revision. `latest` says of each AA
/// the revision of the last acknowledged update.
pub(super) fn lost_updates(
    servers: &[ServerView],
    latest: &BTreeMap<Ipv4Addr, u64>,
    progress: &dyn Progress,
) -> Result<u64, LabError> {
    let mut clients = servers.iter().map(tier::connect).collect::<Result<Vec<_>, _>>()?;
    wait_until(progress, "all directory servers have applied the last update", || {
        let status = |client: &mut AdminClient| client.status().map_err(|error| failed(&error));
        let revisions = clients.iter_mut().map(status).collect::<Result<Vec<_>, _>>()?;
        Ok(revisions.iter().all(|status| status.revision == revisions[0].revision))
    })?;
    let mut lost = 0;
    for client in &mut clients {
        let rows = client.list().map_err(|error| failed(&error))?;
        let held: BTreeMap<Ipv4Addr, u64> = rows.iter().map(|row| (row.aa, row.version)).collect();
        let is_lost = |(aa, revision): &(&Ipv4Addr, &u64)| held.get(aa).is_none_or(|version| version < revision);
        lost += latest.iter().filter(is_lost).count() as u64;
    }
    Ok(lost)
}

/// Seed of the names of a step's clients: the directory must not take a new step's requests for old ones that are sent
/// again.
pub(super) fn session_seed(seed: u64, step: u32) -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    (now.as_micros() as u64) ^ (seed << 8 | u64::from(step)) << 24
}

fn lookup_row(report: &LookupReport, load: &LookupLoad) -> DirectoryRow {
    let questions = u64::from(load.questions_per_datagram);
    let ok = report.statuses.get("ok").copied().unwrap_or(0);
    DirectoryRow {
        kind: "lookup".into(),
        wall_ns: report.elapsed_ns,
        sent: report.sent * questions,
        messages: report.datagrams,
        answered: ok,
        wrong: (report.answered * questions).saturating_sub(ok),
        unanswered: report.failed * questions,
        skipped: report.skipped * questions,
        ..DirectoryRow::default()
    }
}

/// Each message's time counts for all requests in it.
fn latencies_of(histogram: &hdrhistogram::Histogram<u64>, requests: u64) -> Latencies {
    let mut latencies = Latencies::default();
    for value in histogram.iter_recorded() {
        latencies.add(value.value_iterated_to(), value.count_since_last_iteration() * requests);
    }
    latencies
}

/// Rows of a step that began at `begin_ns`; a message carried so many requests.
fn tick_rows(kind: &str, step: u32, begin_ns: u64, ticks: &[Tick], requests: u64) -> Vec<DirectoryTickRow> {
    let row = |(number, tick): (u64, &Tick)| DirectoryTickRow {
        kind: kind.to_owned(),
        step,
        time_ns: begin_ns + number * TICK_NS,
        sent: tick.sent * requests,
        answered: tick.answered * requests,
        failed: tick.failed * requests,
        worst_ns: tick.worst_ns,
    };
    (0..).zip(ticks).map(row).collect()
}

fn arriving(arrivals: Arrivals) -> Arriving {
    match arrivals {
        Arrivals::Even => Arriving::Even,
        Arrivals::Random => Arriving::Random,
    }
}

pub(super) fn inside<T: Send>(
    place: Option<&Path>,
    work: impl FnOnce() -> Result<T, LabError> + Send,
) -> Result<T, LabError> {
    match place {
        Some(namespace) => netns::in_namespace(namespace, work)?,
        None => work(),
    }
}

fn join<T>(thread: std::thread::ScopedJoinHandle<'_, Result<T, LabError>>) -> Result<T, LabError> {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

fn failed(error: &weft_node::NodeError) -> LabError {
    LabError::DirectoryLoad(error.to_string())
}

fn sleep_until(until: Instant, progress: &dyn Progress) -> Result<(), LabError> {
    loop {
        if progress.interrupted() {
            return Err(LabError::Interrupted);
        }
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(());
        }
        std::thread::sleep(left.min(ATTENTION));
    }
}
