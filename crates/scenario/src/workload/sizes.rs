//! How large flows are: the distributions of the field as tables of integers, so that a seed gives the same sizes on every
//! machine.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::mix::FLOW_SIZES;
use crate::random::Stream;
use crate::units::{Bytes, Share};

/// A distribution of flow sizes (payload).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SizeDistribution {
    /// Web search: [`WEB_SEARCH`]. Mean 1.711 MB.
    WebSearch,
    /// Data mining: [`DATA_MINING`]. Mean 7.674 MB.
    DataMining,
    /// What VL2's text says about its Figure 2: [`FLOW_SIZES`]. Mean 3.082 MB.
    Vl2Mix,
    /// All flows alike.
    Fixed(Bytes),
    /// The plan's own table.
    Table(SizeTable),
}

/// Web search, in percent: the points that public readings of the background traffic of DCTCP (Alizadeh et al., SIGCOMM
/// 2010, Figure 4) share: TrafficGenerator's `DCTCP_CDF` and, in packets of 1460 bytes, pFabric's (Alizadeh et al.,
/// SIGCOMM 2013, Figure 4) and Homa's W5. Below 10 kB it begins at one byte, as in the first; the others begin at six
/// packets. `(bytes, flows)` as in [`FLOW_SIZES`].
pub const WEB_SEARCH: [(u64, u32); 11] = [
    (10_000, 15),
    (20_000, 20),
    (30_000, 30),
    (50_000, 40),
    (80_000, 53),
    (200_000, 60),
    (1_000_000, 70),
    (2_000_000, 80),
    (5_000_000, 90),
    (10_000_000, 97),
    (30_000_000, 100),
];

/// Data mining, in percent: public readings of VL2's Figure 2 (Greenberg et al., SIGCOMM 2009). They agree up to 95 % of
/// the flows and then disagree: TrafficGenerator's `VL2_CDF` has 98 % of them below 100 MB (mean 12.7 MB), pFabric's
/// (SIGCOMM 2013, Figure 4) has 99 % (mean 7.5 MB in packets of 1460 bytes). This is pFabric's, in bytes: its authors
/// include those of the leaf-spine paper, and the caption of VL2's figure says 99 %. Below 1460 bytes, which are one
/// packet there, the points are the other reading's. `(bytes, flows)` as in [`FLOW_SIZES`].
pub const DATA_MINING: [(u64, u32); 12] = [
    (180, 10),
    (216, 20),
    (560, 30),
    (900, 40),
    (1_100, 50),
    (1_870, 60),
    (3_160, 70),
    (10_000, 80),
    (400_000, 90),
    (3_160_000, 95),
    (100_000_000, 99),
    (1_000_000_000, 100),
];

impl SizeDistribution {
    /// Mean size in bytes, rounded to the nearest.
    pub fn mean_bytes(&self) -> u64 {
        libm::round(Sizes::new(self, 1, None).mean_bytes()) as u64
    }

    /// Share of the flows that are at most so large, 0 to 1.
    pub fn share_at_most(&self, bytes: u64) -> f64 {
        let rows = self.rows();
        let total = rows.last().map_or(1, |row| row.1) as f64;
        let below = |(low, high, flows): (u64, u64, u64)| {
            let inside = bytes.clamp(low, high) - low;
            inside as f64 / (high - low) as f64 * flows as f64
        };
        segments(&rows).map(below).sum::<f64>() / total
    }

    /// Where the numbers come from.
    pub fn source(&self) -> &'static str {
        match self {
            Self::WebSearch => {
                "web search: DCTCP (SIGCOMM 2010) Figure 4, the 11 points that its public readings share; mean 1.71 MB"
            }
            Self::DataMining => {
                "data mining: VL2 (SIGCOMM 2009) Figure 2 as pFabric (SIGCOMM 2013) reads it, 99 % below 100 MB; mean 7.67 MB"
            }
            Self::Vl2Mix => "VL2 (SIGCOMM 2009) Figure 2 with its tail as the caption says; mean 3.08 MB",
            Self::Fixed(_) => "one size for all flows",
            Self::Table(_) => "the plan's own table",
        }
    }

    /// Pairs of a size and of how many flows are at most so large; the last number is all flows.
    fn rows(&self) -> Cow<'_, [Row]> {
        let rows = |table: &[(u64, u32)]| table.iter().map(|(bytes, flows)| (*bytes, u64::from(*flows))).collect();
        match self {
            Self::WebSearch => rows(&WEB_SEARCH),
            Self::DataMining => rows(&DATA_MINING),
            Self::Vl2Mix => rows(&FLOW_SIZES),
            Self::Fixed(bytes) => Cow::Owned(vec![(bytes.0.saturating_sub(1), 0), (bytes.0, 1)]),
            Self::Table(table) => Cow::Borrowed(&table.0),
        }
    }
}

/// A size in bytes, and how many flows are at most so large.
pub(super) type Row = (u64, u64);

/// A cumulative distribution of sizes that rises and ends at 1. Between two rows all sizes are equally likely; a first row
/// with 0 says that all sizes are above it, else the smallest is one byte.
///
/// ```toml
/// sizes = { table = [["1 kB", 0.5], ["1 MB", 1.0]] }       # or "50%", "100%"
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(try_from = "Vec<(Bytes, Share)>", into = "Vec<(Bytes, f64)>")]
pub struct SizeTable(Vec<Row>);

/// Probabilities are kept in parts of this many.
const PARTS: u64 = 1_000_000_000;
/// Largest size of a table; more would not fit a sum over all flows.
const SIZE_MAX: Bytes = Bytes(1_000_000_000_000);

/// Why a table is no distribution; names the row, counted from 1.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum SizeTableError {
    /// No rows.
    #[error("the table of sizes is empty; end it with a row such as [\"1 MB\", 1.0]")]
    Empty,
    /// A probability outside 0 to 1.
    #[error("row {row} of the table of sizes has the probability {probability}; it must be 0 to 1")]
    Probability { row: usize, probability: f64 },
    /// A row is not above the one before.
    #[error("row {row} of the table of sizes does not rise: its {what} must be above that of the row before")]
    DoesNotRise {
        row: usize,
        /// `size` or `probability`.
        what: &'static str,
    },
    /// The last probability is not 1.
    #[error("the table of sizes ends at {probability}; the last row's probability must be 1")]
    DoesNotEnd { probability: f64 },
    /// A size that no flow may have.
    #[error("row {row} of the table of sizes has {bytes}; choose up to {SIZE_MAX}, and more than 0 for the last row")]
    Size { row: usize, bytes: Bytes },
}

impl SizeTable {
    /// Checks the rows, each a size and the probability that a flow is at most so large.
    pub fn new(rows: &[(Bytes, f64)]) -> Result<Self, SizeTableError> {
        let Some((last, _)) = rows.last() else { return Err(SizeTableError::Empty) };
        let mut table: Vec<Row> = Vec::with_capacity(rows.len());
        for ((bytes, probability), row) in rows.iter().copied().zip(1..) {
            if !(0.0..=1.0).contains(&probability) {
                return Err(SizeTableError::Probability { row, probability });
            }
            if bytes > SIZE_MAX || last.0 == 0 {
                return Err(SizeTableError::Size { row, bytes });
            }
            let flows = libm::round(probability * PARTS as f64) as u64;
            if let Some((low, less)) = table.last() {
                if bytes.0 <= *low {
                    return Err(SizeTableError::DoesNotRise { row, what: "size" });
                }
                if flows <= *less {
                    return Err(SizeTableError::DoesNotRise { row, what: "probability" });
                }
            }
            table.push((bytes.0, flows));
        }
        match table.last() {
            Some((_, PARTS)) => Ok(Self(table)),
            last => {
                Err(SizeTableError::DoesNotEnd { probability: last.map_or(0.0, |row| row.1 as f64 / PARTS as f64) })
            }
        }
    }
}

impl TryFrom<Vec<(Bytes, Share)>> for SizeTable {
    type Error = SizeTableError;

    fn try_from(rows: Vec<(Bytes, Share)>) -> Result<Self, SizeTableError> {
        Self::new(&rows.into_iter().map(|(bytes, Share(flows))| (bytes, flows)).collect::<Vec<_>>())
    }
}

impl From<SizeTable> for Vec<(Bytes, f64)> {
    fn from(table: SizeTable) -> Self {
        table.0.into_iter().map(|(bytes, flows)| (Bytes(bytes), flows as f64 / PARTS as f64)).collect()
    }
}

/// Draws sizes: of the distribution, divided and rounded down, at least one byte, and cut to a largest.
#[derive(Clone, Debug)]
pub(super) struct Sizes<'a> {
    rows: Cow<'a, [Row]>,
    divisor: u64,
    largest: u64,
}

impl<'a> Sizes<'a> {
    pub(super) fn new(distribution: &'a SizeDistribution, divisor: u32, largest: Option<Bytes>) -> Self {
        let largest = largest.map_or(u64::MAX, |bytes| bytes.0);
        Self { rows: distribution.rows(), divisor: u64::from(divisor.max(1)), largest }
    }

    /// The next size in bytes.
    pub(super) fn draw(&self, stream: &mut Stream) -> u64 {
        (draw(stream, &self.rows) / self.divisor).max(1).min(self.largest)
    }

    /// The largest that may be drawn.
    pub(super) fn most(&self) -> Bytes {
        let last = self.rows.last().map_or(1, |row| row.0);
        Bytes((last / self.divisor).max(1).min(self.largest))
    }

    /// The mean of what is drawn, in bytes.
    pub(super) fn mean_bytes(&self) -> f64 {
        let total = self.rows.last().map_or(1, |row| row.1);
        let sum: f64 = segments(&self.rows)
            .map(|(low, high, flows)| {
                let bytes = self.sum_upto(high) - self.sum_upto(low);
                bytes as f64 / (high - low) as f64 * flows as f64
            })
            .sum();
        sum / total as f64
    }

    /// Sum of what the sizes 1 to `last` become.
    fn sum_upto(&self, last: u64) -> u128 {
        let cut = last.min(self.largest.saturating_mul(self.divisor).saturating_sub(1));
        let (whole, rest) = (u128::from(cut / self.divisor), u128::from(cut % self.divisor));
        // Sizes from k divisor to (k + 1) divisor - 1 become k, those below the divisor become 1.
        let divided = u128::from(self.divisor) * (whole * whole.saturating_sub(1) / 2) + whole * (rest + 1);
        let raised = u128::from(cut.min(self.divisor - 1));
        divided + raised + u128::from(last - cut) * u128::from(self.largest)
    }
}

/// The rows of a table of cumulative counts as `(low, high, count)`: so many values lie in `low + 1 ..= high`.
pub(super) fn segments<T: Copy + Into<u64>>(rows: &[(u64, T)]) -> impl Iterator<Item = (u64, u64, u64)> + '_ {
    let mut before = (0, 0);
    rows.iter().filter_map(move |(high, upto)| {
        let ((low, less), upto) = (before, (*upto).into());
        before = (*high, upto);
        (upto > less).then(|| (low, *high, upto - less))
    })
}

/// A value with the distribution of the table.
pub(super) fn draw<T: Copy + Into<u64>>(stream: &mut Stream, rows: &[(u64, T)]) -> u64 {
    let total = rows.last().map_or(0, |(_, upto)| (*upto).into());
    let place = stream.below(total);
    let row = rows.partition_point(|(_, upto)| (*upto).into() <= place);
    let low = if row == 0 { 0 } else { rows[row - 1].0 };
    low + 1 + stream.below(rows[row].0 - low)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Purpose;

    fn stream() -> Stream {
        Stream::new(1, Purpose::Background, 0)
    }

    fn table(rows: &[(u64, f64)]) -> Result<SizeTable, SizeTableError> {
        SizeTable::new(&rows.iter().map(|(bytes, share)| (Bytes(*bytes), *share)).collect::<Vec<_>>())
    }

    /// Computed apart with exact fractions, as sums over the rows of (low + 1 + high) / 2 x flows.
    #[test]
    fn means_are_those_of_the_published_points() {
        let means = [SizeDistribution::WebSearch, SizeDistribution::DataMining]
            .map(|sizes| Sizes::new(&sizes, 1, None).mean_bytes());
        assert!((means[0] - 1_711_250.5).abs() < 0.01 && (means[1] - 7_673_999.1).abs() < 0.01, "{means:?}");
        assert_eq!(SizeDistribution::DataMining.mean_bytes(), 7_673_999);
        assert_eq!(SizeDistribution::Fixed(Bytes(20_000)).mean_bytes(), 20_000);
    }

    #[test]
    fn both_tables_rise() {
        assert!(WEB_SEARCH.windows(2).all(|pair| pair[0].0 < pair[1].0 && pair[0].1 < pair[1].1));
        assert!(DATA_MINING.windows(2).all(|pair| pair[0].0 < pair[1].0 && pair[0].1 < pair[1].1));
    }

    /// Computed apart by going through every size.
    #[test]
    fn the_mean_counts_what_is_divided_and_cut() {
        let sizes = SizeDistribution::Table(table(&[(7, 0.1), (100, 0.6), (1000, 1.0)]).unwrap());
        for (divisor, largest, mean) in [
            (1, None, 247.6),
            (3, None, 82.228_571_428_571_43),
            (1, Some(50), 40.545_161_290_322_58),
            (7, Some(33), 16.379_383_512_544_802),
            (10, Some(1), 1.0),
            (2000, Some(5), 1.0),
        ] {
            let got = Sizes::new(&sizes, divisor, largest.map(Bytes)).mean_bytes();
            assert!((got - mean).abs() < 1e-9, "/{divisor} <={largest:?}: {got}, not {mean}");
        }
    }

    #[test]
    fn shares_are_those_of_the_rows_and_straight_between_them() {
        for (bytes, share) in [(0, 0.0), (180, 0.1), (198, 0.15), (216, 0.2), (100_000_000, 0.99), (1 << 40, 1.0)] {
            let got = SizeDistribution::DataMining.share_at_most(bytes);
            assert!((got - share).abs() < 1e-12, "{bytes}: {got}");
        }
        assert_eq!([8, 9, 10].map(|bytes| SizeDistribution::Fixed(Bytes(9)).share_at_most(bytes)), [0.0, 1.0, 1.0]);
    }

    #[test]
    fn drawn_sizes_follow_the_distribution() {
        for (distribution, median) in
            [(SizeDistribution::WebSearch, 50_000..80_000), (SizeDistribution::DataMining, 1_000..1_200)]
        {
            let (sizes, mut stream) = (Sizes::new(&distribution, 1, None), stream());
            let mut drawn: Vec<u64> = (0..100_001).map(|_| sizes.draw(&mut stream)).collect();
            drawn.sort_unstable();
            assert!(median.contains(&drawn[50_000]), "{}", drawn[50_000]);
            let mean = drawn.iter().sum::<u64>() as f64 / drawn.len() as f64;
            assert!((mean / sizes.mean_bytes() - 1.0).abs() < 0.06, "{mean} {}", sizes.mean_bytes());
        }
    }

    #[test]
    fn drawn_sizes_stay_within_what_was_asked() {
        let (sizes, mut stream) = (Sizes::new(&SizeDistribution::WebSearch, 1_000, Some(Bytes(700))), stream());
        let drawn: Vec<u64> = (0..10_000).map(|_| sizes.draw(&mut stream)).collect();
        assert_eq!((drawn.iter().min(), drawn.iter().max()), (Some(&1), Some(&700)));
        let fixed = SizeDistribution::Fixed(Bytes(9));
        assert!((0..100).all(|_| Sizes::new(&fixed, 1, None).draw(&mut stream) == 9));
        let above = SizeDistribution::Table(table(&[(10, 0.0), (12, 1.0)]).unwrap());
        assert!((0..100).all(|_| (11..=12).contains(&Sizes::new(&above, 1, None).draw(&mut stream))));
    }

    #[test]
    fn a_table_that_is_no_distribution_is_refused_with_its_row() {
        for (rows, message) in [
            (&[][..], "is empty"),
            (&[(10, 0.5), (9, 1.0)], "row 2 of the table of sizes does not rise: its size"),
            (&[(10, 0.5), (10, 1.0)], "row 2 of the table of sizes does not rise: its size"),
            (&[(10, 0.5), (20, 0.4), (30, 1.0)], "row 2 of the table of sizes does not rise: its probability"),
            (&[(10, 0.5), (20, 0.5), (30, 1.0)], "row 2 of the table of sizes does not rise: its probability"),
            (&[(10, 0.5), (20, 0.9)], "ends at 0.9; the last row's probability must be 1"),
            (&[(10, 0.5), (20, 1.1)], "row 2 of the table of sizes has the probability 1.1"),
            (&[(10, -0.5), (20, 1.0)], "row 1 of the table of sizes has the probability -0.5"),
            (&[(10, f64::NAN), (20, 1.0)], "has the probability NaN"),
            (&[(0, 1.0)], "row 1 of the table of sizes has 0 B"),
            (&[(1_000_000_000_001, 1.0)], "choose up to 1000 GB"),
        ] {
            let error = table(rows).unwrap_err().to_string();
            assert!(error.contains(message), "wanted `{message}`, got `{error}`");
        }
    }

    #[test]
    fn plans_name_a_distribution_or_write_a_table() {
        #[derive(Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
        struct Plan {
            sizes: SizeDistribution,
        }
        let read = |text: &str| toml::from_str::<Plan>(text).map(|plan| plan.sizes);
        let written = SizeDistribution::Table(table(&[(1_000, 0.5), (1_000_000, 1.0)]).unwrap());
        for (text, sizes) in [
            ("sizes = \"web-search\"", SizeDistribution::WebSearch),
            ("sizes = \"data-mining\"", SizeDistribution::DataMining),
            ("sizes = \"vl2-mix\"", SizeDistribution::Vl2Mix),
            ("sizes = { fixed = \"20 kB\" }", SizeDistribution::Fixed(Bytes(20_000))),
            ("sizes = { table = [[\"1 kB\", 0.5], [\"1 MB\", 1.0]] }", written),
        ] {
            assert_eq!(read(text).unwrap(), sizes);
            let json = serde_json::to_string(&sizes).unwrap();
            assert_eq!(serde_json::from_str::<SizeDistribution>(&json).unwrap(), sizes);
        }
        let error = read("sizes = { table = [[\"1 kB\", 0.5]] }").unwrap_err().to_string();
        assert!(error.contains("ends at 0.5"), "{error}");
    }
}
