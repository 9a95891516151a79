//! Where stations are: what the programs learned, and what they are told (RFC 6325 section 4.8).

use std::collections::BTreeMap;

use weft_wire::ethernet::MacAddress;

use super::abi::{OBSERVED, TRILL_ALL_FAR, TRILL_GATEWAY, TRILL_PORTS, TrillPlace};
use super::maps::RBridgeMaps;
use crate::abi::MacKey;
use crate::error::DatapathError;

/// A station in a VLAN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Station {
    pub mac: MacAddress,
    pub vlan: u16,
    pub place: Place,
    /// How sure that is: [`OBSERVED`] from a frame, up to [`STATIC`](super::abi::STATIC). Programs replace only what is
    /// observed.
    pub confidence: u8,
    /// When a frame of it was last seen, seconds of [`RBridgeMaps::tick`]'s clock.
    pub seen_s: u32,
}

/// Where a station is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// Behind our port of this number.
    Port(u8),
    /// Behind the RBridge with this nickname.
    RBridge(u16),
    /// It is the inter-VLAN gateway, which is everywhere.
    Gateway,
}

impl RBridgeMaps {
    /// All stations, in no order.
    ///
    /// # Errors
    /// [`DatapathError::Map`].
    pub fn stations(&self) -> Result<Vec<Station>, DatapathError> {
        let all = self.stations.all::<MacKey, TrillPlace>()?;
        Ok(all.into_iter().map(|(key, place)| station_of(key, place)).collect())
    }

    /// Sets where a station is, whatever was known before.
    ///
    /// # Errors
    /// [`DatapathError::Map`], for example when the table is full.
    pub fn set_station(&self, station: &Station) -> Result<(), DatapathError> {
        let (nickname, port) = match station.place {
            Place::Port(port) => (0, port),
            Place::RBridge(nickname) => (nickname, 0),
            Place::Gateway => (TRILL_GATEWAY, 0),
        };
        let place = TrillPlace { nickname, port, confidence: station.confidence, seen_s: station.seen_s };
        let key = key_of(station.mac, station.vlan);
        let before: Option<TrillPlace> = self.stations.get(&key)?;
        self.stations.put(&key, &place)?;
        for place in before.into_iter().flat_map(|before| learned_behind(&station_of(key, before))) {
            let went: u32 = self.forgotten.get(&place)?.unwrap_or_default();
            self.forgotten.put(&place, &went.wrapping_add(1))?;
        }
        self.forget_what_was_found()
    }

    /// Forgets the stations that `which` chooses, and says how many: those of a port that went down, of an RBridge that
    /// is gone, of a VLAN for which somebody else is appointed.
    ///
    /// # Errors
    /// [`DatapathError::Map`].
    pub fn forget(&self, which: impl Fn(&Station) -> bool) -> Result<usize, DatapathError> {
        let mut forgotten = 0;
        let mut learned: BTreeMap<u32, u32> = self.learned.all()?.into_iter().collect();
        for station in self.stations()? {
            if which(&station) {
                self.stations.delete(&key_of(station.mac, station.vlan))?;
                forgotten += 1;
            } else {
                for place in learned_behind(&station) {
                    learned.entry(place).and_modify(|count| *count = count.wrapping_sub(1));
                }
            }
        }
        // Those that came and are not there have gone. Whatever was miscounted since the last time is put right.
        self.forgotten.put_all::<u32, u32>(&learned.into_iter().collect::<Vec<_>>())?;
        if forgotten > 0 {
            self.forget_what_was_learnt()?;
            self.forget_what_was_found()?;
        }
        Ok(forgotten)
    }

    /// Forgets what was observed and not seen for `age_s` (RFC 6325 section 4.8.3: 300), and says how many.
    ///
    /// # Errors
    /// [`DatapathError::Map`].
    pub fn age(&self, age_s: u32) -> Result<usize, DatapathError> {
        let now_s = self.now_s()?;
        self.forget(|station| station.confidence == OBSERVED && now_s.saturating_sub(station.seen_s) > age_s)
    }
}

/// Where a station that was learned is counted: at its port, or at its RBridge and at all of them together.
fn learned_behind(station: &Station) -> Vec<u32> {
    match station.place {
        _ if station.confidence > OBSERVED => Vec::new(),
        Place::Port(port) => vec![port.into()],
        Place::RBridge(nickname) => vec![TRILL_PORTS + u32::from(nickname), TRILL_ALL_FAR],
        Place::Gateway => Vec::new(),
    }
}

fn key_of(mac: MacAddress, vlan: u16) -> MacKey {
    MacKey { mac: mac.0, vlan }
}

fn station_of(key: MacKey, place: TrillPlace) -> Station {
    Station {
        mac: MacAddress(key.mac),
        vlan: key.vlan,
        place: match place.nickname {
            0 => Place::Port(place.port),
            TRILL_GATEWAY => Place::Gateway,
            nickname => Place::RBridge(nickname),
        },
        confidence: place.confidence,
        seen_s: place.seen_s,
    }
}
