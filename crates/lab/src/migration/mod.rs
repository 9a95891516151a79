//! A server with its AA moves to another rack while another one sends to it (VL2 4.3.2, "Updating caches reactively").
//!
//! * `mover`: takes a server from one edge switch to another, as live migration of a virtual machine does: its sockets
//!   stay, its link and its LA are new, and the agent of the new place takes over
//! * `live`: the same in a lab that is up, when people want it
//! * `stream`: the traffic: a TCP connection that sends as much as it can, and a probe every millisecond
//!
//! Packets that reach the old ToR are counted by its data path (`no_such_host`); nothing else there is undeliverable.

mod live;
mod mover;
mod stream;

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use weft_datapath::switch::SwitchMaps;
use weft_node::client::AdminClient;
use weft_scenario::engine::Progress;
use weft_scenario::id::NodeId;
use weft_scenario::record::{EventRow, FlowRow, MigrationRow, Records};
use weft_scenario::topology::Role;
use weft_scenario::units::Nanos;
use weft_scenario::workload::MigrationSpec;

use crate::error::LabError;
use crate::home::namespace_path;
use crate::netns::join;
use crate::options::LabOptions;
use crate::overlay;
use crate::up::Lab;
use crate::wait;
pub use live::{Move, move_server};
use mover::Place;
use stream::Stream;

/// Distance between two looks at the old ToR's counters: how finely the last stale packet is timed.
const WATCH_INTERVAL: Duration = Duration::from_millis(1);
/// The data path's name of packets for a server that is not there.
const UNDELIVERABLE: &str = "no_such_host";

/// Moves the server in the middle of the traffic, and home again when it is over.
pub(crate) fn run(
    lab: &mut Lab,
    options: &LabOptions,
    spec: &MigrationSpec,
    interval: Nanos,
    progress: &dyn Progress,
) -> Result<Records, LabError> {
    let server = |number: u32| lab.scenario.fabric.servers().nth(number as usize);
    let nodes = [spec.from, spec.moves, spec.to_rack_of].map(server);
    let [Some(from), Some(moves), Some(neighbour)] = nodes else {
        return Err(LabError::Migration("the migration names a server that the fabric does not have".to_owned()));
    };
    let home = Place::of(lab, moves)?;
    let there = Place::beside(lab, moves, neighbour)?;
    let stream = Stream {
        from: namespace_path(&lab.plan.node(from).namespace),
        to: namespace_path(&lab.plan.node(moves).namespace),
        source: aa_of(lab, from)?,
        destination: aa_of(lab, moves)?,
        duration: Duration::from_nanos(spec.duration.0),
        interval: Duration::from_nanos(interval.0.max(1_000_000)),
    };
    let mut migration =
        Migration { lab, options, progress, moves, start: Instant::now(), row: MigrationRow::default() };
    let outcome = migration.under_load(&stream, &home, &there, Duration::from_nanos(spec.at.0));
    let row = migration.row;
    // The next trial finds the server where the fabric has it.
    progress.advance(1.0, "moving home");
    migration.place(&there, &home)?;
    let received = outcome?;
    let row = MigrationRow { silence_ns: received.longest_silence_ns, ..row };
    let event =
        |time_ns, kind: &str| EventRow { time_ns, kind: kind.to_owned(), subject: lab.plan.node(moves).name.clone() };
    let flow = FlowRow {
        from: spec.from,
        to: spec.moves,
        bytes_received: received.bytes,
        end_ns: Some(spec.duration.0),
        ..FlowRow::default()
    };
    Ok(Records {
        flows: vec![flow],
        progress: received.progress,
        events: vec![event(row.left_ns, "left"), event(row.arrived_ns, "arrived"), event(row.told_ns, "told")],
        migrations: vec![row],
        facts: vec![
            ("migration.probes_sent".to_owned(), received.probes_sent as f64),
            ("migration.probes_received".to_owned(), received.probes as f64),
        ],
        ..Records::default()
    })
}

fn aa_of(lab: &Lab, node: NodeId) -> Result<std::net::Ipv4Addr, LabError> {
    let none = || LabError::Migration(format!("server `{}` has no AA", lab.plan.node(node).name));
    lab.scenario.addresses.aa(node).ok_or_else(none)
}

/// Tells the directory where a server is.
fn tell(lab: &Lab, server: NodeId, place: &Place) -> Result<(), LabError> {
    let aa = aa_of(lab, server)?;
    for socket in told(lab) {
        AdminClient::connect(&socket)
            .and_then(|mut client| client.move_to(aa, lab.scenario.addresses.la(place.edge), Some(place.la), None))
            .map_err(|error| LabError::Migration(format!("moving {aa} in the directory: {error}")))?;
    }
    Ok(())
}

/// Admin sockets of the servers that must be told: one of those that share a store, else all.
fn told(lab: &Lab) -> Vec<std::path::PathBuf> {
    let shared = lab.scenario.directory != weft_scenario::engine::DirectoryStore::Embedded;
    let nodes = lab.scenario.fabric.with_role(Role::Directory);
    let sockets = nodes.map(|node| overlay::admin_socket(&lab.state.lab, &lab.plan.node(node).name));
    sockets.take(if shared { 1 } else { usize::MAX }).collect()
}

struct Migration<'a> {
    lab: &'a mut Lab,
    options: &'a LabOptions,
    progress: &'a dyn Progress,
    moves: NodeId,
    start: Instant,
    row: MigrationRow,
}

/// What the old ToR saw.
#[derive(Default)]
struct Stale {
    packets: u64,
    last_ns: u64,
    /// How many there were at each look that saw more.
    seen: Vec<(u64, u64)>,
}

impl Migration<'_> {
    fn now_ns(&self) -> u64 {
        self.start.elapsed().as_nanos() as u64
    }

    fn under_load(
        &mut self,
        stream: &Stream,
        home: &Place,
        there: &Place,
        at: Duration,
    ) -> Result<stream::Received, LabError> {
        let over = AtomicBool::new(false);
        let old_tor = self.lab.pins(&self.lab.plan.node(home.edge).name);
        let maps = SwitchMaps::open_pinned(old_tor)
            .map_err(|error| overlay::datapath_error(&self.lab.plan.node(home.edge).name, &error))?;
        self.start = Instant::now();
        let start = self.start;
        std::thread::scope(|scope| {
            let over = &over;
            let traffic = scope.spawn(move || stream.run(start, over));
            let watch = scope.spawn(move || watch(&maps, start, over));
            let moved = self.wait(at).and_then(|()| self.place(home, there));
            let waited = moved.and_then(|()| self.wait(stream.duration));
            over.store(true, Relaxed);
            let received = join(traffic);
            let stale = join(watch);
            waited?;
            self.count(&stale);
            received
        })
    }

    fn wait(&self, until: Duration) -> Result<(), LabError> {
        let all_s = until.as_secs_f64().max(0.001);
        wait::until(self.progress, self.start, until, |elapsed| {
            self.progress.advance(elapsed.as_secs_f64() / all_s, "");
        })
    }

    /// Takes the server from one place to the other, then tells the directory.
    fn place(&mut self, from: &Place, to: &Place) -> Result<(), LabError> {
        self.row.left_ns = self.now_ns();
        mover::take(self.lab, self.options, self.progress, self.moves, from, to)?;
        self.row.arrived_ns = self.now_ns();
        self.row.told_ns = self.row.arrived_ns;
        tell(self.lab, self.moves, to)
    }

    fn count(&mut self, stale: &Stale) {
        let row = &mut self.row;
        row.stale_packets = stale.packets;
        row.last_stale_ns = stale.last_ns;
        let before = stale.seen.iter().rfind(|(at_ns, _)| *at_ns <= row.told_ns).map_or(0, |(_, count)| *count);
        row.lost_packets = stale.packets - before;
    }
}

/// Looks at the old ToR's counter until the traffic is over.
fn watch(maps: &SwitchMaps, start: Instant, over: &AtomicBool) -> Stale {
    let read = || {
        let counters = maps.counters().unwrap_or_default();
        counters.iter().find(|(name, _)| *name == UNDELIVERABLE).map_or(0, |(_, count)| *count)
    };
    let before = read();
    let mut stale = Stale::default();
    while !over.load(Relaxed) {
        std::thread::sleep(WATCH_INTERVAL);
        let (packets, at_ns) = (read() - before, start.elapsed().as_nanos() as u64);
        if packets > stale.packets {
            (stale.packets, stale.last_ns) = (packets, at_ns);
            stale.seen.push((at_ns, packets));
        }
    }
    stale
}
