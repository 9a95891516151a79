//! Which trials are worth looking at: the first repetition of each place of a sweep, of a long one a few that are spread over it.

use std::collections::BTreeSet;

use weft_scenario::topology::Fabric;

use super::picture::{NODES_MOST, Picture};
use crate::analysis::TrialKey;

/// Most pages of one run.
const PAGES_MOST: usize = 8;

/// The numbers of the trials that have a page. Each comes with its network.
pub fn chosen<'a>(trials: impl Iterator<Item = (&'a TrialKey, &'a Fabric)>) -> BTreeSet<u32> {
    let fits = trials.filter(|(key, fabric)| key.repetition == 1 && fits(fabric));
    let firsts: Vec<u32> = fits.map(|(key, _)| key.trial).collect::<BTreeSet<_>>().into_iter().collect();
    let pages = firsts.len().min(PAGES_MOST);
    (0..pages).map(|page| firsts[page * (firsts.len() - 1) / pages.saturating_sub(1).max(1)]).collect()
}

/// Whether a network can be shown.
pub fn fits(fabric: &Fabric) -> bool {
    Picture::of(fabric).is_some()
}

/// What is said where a network has too many nodes.
pub fn note<'a>(fabrics: impl Iterator<Item = &'a Fabric>) -> Option<String> {
    let most = fabrics.filter(|fabric| !fits(fabric)).map(|fabric| fabric.nodes().len()).max()?;
    Some(format!("The network has {most} nodes; a replay shows at most {NODES_MOST}, racks or pods as one."))
}

#[cfg(test)]
mod tests {
    use weft_scenario::engine::Overlay;
    use weft_scenario::topology::{LeafSpineParams, leaf_spine};

    use super::*;

    fn key(trial: u32, repetition: u32) -> TrialKey {
        let (seed, overlay, workload) = (1, Overlay::Routed, "all".to_owned());
        TrialKey { trial, repetition, seed, overlay, workload, point: Vec::new() }
    }

    /// Leaves with two servers each.
    fn fabric(leaves: u32) -> Fabric {
        leaf_spine(&LeafSpineParams { leaves, servers_per_leaf: 2, ..LeafSpineParams::default() }).unwrap()
    }

    fn of(keys: &[TrialKey], leaves: u32) -> Vec<u32> {
        let fabric = fabric(leaves);
        chosen(keys.iter().map(|key| (key, &fabric))).into_iter().collect()
    }

    #[test]
    fn first_repetitions_are_shown_and_of_a_long_sweep_some_from_end_to_end() {
        assert_eq!(of(&[key(1, 1), key(2, 2), key(3, 1)], 40), [1, 3]);
        assert_eq!(of(&[key(5, 1)], 40), [5]);
        assert!(of(&[], 40).is_empty());
        let long: Vec<TrialKey> = (1..=100).map(|trial| key(trial, 1)).collect();
        let some = of(&long, 40);
        assert_eq!((some.len(), some[0], some[7]), (PAGES_MOST, 1, 100));
    }

    #[test]
    fn large_networks_have_a_sentence_in_the_place_of_a_page() {
        assert!(of(&[key(1, 1)], 400).is_empty());
        let (small, large) = (fabric(40), fabric(400));
        assert!(note([&small, &large].into_iter()).unwrap().contains(&format!("{} nodes", large.nodes().len())));
        assert_eq!(note([&small].into_iter()), None);
    }
}
