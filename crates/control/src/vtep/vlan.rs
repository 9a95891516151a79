//! VLANs of a trunk and their VNIs as operators write them: `10=5010`, or `100-199=10100-10199` for as many of both.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use weft_wire::vlan::VlanId;

use super::vni::{Vni, VniRange};

/// VLANs that follow each other: `100`, or `100-199` with both ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VlanRange {
    first: VlanId,
    last: VlanId,
}

/// VLANs that follow each other, and the VNI of each: VNIs follow each other too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VlanVnis {
    vlans: VlanRange,
    vnis: VniRange,
}

/// What are no VLANs, or no VNIs of them.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{text}`: {why}")]
pub struct VlanVnisError {
    text: String,
    why: String,
}

impl VlanRange {
    /// Its VLANs, in order.
    pub fn iter(self) -> impl Iterator<Item = VlanId> {
        (self.first.get()..=self.last.get()).filter_map(VlanId::new)
    }
}

impl VlanVnis {
    /// Each VLAN with its VNI, in order.
    pub fn iter(self) -> impl Iterator<Item = (VlanId, Vni)> {
        self.vlans.iter().zip(self.vnis.iter())
    }

    /// In as few ranges as there can be.
    pub fn of(vlans: &BTreeMap<VlanId, Vni>) -> Vec<Self> {
        let mut ranges: Vec<Self> = Vec::new();
        for (vlan, vni) in vlans {
            let follows =
                |range: &Self| range.vlans.last.get() + 1 == vlan.get() && range.vnis.last().get() + 1 == vni.get();
            match ranges.last_mut().filter(|range| follows(range)) {
                Some(range) => (range.vlans.last, range.vnis) = (*vlan, range.vnis.up_to(*vni)),
                None => ranges.push(Self { vlans: VlanRange { first: *vlan, last: *vlan }, vnis: (*vni).into() }),
            }
        }
        ranges
    }
}

impl FromStr for VlanRange {
    type Err = VlanVnisError;

    fn from_str(text: &str) -> Result<Self, VlanVnisError> {
        let fault = |why: String| VlanVnisError { text: text.to_owned(), why };
        let vlan = |part: &str| part.trim().parse::<VlanId>().map_err(|error| fault(error.to_string()));
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        let (first, last) = (vlan(first)?, vlan(last)?);
        if first > last {
            return Err(fault("the range of VLANs ends before it begins".to_owned()));
        }
        Ok(Self { first, last })
    }
}

impl FromStr for VlanVnis {
    type Err = VlanVnisError;

    fn from_str(text: &str) -> Result<Self, VlanVnisError> {
        let fault = |why: String| VlanVnisError { text: text.to_owned(), why };
        let Some((vlans, vnis)) = text.split_once('=') else {
            return Err(fault("names no VNI; write VLAN=VNI, as 10=5010 or 100-199=10100-10199".to_owned()));
        };
        let vlans: VlanRange = vlans.trim().parse().map_err(|error: VlanVnisError| fault(error.why))?;
        let vnis: VniRange = vnis.trim().parse().map_err(|error: super::VniError| fault(error.to_string()))?;
        let (wanted, given) = (vlans.iter().count(), vnis.count());
        if wanted != given {
            let why = format!("{wanted} VLANs and {given} VNIs; give each VLAN its own, as 100-199=10100-10199");
            return Err(fault(why));
        }
        Ok(Self { vlans, vnis })
    }
}

impl fmt::Display for VlanRange {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.first == self.last { self.first.fmt(out) } else { write!(out, "{}-{}", self.first, self.last) }
    }
}

impl fmt::Display for VlanVnis {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}={}", self.vlans, self.vnis)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_come_back_as_they_were_written() {
        let texts = ["1=5", "10-12=5010-5012", "13=5012", "20=5013", "4094=16777215"];
        let mut vlans = BTreeMap::new();
        for text in texts {
            vlans.extend(text.parse::<VlanVnis>().unwrap().iter());
        }
        assert_eq!(vlans.len(), 7);
        assert_eq!(vlans[&VlanId::new(11).unwrap()].get(), 5011);
        assert_eq!(VlanVnis::of(&vlans).iter().map(ToString::to_string).collect::<Vec<_>>(), texts);
    }

    #[test]
    fn what_is_no_mapping_says_why() {
        for (text, why) in [
            ("10", "names no VNI"),
            ("10-19=5010", "10 VLANs and 1 VNIs"),
            ("0=1", "`0` is no VLAN ID"),
            ("4095=1", "`4095` is no VLAN ID"),
            ("9-7=1-3", "ends before it begins"),
            ("1=0", "reserved"),
            ("1=x", "no number"),
        ] {
            let error = text.parse::<VlanVnis>().unwrap_err().to_string();
            assert!(error.contains(why) && error.contains(text), "{text}: {error}");
        }
    }
}
