//! Holds a document against the JSON schema of the type that reads it, and finds every mistake in its shape at once: keys that are not
//! there, keys that are missing, values of the wrong kind, words that are not known.
//!
//! The types themselves decide whether a document is read; this says where it is not, for their reader stops at the first mistake and
//! forgets places inside of tables whose `kind` chooses their keys.

use std::ops::Range;
use std::sync::LazyLock;

use schemars::generate::SchemaSettings;
use serde::Deserialize;
use serde_json::Value as Json;
use toml::Spanned;
use toml::de::{DeTable, DeValue};
use weft_scenario::engine::Overlay;
use weft_scenario::units::named::Number;
use weft_scenario::units::{BitsPerSec, Bytes, Nanos, Percent, Share};
use weft_scenario::workload::SizeTable;

use super::error::Misplaced;
use super::meant::{did_you_mean, meant};
use super::{PlanSpec, scenario_schema};

/// What a document may look like.
#[derive(Debug)]
pub(super) struct Shape {
    root: Json,
}

/// The shape of a plan without the tables that are laid over it.
pub(super) static PLAN: LazyLock<Shape> = LazyLock::new(|| {
    let schema = SchemaSettings::draft2020_12().into_generator().into_root_schema_for::<PlanSpec>();
    Shape { root: schema.to_value() }
});

/// The shape of a scenario.
pub(super) static SCENARIO: LazyLock<Shape> = LazyLock::new(|| Shape { root: scenario_schema().to_value() });

/// A mistake in a document's shape, and what would mend it.
#[derive(Clone, Debug)]
pub(super) struct Flaw {
    pub(super) wrong: Misplaced,
    pub(super) mend: Mend,
}

/// What makes the document one that can be read, so that other mistakes in it can be looked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Mend {
    /// The key has another name.
    Rename(String),
    /// The key goes.
    Remove,
    /// The value becomes this one, which is what was meant.
    Word(String),
    /// The value becomes any that can be read: nothing that follows from it is told.
    Any(&'static str),
    /// Nobody knows.
    Nothing,
}

/// A place in the document while it is walked through.
struct Walk<'s> {
    shape: &'s Shape,
    path: Vec<String>,
    flaws: Vec<Flaw>,
}

impl Shape {
    /// Everything that is wrong with a document.
    pub(super) fn flaws(&self, document: &DeTable<'_>) -> Vec<Flaw> {
        let mut walk = Walk { shape: self, path: Vec::new(), flaws: Vec::new() };
        walk.table(&self.root, document, None);
        walk.flaws
    }

    /// The schema that a path leads to in a document, which says of what kind its tables are; `None` where nothing may stand.
    pub(super) fn at(&self, document: &DeTable<'_>, path: &[&str]) -> Option<&Json> {
        let mut schema = &self.root;
        let mut here: Option<&DeValue<'_>> = None;
        for (depth, key) in path.iter().enumerate() {
            let table = if depth == 0 { Some(document) } else { here.and_then(DeValue::as_table) };
            schema = self.below(self.resolved(schema).1, table, key)?;
            here = match (depth, here) {
                (0, _) => document.get(*key).map(Spanned::get_ref),
                (_, Some(DeValue::Array(list))) => super::place::of_list(list, key).map(Spanned::get_ref),
                (_, Some(value)) => value.get(*key).map(Spanned::get_ref),
                (_, None) => None,
            };
        }
        Some(self.resolved(schema).1)
    }

    fn below<'s>(&'s self, schema: &'s Json, table: Option<&DeTable<'_>>, key: &str) -> Option<&'s Json> {
        let of_object = |object: &'s Json| {
            let own = object.get("properties").and_then(|properties| properties.get(key));
            own.or_else(|| object.get("additionalProperties").filter(|other| other.is_object()))
        };
        if let Some(items) = schema.get("items") {
            return Some(items);
        }
        match schema.get("oneOf").and_then(Json::as_array) {
            Some(variants) => {
                let tagged = table.and_then(|table| self.tagged(variants, table));
                match tagged {
                    Some(variant) => of_object(variant),
                    None => variants
                        .iter()
                        .find_map(|variant| of_object(variant).filter(|found| found.get("const").is_none())),
                }
            }
            None => of_object(schema),
        }
    }

    /// Whether any key may stand in a table of this schema, as in `[workload.NAME]`.
    pub(super) fn takes_any_key(&self, schema: &Json) -> bool {
        schema.get("additionalProperties").is_some_and(Json::is_object)
    }

    /// The variant that the table says it is by the key that all variants have.
    fn tagged<'s>(&'s self, variants: &'s [Json], table: &DeTable<'_>) -> Option<&'s Json> {
        let tag = tag_of(variants)?;
        let word = table.get(tag)?.get_ref().as_str()?;
        variants.iter().find(|variant| variant["properties"][tag]["const"] == word)
    }

    /// The tables that a variant may be written as: the key of each, and the whole with the keys in it that it needs.
    fn tables_of<'s>(&'s self, variants: &'s [Json]) -> Vec<(&'s str, String)> {
        let written = |(key, inner): (&'s String, &'s Json)| {
            let needs = self.resolved(inner).1.get("required").and_then(Json::as_array);
            let needs = needs.into_iter().flatten().filter_map(Json::as_str).map(|key| format!("{key} = .."));
            let needs = needs.collect::<Vec<_>>().join(", ");
            let inside = if needs.is_empty() { "..".to_owned() } else { format!("{{ {needs} }}") };
            (key.as_str(), format!("{{ {key} = {inside} }}"))
        };
        let properties = |variant: &'s Json| variant.get("properties").and_then(Json::as_object);
        variants.iter().filter_map(properties).flatten().map(written).collect()
    }

    /// A schema without references and without `null`, and the name of its type where it has one.
    fn resolved<'s>(&'s self, mut schema: &'s Json) -> (Option<&'s str>, &'s Json) {
        let mut name = None;
        loop {
            if let Some(reference) = schema.get("$ref").and_then(Json::as_str) {
                let (_, last) = reference.rsplit_once('/').unwrap_or(("", reference));
                let Some(found) = self.root.get("$defs").and_then(|all| all.get(last)) else { return (name, schema) };
                (name, schema) = (Some(last), found);
                continue;
            }
            let is_null = |one: &&Json| one.get("type").is_some_and(|kind| kind == "null");
            let choices = schema.get("anyOf").and_then(Json::as_array);
            let real: Vec<&Json> = choices.into_iter().flatten().filter(|one| !is_null(one)).collect();
            match real.as_slice() {
                [only] => schema = only,
                _ => return (name, schema),
            }
        }
    }
}

/// The message about an unknown word where some variants are words and others tables: it shows how the tables are written.
fn no_variant(text: &str, words: &[&str], tables: &[(&str, String)]) -> (String, Mend) {
    if let Some((_, table)) = tables.iter().find(|(key, _)| *key == text) {
        return (format!("`{text}` is a table: `{table}`"), Mend::Nothing);
    }
    let keys: Vec<&str> = words.iter().copied().chain(tables.iter().map(|(key, _)| *key)).collect();
    let advice = did_you_mean(text, &keys).unwrap_or_else(|| match tables {
        [(_, only)] if words.is_empty() => format!("expected `{only}`"),
        _ => format!("expected one of {}", written(words, tables)),
    });
    let mend = match meant(text, words).as_slice() {
        [only] => Mend::Word((*only).to_owned()),
        _ => Mend::Nothing,
    };
    (format!("unknown variant `{text}`; {advice}"), mend)
}

/// The key whose value says which variant a table is.
fn tag_of(variants: &[Json]) -> Option<&str> {
    let properties = |variant: &'_ Json| variant.get("properties").and_then(Json::as_object).cloned();
    let first = variants.first()?.get("properties")?.as_object()?;
    let tag = first.iter().find(|(_, one)| one.get("const").is_some()).map(|(key, _)| key.as_str())?;
    let has = |variant: &Json| {
        properties(variant).is_some_and(|all| all.get(tag).is_some_and(|one| one.get("const").is_some()))
    };
    variants.iter().all(has).then_some(tag)
}

impl Walk<'_> {
    fn tell(&mut self, span: Option<Range<usize>>, message: String, mend: Mend) {
        let wrong = Misplaced { message, span, key: self.path.clone() };
        self.flaws.push(Flaw { wrong, mend });
    }

    fn value(&mut self, schema: &Json, value: &Spanned<DeValue<'_>>) {
        let shape = self.shape;
        let (name, schema) = shape.resolved(schema);
        let span = value.span();
        if let Some(read) = name.and_then(|name| quantity(name, None, value)) {
            return read.unwrap_or_else(|(message, mend)| self.tell(Some(span), message, mend));
        }
        if let Some(variants) = schema.get("oneOf").and_then(Json::as_array) {
            return self.one_of(variants, value);
        }
        if let Some(choices) = schema.get("anyOf").and_then(Json::as_array) {
            return self.any_of(choices, value);
        }
        if let Some(words) = schema.get("enum").and_then(Json::as_array) {
            let words: Vec<&str> = words.iter().filter_map(Json::as_str).collect();
            return self.word(&words, value);
        }
        match value.get_ref() {
            DeValue::Table(table) if is_type(schema, "object") => self.table(schema, table, Some(span)),
            DeValue::Array(list) if is_type(schema, "array") => {
                let before = self.flaws.len();
                self.list(schema, list, span.clone());
                // Where `kind` chooses the keys around it, its reader's complaint would have the place of the whole table.
                if name == Some("SizeTable") && self.flaws.len() == before {
                    let reader = toml::de::ValueDeserializer::from(value.clone());
                    if let Err(error) = SizeTable::deserialize(reader) {
                        self.tell(Some(span), error.message().trim().to_owned(), Mend::Nothing);
                    }
                }
            }
            DeValue::String(_) if is_type(schema, "string") => {}
            DeValue::Boolean(_) if is_type(schema, "boolean") => {}
            DeValue::Integer(number) if is_type(schema, "integer") => {
                let plain = number.as_str().replace('_', "");
                if let Err((least, most)) = in_range(schema, &plain) {
                    let message = format!("{plain} is out of range; it is {least} to {most}");
                    self.tell(Some(span), message, Mend::Any("1"));
                }
            }
            DeValue::Integer(_) | DeValue::Float(_) if is_type(schema, "number") => {}
            _ if schema.get("type").is_none() => {}
            other => {
                let (kind, any) = kind_of(schema);
                self.tell(Some(span), format!("{} is {}; {kind} must stand here", shown(other), article(other)), any);
            }
        }
    }

    fn list(&mut self, schema: &Json, list: &[Spanned<DeValue<'_>>], span: Range<usize>) {
        let number = |key: &str| schema.get(key).and_then(Json::as_u64).map(|number| number as usize);
        if let Some(wanted) = number("minItems").filter(|least| Some(*least) == number("maxItems"))
            && list.len() != wanted
        {
            let message = format!("the list has {} members; it needs {wanted}", list.len());
            return self.tell(Some(span), message, Mend::Nothing);
        }
        let first = schema.get("prefixItems").and_then(Json::as_array);
        for (place, member) in list.iter().enumerate() {
            let of_place = first.and_then(|first| first.get(place)).or_else(|| schema.get("items"));
            if let Some(of_place) = of_place {
                let id = member.get_ref().get("id").and_then(|id| id.get_ref().as_str());
                self.path.push(id.map_or_else(|| place.to_string(), str::to_owned));
                self.value(of_place, member);
                self.path.pop();
            }
        }
    }

    fn one_of(&mut self, variants: &[Json], value: &Spanned<DeValue<'_>>) {
        let words: Vec<&str> = variants.iter().flat_map(words_of).collect();
        let is_tagged = tag_of(variants).is_some();
        let tables = if is_tagged { Vec::new() } else { self.shape.tables_of(variants) };
        match value.get_ref() {
            DeValue::Table(table) => match tag_of(variants) {
                Some(tag) => self.tagged(variants, tag, table, value.span()),
                None => self.keyed(variants, table, value.span()),
            },
            DeValue::String(text) if !words.is_empty() && tables.is_empty() || words.contains(&text.as_ref()) => {
                self.word(&words, value);
            }
            DeValue::String(text) if !is_tagged => {
                let (wrong, mend) = no_variant(text, &words, &tables);
                self.tell(Some(value.span()), wrong, mend);
            }
            other if is_tagged => {
                let message = format!("{} is {}; a table must stand here", shown(other), article(other));
                self.tell(Some(value.span()), message, Mend::Nothing);
            }
            other => {
                let all = written(&words, &tables);
                let message = format!("{} is {}; it must be one of {all}", shown(other), article(other));
                self.tell(Some(value.span()), message, Mend::Nothing);
            }
        }
    }

    /// A table whose `kind` says which keys it has.
    fn tagged(&mut self, variants: &[Json], tag: &str, table: &DeTable<'_>, span: Range<usize>) {
        let constant = |variant: &'_ Json| variant["properties"][tag]["const"].as_str().map(str::to_owned);
        let known: Vec<String> = variants.iter().filter_map(constant).collect();
        let known: Vec<&str> = known.iter().map(String::as_str).collect();
        match table.get(tag).map(|word| (word, word.get_ref().as_str())) {
            None => {
                self.tell(Some(span), format!("missing field `{tag}`; it is one of {}", listed(&known)), Mend::Nothing)
            }
            Some((word, _)) => match self.shape.tagged(variants, table) {
                Some(variant) => {
                    let variant = variant.clone();
                    self.table(&variant, table, Some(span));
                }
                None => {
                    self.path.push(tag.to_owned());
                    self.word(&known, word);
                    self.path.pop();
                }
            },
        }
    }

    /// A table with one key, which says what its value is: `{ fixed = "1 MB" }`.
    fn keyed(&mut self, variants: &[Json], table: &DeTable<'_>, span: Range<usize>) {
        let of_key = |key: &str| variants.iter().find(|variant| variant["properties"].get(key).is_some());
        match table.iter().next().filter(|_| table.len() == 1) {
            Some((key, _)) => match of_key(key.get_ref()) {
                Some(variant) => {
                    let variant = variant.clone();
                    self.table(&variant, table, Some(span));
                }
                None => {
                    let names = names(variants);
                    let mut wrong = unknown("variant", key.get_ref(), &names);
                    if did_you_mean(key.get_ref(), &names).is_none() {
                        let words: Vec<&str> = variants.iter().flat_map(words_of).collect();
                        wrong = no_variant(key.get_ref(), &words, &self.shape.tables_of(variants)).0;
                    }
                    self.path.push(key.get_ref().to_string());
                    self.tell(Some(key.span()), wrong, renamed(key.get_ref(), &names));
                    self.path.pop();
                }
            },
            None => {
                let words: Vec<&str> = variants.iter().flat_map(words_of).collect();
                let all = written(&words, &self.shape.tables_of(variants));
                let message = format!("it takes one key; it must be one of {all}");
                self.tell(Some(span), message, Mend::Nothing);
            }
        }
    }

    fn any_of(&mut self, choices: &[Json], value: &Spanned<DeValue<'_>>) {
        let shape = self.shape;
        let choices = choices.iter().filter(|choice| !is_type(choice, "null")).map(|choice| shape.resolved(choice));
        let choices: Vec<(Option<&str>, &Json)> = choices.collect();
        // A number of a unit that the key's name has, or a text with a unit.
        if let [(None, plain), (Some(name), _)] = choices.as_slice()
            && let Some(read) = quantity(name, Some(*plain), value)
        {
            return read.unwrap_or_else(|(message, mend)| self.tell(Some(value.span()), message, mend));
        }
        let fits = |schema: &Json| {
            let mut walk = Walk { shape: self.shape, path: self.path.clone(), flaws: Vec::new() };
            walk.value(schema, value);
            walk.flaws.is_empty()
        };
        if !choices.iter().any(|(_, schema)| fits(schema)) {
            let kinds: Vec<&str> = choices.iter().map(|(_, schema)| kind_of(schema).0).collect();
            let message = format!("{} does not fit; {} must stand here", shown(value.get_ref()), kinds.join(" or "));
            self.tell(Some(value.span()), message, Mend::Nothing);
        }
    }

    fn word(&mut self, known: &[&str], value: &Spanned<DeValue<'_>>) {
        match value.get_ref() {
            DeValue::String(text) if known.contains(&text.as_ref()) => {}
            DeValue::String(text) => {
                let mend = match meant(text, known).as_slice() {
                    [only] => Mend::Word((*only).to_owned()),
                    _ => Mend::Nothing,
                };
                self.tell(Some(value.span()), unknown("variant", text, known), mend);
            }
            other => {
                let message = format!("{} is {}; it must be one of {}", shown(other), article(other), listed(known));
                self.tell(Some(value.span()), message, Mend::Nothing);
            }
        }
    }

    fn table(&mut self, schema: &Json, table: &DeTable<'_>, span: Option<Range<usize>>) {
        let none = serde_json::Map::new();
        let properties = schema.get("properties").and_then(Json::as_object).unwrap_or(&none);
        let others = schema.get("additionalProperties");
        let is_without_names = self.path == ["workload"] && others.is_some_and(Json::is_object);
        let plain = table.iter().filter(|(_, value)| is_without_names && !value.get_ref().is_table());
        if let Some((key, _)) = plain.min_by_key(|(key, _)| key.span().start) {
            let message = "a plan's workload has a name: `[workload.NAME]`; `weft sim` runs a scenario, whose has none";
            return self.tell(Some(key.span()), message.to_owned(), Mend::Nothing);
        }
        let known: Vec<&str> = properties.keys().map(String::as_str).collect();
        let required = schema.get("required").and_then(Json::as_array).into_iter().flatten().filter_map(Json::as_str);
        let mut missing: Vec<&str> = required.filter(|key| !table.contains_key(*key)).collect();
        for (key, value) in table.iter() {
            let name = key.get_ref().as_ref();
            self.path.push(name.to_owned());
            match (properties.get(name), others) {
                (Some(schema), _) => self.value(schema, value),
                (None, Some(Json::Bool(false))) => {
                    let free: Vec<&str> = known.iter().copied().filter(|other| !table.contains_key(*other)).collect();
                    let mend = renamed(name, &free);
                    if let Mend::Rename(new) = &mend {
                        missing.retain(|key| key != new);
                    }
                    let near = did_you_mean(name, &free);
                    let message = near.map_or_else(
                        || unknown("field", name, &known),
                        |near| format!("unknown field `{name}`; {near}"),
                    );
                    self.tell(Some(key.span()), message, mend);
                }
                (None, Some(schema)) if schema.is_object() => self.value(schema, value),
                _ => {}
            }
            self.path.pop();
        }
        if !missing.is_empty() {
            let names: Vec<String> = missing.iter().map(|key| format!("`{key}`")).collect();
            let plural = if missing.len() == 1 { "" } else { "s" };
            self.tell(span, format!("missing field{plural} {}", names.join(", ")), Mend::Nothing);
        }
    }
}

/// ``unknown field `x`; did you mean `y`?``, or all that there are.
pub(super) fn unknown(what: &str, word: &str, known: &[&str]) -> String {
    let advice = did_you_mean(word, known).unwrap_or_else(|| match known {
        [only] => format!("expected `{only}`"),
        _ => format!("expected one of {}", listed(known)),
    });
    format!("unknown {what} `{word}`; {advice}")
}

/// What a key that is not known becomes: the one that was meant, if only one is near.
fn renamed(name: &str, known: &[&str]) -> Mend {
    match meant(name, known).as_slice() {
        [only] => Mend::Rename((*only).to_owned()),
        _ => Mend::Remove,
    }
}

fn listed(words: &[&str]) -> String {
    words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ")
}

/// The words that a variant may be written as.
fn words_of(variant: &Json) -> Vec<&str> {
    let constant = variant.get("const").and_then(Json::as_str);
    let several = variant.get("enum").and_then(Json::as_array).into_iter().flatten().filter_map(Json::as_str);
    constant.into_iter().chain(several).collect()
}

/// Words and tables as they are written.
fn written(words: &[&str], tables: &[(&str, String)]) -> String {
    let all = words.iter().map(|word| format!("`\"{word}\"`"));
    all.chain(tables.iter().map(|(_, table)| format!("`{table}`"))).collect::<Vec<_>>().join(", ")
}

/// Words and keys of variants, each once.
fn names(variants: &[Json]) -> Vec<&str> {
    let mut all = Vec::new();
    for variant in variants {
        let keys = variant.get("properties").and_then(Json::as_object).into_iter().flatten();
        for name in words_of(variant).into_iter().chain(keys.map(|(key, _)| key.as_str())) {
            if !all.contains(&name) {
                all.push(name);
            }
        }
    }
    all
}

fn is_type(schema: &Json, wanted: &str) -> bool {
    match schema.get("type") {
        Some(Json::String(kind)) => kind == wanted,
        Some(Json::Array(kinds)) => kinds.iter().any(|kind| kind == wanted),
        _ => false,
    }
}

/// Whether a whole number is one that the type holds; else the least and the most.
fn in_range(schema: &Json, digits: &str) -> Result<(), (i128, i128)> {
    let bound = |key: &str| {
        schema.get(key).and_then(|bound| bound.as_i64().map(i128::from).or_else(|| bound.as_u64().map(i128::from)))
    };
    let of_format = match schema.get("format").and_then(Json::as_str) {
        Some("uint8") => i128::from(u8::MAX),
        Some("uint16") => i128::from(u16::MAX),
        Some("uint32") => i128::from(u32::MAX),
        _ => i128::from(i64::MAX),
    };
    let (least, most) = (bound("minimum").unwrap_or(i128::from(i64::MIN)), bound("maximum").unwrap_or(of_format));
    // What is not written in tens is the reader's business.
    match digits.parse::<i128>() {
        Ok(number) if number < least || number > most => Err((least, most)),
        _ => Ok(()),
    }
}

/// What a schema wants, in words, and a value that fits.
fn kind_of(schema: &Json) -> (&'static str, Mend) {
    match schema {
        _ if is_type(schema, "integer") => ("a whole number", Mend::Any("1")),
        _ if is_type(schema, "number") => ("a number", Mend::Any("1")),
        _ if is_type(schema, "boolean") => ("`true` or `false`", Mend::Any("false")),
        _ if is_type(schema, "string") => ("a text", Mend::Nothing),
        _ if is_type(schema, "array") => ("a list", Mend::Nothing),
        _ => ("a table", Mend::Nothing),
    }
}

/// Whether a value is a quantity of the type with this name, or such a number as the schema beside it takes; `None` of a type that is no
/// quantity. The readers of quantities know spellings, and what a number without a unit could mean.
fn quantity(name: &str, plain: Option<&Json>, value: &Spanned<DeValue<'_>>) -> Option<Result<(), (String, Mend)>> {
    let reader = toml::de::ValueDeserializer::from(value.clone());
    let is_whole = plain.map(|plain| is_type(plain, "integer"));
    let (read, any) = match (name, is_whole) {
        ("Bytes", None) => (Bytes::deserialize(reader).map(drop), "\"1 MB\""),
        ("Bytes", Some(true)) => (Number::<Bytes>::deserialize(reader).map(drop), "1"),
        ("Nanos", None) => (Nanos::deserialize(reader).map(drop), "\"1 s\""),
        ("Nanos", Some(true)) => (Number::<Nanos>::deserialize(reader).map(drop), "1"),
        ("Percent", None) => (Percent::deserialize(reader).map(drop), "\"1%\""),
        ("Percent", Some(true)) => (Number::<Percent>::deserialize(reader).map(drop), "1"),
        ("Percent", Some(false)) => (Share::deserialize(reader).map(drop), "1"),
        ("BitsPerSec", None) => (BitsPerSec::deserialize(reader).map(drop), "\"1 Gbit/s\""),
        ("Overlay", None) => return value.get_ref().as_str().map(overlay),
        _ => return None,
    };
    Some(read.map_err(|error| (error.message().trim().to_owned(), Mend::Any(any))))
}

fn overlay(text: &str) -> Result<(), (String, Mend)> {
    let known: Vec<&str> = Overlay::ALL.iter().map(|word| word.name).collect();
    text.parse::<Overlay>().map(drop).map_err(|_| {
        let mend = match meant(text, &known).as_slice() {
            [only] => Mend::Word((*only).to_owned()),
            _ => Mend::Nothing,
        };
        (unknown("variant", text, &known), mend)
    })
}

fn shown(value: &DeValue<'_>) -> String {
    match value {
        DeValue::String(text) => format!("`\"{text}\"`"),
        DeValue::Integer(number) => format!("`{}`", number.as_str()),
        DeValue::Float(number) => format!("`{}`", number.as_str()),
        DeValue::Boolean(yes) => format!("`{yes}`"),
        _ => "it".to_owned(),
    }
}

fn article(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "a text",
        DeValue::Integer(_) => "a whole number",
        DeValue::Float(_) => "a number",
        DeValue::Boolean(_) => "a truth value",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    }
}

/// Whether a text may stand where the schema does.
pub(super) fn takes_text(schema: &Json) -> bool {
    is_type(schema, "string")
}

impl Shape {
    /// The keys of a table at a path, as far as its kind is known.
    pub(super) fn keys(&self, document: &DeTable<'_>, path: &[&str], schema: &Json) -> Vec<String> {
        let keys = |object: &Json| -> Vec<String> {
            let properties = object.get("properties").and_then(Json::as_object);
            properties.into_iter().flatten().map(|(key, _)| key.clone()).collect()
        };
        let Some(variants) = schema.get("oneOf").and_then(Json::as_array) else { return keys(schema) };
        let mut here = None;
        for (depth, key) in path.iter().enumerate() {
            here = if depth == 0 {
                document.get(*key)
            } else {
                here.and_then(|value: &Spanned<DeValue<'_>>| value.get_ref().get(*key))
            };
        }
        let table = here.and_then(|value| value.get_ref().as_table());
        match table.and_then(|table| self.tagged(variants, table)) {
            Some(variant) => keys(variant),
            None => names(variants).into_iter().map(str::to_owned).collect(),
        }
    }
}
