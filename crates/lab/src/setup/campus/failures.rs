//! The numbers of `weft bench campus`: links of a random campus fail one after another, and how long it takes until the last RBridge
//! has its new routes. Both ends of a link see at once that it is down; what each RBridge's processor takes for what it is told is measured
//! and counts as time in which it does nothing else.

use rand_pcg::Pcg64;
use rand_pcg::rand_core::Rng;
use serde::Serialize;
use weft_control::isis::{Input, PortId};
use weft_control::{NS_PER_MS, NS_PER_S};
use weft_scenario::engine::{EngineError, Progress};
use weft_scenario::judge::Check;

use super::Campus;

/// Version of [`FailuresReport`]'s fields.
pub const SCHEMA_VERSION: u32 = 1;

/// By then RBridges that started within a second have long converged.
const BEGIN_NS: u64 = 20 * NS_PER_S;
/// What the last RBridge may take, ms.
const CEILING_MS: f64 = 100.0;

/// Which campus, which failures.
#[derive(Clone, Copy, Debug)]
pub struct FailuresOptions {
    pub rbridges: u16,
    /// Links that fail; none of them comes back.
    pub failures: u16,
    /// From one failure to the next.
    pub interval_ms: u32,
    /// Names the campus and its failures.
    pub seed: u64,
}

/// All numbers.
#[derive(Clone, Debug, Serialize)]
pub struct FailuresReport {
    /// [`SCHEMA_VERSION`].
    pub schema_version: u32,
    pub seed: u64,
    pub rbridges: usize,
    pub links: usize,
    pub interval_ms: u32,
    /// In their order.
    pub failures: Vec<Failure>,
    /// Over failures: from link-down until the last RBridge has its new routes.
    pub last_rbridge_ms: Spread,
    /// Over failures and RBridges whose routes are others then.
    pub each_rbridge_ms: Spread,
    /// Over failures: until the last RBridge was told by an LSP. The rest is its SPF delay and computation.
    pub told_ms: Spread,
    /// CPU time of one computation of routes and trees.
    pub computation_ms: Spread,
    /// Pairs whose route is not all of the shortest ways, after all failures.
    pub wrong_routes: u64,
    /// Every ceiling with our number.
    pub checks: Vec<Check>,
}

/// A link that failed.
#[derive(Clone, Debug, Serialize)]
pub struct Failure {
    /// Host names of its ends.
    pub ends: [String; 2],
    /// Until the last RBridge was told by an LSP.
    pub told_ms: f64,
    /// Until the last RBridge had its new routes: after it was told it waited for its SPF delay, and computed.
    pub last_rbridge_ms: f64,
    /// RBridges with other routes or trees than before.
    pub rbridges: usize,
}

/// Some times.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Spread {
    pub median: f64,
    /// As long or shorter are 99 % of them.
    pub p99: f64,
    pub worst: f64,
}

impl Spread {
    fn of(mut all: Vec<f64>) -> Self {
        all.sort_unstable_by(f64::total_cmp);
        let at = |share: f64| all.get((share * all.len() as f64).ceil().max(1.0) as usize - 1).copied().unwrap_or(0.0);
        Self { median: at(0.5), p99: at(0.99), worst: at(1.0) }
    }
}

/// Lets links fail and measures.
///
/// # Errors
/// No link is left that the campus could miss; an interruption.
pub fn run(options: &FailuresOptions, progress: &dyn Progress) -> Result<FailuresReport, EngineError> {
    let mut rng = Pcg64::new(options.seed.into(), 2);
    let mut campus = Campus::random(options.rbridges.into(), &mut rng);
    campus.busy_until_ns = Some(vec![0; campus.len()]);
    progress.phase("IS-IS", &format!("{} RBridges in virtual time, {} failures", campus.len(), options.failures));
    fail_all(campus, &mut rng, options, progress)
}

fn fail_all(
    mut campus: Campus,
    rng: &mut Pcg64,
    options: &FailuresOptions,
    progress: &dyn Progress,
) -> Result<FailuresReport, EngineError> {
    campus.run_to(BEGIN_NS, progress)?;
    campus.computations_ns.clear();
    let (mut failures, mut each_ms) = (Vec::new(), Vec::new());
    for number in 0..u64::from(options.failures) {
        let end = campus.spare_link(rng).ok_or_else(|| {
            let why = format!("after {number} failures each link is needed; use fewer failures or more RBridges");
            EngineError::Refused(why)
        })?;
        let at_ns = BEGIN_NS + number * u64::from(options.interval_ms) * NS_PER_MS;
        failures.push(campus.fail(at_ns, end));
        campus.run_to(at_ns + u64::from(options.interval_ms) * NS_PER_MS - 1, progress)?;
        each_ms.extend(campus.measure(at_ns, failures.last_mut().expect("it was just pushed")));
    }
    Ok(campus.report(options, failures, each_ms))
}

impl Campus {
    /// As many links again as a tree has, between any two.
    fn random(nodes: usize, rng: &mut Pcg64) -> Self {
        let mut links: Vec<(usize, usize)> = (1..nodes).map(|node| (below(node, rng), node)).collect();
        while links.len() < 2 * nodes {
            let (a, b) = (below(nodes, rng), below(nodes, rng));
            if a != b {
                links.push((a, b));
            }
        }
        Self::new(nodes, links.into_iter())
    }

    /// A link that is up and without which everybody is still reached, by one of its ends.
    fn spare_link(&mut self, rng: &mut Pcg64) -> Option<(usize, PortId)> {
        let mut ends: Vec<(usize, PortId)> = self.ends().filter(|end| !self.down.contains(end)).collect();
        while !ends.is_empty() {
            let end = ends.swap_remove(below(ends.len(), rng));
            let both = [end, self.far(end)];
            self.down.extend(both);
            let is_spare = self.hops_to(0).iter().all(|hops| *hops < usize::MAX);
            both.iter().for_each(|end| {
                self.down.remove(end);
            });
            if is_spare {
                return Some(end);
            }
        }
        None
    }

    fn ends(&self) -> impl Iterator<Item = (usize, PortId)> + '_ {
        let of = |(node, cables): (usize, &Vec<_>)| (1..=cables.len()).map(move |port| (node, PortId(port as u16)));
        self.cables.iter().enumerate().flat_map(of)
    }

    fn far(&self, (node, port): (usize, PortId)) -> (usize, PortId) {
        self.cables[node][usize::from(port.0) - 1]
    }

    fn fail(&mut self, now_ns: u64, end: (usize, PortId)) -> Failure {
        let both = [end, self.far(end)];
        self.down.extend(both);
        both.iter().for_each(|(node, port)| self.handle(now_ns, *node, Input::PortDown(*port)));
        let ends = both.map(|(node, _)| self.rbridges[node].config().hostname.clone());
        Failure { ends, told_ms: 0.0, last_rbridge_ms: 0.0, rbridges: 0 }
    }

    /// What followed from a failure; of each RBridge with other routes, when it had them.
    fn measure(&self, at_ns: u64, failure: &mut Failure) -> Vec<f64> {
        let since_ms = |ns: u64| ns.saturating_sub(at_ns) as f64 / NS_PER_MS as f64;
        let changed: Vec<f64> = self.changes_ns.iter().filter(|ns| **ns >= at_ns).map(|ns| since_ms(*ns)).collect();
        failure.told_ms = since_ms(self.told_ns);
        failure.last_rbridge_ms = since_ms(self.changed_ns);
        failure.rbridges = changed.len();
        changed
    }

    fn report(self, options: &FailuresOptions, failures: Vec<Failure>, each_ms: Vec<f64>) -> FailuresReport {
        let last_ms = Spread::of(failures.iter().map(|failure| failure.last_rbridge_ms).collect());
        let computations_ms = self.computations_ns.iter().map(|ns| *ns as f64 / NS_PER_MS as f64).collect();
        let wrong_routes = self.wrong();
        let what = format!("{} links of {} RBridges fail: last new routes, worst", failures.len(), self.len());
        FailuresReport {
            schema_version: SCHEMA_VERSION,
            seed: options.seed,
            rbridges: self.len(),
            links: self.ends().count() / 2,
            interval_ms: options.interval_ms,
            told_ms: Spread::of(failures.iter().map(|failure| failure.told_ms).collect()),
            failures,
            last_rbridge_ms: last_ms,
            each_rbridge_ms: Spread::of(each_ms),
            computation_ms: Spread::of(computations_ms),
            wrong_routes,
            checks: vec![
                Check::at_most(what, last_ms.worst, CEILING_MS, "ms"),
                Check::at_most(
                    "  routes that are not the shortest ways afterwards",
                    wrong_routes as f64,
                    0.0,
                    "routes",
                ),
            ],
        }
    }
}

fn below(end: usize, rng: &mut Pcg64) -> usize {
    (rng.next_u64() % end as u64) as usize
}

#[cfg(test)]
mod tests {
    use super::super::tests::Silent;
    use super::*;

    fn report(interval_ms: u32) -> FailuresReport {
        let options = FailuresOptions { rbridges: 30, failures: 20, interval_ms, seed: 5 };
        let mut rng = Pcg64::new(options.seed.into(), 2);
        // Without processors, so that the same comes out everywhere.
        let campus = Campus::random(30, &mut rng);
        fail_all(campus, &mut rng, &options, &Silent).unwrap()
    }

    #[test]
    fn twenty_links_fail_and_all_routes_are_right_each_time() {
        let report = report(2000);
        assert_eq!((report.rbridges, report.links, report.failures.len(), report.wrong_routes), (30, 60, 20, 0));
        for failure in &report.failures {
            // Of two links between the same RBridges only these use one.
            let is_told = failure.rbridges == 2 || failure.told_ms < failure.last_rbridge_ms;
            assert!(failure.rbridges >= 2 && is_told, "{failure:?}");
        }
        assert!(report.last_rbridge_ms.worst <= CEILING_MS, "{:?}", report.last_rbridge_ms);
        assert!(report.each_rbridge_ms.median <= report.last_rbridge_ms.median);
    }

    /// An RBridge that has just lost a neighbour tells of the next loss as soon, and routes follow as soon.
    #[test]
    fn failures_that_follow_each_other_are_told_as_soon() {
        let report = report(300);
        assert_eq!(report.wrong_routes, 0);
        assert!(report.last_rbridge_ms.worst <= CEILING_MS, "{:#?}", report.failures);
    }

    #[test]
    fn a_campus_without_spare_links_is_refused() {
        let mut rng = Pcg64::new(1, 2);
        let campus = Campus::random(4, &mut rng);
        let options = FailuresOptions { rbridges: 4, failures: 6, interval_ms: 2000, seed: 1 };
        let refusal = fail_all(campus, &mut rng, &options, &Silent).unwrap_err();
        assert!(matches!(refusal, EngineError::Refused(ref why) if why.starts_with("after 5 failures")), "{refusal}");
    }

    #[test]
    fn spreads_of_few_numbers() {
        let of = |all: &[f64]| {
            let Spread { median, p99, worst } = Spread::of(all.to_vec());
            [median, p99, worst]
        };
        assert_eq!(of(&[]), [0.0; 3]);
        assert_eq!(of(&[3.0, 1.0, 2.0]), [2.0, 3.0, 3.0]);
        let hundred: Vec<f64> = (1..=200).rev().map(f64::from).collect();
        assert_eq!(of(&hundred), [100.0, 198.0, 200.0]);
    }
}
