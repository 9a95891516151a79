//! Our own LSPs, and those of shared links that we speak for: what they say, in which fragments, under which sequence numbers
//! (ISO 10589 sections 7.3.2 to 7.3.7).

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;

use weft_wire::isis::group::{GroupRecord, GroupSub, Groups};
use weft_wire::isis::lsp::{CapabilitySub, InterestedVlans, Reach, TreeList};
use weft_wire::isis::pdu::Lsp;
use weft_wire::isis::tlv::LspEntry;
use weft_wire::isis::view::LspFlags;
use weft_wire::isis::{AREA, Kind, LspId, NLPID_TRILL, PDU_LEN_MIN, Pdu, Tlv, View};
use weft_wire::listener::Group;

use super::RBridge;
use super::counters::{DropReason, Event};
use super::digest::Digest;
use super::io::Output;
use super::lsdb::{MAX_AGE_S, ZERO_AGE_S};
use super::packing::{GROUPS_MAX, Interest, Item, Packing, RANGES_MAX, REACH_MAX};
use crate::NS_PER_S;

/// Bytes of a host name.
const HOSTNAME_MAX: usize = 64;

/// So many losses in a row are told without regard to the interval.
const LOSSES_IN_A_ROW: u64 = 4;

/// What was issued, and when something is to be issued next.
#[derive(Debug)]
pub(super) struct Origin {
    packing: Packing,
    issued: BTreeMap<LspId, Issued>,
    /// Highest sequence number that anybody ever saw of a fragment, as far as we know.
    seen: BTreeMap<LspId, u32>,
    /// Fragments whose numbers have run out, and until when they stay silent so that every copy is forgotten.
    silent: BTreeMap<LspId, u64>,
    flags: LspFlags,
    /// The trees that frames are to be brought onto; none where there is no choice.
    trees: BTreeSet<u16>,
    pub(super) due_ns: Option<u64>,
    last_ns: Option<u64>,
    /// When all that was issued were issued if it had come once in each interval.
    paced_ns: u64,
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
            packing: Packing::default(),
            issued: BTreeMap::new(),
            seen: BTreeMap::new(),
            silent: BTreeMap::new(),
            flags: LspFlags::LEVEL_1,
            trees: BTreeSet::new(),
            due_ns: None,
            last_ns: None,
            paced_ns: 0,
            overload_wanted: false,
            overload_until_ns: None,
        }
    }

    pub(super) fn flags(&self) -> LspFlags {
        self.flags
    }

    pub(super) fn is_overloaded(&self) -> bool {
        self.overload_wanted || self.overload_until_ns.is_some()
    }

    /// All that was issued has to be issued anew.
    pub(super) fn challenge_all(&mut self) {
        self.issued.values_mut().for_each(|issued| issued.challenged = true);
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
        let after_last = self.origin.last_ns.map_or(0, |last_ns| last_ns + self.config.timing.lsp_interval_ns);
        self.describe_after(now_ns, after_last);
    }

    /// The same after a loss: others send what they have into nothing until they know, also where something else was just told. Who
    /// loses and finds a neighbour again and again keeps to the interval.
    pub(super) fn tell_loss(&mut self, now_ns: u64) {
        let ahead_ns = LOSSES_IN_A_ROW * self.config.timing.lsp_interval_ns;
        self.describe_after(now_ns, self.origin.paced_ns.saturating_sub(ahead_ns));
    }

    fn describe_after(&mut self, now_ns: u64, not_before_ns: u64) {
        if self.is_restarting() || self.leave_at_ns.is_some() {
            return;
        }
        let at_ns = (now_ns + self.config.timing.lsp_delay_ns).max(not_before_ns);
        let due = self.origin.due_ns.get_or_insert(at_ns);
        *due = at_ns.min(*due);
    }

    pub(super) fn set_overload(&mut self, now_ns: u64, wanted: bool) {
        self.origin.overload_wanted = wanted;
        self.describe_soon(now_ns);
    }

    /// Others shall know which trees our frames come by, before any does (RFC 6325 section 4.5.2).
    pub(super) fn announce_trees(&mut self, now_ns: u64, roots: BTreeSet<u16>) {
        if self.origin.trees != roots {
            self.origin.trees = roots;
            self.describe_soon(now_ns);
        }
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
        if self.may_issue(theirs.id) {
            let seen = self.origin.seen.entry(theirs.id).or_default();
            *seen = theirs.sequence.max(*seen);
        }
        if let Some(restart) = &mut self.restart {
            restart.note_former(*theirs);
            return self.acknowledge_own(now_ns, index, theirs);
        }
        if let Some(issued) = self.origin.issued.get_mut(&theirs.id) {
            issued.challenged = true;
            return self.describe_soon(now_ns);
        }
        if theirs.lifetime_s > 0 {
            if self.lsdb.len() >= self.config.bounds.lsps_max {
                return self.counters.dropped.add(DropReason::DatabaseFull);
            }
            return self.withdraw(now_ns, theirs.id, theirs.sequence);
        }
        self.acknowledge_own(now_ns, index, theirs);
    }

    /// Whether it is a fragment of ours, or of a shared link that we could speak for.
    fn may_issue(&self, id: LspId) -> bool {
        let nodes = usize::from(id.node().0[6]);
        id.node() == self.config.system.node() || nodes <= self.ports.len()
    }

    /// All LSPs that could be ours.
    pub(super) fn own_lsps(&self) -> RangeInclusive<LspId> {
        let [a, b, c, d, e, f] = self.config.system.0;
        LspId([a, b, c, d, e, f, 0, 0])..=LspId([a, b, c, d, e, f, u8::MAX, u8::MAX])
    }

    fn acknowledge_own(&mut self, now_ns: u64, index: usize, theirs: &LspEntry) {
        if let Err(reason) = self.list_given(now_ns, index, *theirs) {
            self.counters.dropped.add(reason);
        }
    }

    /// Trees are used as soon as they were announced.
    pub(super) fn describe_and_follow(&mut self, now_ns: u64, outputs: &mut Vec<Output>) {
        self.describe(now_ns);
        let mut announced = self.origin.trees.clone();
        announced.retain(|root| self.forwarding.trees.contains_key(root));
        if !announced.is_empty() && self.forwarding.own_trees != announced {
            self.forwarding.own_trees = announced;
            outputs.push(Output::ForwardingChanged);
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
        self.origin.paced_ns = self.origin.paced_ns.max(now_ns) + self.config.timing.lsp_interval_ns;
        self.origin.flags = LspFlags::LEVEL_1.with_overload(self.origin.is_overloaded());
        let ended = self.fragments_at_their_end();
        for id in &ended {
            self.fall_silent(now_ns, *id);
        }
        let mut fragments = self.fragments();
        let unsaid = self.origin.issued.keys().copied().filter(|id| !fragments.contains_key(id));
        for id in self.in_order(fragments.keys().copied().chain(unsaid).collect()) {
            match fragments.remove(&id) {
                Some(tlvs) => self.describe_fragment(now_ns, id, tlvs),
                None => self.fall_empty(now_ns, id),
            }
        }
        for id in ended {
            self.withdraw(now_ns, id, u32::MAX);
        }
    }

    /// The order in which fragments are to be told: our own as their packing has it, then those of shared links.
    fn in_order(&self, ids: Vec<LspId>) -> Vec<LspId> {
        let (own, shared): (Vec<LspId>, Vec<LspId>) = ids.into_iter().partition(|id| !id.node().is_pseudonode());
        let own = self.origin.packing.order(own.into_iter().map(LspId::fragment));
        own.into_iter().map(|fragment| self.config.system.lsp(fragment)).chain(shared).collect()
    }

    /// Fragments that would have to be issued above the last sequence number.
    fn fragments_at_their_end(&self) -> Vec<LspId> {
        let challenged = self.origin.issued.iter().filter(|(_, issued)| issued.challenged);
        challenged.map(|(id, _)| *id).filter(|id| self.highest(*id) == u32::MAX).collect()
    }

    /// The highest sequence number of an own fragment that anybody is known to have seen.
    fn highest(&self, id: LspId) -> u32 {
        let held = self.lsdb.get(id).map_or(0, |entry| entry.sequence());
        self.origin.seen.get(&id).copied().unwrap_or(0).max(held)
    }

    /// Nothing is left to be said there.
    fn fall_empty(&mut self, now_ns: u64, id: LspId) {
        self.origin.issued.remove(&id);
        self.purge(now_ns, id);
    }

    fn describe_fragment(&mut self, now_ns: u64, id: LspId, tlvs: Vec<Tlv>) {
        let is_held = self.lsdb.get(id).is_some_and(|entry| !entry.is_purged());
        // A shared link is crossed also where its DRB is not.
        let flags = if id.node().is_pseudonode() { LspFlags::LEVEL_1 } else { self.origin.flags };
        let fresh = self.origin.issued.get(&id).is_some_and(|issued| {
            let unchanged = issued.tlvs == tlvs && issued.flags == flags;
            unchanged && !issued.challenged && issued.renew_ns > now_ns
        });
        if self.origin.silent.contains_key(&id) || (fresh && is_held) {
            return;
        }
        let Some(sequence) = self.highest(id).checked_add(1) else {
            self.fall_silent(now_ns, id);
            self.describe_soon(now_ns);
            return self.withdraw(now_ns, id, u32::MAX);
        };
        let lsp = Pdu::Lsp(Lsp { lifetime_s: MAX_AGE_S, id, sequence, flags, tlvs: tlvs.clone() });
        let bytes = self.emit(&lsp);
        let digest = Digest::of(&View::new(&bytes).expect("what was written can be read"));
        let renew_ns = now_ns + self.earlier(self.config.timing.refresh_ns);
        self.origin.seen.insert(id, sequence);
        self.origin.issued.insert(id, Issued { tlvs, flags, renew_ns, challenged: false });
        self.counters.events.add(Event::LspIssued);
        self.store(now_ns, bytes.into(), digest);
        self.flood(id, None);
    }

    /// The last sequence number is used up: the fragment is to be withdrawn, and begins anew at 1 when no copy can be left
    /// (ISO 10589 section 7.3.16.1). Meanwhile others say what it said; nobody speaks for the first.
    fn fall_silent(&mut self, now_ns: u64, id: LspId) {
        self.counters.events.add(Event::SequenceEnd);
        let until_ns = now_ns + u64::from(MAX_AGE_S + ZERO_AGE_S) * NS_PER_S;
        self.origin.silent.insert(id, until_ns);
        self.origin.seen.remove(&id);
        self.origin.issued.remove(&id);
    }

    /// What we have to say, packed into fragments; the first holds what RFC 6325 wants there. Then what shared links have to
    /// say, whose neighbours fit into one.
    fn fragments(&mut self) -> BTreeMap<LspId, Vec<Tlv>> {
        let (items, first) = (self.items(), self.first_tlvs());
        let taken = Kind::Lsp.header_len() + Tlv::len_bytes(&self.signature_place());
        let room = usize::from(self.sz_bytes) - taken;
        // The first one tells what others must know to have the longer ones.
        let room_in_first = (usize::from(PDU_LEN_MIN) - taken).saturating_sub(Tlv::len_bytes(&first));
        let (silent, system) = (&self.origin.silent, self.config.system);
        let room_in = |fragment: u8| match fragment {
            0 => room_in_first,
            _ if silent.contains_key(&system.lsp(fragment)) => 0,
            _ => room,
        };
        if !self.origin.packing.pack(&items, room_in) {
            self.counters.events.add(Event::LspTooLarge);
        }
        let mut fragments = BTreeMap::from([(system.lsp(0), first)]);
        for (fragment, items) in self.origin.packing.fragments() {
            fragments.entry(system.lsp(fragment)).or_default().extend(self.item_tlvs(&items));
        }
        fragments.extend(self.pseudonodes().into_iter().map(|(node, tlvs)| (node.lsp(0), tlvs)));
        fragments
    }

    /// Links, VLANs and groups.
    fn items(&self) -> BTreeSet<Item> {
        let mut vlans = self.vlans.clone();
        vlans.add_all(&self.forwarded_vlans());
        let mut items: BTreeSet<Item> = self.alike(&vlans).collect();
        let listened = self.listeners.groups.iter().filter(|group| vlans.contains(group.vlan));
        items.extend(listened.map(|group| Item::Group(*group)));
        for link in self.told_links() {
            let item = |nth| Item::Link { neighbor: link.via, cost: link.cost, nth };
            let free = (0..=u16::MAX).map(item).find(|item| !items.contains(item));
            items.extend(free);
        }
        items
    }

    fn first_tlvs(&self) -> Vec<Tlv> {
        let config = &self.config;
        let trees = config.trees_max.max(1);
        let mut subs = vec![CapabilitySub::TrillVersion { max_version: 0, capabilities: 0 }];
        let nicknames = self.nicknames.records(config.root_priority);
        if !nicknames.is_empty() {
            subs.push(CapabilitySub::Nicknames(nicknames));
        }
        subs.push(CapabilitySub::Trees { compute: trees, max: trees, use_count: config.trees_used.max(1) });
        if !self.origin.trees.is_empty() {
            let roots = self.origin.trees.iter().copied().collect();
            subs.push(CapabilitySub::TreesUsed(TreeList { start: 1, roots }));
        }
        vec![
            Tlv::Areas(vec![AREA.to_vec()]),
            Tlv::Protocols(vec![NLPID_TRILL]),
            Tlv::LspBufferSize(config.lsp_buffer_bytes.max(PDU_LEN_MIN)),
            self.hostname(),
            self.capability(subs),
        ]
    }

    pub(super) fn hostname(&self) -> Tlv {
        let name = self.config.hostname.as_bytes();
        Tlv::Hostname(name[..name.len().min(HOSTNAME_MAX)].to_vec())
    }

    fn item_tlvs(&self, items: &[Item]) -> Vec<Tlv> {
        let nickname = self.nickname().unwrap_or(0);
        let (mut links, mut interests, mut groups) = (Vec::new(), Vec::new(), Vec::new());
        for item in items {
            match *item {
                Item::Link { neighbor, cost, .. } => links.push(Reach::plain(neighbor, cost)),
                Item::Vlans(first, last, said) => interests.push(interest(nickname, (first, last), said)),
                Item::Group(group) => groups.push(group),
            }
        }
        let links = links.chunks(REACH_MAX).map(|chunk| Tlv::Reach(chunk.to_vec()));
        let interests = interests.chunks(RANGES_MAX).map(|chunk| self.capability(chunk.to_vec()));
        let alike = groups.chunk_by(|a, b| a.vlan == b.vlan);
        links.chain(interests).chain(alike.flat_map(|alike| alike.chunks(GROUPS_MAX)).map(listened)).collect()
    }

    /// RFC 7981 forbids a router ID of zero without an IPv6 one, so it is the end of the system ID.
    fn capability(&self, subs: Vec<CapabilitySub>) -> Tlv {
        let [_, _, a, b, c, d] = self.config.system.0;
        Tlv::Capability { router_id: u32::from_be_bytes([a, b, c, d]).max(1), flags: 0, subs }
    }
}

fn interest(nickname: u16, (start_vlan, end_vlan): (u16, u16), said: Interest) -> CapabilitySub {
    let (all_ipv4_groups, all_ipv6_groups) = said.all_groups;
    CapabilitySub::InterestedVlans(InterestedVlans {
        nickname,
        all_ipv4_groups,
        all_ipv6_groups,
        esadi: false,
        start_vlan,
        end_vlan,
        forwarder_lost: said.forwarder_lost,
        root_bridges: Vec::new(),
    })
}

/// Groups of one VLAN.
fn listened(groups: &[Group]) -> Tlv {
    let records = groups.iter().map(|group| GroupRecord { group: group.mac.0, sources: Vec::new() }).collect();
    let vlan = groups.first().map_or(0, |group| group.vlan);
    Tlv::Groups(vec![GroupSub::Mac(Groups { topology: 0, vlan, records })])
}
