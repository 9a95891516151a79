//! `weft list`: every plan, what it reproduces, how long it takes and what it claims.

use std::path::Path;
use std::process::ExitCode;

use serde::Serialize;
use weft_experiment::plan::{self, Claim, Mode, Plan};
use weft_experiment::table::quantity;

use crate::args::ListArgs;
use crate::exit::Failure;
use crate::output::{self, Rows};

#[derive(Serialize)]
struct PlanList<'a> {
    schema_version: u32,
    plans: Vec<PlanLine<'a>>,
}

#[derive(Serialize)]
struct PlanLine<'a> {
    plan: &'a str,
    paper: &'a str,
    figure: &'a str,
    title: &'a str,
    engines: &'a [String],
    expected_s: u32,
    expected_quick_s: u32,
    claims: &'a [Claim],
}

impl<'a> PlanLine<'a> {
    fn of(plan: &'a Plan) -> Self {
        let spec = plan.for_mode(Mode::Default);
        Self {
            plan: plan.id(),
            paper: &spec.paper,
            figure: &spec.figure,
            title: &spec.title,
            engines: &spec.engines,
            expected_s: spec.expected_s,
            expected_quick_s: plan.for_mode(Mode::Quick).expected_s,
            claims: &spec.claims,
        }
    }

    /// Whether the word is in its name, paper or figure, in whatever case.
    fn has(&self, word: &str) -> bool {
        let word = word.to_lowercase();
        [self.plan, self.paper, self.figure].iter().any(|text| text.to_lowercase().contains(&word))
    }
}

pub(crate) fn list(args: &ListArgs) -> Result<ExitCode, Failure> {
    let file = args.word.as_deref().filter(|word| is_file(word));
    let plans = match file {
        Some(file) => vec![plan::load(file).map_err(Failure::usage)?],
        None => plan::list().map_err(Failure::failed)?,
    };
    let word = args.word.as_deref().filter(|_| file.is_none());
    let wanted = |line: &PlanLine<'_>| word.is_none_or(|word| line.has(word));
    let lines: Vec<PlanLine<'_>> = plans.iter().map(PlanLine::of).filter(wanted).collect();
    if let (true, Some(word)) = (lines.is_empty(), word) {
        return Err(Failure::usage(format!(
            "no plan has `{word}` in its name, paper or figure; `weft list` shows all"
        )));
    }
    let rows = if args.claims { claims(&lines) } else { summary(&lines) };
    output::print(args.output.output, &rows, &PlanList { schema_version: 1, plans: lines })?;
    Ok(ExitCode::SUCCESS)
}

/// Whether a word is the path of a plan's file, and no part of a name.
fn is_file(word: &str) -> bool {
    let path = Path::new(word);
    path.extension().is_some_and(|extension| extension == "toml") || path.is_file()
}

/// A row for each plan.
fn summary(lines: &[PlanLine<'_>]) -> Rows {
    let mut rows = Rows::new(&["plan", "reproduces", "engines", "quick s", "s"]);
    for line in lines {
        rows.push(vec![
            line.plan.to_owned(),
            if line.paper == "none" { "-".to_owned() } else { format!("{}: {}", line.paper, line.figure) },
            line.engines.join(", "),
            seconds(line.expected_quick_s),
            seconds(line.expected_s),
        ]);
    }
    rows
}

/// A dash where nobody has said it.
fn seconds(expected: u32) -> String {
    if expected == 0 { "-".to_owned() } else { expected.to_string() }
}

/// A row for each claim that is judged.
fn claims(lines: &[PlanLine<'_>]) -> Rows {
    let mut rows = Rows::new(&["plan", "claim", "want", "paper", "paper wants", "seen to fail", "relative to"]);
    let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    for line in lines {
        for claim in line.claims.iter().filter(|claim| claim.is_judged()) {
            let want = claim.want.map(|want| format!("{} {}", claim.relation.symbol(), quantity(want, &claim.unit)));
            rows.push(vec![
                line.plan.to_owned(),
                format!("{}{}", claim.id, if claim.required { " *" } else { "" }),
                or_dash(want),
                or_dash(claim.paper.map(|paper| quantity(paper, &claim.unit))),
                or_dash(claim.paper_wants.map(|band| band.to_string())),
                or_dash(claim.fails_when.clone()),
                claim.baseline.clone(),
            ]);
        }
    }
    rows
}
