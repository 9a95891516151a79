//! What all tests came to: how many passed, failed and were skipped, and why.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{self, Write};
use std::path::Path;
use std::time::Duration;

use weft_needs::Skip;

/// Characters.
const MOST_OF_A_REASON: usize = 400;

/// Test functions by how they ended; libtest takes those that skip for passed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Ends {
    passed: u64,
    failed: u64,
    /// Those with the mark `ignore`, which run apart.
    left_out: u64,
    /// Those that failed, and executables that did not end well though none of their tests said so.
    culprits: Vec<String>,
    /// Running time of each executable.
    times: Vec<(Duration, String)>,
}

impl Ends {
    /// Adds what an executable said in lines of libtest, such as `test result: ok. 3 passed; 0 failed; ..`, how long it took, and what
    /// was wrong with how it ended.
    pub(super) fn add(&mut self, executable: &str, said: &str, took: Duration, problem: Option<&str>) {
        self.times.push((took, executable.to_owned()));
        let failed = self.failed;
        said.lines().filter_map(|line| line.strip_prefix("test result: ")).for_each(|counts| self.count(counts));
        let tests = said.lines().filter_map(|line| line.strip_prefix("test ")?.strip_suffix(" ... FAILED"));
        self.culprits.extend(tests.map(|test| format!("{executable}: {test}{}", reason(said, test))));
        if let Some(problem) = problem.filter(|_| self.failed == failed) {
            self.failed += 1;
            self.culprits.push(format!("{executable}: {problem}"));
        }
    }

    #[cfg(test)]
    pub(super) fn culprits(&self) -> &[String] {
        &self.culprits
    }

    /// Numbers of tests that passed and that failed.
    #[cfg(test)]
    pub(super) fn counts(&self) -> (u64, u64) {
        (self.passed, self.failed)
    }

    fn count(&mut self, counts: &str) {
        let words: Vec<&str> = counts.split([' ', ';']).collect();
        let before = |word| {
            let place = words.iter().position(|one| *one == word);
            place.and_then(|place| words[place - 1].parse::<u64>().ok()).unwrap_or(0)
        };
        self.passed += before("passed");
        self.failed += before("failed");
        self.left_out += before("ignored");
    }
}

/// Seconds of each executable, slowest first; those of less than one together.
fn times(ends: &Ends) -> String {
    const SHORT: Duration = Duration::from_secs(1);
    let mut slow: Vec<_> = ends.times.iter().filter(|(took, _)| *took >= SHORT).collect();
    slow.sort_by(|a, b| b.cmp(a));
    let lines = slow.iter().map(|(took, name)| format!("{:>8.1} s  {name}\n", took.as_secs_f64()));
    let others = ends.times.len() - slow.len();
    let rest: Duration = ends.times.iter().map(|(took, _)| *took).filter(|took| *took < SHORT).sum();
    let rest = (others > 0).then(|| format!("{:>8.1} s  {others} others\n", rest.as_secs_f64()));
    lines.chain(rest).collect()
}

/// Why a test failed: where it panicked, and the first line of what it said then. Empty if another thread did.
fn reason(said: &str, test: &str) -> String {
    let mut lines = said.lines();
    let is_its = |line: &&str| line.starts_with(&format!("thread '{test}'")) && line.contains(" panicked at ");
    let place = lines.find(is_its).and_then(|line| line.split(" panicked at ").nth(1));
    let text: String = lines.next().unwrap_or_default().chars().take(MOST_OF_A_REASON).collect();
    place.map(|place| format!(": {place} {text}")).unwrap_or_default()
}

/// Prints it; `recorded` is the file that skips were appended to. Whether all is as it must be.
pub(super) fn tell(ends: &Ends, recorded: &Path) -> bool {
    let skips = Skip::all(&fs::read_to_string(recorded).unwrap_or_default());
    let required = std::env::var_os(weft_needs::REQUIRE_ALL).is_some_and(|value| value == "1");
    let (text, is_good) = summary(ends, &skips, &weft_needs::listed().collect::<Vec<_>>(), required);
    let _ = write!(io::stdout(), "{text}");
    is_good
}

fn summary(ends: &Ends, skips: &BTreeSet<Skip>, listed: &[&str], required: bool) -> (String, bool) {
    let mut reasons: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    for skip in skips {
        reasons.entry(&skip.why).or_default().insert(format!("{} ({})", skip.test, skip.place));
    }
    let tests: BTreeSet<&str> = skips.iter().map(|skip| &*skip.test).collect();
    let libtests = skips.iter().filter(|skip| skip.place.contains(".rs:")).map(|skip| &*skip.test);
    let passed = ends.passed.saturating_sub(libtests.collect::<BTreeSet<_>>().len() as u64);
    let mut text = times(ends);
    text += &format!("\ntests: {passed} passed, {} failed, {} skipped\n", ends.failed, tests.len());
    if ends.left_out > 0 {
        text += &format!("left out: {} that take long; `make test-long` runs them\n", ends.left_out);
    }
    for culprit in &ends.culprits {
        text += &format!("failed: {culprit}\n");
    }
    let mut is_allowed = true;
    for (why, tests) in &reasons {
        let is_listed = listed.contains(why);
        is_allowed &= is_listed || !required;
        let mark = if is_listed { " (in deps/skips.txt)" } else { "" };
        text += &format!("skipped: {why}{mark}: {}\n", tests.iter().cloned().collect::<Vec<_>>().join(", "));
    }
    for gone in listed.iter().filter(|why| !reasons.contains_key(*why)) {
        text += &format!("deps/skips.txt: nothing was skipped on this kernel because {gone}; delete the line\n");
    }
    if !is_allowed {
        text += &format!("{}=1: every test must run but those that deps/skips.txt lists\n", weft_needs::REQUIRE_ALL);
    }
    (text, is_allowed && ends.failed == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_of_several_executables_add_up() {
        let mut ends = Ends::default();
        let well = "running 5 tests\ntest result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out\n";
        ends.add("a.rs", well, Duration::from_millis(200), None);
        let badly = "test x::y ... FAILED\ntest z ... ok\n\nthread 'x::y' (7) panicked at b.rs:3:5:\nno moon\nnote: run\n\
                     test result: FAILED. 40 passed; 1 failed; 0 ignored; 0 measured\n";
        ends.add("b.rs", badly, Duration::from_millis(2500), Some("exit status: 101"));
        assert_eq!((ends.counts(), ends.culprits()), ((43, 1), &["b.rs: x::y: b.rs:3:5: no moon".to_owned()][..]));
        let (text, is_good) = summary(&ends, &BTreeSet::new(), &[], false);
        assert!(
            text.contains("43 passed, 1 failed, 0 skipped\nleft out: 1 that take long; `make test-long` runs them\n")
                && text.contains("failed: b.rs: x::y: b.rs:3:5: no moon\n")
                && !is_good,
            "{text}"
        );
    }

    #[test]
    fn an_executable_that_a_signal_ends_has_failed() {
        let mut ends = Ends::default();
        ends.add("a.rs", "running 5 tests\n", Duration::ZERO, Some("signal: 6 (SIGABRT)"));
        assert_eq!((ends.counts(), ends.culprits()), ((0, 1), &["a.rs: signal: 6 (SIGABRT)".to_owned()][..]));
    }

    #[test]
    fn times_are_told_slowest_first() {
        let mut ends = Ends::default();
        for (name, ms) in [("a.rs", 400), ("b.rs", 1500), ("c.rs", 61_000), ("d.rs", 300)] {
            ends.add(name, "", Duration::from_millis(ms), None);
        }
        assert_eq!(times(&ends), "    61.0 s  c.rs\n     1.5 s  b.rs\n     0.7 s  2 others\n");
    }

    #[test]
    fn skips_are_told_by_reason_and_listed_ones_are_allowed() {
        let skips = Skip::all(
            "no moon\ta\tx.rs:1\nno moon\tb\tx.rs:1\nno moon\tb\tx.rs:1\nno sun\tb\ty.rs:2\nno VM\tc\tz.sh\n",
        );
        let ends = Ends { passed: 10, ..Ends::default() };
        let (text, is_good) = summary(&ends, &skips, &["no moon"], false);
        assert!(text.contains("tests: 8 passed, 0 failed, 3 skipped\n"), "{text}");
        assert!(text.contains("skipped: no moon (in deps/skips.txt): a (x.rs:1), b (x.rs:1)\n"), "{text}");
        assert!(text.contains("skipped: no sun: b (y.rs:2)\n") && is_good, "{text}");
        assert!(!summary(&ends, &skips, &["no moon"], true).1);
        let (text, is_good) = summary(&ends, &skips, &["no moon", "no sun", "no VM", "no star"], true);
        assert!(
            is_good && text.contains("because no star; delete the line") && !text.contains("because no sun"),
            "{text}"
        );
    }
}
