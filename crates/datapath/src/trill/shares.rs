//! Which of our trees a frame that comes in here is sent on. Frames are dealt into shares by VLAN and destination, and each share has a
//! tree: what is for one destination in a VLAN keeps to one tree, and so its order.

use std::collections::{BTreeMap, BTreeSet};

use super::abi::SHARES;

/// The trees of all shares, by their roots.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OwnTrees(Vec<u16>);

impl OwnTrees {
    /// All shares, dealt to these trees.
    pub fn of(roots: impl IntoIterator<Item = u16>) -> Self {
        let mut trees = Self::default();
        trees.deal(&roots.into_iter().collect());
        trees
    }

    /// The tree of each share, as a table in use has it; or of none.
    pub(super) fn of_shares(shares: Vec<u16>) -> Self {
        debug_assert!(shares.is_empty() || shares.len() == SHARES, "all have one, or none has");
        Self(shares)
    }

    /// Deals the shares to these trees instead, to each as many. Only those move whose tree is gone, or that one which is new gets
    /// of another that has more than its part.
    pub fn deal(&mut self, roots: &BTreeSet<u16>) {
        let most = SHARES.div_ceil(roots.len().max(1));
        let mut dealt: BTreeMap<u16, usize> = roots.iter().map(|root| (*root, 0)).collect();
        let mut stays =
            |root: &u16| dealt.get_mut(root).filter(|count| **count < most).map(|count| *count += 1).is_some();
        let mut shares: Vec<Option<u16>> = self.0.iter().map(|root| Some(*root).filter(&mut stays)).collect();
        shares.resize(SHARES, None);
        let mut least = || {
            let (root, count) = dealt.iter_mut().min_by_key(|(_, count)| **count)?;
            *count += 1;
            Some(*root)
        };
        self.0 = shares.into_iter().filter_map(|share| share.or_else(&mut least)).collect();
    }

    /// The tree of a share; `None`: there is no tree.
    pub fn root(&self, share: usize) -> Option<u16> {
        self.0.get(share).copied()
    }

    /// The trees that have a share.
    pub fn roots(&self) -> BTreeSet<u16> {
        self.0.iter().copied().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(trees: &OwnTrees) -> BTreeMap<u16, usize> {
        let mut counts = BTreeMap::new();
        trees.0.iter().for_each(|root| *counts.entry(*root).or_default() += 1);
        counts
    }

    fn moved(from: &OwnTrees, to: &OwnTrees) -> usize {
        (0..SHARES).filter(|share| from.root(*share) != to.root(*share)).count()
    }

    #[test]
    fn shares_are_even_and_only_those_move_that_must() {
        let mut trees = OwnTrees::default();
        trees.deal(&BTreeSet::new());
        assert_eq!((trees.root(0), trees.roots()), (None, BTreeSet::new()));
        let mut before = trees.clone();
        // Each step with the shares that move: those of who is gone, or those that who is new gets.
        let steps: [(&[u16], usize); 7] =
            [(&[5], 64), (&[5, 3], 32), (&[5, 3, 9, 7], 32), (&[5, 3, 7], 16), (&[7, 3], 21), (&[4], 64), (&[], 64)];
        for (roots, moves) in steps {
            let roots: BTreeSet<u16> = roots.iter().copied().collect();
            trees.deal(&roots);
            assert_eq!(trees.roots(), roots);
            let counts = counts(&trees);
            let (least, most) = (counts.values().min().unwrap_or(&0), counts.values().max().unwrap_or(&0));
            assert!(most - least <= 1, "{counts:?}");
            assert!(moved(&before, &trees).abs_diff(moves) <= 1, "{roots:?}: {} of {moves}", moved(&before, &trees));
            trees.deal(&roots);
            before = trees.clone();
        }
        assert_eq!(trees, OwnTrees::default());
    }
}
