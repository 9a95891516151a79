//! What the tables of a configuration mean, and the tables that mean some settings.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

use weft_control::vtep::{
    Entry, Flood, Port, Segment, Settings, Tagged, To, VlanRange, VlanVnis, Vni, VniRange, taken, vlan_taken,
};
use weft_wire::ethernet::MacAddress;
use weft_wire::vlan::VlanId;

use super::config::{EntryTable, FloodText, PortTable, SegmentTable, TaggedText, VniIds, VtepConfig};
use crate::error::NodeError;
use crate::settings_file::check_interface;

impl VtepConfig {
    /// What it wants of a running VTEP.
    ///
    /// # Errors
    /// [`NodeError::Config`] for what is wrong in itself: no VNI, two segments on a port, an entry without a place.
    pub fn settings(&self) -> Result<Settings, NodeError> {
        if self.segment.id.is_some() {
            return Err(NodeError::config("segment", "has an `id`; put segments into [[vni]] tables"));
        }
        let mut settings = Settings { peers: self.peers.clone(), ..Settings::default() };
        for table in &self.vni {
            let segment = table.segment(&self.segment)?;
            for vni in table.vnis()?.iter() {
                if settings.vnis.insert(vni, segment.clone()).is_some() {
                    return Err(NodeError::config("vni", format!("VNI {vni} is named twice; merge its tables")));
                }
            }
        }
        for table in &self.port {
            let (name, port) = table.port()?;
            let Some(before) = settings.ports.insert(name.clone(), port.clone()) else { continue };
            return Err(match (before.vni, port.vni) {
                (Some(before), Some(after)) => taken(&name, before, after).into(),
                _ => NodeError::config("port", format!("`{name}` is named twice; merge its tables")),
            });
        }
        for table in &self.entry {
            let (vni, mac, entry) = table.entry()?;
            if settings.entries.insert((vni, mac), entry).is_some() {
                return Err(NodeError::config("entry", format!("{mac} in VNI {vni} is named twice; keep one of them")));
            }
        }
        Ok(settings)
    }

    /// The same VTEP with these settings: what is shown as its configuration.
    pub fn with_settings(&self, settings: &Settings) -> Self {
        let mut config = self.clone();
        config.segment = SegmentTable::default();
        config.peers.clone_from(&settings.peers);
        config.vni = segment_tables(&settings.vnis);
        config.port = settings.ports.iter().map(|(name, port)| PortTable::of(name, port)).collect();
        config.entry = settings.entries.iter().map(|((vni, mac), entry)| EntryTable::of(*vni, *mac, entry)).collect();
        config
    }
}

/// A number of a file as a VNI.
fn vni(number: i64) -> Result<Vni, NodeError> {
    let narrow = u32::try_from(number)
        .map_err(|_| NodeError::config("vni", format!("`{number}` is no VNI; write a number from 1 to 16777215")))?;
    Vni::new(narrow).map_err(|error| NodeError::config("vni", error.to_string()))
}

impl SegmentTable {
    /// The VNIs that it is about.
    pub(super) fn vnis(&self) -> Result<VniRange, NodeError> {
        match &self.id {
            None => Err(NodeError::config("vni", "a [[vni]] table has no `id`; write id = 100 or id = \"100-199\"")),
            Some(VniIds::One(number)) => vni(*number).map(VniRange::from),
            Some(VniIds::Range(text)) => text.parse().map_err(|error| NodeError::config("vni", format!("{error}"))),
        }
    }

    /// How they forward; what is missing here is as in `defaults`, and what is missing there as RFC 7348 has it.
    pub(super) fn segment(&self, defaults: &Self) -> Result<Segment, NodeError> {
        let usual = Segment::default();
        let flood = match self.flood.as_ref().or(defaults.flood.as_ref()) {
            None => usual.flood,
            Some(text) => text.flood()?,
        };
        Ok(Segment {
            flood,
            members: self.members.clone().or_else(|| defaults.members.clone()),
            learn: self.learn.or(defaults.learn).unwrap_or(usual.learn),
            age_s: self.age_s.or(defaults.age_s).unwrap_or(usual.age_s),
            answer_arp: self.answer_arp.or(defaults.answer_arp).unwrap_or(usual.answer_arp),
            directory: self.directory.or(defaults.directory).unwrap_or(usual.directory),
            flood_misses: self.flood_misses.or(defaults.flood_misses).unwrap_or(usual.flood_misses),
            unknown_per_s: self.unknown_per_s.or(defaults.unknown_per_s).or(usual.unknown_per_s),
            broadcast_per_s: self.broadcast_per_s.or(defaults.broadcast_per_s).or(usual.broadcast_per_s),
        })
    }

    fn of(first: Vni, last: Vni, segment: &Segment) -> Self {
        let id = if first == last { VniIds::One(first.get().into()) } else { VniIds::Range(format!("{first}-{last}")) };
        Self {
            id: Some(id),
            flood: Some(FloodText::of(&segment.flood)),
            members: segment.members.clone(),
            learn: Some(segment.learn),
            age_s: Some(segment.age_s),
            answer_arp: Some(segment.answer_arp),
            directory: Some(segment.directory),
            flood_misses: Some(segment.flood_misses),
            unknown_per_s: segment.unknown_per_s,
            broadcast_per_s: segment.broadcast_per_s,
        }
    }
}

/// Segments that follow each other and are alike share a table.
fn segment_tables(vnis: &BTreeMap<Vni, Segment>) -> Vec<SegmentTable> {
    let mut tables = Vec::new();
    let mut run: Option<(Vni, Vni, &Segment)> = None;
    for (vni, segment) in vnis {
        run = Some(match run {
            Some((first, last, alike)) if last.get() + 1 == vni.get() && alike == segment => (first, *vni, alike),
            before => {
                tables.extend(before.map(|(first, last, segment)| SegmentTable::of(first, last, segment)));
                (*vni, *vni, segment)
            }
        });
    }
    tables.extend(run.map(|(first, last, segment)| SegmentTable::of(first, last, segment)));
    tables
}

impl FloodText {
    /// From a word on the command line: `peers`, `nowhere`, a group, or peers with commas.
    ///
    /// # Errors
    /// A text that is none of them.
    pub fn parse(text: &str) -> Result<Self, String> {
        if !text.contains(',') && text.parse::<Ipv4Addr>().is_ok_and(|address| !address.is_multicast()) {
            return Self::parse(&format!("{text},"));
        }
        if !text.contains(',') {
            let word = Self::Word(text.to_owned());
            return word.flood().map(|_| word).map_err(|error| error.to_string());
        }
        let peers = text.split(',').filter(|part| !part.is_empty());
        let list: Result<_, _> = peers.map(|part| part.trim().parse::<Ipv4Addr>()).collect();
        list.map(Self::List).map_err(|_| format!("`{text}` is no list of IPv4 addresses"))
    }

    fn flood(&self) -> Result<Flood, NodeError> {
        match self {
            Self::List(list) => Ok(Flood::List(list.clone())),
            Self::Word(word) if word == "peers" => Ok(Flood::Peers),
            Self::Word(word) if word == "nowhere" => Ok(Flood::Nowhere),
            Self::Word(word) => word.parse().map(Flood::Group).map_err(|_| {
                let why = format!("`{word}` is not \"peers\", \"nowhere\", a multicast group or a list of peers");
                NodeError::config("flood", why)
            }),
        }
    }

    fn of(flood: &Flood) -> Self {
        match flood {
            Flood::Peers => Self::Word("peers".to_owned()),
            Flood::Nowhere => Self::Word("nowhere".to_owned()),
            Flood::Group(group) => Self::Word(group.to_string()),
            Flood::List(list) => Self::List(list.clone()),
        }
    }
}

impl PortTable {
    pub(crate) fn port(&self) -> Result<(String, Port), NodeError> {
        check_interface("port", &self.interface)?;
        let tagged = match self.tagged {
            TaggedText::Drop => Tagged::Drop,
            TaggedText::Keep => Tagged::Keep,
        };
        let mut port = Port { vni: self.vni.map(vni).transpose()?, vlans: BTreeMap::new(), tagged };
        for text in &self.vlans {
            let range: VlanVnis = text.parse().map_err(|error| self.fault(&error))?;
            for (vlan, vni) in range.iter() {
                if let Some(before) = port.vlans.insert(vlan, vni) {
                    return Err(vlan_taken(&self.interface, vlan, before, vni).into());
                }
            }
        }
        Ok((self.interface.clone(), port))
    }

    /// VLANs alone, which name what is to be removed: `10` or `100-199`.
    pub(super) fn only_vlans(&self) -> Result<BTreeSet<VlanId>, NodeError> {
        let mut vlans = BTreeSet::new();
        for text in &self.vlans {
            vlans.extend(text.parse::<VlanRange>().map_err(|error| self.fault(&error))?.iter());
        }
        Ok(vlans)
    }

    fn fault(&self, error: &weft_control::vtep::VlanVnisError) -> NodeError {
        NodeError::config("port", format!("`{}`: vlans: {error}", self.interface))
    }

    fn of(name: &str, port: &Port) -> Self {
        let tagged = if port.tagged == Tagged::Keep { TaggedText::Keep } else { TaggedText::Drop };
        let vlans = VlanVnis::of(&port.vlans).iter().map(ToString::to_string).collect();
        Self { interface: name.to_owned(), vni: port.vni.map(|vni| vni.get().into()), vlans, tagged }
    }
}

impl EntryTable {
    pub(super) fn entry(&self) -> Result<(Vni, MacAddress, Entry), NodeError> {
        let (vni, mac) = self.key()?;
        let to = match (&self.peer, &self.port) {
            (Some(peer), None) if self.vlan.is_none() => To::Peer(*peer),
            (None, Some(port)) => To::at(port, self.vlan_id()?),
            _ => {
                let why = format!("{mac} in VNI {vni} needs either `peer` or `port` (with `vlan`): where is it?");
                return Err(NodeError::config("entry", why));
            }
        };
        Ok((vni, mac, Entry { to, ip: self.ip }))
    }

    fn vlan_id(&self) -> Result<Option<VlanId>, NodeError> {
        let Some(number) = self.vlan else { return Ok(None) };
        let fault = || NodeError::config("entry", format!("{number} is no VLAN ID; write a number from 1 to 4094"));
        VlanId::new(number).map(Some).ok_or_else(fault)
    }

    /// Segment and MAC alone, which name an entry.
    pub(super) fn key(&self) -> Result<(Vni, MacAddress), NodeError> {
        let mac = self.mac.parse().map_err(|error| NodeError::config("entry", format!("`{}`: {error}", self.mac)))?;
        Ok((vni(self.vni)?, mac))
    }

    fn of(vni: Vni, mac: MacAddress, entry: &Entry) -> Self {
        let (peer, vlan) = match &entry.to {
            To::Peer(peer) => (Some(*peer), None),
            To::Port(_) => (None, None),
            To::Vlan(_, vlan) => (None, Some(vlan.get())),
        };
        let port = entry.to.port().map(str::to_owned);
        Self { vni: vni.get().into(), mac: mac.to_string(), peer, port, vlan, ip: entry.ip }
    }
}
