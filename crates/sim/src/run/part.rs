//! A part of the network with its hosts: arrivals and timers in turn. A run on one thread has one part, which is all of it.

use std::sync::Arc;

use weft_scenario::engine::CongestionControl;
use weft_scenario::units::Nanos;

use super::SoFar;
use super::ahead::{Ahead, Places};
use super::capture::Capture;
use super::cut::Cut;
use super::datagrams::Datagrams;
use super::flow::{Direction, LongAcks, ReceiverEnd, SenderEnd};
use super::follow::Followed;
use super::host::Host;
use super::mix::Mix;
use super::post::Post;
use super::setup;
use super::spread::Spreader;
use super::timers::{Due, Timer, Timers};
use super::trace::Shown;
use crate::error::SimError;
use crate::events::AHEAD;
use crate::job::{Flow, Job};
use crate::network::{Arrival, Network, Sent};
use crate::outcome::{FlowOutcome, Totals};
use crate::packet::{Flags, Packet};
use crate::prefetch::prefetch;
use crate::routes::Hop;
use crate::routes::walk::Router;
use crate::time::ps;

/// There is a pause after so many packet-hops.
const HOPS_PER_PAUSE: u32 = 1 << 10;

/// What is done with a part now and then.
pub(super) type Pause<'p, 'a> = dyn FnMut(&mut Part<'a>) -> Result<(), SimError> + 'p;

/// What changes during a run, of one part.
pub(super) struct Part<'a> {
    pub(super) job: &'a Job,
    pub(super) number: u32,
    pub(super) cut: Arc<Cut>,
    /// All ports; those of other parts are at rest.
    pub(super) network: Network,
    pub(super) router: Router<'a>,
    /// All hosts; those of other parts are at rest.
    pub(super) hosts: Vec<Host>,
    /// Ends of flows that are under way; packets name them by their places.
    pub(super) senders: Vec<SenderEnd>,
    pub(super) receivers: Vec<ReceiverEnd>,
    pub(super) free_senders: Vec<u32>,
    /// By part, places there that this part may give to the other ends of its flows, and how many it has in all.
    pub(super) free_receivers: Vec<Vec<u32>>,
    pub(super) receivers_made: Vec<u32>,
    pub(super) long_acks: LongAcks,
    pub(super) spread: Spreader,
    /// What every data packet sets out with.
    pub(super) data_flags: Flags,
    pub(super) timers: Timers,
    /// Arrivals come before any timer as long as their keys are below this.
    until_key: u64,
    /// Places in the source's list of the flows that are still to start here, the next one last.
    pub(super) to_start: Vec<u32>,
    /// Flows from here that have not ended yet, those to start included.
    pub(super) unfinished: u64,
    pub(super) started: u64,
    /// When a flow ended here last.
    pub(super) last_end_ps: u64,
    pub(super) mix: Option<Mix>,
    pub(super) datagrams: Datagrams,
    pub(super) totals: Totals,
    /// Of flows that are sent from here; of the list all have a place.
    pub(super) outcomes: Vec<FlowOutcome>,
    pub(super) capture: Option<Capture>,
    pub(super) followed: Followed,
    /// What the observer is to be told.
    pub(super) shown: Vec<Shown>,
    pub(super) post: Post,
    ahead: Ahead,
    /// Arrivals up to the last stop, from there to the next one, and how many of them are still to come.
    pub(super) hops: u64,
    stop_after: u32,
    hops_to_stop: u32,
    /// There is a pause when so many have arrived.
    pause_at_hops: u64,
}

impl<'a> Part<'a> {
    /// A part at rest, with timers for everything that begins in it.
    pub(super) fn new(job: &'a Job, number: u32, cut: &Arc<Cut>) -> Result<Self, SimError> {
        let mut network = setup::network(job)?;
        cut.outgoing(job, number).for_each(|port| network.set_abroad(port, cut.sends_to(port)));
        let listed = job.source.flows();
        let to_start = start_order(listed, |server| cut.part_of_host(server) == number);
        let mut part = Self {
            job,
            number,
            cut: Arc::clone(cut),
            hosts: setup::hosts(job, &network),
            network,
            router: setup::router(job),
            senders: Vec::new(),
            receivers: Vec::new(),
            free_senders: Vec::new(),
            free_receivers: vec![Vec::new(); cut.parts() as usize],
            receivers_made: vec![0; cut.parts() as usize],
            long_acks: LongAcks::default(),
            spread: Spreader::new(job.settings.switching.load_balance),
            data_flags: Flags::default()
                .with_if(job.settings.tcp.congestion_control == CongestionControl::Dctcp, Flags::ECT),
            timers: Timers::default(),
            until_key: 0,
            unfinished: to_start.len() as u64,
            to_start,
            started: 0,
            last_end_ps: 0,
            mix: None,
            datagrams: Datagrams::new(job),
            totals: Totals::default(),
            outcomes: listed.iter().map(|flow| FlowOutcome::not_started(flow.spec)).collect(),
            capture: Capture::new(job),
            followed: Followed::of(listed.len() as u32),
            shown: Vec::new(),
            post: Post::new(cut.parts()),
            ahead: Ahead::default(),
            hops: 0,
            stop_after: HOPS_PER_PAUSE,
            hops_to_stop: HOPS_PER_PAUSE,
            pause_at_hops: 0,
        };
        part.arm_next_start();
        part.begin_datagrams();
        Ok(part)
    }

    /// When something happens next.
    pub(super) fn next(&self) -> Due {
        self.timers.next().min(Due::after_timers_of(self.network.next_ps()))
    }

    pub(super) fn so_far(&self) -> SoFar {
        SoFar {
            now_ps: self.network.now_ps,
            hops: self.hops,
            started: self.started,
            flows_done: self.totals.flows_done,
            received_bytes: self.totals.received_bytes,
        }
    }

    /// Arrivals and timers in turn, in the order of their times, as long as they come before `until`; a timer comes before an
    /// arrival at the same time. Now and then there is a pause. A part that is the whole network stops where its last flow's
    /// window ends.
    pub(super) fn advance(&mut self, until: Due, pause: &mut Pause<'_, 'a>) -> Result<(), SimError> {
        loop {
            let until = until.min(self.ends());
            let timer = self.timers.next();
            let due = timer.min(until);
            self.until_key = self.network.key_at(due.time_ps.min(self.network.epoch_ends_ps()));
            self.arrivals(pause)?;
            let (timer, until) = (self.timers.next(), until.min(self.ends()));
            let epoch_ends_ps = self.network.epoch_ends_ps();
            let due_ps = timer.min(until).time_ps;
            if due_ps > epoch_ends_ps {
                match self.network.next_ps() {
                    u64::MAX if due_ps == u64::MAX => return Ok(()),
                    u64::MAX => self.network.start_epoch(due_ps),
                    _ => self.network.start_epoch(epoch_ends_ps),
                }
            } else if timer < until {
                let (time_ps, timer) = self.timers.take_by(timer.time_ps).expect("it is due");
                if time_ps < self.network.now_ps {
                    return Err(self.mistake(format!("{timer:?} was set when it had been due, at {time_ps} ps")));
                }
                self.network.now_ps = time_ps;
                self.take(timer);
            } else if self.network.next_ps() >= until.time_ps {
                return Ok(());
            }
        }
    }

    /// When the run is over for a part that is all there is.
    fn ends(&self) -> Due {
        if self.cut.parts() > 1 || self.has_more() {
            Due::NEVER
        } else {
            Due::at(self.cut.window_ends_ps(self.last_end_ps))
        }
    }

    /// Whether flows go on here, or sources that have no end.
    pub(super) fn has_more(&self) -> bool {
        self.unfinished > 0 || self.mix.is_some() || !self.job.datagrams.is_empty()
    }

    /// The loop of all hops. It has its registers for itself: whatever else is done, at the ends of flows too, is in other functions.
    #[inline(never)]
    fn arrivals(&mut self, pause: &mut Pause<'_, 'a>) -> Result<(), SimError> {
        while let Some(arrival) = self.network.next_arrival(self.until_key) {
            self.arrived(arrival);
            self.hops_to_stop -= 1;
            if self.hops_to_stop == 0 {
                self.stop(pause)?;
            }
        }
        Ok(())
    }

    /// Looks ahead; now and then lets be done what is done in a pause.
    #[inline(never)]
    fn stop(&mut self, pause: &mut Pause<'_, 'a>) -> Result<(), SimError> {
        self.hops += u64::from(self.stop_after);
        if self.hops >= self.pause_at_hops {
            self.pause_at_hops = self.hops + u64::from(HOPS_PER_PAUSE);
            pause(self)?;
        }
        self.look_ahead();
        self.stop_after = if self.network.looks_ahead() { AHEAD as u32 } else { HOPS_PER_PAUSE };
        self.hops_to_stop = self.stop_after;
        Ok(())
    }

    /// Asks for what the next arrivals need.
    fn look_ahead(&mut self) {
        if let Some(ports) = self.network.ports_ahead() {
            let Self { network, senders, receivers, hosts, .. } = self;
            self.ahead.lead(ports, &Places { network, senders, receivers, hosts });
        }
    }

    #[inline(always)]
    fn arrived(&mut self, arrival: Arrival) {
        if self.capture.is_some() {
            self.capture(arrival);
        }
        match arrival.next {
            Some(hop) => self.forward(hop, arrival.packet),
            None if arrival.packet.flags().has(Flags::ACK) => {
                prefetch(&self.senders[arrival.packet.flow() as usize]);
                self.acknowledged(arrival.packet);
            }
            None => {
                prefetch(&self.receivers[arrival.packet.flow() as usize]);
                self.received(arrival.packet);
            }
        }
    }

    fn take(&mut self, timer: Timer) {
        match timer {
            Timer::Start => self.start_due(),
            Timer::Source(server) => self.grant(server),
            Timer::Datagram(stream) => self.send_datagram(stream),
            Timer::Host(host) => self.take_turns(host),
            Timer::Receiver(place, flow) => self.receiver_timer_ends(place, flow),
            Timer::Sender(place, flow) => self.sender_timer_ends(place, flow),
            Timer::FaultStep(_) | Timer::Reconverge(_) => unreachable!("the network's timers are not a part's"),
            Timer::Sample | Timer::SampleTcp | Timer::Replay | Timer::Stop => {
                unreachable!("the network's timers are not a part's")
            }
        }
    }

    /// Adds a timer, before which no later arrival is looked at.
    #[inline]
    pub(super) fn arm(&mut self, time_ps: u64, timer: Timer) {
        self.timers.add(time_ps, timer);
        self.until_key = self.until_key.min(self.network.key_at(time_ps));
    }

    /// A flow from here has ended. After the last one nothing is looked at beyond its window.
    pub(super) fn count_end(&mut self) {
        self.unfinished = self.unfinished.saturating_sub(1);
        self.last_end_ps = self.network.now_ps;
        self.until_key = self.until_key.min(self.network.key_at(self.ends().time_ps));
    }

    /// Puts a packet on a link; what has no room there is gone.
    #[inline(always)]
    pub(super) fn forward(&mut self, hop: Hop, packet: Packet) {
        let sent = self.network.send(hop, packet);
        if sent != Sent::Queued || packet.flags().has(Flags::TRACED) {
            self.notice(hop, packet, sent);
        }
    }

    /// A packet that was sent is gone, or somebody wants to read about it.
    #[cold]
    fn notice(&mut self, hop: Hop, packet: Packet, sent: Sent) {
        if packet.flags().has(Flags::TRACED) {
            self.trace_hop(hop, packet, sent);
        }
        if sent != Sent::Queued {
            self.dropped(packet, sent, None);
        }
    }

    /// A packet is gone, which was for the end in `part`; `None`: where its route leads.
    #[cold]
    pub(super) fn dropped(&mut self, packet: Packet, sent: Sent, part: Option<u32>) {
        let volume = if sent == Sent::Refused { &mut self.totals.refused } else { &mut self.totals.lost };
        volume.add(packet.ip_bytes());
        if packet.flags().has(Flags::SACK) {
            self.long_acks.take(packet.sequence());
        }
        let part = part.unwrap_or_else(|| self.cut.part_of_end(&self.network.routes, packet.route()));
        let direction = if packet.flags().has(Flags::ACK) { Direction::Ack } else { Direction::Data };
        self.tell_dropped(part, direction, packet.flow());
    }
}

/// Places of the flows from some servers in the order of their starts, the first one last; equal starts keep the order of
/// the list.
fn start_order(flows: &[Flow], is_here: impl Fn(u32) -> bool) -> Vec<u32> {
    let mut order: Vec<u32> =
        (0..flows.len() as u32).filter(|place| is_here(flows[*place as usize].spec.from)).collect();
    order.sort_by_key(|place| std::cmp::Reverse((flows[*place as usize].spec.start_ns, *place)));
    order
}

/// A span of simulated time after now, saturating, in picoseconds.
pub(super) fn after(now_ps: u64, span: Nanos) -> u64 {
    now_ps.saturating_add(ps(span.0.max(1)))
}
