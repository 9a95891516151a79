//! Keys whose name has the unit: `load_percent`, `start_ns`, `frame_bytes`, and `bytes` itself. There a plain number is certain, and
//! the text of a quantity is read, too.
//!
//! ```
//! use weft_scenario::units::{Bytes, Percent, named};
//!
//! #[derive(serde::Deserialize)]
//! struct Load {
//!     #[serde(deserialize_with = "named::number::<Percent, _, _>")]
//!     load_percent: u32,
//!     #[serde(deserialize_with = "named::numbers::<Bytes, _, _>")]
//!     frame_bytes: Vec<u32>,
//! }
//!
//! let load: Load = toml::from_str("load_percent = '80%'\nframe_bytes = [64, '1.5 kB']").unwrap();
//! assert_eq!((load.load_percent, load.frame_bytes), (80, vec![64, 1500]));
//! ```

use std::borrow::Cow;
use std::fmt::{self, Display};
use std::marker::PhantomData;
use std::str::FromStr;

use serde::de::{Error, Unexpected, Visitor};
use serde::{Deserialize, Deserializer};

use super::{ParseQuantityError, Percent, Share};

/// What is written as a number and a unit.
pub trait Quantity: FromStr<Err = ParseQuantityError> {
    /// For messages: what it is, with an example.
    const ABOUT: &'static str;

    /// In its smallest unit; `None` where that is no whole number.
    fn whole(self) -> Option<u64>;

    /// What to write in the place of a number without a unit.
    fn example(number: &str) -> String;
}

/// Reads a quantity that has to be text; a number is refused with what to write.
pub(super) fn text<'de, D: Deserializer<'de>, Q: Quantity>(deserializer: D) -> Result<Q, D::Error> {
    struct Text<Q>(PhantomData<Q>);
    impl<Q: Quantity> Visitor<'_> for Text<Q> {
        type Value = Q;
        fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
            out.write_str(Q::ABOUT)
        }
        fn visit_str<E: Error>(self, text: &str) -> Result<Q, E> {
            text.parse().map_err(E::custom)
        }
        fn visit_i64<E: Error>(self, number: i64) -> Result<Q, E> {
            self.visit_str(&number.to_string())
        }
        fn visit_u64<E: Error>(self, number: u64) -> Result<Q, E> {
            self.visit_str(&number.to_string())
        }
        fn visit_f64<E: Error>(self, number: f64) -> Result<Q, E> {
            self.visit_str(&number.to_string())
        }
    }
    // A format that has no types, such as YAML, gives the text itself: `10` and `1e3` as they are written.
    deserializer.deserialize_str(Text(PhantomData))
}

/// Reads a key whose name has the unit of `Q`: a plain whole number of it, or text such as `1 MB`.
pub fn number<'de, Q: Quantity, N: TryFrom<u64>, D: Deserializer<'de>>(deserializer: D) -> Result<N, D::Error> {
    Number::<Q, N>::deserialize(deserializer).map(|number| number.value)
}

/// Reads a list of what [`number`] reads.
pub fn numbers<'de, Q: Quantity, N: TryFrom<u64>, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<N>, D::Error> {
    let numbers = Vec::<Number<Q, N>>::deserialize(deserializer)?;
    Ok(numbers.into_iter().map(|number| number.value).collect())
}

/// Reads a percentage that need not be whole, of a key whose name says that it is one: a plain number, or text such as `0.5%`.
pub fn percent<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    number_or(deserializer, "a number of percent, or text such as `5%`", |percent| percent.0)
}

/// Reads a share where nothing else can be meant, of a key that may be missing: a plain number, or text such as `60%`.
pub fn share<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<f64>, D::Error> {
    Share::deserialize(deserializer).map(|share| Some(share.0))
}

/// Reads a number as it is, and text as a percentage that `meant` turns into such a number.
pub(super) fn number_or<'de, D: Deserializer<'de>>(
    deserializer: D,
    about: &'static str,
    meant: fn(Percent) -> f64,
) -> Result<f64, D::Error> {
    struct Any(&'static str, fn(Percent) -> f64);
    impl Visitor<'_> for Any {
        type Value = f64;
        fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
            out.write_str(self.0)
        }
        fn visit_str<E: Error>(self, text: &str) -> Result<f64, E> {
            text.parse().map(self.1).map_err(E::custom)
        }
        fn visit_i64<E: Error>(self, number: i64) -> Result<f64, E> {
            Ok(number as f64)
        }
        fn visit_u64<E: Error>(self, number: u64) -> Result<f64, E> {
            Ok(number as f64)
        }
        fn visit_f64<E: Error>(self, number: f64) -> Result<f64, E> {
            Ok(number)
        }
    }
    deserializer.deserialize_any(Any(about, meant))
}

/// Reads a whole quantity from the command line, as [`number`] does, but never without its unit.
pub fn whole<Q: Quantity, N: TryFrom<u64>>(text: &str) -> Result<N, String> {
    let quantity: Q = text.parse().map_err(|error: ParseQuantityError| error.to_string())?;
    fit(quantity.whole(), text)
}

fn fit<N: TryFrom<u64>>(number: Option<u64>, written: impl Display) -> Result<N, String> {
    let whole = number.ok_or_else(|| format!("`{written}` must be a whole number"))?;
    N::try_from(whole).map_err(|_| format!("`{written}` is too large"))
}

/// A number of a unit, for the schema of a key that [`number`] reads.
pub struct Number<Q, N = u64> {
    value: N,
    quantity: PhantomData<Q>,
}

impl<'de, Q: Quantity, N: TryFrom<u64>> Deserialize<'de> for Number<Q, N> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer
            .deserialize_any(NumberOrText::<Q, N>(PhantomData))
            .map(|value| Self { value, quantity: PhantomData })
    }
}

struct NumberOrText<Q, N>(PhantomData<(Q, N)>);

impl<Q: Quantity, N: TryFrom<u64>> Visitor<'_> for NumberOrText<Q, N> {
    type Value = N;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "a whole number, or {} as text", Q::ABOUT)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<N, E> {
        whole::<Q, N>(text).map_err(E::custom)
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<N, E> {
        fit(Some(number), number).map_err(E::custom)
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<N, E> {
        match u64::try_from(number) {
            Ok(number) => self.visit_u64(number),
            Err(_) => Err(E::invalid_value(Unexpected::Signed(number), &self)),
        }
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<N, E> {
        let example = Q::example(&number.to_string());
        Err(E::custom(format!("`{number}` must be a whole number, or text with a unit: {example}")))
    }
}

impl<Q: schemars::JsonSchema, N> schemars::JsonSchema for Number<Q, N> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        format!("NumberOf{}", Q::schema_name()).into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let text = generator.subschema_for::<Q>();
        schemars::json_schema!({ "anyOf": [{ "type": "integer", "minimum": 0 }, text] })
    }
}

#[cfg(test)]
mod tests {
    use super::super::{BitsPerSec, Bytes, Nanos};
    use super::*;

    #[derive(Debug, PartialEq, Deserialize)]
    struct Keys {
        #[serde(default, deserialize_with = "number::<Bytes, _, _>")]
        bytes: u64,
        #[serde(default, deserialize_with = "number::<Nanos, _, _>")]
        start_ns: u32,
        #[serde(default, deserialize_with = "numbers::<Percent, _, _>")]
        load_percent: Vec<u32>,
        #[serde(default, deserialize_with = "percent")]
        loss_percent: f64,
        #[serde(default)]
        rate: BitsPerSec,
    }

    fn read(text: &str) -> Result<Keys, String> {
        toml::from_str(text).map_err(|error| error.message().to_owned())
    }

    #[test]
    fn a_plain_number_and_text_mean_the_same() {
        for (plain, text) in [
            ("bytes = 100000", "bytes = '100 kB'"),
            ("start_ns = 5000000", "start_ns = '5 ms'"),
            ("load_percent = [10, 80]", "load_percent = ['10%', '80 %']"),
            ("loss_percent = 0.5", "loss_percent = '0.5%'"),
            ("loss_percent = 5", "loss_percent = '5%'"),
        ] {
            let keys = read(plain).unwrap();
            assert_eq!(read(text).unwrap(), keys, "{text}");
            assert_ne!(read("").unwrap(), keys, "{plain}");
        }
    }

    #[test]
    fn what_could_be_two_things_is_refused_with_both() {
        for (text, message) in [
            (
                "load_percent = [0.8]",
                "`0.8` must be a whole number, or text with a unit: it could be a percentage, `0.8%`, or a share, `80%`",
            ),
            ("load_percent = ['0.8']", "it could be a percentage, `0.8%`, or a share, `80%`"),
            ("load_percent = ['0.8%']", "`0.8%` must be a whole number"),
            ("loss_percent = '5'", "it could be a percentage, `5%`"),
            ("bytes = '100'", "it has no unit"),
            ("bytes = 1.5", "text with a unit: 1.5 B"),
            ("bytes = -1", "expected a whole number, or a size, for example `4 MiB` as text"),
            ("bytes = '1 ms'", "`1 ms` is not a size"),
            ("start_ns = '1 min'", "`1 min` is too large"),
            ("rate = 10", "`10` is not a rate; write for example `20 Mbit/s`; it has no unit"),
        ] {
            let error = read(text).expect_err(text);
            assert!(error.contains(message), "{text}: {error}");
        }
    }
}
