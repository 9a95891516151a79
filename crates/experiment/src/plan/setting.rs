//! Settings of the command line that are laid over a file: `--set transport.rto_min=10ms`.

use std::collections::BTreeSet;
use std::ops::Range;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::error::Misplaced;
use super::meant::did_you_mean;
use super::place::{of_list, place_in};
use super::shape::{Shape, takes_text};
use super::sweep::AXIS_KEYS;

/// A value for a key of a plan or a scenario, as it is written: `KEY=VALUE`. The key is dotted, members of lists stand in it by their
/// `id` or their number from 0; the value is TOML, or a text without quotes.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(try_from = "String", into = "String")]
pub struct Setting {
    text: String,
    path: Vec<String>,
    value: String,
}

impl FromStr for Setting {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let signs = text.match_indices('=').map(|(place, _)| place);
        let mut keys = signs.filter_map(|place| Some((place, path_of(&text[..place])?)));
        let (place, path) = keys.next().ok_or_else(|| {
            format!("`{text}` is no setting; write KEY=VALUE, for example transport.rto_min=\"10 ms\"")
        })?;
        Ok(Self { text: text.to_owned(), path, value: text[place + 1..].trim().to_owned() })
    }
}

impl TryFrom<String> for Setting {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<Setting> for String {
    fn from(setting: Setting) -> Self {
        setting.text
    }
}

impl std::fmt::Display for Setting {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.text)
    }
}

/// A dotted key of TOML as its parts; `None` if it is none.
fn path_of(key: &str) -> Option<Vec<String>> {
    let text = format!("{key} = 0");
    let document = DeTable::parse(&text).ok()?;
    let mut path = Vec::new();
    let mut table = document.get_ref();
    loop {
        let (key, value) = table.iter().next().filter(|_| table.len() == 1)?;
        path.push(key.get_ref().to_string());
        match value.get_ref() {
            DeValue::Table(inner) => table = inner,
            _ => return Some(path),
        }
    }
}

impl Setting {
    /// The dotted key.
    pub fn key(&self) -> String {
        self.path.join(".")
    }

    /// The value as it was written.
    pub fn value(&self) -> &str {
        &self.value
    }

    pub(super) fn path(&self) -> &[String] {
        &self.path
    }

    /// The value as TOML: as it is written if that is TOML, else as a text, or as a list of texts where it stands in brackets. Where the
    /// key wants a text, a number is one.
    pub(super) fn toml(&self, shape: &Shape, document: &DeTable<'_>) -> String {
        let path: Vec<&str> = self.path.iter().map(String::as_str).collect();
        let wants_text = shape.at(document, &path).is_some_and(takes_text);
        let written = DeValue::parse(&self.value).ok();
        match written.as_ref().map(Spanned::get_ref) {
            Some(DeValue::Integer(_) | DeValue::Float(_) | DeValue::Datetime(_)) if wants_text => quoted(&self.value),
            Some(_) => self.value.clone(),
            None => match self.value.strip_prefix('[').and_then(|inner| inner.strip_suffix(']')) {
                Some(inner) => {
                    let members = inner.split(',').map(str::trim).filter(|member| !member.is_empty());
                    let member = |text: &str| if DeValue::parse(text).is_ok() { text.to_owned() } else { quoted(text) };
                    format!("[{}]", members.map(member).collect::<Vec<_>>().join(", "))
                }
                None => quoted(&self.value),
            },
        }
    }

    /// Lays a value over a document at the key. What the key leads through must be there, or be a table that the file may have.
    pub(super) fn apply<'a>(
        &self,
        document: &mut DeTable<'a>,
        value: Spanned<DeValue<'a>>,
        shape: &Shape,
    ) -> Result<(), Misplaced> {
        let span = value.span();
        let wrong = |depth: usize, message: String| Misplaced::at(span.clone(), message).with_key(&self.path[..=depth]);
        for depth in 0..self.path.len() {
            self.known(document, depth, shape).map_err(|message| wrong(depth, message))?;
        }
        put_at(document, &self.path, value);
        Ok(())
    }

    /// Whether the key's part at this depth may stand there; says what may.
    fn known(&self, document: &DeTable<'_>, depth: usize, shape: &Shape) -> Result<(), String> {
        let path: Vec<&str> = self.path[..depth].iter().map(String::as_str).collect();
        let (key, is_last) = (self.path[depth].as_str(), depth + 1 == self.path.len());
        let schema = shape.at(document, &path);
        let unknown = |known: &[&str], what: &str| {
            let known: BTreeSet<&str> = known.iter().copied().collect();
            let known: Vec<&str> = known.into_iter().collect();
            let advice = did_you_mean(key, &known).unwrap_or_else(|| match known.as_slice() {
                [] => "it has none".to_owned(),
                _ => format!("it has: {}", known.join(", ")),
            });
            Err(format!("unknown {what} `{key}`; {advice}"))
        };
        match value_at(document, &path) {
            Some(At::Table(table)) if table.contains_key(key) => Ok(()),
            Some(At::Table(table)) => {
                let there: Vec<&str> = table.keys().map(|key| key.get_ref().as_ref()).collect();
                if path.is_empty() && ["quick", "full", "engine"].contains(&key) {
                    return Err(format!("`{key}` is laid over the plan before settings are; name the key itself"));
                }
                if path.first() == Some(&"sweep") {
                    let is_key = path.len() == 2 && AXIS_KEYS.contains(&key) && is_last;
                    return if is_key { Ok(()) } else { unknown(&there, "axis or key") };
                }
                match schema {
                    Some(schema) if shape.takes_any_key(schema) && !is_last => unknown(&there, "name"),
                    Some(_) if shape.at(document, &[path.as_slice(), &[key]].concat()).is_some() => Ok(()),
                    Some(schema) => {
                        let known = shape.keys(document, &path, schema);
                        let known: Vec<&str> = known.iter().map(String::as_str).chain(there).collect();
                        unknown(&known, "field")
                    }
                    None => unknown(&there, "field"),
                }
            }
            Some(At::List(list)) => {
                let ids: Vec<&str> =
                    list.iter().filter_map(|one| one.get_ref().get("id")?.get_ref().as_str()).collect();
                if of_list(list, key).is_some() { Ok(()) } else { unknown(&ids, "member") }
            }
            Some(At::Leaf) => Err(format!("`{}` has no keys", path.join("."))),
            // A table that the file may have and has not.
            None => match schema {
                Some(schema) if shape.at(document, &[path.as_slice(), &[key]].concat()).is_some() => {
                    if shape.takes_any_key(schema) && !is_last { unknown(&[], "name") } else { Ok(()) }
                }
                Some(schema) => {
                    let known = shape.keys(document, &path, schema);
                    unknown(&known.iter().map(String::as_str).collect::<Vec<_>>(), "field")
                }
                None => unknown(&[], "field"),
            },
        }
    }
}

/// What stands at a path.
enum At<'b, 'a> {
    Table(&'b DeTable<'a>),
    List(&'b [Spanned<DeValue<'a>>]),
    Leaf,
}

fn value_at<'b, 'a>(document: &'b DeTable<'a>, path: &[&str]) -> Option<At<'b, 'a>> {
    let Some((first, rest)) = path.split_first() else { return Some(At::Table(document)) };
    let mut here = document.get(*first)?.get_ref();
    for key in rest {
        here = match here {
            DeValue::Array(list) => of_list(list, key)?.get_ref(),
            other => other.get(*key)?.get_ref(),
        };
    }
    Some(match here {
        DeValue::Table(table) => At::Table(table),
        DeValue::Array(list) => At::List(list),
        _ => At::Leaf,
    })
}

/// Puts a value at a path, of which [`Setting::known`] has seen every part; tables that are not there are made.
fn put_at<'a>(table: &mut DeTable<'a>, path: &[String], value: Spanned<DeValue<'a>>) {
    match path {
        [] => {}
        [last] => replace(table, last, value),
        [first, rest @ ..] => {
            let span = value.span();
            if !table.contains_key(first.as_str()) {
                let empty = Spanned::new(span.clone(), DeValue::Table(DeTable::new()));
                table.insert(Spanned::new(span, first.clone().into()), empty);
            }
            if let Some(next) = table.get_mut(first.as_str()) {
                put_inside(next, rest, value);
            }
        }
    }
}

fn put_inside<'a>(here: &mut Spanned<DeValue<'a>>, path: &[String], value: Spanned<DeValue<'a>>) {
    match (here.get_mut(), path) {
        (DeValue::Table(table), _) => put_at(table, path, value),
        (DeValue::Array(list), [first, rest @ ..]) => {
            let place = place_in(list, first);
            match place.and_then(|place| list.get_mut(place)) {
                Some(member) if rest.is_empty() => *member = value,
                Some(member) => put_inside(member, rest, value),
                None => {}
            }
        }
        _ => {}
    }
}

/// Puts a value at a key, which from then on stands where the value does.
fn replace<'a>(table: &mut DeTable<'a>, key: &str, value: Spanned<DeValue<'a>>) {
    table.remove(key);
    table.insert(Spanned::new(value.span(), key.to_owned().into()), value);
}

/// The value with another place for itself and all that is in it.
pub(super) fn moved<'a>(value: Spanned<DeValue<'a>>, span: &Range<usize>) -> Spanned<DeValue<'a>> {
    let inner = match value.into_inner() {
        DeValue::Table(table) => {
            let entry =
                |(key, value): (Spanned<_>, _)| (Spanned::new(span.clone(), key.into_inner()), moved(value, span));
            DeValue::Table(table.into_iter().map(entry).collect())
        }
        DeValue::Array(mut list) => {
            for member in list.iter_mut() {
                let taken = std::mem::replace(member, Spanned::new(0..0, DeValue::Boolean(false)));
                *member = moved(taken, span);
            }
            DeValue::Array(list)
        }
        other => other,
    };
    Spanned::new(span.clone(), inner)
}

/// A text as TOML writes it.
fn quoted(text: &str) -> String {
    // Every escape of JSON is one of TOML.
    serde_json::Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::super::shape::PLAN;
    use super::super::{Mode, Plan};
    use super::*;
    use crate::analysis::testing::SWEEP_PLAN;

    fn setting(text: &str) -> Setting {
        text.parse().unwrap_or_else(|error| panic!("{error}"))
    }

    #[test]
    fn keys_are_those_of_toml() {
        for (text, path, value) in [
            ("repetitions=3", &["repetitions"][..], "3"),
            ("a.b-c.d_e = \"x = y\"", &["a", "b-c", "d_e"], "\"x = y\""),
            ("claims.\"p99.all=2MB\".want=5", &["claims", "p99.all=2MB", "want"], "5"),
            ("fault.0.at=", &["fault", "0", "at"], ""),
        ] {
            let found = setting(text);
            assert_eq!(
                (found.path().iter().map(String::as_str).collect::<Vec<_>>(), found.value()),
                (path.to_vec(), value)
            );
            assert_eq!(found.to_string(), text);
        }
        for wrong in ["repetitions", "=3", "a b=3", "a..b=1", ""] {
            assert!(wrong.parse::<Setting>().is_err_and(|error| error.contains("write KEY=VALUE")), "{wrong}");
        }
    }

    #[test]
    fn values_are_toml_or_texts_without_quotes() {
        let document = DeTable::parse(SWEEP_PLAN).unwrap();
        for (text, value) in [
            ("repetitions=3", "3"),
            ("transport.rto_min=10 ms", "\"10 ms\""),
            ("transport.rto_min=\"10 ms\"", "\"10 ms\""),
            ("transport.congestion_control=dctcp", "\"dctcp\""),
            ("title=2026", "\"2026\""),
            ("overlays=[vl2, routed]", "[\"vl2\", \"routed\"]"),
            ("sweep.load.values=[30, 70]", "[30, 70]"),
            ("sweep.size.values=[1 MB, \"2 MB\"]", "[\"1 MB\", \"2 MB\"]"),
            ("switching.load_balance={ flowlet = { gap = \"1 us\" } }", "{ flowlet = { gap = \"1 us\" } }"),
            ("shaped=false", "false"),
        ] {
            assert_eq!(setting(text).toml(&PLAN, document.get_ref()), value, "{text}");
        }
    }

    #[test]
    fn members_of_lists_stand_by_their_id_or_number_and_only_the_mode_that_runs_is_changed() {
        let read = |mode, settings: &[&str]| {
            let settings: Vec<Setting> = settings.iter().map(|text| setting(text)).collect();
            Plan::parse_with("p.toml", SWEEP_PLAN, mode, &settings).unwrap_or_else(|error| panic!("{error}"))
        };
        let plan =
            read(Mode::Quick, &["sweep.fabric.variant.10g.fabric.spines=3", "repetitions=5", "sweep.load.values.0=45"]);
        let (quick, default) = (plan.for_mode(Mode::Quick), plan.for_mode(Mode::Default));
        assert_eq!((quick.repetitions, default.repetitions), (5, 2));
        assert_eq!(
            (quick.labels_of("load"), default.labels_of("load")),
            (&["45".to_owned()][..], &["30".to_owned(), "70".to_owned()][..])
        );
        let links = |spec: &super::super::PlanSpec| {
            let place = spec.points.iter().position(|point| point.labels[0] == "10g").unwrap();
            spec.build_fabrics().unwrap()[place].links().len()
        };
        assert_eq!((links(quick), links(default)), (10, 8));
    }
}
