//! Claims as test systems read them: JUnit's XML, a suite for each run and a case for each claim that is judged.

use std::fmt::Write;

use crate::figure::escape;
use crate::summary::{ClaimResult, RunSummary};
use crate::table::claims_table;
use crate::verdict::Verdict;

/// The document. A required claim that is inconclusive is an error, another one skipped; `differs` passes, as its reason says.
pub fn document(runs: &[RunSummary]) -> String {
    let mut out = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n");
    for run in runs {
        let judged: Vec<&ClaimResult> = run.claims.iter().filter(|claim| claim.verdict != Verdict::Info).collect();
        let count = |wanted: fn(&ClaimResult) -> bool| judged.iter().filter(|claim| wanted(claim)).count();
        let (failures, errors, skipped) = (count(is_failure), count(is_error), count(is_skipped));
        let (name, tests) = (escape(&run.plan), judged.len());
        put(
            &mut out,
            format_args!(
                "  <testsuite name=\"{name}\" tests=\"{tests}\" failures=\"{failures}\" errors=\"{errors}\" skipped=\"{skipped}\">"
            ),
        );
        for (claim, row) in run.claims.iter().zip(claims_table(run)).filter(|(claim, _)| claim.verdict != Verdict::Info)
        {
            let id = escape(&claim.id);
            put(&mut out, format_args!("    <testcase classname=\"{name}\" name=\"{id}\">"));
            let why = escape(&row.why);
            match () {
                () if is_failure(claim) => put(&mut out, format_args!("      <failure message=\"{why}\"/>")),
                () if is_error(claim) => put(&mut out, format_args!("      <error message=\"{why}\"/>")),
                () if is_skipped(claim) => put(&mut out, format_args!("      <skipped message=\"{why}\"/>")),
                () => {}
            }
            let said =
                [&row.ours, &row.interval, &row.want, &row.verdict, &row.why].map(|cell| escape(cell)).join("; ");
            put(&mut out, format_args!("      <system-out>{said}</system-out>\n    </testcase>"));
        }
        out.push_str("  </testsuite>\n");
    }
    out.push_str("</testsuites>\n");
    out
}

fn is_failure(claim: &ClaimResult) -> bool {
    claim.verdict == Verdict::Fail
}

fn is_error(claim: &ClaimResult) -> bool {
    claim.verdict == Verdict::Inconclusive && claim.required
}

fn is_skipped(claim: &ClaimResult) -> bool {
    claim.verdict == Verdict::Inconclusive && !claim.required
}

fn put(out: &mut String, line: std::fmt::Arguments<'_>) {
    writeln!(out, "{line}").expect("writing to a string cannot fail");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Relation;

    fn claim(id: &str, verdict: Verdict, required: bool) -> ClaimResult {
        ClaimResult {
            ours: Some(908.7),
            unit: "us".into(),
            relation: Relation::AtMost,
            want: Some(500.0),
            required,
            verdict,
            reason: Some("908.7 us > 500 us".into()),
            ..ClaimResult::bare(id)
        }
    }

    #[test]
    fn every_verdict_has_its_element() {
        let claims = vec![
            claim("a", Verdict::Fail, true),
            claim("b", Verdict::Inconclusive, true),
            claim("c", Verdict::Inconclusive, false),
            claim("d", Verdict::Differs, false),
            claim("e", Verdict::Info, false),
        ];
        let (plan, engine, run_dir) = ("x/<one>".to_owned(), "sim".to_owned(), "r".to_owned());
        let text = document(&[RunSummary {
            schema_version: 1,
            plan,
            engine,
            seed: 1,
            claims,
            run_dir,
            ..RunSummary::default()
        }]);
        let document = roxmltree::Document::parse(&text).unwrap();
        let suite = document.descendants().find(|node| node.has_tag_name("testsuite")).unwrap();
        let counts = ["tests", "failures", "errors", "skipped"].map(|name| suite.attribute(name).unwrap());
        assert_eq!(counts, ["4", "1", "1", "1"]);
        assert_eq!(suite.attribute("name"), Some("x/<one>"));
        let failure = document.descendants().find(|node| node.has_tag_name("failure")).unwrap();
        assert_eq!(failure.attribute("message"), Some("908.7 us > 500 us"));
        assert_eq!(failure.parent_element().unwrap().attribute("name"), Some("a"));
        assert_eq!(document.descendants().filter(|node| node.has_tag_name("testcase")).count(), 4);
    }
}
