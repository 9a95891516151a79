//! Sweeps: named axes, each a list of values for keys of the plan or a list of variants laid over it. Their product is
//! the list of [`Point`]s, each a complete plan of its own.
//!
//! ```toml
//! [sweep.load]
//! sets = ["workload.web-search.background.load_percent"]
//! values = [10, 30, 50, 70, 90]
//! unit = "%"
//!
//! [[sweep.fabric.variant]]
//! id = "oq"
//! fabric = { generator = "output-queued", servers = 100 }
//! ```
//!
//! An axis called `engine` needs no `sets`: its values are engines of the plan, and each gets its `[engine.NAME]`.

use std::collections::BTreeMap;

use serde::Deserialize;
use toml::Spanned;
use toml::de::{DeTable, DeValue};
use weft_scenario::topology::{Fabric, FabricError};
use weft_scenario::workload::Workload;

use super::error::Misplaced;
use super::shape::unknown;
use super::{PlanSpec, fabric_text, merge, settings};
use crate::query::{Value, is_column};

/// The axis whose values are engines.
pub const ENGINE_AXIS: &str = "engine";
/// More points than this are a mistake.
const POINTS_MAX: usize = 2000;
/// What a variant may change: the scenario, and when it is sampled and cut.
const VARIANT_KEYS: [&str; 10] = [
    "fabric",
    "switching",
    "transport",
    "workload",
    "workloads",
    "overlays",
    "directory",
    "fault",
    "sampling",
    "shaped",
];

/// One dimension of a sweep.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Axis {
    /// Its name, which is also a column of every row.
    pub name: String,
    /// Its places, in the order of the plan.
    pub labels: Vec<String>,
    /// Unit of the labels, empty where they have none.
    pub unit: String,
}

/// One place on every axis, and the plan as it runs there.
#[derive(Clone, Debug)]
pub struct Point {
    /// Labels in the order of the axes.
    pub labels: Vec<String>,
    /// The plan there; it has no points of its own.
    pub spec: PlanSpec,
    /// Everything that the plan says there but its questions and claims, by its path: `workload.all.bytes_per_flow`. Quantities
    /// are in bytes, bits per second and nanoseconds.
    pub settings: Vec<(String, Value)>,
}

impl Point {
    /// `fabric=oq load=10`; empty in a plan without a sweep.
    pub fn name(&self, axes: &[Axis]) -> String {
        let pairs = axes.iter().zip(&self.labels).map(|(axis, label)| format!("{}={label}", axis.name));
        pairs.collect::<Vec<_>>().join(" ")
    }

    /// The engine that this point is for, where engines are an axis.
    pub fn engine(&self, axes: &[Axis]) -> Option<&str> {
        let place = axes.iter().position(|axis| axis.name == ENGINE_AXIS)?;
        self.labels.get(place).map(String::as_str)
    }
}

impl PlanSpec {
    /// The network of every point, in their order; what several points name alike is built once. The error says at
    /// which point.
    pub fn build_fabrics(&self) -> Result<Vec<Fabric>, String> {
        self.try_fabrics().map_err(|(_, message)| message)
    }

    /// Builds the network of every point; an error has the number of the point, from 0.
    pub(super) fn try_fabrics(&self) -> Result<Vec<Fabric>, (usize, String)> {
        let mut fabrics: Vec<Fabric> = Vec::new();
        for (number, point) in self.points.iter().enumerate() {
            let network = |point: &Point| (point.spec.fabric.clone(), directory_servers(&point.spec));
            let same = self.points.iter().zip(&fabrics).find(|(other, _)| network(other) == network(point));
            let fabric = match (same, &point.spec.fabric) {
                (Some((_, known)), _) => known.clone(),
                (None, Some(fabric)) => {
                    let servers = directory_servers(&point.spec);
                    let text = |name: &str| fabric_text(name, self.folder.as_deref());
                    let built = fabric.build(&text).and_then(|fabric| Ok(fabric.with_directory_servers(servers)?));
                    let told = |error: FabricError| match self.axes.is_empty() {
                        true => error.to_string(),
                        false => format!("at {}: {error}", point.name(&self.axes)),
                    };
                    built.map_err(|error| (number, told(error)))?
                }
                (None, None) => return Err((number, "the plan names no scenario; add a `[fabric]` table".to_owned())),
            };
            fabrics.push(fabric);
        }
        Ok(fabrics)
    }
}

/// How many directory servers a network needs: one beside each node of the store, and those that loads ask.
fn directory_servers(spec: &PlanSpec) -> usize {
    let asked = spec.workload.values().map(|workload| match workload {
        Workload::Directory(load) => load.servers as usize,
        _ => 0,
    });
    asked.max().unwrap_or(0).max(spec.directory.servers())
}

/// What one place on an axis does to the plan.
#[derive(Clone, Debug)]
enum Change<'a> {
    Set(Vec<Spanned<String>>, Spanned<DeValue<'a>>),
    LayOver(DeTable<'a>),
    Engine,
}

/// An axis as the plan writes it.
struct Parsed<'a> {
    axis: Axis,
    changes: Vec<Change<'a>>,
}

/// Keys of an axis.
pub(super) const AXIS_KEYS: [&str; 5] = ["sets", "values", "variant", "only", "unit"];

#[derive(Deserialize)]
struct RawAxis {
    #[serde(default)]
    sets: Vec<Spanned<String>>,
    only: Option<Vec<Spanned<String>>>,
    #[serde(default)]
    unit: String,
}

/// The document of a point of the sweep, not read yet.
#[derive(Clone, Debug)]
pub(super) struct PointDocument<'a> {
    /// Labels in the order of the axes.
    labels: Vec<String>,
    pub(super) document: Spanned<DeTable<'a>>,
}

impl<'a> PointDocument<'a> {
    /// The point with another document.
    pub(super) fn with(&self, document: Spanned<DeTable<'a>>) -> Self {
        Self { labels: self.labels.clone(), document }
    }

    /// The point, as far as the document is a plan.
    pub(super) fn read(&self) -> Result<Point, Misplaced> {
        let settings = settings::of(self.document.get_ref());
        let reader = toml::de::Deserializer::from(self.document.clone());
        let mut spec: PlanSpec = Deserialize::deserialize(reader)?;
        if let Some(chosen) = &spec.workloads {
            if let Some(missing) = chosen.iter().find(|name| !spec.workload.contains_key(*name)) {
                let message = format!("`workloads` names `{missing}`, which is not there");
                let list = self.document.get_ref().get("workloads").map(Spanned::span);
                return Err(list.map_or_else(|| Misplaced::nowhere(&*message), |list| Misplaced::at(list, &*message)));
            }
            spec.workload.retain(|name, _| chosen.contains(name));
        }
        Ok(Point { labels: self.labels.clone(), spec, settings })
    }
}

/// The axes of the document's `[sweep]` and all points, the last axis running fastest. `engines` are the tables that an
/// axis of engines lays over the plan.
pub(super) fn expand<'a>(
    document: &mut Spanned<DeTable<'a>>,
    engines: &BTreeMap<String, DeTable<'a>>,
) -> Result<(Vec<Axis>, Vec<PointDocument<'a>>), Misplaced> {
    let mut parsed = Vec::new();
    for (name, table) in merge::take_table(document, "sweep")?.unwrap_or_default() {
        parsed.push(parse_axis(name.into_inner().into_owned(), table)?);
    }
    let count = parsed.iter().try_fold(1usize, |count, axis| count.checked_mul(axis.changes.len()));
    if count.is_none_or(|count| count > POINTS_MAX) {
        return Err(Misplaced::nowhere(format!("the sweep has more than {POINTS_MAX} points; leave some out")));
    }
    let axes: Vec<Axis> = parsed.iter().map(|one| one.axis.clone()).collect();
    let points = (0..count.unwrap_or(0)).map(|number| point(document, &parsed, places(&axes, number), engines));
    Ok((axes.clone(), points.collect::<Result<_, _>>()?))
}

/// The place on every axis of the point with this number.
fn places(axes: &[Axis], mut number: usize) -> Vec<usize> {
    let mut places = Vec::new();
    for axis in axes.iter().rev() {
        places.push(number % axis.labels.len());
        number /= axis.labels.len();
    }
    places.reverse();
    places
}

fn point<'a>(
    document: &Spanned<DeTable<'a>>,
    parsed: &[Parsed<'a>],
    places: Vec<usize>,
    engines: &BTreeMap<String, DeTable<'a>>,
) -> Result<PointDocument<'a>, Misplaced> {
    let mut document = document.clone();
    let chosen = || parsed.iter().zip(&places);
    let labels: Vec<String> = chosen().map(|(one, place)| one.axis.labels[*place].clone()).collect();
    for ((one, place), label) in chosen().zip(&labels) {
        if let (Change::Engine, Some(table)) = (&one.changes[*place], engines.get(label)) {
            merge::merge(document.get_mut(), table.clone());
        }
    }
    for (one, place) in chosen() {
        match &one.changes[*place] {
            Change::Engine => {}
            Change::LayOver(table) => merge::merge(document.get_mut(), table.clone()),
            Change::Set(paths, value) => {
                for path in paths {
                    set(document.get_mut(), path, value)?;
                }
            }
        }
    }
    Ok(PointDocument { labels, document })
}

fn parse_axis(name: String, value: Spanned<DeValue<'_>>) -> Result<Parsed<'_>, Misplaced> {
    let span = value.span();
    let wrong = |message: String| Misplaced::at(span.clone(), format!("axis `{name}`: {message}"));
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    if !name.bytes().all(plain) || is_column(&name) {
        return Err(wrong(
            "the name has other characters than letters, digits, `-` and `_`, or records have a column of it".into(),
        ));
    }
    let DeValue::Table(mut table) = value.into_inner() else { return Err(wrong("it must be a table".into())) };
    if let Some(key) = table.keys().find(|key| !AXIS_KEYS.contains(&key.get_ref().as_ref())) {
        return Err(Misplaced::at(key.span(), unknown("field", key.get_ref(), &AXIS_KEYS)));
    }
    let (values, variants) = (table.remove("values"), table.remove("variant"));
    let raw: RawAxis = Deserialize::deserialize(toml::de::Deserializer::from(Spanned::new(span.clone(), table)))?;
    let mut places = match (values, variants) {
        (Some(values), None) if name == ENGINE_AXIS || !raw.sets.is_empty() => parse_values(&name, &raw, values)?,
        (None, Some(variants)) if raw.sets.is_empty() => parse_variants(variants)?,
        _ => return Err(wrong("give `sets` and `values`, or a list of `variant`".into())),
    };
    if let Some(only) = &raw.only {
        if let Some(missing) = only.iter().find(|label| !places.iter().any(|(known, _)| known == label.get_ref())) {
            let message = format!("axis `{name}`: `only` names `{}`, which is not there", missing.get_ref());
            return Err(Misplaced::at(missing.span(), message));
        }
        places.retain(|(label, _)| only.iter().any(|one| one.get_ref() == label));
    }
    if places.is_empty() {
        return Err(wrong("it has no values".into()));
    }
    if let Some((label, _)) =
        places.iter().enumerate().find(|(i, one)| places[..*i].iter().any(|other| other.0 == one.0)).map(|(_, one)| one)
    {
        return Err(wrong(format!("`{label}` is there twice")));
    }
    let (labels, changes) = places.into_iter().unzip();
    Ok(Parsed { axis: Axis { name, labels, unit: raw.unit }, changes })
}

type Places<'a> = Vec<(String, Change<'a>)>;

fn parse_values<'a>(name: &str, raw: &RawAxis, values: Spanned<DeValue<'a>>) -> Result<Places<'a>, Misplaced> {
    let span = values.span();
    let DeValue::Array(values) = values.into_inner() else {
        return Err(Misplaced::at(span, "`values` must be a list"));
    };
    let one = |value: Spanned<DeValue<'a>>| {
        let label = label_of(value.get_ref())
            .ok_or_else(|| {
            let message = format!(
                "a value of an axis is a number or a text; for anything else give variants, each with an `id` and the tables \
                 that it changes: `[[sweep.{name}.variant]]`"
            );
            Misplaced::at(value.span(), message)
        })?;
        let change = if name == ENGINE_AXIS { Change::Engine } else { Change::Set(raw.sets.clone(), value) };
        Ok((label, change))
    };
    values.into_iter().map(one).collect()
}

/// A number or a text as it stands in names of metrics and in cells: without spaces.
fn label_of(value: &DeValue<'_>) -> Option<String> {
    let text = match value {
        DeValue::String(text) => text.to_string(),
        DeValue::Integer(number) => number.to_string(),
        DeValue::Float(number) => number.to_string(),
        _ => return None,
    };
    Some(text.replace(' ', ""))
}

fn parse_variants(variants: Spanned<DeValue<'_>>) -> Result<Places<'_>, Misplaced> {
    let span = variants.span();
    let DeValue::Array(variants) = variants.into_inner() else {
        return Err(Misplaced::at(span, "`variant` must be a list of tables: `[[sweep.NAME.variant]]`"));
    };
    variants.into_iter().map(parse_variant).collect()
}

fn parse_variant(variant: Spanned<DeValue<'_>>) -> Result<(String, Change<'_>), Misplaced> {
    let span = variant.span();
    let DeValue::Table(mut table) = variant.into_inner() else {
        return Err(Misplaced::at(span, "a variant must be a table"));
    };
    let id = table.remove("id").and_then(|id| Some(id.get_ref().as_str()?.to_owned()));
    let usable = |id: &String| !id.is_empty() && id.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b));
    let Some(id) = id.filter(usable) else {
        return Err(Misplaced::at(span, "a variant needs an `id` of letters, digits, `-`, `_` and `.`"));
    };
    if let Some(key) = table.keys().find(|key| !VARIANT_KEYS.contains(&key.get_ref().as_ref())) {
        let known = VARIANT_KEYS.join(", ");
        return Err(Misplaced::at(key.span(), format!("a variant cannot change `{}`; it can: {known}", key.get_ref())));
    }
    Ok((id, Change::LayOver(table)))
}

/// Replaces the value at a dotted path, which must be there: a path that leads nowhere is a typing mistake.
fn set<'a>(table: &mut DeTable<'a>, named: &Spanned<String>, value: &Spanned<DeValue<'a>>) -> Result<(), Misplaced> {
    let path = named.get_ref();
    let missing = || Misplaced::at(named.span(), format!("`sets` names `{path}`, which the plan does not have"));
    let (parents, last) = path.rsplit_once('.').unwrap_or(("", path));
    let mut table = table;
    for key in parents.split('.').filter(|key| !key.is_empty()) {
        match table.get_mut(key).map(Spanned::get_mut) {
            Some(DeValue::Table(next)) => table = next,
            _ => return Err(missing()),
        }
    }
    *table.get_mut(last).ok_or_else(missing)? = value.clone();
    Ok(())
}

#[cfg(test)]
mod tests;
