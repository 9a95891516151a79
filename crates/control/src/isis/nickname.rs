//! Our nickname: which one, since when, and who gives way when two hold the same (RFC 6325 section 3.7, RFC 7780 section 4).

use weft_wire::isis::NodeId;
use weft_wire::trill::nickname::{USABLE, is_usable};

use super::RBridge;
use super::campus::{Campus, claimed};
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

#[derive(Debug)]
pub(super) struct Nickname {
    pub(super) value: Option<u16>,
    pub(super) priority: u8,
    /// When one is chosen, if none is held: others may tell theirs before.
    pub(super) choose_at_ns: Option<u64>,
    /// Whether a neighbour's list of LSPs has come.
    settles: bool,
    /// Held more strongly by one whose LSP found no room.
    given_up: Option<u16>,
}

impl Nickname {
    /// A configured nickname, or the last one, is announced at once; a new one is chosen when the clock first runs.
    pub(super) fn new(wish: Wish) -> Self {
        let (wished, priority) = match wish {
            Wish::Any => (None, PRIORITY),
            Wish::Last(value) => (Some(value), PRIORITY),
            Wish::Configured(value) => (Some(value), PRIORITY_CONFIGURED),
        };
        Self {
            value: wished.filter(|value| is_usable(*value)),
            priority,
            choose_at_ns: None,
            settles: false,
            given_up: None,
        }
    }
}

impl RBridge {
    /// A neighbour has listed its LSPs: what it holds will be here in a moment (RFC 6325 section 3.7.3).
    pub(super) fn nickname_may_settle(&mut self, now_ns: u64) {
        if !self.nickname.settles {
            self.nickname.settles = true;
            let soon_ns = now_ns + self.config.timing.nickname_settle_ns;
            self.nickname.choose_at_ns = self.nickname.choose_at_ns.map(|at_ns| at_ns.min(soon_ns));
        }
    }

    /// Takes a nickname that nobody claims; if there is none, one that only unreachable RBridges do (RFC 7780 section 4,
    /// item 3).
    pub(super) fn choose_nickname(&mut self, now_ns: u64, outputs: &mut Vec<Output>) {
        let claimed = claimed(&self.lsdb, self.config.system.node());
        let mut found = self.draw_nickname(&claimed);
        if found.is_none() {
            let taken = self.campus(&self.links()).taken();
            found = self.draw_nickname(&taken);
        }
        if found.is_none() {
            self.counters.events.add(Event::NicknamesExhausted);
            self.nickname.choose_at_ns = Some(now_ns + self.config.timing.nickname_wait_ns);
        }
        self.hold_nickname(now_ns, found, outputs);
    }

    /// Draws one that is not among `taken`, which is in order.
    fn draw_nickname(&mut self, taken: &[u16]) -> Option<u16> {
        let given_up = self.nickname.given_up;
        let is_free = |value: &u16| Some(*value) != given_up && taken.binary_search(value).is_err();
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

    fn hold_nickname(&mut self, now_ns: u64, value: Option<u16>, outputs: &mut Vec<Output>) {
        if value.is_some() {
            self.nickname.choose_at_ns = None;
        }
        if self.nickname.value != value {
            self.nickname.value = value;
            outputs.push(Output::Nickname(value));
            self.describe_soon(now_ns);
        }
    }

    /// An LSP that found no room may say that our nickname is held more strongly (RFC 7780 section 4, item 4).
    pub(super) fn hear_unheld_rival(&mut self, now_ns: u64, node: NodeId, digest: &Digest) {
        let Some(mine) = self.nickname.value else { return };
        let ours = (self.nickname.priority, self.config.system.node());
        let mut claims = digest.nicknames.iter().filter(|record| record.nickname == mine);
        if claims.any(|record| (record.priority, node) > ours) {
            self.counters.events.add(Event::NicknameLost);
            self.nickname.priority = PRIORITY;
            self.nickname.given_up = Some(mine);
            self.nickname.choose_at_ns = Some(now_ns);
        }
    }

    /// Looks for another reachable holder of our nickname. The one with the higher priority, then the higher ID, keeps
    /// it; the other chooses anew.
    pub(super) fn check_nickname(&mut self, now_ns: u64, rival: Option<(u8, bool)>, outputs: &mut Vec<Output>) {
        let Some((priority, has_higher_id)) = rival else { return };
        let mine = self.nickname.priority;
        if mine > priority || (mine == priority && !has_higher_id) {
            return self.counters.events.add(Event::NicknameKept);
        }
        self.counters.events.add(Event::NicknameLost);
        self.nickname.priority = PRIORITY;
        self.choose_nickname(now_ns, outputs);
    }

    /// The strongest other holder of our nickname: its priority, and whether its ID is higher than ours.
    pub(super) fn rival(&self, campus: &Campus<'_>) -> Option<(u8, bool)> {
        let holders = campus.holders.get(&self.nickname.value?)?;
        let others = holders.iter().filter(|holder| holder.node != campus.me);
        others.map(|holder| (holder.record.priority, campus.graph.ids[holder.node] > campus.graph.ids[campus.me])).max()
    }
}
