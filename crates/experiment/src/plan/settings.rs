//! A plan's values by their paths, for questions.

use toml::de::{DeTable, DeValue};
use weft_scenario::units::{BitsPerSec, Bytes, Nanos, Percent};

use crate::query::Value;

/// Tables that ask or claim, and so are no settings.
pub(super) const QUESTIONS: [&str; 6] = ["views", "metrics", "problems", "tables", "figures", "claims"];

/// All values of a document but its questions; members of lists by their number from 0.
pub(super) fn of(document: &DeTable<'_>) -> Vec<(String, Value)> {
    let mut settings = Vec::new();
    for (key, value) in document.iter().filter(|(key, _)| !QUESTIONS.contains(&key.get_ref().as_ref())) {
        collect(key.get_ref().to_string(), value.get_ref(), &mut settings);
    }
    settings
}

fn collect(name: String, value: &DeValue<'_>, settings: &mut Vec<(String, Value)>) {
    match value {
        DeValue::Table(table) => {
            table
                .iter()
                .for_each(|(key, value)| collect(format!("{name}.{}", key.get_ref()), value.get_ref(), settings));
        }
        DeValue::Array(values) => {
            values
                .iter()
                .enumerate()
                .for_each(|(place, value)| collect(format!("{name}.{place}"), value.get_ref(), settings));
        }
        DeValue::Integer(number) => settings.push((name, plain(&number.to_string()))),
        DeValue::Float(number) => settings.push((name, plain(&number.to_string()))),
        DeValue::Boolean(yes) => settings.push((name, Value::Integer(i64::from(*yes)))),
        DeValue::String(text) => settings.push((name, quantity(text))),
        DeValue::Datetime(time) => settings.push((name, Value::Text(time.to_string()))),
    }
}

fn plain(text: &str) -> Value {
    let whole = text.parse().map(Value::Integer);
    whole.or_else(|_| text.parse().map(Value::Real)).unwrap_or_else(|_| Value::Text(text.to_owned()))
}

/// A rate, a size or a time in its smallest unit, a percentage as its number; any other text as it is.
fn quantity(text: &str) -> Value {
    if let Ok(Percent(percent)) = text.parse() {
        return plain(&percent.to_string());
    }
    let rate = text.parse().map(|rate: BitsPerSec| rate.0);
    let size = rate.or_else(|_| text.parse().map(|size: Bytes| size.0));
    let time = size.or_else(|_| text.parse().map(|time: Nanos| time.0));
    time.map_or_else(|_| Value::Text(text.to_owned()), |smallest| Value::Integer(smallest as i64))
}
