//! Which learned entries go when (RFC 7348 leaves the time open; bridges take 300 s).
//!
//! The data path stamps an entry whenever a frame comes from its station. Every now and then all are looked at; an entry
//! goes when its stamp is older than its segment's age. So an entry lives between its age and a quarter more.

use super::settings::{Entry, Segment, Settings};
use super::vni::Vni;
use crate::NS_PER_S;
use weft_wire::ethernet::MacAddress;

/// Shortest and longest time between two looks.
const PERIOD_NS: (u64, u64) = (NS_PER_S / 4, 60 * NS_PER_S);

/// When entries are looked at again: a quarter of the shortest age; `None` when nothing ages.
pub fn period_ns(settings: &Settings) -> Option<u64> {
    let ages = settings.vnis.values().filter(|segment| segment.learn && segment.age_s > 0);
    let shortest_s = ages.map(|segment| segment.age_s).min()?;
    Some((u64::from(shortest_s) * NS_PER_S / 4).clamp(PERIOD_NS.0, PERIOD_NS.1))
}

/// Whether an entry that was learned goes: its station has been silent for longer than its segment's age.
pub fn is_over(segment: &Segment, silent_ns: u64) -> bool {
    segment.age_s > 0 && silent_ns > u64::from(segment.age_s) * NS_PER_S
}

/// The entries that go, of all that were learned, each with how long its station has been silent. Entries of segments that
/// are gone go as well; those that are configured never do.
pub fn over(
    settings: &Settings,
    learned: impl IntoIterator<Item = (Vni, MacAddress, u64)>,
) -> impl Iterator<Item = (Vni, MacAddress)> {
    let configured = |vni: Vni, mac: MacAddress| -> Option<&Entry> { settings.entries.get(&(vni, mac)) };
    learned
        .into_iter()
        .filter(move |(vni, mac, silent_ns)| {
            let old = settings.vnis.get(vni).is_none_or(|segment| is_over(segment, *silent_ns));
            old && configured(*vni, *mac).is_none()
        })
        .map(|(vni, mac, _)| (vni, mac))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vtep::{To, Vni};

    fn vni(number: u32) -> Vni {
        Vni::new(number).unwrap()
    }

    fn mac(k: u8) -> MacAddress {
        MacAddress([2, 0, 0, 0, 0, k])
    }

    fn settings(ages_s: &[u32]) -> Settings {
        let mut settings = Settings::default();
        for (k, age_s) in ages_s.iter().enumerate() {
            settings.vnis.insert(vni(k as u32 + 1), Segment { age_s: *age_s, ..Segment::default() });
        }
        settings
    }

    #[test]
    fn entries_go_after_their_segments_age_and_not_before() {
        let mut settings = settings(&[10, 300, 0]);
        settings.entries.insert((vni(1), mac(9)), Entry { to: To::Port("vm".to_owned()), ip: None });
        let s = NS_PER_S;
        let learned = [
            (vni(1), mac(1), 10 * s),
            (vni(1), mac(2), 10 * s + 1),
            (vni(1), mac(9), 1000 * s),
            (vni(2), mac(2), 299 * s),
            (vni(3), mac(3), u64::MAX),
            (vni(4), mac(4), 0),
        ];
        let gone: Vec<_> = over(&settings, learned).collect();
        assert_eq!(gone, [(vni(1), mac(2)), (vni(4), mac(4))]);
    }

    #[test]
    fn the_shortest_age_says_how_often_entries_are_looked_at() {
        assert_eq!(period_ns(&settings(&[300, 40, 0])), Some(10 * NS_PER_S));
        assert_eq!(period_ns(&settings(&[1])), Some(NS_PER_S / 4));
        assert_eq!(period_ns(&settings(&[86_400])), Some(60 * NS_PER_S));
        assert_eq!(period_ns(&settings(&[0])), None);
        assert_eq!(period_ns(&settings(&[])), None);
    }
}
