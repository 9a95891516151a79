//! Percentages. A plain number is none: 0.8 and 80 could both be meant as four fifths, so the sign has to be there.

use std::fmt;
use std::str::FromStr;

use super::named::{self, Quantity};
use super::{ParseQuantityError, split};

/// A share in percent, not below 0; loads of searches may be above 100. Reads `80%`, `80 %`, `0.5%`.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
pub struct Percent(pub f64);

impl Percent {
    /// The share, 1 for 100 %.
    pub fn share(self) -> f64 {
        self.0 / 100.0
    }
}

impl FromStr for Percent {
    type Err = ParseQuantityError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let refused = |advice: String| {
            Err(ParseQuantityError { text: text.to_owned(), what: "percentage", example: "80%", advice })
        };
        match split(text) {
            Some((number, "%")) => match number.text.parse() {
                Ok(percent) => Ok(Self(percent)),
                Err(_) => refused(String::new()),
            },
            Some((number, "")) => refused(format!("; {}", readings(number.text))),
            _ => refused(String::new()),
        }
    }
}

/// What a number without a sign could mean: a percentage, or a share where that is no more than the whole.
fn readings(number: &str) -> String {
    let percentage = format!("it could be a percentage, `{number}%`");
    match number.parse() {
        Ok(share @ 0.0..=1.0) => {
            // 0.57 times 100 is a little above 57.
            let hundredfold = (share * 1e11_f64).round() / 1e9;
            format!("{percentage}, or a share, `{hundredfold}%`")
        }
        _ => percentage,
    }
}

impl fmt::Display for Percent {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}%", self.0)
    }
}

impl Quantity for Percent {
    const ABOUT: &'static str = "a percentage, for example `80%`";

    fn whole(self) -> Option<u64> {
        (self.0.fract() == 0.0 && self.0 < 1e15).then_some(self.0 as u64)
    }

    fn example(number: &str) -> String {
        readings(number)
    }
}

impl<'de> serde::Deserialize<'de> for Percent {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        named::text(deserializer)
    }
}

impl schemars::JsonSchema for Percent {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Percent".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "type": "string",
            "description": Self::ABOUT,
            "pattern": r"^\s*[0-9]+(\.[0-9]+)?\s*%\s*$",
        })
    }
}

/// A share where nothing else can be meant, such as a row of a distribution that ends at 1: a number, or text such as `60%`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Share(pub f64);

impl<'de> serde::Deserialize<'de> for Share {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        named::number_or(deserializer, "a share from 0 to 1, or text such as `60%`", Percent::share).map(Self)
    }
}

impl schemars::JsonSchema for Share {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Share".into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let text = generator.subschema_for::<Percent>();
        schemars::json_schema!({ "anyOf": [{ "type": "number" }, text] })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_sign_has_to_be_there() {
        for (text, percent) in [("80%", 80.0), ("80 %", 80.0), (" 0.5% ", 0.5), ("0%", 0.0), ("400 %", 400.0)] {
            assert_eq!(text.parse(), Ok(Percent(percent)), "{text}");
        }
        for text in ["", "%", "-1%", "1e2%", "5 percent", "5%%", ".5%", "inf%", "NaN%"] {
            assert!(text.parse::<Percent>().is_err(), "{text}");
        }
        for (text, meant) in
            [("0.8", "`0.8%`, or a share, `80%`"), ("1", "`1%`, or a share, `100%`"), ("0.57", "`57%`"), ("5", "`5%`")]
        {
            let error = text.parse::<Percent>().expect_err(text).to_string();
            assert!(
                error.starts_with(&format!("`{text}` is not a percentage; write for example `80%`; it could")),
                "{error}"
            );
            assert!(error.contains(meant), "{error}");
            assert_eq!(error.contains("share"), text != "5", "no share is above 1: {error}");
        }
    }

    proptest! {
        #[test]
        fn what_is_printed_is_read(percent in 0.0..1e9f64) {
            prop_assert_eq!(Percent(percent).to_string().parse(), Ok(Percent(percent)));
        }
    }
}
