//! Any bytes as a flow log: refused with a line that exists, or turned into records that add up.

use weft_model::flow_log::places::{Places, RackRule};
use weft_model::flow_log::reader::{self, ReadError, ReadOptions};
use weft_model::flow_log::{Options, Recorder, fact};
use weft_scenario::record::Records;

use crate::seeds::Seed;

const REORDER_NS: u64 = 1_000_000_000;
/// Steps of the clustering before it is stopped: its work does not depend on bytes but on their number.
const STEPS_MAX: usize = 500;

const HEADER: &str = "start_s,end_s,from,to,bytes\n";
const NFDUMP: &str = "Date first seen          Duration Proto      Src IP Addr:Port          Dst IP Addr:Port   Flags Tos  Packets    Bytes Flows\n\
2005-08-30 06:53:53.370    10.000 TCP           10.0.0.1:25    ->         10.0.1.1:3575   .AP.SF   0    1.2 M   2.5 G     1\n\
2005-08-30 06:54:13.370     0.000 UDP           10.0.0.1:53    ->          8.8.8.8:53     ......   0        1      50     1\n\
Summary: total flows: 2\n";

/// Any bytes as a flow log.
///
/// # Panics
/// When what is refused has no place, or the records do not add up.
pub fn flow_log(bytes: &[u8]) {
    let (mut places, mut recorder) = (Places::new(RackRule::private()), Recorder::new(Options::default()));
    let options = ReadOptions { format: None, reorder_ns: REORDER_NS };
    let lines = bytes.split_inclusive(|byte| *byte == b'\n').count() as u64;
    match reader::read(bytes, options, &mut places, &mut recorder, |_| true) {
        Ok(pace) => {
            assert!(pace.lines <= lines && pace.bytes <= bytes.len() as u64);
            let mut steps = 0;
            let records = recorder.finish(None, |_| {
                steps += 1;
                steps < STEPS_MAX
            });
            let Some(records) = records else { return };
            adds_up(&records);
        }
        Err(error) => {
            let text = error.to_string();
            assert!(!text.contains('\n') && text.len() < 1000, "one line that can be read: {text}");
            if let ReadError::Line { line, .. } = error {
                assert!((1..=lines).contains(&line), "{text}");
            }
        }
    }
}

fn adds_up(records: &Records) {
    let fact = |name: &str| records.facts.iter().find(|fact| fact.0 == name).map_or(0.0, |fact| fact.1);
    let flows: u64 = records.flow_sizes.iter().map(|row| row.flows).sum();
    assert_eq!(flows as f64, fact(fact::FLOWS));
    let stood_s: f64 = records.concurrency.iter().map(|row| row.server_s).sum();
    let there_s = fact(fact::SERVERS) * fact(fact::WINDOW_S);
    assert!((stood_s - there_s).abs() <= there_s * 1e-9, "{stood_s} of {there_s} server-seconds");
    let moved: f64 = records.matrices.iter().map(|row| row.bytes as f64).sum();
    let sent = fact(fact::BYTES_INSIDE) + fact(fact::BYTES_CROSSING);
    assert!(moved <= sent * (1.0 + 1e-9), "{moved} of {sent} bytes");
    assert!(records.fitting.iter().all(|row| (0.0..=1.0).contains(&row.error_ratio)));
}

/// Logs of every format, good ones and odd ones.
pub(crate) fn seeds() -> Vec<Seed> {
    let rows = "0,10,10.0.0.1,10.0.1.1,1000\n150.5,350,10.0.1.1,8.8.8.8,50\n400,400,10.0.0.2,10.0.0.1,7\n";
    let file = |name, text: String| Seed { target: "flow_log", name, bytes: text.into_bytes() };
    vec![
        file("csv", format!("{HEADER}{rows}")),
        file("csv-late-line", format!("{HEADER}1,2,10.0.0.1,10.0.0.2,3\n0.5,2,10.0.0.1,10.0.0.2,3\n")),
        file("csv-time-goes-back", format!("{HEADER}9,9,10.0.0.1,10.0.0.2,3\n0,2,10.0.0.1,10.0.0.2,3\n")),
        file("csv-missing-column", "start_s,end_s,from,to\n".to_owned()),
        file("csv-quoted", "\"from\";\"to\";\"bytes\";\"start_ms\";\"duration_ms\"\n\"fd00::1\";\"fd00::2\";5;7;9\n".to_owned()),
        file("csv-end-of-time", format!("{HEADER}0,18446744073,10.0.0.1,8.8.8.8,18446744073709551615\n")),
        file("empty", String::new()),
        file(
            "ipfix",
            "flowStartMilliseconds,flowEndMilliseconds,sourceIPv4Address,destinationIPv4Address,octetDeltaCount,\
             reverseOctetDeltaCount\n2009-08-17 10:00:00.500,2009-08-17 10:00:10.500,10.0.0.1,10.0.1.1,1000,3\n"
                .to_owned(),
        ),
        file("nfdump", NFDUMP.to_owned()),
        file("nfdump-short-address", NFDUMP.replace("8.8.8.8:53", "fe80::c..79:de19.0")),
        file(
            "nfdump-csv",
            "ts,te,td,sa,da,ibyt,obyt\n2024-06-28 23:17:41,2024-06-28 23:17:51,10.000,10.0.0.1,10.0.1.1,1000,0\nSummary\nflows\n1\n"
                .to_owned(),
        ),
        file("rwcut", "sIP|dIP|bytes|sTime|duration|\n 10.0.0.1| 10.0.1.1| 5|2009/08/17T10:00:00.000| 1.5|\n".to_owned()),
    ]
}
