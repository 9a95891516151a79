//! Units as types: integer bits per second, bytes and nanoseconds.
//!
//! Each type parses and prints the text that people write (`20 Mbit/s`, `4 MiB`, `45 s`) and serialises as that text.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A quantity that could not be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a {what}; write for example `{example}`")]
pub struct ParseQuantityError {
    /// The text that was refused.
    pub text: String,
    /// What was expected: `rate`, `size` or `duration`.
    pub what: &'static str,
    /// A text that would have been accepted.
    pub example: &'static str,
}

/// Names one unit suffix and how many base units it stands for.
type Suffix = (&'static str, u64);

const RATE_SUFFIXES: &[Suffix] = &[("Gbit/s", 1_000_000_000), ("Mbit/s", 1_000_000), ("kbit/s", 1_000), ("bit/s", 1)];
const SIZE_SUFFIXES: &[Suffix] = &[
    ("GiB", 1 << 30),
    ("MiB", 1 << 20),
    ("KiB", 1 << 10),
    ("GB", 1_000_000_000),
    ("MB", 1_000_000),
    ("kB", 1_000),
    ("B", 1),
];
const TIME_SUFFIXES: &[Suffix] =
    &[("min", 60_000_000_000), ("ms", 1_000_000), ("us", 1_000), ("ns", 1), ("s", 1_000_000_000)];

/// Reads `NUMBER [space] SUFFIX`, where NUMBER may have a decimal fraction. `None` on anything else or on overflow.
fn parse_quantity(text: &str, suffixes: &[Suffix]) -> Option<u64> {
    let text = text.trim();
    let &(suffix, factor) = suffixes.iter().find(|(suffix, _)| text.ends_with(suffix))?;
    let number = text[..text.len() - suffix.len()].trim_end();
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || !digits(whole) || !digits(fraction) || (fraction.is_empty() && number.contains('.')) {
        return None;
    }
    let scale = 10u128.checked_pow(u32::try_from(fraction.len()).ok()?)?;
    let mantissa: u128 = format!("{whole}{fraction}").parse().ok()?;
    let value = mantissa.checked_mul(u128::from(factor))?;
    (value % scale == 0).then(|| u64::try_from(value / scale).ok())?
}

/// Prints with the largest suffix that leaves an integer.
fn format_quantity(value: u64, suffixes: &[Suffix], out: &mut fmt::Formatter<'_>) -> fmt::Result {
    let base = suffixes.iter().find(|(_, factor)| *factor == 1).expect("every table has its base unit");
    let largest = suffixes
        .iter()
        .filter(|(_, factor)| value != 0 && value.is_multiple_of(*factor))
        .max_by_key(|(_, factor)| *factor)
        .unwrap_or(base);
    write!(out, "{} {}", value / largest.1, largest.0)
}

macro_rules! quantity {
    ($(#[$doc:meta])* $name:ident, $suffixes:ident, $what:literal, $example:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub u64);

        impl FromStr for $name {
            type Err = ParseQuantityError;
            fn from_str(text: &str) -> Result<Self, Self::Err> {
                parse_quantity(text, $suffixes).map(Self).ok_or_else(|| ParseQuantityError {
                    text: text.to_owned(),
                    what: $what,
                    example: $example,
                })
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                format_quantity(self.0, $suffixes, out)
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
            }
        }

        impl schemars::JsonSchema for $name {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                let units: Vec<&str> = $suffixes.iter().map(|(suffix, _)| *suffix).collect();
                schemars::json_schema!({
                    "type": "string",
                    "description": format!("a {}, for example `{}`; units: {}", $what, $example, units.join(", ")),
                    "pattern": r"^\s*[0-9]+(\.[0-9]+)?\s*[A-Za-z/]+\s*$",
                })
            }
        }
    };
}

quantity!(
    /// A rate in bits per second. A link's rate is a layer-1 rate: preamble, FCS and gap count (24 bytes a frame).
    BitsPerSec, RATE_SUFFIXES, "rate", "20 Mbit/s"
);
quantity!(
    /// A size in bytes.
    Bytes, SIZE_SUFFIXES, "size", "4 MiB"
);
quantity!(
    /// A span of time, or a time since the start of a run, in nanoseconds.
    Nanos, TIME_SUFFIXES, "duration", "45 s"
);

impl Nanos {
    /// The same time in seconds, for reports only.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// From seconds; negative and absurd values saturate.
    pub fn from_secs_f64(seconds: f64) -> Self {
        Self((seconds * 1e9) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn people_write_units_with_and_without_a_space() {
        assert_eq!("20 Mbit/s".parse(), Ok(BitsPerSec(20_000_000)));
        assert_eq!("2.5Gbit/s".parse(), Ok(BitsPerSec(2_500_000_000)));
        assert_eq!("4 MiB".parse(), Ok(Bytes(4 << 20)));
        assert_eq!("1.5 s".parse(), Ok(Nanos(1_500_000_000)));
        assert_eq!("0 B".parse(), Ok(Bytes(0)));
    }

    #[test]
    fn what_is_not_a_quantity_is_refused() {
        for text in
            ["", "20", "Mbit/s", "-1 Mbit/s", "1. Mbit/s", ".5 Mbit/s", "1e3 bit/s", "0.1 bit/s", "99999999999 Gbit/s"]
        {
            assert!(text.parse::<BitsPerSec>().is_err(), "{text}");
        }
    }

    #[test]
    fn printing_and_parsing_agree() {
        for value in [0, 1, 1_000, 1_500, 20_000_000, 10_000_000_000] {
            assert_eq!(BitsPerSec(value).to_string().parse(), Ok(BitsPerSec(value)));
            assert_eq!(Nanos(value).to_string().parse(), Ok(Nanos(value)));
            assert_eq!(Bytes(value).to_string().parse(), Ok(Bytes(value)));
        }
    }
}
