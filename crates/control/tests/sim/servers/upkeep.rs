//! What a simulated server does beside the updates: checks, snapshots, comparisons; and whether it says that it lags.

use std::sync::Arc;

use weft_control::NS_PER_MS;
use weft_control::directory::Table;
use weft_control::directory::etcd::{Call, Claim, Get, Load, Raw};
use weft_control::directory::record::decode_batch;
use weft_control::directory::replica::Comparison;

use super::super::errands::Work;
use super::super::network::Faults;
use super::super::{Event, World};
use super::{LOOK_NS, UPKEEP_NS};

/// How long a server may hear nothing and not say so: a watch is given up after 600 ms, that none of the others says anything
/// is reported after 1500 ms more, and each is seen at the next look. A process that was frozen has as long from then on.
const SILENT_NS: u64 = (600 + 1500) * NS_PER_MS + 2 * LOOK_NS;

impl World {
    /// Beside the updates: is the store there, and is anything due?
    pub(in crate::sim) fn upkeep(&mut self, server: usize) {
        let life = self.servers[server].life;
        self.after(UPKEEP_NS, Event::Upkeep { server, life });
        let state = &mut self.servers[server];
        if !state.started {
            return;
        }
        let behind = self.truth.behind_since_ns(state.table.revision());
        let could_see_ns = state.frozen_until_ns;
        // Until a record is late, the watch may still be heard with earlier ones.
        let lag_ns = Faults::of_severity(self.plan.severity).lag_max_ns + SILENT_NS;
        if behind.is_some_and(|since_ns| self.now_ns - since_ns.max(could_see_ns) > lag_ns) {
            self.totals.lagged += 1;
            assert!(state.health.check().is_err(), "server {server} lags and says nothing");
        }
        if !state.keeping {
            state.keeping = true;
            let key = self.etcd.layout.origin().to_owned();
            self.begin(server, Work::Check(Call::Get(Get { key, ..Get::default() })));
        }
    }

    /// The store was checked.
    pub(in crate::sim) fn keep(&mut self, server: usize) {
        let now_ns = self.now_ns;
        let layout = Arc::clone(&self.etcd.layout);
        let state = &mut self.servers[server];
        if state.upkeep.snapshot_due() {
            state.upkeep.begin_snapshot();
            let table = Box::new(state.table.clone());
            let claim = Claim::new(layout, state.writer, self.etcd.origin.theirs(table.revision()));
            self.begin(server, Work::Claim { claim, table });
        } else if now_ns >= state.upkeep.compare_at_ns() {
            state.upkeep.compared(now_ns, 0);
            self.begin(server, Work::CompareLoad(Load::new(layout, self.etcd.origin)));
        } else {
            self.kept(server);
        }
    }

    /// Nothing is due any more.
    pub(in crate::sim) fn kept(&mut self, server: usize) {
        self.servers[server].keeping = false;
    }

    /// The table is compared with one that is built anew from this one.
    pub(in crate::sim) fn compare(&mut self, server: usize, rebuilt: Table) {
        let table = &self.servers[server].table;
        let shown = (table.revision(), table.hash());
        if shown.0 < rebuilt.revision() {
            return self.kept(server);
        }
        let read = self.read_after(rebuilt.revision());
        self.begin(server, Work::CompareRead { comparison: Comparison::new(rebuilt, shown), read });
    }

    pub(in crate::sim) fn compared(&mut self, server: usize, mut comparison: Comparison, records: &[Raw]) {
        let batch = |bytes: &[u8]| decode_batch(bytes).expect("it was written by us");
        let mut records = records.iter().map(|(revision, bytes)| (self.etcd.origin.ours(*revision), batch(bytes)));
        while records.next().is_some_and(|(revision, batch)| comparison.take(revision, &batch)) {}
        self.totals.compared += 1;
        assert!(!comparison.differs(), "server {server} found that its table differs from the store");
        self.kept(server);
    }
}
