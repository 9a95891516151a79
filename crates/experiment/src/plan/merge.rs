//! Merges `[quick]`, `[full]`, `[engine.NAME]` or a variant over a plan, keeping every value's place in the file for
//! later messages.

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::error::Misplaced;

/// Takes the table called `name` out of the document. An error if the key is there but is no table.
pub(super) fn take_table<'a>(
    document: &mut Spanned<DeTable<'a>>,
    name: &str,
) -> Result<Option<DeTable<'a>>, Misplaced> {
    let Some(value) = document.get_mut().remove(name) else { return Ok(None) };
    let span = value.span();
    match value.into_inner() {
        DeValue::Table(table) => Ok(Some(table)),
        other => Err(Misplaced::at(span, format!("`{name}` is a {}; it must be a table", other.type_str()))),
    }
}

/// Lays `change` over `base`: tables are merged key by key, lists of tables with an `id` by that id, anything else is
/// replaced.
pub(super) fn merge<'a>(base: &mut DeTable<'a>, change: DeTable<'a>) {
    for (key, new) in change {
        match (base.get_mut(&key).map(Spanned::get_mut), new.get_ref()) {
            (Some(DeValue::Table(old)), DeValue::Table(new)) if !names_another(old, new) => merge(old, new.clone()),
            (Some(DeValue::Array(old)), DeValue::Array(new)) if has_ids(new.iter()) && has_ids(old.iter()) => {
                merge_by_id(old, new);
            }
            _ => {
                base.insert(key, new);
            }
        }
    }
}

/// A workload of another kind, or a fabric from another generator or file, is another thing: nothing of the old stays.
fn names_another(old: &DeTable<'_>, new: &DeTable<'_>) -> bool {
    ["kind", "generator", "file"].into_iter().any(|key| {
        let text = |table: &DeTable<'_>| table.get(key).and_then(|value| Some(value.get_ref().as_str()?.to_owned()));
        text(new).is_some() && text(new) != text(old)
    })
}

fn merge_by_id<'a>(old: &mut toml::de::DeArray<'a>, new: &toml::de::DeArray<'a>) {
    for entry in new.iter() {
        let same = |other: &&mut Spanned<DeValue<'a>>| id_of(other.get_ref()) == id_of(entry.get_ref());
        match (old.iter_mut().find(same).map(Spanned::get_mut), entry.get_ref()) {
            (Some(DeValue::Table(old)), DeValue::Table(new)) => merge(old, new.clone()),
            _ => old.push(entry.clone()),
        }
    }
}

fn id_of<'b>(value: &'b DeValue<'_>) -> Option<&'b str> {
    value.get("id")?.get_ref().as_str()
}

fn has_ids<'b, 'a: 'b>(mut values: impl Iterator<Item = &'b Spanned<DeValue<'a>>>) -> bool {
    values.all(|value| id_of(value.get_ref()).is_some())
}
