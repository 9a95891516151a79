//! Links that are worse than their fabric says, one way or both: frames are lost, a line is slower, frames come late.
//!
//! Losses are a program's at the end where frames come in ([`weft_testbed::impair`]). A rate is that of the sender's queues; where XDP
//! sends past queues, the same program drops what a line of that rate with the link's buffer would not take. Delays are the
//! kernel's network emulator's (netem) below the sender's queues.

use std::collections::BTreeSet;
use std::fmt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use weft_scenario::engine::Overlay;
use weft_scenario::id::{LinkId, NodeId};
use weft_scenario::overlay::{Hook, TunnelEnd};
use weft_scenario::topology::{Fabric, Role};
use weft_scenario::units::{BitsPerSec, Nanos, named};
use weft_testbed::impair::{self, Impair};

use super::broken::{Port, between};
use crate::batch::{self, Program};
use crate::error::LabError;
use crate::home::pin_dir;
use crate::netns;
use crate::overlay;
use crate::plan::interfaces;
use crate::plan::iproute::PortQueue;
use crate::shaping::{LAYER1_BYTES, Shaper};
use crate::up::Lab;

/// The slowest line, bit/s: a full frame takes 12 s.
const RATE_MIN: BitsPerSec = BitsPerSec(1000);
/// The longest delay.
const DELAY_MAX: Nanos = Nanos(60_000_000_000);
/// What a shortest frame is on the line, bytes.
const FRAME_MIN_BYTES: u64 = 60 + LAYER1_BYTES;

/// How much worse a link is, one way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Impairment {
    /// Share of the frames that is lost, percent.
    #[serde(default, skip_serializing_if = "is_zero", deserialize_with = "named::percent")]
    pub loss_percent: f64,
    /// Decides which frames are lost; `None`: chance does, and it is written down.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// The link's rate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<BitsPerSec>,
    /// How much later frames come.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay: Option<Nanos>,
    /// How much more or less than that, by chance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jitter: Option<Nanos>,
    /// Share of the frames that the delay leaves out, percent: they overtake others.
    #[serde(default, skip_serializing_if = "is_zero", deserialize_with = "named::percent")]
    pub reorder_percent: f64,
}

/// What is worse between two nodes, one way.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Impaired {
    /// Node that sends.
    pub from: String,
    /// Node that receives.
    pub to: String,
    #[serde(flatten)]
    pub by: Impairment,
}

#[allow(clippy::trivially_copy_pass_by_ref)] // serde calls it
fn is_zero(share: &f64) -> bool {
    *share == 0.0
}

impl fmt::Display for Impairment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts = Vec::new();
        if self.loss_percent > 0.0 {
            let seed = self.seed.map_or_else(String::new, |seed| format!(" (seed {seed})"));
            parts.push(format!("loses {} %{seed}", self.loss_percent));
        }
        parts.extend(self.rate.map(|rate| format!("carries {rate}")));
        let jitter = self.jitter.map_or_else(String::new, |jitter| format!(" +- {jitter}"));
        parts.extend(self.delay.map(|delay| format!("delays {delay}{jitter}")));
        if self.reorder_percent > 0.0 {
            parts.push(format!("reorders {} %", self.reorder_percent));
        }
        f.write_str(&parts.join(", "))
    }
}

impl Impairment {
    /// Why it cannot be, whatever the link.
    fn amiss(&self) -> Option<String> {
        let share = |name: &str, percent: f64| {
            (!(0.0..=100.0).contains(&percent)).then(|| format!("{name} of {percent} % cannot be; choose 0 to 100"))
        };
        let late = self.jitter.is_some() || self.reorder_percent != 0.0;
        let (delay, jitter) = (self.delay.unwrap_or_default(), self.jitter.unwrap_or_default());
        share("a loss", self.loss_percent).or_else(|| share("reordering", self.reorder_percent)).or_else(|| {
            Some(match self {
                Self { rate: Some(rate), .. } if *rate < RATE_MIN => {
                    format!("a rate of {rate} cannot be; choose {RATE_MIN} or more")
                }
                Self { delay: Some(_), .. } if delay == Nanos(0) || delay > DELAY_MAX => {
                    format!("a delay of {delay} cannot be; choose up to {DELAY_MAX}")
                }
                Self { delay: None, .. } if late => {
                    "jitter and reordering need a delay to differ from; give one".to_owned()
                }
                Self { jitter: Some(_), .. } if jitter > delay => {
                    format!("a jitter of {jitter} is more than the delay of {delay}")
                }
                Self { rate: None, delay: None, .. } if self.loss_percent == 0.0 => {
                    "nothing would be worse; give a loss, a rate or a delay".to_owned()
                }
                _ => return None,
            })
        })
    }

    /// What the emulator is told.
    fn told(&self) -> Option<String> {
        let us = |time: Nanos| format!("{}us", time.0.div_ceil(1000));
        let jitter = self.jitter.map_or_else(String::new, |jitter| format!(" {}", us(jitter)));
        let reorder =
            if self.reorder_percent > 0.0 { format!(" reorder {}%", self.reorder_percent) } else { String::new() };
        self.delay.map(|delay| format!("delay {}{jitter}{reorder}", us(delay)))
    }
}

/// Whether links between these two nodes can be so much worse, that way.
pub(super) fn check(lab: &Lab, from: &str, to: &str, by: &Impairment) -> Result<(), LabError> {
    let refused = |why: String| Err(LabError::Impairment(why));
    let links = between(lab, from, to)?;
    if let Some(why) = by.amiss() {
        return refused(why);
    }
    let fabric = &lab.scenario.fabric;
    let slowest = links.iter().map(|link| fabric.link(*link).spec.rate).min().unwrap_or_default();
    match by.rate {
        Some(rate) if lab.scenario.shaped && rate > slowest => {
            return refused(format!(
                "the link between `{from}` and `{to}` carries {slowest}, which {rate} is not worse than"
            ));
        }
        _ => {}
    }
    if (by.rate.is_some() || by.delay.is_some()) && lab.state.owner.is_some() {
        return refused(format!("lab `{}` belongs to a run, which sets its queues itself", lab.state.lab));
    }
    if by.delay.is_none() {
        return Ok(());
    }
    if links.iter().any(|link| sends_past_queues(lab, find(fabric, from), *link)) {
        return refused(format!("frames of `{from}` to `{to}` go past queues, where nothing can delay them"));
    }
    emulator_is_there()
}

/// Looks whether the kernel has the emulator, in a namespace that is gone afterwards.
fn emulator_is_there() -> Result<(), LabError> {
    let tried =
        netns::in_fresh_namespace(|| batch::run(Program::Tc, "(none)", &["qdisc add dev lo root netem delay 1ms"]))?;
    tried.map_err(|_refused| {
        let what = "this kernel has no module `sch_netem`, which delays and reorders frames";
        LabError::not_fit(
            what,
            "load it (modprobe sch_netem) or take a kernel that has it; losses and rates need no module",
        )
    })
}

/// Whether what a node sends by a link misses its queues: redirected by XDP, or in a lab without them.
fn sends_past_queues(lab: &Lab, from: NodeId, _link: LinkId) -> bool {
    let role = lab.scenario.fabric.node(from).role;
    match lab.scenario.forwarding(from) {
        _ if lab.scenario.overlay.forwards_frames() => true,
        Overlay::Vtep { hook: Hook::Xdp, at: TunnelEnd::Tor } => role.is_edge_switch(),
        Overlay::Vtep { hook: Hook::Xdp, at: TunnelEnd::Server } => role == Role::Server,
        _ => false,
    }
}

/// The nodes of what is recorded are those of the lab.
fn find(fabric: &Fabric, name: &str) -> NodeId {
    fabric.find(name).expect("`between` has found it")
}

/// The impairment of one way.
fn of<'a>(all: &'a [Impaired], from: &str, to: &str) -> Option<&'a Impairment> {
    all.iter().find(|one| one.from == from && one.to == to).map(|one| &one.by)
}

/// Ways in which two states of a lab differ.
fn changed(before: &[Impaired], wanted: &[Impaired]) -> BTreeSet<(String, String)> {
    let ways = before.iter().chain(wanted).map(|one| (one.from.clone(), one.to.clone()));
    ways.filter(|(from, to)| of(before, from, to) != of(wanted, from, to)).collect()
}

/// Ends of links at which frames come in that fare otherwise in the two states.
pub(super) fn ports(lab: &Lab, before: &[Impaired], wanted: &[Impaired]) -> Result<BTreeSet<Port>, LabError> {
    let mut ports = BTreeSet::new();
    for (from, to) in changed(before, wanted) {
        let to_node = find(&lab.scenario.fabric, &to);
        ports.extend(between(lab, &from, &to)?.into_iter().map(|link| (to_node, link)));
    }
    Ok(ports)
}

/// Brings links from one state to the other, whatever of either an earlier process has left there.
pub(super) fn settle(lab: &Lab, before: &[Impaired], wanted: &[Impaired]) -> Result<(), LabError> {
    for (from, to) in changed(before, wanted) {
        let (was, now) = (of(before, &from, &to), of(wanted, &from, &to));
        for link in between(lab, &from, &to)? {
            let ends = [&from, &to].map(|name| find(&lab.scenario.fabric, name));
            receive(lab, ends, link, now)?;
            if !sends_past_queues(lab, ends[0], link) {
                send(lab, ends[0], link, was, now)?;
            }
        }
    }
    Ok(())
}

/// At the end where frames come in.
fn receive(lab: &Lab, [from, to]: [NodeId; 2], link: LinkId, now: Option<&Impairment>) -> Result<(), LabError> {
    let impair = now.and_then(|by| received(lab, from, (to, link), by));
    for (pin, interface) in pins(lab, (to, link))? {
        lab.inside(to, || {
            impair::take_off(&pin, &interface)?;
            impair.map_or(Ok(()), |impair| impair.put(&pin, &interface))
        })?;
    }
    Ok(())
}

/// What the program there does, if anything.
fn received(lab: &Lab, from: NodeId, (to, link): Port, by: &Impairment) -> Option<Impair> {
    let rate = by.rate.filter(|_| sends_past_queues(lab, from, link));
    if by.loss_percent == 0.0 && rate.is_none() {
        return None;
    }
    let buffer = u128::from(lab.scenario.fabric.link(link).spec.buffer.0);
    // Each end loses other frames.
    let place = u64::from(link.0) << 32 | u64::from(to.0);
    Some(Impair {
        loss_percent: by.loss_percent,
        seed: by.seed.unwrap_or_default() ^ place.wrapping_mul(0x9e37_79b9_7f4a_7c15),
        rate_bps: rate.map(|rate| rate.0),
        queue_ns: rate.map_or(0, |rate| (buffer * 8_000_000_000 / u128::from(rate.0)) as u64),
    })
}

/// Where the programs of a port are kept, each with its interface.
fn pins(lab: &Lab, (node, link): Port) -> Result<Vec<(PathBuf, String)>, LabError> {
    let folder = overlay::make_pin_dir(&lab.state.lab, super::PINS)?;
    let ports = interfaces(&lab.scenario, link, node).into_iter().enumerate();
    Ok(ports.map(|(place, port)| (pin(&folder, (node, link), place), port.interface)).collect())
}

fn pin(folder: &Path, (node, link): Port, place: usize) -> PathBuf {
    folder.join(format!("impair-{}-{}-{place}", node.0, link.0))
}

/// Frames that came by a port and were dropped because it is worse than it should be, by reason.
pub(crate) fn dropped(lab: &str, node: NodeId, link: LinkId) -> Vec<(&'static str, u64)> {
    let pin = pin(&pin_dir(lab).join(super::PINS), (node, link), 0);
    let counters = impair::counters(&pin).ok().flatten().unwrap_or_default();
    let drops = counters.into_iter().zip(weft_testbed::abi::IMPAIR_OUTCOMES_DROPPED);
    drops.filter(|(_, is_drop)| *is_drop).map(|(counter, _)| counter).collect()
}

/// At the end that sends.
fn send(
    lab: &Lab,
    from: NodeId,
    link: LinkId,
    was: Option<&Impairment>,
    now: Option<&Impairment>,
) -> Result<(), LabError> {
    let is_queue = |by: &&Impairment| by.rate.is_some() || by.delay.is_some();
    let (was, now) = (was.filter(is_queue), now.filter(is_queue));
    if was.is_none() && now.is_none() {
        return Ok(());
    }
    let (fabric, shaper) = (&lab.scenario.fabric, Shaper::new(&lab.scenario));
    let declared = fabric.link(link).spec.rate;
    let rate = now.and_then(|by| by.rate).unwrap_or(declared);
    let queue = shaper.queue_at(fabric, link, from, rate);
    lab.batch(from, Program::Tc, &lines(&queue, rate, was, now, lab.scenario.shaped))
}

/// Lines for `tc`, which may be told again.
fn lines(
    queue: &PortQueue,
    rate: BitsPerSec,
    was: Option<&Impairment>,
    now: Option<&Impairment>,
    shaped: bool,
) -> Vec<String> {
    let mut lines = Vec::new();
    if shaped {
        lines.extend(queue.rates());
    } else {
        let device = &queue.device;
        // What is not there cannot be removed.
        lines.extend([format!("qdisc replace dev {device} root pfifo"), format!("qdisc del dev {device} root")]);
        lines.extend(now.map(|_| queue.to_string()));
    }
    match now.and_then(|by| Some((by.told()?, by.delay?))) {
        Some((told, delay)) => {
            // Those that are under way, and the link's buffer.
            let under_way = u128::from(rate.0) * u128::from(delay.0) / 8_000_000_000;
            let frames = (under_way as u64 + queue.buffer) / FRAME_MIN_BYTES;
            lines.extend(queue.emulated(&told, frames.clamp(10, u64::from(u32::MAX))));
        }
        None if shaped && was.is_some_and(|by| by.delay.is_some()) => lines.extend(queue.plain()),
        None => {}
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn loss(loss_percent: f64) -> Impairment {
        Impairment { loss_percent, ..Impairment::default() }
    }

    #[test]
    fn what_cannot_be_is_refused_and_says_why() {
        let delay = |ms: u64| Impairment { delay: Some(Nanos(ms * 1_000_000)), ..Impairment::default() };
        for (by, why) in [
            (loss(101.0), "a loss of 101 % cannot be; choose 0 to 100"),
            (loss(-1.0), "a loss of -1 %"),
            (loss(f64::NAN), "a loss of NaN %"),
            (
                Impairment { rate: Some(BitsPerSec(0)), ..loss(1.0) },
                "a rate of 0 bit/s cannot be; choose 1 kbit/s or more",
            ),
            (delay(0), "a delay of 0 ns cannot be"),
            (Impairment { jitter: Some(Nanos(5)), ..loss(1.0) }, "need a delay"),
            (Impairment { reorder_percent: 3.0, ..loss(1.0) }, "need a delay"),
            (Impairment { reorder_percent: 300.0, ..delay(1) }, "reordering of 300 %"),
            (Impairment { jitter: Some(Nanos(5_000_000)), ..delay(1) }, "more than the delay"),
            (loss(0.0), "nothing would be worse"),
        ] {
            let amiss = by.amiss().unwrap_or_default();
            assert!(amiss.contains(why), "{by:?}: {amiss}");
        }
        assert_eq!([loss(100.0), loss(0.01), delay(60_000)].map(|by| by.amiss()), [None, None, None]);
    }

    #[test]
    fn queues_are_told_what_is_worse_and_what_was_before() {
        let queue = PortQueue {
            device: "eth0".into(),
            counts_layer1: false,
            rate: 5_000_000,
            burst: 70_000,
            control_burst: 3000,
            quantum: 60_000,
            buffer: 84_000,
        };
        let slow = Impairment { rate: Some(BitsPerSec(5_000_000)), ..Impairment::default() };
        let late =
            Impairment { delay: Some(Nanos(2_000_000)), jitter: Some(Nanos(500_000)), reorder_percent: 5.0, ..slow };
        let lines = |was, now, shaped| lines(&queue, BitsPerSec(5_000_000), was, now, shaped);
        let rates = [
            "class change dev eth0 parent 1: classid 1:1 htb rate 5000000bit burst 70000 cburst 70000 quantum 60000",
            "class change dev eth0 parent 1: classid 1:2 htb rate 5000000bit burst 3000 cburst 3000 quantum 60000",
        ];
        assert_eq!(lines(None, Some(&slow), true), rates);
        assert_eq!(lines(Some(&slow), None, true), rates);
        let delayed = lines(None, Some(&late), true);
        assert_eq!(
            delayed[2],
            "qdisc replace dev eth0 parent 1:1 handle 30: netem limit 1014 delay 2000us 500us reorder 5%"
        );
        let plain = lines(Some(&late), Some(&slow), true);
        assert_eq!(plain[2], "qdisc replace dev eth0 parent 1:1 handle 10: bfifo limit 84000");
        assert_eq!(plain[3], "qdisc replace dev eth0 parent 1:2 handle 20: pfifo limit 1000");
        let removed = ["qdisc replace dev eth0 root pfifo", "qdisc del dev eth0 root"];
        assert_eq!(lines(Some(&late), None, false), removed);
        assert_eq!(lines(None, Some(&slow), false), [&removed[..], &[queue.to_string().as_str()]].concat());
    }

    #[test]
    fn what_is_recorded_is_read_back_and_said_in_words() {
        let by = Impairment { seed: Some(7), rate: Some(BitsPerSec(5_000_000)), ..loss(12.5) };
        let one = Impaired { from: "tor1".into(), to: "agg1".into(), by };
        let text = serde_json::to_string(&one).unwrap();
        assert_eq!(text, r#"{"from":"tor1","to":"agg1","loss_percent":12.5,"seed":7,"rate":"5 Mbit/s"}"#);
        assert_eq!(serde_json::from_str::<Impaired>(&text).unwrap(), one);
        assert_eq!(by.to_string(), "loses 12.5 % (seed 7), carries 5 Mbit/s");
    }
}
