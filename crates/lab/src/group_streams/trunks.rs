//! What links between switches carry, in each direction, as the kernel counts it where it arrives.

use std::time::{Duration, Instant};

use weft_scenario::id::{LinkId, NodeId};

use crate::plan::interfaces;
use crate::tester::TesterError;
use crate::tester::port::Port;
use crate::up::Lab;

/// How long the switches' own messages are counted.
const LISTEN: Duration = Duration::from_millis(1_000);

/// Both directions of every link between switches.
pub(super) struct Trunks(Vec<Way>);

/// One direction of a link.
pub(super) struct Way {
    pub(super) from: NodeId,
    pub(super) to: NodeId,
    /// Where frames arrive: of bridges an interface for each VLAN.
    ports: Vec<Port>,
    /// What comes by itself.
    own_per_s: f64,
}

/// Frames of every direction so far.
pub(super) struct Reading {
    at: Instant,
    frames: Vec<u64>,
}

impl Trunks {
    pub(super) fn of(lab: &Lab) -> Result<Self, TesterError> {
        let fabric = &lab.scenario.fabric;
        let is_switch = |node: NodeId| fabric.node(node).role.is_switch();
        let mut ways = Vec::new();
        for number in 0..fabric.links().len() as u32 {
            let [a, b] = [&fabric.link(LinkId(number)).a, &fabric.link(LinkId(number)).b].map(|port| port.node);
            if is_switch(a) && is_switch(b) {
                ways.push(Way::new(lab, LinkId(number), a, b)?);
                ways.push(Way::new(lab, LinkId(number), b, a)?);
            }
        }
        let mut trunks = Self(ways);
        trunks.listen()?;
        Ok(trunks)
    }

    fn listen(&mut self) -> Result<(), TesterError> {
        let before = self.read()?;
        std::thread::sleep(LISTEN);
        let (own, seconds) = (self.since(&before)?, before.at.elapsed().as_secs_f64());
        self.0.iter_mut().zip(own).for_each(|(way, frames)| way.own_per_s = frames / seconds);
        Ok(())
    }

    pub(super) fn ways(&self) -> &[Way] {
        &self.0
    }

    pub(super) fn read(&self) -> Result<Reading, TesterError> {
        let at = Instant::now();
        let frames = self.0.iter().map(Way::frames).collect::<Result<_, _>>()?;
        Ok(Reading { at, frames })
    }

    /// Frames of every direction since then, less as many as come by themselves.
    pub(super) fn since(&self, before: &Reading) -> Result<Vec<f64>, TesterError> {
        let now = self.read()?;
        let seconds = (now.at - before.at).as_secs_f64();
        let net =
            |(place, way): (usize, &Way)| (now.frames[place] - before.frames[place]) as f64 - way.own_per_s * seconds;
        Ok(self.0.iter().enumerate().map(net).collect())
    }
}

impl Way {
    fn new(lab: &Lab, link: LinkId, from: NodeId, to: NodeId) -> Result<Self, TesterError> {
        let namespace = &lab.plan.node(to).namespace;
        let ports = interfaces(&lab.scenario, link, to).into_iter();
        let ports = ports.map(|port| Port::open(&format!("{namespace}:{}", port.interface)));
        Ok(Self { from, to, ports: ports.collect::<Result<_, _>>()?, own_per_s: 0.0 })
    }

    fn frames(&self) -> Result<u64, TesterError> {
        self.ports.iter().map(|port| Ok(port.traffic()?.received_frames)).sum()
    }
}
