//! Which RBridges are linked how: random campuses, with shared links or without, the paper's six, fat trees.

use rand::RngExt;
use rand_pcg::Pcg64Mcg;
use weft_control::isis::{Role, SharedConfig};
use weft_wire::vlan::VlanSet;

use super::lan::Member;

/// A link between two RBridges.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cable {
    pub(crate) ends: [usize; 2],
    /// Metric of sending from each end.
    pub(crate) costs: [u32; 2],
}

impl Cable {
    /// As dear one way as the other.
    pub(crate) fn even(ends: [usize; 2], cost: u32) -> Self {
        Self { ends, costs: [cost; 2] }
    }
}

/// RBridges by number and the links between them. Port numbers count each RBridge's links from 1.
#[derive(Clone, Debug)]
pub(crate) struct Topology {
    pub(crate) nodes: usize,
    pub(crate) cables: Vec<Cable>,
    /// Shared links; their ports are numbered after those of cables.
    pub(crate) lans: Vec<Vec<Member>>,
}

impl Topology {
    /// A connected graph with some more links, some of them parallel, and few different costs, so that paths tie. Every
    /// other link has another metric back than forth.
    pub(crate) fn random(nodes: usize, rng: &mut Pcg64Mcg) -> Self {
        const COSTS: [u32; 4] = [10, 10, 20, 30];
        let mut cables = Vec::new();
        let mut link = |a: usize, b: usize, rng: &mut Pcg64Mcg| {
            let mut cost = || COSTS[rng.random_range(0..COSTS.len())];
            let (forth, other) = (cost(), cost());
            let back = if rng.random() { forth } else { other };
            cables.push(Cable { ends: [a, b], costs: [forth, back] });
        };
        for node in 1..nodes {
            let other = rng.random_range(0..node);
            link(node, other, rng);
        }
        for _ in 0..rng.random_range(0..=nodes) {
            let (a, b) = (rng.random_range(0..nodes), rng.random_range(0..nodes));
            if a != b {
                link(a, b, rng);
            }
        }
        Self { nodes, cables, lans: Vec::new() }
    }

    /// The same with up to three shared links of three to six RBridges each; sometimes one of them has two ports there, and
    /// ports differ in priority, role, cost, and VLANs, of which all have 1 and 2.
    pub(crate) fn random_with_lans(nodes: usize, rng: &mut Pcg64Mcg) -> Self {
        let mut topology = Self::random(nodes, rng);
        // With shared links beside them not all cables are needed.
        topology.cables.retain(|_| rng.random_range(0..3) > 0);
        for _ in 0..rng.random_range(1..4) {
            let mut link: Vec<Member> = Vec::new();
            for _ in 0..rng.random_range(3..7) {
                let node = rng.random_range(0..nodes);
                let is_second = link.iter().any(|member| member.node == node);
                if !is_second || rng.random_range(0..6) == 0 {
                    link.push(member(node, rng));
                }
            }
            topology.lans.push(link);
        }
        topology
    }

    /// Another campus beside this one, its RBridges numbered after these.
    pub(crate) fn join(&mut self, mut other: Self) {
        let first = self.nodes;
        other.cables.iter_mut().for_each(|cable| cable.ends = cable.ends.map(|end| end + first));
        other.lans.iter_mut().flatten().for_each(|member| member.node += first);
        self.nodes += other.nodes;
        self.cables.append(&mut other.cables);
        self.lans.append(&mut other.lans);
    }

    /// S1 and S2 (numbers 0 and 1) each linked to S3, S4, S5, S6: the overhead paper's campus.
    pub(crate) fn paper() -> Self {
        let cables = (2..6).flat_map(|middle| [0, 1].map(|edge| Cable::even([edge, middle], 2000))).collect();
        Self { nodes: 6, cables, lans: Vec::new() }
    }

    /// A three-tier fat tree of switches with `k` ports: 5/4 k^2 RBridges.
    pub(crate) fn fat_tree(k: usize) -> Self {
        let half = k / 2;
        let (edge, aggregation, core) = (0, k * half, 2 * k * half);
        let mut cables = Vec::new();
        for pod in 0..k {
            for (a, b) in (0..half).flat_map(|a| (0..half).map(move |b| (a, b))) {
                let upper = aggregation + pod * half + a;
                cables.push(Cable::even([edge + pod * half + b, upper], 2000));
                cables.push(Cable::even([upper, core + a * half + b], 2000));
            }
        }
        Self { nodes: core + half * half, cables, lans: Vec::new() }
    }

    /// One shared link of so many RBridges, of which the last is to be DRB, with these VLANs.
    pub(crate) fn lan(nodes: usize, vlans: &VlanSet) -> Self {
        let member = |node| Member { node, cost: 10, config: SharedConfig::of(vlans.clone()), designated_vlan: 1 };
        Self { nodes, cables: Vec::new(), lans: vec![(0..nodes).map(member).collect()] }
    }
}

fn member(node: usize, rng: &mut Pcg64Mcg) -> Member {
    let mut enabled = VlanSet::of_ranges(&[(1, 2)]);
    for _ in 0..rng.random_range(0..4) {
        let first = [5, 50, 101, 250, 255, 400, 600][rng.random_range(0..7)];
        enabled.add_range(first, first + rng.random_range(0..10));
    }
    let role =
        [Role::Hybrid, Role::Hybrid, Role::Hybrid, Role::Hybrid, Role::Trunk, Role::Access][rng.random_range(0..6)];
    // An access port that is DRB would leave everybody without lists of LSPs.
    let priority = if role == Role::Access { 0 } else { [64, 64, 64, 1, 100][rng.random_range(0..5)] };
    let config = SharedConfig { priority, role, ..SharedConfig::of(enabled) };
    Member { node, cost: [10, 10, 20, 30][rng.random_range(0..4)], config, designated_vlan: rng.random_range(1..3) }
}
