//! What can go wrong, and what does by a seed.

use std::time::Duration;

use rand::seq::SliceRandom;
use rand::{Rng, RngExt};
use weft_testbed::etcd::EtcdCluster;

use crate::SERVERS;
use crate::fabric::{Fabric, Place};
use crate::way::{Direction, Treatment, Ways};

/// Kinds of faults.
const KINDS: usize = 9;

/// A cluster with what is between it and the servers.
pub(crate) struct Bed<'a> {
    pub(crate) fabric: &'a Fabric,
    pub(crate) cluster: &'a EtcdCluster,
    /// Those of each server.
    pub(crate) ways: Vec<&'a Ways>,
    pub(crate) nodes: usize,
}

/// One fault; it has an end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    Killed {
        node: usize,
    },
    Paused {
        node: usize,
    },
    /// What one node sends another is lost, and the other way nothing.
    OneWay {
        from: usize,
        to: usize,
    },
    /// The node hears no other one, and all hear it.
    Deaf {
        node: usize,
    },
    /// No other node hears it, and it hears all.
    Mute {
        node: usize,
    },
    /// A server's requests to the node are lost, below TCP.
    RequestsLost {
        server: usize,
        node: usize,
    },
    /// The node's answers to a server are lost: it does what it is asked.
    AnswersLost {
        server: usize,
        node: usize,
    },
    /// A direction of a server's way to the node is slow.
    Late {
        server: usize,
        node: usize,
        direction: Direction,
        ms: u64,
    },
    /// What goes in a direction of a server's ways to any node comes when the fault ends, all at once.
    Held {
        server: usize,
        direction: Direction,
    },
}

/// How long a fault lasts: shorter and longer than elections, hedges and what a store may take.
pub(crate) fn lasts(random: &mut impl Rng) -> Duration {
    Duration::from_millis([100, 300, 700, 1500, 4000][random.random_range(0..5)] + random.random_range(0..100))
}

/// The kinds of faults in some order: ten faults have all of them.
pub(crate) fn kinds(random: &mut impl Rng) -> Vec<usize> {
    let mut kinds: Vec<usize> = (0..KINDS).collect();
    kinds.shuffle(random);
    kinds
}

impl Fault {
    /// A fault of this kind, or that and another one at once. They concern different things, so that each can end by itself.
    pub(crate) fn draw(random: &mut impl Rng, bed: &Bed<'_>, kind: usize) -> Vec<Self> {
        let mut faults = vec![Self::one(random, bed, kind)];
        if random.random_range(0..3) == 0 {
            let kind = random.random_range(0..KINDS);
            let (one, other) = (faults[0], Self::one(random, bed, kind));
            let is_apart = one.cuts(bed).all(|cut| other.cuts(bed).all(|theirs| theirs != cut));
            if is_apart && std::mem::discriminant(&other) != std::mem::discriminant(&one) {
                faults.push(other);
            }
        }
        faults
    }

    /// As many numbers are drawn for each, so that a seed is a schedule; only who leads is up to the cluster.
    fn one(random: &mut impl Rng, bed: &Bed<'_>, kind: usize) -> Self {
        let (any, is_leader): (usize, bool) = (random.random_range(0..bed.nodes), random.random());
        let node = bed.cluster.leader().filter(|_| is_leader).unwrap_or(any);
        let other = (node + 1 + random.random_range(0..bed.nodes - 1)) % bed.nodes;
        let server = random.random_range(0..SERVERS);
        let direction = if random.random() { Direction::Requests } else { Direction::Answers };
        let ms = [20, 250, 1000, 3500][random.random_range(0..4)];
        match kind {
            0 => Self::Killed { node },
            1 => Self::Paused { node },
            2 => Self::OneWay { from: node, to: other },
            3 => Self::Deaf { node },
            4 => Self::Mute { node },
            5 => Self::RequestsLost { server, node },
            6 => Self::AnswersLost { server, node },
            7 => Self::Late { server, node, direction, ms },
            _ => Self::Held { server, direction },
        }
    }

    pub(crate) fn begin(self, bed: &Bed<'_>) {
        match self {
            Self::Killed { node } => bed.cluster.kill(node),
            Self::Paused { node } => bed.cluster.pause(node),
            _ => {}
        }
        self.cuts(bed).for_each(|(from, to)| bed.fabric.cut(from, to));
        match self {
            Self::Late { server, node, direction, ms } => {
                let late = Duration::from_millis(ms);
                bed.ways[server].treat(node, direction, Treatment { late, ..Treatment::default() });
            }
            Self::Held { server, direction } => {
                let held = Treatment { held: true, ..Treatment::default() };
                (0..bed.nodes).for_each(|node| bed.ways[server].treat(node, direction, held));
            }
            _ => {}
        }
    }

    pub(crate) fn end(self, bed: &Bed<'_>) {
        match self {
            Self::Killed { node } => bed.cluster.restart(node),
            Self::Paused { node } => bed.cluster.resume(node),
            Self::Late { server, node, direction, .. } => bed.ways[server].treat(node, direction, Treatment::default()),
            Self::Held { server, direction } => {
                (0..bed.nodes).for_each(|node| bed.ways[server].treat(node, direction, Treatment::default()));
            }
            _ => {}
        }
        self.cuts(bed).for_each(|(from, to)| bed.fabric.mend(from, to));
    }

    /// The directions that are cut.
    fn cuts(self, bed: &Bed<'_>) -> impl Iterator<Item = (Place, Place)> {
        let others = |node: usize| (0..bed.nodes).filter(move |other| *other != node).map(Place::Node);
        let cuts: Vec<(Place, Place)> = match self {
            Self::OneWay { from, to } => vec![(Place::Node(from), Place::Node(to))],
            Self::Deaf { node } => others(node).map(|other| (other, Place::Node(node))).collect(),
            Self::Mute { node } => others(node).map(|other| (Place::Node(node), other)).collect(),
            Self::RequestsLost { server, node } => vec![(Place::Server(server), Place::Node(node))],
            Self::AnswersLost { server, node } => vec![(Place::Node(node), Place::Server(server))],
            _ => Vec::new(),
        };
        cuts.into_iter()
    }
}
