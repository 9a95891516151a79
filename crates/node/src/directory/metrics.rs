//! The status as Prometheus metrics: one source for `weft directory status` and `/metrics`.

use std::collections::BTreeMap;
use std::fmt;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;

use super::protocol::DirectoryStatus;

/// Type of the text.
pub(super) const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The text of a scrape.
pub(super) fn text(status: DirectoryStatus) -> Result<String, fmt::Error> {
    let mut registry = Registry::with_prefix("weft_directory");
    registry.register_collector(Box::new(Snapshot(status)));
    let mut text = String::new();
    prometheus_client::encoding::text::encode(&mut text, &registry)?;
    Ok(text)
}

#[derive(Debug)]
struct Snapshot(DirectoryStatus);

impl Collector for Snapshot {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let Self(status) = self;
        gauge(&mut encoder, "revision", "Revision of the table", status.revision)?;
        gauge(&mut encoder, "mappings", "AAs that have a mapping", status.mappings as u64)?;
        gauge(&mut encoder, "lookup_threads", "Threads that answer look-ups", status.lookup_threads as u64)?;
        gauge(
            &mut encoder,
            "store_up",
            "1 if the store could be used when last tried",
            status.store_error.is_none().into(),
        )?;
        for (name, help) in [
            ("datagrams", "Datagrams that came"),
            ("answered", "Answers sent"),
            ("questions", "AAs asked for in valid questions"),
            ("unsent", "Answers that the kernel did not take"),
            ("reports", "Reports of ToRs"),
        ] {
            let count = status.lookups.get(name).copied().unwrap_or(0);
            let metric = ConstCounter::new(count);
            let name = format!("lookup_{name}");
            metric.encode(encoder.encode_descriptor(&name, help, None, metric.metric_type())?)?;
        }
        family(&mut encoder, "ignored", "Datagrams without an answer", "reason", &status.ignored)?;
        family(&mut encoder, "updates", "Requests that change something, and log records", "outcome", &status.updates)?;
        family(&mut encoder, "corrections", "Packets that ToRs reported", "outcome", &status.corrections)?;
        let beyond = status.sessions.get("beyond_quota").copied().unwrap_or(0);
        let metric = ConstCounter::new(beyond);
        let help = "What services asked for beyond their shares";
        metric.encode(encoder.encode_descriptor("beyond_quota", help, None, metric.metric_type())?)?;
        for (name, help) in [("open", "Sessions"), ("watching", "Sessions that watch")] {
            let count = status.sessions.get(name).copied().unwrap_or(0);
            gauge(&mut encoder, &format!("sessions_{name}"), help, count)?;
        }
        Ok(())
    }
}

fn gauge(encoder: &mut DescriptorEncoder<'_>, name: &str, help: &str, value: u64) -> fmt::Result {
    let metric = ConstGauge::new(i64::try_from(value).unwrap_or(i64::MAX));
    metric.encode(encoder.encode_descriptor(name, help, None, metric.metric_type())?)
}

/// One counter for each name.
fn family(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    label: &str,
    counts: &BTreeMap<String, u64>,
) -> fmt::Result {
    let kind = ConstCounter::new(0u64).metric_type();
    let mut metrics = encoder.encode_descriptor(name, help, None, kind)?;
    for (value, count) in counts {
        let labels = [(label, value.as_str())];
        ConstCounter::new(*count).encode(metrics.encode_family(&labels)?)?;
    }
    Ok(())
}
