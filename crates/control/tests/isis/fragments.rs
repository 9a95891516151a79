//! An LSP of several fragments: how it is split, grows and shrinks, and what happens when one of its numbers ends.
//!
//! The victim's neighbour is the witness: it knows of the victim's LSP what arrived at it, in the order of arrival.

use std::collections::{BTreeMap, BTreeSet};

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use weft_control::isis::{Bounds, Config, Event, Input, Output};
use weft_control::{Machine, NS_PER_MS, NS_PER_S};
use weft_wire::ethernet::MacAddress;
use weft_wire::isis::group::GroupSub;
use weft_wire::isis::hello::HandshakeState;
use weft_wire::isis::lsp::CapabilitySub;
use weft_wire::isis::pdu::Lsp;
use weft_wire::isis::{Pdu, Tlv};
use weft_wire::listener::{Group, Listeners};
use weft_wire::vlan::VlanSet;

use super::peer::{ME, Says, hello, lsp, psnp, system};
use super::victim::{IntoBytes, Victim};

/// What a neighbour was told: the VLANs of each fragment, and its number.
#[derive(Default)]
struct Witness {
    held: BTreeMap<u8, (u32, VlanSet)>,
    groups: BTreeMap<u8, BTreeSet<Group>>,
    /// How long fragments but the first may be, if that is not 1470.
    sz_bytes: Option<usize>,
    longest_bytes: usize,
    /// LSPs seen.
    seen: usize,
    /// What must never be missing while fragments come in one by one.
    always: BTreeSet<u16>,
    always_groups: BTreeSet<Group>,
}

impl Witness {
    fn vlans(&self) -> BTreeSet<u16> {
        (1..4095).filter(|vlan| self.held.values().any(|(_, set)| set.contains(*vlan))).collect()
    }

    fn fragments(&self) -> Vec<u8> {
        self.held.keys().copied().collect()
    }

    fn hear(&mut self, pdu: &[u8]) {
        let Ok(Pdu::Lsp(lsp)) = Pdu::parse(pdu) else { return };
        let most_bytes = self.sz_bytes.filter(|_| lsp.id.fragment() > 0).unwrap_or(1470);
        assert!(pdu.len() <= most_bytes, "{} bytes", pdu.len());
        self.longest_bytes = self.longest_bytes.max(pdu.len());
        assert_eq!(lsp.id.node(), system(ME).node());
        self.seen += 1;
        if lsp.lifetime_s == 0 {
            self.held.remove(&lsp.id.fragment());
            self.groups.remove(&lsp.id.fragment());
        } else {
            self.held.insert(lsp.id.fragment(), (lsp.sequence, vlans_of(&lsp)));
            self.groups.insert(lsp.id.fragment(), groups_of(&lsp));
        }
        let missing: Vec<_> = self.always.difference(&self.vlans()).copied().collect();
        assert!(missing.is_empty(), "missing for a moment: {missing:?}");
        let groups: BTreeSet<Group> = self.groups.values().flatten().copied().collect();
        let missing: Vec<_> = self.always_groups.difference(&groups).collect();
        assert!(missing.is_empty(), "missing for a moment: {missing:?}");
    }
}

fn vlans_of(lsp: &Lsp) -> VlanSet {
    let subs = lsp.tlvs.iter().flat_map(|tlv| if let Tlv::Capability { subs, .. } = tlv { &subs[..] } else { &[] });
    let mut set = VlanSet::default();
    for sub in subs {
        if let CapabilitySub::InterestedVlans(interest) = sub {
            set.add_range(interest.start_vlan, interest.end_vlan);
        }
    }
    set
}

fn groups_of(lsp: &Lsp) -> BTreeSet<Group> {
    let subs = lsp.tlvs.iter().flat_map(|tlv| if let Tlv::Groups(subs) = tlv { &subs[..] } else { &[] });
    subs.flat_map(GroupSub::groups).collect()
}

/// Lets the victim say something new, and acknowledges all of it.
fn say(victim: &mut Victim, witness: &mut Witness, input: Input<'_>) {
    victim.put(input);
    listen(victim, witness, 3 * NS_PER_S);
}

fn listen(victim: &mut Victim, witness: &mut Witness, time_ns: u64) {
    let until_ns = victim.now_ns + time_ns;
    while let Some(at_ns) = victim.bridge.next_deadline_ns().filter(|at_ns| *at_ns <= until_ns) {
        victim.now_ns = at_ns.max(victim.now_ns);
        victim.put(Input::Deadline);
        let outputs = victim.outputs.clone();
        for output in &outputs {
            if let Output::Send { pdu, .. } = output {
                witness.hear(pdu);
                acknowledge(victim, pdu);
            }
        }
    }
    victim.now_ns = until_ns;
}

fn acknowledge(victim: &mut Victim, pdu: &[u8]) {
    let Ok(Pdu::Lsp(lsp)) = Pdu::parse(pdu) else { return };
    let Some(entry) = victim.bridge.lsdb().get(lsp.id).map(|entry| entry.entry(lsp.id, victim.now_ns)) else { return };
    victim.from(2, &psnp(2, vec![entry]).into_bytes());
}

fn set(vlans: impl IntoIterator<Item = u16>) -> VlanSet {
    vlans.into_iter().collect()
}

/// Every other VLAN: as many ranges as VLANs.
fn scattered(count: u16) -> BTreeSet<u16> {
    (0..count).map(|at| 2 + 2 * at).collect()
}

fn victim_in(vlans: &BTreeSet<u16>) -> (Victim, Witness) {
    let (mut victim, mut witness) = (Victim::new(Bounds::default()), Witness::default());
    say(&mut victim, &mut witness, Input::Interest(set(vlans.iter().copied())));
    assert_eq!(witness.vlans(), *vlans);
    (victim, witness)
}

#[test]
fn what_does_not_fit_into_one_goes_into_several() {
    let (_, witness) = victim_in(&scattered(500));
    assert_eq!(witness.fragments(), [0, 1, 2, 3, 4]);
}

#[test]
fn a_change_touches_one_fragment() {
    let mut vlans = scattered(500);
    let (mut victim, mut witness) = victim_in(&vlans);
    let numbers = |witness: &Witness| witness.held.values().map(|(number, _)| *number).collect::<Vec<_>>();
    for vlan in [300, 2, 1000] {
        let (before, seen) = (numbers(&witness), witness.seen);
        vlans.remove(&vlan);
        say(&mut victim, &mut witness, Input::Interest(set(vlans.iter().copied())));
        assert_eq!(witness.vlans(), vlans);
        assert_eq!(witness.seen, seen + 1, "one LSP tells it");
        let changed = numbers(&witness).iter().zip(&before).filter(|(new, old)| new != old).count();
        assert_eq!(changed, 1);
    }
}

#[test]
fn what_is_not_needed_is_withdrawn_and_may_come_back() {
    let (mut victim, mut witness) = victim_in(&scattered(500));
    let numbers = witness.held.clone();
    let few = scattered(100);
    witness.always = few.clone();
    say(&mut victim, &mut witness, Input::Interest(set(few.iter().copied())));
    assert_eq!((witness.vlans(), witness.fragments()), (few, vec![0]));
    say(&mut victim, &mut witness, Input::Interest(set(scattered(500))));
    assert_eq!(witness.vlans(), scattered(500));
    assert!((1..5).all(|fragment| witness.held[&fragment].0 > numbers[&fragment].0), "above what was withdrawn");
}

/// Whatever changes, what is neither new nor gone is known at every moment while the fragments arrive.
#[test]
fn what_stays_is_never_missing_for_a_moment() {
    let mut rng = Pcg64Mcg::seed_from_u64(77);
    let mut vlans = scattered(300);
    let (mut victim, mut witness) = victim_in(&vlans);
    for round in 0..300 {
        let old = vlans.clone();
        for _ in 0..rng.random_range(1..6) {
            let vlan = rng.random_range(1..1500);
            if !vlans.remove(&vlan) {
                vlans.insert(vlan);
            }
        }
        if round % 30 == 0 {
            vlans = scattered(rng.random_range(0..400));
        }
        witness.always = old.intersection(&vlans).copied().collect();
        say(&mut victim, &mut witness, Input::Interest(set(vlans.iter().copied())));
        assert_eq!(witness.vlans(), vlans, "round {round}");
    }
}

/// The neighbour says how long an LSP it takes, and the victim says what it has to say in LSPs of that length.
fn take(victim: &mut Victim, witness: &mut Witness, sequence: u32, lsp_buffer_bytes: u16) {
    let says = Says { reach: vec![(ME, 10)], lsp_buffer_bytes: Some(lsp_buffer_bytes), ..Says::default() };
    victim.from(2, &lsp(system(2).lsp(0), sequence, 1000, &says).into_bytes());
    listen(victim, witness, 3 * NS_PER_S);
    assert_eq!(victim.bridge.sz_bytes(), lsp_buffer_bytes);
}

fn victim_with_long_lsps() -> Victim {
    Victim::of(Config { lsp_buffer_bytes: 9000, ..Victim::config() })
}

/// RFC 6325 section 4.3.1: LSPs are as long as Sz, and when that falls nothing but what is too long has to move.
#[test]
fn fragments_are_as_long_as_everybody_takes() {
    let (mut victim, mut witness) = (victim_with_long_lsps(), Witness { sz_bytes: Some(4000), ..Witness::default() });
    take(&mut victim, &mut witness, 1, 4000);
    let vlans = scattered(1000);
    say(&mut victim, &mut witness, Input::Interest(set(vlans.clone())));
    assert_eq!((witness.vlans(), witness.fragments()), (vlans.clone(), vec![0, 1, 2, 3]));
    assert!((3980..=4000).contains(&witness.longest_bytes), "{} bytes", witness.longest_bytes);
    let seen = witness.seen;
    witness.always = vlans.clone();
    take(&mut victim, &mut witness, 2, 5000);
    assert_eq!(witness.seen, seen, "more room changes nothing");
    witness.sz_bytes = Some(3000);
    take(&mut victim, &mut witness, 3, 3000);
    assert_eq!((witness.vlans(), witness.fragments()), (vlans.clone(), vec![0, 1, 2, 3, 4]));
    assert_eq!(witness.seen - seen, 4, "the first one is as it was");
    witness.sz_bytes = None;
    take(&mut victim, &mut witness, 4, 1470);
    assert_eq!((witness.vlans(), witness.fragments().len()), (vlans, 9));
}

/// As Sz rises and falls, what VLANs and groups stay is known at every moment.
#[test]
fn nothing_is_missing_when_sz_falls() {
    let mut rng = Pcg64Mcg::seed_from_u64(78);
    let (mut victim, mut witness) = (victim_with_long_lsps(), Witness { sz_bytes: Some(9000), ..Witness::default() });
    for round in 0..60 {
        let sz_bytes = rng.random_range(1470..=9000);
        witness.sz_bytes = Some(9000);
        witness.always.clear();
        witness.always_groups.clear();
        take(&mut victim, &mut witness, 2 * round + 1, 9000);
        let vlans = scattered(rng.random_range(1..1000));
        say(&mut victim, &mut witness, Input::Interest(set(vlans.clone())));
        let group = |number: u16| Group {
            vlan: 2 + 2 * rng.random_range(0..vlans.len() as u16),
            mac: MacAddress([1, 0, 0x5e, 0, number.to_be_bytes()[0], number.to_be_bytes()[1]]),
        };
        let groups: BTreeSet<Group> = (0..1500).map(group).collect();
        say(&mut victim, &mut witness, Input::Listeners(Listeners { groups: groups.clone(), ..Listeners::default() }));
        (witness.sz_bytes, witness.longest_bytes) = (Some(sz_bytes.into()), 0);
        (witness.always, witness.always_groups) = (vlans.clone(), groups.clone());
        take(&mut victim, &mut witness, 2 * round + 2, sz_bytes);
        assert_eq!(witness.vlans(), vlans, "round {round}");
    }
}

/// ISO 10589 section 7.3.16.1 for one of several: it is withdrawn and silent until no copy can be left, others take over
/// what it said and go on as before, and then it may be used again from 1.
#[test]
fn the_numbers_of_one_fragment_end() {
    let mut vlans = scattered(500);
    let (mut victim, mut witness) = victim_in(&vlans);
    let numbers = witness.held.clone();
    witness.always = vlans.clone();
    victim.from(2, &lsp(system(ME).lsp(1), u32::MAX, 1000, &Says::default()).into_bytes());
    witness.held.insert(1, (u32::MAX, VlanSet::default()));
    witness.always.clear();
    listen(&mut victim, &mut witness, 2 * NS_PER_S);
    assert_eq!(victim.bridge.counters().events.get(Event::SequenceEnd), 1);
    assert_eq!((witness.vlans(), witness.fragments()), (vlans.clone(), vec![0, 2, 3, 4, 5]));
    assert_eq!(witness.held[&0].0, numbers[&0].0, "the others are as they were");
    for _ in 0..12 {
        victim.from(2, &hello(2, HandshakeState::Up, Some((ME, 1)), 600).into_bytes());
        listen(&mut victim, &mut witness, 100 * NS_PER_S);
        vlans.insert(1001 + 2 * victim.now_ns.rem_euclid(997) as u16);
        say(&mut victim, &mut witness, Input::Interest(set(vlans.iter().copied())));
        assert!(!witness.held.contains_key(&1), "silent for MaxAge and ZeroAgeLifetime");
    }
    listen(&mut victim, &mut witness, 100 * NS_PER_S);
    let many = scattered(900);
    say(&mut victim, &mut witness, Input::Interest(set(many.iter().copied())));
    assert_eq!(witness.vlans(), many);
    assert_eq!(witness.held[&1].0, 1, "it begins anew");
}

/// Every fragment at its end at once: only the first cannot be replaced.
#[test]
fn the_numbers_of_all_fragments_end() {
    let (mut victim, mut witness) = victim_in(&scattered(300));
    for fragment in 0..3 {
        victim.from(2, &lsp(system(ME).lsp(fragment), u32::MAX, 1000, &Says::default()).into_bytes());
    }
    listen(&mut victim, &mut witness, 2 * NS_PER_S);
    assert_eq!(victim.bridge.counters().events.get(Event::SequenceEnd), 3);
    assert!(!witness.held.contains_key(&0) && !witness.held.contains_key(&1) && !witness.held.contains_key(&2));
    for _ in 0..3 {
        victim.from(2, &hello(2, HandshakeState::Up, Some((ME, 1)), 600).into_bytes());
        listen(&mut victim, &mut witness, 450 * NS_PER_S);
    }
    assert_eq!((witness.held[&0].0, witness.vlans()), (1, scattered(300)));
}

/// One of several fragments gets lost on the way: it alone is sent again.
#[test]
fn a_lost_fragment_is_sent_again_alone() {
    let (mut victim, mut witness) = (Victim::new(Bounds::default()), Witness::default());
    victim.put(Input::Interest(set(scattered(500))));
    victim.run(100 * NS_PER_MS);
    for fragment in (0..5).filter(|fragment| *fragment != 3) {
        let id = system(ME).lsp(fragment);
        let entry = victim.bridge.lsdb().get(id).unwrap().entry(id, victim.now_ns);
        victim.from(2, &psnp(2, vec![entry]).into_bytes());
    }
    listen(&mut victim, &mut witness, 6 * NS_PER_S);
    assert_eq!((witness.fragments(), witness.seen), (vec![3], 1));
}

/// Without fragment 0 the rest says nothing (ISO 10589 section 7.2.8).
#[test]
fn the_first_fragment_of_a_neighbour_is_withdrawn() {
    let mut victim = Victim::new(Bounds::default());
    let (first, second) = (system(2).lsp(0), system(2).lsp(1));
    let named = Says { nicknames: vec![(0x22, 0x40, 0x8000)], ..Says::default() };
    let linked = Says { reach: vec![(ME, 10)], ..Says::default() };
    victim.from(2, &lsp(first, 1, 1000, &named).into_bytes());
    victim.run(NS_PER_S);
    assert!(victim.bridge.forwarding().routes.is_empty(), "it does not tell of us yet");
    victim.from(2, &lsp(second, 1, 1000, &linked).into_bytes());
    victim.run(NS_PER_S);
    assert!(victim.bridge.forwarding().routes.contains_key(&0x22), "links may be in any fragment");
    victim.from(2, &lsp(first, 2, 0, &named).into_bytes());
    victim.run(NS_PER_S);
    assert!(victim.bridge.forwarding().routes.is_empty());
}
