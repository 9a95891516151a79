//! From a plan's text to the documents that are read: one for each mode, engine, step and point of the sweep, with every value's place in the
//! text.

use std::collections::BTreeMap;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::error::{Misplaced, Problem};
use super::source::Source;
use super::sweep::{self, PointDocument};
use super::{Axis, ENGINE_AXIS, LAB, Mode, PlanSpec, Setting, merge, place, shape, steps};

/// A plan in one mode on one engine, or on all that it compares, not read yet.
pub(super) struct Layer<'a> {
    pub(super) mode: Mode,
    runs_on: Option<String>,
    /// Which step down from the plan's own rates; `None`: these.
    step: Option<String>,
    axes: Vec<Axis>,
    pub(super) points: Vec<PointDocument<'a>>,
    /// The text that the plan is read from, and what the command line sets of it here.
    source: &'a Source,
    is_set: bool,
}

impl<'a> Layer<'a> {
    /// The layer with other documents of its points.
    pub(super) fn with(&self, documents: impl Iterator<Item = Spanned<DeTable<'a>>>) -> Self {
        let points = self.points.iter().zip(documents).map(|(point, document)| point.with(document)).collect();
        Self { points, axes: self.axes.clone(), runs_on: self.runs_on.clone(), step: self.step.clone(), ..*self }
    }

    /// The problem with its place in the document of its point.
    pub(super) fn placed(&self, problem: &Problem) -> Misplaced {
        if let Some(axis) = problem.axis.as_deref().filter(|_| self.is_set) {
            let is_of_axis = |_: usize, setting: &Setting| setting.path().starts_with(&["sweep".into(), axis.into()]);
            if let Err(set) = self.source.refuse_setting(&is_of_axis, &|_| problem.message.clone()) {
                // The setting begins with its key.
                return set.with_key(&[]);
            }
        }
        place::placed(self.points[problem.point].document.get_ref(), problem)
    }

    /// The plan with all its points; what they share is read from the first.
    pub(super) fn read(&self) -> Result<PlanSpec, Misplaced> {
        let points = self.points.iter().map(PointDocument::read).collect::<Result<Vec<_>, _>>()?;
        let shared = points.first().expect("every axis has a place").spec.clone();
        let runs_on = self.runs_on.clone().unwrap_or_else(|| shared.engines.join("+"));
        let (step, folder) = (self.step.clone(), self.source.folder());
        let spec = PlanSpec { axes: self.axes.clone(), points, runs_on, step, folder, ..shared };
        spec.with_question_set().map_err(|message| {
            let place = self.points[0].document.get_ref().get_key_value("questions").map(|(key, _)| key.span());
            Misplaced { span: place, ..Misplaced::nowhere(message) }.with_key(&["questions".to_owned()])
        })
    }
}

/// All layers of a document of the source. Settings are laid over those of `mode`.
pub(super) fn of<'a>(
    source: &'a Source,
    document: &Spanned<DeTable<'a>>,
    mode: Mode,
) -> Result<Vec<Layer<'a>>, Misplaced> {
    let mut layers = Vec::new();
    for one in Mode::ALL {
        layers.extend(of_mode(source, document.clone(), one, one == mode)?);
    }
    Ok(layers)
}

/// The layers of one mode: one for every engine and, in the lab, every step, or one for all where the engines are an axis of the sweep.
fn of_mode<'a>(
    source: &'a Source,
    mut document: Spanned<DeTable<'a>>,
    mode: Mode,
    is_set: bool,
) -> Result<Vec<Layer<'a>>, Misplaced> {
    let mut changes: BTreeMap<_, _> = BTreeMap::new();
    for other in Mode::ALL.into_iter().filter_map(Mode::table) {
        changes.insert(other, merge::take_table(&mut document, other)?);
    }
    let mut steps = steps::take(document.get_mut())?;
    if let Some(name) = mode.table() {
        let mut change = changes.remove(name).flatten().unwrap_or_default();
        steps = steps::take(&mut change)?;
        merge::merge(document.get_mut(), change);
    }
    let engines = engine_tables(&mut document)?;
    let is_swept = sweeps_engines(&document);
    if let Some((id, _)) = steps.first().filter(|_| is_swept || !engines.contains_key(LAB)) {
        let message = format!("step `{id}` is for the lab, and this plan does not run in the lab alone");
        return Err(Misplaced::nowhere(message));
    }
    let set = |mut document: Spanned<DeTable<'a>>| {
        if is_set {
            source.lay_over(document.get_mut(), &shape::PLAN)?;
        }
        Ok::<_, Misplaced>(document)
    };
    let lay =
        |document, engines: &BTreeMap<_, _>, runs_on| swept(source, set(document)?, engines, mode, runs_on, is_set);
    if is_swept {
        return Ok(vec![lay(document, &engines, None)?]);
    }
    let mut layers = Vec::new();
    for (name, change) in &engines {
        let mut document = document.clone();
        merge::merge(document.get_mut(), change.clone());
        layers.push(lay(document.clone(), &BTreeMap::new(), Some(name.clone()))?);
        for (step, change) in steps.iter().filter(|_| name == LAB) {
            let mut document = document.clone();
            merge::merge(document.get_mut(), change.clone());
            let layer = lay(document, &BTreeMap::new(), Some(name.clone()))?;
            layers.push(Layer { step: Some(step.clone()), ..layer });
        }
    }
    Ok(layers)
}

fn swept<'a>(
    source: &'a Source,
    mut document: Spanned<DeTable<'a>>,
    engines: &BTreeMap<String, DeTable<'a>>,
    mode: Mode,
    runs_on: Option<String>,
    is_set: bool,
) -> Result<Layer<'a>, Misplaced> {
    let (axes, points) = sweep::expand(&mut document, engines)?;
    let changed = axes.iter().map(|axis| format!("`sweep.{}`", axis.name)).collect::<Vec<_>>().join(" or ");
    for point in points.iter().filter(|_| is_set) {
        let why = |setting: &Setting| match changed.is_empty() {
            true => format!("`{}` has no effect: `workloads` leaves it out", setting.key()),
            false => format!(
                "`{}` has no effect at some or all points, for the plan itself says it there; set it in {changed}",
                setting.key()
            ),
        };
        source.refuse_hidden(point.document.get_ref(), &why)?;
    }
    Ok(Layer { mode, runs_on, step: None, axes, points, source, is_set })
}

/// Takes `[engine.NAME]` of every engine of the plan; an engine without a table has an empty one.
fn engine_tables<'a>(document: &mut Spanned<DeTable<'a>>) -> Result<BTreeMap<String, DeTable<'a>>, Misplaced> {
    let listed = document.get_ref().get("engines").and_then(|list| list.get_ref().as_array());
    let names = listed.into_iter().flat_map(|list| list.iter()).filter_map(|name| name.get_ref().as_str());
    let mut tables: BTreeMap<String, DeTable<'a>> = names.map(|name| (name.to_owned(), DeTable::new())).collect();
    if tables.is_empty() {
        // The list is missing or wrong: reading the plan says so, with the place.
        tables.insert(String::new(), DeTable::new());
    }
    for (name, value) in merge::take_table(document, "engine")?.unwrap_or_default() {
        let wrong = |message: &str| Misplaced::at(name.span(), format!("`engine.{}` {message}", name.get_ref()));
        let Some(slot) = tables.get_mut(name.get_ref().as_ref()) else {
            return Err(wrong("is no engine of this plan; `engines` lists them"));
        };
        let DeValue::Table(table) = value.into_inner() else { return Err(wrong("must be a table")) };
        if ["id", "engines", "analysis"].into_iter().any(|key| table.contains_key(key)) {
            return Err(wrong("cannot change `id`, `engines` or `analysis`"));
        }
        *slot = table;
    }
    Ok(tables)
}

fn sweeps_engines(document: &Spanned<DeTable<'_>>) -> bool {
    let sweep = document.get_ref().get("sweep").and_then(|sweep| sweep.get_ref().as_table());
    sweep.is_some_and(|sweep| sweep.contains_key(ENGINE_AXIS))
}
