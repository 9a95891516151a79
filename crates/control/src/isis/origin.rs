//! Our own LSPs: what they say, in which fragments, under which sequence numbers (ISO 10589 sections 7.3.2 to 7.3.7).

use std::collections::BTreeMap;

use weft_wire::isis::lsp::{CapabilitySub, InterestedVlans, NicknameRecord, Reach};
use weft_wire::isis::pdu::Lsp;
use weft_wire::isis::tlv::LspEntry;
use weft_wire::isis::view::LspFlags;
use weft_wire::isis::{AREA, Kind, NLPID_TRILL, PDU_LEN_MIN, Pdu, Tlv, View};

use super::RBridge;
use super::counters::{DropReason, Event};
use super::digest::Digest;
use super::lsdb::{MAX_AGE_S, ZERO_AGE_S};
use crate::NS_PER_S;

/// Neighbours in one TLV: 11 bytes each.
const REACH_MAX: usize = 255 / 11;
/// Ranges of VLANs in one TLV: 12 bytes each behind 5.
const RANGES_MAX: usize = 250 / 12;
/// Bytes of a host name.
const HOSTNAME_MAX: usize = 64;
/// Room for TLVs in a fragment that every link carries.
const ROOM: usize = PDU_LEN_MIN as usize - Kind::Lsp.header_len();
/// Fragments of one LSP.
const FRAGMENTS_MAX: usize = 256;

/// What was issued, and when something is to be issued next.
#[derive(Debug)]
pub(super) struct Origin {
    issued: BTreeMap<u8, Issued>,
    /// Highest sequence number that anybody ever saw of a fragment, as far as we know.
    seen: BTreeMap<u8, u32>,
    /// Fragments whose numbers have run out, and until when they stay silent so that every copy is forgotten.
    silent: BTreeMap<u8, u64>,
    flags: LspFlags,
    pub(super) due_ns: Option<u64>,
    last_ns: Option<u64>,
    overload_wanted: bool,
    pub(super) overload_until_ns: Option<u64>,
}

#[derive(Debug)]
struct Issued {
    tlvs: Vec<Tlv>,
    flags: LspFlags,
    renew_ns: u64,
    /// Somebody else showed this version, or a newer one, otherwise: it has to be said above that.
    challenged: bool,
}

impl Origin {
    pub(super) fn new() -> Self {
        Self {
            issued: BTreeMap::new(),
            seen: BTreeMap::new(),
            silent: BTreeMap::new(),
            flags: LspFlags::LEVEL_1,
            due_ns: None,
            last_ns: None,
            overload_wanted: false,
            overload_until_ns: None,
        }
    }

    pub(super) fn flags(&self) -> LspFlags {
        self.flags
    }

    /// When something has to be issued, renewed or may be said again.
    pub(super) fn next_deadline_ns(&self) -> Option<u64> {
        let renew = self.issued.values().map(|issued| issued.renew_ns).min();
        let speak = self.silent.values().copied().min();
        [self.due_ns, renew, speak, self.overload_until_ns].into_iter().flatten().min()
    }
}

impl RBridge {
    /// New LSPs follow: soon, but not too soon after the last ones.
    pub(super) fn describe_soon(&mut self, now_ns: u64) {
        let timing = self.config.timing;
        let after_last = self.origin.last_ns.map_or(0, |last_ns| last_ns + timing.lsp_interval_ns);
        let at_ns = (now_ns + timing.lsp_delay_ns).max(after_last);
        let due = self.origin.due_ns.get_or_insert(at_ns);
        *due = at_ns.min(*due);
    }

    pub(super) fn set_overload(&mut self, now_ns: u64, wanted: bool) {
        self.origin.overload_wanted = wanted;
        self.describe_soon(now_ns);
    }

    pub(super) fn overload_for_a_while(&mut self, now_ns: u64) {
        let begins = self.origin.overload_until_ns.is_none();
        self.origin.overload_until_ns = Some(now_ns + self.config.timing.overload_ns);
        if begins {
            self.describe_soon(now_ns);
        }
    }

    /// An LSP of ours that we did not issue, or not so: from a former life, from a system with our ID, or damaged.
    /// What we have to say is said again above its number; the rest is withdrawn.
    pub(super) fn own_lsp_from_elsewhere(&mut self, now_ns: u64, index: usize, theirs: &LspEntry) {
        self.counters.events.add(Event::OwnLspNewer);
        let fragment = theirs.id.fragment();
        let ours = theirs.id.node() == self.config.system.node();
        if ours {
            let seen = self.origin.seen.entry(fragment).or_default();
            *seen = theirs.sequence.max(*seen);
        }
        if let Some(issued) = self.origin.issued.get_mut(&fragment).filter(|_| ours) {
            issued.challenged = true;
            return self.describe_soon(now_ns);
        }
        if theirs.lifetime_s > 0 {
            if self.lsdb.len() >= self.config.bounds.lsps_max {
                return self.counters.dropped.add(DropReason::DatabaseFull);
            }
            return self.withdraw(now_ns, theirs.id, theirs.sequence);
        }
        let (at_ns, most) = (now_ns + self.config.timing.psnp_ns, self.config.bounds.requests_max);
        if !self.ports[index].flood.list_given(*theirs, at_ns, most) {
            self.counters.dropped.add(DropReason::RequestsFull);
        }
    }

    /// Issues what is new, renews what grew old, withdraws what is no longer said.
    pub(super) fn describe(&mut self, now_ns: u64) {
        if self.origin.overload_until_ns.is_some_and(|until_ns| until_ns <= now_ns) {
            self.origin.overload_until_ns = None;
        }
        self.origin.silent.retain(|_, until_ns| *until_ns > now_ns);
        self.origin.due_ns = None;
        self.origin.last_ns = Some(now_ns);
        let overloaded = self.origin.overload_wanted || self.origin.overload_until_ns.is_some();
        self.origin.flags = LspFlags::LEVEL_1.with_overload(overloaded);
        let wanted = self.fragments();
        for fragment in
            self.origin.issued.keys().copied().filter(|at| usize::from(*at) >= wanted.len()).collect::<Vec<_>>()
        {
            self.origin.issued.remove(&fragment);
            self.purge(now_ns, self.config.system.lsp(fragment));
        }
        for (fragment, tlvs) in wanted.into_iter().enumerate() {
            self.describe_fragment(now_ns, fragment as u8, tlvs);
        }
    }

    fn describe_fragment(&mut self, now_ns: u64, fragment: u8, tlvs: Vec<Tlv>) {
        let id = self.config.system.lsp(fragment);
        let held = self.lsdb.get(id);
        let is_held = held.is_some_and(|entry| !entry.is_purged());
        let seen = self.origin.seen.get(&fragment).copied().unwrap_or(0);
        let fresh = self.origin.issued.get(&fragment).is_some_and(|issued| {
            let unchanged = issued.tlvs == tlvs && issued.flags == self.origin.flags;
            unchanged && !issued.challenged && issued.renew_ns > now_ns
        });
        if self.origin.silent.contains_key(&fragment) || (fresh && is_held) {
            return;
        }
        let highest = seen.max(held.map_or(0, |entry| entry.sequence()));
        let Some(sequence) = highest.checked_add(1) else { return self.run_out(now_ns, fragment) };
        let flags = self.origin.flags;
        let lsp = Pdu::Lsp(Lsp { lifetime_s: MAX_AGE_S, id, sequence, flags, tlvs: tlvs.clone() });
        let bytes = lsp.emit().expect("fragments are packed to fit");
        let digest = Digest::of(&View::new(&bytes).expect("what was written can be read"));
        let renew_ns = now_ns + self.earlier(self.config.timing.refresh_ns);
        self.origin.seen.insert(fragment, sequence);
        self.origin.issued.insert(fragment, Issued { tlvs, flags, renew_ns, challenged: false });
        self.counters.events.add(Event::LspIssued);
        self.store(now_ns, bytes.into(), digest);
        self.flood(id, None);
    }

    /// The last sequence number is used up: the fragment is withdrawn, and begins anew at 1 when no copy can be left
    /// (ISO 10589 section 7.3.16.1).
    fn run_out(&mut self, now_ns: u64, fragment: u8) {
        self.counters.events.add(Event::SequenceEnd);
        let until_ns = now_ns + u64::from(MAX_AGE_S + ZERO_AGE_S) * NS_PER_S;
        self.origin.silent.insert(fragment, until_ns);
        self.origin.seen.remove(&fragment);
        self.origin.issued.remove(&fragment);
        self.withdraw(now_ns, self.config.system.lsp(fragment), u32::MAX);
    }

    /// What we have to say, packed into fragments; the first holds what RFC 6325 wants there.
    fn fragments(&mut self) -> Vec<Vec<Tlv>> {
        let mut fragments = vec![self.first_tlvs()];
        let mut used = Tlv::len_bytes(&fragments[0]);
        for tlv in self.further_tlvs() {
            let len = Tlv::len_bytes(std::slice::from_ref(&tlv));
            if used + len > ROOM {
                if fragments.len() == FRAGMENTS_MAX {
                    self.counters.events.add(Event::LspTooLarge);
                    break;
                }
                fragments.push(Vec::new());
                used = 0;
            }
            used += len;
            fragments.last_mut().expect("there is a first").push(tlv);
        }
        fragments
    }

    fn first_tlvs(&self) -> Vec<Tlv> {
        let config = &self.config;
        let trees = config.trees_max.max(1);
        let mut subs = vec![CapabilitySub::TrillVersion { max_version: 0, capabilities: 0 }];
        if let Some(nickname) = self.nickname.value {
            let (priority, root_priority) = (self.nickname.priority, config.root_priority);
            subs.push(CapabilitySub::Nicknames(vec![NicknameRecord { priority, root_priority, nickname }]));
        }
        subs.push(CapabilitySub::Trees { compute: trees, max: trees, use_count: 1 });
        let name = config.hostname.as_bytes();
        vec![
            Tlv::Areas(vec![AREA.to_vec()]),
            Tlv::Protocols(vec![NLPID_TRILL]),
            Tlv::LspBufferSize(PDU_LEN_MIN),
            Tlv::Hostname(name[..name.len().min(HOSTNAME_MAX)].to_vec()),
            self.capability(subs),
        ]
    }

    fn further_tlvs(&self) -> Vec<Tlv> {
        let links: Vec<Reach> = self.links().iter().map(|link| Reach::plain(link.neighbor.node(), link.cost)).collect();
        let mut tlvs: Vec<Tlv> = links.chunks(REACH_MAX).map(|chunk| Tlv::Reach(chunk.to_vec())).collect();
        let nickname = self.nickname.value.unwrap_or(0);
        let interests: Vec<CapabilitySub> =
            self.vlans.ranges().into_iter().map(|range| interest(nickname, range)).collect();
        tlvs.extend(interests.chunks(RANGES_MAX).map(|chunk| self.capability(chunk.to_vec())));
        tlvs
    }

    /// RFC 7981 forbids a router ID of zero without an IPv6 one, so it is the end of the system ID.
    fn capability(&self, subs: Vec<CapabilitySub>) -> Tlv {
        let [_, _, a, b, c, d] = self.config.system.0;
        Tlv::Capability { router_id: u32::from_be_bytes([a, b, c, d]).max(1), flags: 0, subs }
    }
}

/// Without snooping every group is wanted, which M4 and M6 say (RFC 6325 section 4.7).
fn interest(nickname: u16, (start_vlan, end_vlan): (u16, u16)) -> CapabilitySub {
    CapabilitySub::InterestedVlans(InterestedVlans {
        nickname,
        all_ipv4_groups: true,
        all_ipv6_groups: true,
        esadi: false,
        start_vlan,
        end_vlan,
        forwarder_lost: 0,
        root_bridges: Vec::new(),
    })
}
