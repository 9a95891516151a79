//! What daytone says of a run: a table of its sinks.

use std::collections::BTreeMap;
use std::io::Read;

use weft_scenario::engine::EngineError;

/// What has arrived.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Arrived {
    pub(super) packets: u64,
    /// Of all packets alike.
    pub(super) mean_delay_us: f64,
    /// Of the packets of each stream that has any, by its number.
    pub(super) stream_delays_us: BTreeMap<u64, f64>,
}

impl Arrived {
    /// How many streams have these mean delays.
    pub(super) fn as_fast(&self, delays_us: &[f64]) -> u64 {
        let is_near = |(number, delay_us): (u64, &f64)| {
            let theirs = self.stream_delays_us.get(&number);
            theirs.is_some_and(|theirs| (theirs - delay_us).abs() <= DELAY_TOLERANCE * delay_us)
        };
        (0..).zip(delays_us).filter(|stream| is_near(*stream)).count() as u64
    }
}

/// Delays may differ by this share: daytone counts seconds in floating point.
const DELAY_TOLERANCE: f64 = 1e-6;
const STREAM: &str = "flow_id";
const PACKETS: &str = "received_packets";
const DELAY: &str = "one_way_delay_mean";

/// Reads `sinks.csv`.
pub(super) fn read(table: impl Read) -> Result<Arrived, EngineError> {
    let mut reader = csv::Reader::from_reader(table);
    let headers = reader.headers().map_err(unread)?.clone();
    let column = |name: &str| headers.iter().position(|header| header == name).ok_or_else(|| missing(name));
    let (stream, packets, delay) = (column(STREAM)?, column(PACKETS)?, column(DELAY)?);
    let (mut arrived, mut delays_us) = (Arrived::default(), 0.0);
    for row in reader.records() {
        let row = row.map_err(unread)?;
        let count: u64 = value(&row, packets, PACKETS)?;
        arrived.packets = arrived.packets.saturating_add(count);
        // The mean of nothing may be anything.
        if count > 0 {
            let delay_us = 1e6 * value::<f64>(&row, delay, DELAY)?;
            delays_us += count as f64 * delay_us;
            arrived.stream_delays_us.insert(value(&row, stream, STREAM)?, delay_us);
        }
    }
    arrived.mean_delay_us = delays_us / arrived.packets.max(1) as f64;
    Ok(arrived)
}

fn value<T: std::str::FromStr>(row: &csv::StringRecord, column: usize, name: &str) -> Result<T, EngineError> {
    let text = row.get(column).unwrap_or_default();
    let line = row.position().map_or(0, csv::Position::line);
    text.trim().parse().map_err(|_| {
        EngineError::Failed(format!("daytone's sinks.csv, line {line}: `{text}` is no number for `{name}`"))
    })
}

fn missing(name: &str) -> EngineError {
    EngineError::Failed(format!("daytone's sinks.csv has no column `{name}`: is it another version than 0.3.4?"))
}

fn unread(error: csv::Error) -> EngineError {
    EngineError::Failed(format!("daytone's sinks.csv: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Result<Arrived, String> {
        read(text.as_bytes()).map_err(|error| error.to_string())
    }

    #[test]
    fn sinks_count_by_their_packets() {
        let text = "flow_id,received_packets,one_way_delay_mean,more\n0,3,0.05,x\n1,0,NaN,x\n2,1,0.15,x\n";
        let arrived = of(text).expect("it is whole");
        assert_eq!(arrived.packets, 4);
        assert!((arrived.mean_delay_us - 75_000.0).abs() < 1e-6, "{arrived:?}");
        assert_eq!(of("flow_id,received_packets,one_way_delay_mean\n"), Ok(Arrived::default()));
    }

    #[test]
    fn streams_are_compared_one_by_one_and_not_by_their_places() {
        let text = "flow_id,received_packets,one_way_delay_mean\n2,1,0.15\n0,3,0.05\n1,0,0.1\n";
        let arrived = of(text).expect("it is whole");
        assert_eq!(arrived.as_fast(&[50_000.0, 100_000.0, 150_000.0]), 2, "nothing of stream 1 has arrived");
        assert_eq!(arrived.as_fast(&[50_000.04, 0.0, 150_000.2]), 1, "a millionth is near");
        assert_eq!(arrived.as_fast(&[150_000.0, 100_000.0, 50_000.0]), 0);
    }

    #[test]
    fn what_is_no_such_table_is_refused_by_its_place() {
        for (text, message) in [
            ("", "no column `flow_id`"),
            ("flow_id,received_packets\n1,1\n", "no column `one_way_delay_mean`"),
            (
                "flow_id,received_packets,one_way_delay_mean\n0,-1,2\n",
                "line 2: `-1` is no number for `received_packets`",
            ),
            (
                "flow_id,received_packets,one_way_delay_mean\n0,1,0.1\n1,1,x\n",
                "line 3: `x` is no number for `one_way_del",
            ),
            ("flow_id,received_packets,one_way_delay_mean\nx,1,0.1\n", "line 2: `x` is no number for `flow_id`"),
            ("flow_id,received_packets,one_way_delay_mean\n1,1\n", "daytone's sinks.csv: "),
        ] {
            let error = of(text).expect_err(text);
            assert!(error.contains(message), "{error}");
        }
    }
}
