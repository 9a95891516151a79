//! Our nicknames: which ones, since when, and who gives way when two hold the same (RFC 6325 section 3.7, RFC 7780 section 4).

use weft_wire::isis::NodeId;
use weft_wire::isis::lsp::NicknameRecord;
use weft_wire::trill::nickname::{USABLE, is_usable};

use super::RBridge;
use super::campus::{Campus, Holder, claimed};
use super::config::Wish;
use super::counters::Event;
use super::digest::Digest;
use super::io::Output;

/// Priority of a nickname that nobody configured (RFC 6325 section 5.2).
const PRIORITY: u8 = 0x40;
/// Priority of a configured one: bit 0x80 says that it was.
const PRIORITY_CONFIGURED: u8 = 0xc0;
/// Free nicknames are drawn so often before the first free one behind the last draw is taken.
const DRAWS: usize = 32;

/// A nickname that is wanted.
#[derive(Debug)]
pub(super) struct Nickname {
    value: Option<u16>,
    priority: u8,
    /// Held more strongly by one whose LSP found no room.
    given_up: Option<u16>,
}

impl Nickname {
    fn new(wish: Wish) -> Self {
        let (wished, priority) = match wish {
            Wish::Any => (None, PRIORITY),
            Wish::Last(value) => (Some(value), PRIORITY),
            Wish::Configured(value) => (Some(value), PRIORITY_CONFIGURED),
        };
        Self { value: wished.filter(|value| is_usable(*value)), priority, given_up: None }
    }

    fn is_missing(&self) -> bool {
        self.value.is_none() || self.value == self.given_up
    }
}

/// All of them: frames of ours come in with the first one.
#[derive(Debug)]
pub(super) struct Nicknames {
    wanted: Vec<Nickname>,
    /// When those that are missing are chosen: others may tell theirs before.
    pub(super) choose_at_ns: Option<u64>,
    /// Whether a neighbour's list of LSPs has come.
    settles: bool,
}

impl Nicknames {
    /// Configured nicknames, and the last ones, are announced at once; new ones are chosen when the clock first runs.
    pub(super) fn new(wishes: &[Wish]) -> Self {
        let wanted = wishes.iter().map(|wish| Nickname::new(*wish)).collect();
        Self { wanted, choose_at_ns: None, settles: false }
    }

    pub(super) fn held(&self) -> impl Iterator<Item = u16> {
        self.wanted.iter().filter_map(|nickname| nickname.value)
    }

    pub(super) fn first(&self) -> Option<u16> {
        self.held().next()
    }

    pub(super) fn are_missing(&self) -> bool {
        self.wanted.iter().any(Nickname::is_missing)
    }

    pub(super) fn records(&self, root_priority: u16) -> Vec<NicknameRecord> {
        let record =
            |of: &Nickname| of.value.map(|nickname| NicknameRecord { priority: of.priority, root_priority, nickname });
        self.wanted.iter().filter_map(record).collect()
    }
}

/// Another reachable holder of one of our nicknames.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rival {
    nickname: u16,
    priority: u8,
    has_higher_id: bool,
}

impl RBridge {
    /// A neighbour has listed its LSPs: what it holds will be here in a moment (RFC 6325 section 3.7.3).
    pub(super) fn nickname_may_settle(&mut self, now_ns: u64) {
        if !self.nicknames.settles {
            self.nicknames.settles = true;
            let soon_ns = now_ns + self.config.timing.nickname_settle_ns;
            self.nicknames.choose_at_ns = self.nicknames.choose_at_ns.map(|at_ns| at_ns.min(soon_ns));
        }
    }

    /// Takes nicknames that nobody claims for those that are missing; if there is none, one that only unreachable RBridges
    /// do (RFC 7780 section 4, item 3).
    pub(super) fn choose_nicknames(&mut self, now_ns: u64, outputs: &mut Vec<Output>) {
        let before: Vec<u16> = self.nicknames.held().collect();
        let claimed = claimed(&self.lsdb, self.config.system.node());
        let mut is_exhausted = false;
        for place in 0..self.nicknames.wanted.len() {
            if !self.nicknames.wanted[place].is_missing() {
                continue;
            }
            let mut found = self.draw_nickname(&claimed);
            if found.is_none() {
                let taken = self.campus(&self.links()).taken();
                found = self.draw_nickname(&taken);
            }
            is_exhausted |= found.is_none();
            self.nicknames.wanted[place].value = found;
        }
        if is_exhausted {
            self.counters.events.add(Event::NicknamesExhausted);
        }
        self.nicknames.choose_at_ns = is_exhausted.then_some(now_ns + self.config.timing.nickname_wait_ns);
        let held: Vec<u16> = self.nicknames.held().collect();
        if held != before {
            outputs.push(Output::Nicknames(held));
            self.describe_soon(now_ns);
        }
    }

    /// Draws one that is neither among `taken`, which is in order, nor ours.
    fn draw_nickname(&mut self, taken: &[u16]) -> Option<u16> {
        let wanted = self.nicknames.wanted.iter();
        let ours: Vec<u16> = wanted.flat_map(|nickname| [nickname.value, nickname.given_up]).flatten().collect();
        let is_free = |value: &u16| !ours.contains(value) && taken.binary_search(value).is_err();
        let mut drawn = 0;
        for _ in 0..DRAWS {
            drawn = (self.random() % u64::from(USABLE)) as u16;
            if is_free(&(drawn + 1)) {
                return Some(drawn + 1);
            }
        }
        let mut all = (0..USABLE).map(|step| ((u32::from(drawn) + u32::from(step)) % u32::from(USABLE)) as u16 + 1);
        all.find(is_free)
    }

    /// An LSP that found no room may say that a nickname of ours is held more strongly (RFC 7780 section 4, item 4).
    pub(super) fn hear_unheld_rival(&mut self, now_ns: u64, node: NodeId, digest: &Digest) {
        let me = self.config.system.node();
        for ours in &mut self.nicknames.wanted {
            let Some(mine) = ours.value else { continue };
            let mut claims = digest.nicknames.iter().filter(|record| record.nickname == mine);
            if claims.any(|record| (record.priority, node) > (ours.priority, me)) {
                self.counters.events.add(Event::NicknameLost);
                (ours.priority, ours.given_up) = (PRIORITY, Some(mine));
                self.nicknames.choose_at_ns = Some(now_ns);
            }
        }
    }

    /// Looks at other reachable holders of our nicknames. The one with the higher priority, then the higher ID, keeps
    /// it; the other chooses anew.
    pub(super) fn check_nicknames(&mut self, now_ns: u64, rivals: Vec<Rival>, outputs: &mut Vec<Output>) {
        let mut has_lost = false;
        for rival in rivals {
            let wanted = &mut self.nicknames.wanted;
            let Some(ours) = wanted.iter_mut().find(|ours| ours.value == Some(rival.nickname)) else { continue };
            if ours.priority > rival.priority || (ours.priority == rival.priority && !rival.has_higher_id) {
                self.counters.events.add(Event::NicknameKept);
                continue;
            }
            self.counters.events.add(Event::NicknameLost);
            (ours.priority, ours.given_up) = (PRIORITY, ours.value);
            has_lost = true;
        }
        if has_lost {
            self.choose_nicknames(now_ns, outputs);
        }
    }

    /// The strongest other holder of each of our nicknames that has one.
    pub(super) fn rivals(&self, campus: &Campus<'_>) -> Vec<Rival> {
        let my_id = campus.graph.ids[campus.me];
        let rival = |nickname: u16| {
            let others = campus.holders.get(&nickname)?.iter().filter(|holder| holder.node != campus.me);
            let strength = |holder: &Holder| (holder.record.priority, campus.graph.ids[holder.node] > my_id);
            let (priority, has_higher_id) = others.map(strength).max()?;
            Some(Rival { nickname, priority, has_higher_id })
        };
        self.nicknames.held().filter_map(rival).collect()
    }
}
