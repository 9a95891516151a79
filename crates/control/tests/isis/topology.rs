//! Which RBridges are linked how: random campuses, the paper's six, fat trees.

use rand::RngExt;
use rand_pcg::Pcg64Mcg;

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
        Self { nodes, cables }
    }

    /// S1 and S2 (numbers 0 and 1) each linked to S3, S4, S5, S6: the overhead paper's campus.
    pub(crate) fn paper() -> Self {
        let cables = (2..6).flat_map(|middle| [0, 1].map(|edge| Cable::even([edge, middle], 2000))).collect();
        Self { nodes: 6, cables }
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
        Self { nodes: core + half * half, cables }
    }
}
