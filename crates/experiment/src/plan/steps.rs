//! Steps: smaller rates of a plan for machines that have no time for its own, each with floors that hold there.
//!
//! ```toml
//! [[steps]]
//! id = "10mbit"
//! [steps.fabric]
//! server_rate = "10 Mbit/s"
//! [[steps.claims]]
//! id = "goodput_efficiency"
//! want = 0.9
//! ```
//!
//! They are for the lab, whose network runs in the time of the machine; in virtual time every rate fits. The plan itself is the
//! first rate, and steps stand from the highest to the lowest. Each is laid over what `[engine.lab]` makes of the plan. A mode has
//! steps of its own (`[[quick.steps]]`).

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::error::Misplaced;

/// The engine that steps are for.
pub(crate) const LAB: &str = "lab";
/// So many at most, beside the plan itself: each that does not fit costs time before anything is measured.
const STEPS_MOST: usize = 2;
/// What makes another plan of it.
const FIXED: [&str; 6] = ["engines", "analysis", "engine", "sweep", "quick", "full"];

/// A step as the plan writes it.
pub(super) type Step<'a> = (String, DeTable<'a>);

/// Takes `[[steps]]` out of a table: the name of each, and what is laid over the plan.
pub(super) fn take<'a>(table: &mut DeTable<'a>) -> Result<Vec<Step<'a>>, Misplaced> {
    let Some(value) = table.remove("steps") else { return Ok(Vec::new()) };
    let span = value.span();
    let DeValue::Array(list) = value.into_inner() else {
        return Err(Misplaced::at(span, "`steps` must be a list of tables, each with an `id`: `[[steps]]`".to_owned()));
    };
    if list.len() > STEPS_MOST {
        let message =
            format!("{} steps are too many; a plan has {STEPS_MOST} at most beside its own rates", list.len());
        return Err(Misplaced::at(span, message));
    }
    let mut steps: Vec<Step<'a>> = Vec::new();
    for entry in list {
        let (id, change) = step(entry)?;
        if steps.iter().any(|(other, _)| *other == id) {
            return Err(Misplaced::at(span, format!("two steps are called `{id}`")));
        }
        steps.push((id, change));
    }
    Ok(steps)
}

fn step(entry: Spanned<DeValue<'_>>) -> Result<Step<'_>, Misplaced> {
    let span = entry.span();
    let wrong = |message: String| Misplaced::at(span.clone(), message);
    let DeValue::Table(mut change) = entry.into_inner() else {
        return Err(wrong("a step is a table: `[[steps]]`".to_owned()));
    };
    let id = change.remove("id").and_then(|id| Some(id.get_ref().as_str()?.to_owned()));
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let Some(id) = id.filter(|id| !id.is_empty() && id.bytes().all(plain)) else {
        return Err(wrong(
            "a step needs an `id` of lower-case letters, digits and `-`, for instance `10mbit`".to_owned(),
        ));
    };
    if id == AUTO {
        return Err(wrong(format!("a step cannot be called `{AUTO}`: `--step {AUTO}` looks for the one that fits")));
    }
    if let Some(key) = FIXED.into_iter().find(|key| change.contains_key(*key)) {
        return Err(wrong(format!("step `{id}` cannot change `{key}`")));
    }
    match change.is_empty() {
        true => Err(wrong(format!("step `{id}` changes nothing, so it takes what the plan takes"))),
        false => Ok((id, change)),
    }
}

/// What `--step` is given to have the step looked for.
pub const AUTO: &str = "auto";
