//! Which of several equal routes a flow's packets take: one for the flow, a new one after a pause or a loss, or one each.

use weft_scenario::id::NodeId;
use weft_scenario::switching::LoadBalance;

use super::Simulation;
use super::flow::{Direction, NO_ROUTE, Phase};
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

/// Chooses routes for all flows.
#[derive(Debug)]
pub(super) struct Spreader {
    per: Choice,
    /// By the places of the flows.
    flows: Vec<Choices>,
}

/// What the choice of a flow's routes depends on, by [`Direction`].
#[derive(Clone, Copy, Debug)]
struct Choices {
    /// A switch that its routes take where they can.
    through: Option<NodeId>,
    /// What switches hash.
    salts: [u64; 2],
    /// When it last sent.
    last_ps: [u64; 2],
    /// How often its route was chosen anew.
    changes: [u64; 2],
    /// Re-hash: when it last chose, or stayed in spite of a loss, and how often.
    chosen_ps: u64,
    losses: u64,
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
        Self { per, flows: Vec::new() }
    }

    /// Whether a flow keeps its routes.
    #[inline(always)]
    pub(super) fn is_fixed(&self) -> bool {
        self.per == Choice::Flow
    }

    /// A flow begins. What switches hash of its two directions is as little related as the hashes of a five-tuple and
    /// of its reverse are.
    pub(super) fn begin(&mut self, place: u32, seed: u64, number: u32, through: Option<NodeId>) {
        let salt = |direction| scramble(scramble(seed) ^ (u64::from(number) << 1 | direction as u64));
        let salts = Direction::BOTH.map(salt);
        let choices =
            Choices { through, salts, last_ps: [0; 2], changes: [0; 2], chosen_ps: 0, losses: 0, moves: false };
        if let Some(slot) = self.flows.get_mut(place as usize) {
            *slot = choices;
        } else {
            self.flows.push(choices);
        }
    }

    /// A flow that has sent so many bytes is about to send some of them again.
    pub(super) fn repeats(&mut self, place: u32, sent_bytes: u64, now_ps: u64) {
        let Choice::Rehash { hold_ps, large_bytes, only_timeouts } = self.per else { return };
        let choices = &mut self.flows[place as usize];
        if sent_bytes < large_bytes || now_ps - choices.chosen_ps < hold_ps {
            return;
        }
        let timed_out = now_ps - choices.last_ps[Direction::Data as usize] >= hold_ps;
        if only_timeouts && !timed_out {
            return;
        }
        let heads = scramble(choices.salts[0] ^ scramble(choices.losses)) & 1 == 1;
        choices.chosen_ps = now_ps;
        choices.losses += 1;
        choices.moves = timed_out || heads;
    }

    /// Whether the packet that a flow sends now takes a new route.
    fn changes(&mut self, place: u32, direction: Direction, now_ps: u64) -> bool {
        let choices = &mut self.flows[place as usize];
        let last_ps = std::mem::replace(&mut choices.last_ps[direction as usize], now_ps);
        let changes = match self.per {
            Choice::Flow => false,
            Choice::Packet => true,
            Choice::Flowlet(gap_ps) => now_ps - last_ps >= gap_ps,
            Choice::Rehash { .. } => direction == Direction::Data && std::mem::take(&mut choices.moves),
        };
        choices.changes[direction as usize] += u64::from(changes);
        changes
    }
}

impl Spreader {
    /// What a flow's switches hash now, and the switch that it takes where it can.
    pub(super) fn of(&self, place: u32, direction: Direction) -> (u64, Option<NodeId>) {
        let choices = &self.flows[place as usize];
        (choices.salt(direction), choices.through)
    }
}

impl Choices {
    fn salt(&self, direction: Direction) -> u64 {
        scramble(self.salts[direction as usize].wrapping_add(self.changes[direction as usize]))
    }
}

impl Simulation<'_> {
    /// Chooses both routes of a flow.
    pub(super) fn choose_routes(&mut self, place: u32) {
        for direction in Direction::BOTH {
            self.choose_route(place, direction);
        }
    }

    /// Chooses the routes of all flows anew, after routing tables have changed.
    pub(super) fn reroute(&mut self) {
        for place in 0..self.flows.len() as u32 {
            if self.flows[place as usize].phase != Phase::Ended {
                self.choose_routes(place);
            }
        }
    }

    /// The route of the packet that a flow sends now, where it is not the flow's for good.
    pub(super) fn respread(&mut self, place: u32, direction: Direction) -> u32 {
        if self.spread.changes(place, direction, self.network.now_ps) {
            self.choose_route(place, direction);
        }
        self.flows[place as usize].routes[direction as usize]
    }

    fn choose_route(&mut self, place: u32, direction: Direction) {
        let flow = &mut self.flows[place as usize];
        let choices = &self.spread.flows[place as usize];
        let [from, to] = match direction {
            Direction::Data => [flow.from, flow.to],
            Direction::Ack => [flow.to, flow.from],
        }
        .map(|server| self.hosts[server as usize].node);
        let route = self.router.route(&mut self.network.routes, from, to, choices.salt(direction), choices.through);
        flow.routes[direction as usize] = route.unwrap_or(NO_ROUTE);
        if self.job.watch.replay && direction == Direction::Data {
            self.follow(place);
        }
    }
}
