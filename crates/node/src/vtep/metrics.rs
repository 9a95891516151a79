//! A VTEP's metrics: its segments and peers among them, of which there are as many as its capacities allow.

use std::collections::BTreeMap;

use weft_datapath::vxlan::Traffic;
use weft_datapath::vxlan::abi::VTEP_OUTCOMES_DROPPED;

use super::Daemon;
use crate::error::NodeError;
use crate::watch::{Metrics, Unit};

impl Daemon {
    pub(super) fn list_metrics(&self, to: &mut Metrics) -> Result<(), NodeError> {
        let view = self.kernel.view();
        to.outcomes(["frames", "dropped_frames"], &VTEP_OUTCOMES_DROPPED, &[([], view.counters()?)]);
        to.tally("events", "What happened in the data path beside that", "event", view.events()?);
        to.tally("faults", "What the daemon itself could not do", "fault", self.io.iter());
        to.gauge("ports", "Access ports", self.settings.ports.len());
        let (mut macs, mut known) = (BTreeMap::<u32, u64>::new(), 0u64);
        for entry in view.entries(None)? {
            *macs.entry(entry.vni.get()).or_default() += 1;
            known += 1;
        }
        to.gauge("macs", "Forwarding entries", known);
        let capacity = self.config.capacity;
        to.gauge("macs_max", "Room for them", u64::from(capacity.macs) + u64::from(capacity.told_macs));
        let segments = view.traffic()?;
        to.gauge("vnis", "Segments", segments.len());
        let of_segment = to.gauges("vni_macs", "Forwarding entries of a segment");
        for (vni, _) in &segments {
            of_segment.add([("vni", vni.to_string())], macs.get(&vni.get()).copied().unwrap_or(0));
        }
        list_traffic(to, VNI, segments.iter().map(|(vni, traffic)| (vni.to_string(), traffic)));
        let peers = view.peers()?;
        to.gauge("peers", "Other VTEPs", peers.len());
        list_traffic(to, PEER, peers.iter().map(|peer| (peer.address.to_string(), &peer.traffic)));
        self.list_directory(to);
        Ok(())
    }

    /// Of questions about directory-driven segments; nothing was asked where there are none.
    fn list_directory(&self, to: &mut Metrics) {
        let stations = self.stations.as_ref();
        let answers = stations.is_none_or(|stations| !stations.silence.is_told());
        to.gauge("directory_answers", "0 while servers are asked and none answers", answers);
        let counters = stations.map(|stations| stations.resolver.counters());
        let events = counters.iter().flat_map(|counters| counters.events.iter());
        to.tally("directory_events", "What became of questions to the directory", "event", events);
        let ignored = counters.iter().flat_map(|counters| counters.ignored.iter());
        to.tally("directory_ignored_datagrams", "Datagrams not believed", "reason", ignored);
    }
}

/// A label, and names and descriptions of four families: frames sent and received, bytes sent and received.
type Named = (&'static str, [(&'static str, &'static str); 4]);

const VNI: Named = (
    "vni",
    [
        ("vni_sent_frames", "Frames of a segment into the underlay, without copies; a super frame is one"),
        ("vni_received_frames", "Frames of a segment out of the underlay; a super frame is one"),
        ("vni_sent", "Bytes of a segment into the underlay, without copies and outer headers"),
        ("vni_received", "Bytes of a segment out of the underlay, without outer headers"),
    ],
);

const PEER: Named = (
    "peer",
    [
        ("peer_sent_frames", "Frames to a VTEP, copies among them; a super frame is one"),
        ("peer_received_frames", "Frames from a VTEP; a super frame is one"),
        ("peer_sent", "Bytes to a VTEP, copies among them, without outer headers"),
        ("peer_received", "Bytes from a VTEP, without outer headers"),
    ],
);

fn list_traffic<'a>(
    to: &mut Metrics,
    (label, families): Named,
    rows: impl Iterator<Item = (String, &'a Traffic)> + Clone,
) {
    let numbers: [fn(&Traffic) -> u64; 4] = [
        |traffic| traffic.sent_frames,
        |traffic| traffic.received_frames,
        |traffic| traffic.sent_bytes,
        |traffic| traffic.received_bytes,
    ];
    let units = [None, None, Some(Unit::Bytes), Some(Unit::Bytes)];
    for (((name, help), number), unit) in families.into_iter().zip(numbers).zip(units) {
        let family = to.counters(name, help).in_unit(unit);
        rows.clone().for_each(|(value, traffic)| family.add([(label, value)], number(traffic)));
    }
}
