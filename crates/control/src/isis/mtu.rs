//! The MTU test: probes of the campus-wide length until one is answered (RFC 6325 section 4.3.2, RFC 7177 section 5).

use weft_wire::ethernet::MacAddress;
use weft_wire::isis::pdu::Mtu;
use weft_wire::isis::{PDU_LEN_MIN, Pdu, SystemId};
use weft_wire::trill::ALL_IS_IS_RBRIDGES;

use super::RBridge;
use super::adjacency::Event as Happening;
use super::counters::DropReason;
use super::io::Output;
use super::port::{Adjacency, Peer};

/// Probes before the test fails (RFC 6325 section 4.3.2: k = 3).
const TRIES: u8 = 3;
/// How many intervals pass before a failed test is begun again.
const PAUSE: u64 = 10;

/// A test that runs.
#[derive(Clone, Debug)]
pub(super) struct Probe {
    /// When the next probe goes out, or the last one counts as lost.
    pub(super) at_ns: u64,
    sent: u8,
    id: [u8; 6],
    /// Whether the last test failed.
    has_failed: bool,
}

impl Probe {
    pub(super) fn begin(now_ns: u64) -> Self {
        Self { at_ns: now_ns, sent: 0, id: [0; 6], has_failed: false }
    }
}

impl Adjacency {
    /// Whether the length that every link must carry does not pass.
    pub(super) fn has_failed_test(&self) -> bool {
        self.probe.as_ref().is_some_and(|probe| probe.has_failed)
    }
}

impl RBridge {
    /// Sends the next probe, or gives the test up for a while.
    pub(super) fn probe_due(&mut self, now_ns: u64, index: usize, peer: Peer, outputs: &mut Vec<Output>) {
        let interval_ns = self.config.timing.mtu_probe_ns;
        let number = self.random().to_be_bytes();
        let place = self.signature_place();
        let port = &mut self.ports[index];
        let destination = if port.shared.is_some() { peer.mac } else { ALL_IS_IS_RBRIDGES };
        let Some(probe) = port.adjacencies.get_mut(&peer).and_then(|adjacency| adjacency.probe.as_mut()) else {
            return;
        };
        if probe.sent == TRIES {
            *probe = Probe { has_failed: true, ..Probe::begin(now_ns + PAUSE * interval_ns) };
            return self.adjacency_event(now_ns, index, peer, Happening::TestFailed, outputs);
        }
        probe.sent += 1;
        probe.at_ns = now_ns + interval_ns;
        probe.id.copy_from_slice(&number[..6]);
        let (probe_id, probe_source) = (probe.id, self.config.system);
        let mtu = Mtu { probe_id, probe_source, ack_source: SystemId::default(), tlvs: place };
        self.send_to(index, destination, &Pdu::MtuProbe(mtu.padded_to(PDU_LEN_MIN)), outputs);
    }

    /// A probe is answered at its own length, to its sender alone; who is no neighbour is not answered.
    pub(super) fn mtu_probe(
        &mut self,
        index: usize,
        source: MacAddress,
        probe: &Mtu,
        len_bytes: usize,
        outputs: &mut Vec<Output>,
    ) -> Result<(), DropReason> {
        let is_sender = |peer: &Peer| peer.mac == source && peer.system == probe.probe_source;
        if !self.ports[index].adjacencies.keys().any(is_sender) {
            return Err(DropReason::NoAdjacency);
        }
        let ack = Mtu { ack_source: self.config.system, tlvs: self.signature_place(), ..probe.clone() };
        let len_bytes = u16::try_from(len_bytes).unwrap_or(u16::MAX);
        self.send_to(index, source, &Pdu::MtuAck(ack.padded_to(len_bytes)), outputs);
        Ok(())
    }

    pub(super) fn mtu_ack(
        &mut self,
        now_ns: u64,
        index: usize,
        source: MacAddress,
        ack: &Mtu,
        outputs: &mut Vec<Output>,
    ) -> Result<(), DropReason> {
        let me = self.config.system;
        let answers = |probe: &Probe| probe.sent > 0 && probe.id == ack.probe_id && ack.probe_source == me;
        let known = &mut self.ports[index].adjacencies;
        if known.is_empty() {
            return Err(DropReason::NoAdjacency);
        }
        let is_asked =
            |(peer, with): &(&Peer, &mut Adjacency)| peer.mac == source && with.probe.as_ref().is_some_and(answers);
        let (peer, adjacency) = known.iter_mut().find(is_asked).ok_or(DropReason::StrayAck)?;
        let peer = *peer;
        adjacency.probe = None;
        self.adjacency_event(now_ns, index, peer, Happening::TestsPassed, outputs);
        Ok(())
    }
}
