//! Units as types: integer bits per second, bytes and nanoseconds, and percentages.
//!
//! Each type parses the text that people write (`20 Mbit/s`, `10Gbps`, `4 MiB`, `45 s`, `80%`), prints one spelling of it and
//! serialises as that. There is one parser for each quantity, which files, flags and interfaces share. [`named`] reads keys whose
//! name has the unit (`load_percent`, `start_ns`): a plain number, or such a text.

pub mod named;
mod percent;

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

pub use percent::{Percent, Share};

/// A quantity that could not be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a {what}; write for example `{example}`{advice}")]
pub struct ParseQuantityError {
    /// The text that was refused.
    pub text: String,
    /// What was expected: `rate`, `size`, `duration` or `percentage`.
    pub what: &'static str,
    /// A text that would have been accepted.
    pub example: &'static str,
    /// The spellings that are accepted, and what is wrong with this one where that is known.
    pub advice: String,
}

/// A spelling of a unit and how many base units it stands for.
type Unit = (&'static str, u64);

/// How a quantity is written.
struct Spellings {
    /// Units that are printed: with the largest that leaves an integer.
    printed: &'static [Unit],
    /// Other spellings that are read.
    read: &'static [Unit],
    /// The sentence about them in errors.
    about: &'static str,
}

const RATES: Spellings = Spellings {
    printed: &[("Gbit/s", 1_000_000_000), ("Mbit/s", 1_000_000), ("kbit/s", 1_000), ("bit/s", 1)],
    read: &[
        ("Tbit/s", 1_000_000_000_000),
        ("Tbps", 1_000_000_000_000),
        ("Gbps", 1_000_000_000),
        ("Mbps", 1_000_000),
        ("kbps", 1_000),
        ("bps", 1),
        ("Tb/s", 1_000_000_000_000),
        ("Gb/s", 1_000_000_000),
        ("Mb/s", 1_000_000),
        ("kb/s", 1_000),
        ("b/s", 1),
        ("Tbit", 1_000_000_000_000),
        ("Gbit", 1_000_000_000),
        ("Mbit", 1_000_000),
        ("kbit", 1_000),
        ("T", 1_000_000_000_000),
        ("G", 1_000_000_000),
        ("M", 1_000_000),
        ("k", 1_000),
    ],
    about: "units: bit/s, kbit/s, Mbit/s, Gbit/s, Tbit/s, also as Gbps, Gb/s, Gbit or G",
};

const SIZES: Spellings = Spellings {
    printed: &[
        ("GiB", 1 << 30),
        ("MiB", 1 << 20),
        ("KiB", 1 << 10),
        ("GB", 1_000_000_000),
        ("MB", 1_000_000),
        ("kB", 1_000),
        ("B", 1),
    ],
    read: &[("TiB", 1 << 40), ("TB", 1_000_000_000_000)],
    about: "units: B, kB, MB, GB, TB (powers of 1000), KiB, MiB, GiB, TiB (powers of 1024)",
};

const TIMES: Spellings = Spellings {
    printed: &[("min", 60_000_000_000), ("ms", 1_000_000), ("us", 1_000), ("ns", 1), ("s", 1_000_000_000)],
    // The micro sign and the Greek letter look alike.
    read: &[("\u{b5}s", 1_000), ("\u{3bc}s", 1_000), ("h", 3_600_000_000_000)],
    about: "units: ns, us, ms, s, min, h",
};

impl Spellings {
    /// Reads `NUMBER [space] UNIT`, where NUMBER may have a decimal fraction. The error is what to know beside an example.
    fn parse(&self, text: &str) -> Result<u64, String> {
        let refused = |reason: &str| Err(if reason.is_empty() { self.about.to_owned() } else { reason.to_owned() });
        let Some((number, unit)) = split(text) else { return refused("") };
        let known = self.printed.iter().chain(self.read).find(|(known, _)| *known == unit);
        let Some(&(_, factor)) = known else { return refused(&self.unknown(number.text, unit)) };
        let Some(product) = number.mantissa.checked_mul(u128::from(factor)) else { return refused("it is too large") };
        match (product.is_multiple_of(number.scale), u64::try_from(product / number.scale)) {
            (_, Err(_)) => refused("it is too large"),
            (false, _) => refused(&format!("it is no whole number of {}", self.base())),
            (true, Ok(value)) => Ok(value),
        }
    }

    /// Says what is wrong with a unit that is not known: none at all, or one that could be two.
    fn unknown(&self, number: &str, unit: &str) -> String {
        let about = self.about;
        match unit {
            "" => format!("it has no unit; {about}"),
            // In memory 1024, on wires 1000: whoever writes it has to say which.
            "KB" => format!("it could be `{number} kB` (1000 bytes) or `{number} KiB` (1024)"),
            _ => about.to_owned(),
        }
    }

    fn base(&self) -> &'static str {
        self.printed.iter().find(|(_, factor)| *factor == 1).expect("every table has its base unit").0
    }

    /// Prints with the largest unit that leaves an integer.
    fn print(&self, value: u64, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fits = |unit: &&Unit| value != 0 && value.is_multiple_of(unit.1);
        let (unit, factor) = match self.printed.iter().filter(fits).max_by_key(|(_, factor)| *factor) {
            Some(largest) => *largest,
            None => (self.base(), 1),
        };
        write!(out, "{} {unit}", value / factor)
    }
}

/// A decimal number: `mantissa / scale`, exactly.
#[derive(Clone, Copy)]
struct Decimal<'a> {
    text: &'a str,
    mantissa: u128,
    scale: u128,
}

/// The number at the start of a text and the unit behind it. `None` where no such number begins it, or one of more digits than
/// can be counted with.
fn split(text: &str) -> Option<(Decimal<'_>, &str)> {
    let text = text.trim();
    let end = text.find(|letter: char| !letter.is_ascii_digit() && letter != '.').unwrap_or(text.len());
    let (number, unit) = (&text[..end], text[end..].trim_start());
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() || fraction.contains('.') || (fraction.is_empty() && number.contains('.')) {
        return None;
    }
    let scale = 10u128.checked_pow(u32::try_from(fraction.len()).ok()?)?;
    let mantissa = format!("{whole}{fraction}").parse().ok()?;
    Some((Decimal { text: number, mantissa, scale }, unit))
}

macro_rules! quantity {
    ($(#[$doc:meta])* $name:ident, $spellings:ident, $what:literal, $example:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub u64);

        impl FromStr for $name {
            type Err = ParseQuantityError;
            fn from_str(text: &str) -> Result<Self, Self::Err> {
                $spellings.parse(text).map(Self).map_err(|advice| ParseQuantityError {
                    text: text.to_owned(),
                    what: $what,
                    example: $example,
                    advice: format!("; {advice}"),
                })
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                $spellings.print(self.0, out)
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                named::text(deserializer)
            }
        }

        impl named::Quantity for $name {
            const ABOUT: &'static str = concat!("a ", $what, ", for example `", $example, "`");

            fn whole(self) -> Option<u64> {
                Some(self.0)
            }

            fn example(number: &str) -> String {
                format!("{number} {}", $spellings.base())
            }
        }

        impl schemars::JsonSchema for $name {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!({
                    "type": "string",
                    "description": format!("a {}, for example `{}`; {}", $what, $example, $spellings.about),
                    "pattern": r"^\s*[0-9]+(\.[0-9]+)?\s*[A-Za-z/µμ]+\s*$",
                })
            }
        }
    };
}

quantity!(
    /// A rate in bits per second. A link's rate is a layer-1 rate: preamble, FCS and gap count (24 bytes a frame).
    BitsPerSec, RATES, "rate", "20 Mbit/s"
);
quantity!(
    /// A size in bytes.
    Bytes, SIZES, "size", "4 MiB"
);
quantity!(
    /// A span of time, or a time since the start of a run, in nanoseconds.
    Nanos, TIMES, "duration", "45 s"
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
    use proptest::prelude::*;

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
    fn usual_spellings_are_read() {
        for text in
            ["10G", "10 Gbps", "10Gb/s", "10 Gbit", "10 Gbit/s", "10000M", "0.01T", "0.01 Tbit/s", "10000000 kbps"]
        {
            assert_eq!(text.parse(), Ok(BitsPerSec(10_000_000_000)), "{text}");
        }
        for text in ["100kB", "100 kB", "0.1MB", "100000 B"] {
            assert_eq!(text.parse(), Ok(Bytes(100_000)), "{text}");
        }
        for text in ["90 min", "1.5h", "5400s"] {
            assert_eq!(text.parse(), Ok(Nanos(5_400_000_000_000)), "{text}");
        }
        for text in ["7us", "7 \u{b5}s", "7 \u{3bc}s"] {
            assert_eq!(text.parse(), Ok(Nanos(7_000)), "{text}");
        }
        assert_eq!(("2 TB".parse(), "2 TiB".parse()), (Ok(Bytes(2_000_000_000_000)), Ok(Bytes(2 << 40))));
    }

    #[test]
    fn what_is_not_a_quantity_is_refused() {
        for text in
            ["", "20", "Mbit/s", "-1 Mbit/s", "1. Mbit/s", ".5 Mbit/s", "1e3 bit/s", "0.1 bit/s", "99999999999 Gbit/s"]
        {
            assert!(text.parse::<BitsPerSec>().is_err(), "{text}");
        }
        // Bytes are no bits, a prefix alone says neither, and a small letter is another prefix.
        for text in ["10 GB/s", "10 GB", "10 g", "10 mbit/s", "1.2.3 G", "1 G G", "%", "10 %"] {
            assert!(text.parse::<BitsPerSec>().is_err(), "{text}");
        }
        for text in ["100k", "100 KB", "100 Gbit", "1 m"] {
            assert!(text.parse::<Bytes>().is_err() && text.parse::<Nanos>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_refusal_says_what_is_wrong_and_what_is_accepted() {
        let rate = |text: &str| text.parse::<BitsPerSec>().expect_err(text).to_string();
        let units = "units: bit/s, kbit/s, Mbit/s, Gbit/s, Tbit/s, also as Gbps, Gb/s, Gbit or G";
        assert_eq!(rate("10"), format!("`10` is not a rate; write for example `20 Mbit/s`; it has no unit; {units}"));
        assert_eq!(rate("fast"), format!("`fast` is not a rate; write for example `20 Mbit/s`; {units}"));
        assert!(rate("0.1 bit/s").ends_with("; it is no whole number of bit/s"));
        assert!(rate("99999999999 Gbit/s").ends_with("; it is too large"));
        let size = "100 KB".parse::<Bytes>().expect_err("two sizes").to_string();
        assert!(size.ends_with("; it could be `100 kB` (1000 bytes) or `100 KiB` (1024)"), "{size}");
        assert!("1 m".parse::<Nanos>().expect_err("two times").to_string().ends_with("; units: ns, us, ms, s, min, h"));
    }

    #[test]
    fn no_spelling_stands_twice() {
        for spellings in [RATES, SIZES, TIMES] {
            let mut words: Vec<&str> = spellings.printed.iter().chain(spellings.read).map(|(word, _)| *word).collect();
            words.sort_unstable();
            let all = words.len();
            words.dedup();
            assert_eq!(words.len(), all, "{words:?}");
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

    proptest! {
        #[test]
        fn any_value_survives_printing(value: u64) {
            prop_assert_eq!(BitsPerSec(value).to_string().parse(), Ok(BitsPerSec(value)));
            prop_assert_eq!(Nanos(value).to_string().parse(), Ok(Nanos(value)));
            prop_assert_eq!(Bytes(value).to_string().parse(), Ok(Bytes(value)));
        }

        #[test]
        fn every_spelling_means_its_factor(number in 0u64..10_000, thousandths in 0u64..1000, gap in 0usize..3) {
            for spellings in [RATES, SIZES, TIMES] {
                for (unit, factor) in spellings.printed.iter().chain(spellings.read) {
                    let text = format!("{number}.{thousandths:03}{:gap$}{unit}", "");
                    let exact = u128::from(number * 1000 + thousandths) * u128::from(*factor);
                    let wanted = exact.is_multiple_of(1000).then_some((exact / 1000) as u64);
                    prop_assert_eq!(spellings.parse(&text).ok(), wanted, "{}", text);
                }
            }
        }

        #[test]
        fn any_text_is_read_or_refused(text in "\\PC{0,12}") {
            let _ = (text.parse::<BitsPerSec>(), text.parse::<Bytes>(), text.parse::<Nanos>(), text.parse::<Percent>());
        }
    }
}
