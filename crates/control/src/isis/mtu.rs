//! The MTU test: probes of the campus-wide length until one is answered (RFC 6325 section 4.3.2, RFC 7177 section 5).

use weft_wire::ethernet::MacAddress;
use weft_wire::isis::pdu::Mtu;
use weft_wire::isis::{PDU_LEN_MIN, Pdu, SystemId};

use super::RBridge;
use super::adjacency::Event as Happening;
use super::counters::DropReason;
use super::io::Output;

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
}

impl Probe {
    pub(super) fn begin(now_ns: u64) -> Self {
        Self { at_ns: now_ns, sent: 0, id: [0; 6] }
    }
}

impl RBridge {
    /// Sends the next probe, or gives the test up for a while.
    pub(super) fn probe_due(&mut self, now_ns: u64, index: usize, outputs: &mut Vec<Output>) {
        let interval_ns = self.config.timing.mtu_probe_ns;
        let number = self.random().to_be_bytes();
        let place = self.signature_place();
        let Some(adjacency) = &mut self.ports[index].adjacency else { return };
        let Some(probe) = &mut adjacency.probe else { return };
        if probe.sent == TRIES {
            *probe = Probe::begin(now_ns + PAUSE * interval_ns);
            return self.adjacency_event(now_ns, index, Happening::TestFailed, outputs);
        }
        probe.sent += 1;
        probe.at_ns = now_ns + interval_ns;
        probe.id.copy_from_slice(&number[..6]);
        let (probe_id, probe_source) = (probe.id, self.config.system);
        let mtu = Mtu { probe_id, probe_source, ack_source: SystemId::default(), tlvs: place };
        self.send(index, &Pdu::MtuProbe(mtu.padded_to(PDU_LEN_MIN)), outputs);
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
        let adjacency = self.ports[index].adjacency.as_ref().filter(|adjacency| adjacency.mac == source);
        if adjacency.is_none_or(|adjacency| adjacency.neighbor != probe.probe_source) {
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
        let Some(adjacency) = &mut self.ports[index].adjacency else { return Err(DropReason::NoAdjacency) };
        let answers = |probe: &Probe| probe.sent > 0 && probe.id == ack.probe_id && ack.probe_source == me;
        if adjacency.mac != source || !adjacency.probe.as_ref().is_some_and(answers) {
            return Err(DropReason::StrayAck);
        }
        adjacency.probe = None;
        self.adjacency_event(now_ns, index, Happening::TestsPassed, outputs);
        Ok(())
    }
}
