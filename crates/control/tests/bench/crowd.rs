//! Many questions to servers that are dead, slow or lossy, and what they cost in datagrams.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::net::{Ipv4Addr, SocketAddrV4};

use rand_pcg::Pcg64;
use rand_pcg::rand_core::Rng;
use weft_control::agent::Output;
use weft_control::{Machine, NS_PER_MS};
use weft_wire::directory::{Message, Status};

use super::{Bench, config, mapping, sent, server};

/// How a server answers.
#[derive(Clone, Copy)]
pub(crate) struct Server {
    /// After so long; `None`: never.
    pub(crate) after_ns: Option<u64>,
    /// Questions and answers that are lost, each, per cent.
    pub(crate) loss_percent: u64,
}

pub(crate) const WELL: Server = Server { after_ns: Some(NS_PER_MS), loss_percent: 0 };
pub(crate) const DEAD: Server = Server { after_ns: None, loss_percent: 0 };

/// What came of the questions.
#[derive(Debug, Default)]
pub(crate) struct Cost {
    pub(crate) answered: u64,
    pub(crate) given_up: u64,
    /// Datagrams to each server.
    pub(crate) datagrams: BTreeMap<SocketAddrV4, u64>,
}

impl Cost {
    pub(crate) fn total(&self) -> u64 {
        self.datagrams.values().sum()
    }
}

/// An agent among such servers.
pub(crate) struct Crowd {
    bench: Bench,
    servers: Vec<Server>,
    random: Pcg64,
    asked: u32,
    /// Answers on their way: when, and to which of `questions`.
    answers: BinaryHeap<Reverse<(u64, usize)>>,
    questions: Vec<(SocketAddrV4, Message)>,
    cost: Cost,
}

impl Crowd {
    pub(crate) fn new(servers: &[Server]) -> Self {
        Self {
            bench: Bench::new(config(servers.len() as u8)),
            servers: servers.to_vec(),
            random: Pcg64::new(5, 6),
            asked: 0,
            answers: BinaryHeap::new(),
            questions: Vec::new(),
            cost: Cost::default(),
        }
    }

    pub(crate) fn set(&mut self, servers: &[Server]) {
        self.servers = servers.to_vec();
    }

    /// Asks for `count` AAs that were never asked for, one every `every_ns`, then waits until all are answered or given
    /// up.
    pub(crate) fn ask(&mut self, count: u32, every_ns: u64) -> Cost {
        for _ in 0..count {
            self.asked += 1;
            let outputs = self.bench.miss(Ipv4Addr::from(u32::from(Ipv4Addr::new(20, 1, 0, 0)) + self.asked), b"frame");
            self.take(outputs);
            self.run_to(self.bench.now_ns + every_ns);
        }
        while self.bench.agent.summary().resolving > 0 {
            self.run_to(self.bench.now_ns + every_ns);
        }
        std::mem::take(&mut self.cost)
    }

    /// Lets time pass, with every deadline and every answer at its own moment.
    fn run_to(&mut self, until_ns: u64) {
        loop {
            let answer_ns = self.answers.peek().map(|Reverse((at_ns, _))| *at_ns);
            let next_ns = self.bench.agent.next_deadline_ns().into_iter().chain(answer_ns).min();
            let Some(at_ns) = next_ns.filter(|at_ns| *at_ns <= until_ns) else { break };
            let outputs = self.bench.run_to(at_ns.max(self.bench.now_ns));
            self.take(outputs);
            if answer_ns == Some(at_ns) {
                self.answer();
            }
        }
        self.bench.now_ns = until_ns;
    }

    fn answer(&mut self) {
        let Some(Reverse((_, question))) = self.answers.pop() else { return };
        let outputs = self.bench.answer(&self.questions[question], Status::Ok, mapping(1, 9));
        self.take(outputs);
    }

    fn take(&mut self, outputs: Vec<Output>) {
        for output in &outputs {
            self.cost.answered += u64::from(matches!(output, Output::Release { .. }));
            self.cost.given_up += u64::from(matches!(output, Output::Drop { .. }));
        }
        for question in sent(&outputs) {
            *self.cost.datagrams.entry(question.0).or_default() += 1;
            let mut servers = (1..).zip(&self.servers);
            let found = servers.find(|(k, _)| server(*k) == question.0);
            let Server { after_ns, loss_percent } = *found.expect("a configured server").1;
            let lost = (0..2).any(|_| self.random.next_u64() % 100 < loss_percent);
            if let Some(after_ns) = after_ns.filter(|_| !lost) {
                self.answers.push(Reverse((self.bench.now_ns + after_ns, self.questions.len())));
                self.questions.push(question);
            }
        }
    }
}
