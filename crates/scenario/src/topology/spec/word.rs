//! A generator with its parameters as one word of a command line: `NAME:KEY=VALUE,KEY=VALUE`, with the keys of TOML.

use serde::de::value::{Error, MapDeserializer, SeqDeserializer};
use serde::de::{Deserializer, IntoDeserializer, Visitor};
use serde::{Deserialize, forward_to_deserialize_any};

use super::{FabricSpec, Generator, RawSpec};

impl FabricSpec {
    /// Reads `fat-tree:k=8,server_rate=10G`; a generator that needs no parameter is written `tree:`. The error says what is known.
    pub fn parse_word(word: &str) -> Result<Self, String> {
        let (name, parameters) = word.split_once(':').unwrap_or((word, ""));
        let Some(generator) = Generator::ALL.into_iter().find(|generator| generator.name() == name) else {
            let known: Vec<&str> = Generator::ALL.into_iter().map(Generator::name).collect();
            return Err(format!("there is no generator `{name}`; there are {}", known.join(", ")));
        };
        let mut pairs = vec![("generator", Value::Text(name))];
        for parameter in split(parameters) {
            let (key, value) = parameter.split_once('=').ok_or_else(|| {
                format!("`{parameter}` is no parameter; write KEY=VALUE, for example `{}`", generator.example())
            })?;
            let (key, value) = (key.trim(), value.trim());
            if !generator.keys().contains(&key) {
                let known = generator.keys().join(", ");
                return Err(format!("`{key}` has no effect on the generator {name}; it takes {known}"));
            }
            if pairs.iter().any(|(known, _)| *known == key) {
                return Err(format!("`{key}` is there twice"));
            }
            let read = Value::read(value).and_then(|value| Ok((value.alone(key)?, value)));
            let (_, value) = read.map_err(|error| format!("{key}={value}: {error}"))?;
            pairs.push((key, value));
        }
        let raw = RawSpec::deserialize(MapDeserializer::<_, Error>::new(pairs.into_iter()));
        let spec = raw.map_err(|error| error.to_string()).and_then(Self::try_from);
        spec.map_err(|error| format!("{error}; for example `{}`", generator.example()))
    }
}

/// The parts between commas that are in no brackets.
fn split(parameters: &str) -> Vec<&str> {
    let mut depth = 0usize;
    let parts = parameters.split(|letter| {
        match letter {
            '[' => depth += 1,
            ']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        letter == ',' && depth == 0
    });
    parts.filter(|part| !part.is_empty()).collect()
}

/// What stands behind an equals sign.
#[derive(Clone)]
enum Value<'a> {
    Number(u64),
    Text(&'a str),
    List(Vec<u64>),
}

impl<'a> Value<'a> {
    fn read(text: &'a str) -> Result<Self, String> {
        if let Some(inner) = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')) {
            let number = |part: &str| part.trim().parse().map_err(|_| format!("`{part}` is not a number"));
            return inner.split(',').map(number).collect::<Result<_, _>>().map(Self::List);
        }
        Ok(text.parse().map_or(Self::Text(text), Self::Number))
    }

    /// Whether a key takes the value, looked at by itself, so that an error names the key.
    fn alone(&self, key: &str) -> Result<(), String> {
        let pair = std::iter::once((key, self.clone()));
        RawSpec::deserialize(MapDeserializer::<_, Error>::new(pair)).map(drop).map_err(|error| error.to_string())
    }
}

impl<'de> IntoDeserializer<'de> for Value<'de> {
    type Deserializer = Self;
    fn into_deserializer(self) -> Self {
        self
    }
}

impl<'de> Deserializer<'de> for Value<'de> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self {
            Self::Number(number) => visitor.visit_u64(number),
            Self::Text(text) => visitor.visit_borrowed_str(text),
            Self::List(numbers) => visitor.visit_seq(SeqDeserializer::new(numbers.into_iter())),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_some(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        match self {
            Self::Text(text) => text.into_deserializer().deserialize_enum(name, variants, visitor),
            other => other.deserialize_any(visitor),
        }
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct newtype_struct seq
        tuple tuple_struct map struct identifier ignored_any
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_what_toml_says() {
        for (word, toml) in [
            ("fat-tree:k=8", "generator = 'fat-tree'\nk = 8"),
            (
                "fat-tree:k=8,server_rate=10G,link_delay=1us",
                "generator = 'fat-tree'\nk = 8\nserver_rate = '10 Gbit/s'\nlink_delay = '1 us'",
            ),
            (
                "vl2-testbed:servers_per_tor=[1,2,3,4],core_buffer=1 MB",
                "generator = 'vl2-testbed'\nservers_per_tor = [1, 2, 3, 4]\ncore_buffer = '1 MB'",
            ),
            ("vl2-testbed:servers_per_tor=5", "generator = 'vl2-testbed'\nservers_per_tor = 5"),
            ("tree:", "generator = 'tree'"),
            ("tree", "generator = 'tree'"),
        ] {
            assert_eq!(FabricSpec::parse_word(word), toml::from_str(toml).map_err(|error| error.to_string()), "{word}");
        }
    }

    #[test]
    fn every_generator_has_an_example_that_builds_and_only_keys_that_toml_knows() {
        for generator in Generator::ALL {
            let name = generator.name();
            let spec = FabricSpec::parse_word(generator.example()).expect(name);
            spec.build(&|_| Err("no file".to_owned())).expect(name);
            let named: FabricSpec =
                toml::from_str(&format!("{}\ngenerator = '{}'", spec_keys(generator), generator.name()))
                    .unwrap_or_else(|error| panic!("{}: {error}", generator.name()));
            assert!(!matches!(named, FabricSpec::File(_)));
        }
    }

    /// All keys of a generator, with values that it takes.
    fn spec_keys(generator: Generator) -> String {
        let value = |key: &str| match key {
            _ if key.ends_with("_rate") => "'1 Gbit/s'",
            _ if key.ends_with("_buffer") => "'1 MB'",
            "link_delay" => "'1 us'",
            _ => "4",
        };
        let keys = generator.keys().iter().map(|key| format!("{key} = {}", value(key)));
        keys.collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn what_is_not_known_is_refused_with_what_there_is() {
        for (word, message) in [
            ("ring:n=3", "there is no generator `ring`; there are vl2-testbed, vl2-clos, leaf-spine, fat-tree, "),
            ("fat-tree:spines=2", "`spines` has no effect on the generator fat-tree; it takes k, servers_per_tor, "),
            ("fat-tree:", "the generator fat-tree needs `k`, the ports of a switch; for example `fat-tree:k=4`"),
            ("fat-tree:8", "`8` is no parameter; write KEY=VALUE, for example `fat-tree:k=4`"),
            ("fat-tree:k=four", "k=four: invalid type: string \"four\", expected u32"),
            ("fat-tree:k=4,k=6", "`k` is there twice"),
            (
                "fat-tree:k=4,server_rate=10",
                "server_rate=10: `10` is not a rate; write for example `20 Mbit/s`; it has no unit",
            ),
            ("fat-tree:k=4,server_rate=fast", "server_rate=fast: `fast` is not a rate"),
            ("vl2-testbed:servers_per_tor=[1,2]", "a list of four for vl2-testbed"),
            ("vl2-testbed:servers_per_tor=[1,x,2,3]", "servers_per_tor=[1,x,2,3]: `x` is not a number"),
            ("fat-tree:file=x", "`file` has no effect on the generator fat-tree"),
        ] {
            let error = FabricSpec::parse_word(word).expect_err(word);
            assert!(error.contains(message), "{word}: {error}");
        }
    }
}
