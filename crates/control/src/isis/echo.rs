//! BFD Echoes (RFC 7175 section 4): frames that the neighbour's data path sends back, whatever its daemon is doing.
//!
//! Hellos tell a silence in whole seconds, and come as late as the neighbour's daemon gets its turn. An Echo is addressed to
//! ourselves by way of the neighbour, so nobody has to answer it. A neighbour that has returned one, and then returns none of
//! several and says no Hello either, is gone. Both have to be missing: Echoes share the fate of data frames, which a full
//! queue drops, and Hellos that of the daemon. Only Echoes that were sent are counted, so that an RBridge that got no turn
//! itself blames nobody.
//!
//! RFC 7175 recommends Echoes within a session of BFD Control, which the neighbour takes part in; here the neighbour only
//! forwards, as RFC 9747 has it for IP.

use weft_wire::trill::channel;

use super::RBridge;
use super::adjacency::{Event as Happening, State};
use super::config::PortId;
use super::counters::{DropReason, Event};
use super::io::Output;
use super::port::{Adjacency, Peer};

/// Forwarded by the neighbour, and by nobody else (RFC 7175 section 4.1).
const ONE_RBRIDGE: u8 = 1;

/// Echoes to one neighbour.
#[derive(Clone, Debug)]
pub(super) struct Echo {
    session: u64,
    /// Ours; without one there is nothing that an Echo could be addressed to.
    nickname: Option<u16>,
    /// When the next is to be sent, or the neighbour found to be gone.
    pub(super) at_ns: u64,
    sent: u32,
    /// How many of them are answered, or were when a Hello came last.
    settled: u32,
    /// Whether the neighbour returns them by the shortest way.
    is_returned: bool,
}

impl Echo {
    fn begin(at_ns: u64, session: u64, nickname: Option<u16>) -> Self {
        Self { session, nickname, at_ns, sent: 0, settled: 0, is_returned: false }
    }

    /// A Hello came.
    pub(super) fn note_hello(&mut self) {
        self.settled = self.sent;
    }

    /// One came back. If others forwarded it as well, the neighbour's shortest way to us does not lead over this link any
    /// more: then the next ones say nothing about it either.
    fn note_return(&mut self, number: u32, forwarded: u8) -> Result<(), DropReason> {
        if number == 0 || number > self.sent {
            return Err(DropReason::StrayEcho);
        }
        let is_first = !std::mem::replace(&mut self.is_returned, forwarded == ONE_RBRIDGE);
        if !self.is_returned {
            return Err(DropReason::EchoDetour);
        }
        // What was sent before anybody returned one is not missed.
        self.settled = if is_first { self.sent } else { self.settled.max(number) };
        Ok(())
    }
}

impl Adjacency {
    /// Whether the neighbour returns Echoes, so that its silence is noticed before its holding time is over.
    pub fn returns_echoes(&self) -> bool {
        self.echo.as_ref().is_some_and(|echo| echo.is_returned)
    }
}

impl RBridge {
    /// Begins Echoes where the adjacency is in Report, ends them elsewhere (RFC 7175 section 4).
    pub(super) fn echo_follows(&mut self, now_ns: u64, index: usize, peer: Peer) {
        let echo_ns = self.config.timing.echo_ns;
        let begun = (echo_ns != 0).then(|| Echo::begin(now_ns + echo_ns, self.random(), self.nickname()));
        let Some(adjacency) = self.ports[index].adjacencies.get_mut(&peer) else { return };
        adjacency.echo = begun.filter(|_| adjacency.state == State::Report);
    }

    /// Sends the next Echo, or gives the neighbour up.
    pub(super) fn echo_due(&mut self, now_ns: u64, index: usize, peer: Peer, outputs: &mut Vec<Output>) {
        let (timing, system, nickname) = (self.config.timing, self.config.system, self.nickname());
        let port = &mut self.ports[index];
        let (id, mac) = (port.config.id, port.config.mac);
        let Some(echo) = port.adjacencies.get_mut(&peer).and_then(|adjacency| adjacency.echo.as_mut()) else { return };
        if nickname != echo.nickname {
            return self.echo_follows(now_ns, index, peer);
        }
        echo.at_ns = now_ns + timing.echo_ns;
        let Some(nickname) = nickname else { return };
        if echo.is_returned && u64::from(echo.sent - echo.settled) >= timing.echoes_missed {
            self.counters.events.add(Event::EchoSilence);
            return self.adjacency_event(now_ns, index, peer, Happening::Expired, outputs);
        }
        echo.sent += 1;
        let told = channel::Echo { system, port: id.0, session: echo.session, number: echo.sent };
        let frame = told.emit(peer.mac, mac, nickname).into();
        self.counters.events.add(Event::EchoSent);
        outputs.push(Output::Echo { port: id, frame });
    }

    /// A channel message for us: an Echo of ours, or nothing that is known here.
    pub(super) fn channel(&mut self, frame: &[u8]) -> Result<(), DropReason> {
        let (told, forwarded) = channel::Echo::parse(frame).map_err(DropReason::of_parse_error)?;
        let index = self.index(PortId(told.port)).ok_or(DropReason::StrayEcho)?;
        let is_ours = told.system == self.config.system;
        let mut echoes = self.ports[index].adjacencies.values_mut().filter_map(|adjacency| adjacency.echo.as_mut());
        let echo = echoes.find(|echo| is_ours && told.session == echo.session);
        echo.ok_or(DropReason::StrayEcho)?.note_return(told.number, forwarded)?;
        self.counters.events.add(Event::EchoReturned);
        Ok(())
    }
}
