//! A VTEP's state as it is shown.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use weft_control::vtep::Vni;
use weft_datapath::vxlan::{self, Origin, Traffic};
use weft_wire::ethernet::MacAddress;

use super::Daemon;
use super::kernel::theirs;
use super::protocol::{FdbRow, PeerRow, Shown, VniRow, What};
use crate::error::NodeError;
use crate::socket::named;

impl Daemon {
    pub(super) fn shown(&self, what: What) -> Result<Shown, NodeError> {
        Ok(match what {
            What::Vni => Shown::Vnis(self.vni_rows()?),
            What::Fdb { vni } => {
                let vni = vni.map(Vni::new).transpose();
                Shown::Fdb(self.fdb_rows(vni.map_err(|error| NodeError::config("vni", error.to_string()))?)?)
            }
            What::Peers => Shown::Peers(self.peer_rows()?),
            What::Counters => Shown::Counters(self.counters()?),
        })
    }

    fn vni_rows(&self) -> Result<Vec<VniRow>, NodeError> {
        let view = self.kernel.view();
        let mut macs: BTreeMap<u32, u64> = BTreeMap::new();
        for entry in view.entries(None)? {
            *macs.entry(entry.vni.get()).or_default() += 1;
        }
        let traffic: BTreeMap<u32, Traffic> =
            view.segments()?.into_iter().map(|segment| (segment.vni.get(), segment.traffic)).collect();
        let mut ports: BTreeMap<Vni, Vec<String>> = BTreeMap::new();
        for (vni, port) in self.settings.circuits() {
            ports.entry(vni).or_default().push(port.to_string());
        }
        let rows = self.settings.vnis.iter().map(|(vni, segment)| VniRow {
            vni: vni.get(),
            ports: ports.remove(vni).unwrap_or_default(),
            flood: segment.flood.to_string(),
            learn: segment.learn,
            age_s: segment.age_s,
            answer_arp: segment.answer_arp,
            directory: segment.directory,
            unknown_per_s: segment.unknown_per_s,
            broadcast_per_s: segment.broadcast_per_s,
            macs: macs.get(&vni.get()).copied().unwrap_or(0),
            counters: traffic_of(traffic.get(&vni.get()).copied().unwrap_or_default()),
        });
        Ok(rows.collect())
    }

    fn fdb_rows(&self, vni: Option<Vni>) -> Result<Vec<FdbRow>, NodeError> {
        let (view, now_ns) = (self.kernel.view(), vxlan::now_ns());
        let addresses: BTreeMap<(vxlan::Vni, [u8; 6]), Ipv4Addr> =
            view.arps(vni.map(theirs))?.into_iter().map(|(vni, ip, mac)| ((vni, mac), ip)).collect();
        let entries = view.entries(vni.map(theirs))?;
        let rows = entries.into_iter().map(|entry| FdbRow {
            vni: entry.vni.get(),
            mac: MacAddress(entry.mac).to_string(),
            to: self.kernel.place_name(entry.to),
            origin: origin(entry.origin).to_owned(),
            silent_s: (entry.origin == Origin::Learned).then(|| entry.age_ns(now_ns) as f64 / 1e9),
            ip: addresses.get(&(entry.vni, entry.mac)).copied(),
        });
        Ok(rows.collect())
    }

    fn peer_rows(&self) -> Result<Vec<PeerRow>, NodeError> {
        let view = self.kernel.view();
        let mut macs: BTreeMap<Ipv4Addr, u64> = BTreeMap::new();
        for entry in view.entries(None)? {
            if let vxlan::To::Remote(peer) = entry.to {
                *macs.entry(peer).or_default() += 1;
            }
        }
        let mut floods: BTreeMap<Ipv4Addr, u64> = BTreeMap::new();
        for segment in self.settings.vnis.values() {
            for peer in self.settings.copies_of(segment) {
                *floods.entry(peer).or_default() += 1;
            }
        }
        let peers = view.peers()?;
        let rows = peers.into_iter().map(|peer| PeerRow {
            peer: peer.address,
            floods: floods.get(&peer.address).copied().unwrap_or(0),
            macs: macs.get(&peer.address).copied().unwrap_or(0),
            counters: traffic_of(peer.traffic),
        });
        Ok(rows.collect())
    }

    fn counters(&self) -> Result<BTreeMap<String, BTreeMap<String, u64>>, NodeError> {
        let view = self.kernel.view();
        let mut groups = BTreeMap::new();
        groups.insert("frames".to_owned(), named(view.counters()?));
        groups.insert("events".to_owned(), named(view.events()?));
        groups.insert("daemon".to_owned(), named(self.io.iter()));
        if let Some(stations) = &self.stations {
            let counters = stations.resolver.counters();
            groups.insert("directory".to_owned(), named(counters.events.iter()));
            groups.insert("directory_dropped".to_owned(), named(counters.dropped.iter()));
            let mut ignored = named(counters.ignored.iter());
            ignored.insert("strange".to_owned(), stations.resolver.strange());
            groups.insert("directory_ignored".to_owned(), ignored);
        }
        Ok(groups)
    }
}

fn traffic_of(traffic: Traffic) -> BTreeMap<String, u64> {
    named([
        ("sent_frames", traffic.sent_frames),
        ("sent_bytes", traffic.sent_bytes),
        ("received_frames", traffic.received_frames),
        ("received_bytes", traffic.received_bytes),
    ])
}

fn origin(origin: Origin) -> &'static str {
    match origin {
        Origin::Learned => "learned",
        Origin::Static => "static",
        Origin::Directory => "directory",
    }
}
