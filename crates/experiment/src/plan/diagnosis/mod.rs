//! Everything that is wrong with a plan or a scenario, at once. Reading stops at the first mistake; this goes on behind it: it notes the
//! mistake, mends the document as its message advises, and looks further.

use std::collections::BTreeSet;
use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::effect::Effects;
use super::error::{Misplaced, Problem};
use super::shape::{Flaw, Mend, Shape};
use super::source::Source;
use super::{Mode, layers, place, settings, shape, validate};

/// More mistakes than this are told another time.
const MOST: usize = 50;
/// Of one table that its own reader refuses key by key.
const TRIES: usize = 16;

/// Tables of tables, which do not depend on each other.
const WITH_NAMES: [&str; 3] = ["workload", "claims", "metrics"];

/// Place, key and message of a mistake.
type Told = (Option<(usize, usize)>, Vec<String>, String);

/// What was found so far.
#[derive(Default)]
pub(super) struct Found {
    all: Vec<Misplaced>,
    /// What is told: layers share most of the text.
    told: BTreeSet<Told>,
}

impl Found {
    fn add(&mut self, wrong: Misplaced) {
        // A mistake is the same at every point.
        let text = without_point(&wrong.message);
        let place = wrong.span.as_ref().map(|span| (span.start, span.end));
        let is_nearer = place.is_some() && !wrong.key.is_empty();
        let what = if is_nearer { shown_key(text) } else { text.to_owned() };
        if self.all.len() < MOST && self.told.insert((place, wrong.key.clone(), what)) {
            self.all.push(wrong);
        }
    }

    pub(super) fn extend(&mut self, all: impl IntoIterator<Item = Misplaced>) {
        all.into_iter().for_each(|wrong| self.add(wrong));
    }

    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    pub(super) fn into_all(self) -> Vec<Misplaced> {
        self.all
    }
}

/// A message without its numbers, which differ from layer to layer.
fn shown_key(message: &str) -> String {
    message.chars().filter(|letter| !letter.is_ascii_digit()).collect()
}

/// A document that was mended, and what of it can be judged.
pub(super) struct Mended<'a> {
    pub(super) document: Spanned<DeTable<'a>>,
    /// Paths whose values nobody meant.
    made_up: Vec<Vec<String>>,
    /// `false`: something that was meant had to be taken out.
    is_whole: bool,
}

impl Mended<'_> {
    /// Whether a network can be made of the document as it was meant.
    pub(super) fn has_fabric(&self) -> bool {
        !self.made_up.iter().any(|path| path.first().is_some_and(|first| first == "fabric"))
    }

    /// Whether a problem may be one of a value that was made up.
    pub(super) fn doubts(&self, problem: &Misplaced) -> bool {
        let depth = |path: &[String]| {
            if path.first().is_some_and(|first| WITH_NAMES.contains(&first.as_str())) { 2 } else { 1 }
        };
        let table = |path: &[String]| path.iter().take(depth(path)).cloned().collect::<Vec<_>>();
        self.made_up.iter().any(|path| table(path) == table(&problem.key))
    }
}

/// Finds all mistakes of a document's shape, and mends them until `read` takes it; `None`: it cannot be mended.
pub(super) fn mend<'a>(
    mut document: Spanned<DeTable<'a>>,
    shape: &Shape,
    read: &dyn Fn(Spanned<DeTable<'a>>) -> Result<(), Misplaced>,
    found: &mut Found,
) -> Option<Mended<'a>> {
    let flaws = shape.flaws(document.get_ref());
    let (mut made_up, mut is_whole) = (Vec::new(), true);
    let mut is_mended = true;
    for Flaw { wrong, mend } in flaws {
        is_mended &= change(document.get_mut(), &wrong.key, &mend);
        is_whole &= matches!(mend, Mend::Rename(_) | Mend::Word(_));
        if matches!(mend, Mend::Any(_)) {
            made_up.push(wrong.key.clone());
        }
        found.add(wrong);
    }
    for _ in 0..TRIES {
        let Err(wrong) = read(document.clone()) else {
            return is_mended.then_some(Mended { document, made_up, is_whole });
        };
        if !is_mended {
            // What could not be mended is what it says.
            return None;
        }
        let wrong = place::closer(document.get_ref(), wrong);
        let goes = wrong.message.contains("has no effect") && !wrong.key.is_empty();
        let key = wrong.key.clone();
        found.add(wrong);
        if !goes || !change(document.get_mut(), &key, &Mend::Remove) {
            return None;
        }
    }
    None
}

/// Mends a document at a path; whether it could.
fn change(table: &mut DeTable<'_>, path: &[String], mend: &Mend) -> bool {
    match (path, mend) {
        ([], _) => false,
        ([first, rest @ ..], _) if !rest.is_empty() => {
            table.get_mut(first.as_str()).is_some_and(|value| change_inside(value, rest, mend))
        }
        ([last, ..], Mend::Remove) => table.remove(last.as_str()).is_some(),
        ([last, ..], Mend::Rename(new)) => match table.remove_entry(last.as_str()) {
            Some((key, value)) => table.insert(Spanned::new(key.span(), new.clone().into()), value).is_none(),
            None => false,
        },
        ([last, ..], _) => table.get_mut(last.as_str()).is_some_and(|value| put(value, mend)),
    }
}

fn change_inside(value: &mut Spanned<DeValue<'_>>, path: &[String], mend: &Mend) -> bool {
    match (value.get_mut(), path) {
        (DeValue::Table(table), _) => change(table, path, mend),
        (DeValue::Array(list), [first, rest @ ..]) => {
            let place = place::place_in(list, first);
            match place.and_then(|place| list.get_mut(place)) {
                Some(member) if rest.is_empty() => put(member, mend),
                Some(member) => change_inside(member, rest, mend),
                None => false,
            }
        }
        _ => false,
    }
}

fn put(value: &mut Spanned<DeValue<'_>>, mend: &Mend) -> bool {
    let new = match mend {
        Mend::Word(word) => DeValue::String(word.clone().into()),
        Mend::Any(text) => match DeValue::parse(text) {
            Ok(new) => new.into_inner(),
            Err(_) => return false,
        },
        _ => return false,
    };
    *value.get_mut() = new;
    true
}

/// All mistakes of a plan; also those that its networks show, if they are to be built.
pub(super) fn of_plan(source: &Source, mode: Mode, builds: bool) -> Vec<Misplaced> {
    let mut found = Found::default();
    found.extend(source.syntax());
    let Ok(mut document) = source.document() else { return found.into_all() };
    mend_names(document.get_mut(), &mut found);
    let mut is_whole = true;
    let layers = loop {
        match layers::of(source, &document, mode) {
            Ok(layers) => break layers,
            Err(wrong) => {
                let culprit = wrong.span.clone();
                found.add(wrong);
                is_whole = false;
                if culprit.is_none_or(|span| !take_out(document.get_mut(), &span)) {
                    return found.into_all();
                }
            }
        }
    };
    // Whether settings have an effect is asked of a plan that is as it was meant.
    let (mut effects, mut judged) = (Some(Effects::default()), Vec::new());
    for (number, layer) in layers.iter().enumerate() {
        let mut points = Vec::new();
        for point in &layer.points {
            let read = |document| point.with(document).read().map(drop);
            points.push(mend(point.document.clone(), &shape::PLAN, &read, &mut found));
        }
        let Some(points) = points.into_iter().collect::<Option<Vec<Mended<'_>>>>().filter(|_| is_whole) else {
            effects = None;
            continue;
        };
        effects = effects.filter(|_| points.iter().all(|point| point.is_whole));
        let mended = layer.with(points.iter().map(|point| point.document.clone()));
        match mended.read() {
            Ok(spec) => {
                let mut problems = validate::check(&spec);
                let asks = |problem: &Problem| {
                    problem.path.first().is_some_and(|table| settings::QUESTIONS.contains(&table.as_str()))
                };
                effects = effects.filter(|_| problems.iter().all(asks));
                if builds && points.iter().all(Mended::has_fabric) {
                    problems.extend(validate::check_scenarios_fit(&spec, number, &mut effects));
                }
                let placed = |problem: &Problem| {
                    let wrong = mended.placed(problem);
                    (!points[problem.point].doubts(&wrong)).then_some(wrong)
                };
                found.extend(of_all_points(problems.iter().filter_map(placed).collect(), points.len()));
                judged.push(mended);
            }
            Err(wrong) => {
                effects = None;
                found.add(wrong);
            }
        }
    }
    let idle = effects.into_iter().flat_map(Effects::idle);
    found.extend(idle.map(|(number, problem)| judged[number].placed(&problem)));
    found.into_all()
}

/// Mends keys with a slip of the pen, to which paths of the sweep may lead.
fn mend_names(document: &mut DeTable<'_>, found: &mut Found) {
    let mut plain = document.clone();
    for table in Mode::ALL.into_iter().filter_map(Mode::table).chain(["engine", "sweep", "steps"]) {
        plain.remove(table);
    }
    for Flaw { wrong, mend } in shape::PLAN.flaws(&plain) {
        if matches!(mend, Mend::Rename(_)) && change(document, &wrong.key, &mend) {
            found.add(wrong);
        }
    }
}

/// The mistakes, where those that all points have say no point.
fn of_all_points(mistakes: Vec<Misplaced>, points: usize) -> Vec<Misplaced> {
    let everywhere = |wrong: &Misplaced| {
        let same = |other: &&Misplaced| {
            other.span == wrong.span && without_point(&other.message) == without_point(&wrong.message)
        };
        mistakes.iter().filter(same).count() == points
    };
    let plain = |wrong: &Misplaced| match everywhere(wrong) {
        true => Misplaced { message: without_point(&wrong.message).to_owned(), ..wrong.clone() },
        false => wrong.clone(),
    };
    mistakes.iter().map(plain).collect()
}

/// A message without the point of the sweep that it begins with.
fn without_point(message: &str) -> &str {
    message.split_once(": ").filter(|(at, _)| at.starts_with("at ")).map_or(message, |(_, text)| text)
}

/// Takes out what a span lies in: an axis of the sweep, also of a mode's, or a table of the plan's. `false`: it lies in none, as in a
/// setting.
fn take_out(document: &mut DeTable<'_>, span: &Range<usize>) -> bool {
    let axis_in = |sweep: &mut DeTable<'_>| holder(sweep, span).and_then(|axis| sweep.remove(axis.as_str())).is_some();
    let modes = || Mode::ALL.into_iter().filter_map(Mode::table);
    if let Some(sweep) = sweep_of(document)
        && axis_in(sweep)
    {
        let left: BTreeSet<String> = sweep.keys().map(|axis| axis.get_ref().to_string()).collect();
        // What modes change of it, whatever name was meant, would be an axis without values.
        for mode in modes() {
            if let Some(sweep) = in_mode(document, mode) {
                let axes = std::mem::take(sweep).into_iter();
                *sweep = axes.filter(|(axis, _)| left.contains(axis.get_ref().as_ref())).collect();
            }
        }
        return true;
    }
    modes().any(|mode| in_mode(document, mode).is_some_and(axis_in))
        || holder(document, span).is_some_and(|key| document.remove(key.as_str()).is_some())
}

/// The axes of the sweep.
fn sweep_of<'b, 'a>(document: &'b mut DeTable<'a>) -> Option<&'b mut DeTable<'a>> {
    match document.get_mut("sweep")?.get_mut() {
        DeValue::Table(sweep) => Some(sweep),
        _ => None,
    }
}

/// What a mode changes of the axes.
fn in_mode<'b, 'a>(document: &'b mut DeTable<'a>, mode: &str) -> Option<&'b mut DeTable<'a>> {
    match document.get_mut(mode)?.get_mut() {
        DeValue::Table(table) => sweep_of(table),
        _ => None,
    }
}

/// The key whose value, or which itself, is where the span begins.
fn holder(table: &DeTable<'_>, span: &Range<usize>) -> Option<String> {
    let spans = |(key, value): (&Spanned<_>, &Spanned<DeValue<'_>>)| {
        let mut all = vec![key.span()];
        spans_of(value, &mut all);
        all
    };
    let found = table
        .iter()
        .find(|(key, value)| spans((key, value)).iter().any(|one| one.start <= span.start && span.start < one.end));
    found.map(|(key, _)| key.get_ref().to_string())
}

fn spans_of(value: &Spanned<DeValue<'_>>, all: &mut Vec<Range<usize>>) {
    all.push(value.span());
    match value.get_ref() {
        DeValue::Table(table) => table.iter().for_each(|(key, value)| {
            all.push(key.span());
            spans_of(value, all);
        }),
        DeValue::Array(list) => list.iter().for_each(|member| spans_of(member, all)),
        _ => {}
    }
}

#[cfg(test)]
mod tests;
