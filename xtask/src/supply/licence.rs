//! Expressions of SPDX (annex D): names joined by `AND`, `OR` and brackets. Older manifests write `/` for `OR`.

/// Whether one may have it with these licences alone. `X WITH Y` is a name of its own.
///
/// # Errors
/// What is no expression.
pub(super) fn holds(expression: &str, allowed: &dyn Fn(&str) -> bool) -> Result<bool, String> {
    let spaced = expression.replace('(', " ( ").replace(')', " ) ").replace('/', " OR ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut parser = Parser { words: &words, allowed };
    let holds = parser.any()?;
    match parser.words.first() {
        None => Ok(holds),
        Some(word) => Err(format!("`{word}` is out of place")),
    }
}

struct Parser<'a> {
    words: &'a [&'a str],
    allowed: &'a dyn Fn(&str) -> bool,
}

impl Parser<'_> {
    /// Takes the next word if it is this one.
    fn takes(&mut self, word: &str) -> bool {
        let is_it = self.words.first() == Some(&word);
        if is_it {
            self.words = &self.words[1..];
        }
        is_it
    }

    fn any(&mut self) -> Result<bool, String> {
        let mut holds = self.all()?;
        while self.takes("OR") {
            holds |= self.all()?;
        }
        Ok(holds)
    }

    fn all(&mut self) -> Result<bool, String> {
        let mut holds = self.one()?;
        while self.takes("AND") {
            holds &= self.one()?;
        }
        Ok(holds)
    }

    fn one(&mut self) -> Result<bool, String> {
        if self.takes("(") {
            let holds = self.any()?;
            return if self.takes(")") { Ok(holds) } else { Err("a bracket is not closed".to_owned()) };
        }
        let name = match self.words {
            [name, rest @ ..] if !["AND", "OR", "WITH", ")"].contains(name) => {
                self.words = rest;
                (*name).to_owned()
            }
            _ => return Err("a licence is missing".to_owned()),
        };
        if !self.takes("WITH") {
            return Ok((self.allowed)(&name));
        }
        let [exception, rest @ ..] = self.words else { return Err("an exception is missing".to_owned()) };
        self.words = rest;
        Ok((self.allowed)(&format!("{name} WITH {exception}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_are_read_as_they_are_meant() {
        let of = |expression: &str| holds(expression, &|name| ["MIT", "ISC", "A WITH B"].contains(&name));
        for (expression, expected) in [
            ("MIT", true),
            ("GPL-3.0 OR MIT", true),
            ("Apache-2.0/MIT", true),
            ("MIT AND GPL-3.0", false),
            ("MIT AND ISC", true),
            ("(GPL-3.0 OR MIT) AND ISC", true),
            ("GPL-3.0 OR MIT AND X", false),
            ("A WITH B OR X", true),
            ("A", false),
        ] {
            assert_eq!(of(expression), Ok(expected), "{expression}");
        }
        for bad in ["", "MIT OR", "(MIT", "MIT ISC", "MIT)", "A WITH"] {
            assert!(of(bad).is_err(), "{bad}");
        }
    }
}
