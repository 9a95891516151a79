//! The MTU test: probes of the campus-wide length, Sz, until one is answered (RFC 6325 section 4.3.2, RFC 7177 section 5).

use weft_wire::ethernet::MacAddress;
use weft_wire::isis::pdu::Mtu;
use weft_wire::isis::{Pdu, SystemId};
use weft_wire::trill::ALL_IS_IS_RBRIDGES;

use super::RBridge;
use super::adjacency::{Event as Happening, State};
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
    /// Length of its probes.
    len_bytes: u16,
    /// Whether the last test failed.
    has_failed: bool,
}

impl Probe {
    pub(super) fn begin(now_ns: u64, len_bytes: u16) -> Self {
        Self { at_ns: now_ns, sent: 0, id: [0; 6], len_bytes, has_failed: false }
    }
}

impl Adjacency {
    /// Whether Sz does not pass.
    pub(super) fn has_failed_test(&self) -> bool {
        self.probe.as_ref().is_some_and(|probe| probe.has_failed)
    }
}

impl RBridge {
    /// Our LSPs are made to fit into a smaller Sz; links have to carry a larger one.
    pub(super) fn sz_follows(&mut self, now_ns: u64, sz_bytes: u16, outputs: &mut Vec<Output>) {
        let before_bytes = std::mem::replace(&mut self.sz_bytes, sz_bytes);
        if sz_bytes == before_bytes {
            return;
        }
        if sz_bytes < before_bytes {
            self.describe_soon(now_ns);
        }
        for index in 0..self.ports.len() {
            let peers: Vec<Peer> = self.ports[index].adjacencies.keys().copied().collect();
            peers.into_iter().for_each(|peer| self.test_follows(now_ns, index, peer, outputs));
        }
    }

    /// A link that was tested is tested anew when Sz has grown since, and stays what it is meanwhile (RFC 7177 section 5). A
    /// test with more than Sz is ended.
    fn test_follows(&mut self, now_ns: u64, index: usize, peer: Peer, outputs: &mut Vec<Output>) {
        let (sz_bytes, port) = (self.sz_bytes, &mut self.ports[index]);
        let Some(adjacency) = port.adjacencies.get_mut(&peer).filter(|with| with.state.synchronizes()) else { return };
        let may_begin = adjacency.probe.as_ref().is_none_or(|probe| probe.len_bytes > sz_bytes);
        if port.config.mtu_test && may_begin {
            let has_passed = adjacency.state == State::Report && adjacency.tested_bytes >= sz_bytes;
            adjacency.probe = (!has_passed).then(|| Probe::begin(now_ns, sz_bytes));
            self.probe_due(now_ns, index, peer, outputs);
        }
    }

    /// Sends the next probe, or gives the test up for a while.
    pub(super) fn probe_due(&mut self, now_ns: u64, index: usize, peer: Peer, outputs: &mut Vec<Output>) {
        let interval_ns = self.config.timing.mtu_probe_ns;
        let (number, sz_bytes) = (self.random().to_be_bytes(), self.sz_bytes);
        let place = self.signature_place();
        let port = &mut self.ports[index];
        let destination = if port.shared.is_some() { peer.mac } else { ALL_IS_IS_RBRIDGES };
        let Some(probe) = port.adjacencies.get_mut(&peer).and_then(|adjacency| adjacency.probe.as_mut()) else {
            return;
        };
        if probe.sent == TRIES {
            *probe = Probe { has_failed: true, ..Probe::begin(now_ns + PAUSE * interval_ns, probe.len_bytes) };
            return self.adjacency_event(now_ns, index, peer, Happening::TestFailed, outputs);
        }
        if probe.sent == 0 {
            probe.len_bytes = sz_bytes;
        }
        probe.sent += 1;
        probe.at_ns = now_ns + interval_ns;
        probe.id.copy_from_slice(&number[..6]);
        let (probe_id, probe_source, len_bytes) = (probe.id, self.config.system, probe.len_bytes);
        let mtu = Mtu { probe_id, probe_source, ack_source: SystemId::default(), tlvs: place };
        self.send_to(index, destination, &Pdu::MtuProbe(mtu.padded_to(len_bytes)), outputs);
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
        let asked = known.iter_mut().filter(|(peer, _)| peer.mac == source).find_map(|(peer, adjacency)| {
            let probe = adjacency.probe.take_if(|probe| answers(probe))?;
            adjacency.tested_bytes = probe.len_bytes;
            Some(*peer)
        });
        let peer = asked.ok_or(DropReason::StrayAck)?;
        self.adjacency_event(now_ns, index, peer, Happening::TestsPassed, outputs);
        self.test_follows(now_ns, index, peer, outputs);
        Ok(())
    }
}
