//! What look-ups at the card are answered by, from the side that writes it.

use std::collections::BTreeSet;
use std::sync::atomic::{
    AtomicU64,
    Ordering::{Relaxed, Release},
    fence,
};

use libbpf_rs::Object;

use super::abi::{
    DIRECTORY_RULES_MAX, DIRECTORY_SECRETS_MAX, DirectoryRow, DirectoryRule, DirectorySecret, DirectoryState,
};
use super::places::{Places, ROW_WORDS};
use super::words::Words;
use super::{LookupConfig, ROWS, RULES, Row, STATE};
use crate::abi::Abi;
use crate::error::DatapathError;
use crate::table::Table;

const STATE_WORDS: usize = size_of::<DirectoryState>() / 8;

/// The table, which one writer changes.
#[derive(Debug)]
pub struct CardTable {
    rows: Places<Words>,
    rules: Table,
    /// Services of each rule: who asks, whose AAs.
    rules_there: BTreeSet<(u32, u32)>,
    shared: Words,
    /// What is shared, or will be at the end of a change.
    state: DirectoryState,
}

impl CardTable {
    pub(super) fn of(object: &Object, places: u32, config: &LookupConfig) -> Result<Self, DatapathError> {
        let mut mac = [0; 8];
        mac[..6].copy_from_slice(&config.mac);
        let state = DirectoryState {
            sequence: 1,
            mac: u64::from_le_bytes(mac),
            address: config.listen.ip().octets(),
            port: config.listen.port().to_be_bytes(),
            ..DirectoryState::ZERO
        };
        let table = Self {
            rows: Places::on(Words::of(object, ROWS, places as usize * ROW_WORDS)?),
            rules: Table::of(object, RULES)?,
            rules_there: BTreeSet::new(),
            shared: Words::of(object, STATE, STATE_WORDS)?,
            state,
        };
        store(&table.shared, &table.state, Relaxed);
        Ok(table)
    }

    /// Changes the table. Until that is done no look-up is answered at the card; if it fails, none is until another one
    /// succeeds.
    ///
    /// # Errors
    /// Those of `work`.
    pub fn change(
        &mut self,
        work: impl FnOnce(&mut Change<'_>) -> Result<(), DatapathError>,
    ) -> Result<(), DatapathError> {
        self.state.sequence |= 1;
        self.shared[0].store(words_of(&self.state)[0], Relaxed);
        // Whoever reads anything that is written from here on finds the odd number, too.
        fence(Release);
        work(&mut Change(self))?;
        self.state.sequence = self.state.sequence.wrapping_add(1);
        store(&self.shared, &self.state, Release);
        Ok(())
    }

    /// How many mappings are in it.
    pub fn mappings(&self) -> usize {
        self.rows.taken()
    }

    /// What its memory is for, bytes: rows, and what holds for all.
    pub fn memory_bytes(&self) -> usize {
        self.rows.places() * size_of::<DirectoryRow>() + size_of::<DirectoryState>()
    }
}

/// A change under way.
#[derive(Debug)]
pub struct Change<'a>(&'a mut CardTable);

impl Change<'_> {
    /// Sets the mapping of an AA. One that there is no room for is left to the server.
    pub fn set(&mut self, row: &Row) {
        debug_assert!(row.version != 0, "no mapping has version 0");
        self.0.rows.set(row);
    }

    /// Takes the mapping of an AA out, if there is one.
    pub fn remove(&mut self, aa: std::net::Ipv4Addr) {
        self.0.rows.remove(aa.octets());
    }

    /// Takes all mappings and rules out.
    ///
    /// # Errors
    /// [`DatapathError::Map`].
    pub fn clear(&mut self) -> Result<(), DatapathError> {
        self.0.rows.clear();
        let rules: Vec<(u32, u32)> = self.0.rules_there.iter().copied().collect();
        rules.into_iter().try_for_each(|(from, to)| self.set_rule(from, to, false))
    }

    /// Says whether what the policy has about two services differs from what holds without a rule.
    ///
    /// # Errors
    /// [`DatapathError::Map`].
    pub fn set_rule(&mut self, from_service: u32, to_service: u32, differs: bool) -> Result<(), DatapathError> {
        let CardTable { rules, rules_there, state, .. } = &mut *self.0;
        let key = DirectoryRule { from_service: from_service.to_be_bytes(), to_service: to_service.to_be_bytes() };
        let services = (from_service, to_service);
        if differs && !rules_there.contains(&services) {
            rules.put(&key, &1u32)?;
            rules_there.insert(services);
        } else if !differs && rules_there.contains(&services) {
            rules.delete(&key)?;
            rules_there.remove(&services);
        }
        state.rules = u32::try_from(rules_there.len()).unwrap_or(DIRECTORY_RULES_MAX);
        Ok(())
    }

    /// Sets the revision that answers name.
    pub fn set_revision(&mut self, revision: u64) {
        self.0.state.revision = revision;
    }

    /// Believes whoever has a key derived from one of these secrets, each with its key id. Of more than four only the first four are
    /// known at the card.
    pub fn set_secrets(&mut self, secrets: impl IntoIterator<Item = (u32, [u8; 16])>) {
        let state = &mut self.0.state;
        (state.open, state.secrets) = (0, 0);
        state.secret = [DirectorySecret::ZERO; DIRECTORY_SECRETS_MAX as usize];
        for (slot, (key_id, secret)) in state.secret.iter_mut().zip(secrets) {
            let half = |half: usize| u64::from_le_bytes(secret.as_chunks().0[half]);
            *slot = DirectorySecret { low: half(0), high: half(1), key_id, reserved: 0 };
            state.secrets += 1;
        }
    }

    /// Believes everybody who uses the key of zeros.
    pub fn open(&mut self) {
        self.set_secrets([]);
        self.0.state.open = 1;
    }
}

fn words_of(state: &DirectoryState) -> [u64; STATE_WORDS] {
    let mut words = [0; STATE_WORDS];
    for (word, bytes) in words.iter_mut().zip(state.bytes().as_chunks().0) {
        *word = u64::from_ne_bytes(*bytes);
    }
    words
}

/// Stores a state; last, and in this order, the word with the sequence.
fn store(shared: &[AtomicU64], state: &DirectoryState, last: std::sync::atomic::Ordering) {
    let words = words_of(state);
    for (to, word) in shared.iter().zip(words).skip(1) {
        to.store(word, Relaxed);
    }
    shared[0].store(words[0], last);
}
