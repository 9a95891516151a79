//! Which of several equal routes a flow's packets take: one for the flow, a new one after a pause or a loss, or one each.

use weft_scenario::id::NodeId;
use weft_scenario::switching::LoadBalance;

use super::flow::{Direction, NO_ROUTE, Phase};
use super::part::Part;
use crate::hash::scramble;
use crate::time::ps;

/// For what a route is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Choice {
    /// For a flow, and again when routing tables change.
    Flow,
    Packet,
    /// For what follows a pause of the flow of at least so long a time, in picoseconds.
    Flowlet(u64),
    /// For a flow that has sent so many bytes, and again when it loses. Not sooner than so long a time, in picoseconds,
    /// after the last choice; for sure after such a pause, which was a timeout, and otherwise with one chance in two or not at all.
    Rehash {
        hold_ps: u64,
        large_bytes: u64,
        only_timeouts: bool,
    },
}

/// Chooses routes for all ends of flows.
#[derive(Debug)]
pub(super) struct Spreader {
    per: Choice,
    /// By [`Direction`], and by the places of senders and of receivers.
    ends: [Vec<Choices>; 2],
}

/// What the choice of an end's routes depends on.
#[derive(Clone, Copy, Debug)]
struct Choices {
    /// A switch that its routes take where they can.
    through: Option<NodeId>,
    /// What switches hash.
    salt: u64,
    /// When it last sent.
    last_ps: u64,
    /// Re-hash: when it last chose, or stayed in spite of a loss, and how often.
    chosen_ps: u64,
    losses: u32,
    /// How often its route was chosen anew.
    changes: u32,
    /// Re-hash: what it sends next takes a new route.
    moves: bool,
}

impl Spreader {
    pub(super) fn new(load_balance: LoadBalance) -> Self {
        let per = match load_balance {
            LoadBalance::FlowEcmp | LoadBalance::SpanningTree => Choice::Flow,
            LoadBalance::PacketSpray => Choice::Packet,
            LoadBalance::Flowlet { gap } => Choice::Flowlet(ps(gap.0)),
            LoadBalance::Rehash { hold, large, only_timeouts } => {
                Choice::Rehash { hold_ps: ps(hold.0), large_bytes: large.0, only_timeouts }
            }
        };
        Self { per, ends: [Vec::new(), Vec::new()] }
    }

    /// Whether a flow keeps its routes.
    #[inline(always)]
    pub(super) fn is_fixed(&self) -> bool {
        self.per == Choice::Flow
    }

    /// An end of the flow of this number begins. What switches hash of its two directions is as little related as the hashes
    /// of a five-tuple and of its reverse are.
    pub(super) fn begin(
        &mut self,
        direction: Direction,
        place: u32,
        (seed, flow): (u64, u64),
        through: Option<NodeId>,
    ) {
        let salt = scramble(scramble(seed) ^ (flow << 1 | direction as u64));
        let choices = Choices { through, salt, last_ps: 0, chosen_ps: 0, losses: 0, changes: 0, moves: false };
        let ends = &mut self.ends[direction as usize];
        if ends.len() <= place as usize {
            ends.resize(place as usize + 1, choices);
        }
        ends[place as usize] = choices;
    }

    /// A flow that has sent so many bytes is about to send some of them again.
    pub(super) fn repeats(&mut self, place: u32, sent_bytes: u64, now_ps: u64) {
        let Choice::Rehash { hold_ps, large_bytes, only_timeouts } = self.per else { return };
        let choices = &mut self.ends[Direction::Data as usize][place as usize];
        if sent_bytes < large_bytes || now_ps - choices.chosen_ps < hold_ps {
            return;
        }
        let timed_out = now_ps - choices.last_ps >= hold_ps;
        if only_timeouts && !timed_out {
            return;
        }
        let heads = scramble(choices.salt ^ scramble(choices.losses.into())) & 1 == 1;
        choices.chosen_ps = now_ps;
        choices.losses += 1;
        choices.moves = timed_out || heads;
    }

    /// Whether the packet that an end sends now takes a new route.
    fn changes(&mut self, direction: Direction, place: u32, now_ps: u64) -> bool {
        let choices = &mut self.ends[direction as usize][place as usize];
        let last_ps = std::mem::replace(&mut choices.last_ps, now_ps);
        let changes = match self.per {
            Choice::Flow => false,
            Choice::Packet => true,
            Choice::Flowlet(gap_ps) => now_ps - last_ps >= gap_ps,
            Choice::Rehash { .. } => direction == Direction::Data && std::mem::take(&mut choices.moves),
        };
        choices.changes = choices.changes.wrapping_add(u32::from(changes));
        changes
    }

    /// What the switches of an end's packets hash now, and the switch that these take where they can.
    pub(super) fn of(&self, direction: Direction, place: u32) -> (u64, Option<NodeId>) {
        let choices = &self.ends[direction as usize][place as usize];
        (scramble(choices.salt.wrapping_add(choices.changes.into())), choices.through)
    }
}

impl Part<'_> {
    /// Chooses the routes of all flows anew, after routing tables have changed.
    pub(super) fn reroute(&mut self) {
        for place in 0..self.senders.len() as u32 {
            if self.senders[place as usize].phase != Phase::Ended {
                self.choose_route(Direction::Data, place);
            }
        }
        for place in 0..self.receivers.len() as u32 {
            if !self.receivers[place as usize].is_gone {
                self.choose_route(Direction::Ack, place);
            }
        }
    }

    /// The route of the packet that an end sends now, where it is not the flow's for good.
    pub(super) fn respread(&mut self, direction: Direction, place: u32) -> u32 {
        if self.spread.changes(direction, place, self.network.now_ps) {
            self.choose_route(direction, place);
        }
        match direction {
            Direction::Data => self.senders[place as usize].route,
            Direction::Ack => self.receivers[place as usize].route,
        }
    }

    /// Chooses the route of what an end sends.
    pub(super) fn choose_route(&mut self, direction: Direction, place: u32) {
        let (salt, through) = self.spread.of(direction, place);
        let (ends, route) = match direction {
            Direction::Data => {
                let end = &mut self.senders[place as usize];
                ([end.who.from, end.who.to], &mut end.route)
            }
            Direction::Ack => {
                let end = &mut self.receivers[place as usize];
                ([end.who.to, end.who.from], &mut end.route)
            }
        };
        let [from, to] = ends.map(|server| self.hosts[server as usize].node);
        *route = self.router.route(&mut self.network.routes, from, to, salt, through).unwrap_or(NO_ROUTE);
        if self.job.watch.replay && direction == Direction::Data {
            self.follow(place);
        }
    }
}
