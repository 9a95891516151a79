//! Where in a document something stands: paths to spans.

use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::error::{Misplaced, Problem};

/// A key of a document with the bytes that it stands in, and the path to it.
pub(super) struct Found {
    pub(super) span: Range<usize>,
    pub(super) key: Vec<String>,
}

/// The problem with its place in the document that it was found in.
pub(super) fn placed(document: &DeTable<'_>, problem: &Problem) -> Misplaced {
    match find(document, &problem.path, &problem.message) {
        Some(found) => Misplaced::at(found.span, problem.message.clone()).with_key(&found.key),
        None => Misplaced::nowhere(problem.message.clone()),
    }
}

/// A mistake that serde told of a table, at the key or the value that its message names.
pub(super) fn closer(document: &DeTable<'_>, wrong: Misplaced) -> Misplaced {
    let Some(span) = &wrong.span else { return wrong };
    let Some((path, table)) = table_at(document, span, Vec::new()) else { return wrong };
    match named_key(table, &path, &wrong.message).or_else(|| named_value(table, &path, &wrong.message)) {
        Some(found) => Misplaced { span: Some(found.span), ..wrong }.with_key(&found.key),
        None => wrong.with_key(&path),
    }
}

/// The key at the end of a path, or as near to it as the document goes; of a table the key in it that the message names, or whose value it
/// does.
fn find(document: &DeTable<'_>, path: &[String], message: &str) -> Option<Found> {
    let (mut span, mut walked) = (None, Vec::new());
    let mut here: Option<&DeValue<'_>> = None;
    for key in path {
        let next = match here {
            None => entry(document, key),
            Some(DeValue::Table(table)) => entry(table, key),
            Some(DeValue::Array(list)) => member(list, key),
            Some(_) => None,
        };
        let Some((at, value)) = next else { break };
        span = Some(at);
        walked.push(key.clone());
        here = Some(value.get_ref());
    }
    let tables = || {
        let inner = here.map(inner_tables).unwrap_or_default().into_iter();
        inner.map(|(extra, table)| (walked.iter().cloned().chain(extra).collect::<Vec<String>>(), table))
    };
    let inside = tables().find_map(|(path, table)| named_key(table, &path, message));
    let inside = inside.or_else(|| tables().next().and_then(|(path, table)| named_value(table, &path, message)));
    inside.or_else(|| Some(Found { span: span?, key: walked }))
}

fn entry<'b, 'a>(table: &'b DeTable<'a>, key: &str) -> Option<(Range<usize>, &'b Spanned<DeValue<'a>>)> {
    table.get_key_value(key).map(|(key, value)| (key.span(), value))
}

/// The number of a list's member that a key names: by its `id`, or the number itself.
pub(super) fn place_in(list: &[Spanned<DeValue<'_>>], key: &str) -> Option<usize> {
    let id = |value: &Spanned<DeValue<'_>>| value.get_ref().get("id").and_then(|id| id.get_ref().as_str()) == Some(key);
    list.iter().position(id).or_else(|| key.parse().ok().filter(|place| *place < list.len()))
}

/// That member.
pub(super) fn of_list<'b, 'a>(list: &'b [Spanned<DeValue<'a>>], key: &str) -> Option<&'b Spanned<DeValue<'a>>> {
    list.get(place_in(list, key)?)
}

/// The member with its place: the line of its `id` says more than the heading, which all members share.
fn member<'b, 'a>(list: &'b [Spanned<DeValue<'a>>], key: &str) -> Option<(Range<usize>, &'b Spanned<DeValue<'a>>)> {
    let found = of_list(list, key)?;
    let id = found.get_ref().as_table().and_then(|table| entry(table, "id"));
    Some((id.map_or_else(|| found.span(), |(at, _)| at), found))
}

/// A value's tables: itself, and those in it, the outer ones first.
fn inner_tables<'b, 'a>(value: &'b DeValue<'a>) -> Vec<(Vec<String>, &'b DeTable<'a>)> {
    let mut all = Vec::new();
    let mut next = vec![(Vec::new(), value)];
    while !next.is_empty() {
        let mut deeper = Vec::new();
        for (path, value) in next {
            let below = |key: String| path.iter().cloned().chain([key]).collect::<Vec<String>>();
            match value {
                DeValue::Table(table) => {
                    deeper.extend(table.iter().map(|(key, value)| (below(key.get_ref().to_string()), value.get_ref())));
                    all.push((path.clone(), table));
                }
                DeValue::Array(list) => {
                    deeper.extend(
                        list.iter().enumerate().map(|(place, value)| (below(place.to_string()), value.get_ref())),
                    );
                }
                _ => {}
            }
        }
        next = deeper;
    }
    all
}

/// What stands between backticks in a message, also the last parts of dotted words, and what is said to be something: `spines = 0`.
fn quoted(message: &str) -> impl Iterator<Item = &str> {
    let words = message.split('`').skip(1).step_by(2);
    let words = words.flat_map(|word| std::iter::once(word).chain(word.rsplit('.').take(1)));
    let equal = message.split(" = ").take(message.matches(" = ").count());
    words.chain(equal.filter_map(|before| before.rsplit([' ', '`', '(']).next()))
}

/// The first key of the table that the message names.
fn named_key(table: &DeTable<'_>, path: &[String], message: &str) -> Option<Found> {
    quoted(message).find_map(|word| {
        let (span, _) = entry(table, word)?;
        Some(Found { span, key: path.iter().cloned().chain([word.to_owned()]).collect() })
    })
}

/// The one value of the table, or of tables in it, that the message quotes.
fn named_value(table: &DeTable<'_>, path: &[String], message: &str) -> Option<Found> {
    let quotes = |text: &str| [format!("`{text}`"), format!("\"{text}\"")].iter().any(|quote| message.contains(quote));
    let is_named = |value: &DeValue<'_>| match value {
        DeValue::String(text) => quotes(text),
        DeValue::Integer(number) => quotes(number.as_str()),
        DeValue::Float(number) => quotes(number.as_str()),
        DeValue::Boolean(yes) => quotes(&yes.to_string()),
        _ => false,
    };
    let mut found = Vec::new();
    let whole = DeValue::Table(table.clone());
    for (extra, inner) in inner_tables(&whole) {
        for (key, value) in inner.iter().filter(|(_, value)| is_named(value.get_ref())) {
            let key_path = path.iter().cloned().chain(extra.iter().cloned()).chain([key.get_ref().to_string()]);
            found.push(Found { span: value.span(), key: key_path.collect() });
        }
    }
    // Where two values read alike, none is blamed.
    found.pop().filter(|_| found.is_empty())
}

/// The innermost table that begins where a span does, with its path.
fn table_at<'b, 'a>(
    table: &'b DeTable<'a>,
    span: &Range<usize>,
    path: Vec<String>,
) -> Option<(Vec<String>, &'b DeTable<'a>)> {
    let whole = inner_values(table, &path);
    let of_span = |(key, value): &(Vec<String>, &'b Spanned<DeValue<'a>>)| {
        (value.span() == *span).then(|| value.get_ref().as_table().map(|table| (key.clone(), table))).flatten()
    };
    whole.iter().find_map(of_span)
}

fn inner_values<'b, 'a>(table: &'b DeTable<'a>, path: &[String]) -> Vec<(Vec<String>, &'b Spanned<DeValue<'a>>)> {
    let mut all = Vec::new();
    for (key, value) in table.iter() {
        let path: Vec<String> = path.iter().cloned().chain([key.get_ref().to_string()]).collect();
        all.push((path.clone(), value));
        match value.get_ref() {
            DeValue::Table(inner) => all.extend(inner_values(inner, &path)),
            DeValue::Array(list) => {
                for (place, member) in list.iter().enumerate() {
                    let path: Vec<String> = path.iter().cloned().chain([place.to_string()]).collect();
                    all.push((path.clone(), member));
                    if let DeValue::Table(inner) = member.get_ref() {
                        all.extend(inner_values(inner, &path));
                    }
                }
            }
            _ => {}
        }
    }
    all
}
