//! Which datagrams an agent believes, and what it learns from them.

use std::net::{Ipv4Addr, SocketAddrV4};

use weft_wire::directory::{Entry, Kind, Path, Status, View};

use super::cache::State;
use super::{Agent, DropReason, Event, Held, IgnoreReason, Output};
use crate::address::{Locator, Mapping};

impl<H: Held> Agent<H> {
    pub(super) fn datagram(&mut self, now_ns: u64, from: SocketAddrV4, bytes: &[u8], outputs: &mut Vec<Output<H>>) {
        if let Err(reason) = self.believe(now_ns, from, bytes, outputs) {
            self.counters.ignored.add(reason);
        }
    }

    fn believe(
        &mut self,
        now_ns: u64,
        from: SocketAddrV4,
        bytes: &[u8],
        outputs: &mut Vec<Output<H>>,
    ) -> Result<(), IgnoreReason> {
        let view = View::new(bytes).map_err(|_| IgnoreReason::Malformed)?;
        let place = self.asker.place_of(from).ok_or(IgnoreReason::WrongSource)?;
        let path = Path { source: from, destination: self.config.local };
        view.verify(&self.config.key, &path).map_err(|_| IgnoreReason::BadTag)?;
        if view.service() != self.config.service {
            return Err(IgnoreReason::WrongService);
        }
        self.asker.heard(place);
        self.counters.events.add(Event::Heard);
        match view.kind() {
            Kind::Answer => self.answers(now_ns, place, view, outputs),
            Kind::Correct => {
                let current = view.revision() >= self.revision;
                self.revision = self.revision.max(view.revision());
                for entry in view.entries() {
                    let hidden = current && self.is_hidden(entry, view.revision());
                    let outcome = self.correct(now_ns, entry, hidden, outputs);
                    self.note(outcome);
                }
                Ok(())
            }
            _ => Err(IgnoreReason::WrongKind),
        }
    }

    fn answers(
        &mut self,
        now_ns: u64,
        place: usize,
        view: View<'_>,
        outputs: &mut Vec<Output<H>>,
    ) -> Result<(), IgnoreReason> {
        let request = self.asker.request(view.request_id(), place).ok_or(IgnoreReason::WrongRequest)?;
        if !view.entries().map(|entry| entry.aa).eq(request.aas.iter().copied()) {
            return Err(IgnoreReason::WrongEntries);
        }
        let current = view.revision() >= self.revision;
        self.revision = self.revision.max(view.revision());
        let mut told = false;
        for entry in view.entries() {
            let hidden = current && self.is_hidden(entry, view.revision());
            let outcome = self.answer(now_ns, entry, current, hidden, outputs);
            told |= outcome.is_ok();
            self.note(outcome);
        }
        if told {
            self.asker.answered(now_ns);
        }
        Ok(())
    }

    fn note(&mut self, outcome: Result<(), IgnoreReason>) {
        if let Err(reason) = outcome {
            self.counters.ignored.add(reason);
        }
    }

    /// Whether the entry says that a mapping which was known is hidden from this agent's service since: "unknown" without
    /// a version, as of an AA that never was, from a server that has come past the known version. A mapping found at
    /// start is known by its version only; but a version is never below the revision that made it.
    fn is_hidden(&self, entry: Entry, revision: u64) -> bool {
        let inherited = self.inherited.get(&entry.aa).copied().unwrap_or(0);
        entry.status == Status::Unknown && entry.version == 0 && revision >= inherited
    }

    /// One entry of a valid answer. `current`: no newer revision of the directory has been seen.
    fn answer(
        &mut self,
        now_ns: u64,
        entry: Entry,
        current: bool,
        hidden: bool,
        outputs: &mut Vec<Output<H>>,
    ) -> Result<(), IgnoreReason> {
        let state = self.cache.get(entry.aa).ok_or(IgnoreReason::NothingNew)?;
        let known = state.mapping();
        let asking = matches!(state, State::Resolving(_) | State::Confirming(..));
        let known_version = self.known_version(entry.aa);
        match entry.status {
            Status::Ok if entry.version < known_version => Err(IgnoreReason::Older),
            Status::Ok => match known {
                Some(known) if entry.version == known.version && !asking => Err(IgnoreReason::NothingNew),
                None if !asking => Err(IgnoreReason::NothingNew),
                None if !current => Err(IgnoreReason::Behind),
                _ => {
                    self.install(now_ns, entry, known, outputs);
                    Ok(())
                }
            },
            Status::Unknown | Status::Refused if !asking => Err(IgnoreReason::NothingNew),
            Status::Unknown | Status::Refused if !current => Err(IgnoreReason::Behind),
            Status::Unknown if known_version != 0 && entry.version <= known_version && !hidden => {
                Err(IgnoreReason::Older)
            }
            Status::Unknown => {
                self.turn_negative(now_ns, entry.aa, DropReason::Unknown, outputs);
                Ok(())
            }
            Status::Refused => {
                self.turn_negative(now_ns, entry.aa, DropReason::Refused, outputs);
                Ok(())
            }
            Status::Behind => Err(IgnoreReason::Behind),
            Status::Overloaded => Err(IgnoreReason::Overloaded),
            Status::Question | Status::Other(_) => Err(IgnoreReason::Meaningless),
        }
    }

    /// One entry of a correction: only what is cached, only to something newer (VL2 4.3.2, reactive cache update).
    fn correct(
        &mut self,
        now_ns: u64,
        entry: Entry,
        hidden: bool,
        outputs: &mut Vec<Output<H>>,
    ) -> Result<(), IgnoreReason> {
        let known = self.cache.get(entry.aa).and_then(State::mapping).ok_or(IgnoreReason::NothingNew)?;
        if entry.version <= known.version && !hidden {
            return Err(IgnoreReason::Older);
        }
        match entry.status {
            Status::Ok => self.install(now_ns, entry, Some(known), outputs),
            Status::Unknown => self.turn_negative(now_ns, entry.aa, DropReason::Unknown, outputs),
            _ => return Err(IgnoreReason::Meaningless),
        }
        self.counters.events.add(Event::Corrected);
        Ok(())
    }

    fn install(&mut self, now_ns: u64, entry: Entry, known: Option<Mapping>, outputs: &mut Vec<Output<H>>) {
        let Entry { aa, tor_la, anycast_la, version, .. } = entry;
        let mapping = Mapping { locator: Locator { tor_la, anycast_la }, version };
        let event = match known {
            None => Event::Installed,
            Some(known) if known.locator == mapping.locator => Event::Confirmed,
            Some(_) => Event::Replaced,
        };
        self.counters.events.add(event);
        self.inherited.remove(&aa);
        let lifetime_ns = self.config.timing.lifetime_ns;
        let age_ns = lifetime_ns / 4 * 3 + self.asker.below(lifetime_ns * 3 / 20);
        self.cache.set(aa, State::Fresh(mapping), Some(now_ns + age_ns));
        if known != Some(mapping) {
            outputs.push(Output::Install { aa, mapping });
        }
        for held in self.waiting.take(aa) {
            self.release(aa, held, outputs);
        }
    }

    pub(super) fn turn_negative(
        &mut self,
        now_ns: u64,
        aa: Ipv4Addr,
        reason: DropReason,
        outputs: &mut Vec<Output<H>>,
    ) {
        let had_mapping = self.cache.get(aa).and_then(State::mapping).is_some();
        if had_mapping {
            self.counters.events.add(Event::Removed);
        }
        match reason {
            DropReason::Refused => outputs.push(Output::Refuse { aa }),
            _ if had_mapping => outputs.push(Output::Remove { aa }),
            _ => {}
        }
        if reason == DropReason::Unknown {
            self.inherited.remove(&aa);
        }
        let until_ns = now_ns + self.config.timing.negative_ns;
        self.cache.set(aa, State::Negative(reason), Some(until_ns));
        for _ in self.waiting.take(aa) {
            self.drop_frame(aa, reason, outputs);
        }
    }
}
