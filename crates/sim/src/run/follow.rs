//! Ways of a few flows, for a replay: where they go and why, from the time on at which they do.

use std::collections::BTreeMap;

use super::flow::{Direction, Phase};
use super::part::Part;
use crate::outcome::FlowWay;

/// Flows that are followed, spread over those that are known before; else the first.
const FLOWS_MOST: u32 = 24;
/// Ways of one flow that are kept; a flow that is sprayed has one for each packet.
const WAYS_MOST: usize = 40;

/// Flows that are followed, by their numbers, with the places of their ways among all.
#[derive(Debug, Default)]
pub(super) struct Followed {
    flows: BTreeMap<u32, Vec<usize>>,
    ways: Vec<FlowWay>,
}

impl Followed {
    /// Of so many flows that are known before; 0: they are not.
    pub(super) fn of(known: u32) -> Self {
        let count = if known == 0 { FLOWS_MOST } else { known.min(FLOWS_MOST) };
        let number = |place: u32| match known {
            0 => place,
            _ => (u64::from(place) * u64::from(known) / u64::from(count)) as u32,
        };
        Self { flows: (0..count).map(|place| (number(place), Vec::new())).collect(), ways: Vec::new() }
    }

    pub(super) fn finish(self) -> Vec<FlowWay> {
        self.ways
    }

    /// Whether it is one of those.
    pub(super) fn has(&self, number: u32) -> bool {
        self.flows.contains_key(&number)
    }

    fn wants(&self, number: u32) -> bool {
        self.flows.get(&number).is_some_and(|places| places.len() < WAYS_MOST)
    }

    /// Keeps a way of a flow that wants it, unless it is the one before.
    fn keep(&mut self, way: FlowWay) {
        let places = self.flows.get_mut(&way.flow).expect("only flows that want it are asked for their ways");
        if places.last().is_none_or(|last| self.ways[*last].hops != way.hops) {
            places.push(self.ways.len());
            self.ways.push(way);
        }
    }
}

impl Part<'_> {
    /// The data of a flow takes another way from now on.
    #[cold]
    pub(super) fn follow(&mut self, place: u32) {
        let end = &self.senders[place as usize];
        let (number, from, to) = (end.who.number, end.who.from, end.who.to);
        if end.phase == Phase::Datagrams || !self.followed.wants(number) {
            return;
        }
        let [sender, receiver] = [from, to].map(|server| self.hosts[server as usize].node);
        let (salt, through) = self.spread.of(Direction::Data, place);
        let hops = self.router.explain(sender, receiver, salt, through);
        self.followed.keep(FlowWay { time_ps: self.network.now_ps, flow: number, from, to, hops });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_few_of_many_flows_are_followed_from_the_first_to_near_the_last() {
        let numbers = |known| Followed::of(known).flows.into_keys().collect::<Vec<u32>>();
        assert_eq!(numbers(3), [0, 1, 2]);
        let of_many = numbers(5550);
        assert_eq!((of_many.len(), of_many[0], of_many[23]), (24, 0, 5318));
        assert_eq!(numbers(0), (0..24).collect::<Vec<u32>>());
    }

    #[test]
    fn a_way_is_kept_once_and_a_sprayed_flow_has_no_end_of_them() {
        let mut followed = Followed::of(1);
        let way = |time_ps, hops| FlowWay { time_ps, flow: 0, from: 0, to: 1, hops };
        let hop = |link: u32| crate::WayHop {
            link: weft_scenario::id::LinkId(link),
            node: weft_scenario::id::NodeId(0),
            headers: Vec::new(),
            toward: crate::Toward::FarEnd,
            choice: None,
        };
        for time_ps in 0..100 {
            if followed.wants(0) {
                followed.keep(way(time_ps, vec![hop(time_ps as u32 / 2)]));
            }
        }
        assert!(!followed.wants(0) && !followed.wants(7), "the one has enough, the other is not followed");
        let times: Vec<u64> = followed.finish().iter().map(|way| way.time_ps).collect();
        assert_eq!(times, (0..WAYS_MOST as u64).map(|place| 2 * place).collect::<Vec<u64>>());
    }
}
