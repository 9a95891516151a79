//! Traffic to and from the outside of a fabric: how evenly egress links share it, how full they can be, and what the loss of
//! one costs (VL2 4.2.3).
//!
//! Shares and goodput are taken before the first fault. Where a workload fills the links, shares say nothing (all are full); so
//! shares are those of a workload of many flows that leaves room, and goodput that of one that does not.

use weft_scenario::record::{EventRow, Records};
use weft_scenario::topology::Fabric;
use weft_scenario::workload::Workload;

use super::links::{self, LinkSeries};
use super::series::{Cumulative, Window};
use super::{Input, MetricInfo, TrialRecords, completion, cpu};
use crate::metric::{Findings, Limit};
use crate::plan::PlanSpec;
use crate::stats;

/// What this analysis yields, for each workload.
pub const METRICS: &[MetricInfo] = &[
    MetricInfo {
        name: "worst_share_off",
        meaning: "the egress link and direction furthest from an even share: |share / even - 1|",
    },
    MetricInfo { name: "worst_share_in_off", meaning: "the same of inbound traffic only" },
    MetricInfo { name: "worst_share_out_off", meaning: "the same of outbound traffic only" },
    MetricInfo {
        name: "goodput_efficiency",
        meaning: "payload both ways / what the egress links can carry of it both ways",
    },
    MetricInfo { name: "in_use", meaning: "bytes inbound / the egress links' rate" },
    MetricInfo { name: "out_use", meaning: "bytes outbound / the egress links' rate" },
    MetricInfo {
        name: "outage_ms",
        meaning: "longest silence of a flow of datagrams to or from outside after a link was lost, ms",
    },
    MetricInfo {
        name: "lost_flows",
        meaning: "probing flows to or from outside that lost a datagram at the fault, of all",
    },
    MetricInfo { name: "cpu_idle_busiest_core", meaning: "idle share of the busiest core" },
];

/// Payload of a full segment over its bytes on the wire, without timestamps: 1460 of 1538.
const PAYLOAD_OF_WIRE: f64 = 1460.0 / 1538.0;
/// TCP needs so long to fill the links.
const WARM_UP_S: f64 = 1.5;
/// Goodput of a workload that fills the links is taken over this share of the time in which no link runs dry.
const FULL_S: f64 = 3.0;
/// Of a fault's losses the last is noticed within this.
const AFTER_FAULT_S: f64 = 5.0;

/// What a plan must have for this analysis.
pub fn check(spec: &PlanSpec) -> Result<(), String> {
    let outside = spec.workload.values().all(|workload| matches!(workload, Workload::Outside(_)));
    match outside && spec.axes.is_empty() && spec.overlays.len() == 1 {
        true => Ok(()),
        false => Err("analysis `outside` takes workloads of kind `outside`, one overlay and no sweep".to_owned()),
    }
}

/// Names of all metrics of a plan.
pub fn names(spec: &PlanSpec) -> Vec<String> {
    let of =
        |workload: &String| METRICS.iter().map(move |metric| format!("{}.{workload}", metric.name)).collect::<Vec<_>>();
    spec.workload.keys().flat_map(of).collect()
}

/// Runs the analysis.
pub fn analyse(input: &Input<'_>) -> Findings {
    let mut findings = Findings { problems: completion::unfinished(input), ..Findings::default() };
    for workload in input.spec.workload.keys() {
        let trials: Vec<&TrialRecords> = input.trials.iter().filter(|trial| trial.key.workload == *workload).collect();
        let views: Vec<View<'_>> = trials.iter().map(|trial| View::new(&trial.records, input.fabric())).collect();
        let limit = if views.iter().any(View::is_cpu_bound) { Limit::Cpu } else { Limit::Link };
        let mut put = |name: &str, of: &dyn Fn(&View<'_>) -> Option<f64>| {
            let samples: Vec<f64> = views.iter().filter_map(of).collect();
            findings.put(&format!("{name}.{workload}"), &samples, limit);
        };
        put("worst_share_off", &|view| Some(view.share_off(true)?.max(view.share_off(false)?)));
        put("worst_share_in_off", &|view| view.share_off(true));
        put("worst_share_out_off", &|view| view.share_off(false));
        put("goodput_efficiency", &|view| view.efficiency());
        put("in_use", &|view| view.used(true));
        put("out_use", &|view| view.used(false));
        put("outage_ms", &|view| view.outage_ms());
        put("lost_flows", &|view| view.lost_flows());
        put("cpu_idle_busiest_core", &|view| cpu::busiest_idle(&view.records.cpu, view.whole()));
    }
    findings
}

/// One trial.
struct View<'a> {
    records: &'a Records,
    /// Directions of egress links, and whether each leads in.
    egress: Vec<(bool, LinkSeries)>,
    /// Number of whoever is outside among the ends of flows.
    outside: u32,
    fault_s: Option<f64>,
}

impl<'a> View<'a> {
    fn new(records: &'a Records, fabric: &Fabric) -> Self {
        let outside = fabric.outside().map(|outside| fabric.node(outside.node).name.clone()).unwrap_or_default();
        let series = links::all(&records.links, fabric).into_iter();
        let at_border = series.filter(|link| link.node == outside || link.peer == outside);
        let fault = records.events.iter().find(|event| event.kind == "fault");
        Self {
            records,
            egress: at_border.map(|link| (link.node == outside, link)).collect(),
            outside: fabric.outside().map_or(0, |outside| outside.servers.len() as u32),
            fault_s: fault.map(EventRow::time_s),
        }
    }

    fn whole(&self) -> Window {
        let end = self.egress.iter().map(|(_, link)| link.sent.end()).fold(0.0, f64::max);
        Window { from_s: 0.0, to_s: self.fault_s.unwrap_or(end).min(end) }
    }

    /// What links of a direction sent before the fault.
    fn sent(&self, inbound: bool) -> Vec<f64> {
        let of_direction = self.egress.iter().filter(|(leads_in, _)| *leads_in == inbound);
        of_direction.map(|(_, link)| link.sent.at(self.whole().to_s)).collect()
    }

    fn share_off(&self, inbound: bool) -> Option<f64> {
        let sent = self.sent(inbound);
        let even = stats::mean(&sent).filter(|mean| *mean > 0.0)?;
        sent.into_iter().map(|bytes| (bytes / even - 1.0).abs()).reduce(f64::max)
    }

    fn full(&self) -> Option<Window> {
        let window = Window { from_s: WARM_UP_S, to_s: WARM_UP_S + FULL_S };
        (window.to_s <= self.whole().to_s).then_some(window)
    }

    fn efficiency(&self) -> Option<f64> {
        let window = self.full()?;
        let rate_bps: f64 = self.egress.iter().map(|(_, link)| link.rate_bps).sum();
        let goodput_bps = 8.0 * Cumulative::of_payload(self.records).rate(window.from_s, window.to_s);
        (rate_bps > 0.0).then(|| goodput_bps / (rate_bps * PAYLOAD_OF_WIRE))
    }

    fn used(&self, inbound: bool) -> Option<f64> {
        let window = self.full()?;
        let of_direction = self.egress.iter().filter(|(leads_in, _)| *leads_in == inbound);
        stats::mean(&of_direction.map(|(_, link)| link.utilisation(window)).collect::<Vec<_>>())
    }

    /// Losses of probing flows across the border in the seconds after the fault.
    fn losses(&self) -> Option<impl Iterator<Item = &weft_scenario::record::GapRow>> {
        let fault_s = self.fault_s?;
        let crosses = |from: u32, to: u32| from == self.outside || to == self.outside;
        let after = move |time_ns: u64| (fault_s - 0.1..fault_s + AFTER_FAULT_S).contains(&(time_ns as f64 / 1e9));
        Some(self.records.gaps.iter().filter(move |gap| crosses(gap.from, gap.to) && after(gap.time_ns)))
    }

    fn outage_ms(&self) -> Option<f64> {
        Some(self.losses()?.map(|gap| gap.outage_ns as f64 / 1e6).fold(0.0, f64::max))
    }

    fn lost_flows(&self) -> Option<f64> {
        Some(self.losses()?.count() as f64)
    }

    fn is_cpu_bound(&self) -> bool {
        cpu::limit(&self.records.cpu, self.whole(), Limit::Link) == Limit::Cpu
    }
}

#[cfg(test)]
mod tests {
    use weft_scenario::engine::Overlay;
    use weft_scenario::record::{EventRow, GapRow, LinkRow, ProgressRow};

    use super::*;
    use crate::analysis::testing::{SECOND, trial};

    const FABRIC: &str = include_str!("../../../../fabrics/vl2-internet.yaml");

    fn link(node: &str, peer: &str, second: u64, sent_bytes: u64) -> LinkRow {
        LinkRow {
            time_ns: second * SECOND,
            node: node.into(),
            interface: peer.into(),
            peer: peer.into(),
            class: "internet-intermediate".into(),
            sent_bytes,
            dropped_frames: 0,
        }
    }

    /// Ten seconds in which two links share inbound bytes 3:5 and outbound ones evenly, and a fault at 8 s.
    fn records() -> Records {
        let at = |second: u64| {
            let rows = [("net", "int1", 3), ("net", "int2", 5), ("int1", "net", 4), ("int2", "net", 4)];
            rows.map(|(node, peer, each)| link(node, peer, second, second * each * 1_000_000))
        };
        let gap = |from, to, time_ns, outage_ns| GapRow { from, to, time_ns, lost: 1, outage_ns };
        Records {
            links: (1..=10).flat_map(at).collect(),
            progress: (1..=10)
                .map(|second| ProgressRow {
                    time_ns: second * SECOND,
                    received_bytes: second * 20_000_000,
                    flows_done: 0,
                })
                .collect(),
            events: vec![EventRow { time_ns: 8 * SECOND, kind: "fault".into(), subject: "int1-net".into() }],
            gaps: vec![
                gap(2, 0, 8 * SECOND + 5, 30_000_000),
                gap(1, 2, 8 * SECOND + 9, 12_000_000),
                gap(0, 1, 8 * SECOND + 5, 900_000_000),
                gap(2, 1, SECOND, 700_000_000),
            ],
            ..Records::default()
        }
    }

    #[test]
    fn shares_goodput_and_outage_are_those_across_the_border() {
        let fabric = weft_scenario::topology::from_yaml(FABRIC, "f").unwrap();
        let one = trial(1, Overlay::Vl2, "even", records());
        let view = View::new(&one.records, &fabric);
        assert_eq!((view.share_off(true), view.share_off(false)), (Some(0.25), Some(0.0)));
        assert_eq!((view.outage_ms(), view.lost_flows()), (Some(30.0), Some(2.0)), "not between servers, not before");
        let expected = 20e6 * 8.0 / (4.0 * 50e6 * PAYLOAD_OF_WIRE);
        assert!((view.efficiency().unwrap() - expected).abs() < 1e-9);
        assert!((view.used(true).unwrap() - 4e6 * 8.0 / 50e6).abs() < 1e-9);
    }

    #[test]
    fn what_was_not_there_yields_nothing() {
        let fabric = weft_scenario::topology::from_yaml(FABRIC, "f").unwrap();
        let mut short = records();
        short.events.clear();
        short.links.retain(|row| row.time_ns <= 2 * SECOND);
        let view = View::new(&short, &fabric);
        assert_eq!((view.outage_ms(), view.lost_flows(), view.efficiency()), (None, None, None));
        let nothing = Records::default();
        let view = View::new(&nothing, &fabric);
        assert_eq!((view.share_off(true), view.used(false)), (None, None));
    }
}
