//! What all tests came to: reads what `cargo test` prints, passes it on, and ends with how many passed, failed and skipped, and why.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{self, BufRead, Write};
use std::path::Path;

use weft_needs::Skip;

/// Test functions by how they ended; libtest takes those that skip for passed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Ends {
    passed: u64,
    failed: u64,
}

impl Ends {
    /// Adds what a line of libtest says at the end of a binary: `test result: ok. 3 passed; 0 failed; ..`.
    fn add(&mut self, line: &str) {
        let Some(counts) = line.strip_prefix("test result: ") else { return };
        let words: Vec<&str> = counts.split([' ', ';']).collect();
        let before = |word| {
            let place = words.iter().position(|one| *one == word);
            place.and_then(|place| words[place - 1].parse::<u64>().ok()).unwrap_or(0)
        };
        self.passed += before("passed");
        self.failed += before("failed");
    }
}

/// Reads standard input to its end; `recorded` is the file that skips were appended to. Whether all is as it must be; whether tests
/// failed is for `cargo test` to say.
pub(crate) fn tally(recorded: &Path) -> bool {
    let mut ends = Ends::default();
    let mut out = io::stdout().lock();
    for line in io::stdin().lock().lines().map_while(Result::ok) {
        ends.add(&line);
        // Whoever reads may have gone; the tests go on.
        let _ = writeln!(out, "{line}");
    }
    let skips = Skip::all(&fs::read_to_string(recorded).unwrap_or_default());
    let required = std::env::var_os(weft_needs::REQUIRE_ALL).is_some_and(|value| value == "1");
    let (text, is_good) = summary(ends, &skips, &weft_needs::listed().collect::<Vec<_>>(), required);
    let _ = write!(out, "{text}");
    is_good
}

fn summary(ends: Ends, skips: &BTreeSet<Skip>, listed: &[&str], required: bool) -> (String, bool) {
    let mut reasons: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    for skip in skips {
        reasons.entry(&skip.why).or_default().insert(format!("{} ({})", skip.test, skip.place));
    }
    let tests: BTreeSet<&str> = skips.iter().map(|skip| &*skip.test).collect();
    let libtests = skips.iter().filter(|skip| skip.place.contains(".rs:")).map(|skip| &*skip.test);
    let passed = ends.passed.saturating_sub(libtests.collect::<BTreeSet<_>>().len() as u64);
    let mut text = format!("\ntests: {passed} passed, {} failed, {} skipped\n", ends.failed, tests.len());
    let mut is_good = true;
    for (why, tests) in &reasons {
        let is_listed = listed.contains(why);
        is_good &= is_listed || !required;
        let mark = if is_listed { " (in deps/skips.txt)" } else { "" };
        text += &format!("skipped: {why}{mark}: {}\n", tests.iter().cloned().collect::<Vec<_>>().join(", "));
    }
    for gone in listed.iter().filter(|why| !reasons.contains_key(*why)) {
        text += &format!("deps/skips.txt: nothing was skipped on this kernel because {gone}; delete the line\n");
    }
    if !is_good {
        text += &format!("{}=1: every test must run but those that deps/skips.txt lists\n", weft_needs::REQUIRE_ALL);
    }
    (text, is_good)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_of_several_binaries_add_up() {
        let mut ends = Ends::default();
        ends.add("running 5 tests");
        ends.add("test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 2 filtered out; finished in 0.01s");
        ends.add("test result: FAILED. 40 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 1.00s");
        assert_eq!(ends, Ends { passed: 43, failed: 2 });
    }

    #[test]
    fn skips_are_told_by_reason_and_listed_ones_are_allowed() {
        let skips = Skip::all(
            "no moon\ta\tx.rs:1\nno moon\tb\tx.rs:1\nno moon\tb\tx.rs:1\nno sun\tb\ty.rs:2\nno VM\tc\tz.sh\n",
        );
        let ends = Ends { passed: 10, failed: 0 };
        let (text, is_good) = summary(ends, &skips, &["no moon"], false);
        assert!(text.contains("tests: 8 passed, 0 failed, 3 skipped\n"), "{text}");
        assert!(text.contains("skipped: no moon (in deps/skips.txt): a (x.rs:1), b (x.rs:1)\n"), "{text}");
        assert!(text.contains("skipped: no sun: b (y.rs:2)\n") && is_good, "{text}");
        assert!(!summary(ends, &skips, &["no moon"], true).1);
        let (text, is_good) = summary(ends, &skips, &["no moon", "no sun", "no VM", "no star"], true);
        assert!(
            is_good && text.contains("because no star; delete the line") && !text.contains("because no sun"),
            "{text}"
        );
    }
}
