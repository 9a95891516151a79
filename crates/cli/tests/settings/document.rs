//! Scenarios as documents whose keys can be changed one by one.

use toml::{Table, Value};

/// A table of a fragment of TOML.
pub(crate) fn parsed(text: &str) -> Table {
    text.parse().unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// Lays one table over another; what are no tables take each other's places.
pub(crate) fn merge(base: &mut Table, change: &Table) {
    for (key, value) in change {
        match (base.get_mut(key), value) {
            (Some(Value::Table(old)), Value::Table(new)) if is_same_kind(old, new) => merge(old, new),
            _ => drop(base.insert(key.clone(), value.clone())),
        }
    }
}

fn is_same_kind(old: &Table, new: &Table) -> bool {
    ["kind", "generator", "file"].iter().all(|tag| new.get(*tag).is_none_or(|new| old.get(*tag) == Some(new)))
}

/// Steps of a key's path, or `None` where the document has no such place: another kind of table, or a table that a key of its own
/// makes.
pub(crate) fn place(document: &Table, path: &str) -> Option<Vec<String>> {
    let mut steps = Vec::new();
    let mut here = Some(Value::Table(document.clone()));
    let parts: Vec<&str> = path.split('.').collect();
    for (depth, part) in parts.iter().enumerate() {
        let (name, kind) =
            part.split_once('[').map_or((*part, None), |(name, kind)| (name, Some(kind.trim_end_matches(']'))));
        let is_last = depth + 1 == parts.len();
        // A table of the file itself may be missing, and so may the last.
        let may_be_new = is_last || (depth == 0 && kind.is_none());
        let table = here.as_ref().and_then(Value::as_table).cloned();
        let name = match name {
            "*" => table.as_ref().and_then(|table| Some(table.keys().next()?.clone()))?,
            name => name.to_owned(),
        };
        let next = table.and_then(|table| table.get(&name).cloned());
        if next.is_none() && !may_be_new {
            return None;
        }
        steps.push(name);
        here = match (kind, next) {
            (None, next) => next,
            (Some(""), next) => {
                steps.push("0".to_owned());
                Some(next?.as_array()?.first()?.clone())
            }
            (Some(kind), next) => {
                next.filter(|next| next.get("kind").and_then(Value::as_str) == Some(kind)).map(Some)?
            }
        };
    }
    Some(steps)
}

/// The value at a place.
pub(crate) fn get(document: &Table, steps: &[String]) -> Option<Value> {
    let mut here = Value::Table(document.clone());
    for step in steps {
        here = match &here {
            Value::Array(list) => list.get(step.parse::<usize>().ok()?)?.clone(),
            Value::Table(table) => table.get(step)?.clone(),
            _ => return None,
        };
    }
    Some(here)
}

/// The document with another value at a place.
pub(crate) fn with(document: &Table, steps: &[String], value: Value) -> Table {
    fn set(here: &mut Value, steps: &[String], value: Value) {
        let Some((step, rest)) = steps.split_first() else { return *here = value };
        match here {
            Value::Array(list) => set(&mut list[step.parse::<usize>().expect("a place of a list")], rest, value),
            Value::Table(table) => {
                let member = table.entry(step.clone()).or_insert_with(|| Value::Table(Table::new()));
                set(member, rest, value);
            }
            other => panic!("`{step}` below {other}"),
        }
    }
    let mut changed = Value::Table(document.clone());
    set(&mut changed, steps, value);
    changed.as_table().expect("a table stays one").clone()
}
