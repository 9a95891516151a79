//! Look-ups answered at the card by XDP: the table once more in the kernel, kept as the replica shows it.
//!
//! The replica's one writer shows each revision to the server's threads first, then here, and then tells people of it. What the
//! program does not answer the server does, which counts and judges it.
//!
//! The program ends with the server: nobody else could correct what its table says.

use std::collections::BTreeSet;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tracing::warn;
use weft_control::directory::policy::default_allows;
use weft_control::directory::{Batch, KeyRing, Record, Table};
use weft_datapath::DatapathError;
use weft_datapath::directory::{CardTable, Change, LookupConfig, LookupDatapath, Row};
use weft_datapath::offload::{self, HIDDEN_FROM_XDP};
use weft_datapath::trill::XdpMode;

use super::DirectoryConfig;
use super::protocol::CardStatus;
use crate::cards::{Cards, Needs};
use crate::error::NodeError;
use crate::rbridge::XdpChoice;
use crate::sys;

#[cfg(test)]
mod tests;

/// A card that answers look-ups.
pub(super) struct Card {
    interface: String,
    datapath: Mutex<LookupDatapath>,
    table: Mutex<CardTable>,
    /// The table could not be changed: nothing is answered here any more.
    failed: AtomicBool,
    /// What was changed at the interface.
    changes: Mutex<Cards>,
}

impl Card {
    /// The card that the settings name, for a server that is asked at `listen`. It answers nothing yet.
    pub(super) fn load(config: &DirectoryConfig, listen: SocketAddrV4) -> Result<Option<Self>, NodeError> {
        let mut changes = Cards::open(&config.socket)?;
        let Some(interface) = config.xdp_interface.clone() else {
            // Of an earlier run that was killed.
            changes.release()?;
            return Ok(None);
        };
        let mac = sys::interface_mac(&interface).map_err(|_no_such| {
            let why = format!("`{interface}`: no such interface here; create it first or correct the name");
            NodeError::config("xdp_interface", why)
        })?;
        let (datapath, table) = LookupDatapath::load(&LookupConfig { listen, mac, mappings: config.xdp_mappings })?;
        let (datapath, table, changes) = (Mutex::new(datapath), Mutex::new(table), Mutex::new(changes));
        Ok(Some(Self { interface, datapath, table, failed: AtomicBool::new(false), changes }))
    }

    /// Puts the program on the interface, with a table that was shown before.
    pub(super) fn attach(&self, choice: XdpChoice) -> Result<(), NodeError> {
        let mode = match choice {
            XdpChoice::Native => XdpMode::Native,
            XdpChoice::Generic => XdpMode::Generic,
        };
        let ifindex = sys::interface_index(&self.interface)
            .map_err(NodeError::system(format!("interface `{}`", self.interface)))?;
        let needs = Needs { off: HIDDEN_FROM_XDP, ..Needs::default() };
        locked(&self.changes).prepare(&self.interface, ifindex, &needs)?;
        if mode == XdpMode::Native && offload::driver(&self.interface).as_deref() == Some("veth") {
            let interface = &self.interface;
            warn!(
                interface,
                "answers are lost if the other end of this veth pair has no XDP program; xdp = \"generic\" needs none"
            );
        }
        Ok(locked(&self.datapath).attach(&self.interface, mode)?)
    }

    /// Takes the program off, and gives the interface back as it was.
    pub(super) fn detach(&self) {
        let result = locked(&self.datapath).detach().map_err(NodeError::from);
        if let Err(error) = result.and(locked(&self.changes).release()) {
            warn!(interface = self.interface, %error, "the card could not be made again what it was");
        }
    }

    /// Shows what changed with these records, the last of which is the table's revision.
    pub(super) fn show<'a>(&self, table: &Table, records: impl Iterator<Item = &'a Batch>) {
        let (mut aas, mut pairs) = (BTreeSet::new(), BTreeSet::new());
        for request in records.flat_map(|batch| &batch.requests) {
            aas.extend(request.updates.iter().map(|update| update.aa));
            pairs.extend(request.policy.iter().map(|change| (change.from_service, change.to_service)));
        }
        self.change(|change| {
            aas.iter().for_each(|aa| show_aa(change, *aa, table.record(*aa)));
            for (from, to) in &pairs {
                change.set_rule(*from, *to, table.allows(*from, *to) != default_allows(*from, *to))?;
            }
            change.set_revision(table.revision());
            Ok(())
        });
    }

    /// Shows a whole table.
    pub(super) fn show_all(&self, table: &Table) {
        self.change(|change| {
            change.clear()?;
            for rule in table.policy() {
                change.set_rule(rule.from_service, rule.to_service, true)?;
            }
            table.mapped_records().for_each(|(aa, record)| show_aa(change, aa, Some(record)));
            change.set_revision(table.revision());
            Ok(())
        });
    }

    /// Believes askers by these keys from now on.
    pub(super) fn set_keys(&self, keys: &KeyRing) {
        self.change(|change| {
            match keys.secrets() {
                Some(secrets) => change.set_secrets(secrets.iter().map(|(id, secret)| (*id, secret.to_bytes()))),
                None => change.open(),
            }
            Ok(())
        });
    }

    /// What became of its frames, and what it holds.
    pub(super) fn status(&self) -> CardStatus {
        let frames = locked(&self.datapath).counters().unwrap_or_default();
        CardStatus {
            interface: self.interface.clone(),
            answers: !self.failed.load(Ordering::Relaxed),
            mappings: locked(&self.table).mappings(),
            frames: frames.into_iter().map(|(name, count)| (name.to_owned(), count)).collect(),
        }
    }

    /// A table that could not be changed might say what is no longer so: then the server is left to answer all.
    fn change(&self, work: impl FnOnce(&mut Change<'_>) -> Result<(), DatapathError>) {
        let mut table = locked(&self.table);
        if self.failed.load(Ordering::Relaxed) {
            return;
        }
        if let Err(error) = table.change(work) {
            self.failed.store(true, Ordering::Relaxed);
            warn!(interface = self.interface, %error, "the card answers no more; the server answers all");
        }
    }
}

impl Drop for Card {
    /// Where the server did not get to it.
    fn drop(&mut self) {
        self.detach();
    }
}

fn show_aa(change: &mut Change<'_>, aa: Ipv4Addr, record: Option<Record>) {
    let found = record.and_then(|record| Some((record, record.locator?)));
    let Some((Record { service, version, .. }, at)) = found else { return change.remove(aa) };
    change.set(&Row { aa, service, tor_la: at.tor_la, anycast_la: at.anycast_la, version });
}

fn locked<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}
