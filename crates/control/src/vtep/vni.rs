//! A VXLAN network identifier, and ranges of them as operators write them.

use std::fmt;
use std::str::FromStr;

use weft_wire::vxlan::VNI_MAX;

/// A VXLAN network identifier from 1 to 2^24 - 1 (RFC 7348 section 5). 0 is valid on the wire, but some switches treat it as
/// "none", so that nobody means it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Vni(u32);

/// What is no VNI, or no range of them.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is no VNI: {why}; write a number from 1 to 16777215, or a range as 100-199")]
pub struct VniError {
    text: String,
    why: &'static str,
}

impl Vni {
    /// The VNI with this number.
    ///
    /// # Errors
    /// 0 and everything above 2^24 - 1.
    pub fn new(number: u32) -> Result<Self, VniError> {
        let fault = |why| VniError { text: number.to_string(), why };
        match number {
            0 => Err(fault("0 is reserved")),
            1..=VNI_MAX => Ok(Self(number)),
            _ => Err(fault("it has more than 24 bits")),
        }
    }

    /// Its number, 1 to 2^24 - 1.
    pub fn get(self) -> u32 {
        self.0
    }
}

impl fmt::Display for Vni {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(out)
    }
}

impl FromStr for Vni {
    type Err = VniError;

    fn from_str(text: &str) -> Result<Self, VniError> {
        let number = text.parse().map_err(|_| VniError { text: text.to_owned(), why: "it is no number of 32 bits" })?;
        Self::new(number)
    }
}

/// VNIs that follow each other: `100`, or `100-199` with both ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VniRange {
    first: Vni,
    last: Vni,
}

impl VniRange {
    /// Its VNIs, in order.
    pub fn iter(self) -> impl Iterator<Item = Vni> {
        (self.first.0..=self.last.0).map(Vni)
    }

    /// Whether this VNI is one of them.
    pub fn contains(self, vni: Vni) -> bool {
        (self.first..=self.last).contains(&vni)
    }

    /// The last one.
    pub fn last(self) -> Vni {
        self.last
    }

    /// From the same first one to this one, which is not before it.
    pub(super) fn up_to(self, last: Vni) -> Self {
        Self { last, ..self }
    }

    /// How many there are; never 0.
    pub fn count(self) -> usize {
        (self.last.0 - self.first.0) as usize + 1
    }
}

impl From<Vni> for VniRange {
    fn from(vni: Vni) -> Self {
        Self { first: vni, last: vni }
    }
}

impl FromStr for VniRange {
    type Err = VniError;

    fn from_str(text: &str) -> Result<Self, VniError> {
        let Some((first, last)) = text.split_once('-') else { return text.parse().map(Vni::into) };
        let (first, last) = (first.trim().parse()?, last.trim().parse()?);
        if first > last {
            return Err(VniError { text: text.to_owned(), why: "the range ends before it begins" });
        }
        Ok(Self { first, last })
    }
}

impl fmt::Display for VniRange {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.first == self.last { self.first.fmt(out) } else { write!(out, "{}-{}", self.first, self.last) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ends_of_the_range_are_vnis_and_their_neighbours_are_not() {
        assert_eq!(Vni::new(1).unwrap().get(), 1);
        assert_eq!("16777215".parse::<Vni>().unwrap().get(), (1 << 24) - 1);
        for (text, why) in
            [("0", "0 is reserved"), ("16777216", "more than 24 bits"), ("4294967296", "no number"), ("x", "no number")]
        {
            let error = text.parse::<Vni>().unwrap_err().to_string();
            assert!(error.contains(why) && error.contains(text), "{error}");
        }
    }

    #[test]
    fn ranges_have_both_ends() {
        let range: VniRange = "7-9".parse().unwrap();
        assert_eq!(range.iter().map(Vni::get).collect::<Vec<_>>(), [7, 8, 9]);
        assert_eq!((range.count(), range.to_string()), (3, "7-9".to_owned()));
        assert_eq!("5".parse::<VniRange>().unwrap().to_string(), "5");
        for (text, why) in [("9-7", "ends before"), ("0-7", "reserved"), ("1-", "no number"), ("-1", "no number")] {
            let error = text.parse::<VniRange>().unwrap_err().to_string();
            assert!(error.contains(why), "{text}: {error}");
        }
    }
}
