//! What a part tells another one: packets on links between them, and what the ends of flows have to know of each other.
//! Nothing of it takes effect before the window in which it was sent has ended, so it makes no difference when it is read.

use weft_scenario::id::NodeId;

use super::flow::{Direction, Identity, NEVER, NO_ROUTE, PacketCounts, Phase, ReceiverEnd, SenderEnd};
use super::part::Part;
use crate::network::Network;
use crate::packet::{Flags, OnLink};
use crate::prefetch::prefetch;
use crate::routes::Hop;
use crate::tcp::{self, Receiver};

/// The queue that a packet joins is asked for so many packets before it, and its port as many before that.
const PACKETS_AHEAD: usize = 16;
/// No place is known.
const UNKNOWN: u32 = u32::MAX;

/// Something that the part of an end has to know.
#[derive(Clone, Copy, Debug)]
enum News {
    /// A flow to here begins: the places of both its ends, and the switch that it takes where it can.
    Opened { receiver: u32, sender: u32, who: Identity, through: Option<NodeId> },
    /// A packet for an end here is gone.
    Dropped(Direction, u32),
    /// All of a flow from here has reached the application.
    Completed { number: u32, at_ps: u64 },
    /// The other end of this receiver has ended; it sent so many packets.
    Ended { receiver: u32, sent: u32 },
    /// The other end of this sender is gone; it sent so many packets.
    Gone { sender: u32, sent: u32 },
}

/// What one part has for another.
#[derive(Debug, Default)]
pub(super) struct Parcel {
    news: Vec<News>,
    /// Packets with the ports that sent them. Their routes are named by the sender's places.
    packets: Vec<(u32, OnLink)>,
    /// Acknowledgements with blocks, in the order of the packets that carry them.
    acks: Vec<tcp::Ack>,
    /// Rests of routes that are named for the first time.
    routes: Vec<(u32, Vec<Hop>)>,
}

/// What waits to be fetched, and what is known of other parts' routes.
#[derive(Debug, Default)]
pub(super) struct Post {
    /// By part.
    parcels: Vec<Parcel>,
    /// By part, the places of routes here that the other part knows.
    told: Vec<Places>,
    /// By part, and by the places of routes there: the place here.
    known: Vec<Vec<u32>>,
}

impl Post {
    pub(super) fn new(parts: u32) -> Self {
        let each = parts as usize;
        Self {
            parcels: std::iter::repeat_with(Parcel::default).take(each).collect(),
            told: vec![Places::default(); each],
            known: vec![Vec::new(); each],
        }
    }
}

/// A set of places, a bit for each: few enough to stay near the processor.
#[derive(Clone, Debug, Default)]
struct Places(Vec<u64>);

impl Places {
    /// Adds a place; whether it is new.
    fn add(&mut self, place: u32) -> bool {
        let (word, bit) = (place as usize / 64, 1 << (place % 64));
        if self.0.len() <= word {
            self.0.resize(word + 1, 0);
        }
        let is_new = self.0[word] & bit == 0;
        self.0[word] |= bit;
        is_new
    }
}

impl Parcel {
    fn is_empty(&self) -> bool {
        self.news.is_empty() && self.packets.is_empty()
    }
}

impl Part<'_> {
    /// Gives a flow from here places for both ends, and routes. Returns that of the sender.
    pub(super) fn open(&mut self, sender: tcp::Sender, who: Identity, through: Option<NodeId>, granted: u32) -> u32 {
        let there = self.cut.part_of_host(who.to);
        let place = self.free_senders.pop().unwrap_or(self.senders.len() as u32);
        let receiver = self.place_in(there);
        let end = SenderEnd {
            sender,
            who,
            route: NO_ROUTE,
            phase: if who.is_stream { Phase::Datagrams } else { Phase::Opening },
            waiting: false,
            granted,
            timer_ps: NEVER,
            receiver,
            packets: PacketCounts::default(),
        };
        match self.senders.get_mut(place as usize) {
            Some(free) => *free = end,
            None => self.senders.push(end),
        }
        self.spread.begin(Direction::Data, place, (self.job.settings.seed, who.id), through);
        self.choose_route(Direction::Data, place);
        self.tell(there, News::Opened { receiver, sender: place, who, through });
        place
    }

    /// A place among the receivers of a part. Each part gives away every so many-th, so that they need not agree.
    fn place_in(&mut self, part: u32) -> u32 {
        let (free, made) = (&mut self.free_receivers[part as usize], &mut self.receivers_made[part as usize]);
        free.pop().unwrap_or_else(|| {
            *made += 1;
            (*made - 1) * self.cut.parts() + self.number
        })
    }

    fn open_receiver(&mut self, place: u32, sender: u32, who: Identity, through: Option<NodeId>) {
        let tcp = &self.job.settings.tcp;
        let end = |is_gone| ReceiverEnd {
            receiver: Receiver::new(tcp),
            who,
            route: NO_ROUTE,
            timer_ps: NEVER,
            sender,
            packets: PacketCounts::default(),
            is_gone,
        };
        while self.receivers.len() <= place as usize {
            self.receivers.push(end(true));
        }
        self.receivers[place as usize] = end(false);
        self.spread.begin(Direction::Ack, place, (self.job.settings.seed, who.id), through);
        self.choose_route(Direction::Ack, place);
    }

    pub(super) fn tell_dropped(&mut self, part: u32, direction: Direction, place: u32) {
        self.tell(part, News::Dropped(direction, place));
    }

    /// All of a flow has reached the application.
    pub(super) fn tell_completed(&mut self, who: Identity) {
        let at_ps = self.network.now_ps;
        self.tell(self.cut.part_of_host(who.from), News::Completed { number: who.number, at_ps });
    }

    /// A sender has ended.
    pub(super) fn tell_ended(&mut self, place: u32) {
        let end = &self.senders[place as usize];
        let news = News::Ended { receiver: end.receiver, sent: end.packets.sent };
        self.tell(self.cut.part_of_host(end.who.to), news);
    }

    fn tell(&mut self, part: u32, news: News) {
        if part == self.number {
            self.hear(news);
        } else {
            self.post.parcels[part as usize].news.push(news);
        }
    }

    fn hear(&mut self, news: News) {
        match news {
            News::Opened { receiver, sender, who, through } => self.open_receiver(receiver, sender, who, through),
            News::Dropped(Direction::Data, place) => {
                self.receivers[place as usize].packets.arrives();
                self.receiver_may_go(place);
            }
            News::Dropped(Direction::Ack, place) => {
                self.senders[place as usize].packets.arrives();
                self.sender_may_go(place);
            }
            News::Completed { number, at_ps } => {
                let outcome = &mut self.outcomes[number as usize];
                outcome.received_ps = Some(at_ps);
                outcome.received_bytes = outcome.spec.bytes;
            }
            News::Ended { receiver, sent } => {
                self.receivers[receiver as usize].packets.sent_to_it = Some(sent);
                self.receiver_may_go(receiver);
            }
            News::Gone { sender, sent } => {
                self.senders[sender as usize].packets.sent_to_it = Some(sent);
                self.sender_may_go(sender);
            }
        }
    }

    /// A receiver is gone once its sender has ended and nothing for it is under way any more.
    pub(super) fn receiver_may_go(&mut self, place: u32) {
        let end = &mut self.receivers[place as usize];
        if end.is_gone || !end.packets.has_all() {
            return;
        }
        end.is_gone = true;
        let (news, from) = (News::Gone { sender: end.sender, sent: end.packets.sent }, end.who.from);
        self.tell(self.cut.part_of_host(from), news);
    }

    /// The places of a flow are free once its receiver is gone and nothing for its sender is under way any more.
    pub(super) fn sender_may_go(&mut self, place: u32) {
        let end = &self.senders[place as usize];
        if end.is_gone() {
            let there = self.cut.part_of_host(end.who.to);
            self.free_receivers[there as usize].push(end.receiver);
            self.free_senders.push(place);
        }
    }

    /// Makes parcels of the packets that are on their way to other parts.
    pub(super) fn pack(&mut self) {
        let Network { abroad, routes, .. } = &mut self.network;
        let Post { parcels, told, .. } = &mut self.post;
        for ((parcel, told), packets) in parcels.iter_mut().zip(told).zip(abroad) {
            debug_assert!(parcel.packets.is_empty(), "those of the window before were handed over");
            std::mem::swap(&mut parcel.packets, packets);
            for (_, OnLink { packet, .. }) in &parcel.packets {
                if told.add(packet.route()) {
                    parcel.routes.push((packet.route(), routes.rest(packet.route()).collect()));
                }
                if packet.flags().has(Flags::SACK) {
                    parcel.acks.push(self.long_acks.take(packet.sequence()));
                }
            }
        }
    }

    /// Whether anything waits to be handed over.
    pub(super) fn has_post(&self) -> bool {
        self.post.parcels.iter().any(|parcel| !parcel.is_empty())
    }

    /// The parcel for a part, which leaves an empty one for that.
    pub(super) fn hand_over(&mut self, part: u32, parcel: &mut Parcel) {
        debug_assert!(parcel.is_empty(), "the other part has fetched it");
        std::mem::swap(&mut self.post.parcels[part as usize], parcel);
    }

    /// Reads what another part has packed, and leaves it empty.
    pub(super) fn unpack(&mut self, from: u32, parcel: &mut Parcel) {
        for news in parcel.news.drain(..) {
            self.hear(news);
        }
        for (place, hops) in parcel.routes.drain(..) {
            let known = &mut self.post.known[from as usize];
            if known.len() <= place as usize {
                known.resize(place as usize + 1, UNKNOWN);
            }
            known[place as usize] = self.network.routes.intern(&hops) + 1;
        }
        let mut acks = parcel.acks.drain(..);
        let known = &self.post.known[from as usize];
        for (number, (port, OnLink { at_ps, packet })) in parcel.packets.iter().copied().enumerate() {
            if let Some((port, OnLink { packet, .. })) = parcel.packets.get(number + 2 * PACKETS_AHEAD) {
                prefetch(&self.network.ports[*port]);
                prefetch(&known[packet.route() as usize]);
            }
            if let Some((port, _)) = parcel.packets.get(number + PACKETS_AHEAD) {
                self.network.ports[*port].packets.prefetch_end();
            }
            let route = known[packet.route() as usize];
            let sequence = if packet.flags().has(Flags::SACK) {
                self.long_acks.put(acks.next().expect("each packet with blocks has its own"))
            } else {
                packet.sequence()
            };
            self.network.receive(port, OnLink { at_ps, packet: packet.handed_over(sequence, route) });
        }
        parcel.packets.clear();
    }
}
