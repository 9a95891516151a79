//! Metrics of one moment, by Prometheus's conventions: what a daemon lists, and the text of a scrape.
//!
//! Every family is there from the start, with samples or without, so that a rule that names it is never wrong by chance. Labels
//! have values that a table bounds (reasons, segments, ports, VTEPs), never an AA or a MAC.

use std::fmt;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric, MetricEncoder};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::{Registry, Unit};

use super::process;
use crate::runner::DaemonKind;

/// Type of the text.
pub(super) const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// A label's name and value.
type Label = (&'static str, String);

/// Counts by name.
type Counts = Vec<(&'static str, u64)>;

/// Families of one moment, in order.
#[derive(Debug, Default)]
pub(crate) struct Metrics(Vec<Family>);

/// A metric with all its samples. Its names have neither prefix nor suffix.
#[derive(Debug)]
pub(crate) struct Family {
    name: &'static str,
    help: &'static str,
    is_counter: bool,
    unit: Option<Unit>,
    samples: Vec<Sample>,
}

#[derive(Debug)]
struct Sample {
    labels: Vec<Label>,
    value: Value,
}

/// A number.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Value {
    Whole(u64),
    Real(f64),
}

impl Metrics {
    /// A number that goes up and down.
    pub(crate) fn gauge(&mut self, name: &'static str, help: &'static str, value: impl Into<Value>) {
        self.gauges(name, help).add([], value);
    }

    /// The same with labels, one sample after the other.
    pub(crate) fn gauges(&mut self, name: &'static str, help: &'static str) -> &mut Family {
        self.family(name, help, false)
    }

    /// A number that only goes up.
    pub(crate) fn counter(&mut self, name: &'static str, help: &'static str, value: impl Into<Value>) {
        self.counters(name, help).add([], value);
    }

    /// The same with labels, one sample after the other.
    pub(crate) fn counters(&mut self, name: &'static str, help: &'static str) -> &mut Family {
        self.family(name, help, true)
    }

    /// What was counted under names.
    pub(crate) fn tally(
        &mut self,
        name: &'static str,
        help: &'static str,
        label: &'static str,
        counts: impl IntoIterator<Item = (impl Into<String>, u64)>,
    ) {
        let family = self.counters(name, help);
        counts.into_iter().for_each(|(value, count)| family.add([(label, value.into())], count));
    }

    /// What became of frames or packets, in two families: those that were not dropped by outcome, the others by reason. `is_dropped`
    /// says which is which; each row has its labels and its counts in that order.
    pub(crate) fn outcomes<const N: usize>(
        &mut self,
        [taken, dropped]: [&'static str; 2],
        is_dropped: &[bool],
        rows: &[([Label; N], Counts)],
    ) {
        for (name, help, label, wanted) in [
            (taken, "What became of those that were not dropped", "outcome", false),
            (dropped, "Those that were dropped", "reason", true),
        ] {
            let family = self.counters(name, help);
            for (labels, counts) in rows {
                let of_kind = counts.iter().zip(is_dropped).filter(|(_, is_dropped)| **is_dropped == wanted);
                of_kind
                    .for_each(|((outcome, count), _)| family.add_with(labels, (label, (*outcome).to_owned()), *count));
            }
        }
    }

    fn family(&mut self, name: &'static str, help: &'static str, is_counter: bool) -> &mut Family {
        self.0.push(Family { name, help, is_counter, unit: None, samples: Vec::new() });
        self.0.last_mut().expect("it was just added")
    }

    /// The text of a scrape.
    pub(super) fn text(self, kind: DaemonKind) -> Result<String, fmt::Error> {
        let mut registry = Registry::default();
        registry.register_collector(Box::new(process::metrics(kind)));
        registry.sub_registry_with_prefix(format!("weft_{}", kind.word())).register_collector(Box::new(self));
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &registry)?;
        Ok(text)
    }
}

impl Family {
    /// In this unit, which becomes part of the name.
    pub(crate) fn in_unit(&mut self, unit: impl Into<Option<Unit>>) -> &mut Self {
        self.unit = unit.into();
        self
    }

    /// One more sample.
    pub(crate) fn add<const N: usize>(&mut self, labels: [Label; N], value: impl Into<Value>) {
        let labels = labels.into_iter().map(escaped).collect();
        self.samples.push(Sample { labels, value: value.into() });
    }

    fn add_with(&mut self, labels: &[Label], last: Label, count: u64) {
        let labels = labels.iter().cloned().chain([last]).map(escaped).collect();
        self.samples.push(Sample { labels, value: count.into() });
    }
}

/// The encoder takes values as they are.
fn escaped((name, value): Label) -> Label {
    (name, value.replace('\\', r"\\").replace('"', r#"\""#).replace('\n', r"\n"))
}

impl Collector for Metrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|family| family.encode(&mut encoder))
    }
}

impl Family {
    fn encode(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let kind = if self.is_counter { MetricType::Counter } else { MetricType::Gauge };
        let mut metrics = encoder.encode_descriptor(self.name, self.help, self.unit.as_ref(), kind)?;
        for Sample { labels, value } in &self.samples {
            if labels.is_empty() {
                // Without them there is but this one.
                return self.encode_value(*value, metrics);
            }
            self.encode_value(*value, metrics.encode_family(&labels.as_slice())?)?;
        }
        Ok(())
    }

    fn encode_value(&self, value: Value, encoder: MetricEncoder<'_>) -> fmt::Result {
        match (self.is_counter, value) {
            (true, Value::Whole(count)) => ConstCounter::new(count).encode(encoder),
            (true, Value::Real(value)) => ConstCounter::new(value).encode(encoder),
            (false, Value::Whole(count)) => ConstGauge::new(i64::try_from(count).unwrap_or(i64::MAX)).encode(encoder),
            (false, Value::Real(value)) => ConstGauge::new(value).encode(encoder),
        }
    }
}

impl From<u64> for Value {
    fn from(value: u64) -> Self {
        Self::Whole(value)
    }
}

impl From<u32> for Value {
    fn from(value: u32) -> Self {
        Self::Whole(value.into())
    }
}

impl From<usize> for Value {
    fn from(value: usize) -> Self {
        Self::Whole(value as u64)
    }
}

impl From<bool> for Value {
    fn from(value: bool) -> Self {
        Self::Whole(value.into())
    }
}

impl From<f64> for Value {
    fn from(value: f64) -> Self {
        Self::Real(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_is_as_prometheus_wants_it() {
        let mut metrics = Metrics::default();
        metrics.gauge("mappings", "AAs that have a mapping", 3usize);
        metrics.tally("dropped_frames", "Frames that were dropped", "reason", [("too \"big\"", 2)]);
        metrics.counters("sent", "What was sent").in_unit(Unit::Bytes).add([("vni", 7.to_string())], 5u64);
        metrics.counters("ignored", "Nothing yet");
        let text = metrics.text(DaemonKind::Agent).unwrap();
        let own: Vec<&str> = text.lines().filter(|line| line.contains("weft_agent")).collect();
        assert_eq!(
            own,
            [
                "# HELP weft_agent_mappings AAs that have a mapping",
                "# TYPE weft_agent_mappings gauge",
                "weft_agent_mappings 3",
                "# HELP weft_agent_dropped_frames Frames that were dropped",
                "# TYPE weft_agent_dropped_frames counter",
                "weft_agent_dropped_frames_total{reason=\"too \\\"big\\\"\"} 2",
                "# HELP weft_agent_sent_bytes What was sent",
                "# TYPE weft_agent_sent_bytes counter",
                "# UNIT weft_agent_sent_bytes bytes",
                "weft_agent_sent_bytes_total{vni=\"7\"} 5",
                "# HELP weft_agent_ignored Nothing yet",
                "# TYPE weft_agent_ignored counter",
            ]
        );
        assert!(text.contains("\nprocess_cpu_seconds_total ") && text.ends_with("# EOF\n"), "{text}");
    }
}
