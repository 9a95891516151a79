//! Keeping databases equal: what an LSP, CSNP or PSNP does (ISO 10589 section 7.3.15), and what is sent for it.

use std::sync::Arc;

use weft_wire::ethernet::MacAddress;
use weft_wire::isis::pdu::{Csnp, Lsp, Psnp};
use weft_wire::isis::tlv::{LSP_ENTRIES_MAX, LspEntry, code};
use weft_wire::isis::view::{LspHeader, with_lifetime};
use weft_wire::isis::{Kind, LspId, PDU_LEN_MIN, Pdu, SystemId, Tlv, View};
use weft_wire::trill::ALL_IS_IS_RBRIDGES;

use super::RBridge;
use super::counters::{DropReason, Event};
use super::digest::Digest;
use super::flood::Flood;
use super::io::Output;
use super::lsdb::{Change, MAX_AGE_S, Order, ZERO_AGE_S, order};
use super::port::Peer;
use crate::NS_PER_S;

/// TLVs of entries in one sequence numbers PDU: 5 * 242 bytes stay below the 1470 that every link carries.
const ENTRY_TLVS_MAX: usize = 5;
/// Entries in one sequence numbers PDU.
pub(super) const ENTRIES_MAX: usize = ENTRY_TLVS_MAX * LSP_ENTRIES_MAX;

impl RBridge {
    /// The neighbour with address `source`, if LSPs are exchanged with it.
    fn in_sync_with(&self, index: usize, source: MacAddress) -> Result<Peer, DropReason> {
        self.ports[index].in_sync_with(source).map(|(peer, _)| peer).ok_or(DropReason::NoAdjacency)
    }

    /// Acknowledges an LSP that is held. On a shared link nobody waits for that: what is lost there the DRB's next list shows
    /// (ISO 10589 section 7.3.15).
    fn acknowledge(&mut self, now_ns: u64, index: usize, id: LspId) {
        let (psnp_at_ns, port) = (now_ns + self.config.timing.psnp_ns, &mut self.ports[index]);
        if port.shared.is_none() {
            port.flood.list_held(id, psnp_at_ns);
        }
    }

    pub(super) fn lsp(
        &mut self,
        now_ns: u64,
        index: usize,
        source: MacAddress,
        view: &View<'_>,
    ) -> Result<(), DropReason> {
        let peer = self.in_sync_with(index, source)?;
        let Some(header) = view.lsp() else { return Err(DropReason::Unsupported) };
        // A flood brings most LSPs several times; one that is held byte by byte needs no checksum again.
        if !self.is_held(&header, view.as_bytes()) {
            view.verify_checksum().map_err(|_| DropReason::Checksum)?;
        }
        if header.sequence == 0 {
            return Err(DropReason::ZeroSequence);
        }
        if header.lifetime_s == 0 {
            self.counters.events.add(Event::PurgeReceived);
        }
        let incoming = entry_of(&header);
        let held = self.lsdb.get(header.id).map(|entry| entry.entry(header.id, now_ns));
        match held.map(|held| order(&incoming, &held)) {
            Some(Order::Same) => {
                self.counters.events.add(Event::LspSame);
                self.ports[index].flood.sent(header.id);
                self.acknowledge(now_ns, index, header.id);
            }
            Some(Order::Older) => {
                self.counters.events.add(Event::LspOlder);
                self.ports[index].flood.send_now(header.id);
            }
            _ if header.id.system() == self.config.system => {
                self.recall_losses(view);
                self.own_lsp_from_elsewhere(now_ns, index, &incoming);
            }
            Some(Order::Confused) => self.confused(now_ns, header.id),
            None if header.lifetime_s == 0 => return self.list_given(now_ns, index, incoming),
            Some(Order::Newer) | None => return self.take_newer(now_ns, (index, peer), view, &header),
        }
        Ok(())
    }

    /// Whether it is held, byte by byte but for its lifetime.
    pub(super) fn is_held(&self, header: &LspHeader, bytes: &[u8]) -> bool {
        const COVERED: usize = 12;
        let same = |held: &[u8]| held.get(COVERED..) == bytes.get(COVERED..);
        self.lsdb.get(header.id).is_some_and(|entry| !entry.is_purged() && same(entry.bytes()))
    }

    /// Stores an LSP, passes it on everywhere but where it came from, acknowledges it.
    fn take_newer(
        &mut self,
        now_ns: u64,
        (index, peer): (usize, Peer),
        view: &View<'_>,
        header: &LspHeader,
    ) -> Result<(), DropReason> {
        let bounds = self.config.bounds;
        let named = if header.lifetime_s == 0 { self.named_purge(peer, view) } else { None };
        let bytes = named.as_deref().unwrap_or(view.as_bytes());
        let digest = Digest::of(view);
        let old_len = self.lsdb.get(header.id).map_or(0, |entry| entry.bytes().len());
        let new_one = old_len == 0;
        if (new_one && self.lsdb.len() >= bounds.lsps_max.min(usize::from(u16::MAX)))
            || self.lsdb.len_bytes() - old_len + bytes.len() > bounds.lsp_bytes_max
        {
            // Routes through us would be computed from half a database (ISO 10589 section 7.3.19).
            self.overload_for_a_while(now_ns);
            self.hear_unheld_rival(now_ns, header.id.node(), &digest);
            return Err(DropReason::DatabaseFull);
        }
        self.counters.events.add(Event::LspNewer);
        let lifetime_s = self.lifetime_s(now_ns, (index, peer), header);
        for _ in 0..digest.bad_nicknames {
            self.counters.dropped.add(DropReason::BadNickname);
        }
        self.store(now_ns, with_lifetime(bytes, lifetime_s), digest);
        self.flood(header.id, Some(index));
        self.ports[index].flood.sent(header.id);
        self.acknowledge(now_ns, index, header.id);
        Ok(())
    }

    /// How long an LSP that came is held, seconds. No checksum and no digest covers what it says of that, so one that is newly
    /// issued is held for the whole lifetime, whatever somebody made of it on the way (RFC 7987 section 2). A new neighbour's list
    /// may be old; every holder takes at least a second off (ISO 10589 section 7.3.16.3), but only age withdraws an LSP.
    fn lifetime_s(&self, now_ns: u64, (index, peer): (usize, Peer), header: &LspHeader) -> u16 {
        let since_ns = self.ports[index].adjacencies.get(&peer).map_or(now_ns, |with| with.in_sync_since_ns);
        match header.lifetime_s {
            0 => 0,
            _ if now_ns - since_ns >= u64::from(ZERO_AGE_S) * NS_PER_S => MAX_AGE_S,
            told_s => told_s.clamp(2, MAX_AGE_S) - 1,
        }
    }

    /// Puts an LSP into the database; new routes follow if it says something new.
    pub(super) fn store(&mut self, now_ns: u64, bytes: Arc<[u8]>, digest: Digest) {
        match self.lsdb.insert(now_ns, bytes, digest) {
            Change::Nothing => {}
            Change::Something => self.compute_soon(now_ns),
            Change::Loss => self.compute_sooner(now_ns),
        }
    }

    /// Sets SRM on every port that exchanges LSPs.
    pub(super) fn flood(&mut self, id: LspId, but: Option<usize>) {
        for (index, port) in self.ports.iter_mut().enumerate() {
            if Some(index) != but && port.synchronizes() {
                port.flood.send_now(id);
                self.touched.push(index);
            }
        }
    }

    /// Two contents under one number: ours counts as expired, so that its originator issues a newer one.
    fn confused(&mut self, now_ns: u64, id: LspId) {
        self.counters.events.add(Event::LspConfusion);
        self.purge(now_ns, id);
    }

    /// A withdrawal that does not name its originator, with those who brought it named instead (RFC 6232 section 3).
    fn named_purge(&self, peer: Peer, view: &View<'_>) -> Option<Vec<u8>> {
        let has = |wanted| view.tlvs().any(|(kind, _)| kind == wanted);
        let is_long = view.as_bytes().len() > usize::from(PDU_LEN_MIN);
        // Signed by us, what nobody had signed would be believed; without our key, what somebody had signed would not be.
        let is_ours_to_sign = has(code::AUTHENTICATION) == self.config.keys.is_some();
        if is_long || has(code::PURGE_ORIGINATOR) || !is_ours_to_sign {
            return None;
        }
        let Pdu::Lsp(mut purge) = Pdu::of_view(view) else { return None };
        purge.tlvs.retain(|tlv| !matches!(tlv, Tlv::Authentication { .. }));
        purge.tlvs.extend(self.originator(Some(peer.system)));
        let named = self.emit(&Pdu::Lsp(purge));
        (named.len() <= usize::from(PDU_LEN_MIN)).then_some(named)
    }

    /// Who withdraws an LSP (RFC 7780 section 8.6, RFC 6232).
    fn originator(&self, received_from: Option<SystemId>) -> [Tlv; 2] {
        [Tlv::PurgeOriginator { originator: self.config.system, received_from }, self.hostname()]
    }

    /// Withdraws an LSP that is held: its header stays, and says who withdrew it.
    pub(super) fn purge(&mut self, now_ns: u64, id: LspId) {
        let Some(entry) = self.lsdb.get(id) else { return };
        self.withdraw(now_ns, id, entry.sequence());
    }

    /// Issues the withdrawal of one version.
    pub(super) fn withdraw(&mut self, now_ns: u64, id: LspId, sequence: u32) {
        let flags = self.lsdb.get(id).map_or(self.origin.flags(), |entry| entry.flags());
        let tlvs = self.originator(None).into();
        let purge = Pdu::Lsp(Lsp { lifetime_s: 0, id, sequence, flags, tlvs });
        let bytes = self.emit(&purge);
        self.store(now_ns, bytes.into(), Digest::default());
        self.flood(id, None);
    }

    /// Acknowledges, or asks for, what is not held.
    pub(super) fn list_given(&mut self, now_ns: u64, index: usize, entry: LspEntry) -> Result<(), DropReason> {
        let at_ns = now_ns + self.config.timing.psnp_ns;
        let room = self.ports[index].flood.list_given(entry, at_ns, self.config.bounds.requests_max);
        if room { Ok(()) } else { Err(DropReason::RequestsFull) }
    }

    /// A CSNP or PSNP: every entry is compared; what a CSNP leaves out is sent.
    pub(super) fn sequence_numbers(
        &mut self,
        now_ns: u64,
        index: usize,
        source: MacAddress,
        view: &View<'_>,
    ) -> Result<(), DropReason> {
        let peer = self.in_sync_with(index, source)?;
        if view.source() != Some(peer.system) {
            return Err(DropReason::WrongSource);
        }
        // On a shared link the DRB alone answers (ISO 10589 section 7.3.15.2).
        if view.kind() == Kind::Psnp && self.ports[index].shared.as_ref().is_some_and(|shared| !shared.is_drb()) {
            return Err(DropReason::NotDrb);
        }
        let mut listed = Vec::new();
        for (_, value) in view.tlvs().filter(|(kind, _)| *kind == code::LSP_ENTRIES) {
            listed.extend(LspEntry::iter(value).ok_or(DropReason::BadEntries)?);
        }
        if view.kind() == Kind::Csnp {
            let Pdu::Csnp(Csnp { start, end, .. }) = Pdu::of_view(view) else { return Err(DropReason::Unsupported) };
            self.send_what_is_missing(now_ns, index, (start, end), &listed)?;
            self.restart_listed(self.ports[index].config.id, (start, end));
        }
        let mut outcome = Ok(());
        for entry in &listed {
            outcome = outcome.and(self.compare_entry(now_ns, index, entry));
        }
        outcome
    }

    fn send_what_is_missing(
        &mut self,
        now_ns: u64,
        index: usize,
        (start, end): (LspId, LspId),
        listed: &[LspEntry],
    ) -> Result<(), DropReason> {
        if start > end {
            return Err(DropReason::BadEntries);
        }
        self.nickname_may_settle(now_ns);
        let mut ids: Vec<LspId> = listed.iter().map(|entry| entry.id).collect();
        ids.sort_unstable();
        let flood = &mut self.ports[index].flood;
        let held = self.lsdb.range(start..=end).filter(|(_, entry)| !entry.is_purged()).map(|(id, _)| id);
        held.filter(|id| ids.binary_search(id).is_err()).for_each(|id| flood.send_now(id));
        Ok(())
    }

    fn compare_entry(&mut self, now_ns: u64, index: usize, theirs: &LspEntry) -> Result<(), DropReason> {
        let at_ns = now_ns + self.config.timing.psnp_ns;
        let held = self.lsdb.get(theirs.id).map(|entry| entry.entry(theirs.id, now_ns));
        let is_own = theirs.id.system() == self.config.system;
        // What a former life signed with a key that is gone is not believed when it comes; who lists it is.
        let is_told = is_own && self.config.keys.is_some();
        let flood = &mut self.ports[index].flood;
        match held.map(|held| order(theirs, &held)) {
            Some(Order::Same) => flood.sent(theirs.id),
            Some(Order::Older) => flood.send_now(theirs.id),
            Some(Order::Newer) if is_told => self.own_lsp_from_elsewhere(now_ns, index, theirs),
            Some(Order::Newer) => {
                flood.sent(theirs.id);
                flood.list_held(theirs.id, at_ns);
            }
            Some(Order::Confused) if is_own => self.own_lsp_from_elsewhere(now_ns, index, theirs),
            Some(Order::Confused) => self.confused(now_ns, theirs.id),
            None if theirs.lifetime_s == 0 || theirs.sequence == 0 => {}
            None if is_told => self.own_lsp_from_elsewhere(now_ns, index, theirs),
            None => return self.list_given(now_ns, index, LspEntry { sequence: 0, checksum: 0, ..*theirs }),
        }
        Ok(())
    }

    /// What a new neighbour needs: the list of all LSPs, and every LSP that its own list does not show in time. On a shared
    /// link it is the DRB's to list them, after the Hello that tells the neighbour that it is heard.
    pub(super) fn begin_flooding(&mut self, now_ns: u64, index: usize, outputs: &mut Vec<Output>) {
        if let Some(shared) = &mut self.ports[index].shared {
            shared.csnp_at_ns = shared.leads().then_some(now_ns);
            return;
        }
        let resend_ns = now_ns + self.config.timing.resend_ns;
        self.ports[index].flood = Flood::default();
        self.lsdb.iter().for_each(|(id, _)| self.ports[index].flood.send_at(id, resend_ns));
        self.send_list(now_ns, index, outputs);
    }

    /// A complete list of all LSPs; the neighbour sends what is missing in it.
    pub(super) fn send_list(&mut self, now_ns: u64, index: usize, outputs: &mut Vec<Output>) {
        let entries: Vec<LspEntry> = self.lsdb.iter().map(|(id, entry)| entry.entry(id, now_ns)).collect();
        let mut start = LspId::FIRST;
        let mut chunks = entries.chunks(ENTRIES_MAX).peekable();
        loop {
            let chunk = chunks.next().unwrap_or_default();
            let end =
                if chunks.peek().is_some() { chunk.last().map_or(LspId::LAST, |last| last.id) } else { LspId::LAST };
            let tlvs = chunk.chunks(LSP_ENTRIES_MAX).map(|part| Tlv::LspEntries(part.to_vec())).collect();
            let csnp = Pdu::Csnp(Csnp { source: self.config.system.node(), start, end, tlvs });
            self.counters.events.add(Event::CsnpSent);
            self.send(index, &csnp, outputs);
            if end == LspId::LAST {
                return;
            }
            start = LspId((u64::from_be_bytes(end.0) + 1).to_be_bytes());
        }
    }

    /// Sends the LSPs that are due, a burst at a time.
    pub(super) fn send_lsps(&mut self, now_ns: u64, index: usize, outputs: &mut Vec<Output>) {
        let (bounds, again_ns) = (self.config.bounds, now_ns + self.config.timing.resend_ns);
        let port = &mut self.ports[index];
        if port.flood.lsps_at_ns().is_none_or(|at_ns| at_ns > now_ns) {
            return;
        }
        let vlan = port.vlan();
        for _ in 0..bounds.burst_max {
            let Some((id, again)) = port.flood.next(now_ns) else { return };
            let Some(entry) = self.lsdb.get(id) else {
                port.flood.sent(id);
                continue;
            };
            self.counters.events.add(if again { Event::LspResent } else { Event::LspSent });
            let pdu = entry.to_send(now_ns);
            outputs.push(Output::Send { port: port.config.id, vlan, destination: ALL_IS_IS_RBRIDGES, pdu });
            if port.shared.is_some() {
                port.flood.sent(id);
            } else {
                port.flood.send_at(id, again_ns);
            }
        }
        port.flood.resume_ns = now_ns + bounds.burst_ns;
    }

    pub(super) fn send_psnp(&mut self, now_ns: u64, index: usize, outputs: &mut Vec<Output>) {
        let (held, given) = self.ports[index].flood.take_list();
        let version = |id: LspId| self.lsdb.get(id).map(|entry| entry.entry(id, now_ns));
        let unknown = given.into_iter().map(|(id, entry)| version(id).unwrap_or(entry));
        let mut entries: Vec<LspEntry> = held.into_iter().filter_map(version).chain(unknown).collect();
        entries.sort_unstable_by_key(|entry| entry.id);
        entries.dedup_by_key(|entry| entry.id);
        for chunk in entries.chunks(ENTRIES_MAX) {
            let tlvs = chunk.chunks(LSP_ENTRIES_MAX).map(|part| Tlv::LspEntries(part.to_vec())).collect();
            self.counters.events.add(Event::PsnpSent);
            self.send(index, &Pdu::Psnp(Psnp { source: self.config.system.node(), tlvs }), outputs);
        }
    }

    /// Withdraws what nobody renewed, forgets what was withdrawn long ago.
    pub(super) fn age(&mut self, now_ns: u64) {
        while let Some(id) = self.lsdb.expired(now_ns) {
            if self.lsdb.get(id).is_some_and(|entry| entry.is_purged()) {
                self.lsdb.remove(id);
            } else {
                self.counters.events.add(Event::LspExpired);
                self.purge(now_ns, id);
            }
        }
    }
}

fn entry_of(header: &LspHeader) -> LspEntry {
    let LspHeader { lifetime_s, id, sequence, checksum, .. } = *header;
    LspEntry { lifetime_s, id, sequence, checksum }
}
