//! All agents ask for one AA each at one instant, over a link to a server that answers by itself and to one whose card answers
//! before it. Rounds take turns.

use std::path::PathBuf;

use serde::Serialize;
use weft_node::directory::protocol::CardStatus;
use weft_scenario::engine::DirectoryStore;
use weft_testbed::bench::median;
use weft_testbed::load::agents::{Agents, AgentsLoad, OutageReport};

use super::outage::watched;
use super::{Run, failed};
use crate::directory::apart::{self, Apart};
use crate::directory::bed::{Bed, BedOptions, Racks};
use crate::directory::step::inside;
use crate::directory::tier::{Tier, connect, fill_with, refused};
use crate::directory::usage::Usage;
use crate::error::LabError;

/// A card answers questions about one AA.
const QUESTIONS: usize = 1;

/// An outage without and with a card.
#[derive(Clone, Debug, Serialize)]
pub struct CardOutage {
    /// Where XDP runs: `generic`, in the stack, as a veth end without a program at the other end wants it.
    pub xdp: &'static str,
    pub without: CardSide,
    pub with: CardSide,
    /// The share of the questions that were answered at the card.
    pub at_card_ratio: f64,
    /// CPU time of server and agents without a card over that with one: in the stack the program runs in the sender's time.
    pub cpu_ratio: f64,
}

/// One of the two, medians over the rounds where nothing else is said.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct CardSide {
    /// From the common instant until 99 % of the agents had their answer.
    pub p99_ms: f64,
    /// Until the last one had, worst round.
    pub worst_ms: f64,
    /// From when that agent asked.
    pub own_p99_ms: f64,
    /// Agents without an answer, in all rounds.
    pub unanswered: u64,
    /// Questions that were asked again.
    pub repeated: f64,
    pub server_cpu_s: f64,
    pub agents_cpu_s: f64,
}

/// A server, and agents that reach it over a link.
struct Side {
    bed: Bed,
    place: PathBuf,
    agents: Agents,
    rounds: Vec<(OutageReport, f64)>,
}

pub(super) fn measure(run: &Run<'_>) -> Result<CardOutage, LabError> {
    run.progress.phase("card", &format!("{} agents ask for one AA each, without and with a card", run.options.agents));
    let mut without = Side::new(run, None)?;
    let mut with = Side::new(run, Some(run.options.aas))?;
    for round in 0..run.options.rounds {
        run.progress.advance(f64::from(round) / f64::from(run.options.rounds), "");
        without.round(run)?;
        with.round(run)?;
    }
    let asked: u64 = with.rounds.iter().map(|(report, _)| report.datagrams).sum();
    let at_card_ratio = with.card()?.map_or(0, |card| card.answered()) as f64 / asked.max(1) as f64;
    let (without, with) = (without.numbers(), with.numbers());
    let cpu_s = |side: &CardSide| side.server_cpu_s + side.agents_cpu_s;
    Ok(CardOutage { xdp: "generic", without, with, at_card_ratio, cpu_ratio: cpu_s(&without) / cpu_s(&with).max(1e-9) })
}

impl Side {
    fn new(run: &Run<'_>, card_mappings: Option<u32>) -> Result<Self, LabError> {
        run.go_on()?;
        let options = BedOptions {
            weft_binary: run.options.weft_binary.clone(),
            servers: 1,
            store: DirectoryStore::Embedded,
            lookup_threads: Some(1),
            cpu: run.cpus[0],
        };
        let racks = Racks { apart: Some(Apart { card_mappings }), ..run.layout.racks() };
        let bed = Bed::start_for(racks, &options, run.progress)?;
        fill_with(&bed, run.options.aas, |number| run.layout.mapping(number), run.progress)?;
        let place = bed.agents_place();
        let all = run.layout.agents(run, &bed);
        let load = AgentsLoad { first_la: apart::FIRST_LA, questions: QUESTIONS, ..all };
        let agents = inside(Some(&place), || Agents::new(&load).map_err(|error| failed(&error)))?;
        Ok(Self { bed, place, agents, rounds: Vec::new() })
    }

    fn round(&mut self, run: &Run<'_>) -> Result<(), LabError> {
        run.go_on()?;
        let Self { bed, place, agents, .. } = self;
        let before = Usage::read(bed, 1);
        // A thread is where the one was that started it.
        let report = inside(Some(place.as_path()), || watched(run, |stop| agents.ask_at_once(stop)))?;
        let used = Usage::read(bed, 1).since(&before);
        run.go_on()?;
        self.rounds.push((report, used.servers_ns() as f64 / 1e9));
        Ok(())
    }

    fn card(&self) -> Result<Option<CardStatus>, LabError> {
        let server = self.bed.servers().swap_remove(0);
        let status = connect(&server)?.status().map_err(|error| refused(&server.name, &error))?;
        Ok(status.xdp)
    }

    fn numbers(&self) -> CardSide {
        let of = |value: &dyn Fn(&OutageReport) -> f64| {
            median(&self.rounds.iter().map(|(report, _)| value(report)).collect::<Vec<_>>())
        };
        let ms = |ns: u64| ns as f64 / 1e6;
        CardSide {
            p99_ms: of(&|report| ms(report.since_instant_ns.value_at_quantile(0.99))),
            worst_ms: ms(self.rounds.iter().map(|(report, _)| report.since_instant_ns.max()).max().unwrap_or(0)),
            own_p99_ms: of(&|report| ms(report.since_asked_ns.value_at_quantile(0.99))),
            unanswered: self.rounds.iter().map(|(report, _)| report.agents - report.answered).sum(),
            repeated: of(&|report| report.repeated as f64),
            server_cpu_s: median(&self.rounds.iter().map(|(_, cpu_s)| *cpu_s).collect::<Vec<_>>()),
            agents_cpu_s: of(&|report| report.own_cpu_ns as f64 / 1e9),
        }
    }
}
