//! Families of switches: those with the same neighbours. All members are equally far from any switch outside, which is what
//! makes routes of large regular networks small: the ToRs below one pair of Aggregations are a family, and so are all Intermediates.
//! A switch that has lost a link leaves its family, and nothing else changes.
//!
//! Members are no neighbours of each other, since nothing is its own neighbour. If a member of one family is a neighbour of
//! a member of another, every member of the one is a neighbour of every member of the other.

use std::collections::HashMap;

use crate::id::{LinkId, NodeId};

/// Which switch belongs to which family.
#[derive(Clone, Debug)]
pub(super) struct Families {
    /// By the places of switches: the family and the place in it.
    of: Vec<(u32, u32)>,
    members: Vec<Vec<NodeId>>,
    /// The place of the first member of each family.
    first: Vec<usize>,
}

impl Families {
    /// Of switches with these links to the places of others.
    pub(super) fn of(switches: &[NodeId], neighbours: &[Vec<(LinkId, usize)>]) -> Self {
        let mut by_neighbours: HashMap<Vec<usize>, usize> = HashMap::new();
        let mut families = Self { of: Vec::with_capacity(switches.len()), members: Vec::new(), first: Vec::new() };
        for (place, (switch, links)) in switches.iter().zip(neighbours).enumerate() {
            let mut far: Vec<usize> = links.iter().map(|(_, far)| *far).collect();
            far.sort_unstable();
            far.dedup();
            let family = *by_neighbours.entry(far).or_insert(families.members.len());
            if family == families.members.len() {
                families.members.push(Vec::new());
                families.first.push(place);
            }
            families.of.push((family as u32, families.members[family].len() as u32));
            families.members[family].push(*switch);
        }
        families
    }

    /// How many there are.
    pub(super) fn count(&self) -> usize {
        self.members.len()
    }

    /// Family of the switch in this place, and its place there.
    pub(super) fn member(&self, place: usize) -> (usize, usize) {
        let (family, member) = self.of[place];
        (family as usize, member as usize)
    }

    /// The switches of a family.
    pub(super) fn members(&self, family: usize) -> &[NodeId] {
        &self.members[family]
    }

    /// The families that are neighbours of each family, given those of the switches.
    pub(super) fn neighbours(&self, neighbours: &[Vec<(LinkId, usize)>]) -> Vec<Vec<usize>> {
        let of_first = |first: &usize| {
            let mut far: Vec<usize> = neighbours[*first].iter().map(|(_, far)| self.member(*far).0).collect();
            far.sort_unstable();
            far.dedup();
            far
        };
        self.first.iter().map(of_first).collect()
    }
}
