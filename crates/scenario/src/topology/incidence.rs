//! Which links end at a node, for a hundred thousand nodes in two lists.

use super::Link;
use crate::id::{LinkId, NodeId};

/// The links of every node, node after node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Incidence {
    links: Vec<LinkId>,
    /// Where those of a node begin; one more than there are nodes.
    begins: Vec<u32>,
}

impl Incidence {
    pub(super) fn new(nodes: usize, links: &[Link]) -> Self {
        let mut begins = vec![0; nodes + 1];
        for end in ends(links) {
            begins[end.0.index() + 1] += 1;
        }
        for node in 0..nodes {
            begins[node + 1] += begins[node];
        }
        let (mut free, mut placed) = (begins.clone(), vec![LinkId(0); 2 * links.len()]);
        for (node, link) in ends(links) {
            placed[free[node.index()] as usize] = link;
            free[node.index()] += 1;
        }
        Self { links: placed, begins }
    }

    /// In the order of the links.
    pub(super) fn of(&self, node: NodeId) -> &[LinkId] {
        let of = |place: usize| self.begins[place] as usize;
        &self.links[of(node.index())..of(node.index() + 1)]
    }
}

fn ends(links: &[Link]) -> impl Iterator<Item = (NodeId, LinkId)> {
    let both = |(index, link): (usize, &Link)| [&link.a, &link.b].map(|end| (end.node, LinkId(index as u32)));
    links.iter().enumerate().flat_map(both)
}
