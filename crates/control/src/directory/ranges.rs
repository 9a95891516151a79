//! Which AAs are reserved for which service.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use super::update::Reason;
use weft_wire::block::Block;

/// AA ranges of services. A service that has some has its AAs there and nowhere else; another one has none there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AaRanges {
    /// First and last AA and whose they are, in order; none overlap.
    ranges: Vec<(u32, u32, u32)>,
    of: BTreeMap<u32, Vec<Block>>,
}

/// Two services' ranges have AAs in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("service {service} and service {other} both have {aa}; give each AA to one service")]
pub struct Overlap {
    service: u32,
    other: u32,
    aa: Ipv4Addr,
}

impl AaRanges {
    /// Of services, each with its ranges.
    ///
    /// # Errors
    /// [`Overlap`].
    pub fn new(of: BTreeMap<u32, Vec<Block>>) -> Result<Self, Overlap> {
        let of: BTreeMap<_, _> = of.into_iter().filter(|(_, blocks)| !blocks.is_empty()).collect();
        let range = |block: &Block, service: &u32| (block.network().into(), block.last().into(), *service);
        let mut ranges: Vec<(u32, u32, u32)> =
            of.iter().flat_map(|(service, blocks)| blocks.iter().map(move |block| range(block, service))).collect();
        ranges.sort_unstable();
        for pair in ranges.windows(2) {
            let [(_, end, service), (start, _, other)] = *pair else { continue };
            if start <= end {
                return Err(Overlap { service, other, aa: start.into() });
            }
        }
        Ok(Self { ranges, of })
    }

    /// Whether the service may have the AA.
    ///
    /// # Errors
    /// Why not.
    pub fn check(&self, aa: Ipv4Addr, service: u32) -> Result<(), Reason> {
        match (self.owner(aa), self.of.get(&service)) {
            (Some(owner), _) if owner == service => Ok(()),
            (None, None) => Ok(()),
            (_, Some(blocks)) => {
                let ranges = blocks.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
                Err(Reason::OutsideRanges { service, ranges })
            }
            (Some(_), None) => Err(Reason::Reserved { service }),
        }
    }

    /// Whose range the AA is in.
    fn owner(&self, aa: Ipv4Addr) -> Option<u32> {
        let aa = u32::from(aa);
        let after = self.ranges.partition_point(|(start, ..)| *start <= aa);
        let (_, end, service) = *self.ranges.get(after.checked_sub(1)?)?;
        (aa <= end).then_some(service)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ranges(of: &[(u32, &[&str])]) -> Result<AaRanges, Overlap> {
        let blocks = |texts: &[&str]| texts.iter().map(|text| text.parse().unwrap()).collect();
        AaRanges::new(of.iter().map(|(service, texts)| (*service, blocks(texts))).collect())
    }

    #[test]
    fn a_service_has_its_own_ranges_and_nobody_elses() {
        let ranges = ranges(&[(7, &["20.7.0.0/16", "20.9.0.0/24"]), (8, &["20.8.0.0/16"]), (9, &[])]).unwrap();
        let may = |aa: [u8; 4], service| ranges.check(aa.into(), service).is_ok();
        assert!(may([20, 7, 0, 0], 7) && may([20, 7, 255, 255], 7) && may([20, 9, 0, 1], 7) && may([20, 8, 0, 1], 8));
        assert!(!may([20, 6, 255, 255], 7) && !may([20, 9, 1, 0], 7) && !may([20, 8, 0, 1], 7));
        assert!(may([20, 6, 0, 1], 9) && !may([20, 7, 0, 1], 9) && !may([20, 8, 0, 0], 0));
        let outside = ranges.check([20, 8, 0, 1].into(), 7).unwrap_err().to_string();
        assert!(outside.contains("20.7.0.0/16, 20.9.0.0/24") && !outside.contains("service 8"), "{outside}");
        assert!(AaRanges::default().check([20, 0, 0, 1].into(), 3).is_ok());
    }

    #[test]
    fn an_aa_is_given_once() {
        let overlap = ranges(&[(7, &["20.0.0.0/8"]), (8, &["20.8.0.0/16"])]).unwrap_err().to_string();
        assert!(overlap.contains("service 7 and service 8 both have 20.8.0.0"), "{overlap}");
        assert!(ranges(&[(7, &["20.7.0.0/16", "20.7.1.0/24"])]).is_err(), "nor twice to one");
    }
}
