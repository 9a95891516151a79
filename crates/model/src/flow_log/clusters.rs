//! Few matrices that stand for many, after Zhang and Ge, "Finding critical traffic matrices" (DSN 2005), as VL2 3.3 sums it
//! up: the most similar matrices are merged into clusters, one after another, and each cluster's representative is such
//! that a routing which can deal with it can deal with every member.
//!
//! * The representative is the largest value of every entry: nothing less is at least every member.
//! * The distance of a matrix from its representative is the traffic that one has and the other does not: the sum of the
//!   differences of their entries.
//! * Merged is the pair of clusters whose union adds least to the sum of all distances (agglomeration, greedy).
//!
//! VL2 does not say over what its fitting error is a share. [`FittingRow`] has two: over what the representatives hold,
//! each counted once for every member (0 to 1), and over what the matrices hold (0 and more).
//!
//! All numbers are whole bytes below 2^53, so sums do not depend on their order.

use weft_scenario::record::FittingRow;

/// More matrices than this are not clustered: the work grows with their square, the memory with eight bytes times that.
pub const CLUSTERED_MAX: usize = 3_000;
/// Nor are more entries than this in all of them.
const ENTRIES_MAX: usize = 1 << 25;
/// Entries that are summed side by side.
const LANES: usize = 8;

/// Whether there is something to cluster, and not too much of it.
pub fn fits(matrices: &[Vec<f64>]) -> bool {
    let entries = matrices.len().saturating_mul(matrices.first().map_or(0, Vec::len));
    (1..=CLUSTERED_MAX).contains(&matrices.len()) && entries <= ENTRIES_MAX
}

/// In which order matrices were merged.
#[derive(Clone, Debug, PartialEq)]
pub struct Clustering {
    /// Sum of all distances with one cluster, two, and so on up to one for each matrix.
    distances: Vec<f64>,
    /// The pairs that were merged, the first being the better name: clusters are called by their first matrix.
    merges: Vec<(usize, usize)>,
    total: f64,
}

/// A cluster while others are merged.
struct Cluster {
    representative: Vec<f64>,
    /// What the representative holds.
    sum: f64,
    members: f64,
}

impl Clustering {
    /// Merges matrices of equal length until one cluster is left. `on_merge` hears how much is done and answers whether
    /// to go on.
    pub fn of(matrices: &[Vec<f64>], mut on_merge: impl FnMut(f64) -> bool) -> Option<Self> {
        let n = matrices.len();
        let total: f64 = matrices.iter().flatten().sum();
        let mut pairs = Pairs::new(matrices);
        let (mut distances, mut merges, mut distance) = (vec![0.0], Vec::new(), 0.0);
        for first in 0..n {
            // Comparing all pairs is as much work as all merges.
            if !on_merge(first as f64 / n as f64 / 2.0) {
                return None;
            }
            pairs.compare(first);
        }
        while let Some((kept, gone, added)) = pairs.closest() {
            if !on_merge(0.5 + merges.len() as f64 / n as f64 / 2.0) {
                return None;
            }
            pairs.merge(kept, gone);
            distance += added;
            distances.push(distance);
            merges.push((kept, gone));
        }
        distances.reverse();
        Some(Self { distances, merges, total })
    }

    /// The fitting error for every number of clusters.
    pub fn fitting(&self) -> Vec<FittingRow> {
        let share = |part: f64, whole: f64| if whole > 0.0 { part / whole } else { 0.0 };
        let row = |(distance, clusters): (&f64, u32)| FittingRow {
            clusters,
            error_ratio: share(*distance, distance + self.total),
            excess_ratio: share(*distance, self.total),
        };
        self.distances.iter().zip(1..).map(row).collect()
    }

    /// For each matrix, the cluster that it was merged into when so many were left, by its first matrix.
    pub fn members(&self, clusters: usize) -> Vec<usize> {
        let n = self.distances.len();
        let mut name: Vec<usize> = (0..n).collect();
        for (kept, gone) in self.merges.iter().take(n.saturating_sub(clusters.max(1))) {
            name[*gone] = *kept;
        }
        // A cluster was always merged into one with a smaller name, so that names are settled from below.
        for matrix in 0..n {
            name[matrix] = name[name[matrix]];
        }
        name
    }

    /// For each matrix, the nearest of so many representatives that can stand for it (nowhere less than the matrix; its own
    /// cluster's can), numbered in the order in which they are first needed.
    pub fn classify(&self, matrices: &[Vec<f64>], clusters: usize) -> Vec<u32> {
        let mut representatives: Vec<(usize, Vec<f64>)> = Vec::new();
        for (matrix, name) in matrices.iter().zip(self.members(clusters)) {
            match representatives.iter_mut().find(|known| known.0 == name) {
                Some((_, representative)) => raise(representative, matrix),
                None => representatives.push((name, matrix.clone())),
            }
        }
        let mut numbers: Vec<Option<u32>> = vec![None; representatives.len()];
        let mut next = 0;
        let mut classify = |matrix: &Vec<f64>| {
            let able = representatives.iter().enumerate().filter(|(_, (_, one))| dominates(one, matrix));
            let distances = able.map(|(place, (_, representative))| (place, distance(representative, matrix)));
            let nearest = distances.min_by(|a, b| a.1.total_cmp(&b.1)).map_or(0, |(place, _)| place);
            *numbers[nearest].get_or_insert_with(|| {
                next += 1;
                next - 1
            })
        };
        matrices.iter().map(&mut classify).collect()
    }
}

/// All clusters and what merging any two of them would add.
struct Pairs {
    clusters: Vec<Option<Cluster>>,
    /// `added[a][b]` for a < b.
    added: Vec<Vec<f64>>,
    /// The best partner of each cluster among those after it.
    best: Vec<Option<usize>>,
}

impl Pairs {
    fn new(matrices: &[Vec<f64>]) -> Self {
        let cluster = |matrix: &Vec<f64>| {
            Some(Cluster { representative: matrix.clone(), sum: matrix.iter().sum(), members: 1.0 })
        };
        let n = matrices.len();
        Self {
            clusters: matrices.iter().map(cluster).collect(),
            added: (0..n).map(|first| vec![f64::INFINITY; n - first]).collect(),
            best: vec![None; n],
        }
    }

    /// Finds out what merging a cluster with each one after it would add.
    fn compare(&mut self, first: usize) {
        for second in first + 1..self.clusters.len() {
            self.added[first][second - first] = self.would_add(first, second);
        }
        self.choose(first);
    }

    fn would_add(&self, a: usize, b: usize) -> f64 {
        let (Some(a), Some(b)) = (&self.clusters[a], &self.clusters[b]) else { return f64::INFINITY };
        let together = sum_of_larger(&a.representative, &b.representative);
        (a.members + b.members) * together - a.members * a.sum - b.members * b.sum
    }

    fn choose(&mut self, first: usize) {
        let row = &self.added[first];
        let alive = |second: &usize| self.clusters[*second].is_some();
        let others = (first + 1..self.clusters.len()).filter(alive);
        self.best[first] = others.min_by(|a, b| row[a - first].total_cmp(&row[b - first]));
    }

    /// The pair to merge, the smaller name first, and what that adds.
    fn closest(&self) -> Option<(usize, usize, f64)> {
        let pair = |first: usize| {
            self.clusters[first].as_ref()?;
            let second = self.best[first]?;
            Some((first, second, self.added[first][second - first]))
        };
        (0..self.clusters.len()).filter_map(pair).min_by(|a, b| a.2.total_cmp(&b.2))
    }

    fn merge(&mut self, kept: usize, gone: usize) {
        let Some(other) = self.clusters[gone].take() else { return };
        if let Some(cluster) = &mut self.clusters[kept] {
            raise(&mut cluster.representative, &other.representative);
            cluster.sum = cluster.representative.iter().sum();
            cluster.members += other.members;
        }
        for first in 0..gone {
            if self.clusters[first].is_none() || first == kept {
                continue;
            }
            if first < kept {
                self.added[first][kept - first] = self.would_add(first, kept);
            }
            let at_kept = if first < kept { self.added[first][kept - first] } else { f64::INFINITY };
            let stale = self.best[first].is_none_or(|best| best == kept || best == gone);
            if stale {
                self.choose(first);
            } else if self.best[first].is_some_and(|best| at_kept < self.added[first][best - first]) {
                self.best[first] = Some(kept);
            }
        }
        self.compare(kept);
    }
}

/// Makes every entry at least that of the other.
fn raise(representative: &mut [f64], other: &[f64]) {
    for (entry, other) in representative.iter_mut().zip(other) {
        *entry = larger(*entry, *other);
    }
}

fn dominates(representative: &[f64], matrix: &[f64]) -> bool {
    representative.iter().zip(matrix).all(|(entry, needed)| entry >= needed)
}

fn larger(a: f64, b: f64) -> f64 {
    if a > b { a } else { b }
}

/// Sum over all entries of the larger of two.
fn sum_of_larger(a: &[f64], b: &[f64]) -> f64 {
    sum_of(a, b, larger)
}

/// Sum over all entries of how far two differ.
fn distance(a: &[f64], b: &[f64]) -> f64 {
    sum_of(a, b, |a, b| (a - b).abs())
}

/// Sums in several lanes, which the compiler turns into vector instructions.
fn sum_of(a: &[f64], b: &[f64], of: impl Fn(f64, f64) -> f64) -> f64 {
    let (a_lanes, b_lanes) = (a.chunks_exact(LANES), b.chunks_exact(LANES));
    let rest: f64 = a_lanes.remainder().iter().zip(b_lanes.remainder()).map(|(a, b)| of(*a, *b)).sum();
    let mut sums = [0.0; LANES];
    for (a, b) in a_lanes.zip(b_lanes) {
        for lane in 0..LANES {
            sums[lane] += of(a[lane], b[lane]);
        }
    }
    rest + sums.iter().sum::<f64>()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn clustering(matrices: &[Vec<f64>]) -> Clustering {
        Clustering::of(matrices, |_| true).unwrap()
    }

    /// The sum of distances of a partition, from the definition.
    fn distance_of(matrices: &[Vec<f64>], names: &[usize]) -> f64 {
        let of = |name: usize| {
            let members: Vec<&Vec<f64>> =
                matrices.iter().zip(names).filter(|(_, one)| **one == name).map(|(matrix, _)| matrix).collect();
            let entries = 0..matrices[0].len();
            let largest: Vec<f64> =
                entries.map(|entry| members.iter().map(|matrix| matrix[entry]).fold(0.0, f64::max)).collect();
            members.iter().map(|matrix| distance(&largest, matrix)).sum::<f64>()
        };
        let mut all = names.to_vec();
        all.sort_unstable();
        all.dedup();
        all.into_iter().map(of).sum()
    }

    /// Every way to put n things into exactly k clusters, each called by its first member.
    fn partitions(n: usize, k: usize) -> Vec<Vec<usize>> {
        fn extend(names: &mut Vec<usize>, n: usize, k: usize, all: &mut Vec<Vec<usize>>) {
            let mut used = names.clone();
            used.sort_unstable();
            used.dedup();
            if names.len() == n {
                if used.len() == k {
                    all.push(names.clone());
                }
                return;
            }
            for name in used.into_iter().chain([names.len()]) {
                names.push(name);
                extend(names, n, k, all);
                names.pop();
            }
        }
        let mut all = Vec::new();
        extend(&mut Vec::new(), n, k, &mut all);
        all
    }

    #[test]
    fn there_are_as_many_partitions_as_stirling_counted() {
        let counts: Vec<usize> = (1..=5).map(|k| partitions(5, k).len()).collect();
        assert_eq!(counts, [1, 15, 25, 10, 1]);
    }

    #[test]
    fn two_patterns_are_found_and_their_distance_is_what_a_hand_computes() {
        let matrices = vec![vec![10.0, 0.0], vec![0.0, 7.0], vec![12.0, 0.0], vec![0.0, 7.0], vec![11.0, 0.0]];
        let found = clustering(&matrices);
        assert_eq!(found.members(2), [0, 1, 0, 1, 0]);
        // With two: (12, 0) for 10, 12, 11 is off by 3. With one: (12, 7) is off by 9, 12, 7, 12 and 8.
        assert_eq!((found.distances[1], found.distances[0]), (3.0, 48.0));
        assert_eq!(found.distances[4], 0.0);
        let fitting = found.fitting();
        assert_eq!((fitting[1].clusters, fitting[1].error_ratio, fitting[1].excess_ratio), (2, 3.0 / 50.0, 3.0 / 47.0));
        assert_eq!(found.classify(&matrices, 2), [0, 1, 0, 1, 0]);
        assert_eq!(found.classify(&matrices, 40), [0, 1, 2, 1, 3]);
    }

    /// (9) is nearer to (8) than to (12), but a routing for (8) cannot deal with it.
    #[test]
    fn a_matrix_belongs_to_a_representative_that_is_at_least_it() {
        let matrices = vec![vec![8.0, 0.0], vec![12.0, 0.0], vec![9.0, 0.0], vec![0.0, 5.0], vec![8.0, 0.0]];
        let found = clustering(&matrices);
        // Merged are 8 and 8, then 9 with them, which makes (9, 0); (12, 0) and (0, 5) stay alone.
        assert_eq!(found.members(3), [0, 1, 0, 3, 0]);
        assert_eq!(found.classify(&matrices, 4), [0, 1, 2, 3, 0]);
        assert_eq!(found.classify(&matrices, 3), [0, 1, 0, 2, 0]);
    }

    #[test]
    fn equal_matrices_cost_nothing_and_empty_ones_do_not_divide_by_zero() {
        let found = clustering(&[vec![0.0; 3], vec![0.0; 3]]);
        assert!(found.fitting().iter().all(|row| (row.error_ratio, row.excess_ratio) == (0.0, 0.0)));
        assert_eq!(clustering(&[vec![4.0]]).fitting().len(), 1);
        assert_eq!(clustering(&[vec![4.0]]).classify(&[vec![4.0]], 40), [0]);
    }

    #[test]
    fn it_stops_when_it_is_told_to() {
        assert_eq!(Clustering::of(&[vec![1.0], vec![2.0]], |_| false), None);
    }

    #[test]
    fn too_many_matrices_are_left_alone() {
        assert!(!fits(&[]) && fits(&[vec![1.0]]) && !fits(&vec![vec![1.0]; CLUSTERED_MAX + 1]));
    }

    proptest! {
        /// Greedy merging is held against every partition there is.
        #[test]
        fn it_is_never_better_than_the_best_partition_and_tells_its_own_distance_truly(
            matrices in prop::collection::vec(prop::collection::vec((0u32..50).prop_map(f64::from), 9), 1..7)
        ) {
            let found = clustering(&matrices);
            for k in 1..=matrices.len() {
                let names = found.members(k);
                let best = partitions(matrices.len(), k).iter().map(|names| distance_of(&matrices, names)).fold(f64::INFINITY, f64::min);
                prop_assert_eq!(distance_of(&matrices, &names), found.distances[k - 1]);
                prop_assert!(found.distances[k - 1] >= best);
            }
            let n = matrices.len();
            prop_assert_eq!(found.distances[0], distance_of(&matrices, &vec![0; n]));
            prop_assert!(found.distances.windows(2).all(|pair| pair[0] >= pair[1]));
        }

        /// With one more cluster than it takes, and few matrices, the first merge is the best there is.
        #[test]
        fn the_first_merge_is_the_best(
            matrices in prop::collection::vec(prop::collection::vec((0u32..50).prop_map(f64::from), 5), 2..7)
        ) {
            let k = matrices.len() - 1;
            let best = partitions(matrices.len(), k).iter().map(|names| distance_of(&matrices, names)).fold(f64::INFINITY, f64::min);
            prop_assert_eq!(clustering(&matrices).distances[k - 1], best);
        }
    }
}
