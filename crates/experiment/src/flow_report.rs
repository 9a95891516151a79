//! What `weft analyse` tells of a flow log: the numbers beside what VL2 says of its own, the records, and a page with the
//! figures.

use minijinja::{Environment, Value, context};
use serde::Serialize;
use weft_model::flow_log::fact;
use weft_scenario::engine::Overlay;
use weft_scenario::record::{ConcurrencyRow, FittingRow, FlowSizeRow, MatrixRow, Records};

use crate::analysis::flow_log::concurrency::ConcurrencySummary;
use crate::analysis::flow_log::matrices::{self, MatrixSummary};
use crate::analysis::flow_log::sizes::SizeSummary;
use crate::analysis::flow_log::{concurrency, number, sizes};
use crate::analysis::{TrialKey, TrialRecords};
use crate::figure::flow_log as figures;
use crate::metric::Table;
use crate::report::{ReportError, STYLE, figure_value};
use crate::run_folder::RunFolder;
use crate::table::plain;

const TEMPLATE: &str = include_str!("flow_report.html");
const SCHEMA_VERSION: u32 = 1;

/// The object of `weft analyse -o json`.
#[derive(Clone, Debug, Serialize)]
pub struct FlowReport {
    schema_version: u32,
    log: String,
    flows: u64,
    bytes: u64,
    window_s: f64,
    servers: u64,
    bytes_inside: f64,
    bytes_crossing: f64,
    bytes_elsewhere: f64,
    sizes: SizeSummary,
    concurrency: ConcurrencySummary,
    matrices: MatrixSummary,
    size_bins: Vec<FlowSizeRow>,
    concurrency_bins: Vec<ConcurrencyRow>,
    matrix_rows: Vec<MatrixRow>,
    fitting: Vec<FittingRow>,
    run_lengths: Vec<u32>,
    /// Intervals until a cluster returned, and how often that was.
    returns: Vec<(u32, u32)>,
}

/// A number for people.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ReportLine {
    /// Its name, as in the JSON object.
    pub name: String,
    pub value: String,
    /// What VL2 says of its data centre.
    pub paper: &'static str,
    pub meaning: String,
}

impl ReportLine {
    /// As a row of a table.
    pub fn cells(&self) -> [String; 4] {
        [self.name.clone(), self.value.clone(), self.paper.to_owned(), self.meaning.clone()]
    }
}

/// What VL2 says about the metrics of a log (3.1 to 3.3).
const PAPER: [(&str, &str); 11] = [
    ("median_size", "a few KB"),
    ("flows_to_100_mb", "99 % of flows"),
    ("bytes_100_mb_to_1_gb", "more than 90 % of bytes"),
    ("bytes_mode", "around 100 MB"),
    ("flows_above_3_gb", "rare"),
    ("inside_over_outside", "around 4"),
    ("time_about_ten", "more than half of the time"),
    ("time_above_80", "at least 5 % of the time"),
    ("time_above_100", "almost never"),
    ("fitting_error_60", "60 %; the denominator is not said"),
    ("run_length_p60", "1"),
];

impl FlowReport {
    /// Of a log's records.
    pub fn of(log: &str, records: &Records) -> Self {
        let fact = |name| records.fact(name).unwrap_or_default();
        let (flows, bytes) = sizes::totals(&records.flow_sizes);
        let clusters = matrices::clusters(records);
        Self {
            schema_version: SCHEMA_VERSION,
            log: log.to_owned(),
            flows,
            bytes,
            window_s: fact(fact::WINDOW_S),
            servers: fact(fact::SERVERS) as u64,
            bytes_inside: fact(fact::BYTES_INSIDE),
            bytes_crossing: fact(fact::BYTES_CROSSING),
            bytes_elsewhere: fact(fact::BYTES_ELSEWHERE),
            sizes: SizeSummary::of(records),
            concurrency: ConcurrencySummary::of(records),
            matrices: MatrixSummary::of(records),
            size_bins: records.flow_sizes.clone(),
            concurrency_bins: records.concurrency.clone(),
            matrix_rows: records.matrices.clone(),
            fitting: records.fitting.clone(),
            run_lengths: matrices::run_lengths(&clusters),
            returns: matrices::repeats(&clusters).into_iter().collect(),
        }
    }

    /// The numbers for people, in the order of the paper's sections.
    pub fn lines(&self) -> Vec<ReportLine> {
        let head = |name: &str, value: f64, meaning: &str| ReportLine {
            name: name.to_owned(),
            value: plain(value),
            paper: "",
            meaning: meaning.to_owned(),
        };
        let mut lines = vec![
            head("flows", self.flows as f64, "flows in one direction"),
            head("bytes", self.bytes as f64, "bytes of all flows"),
            head("window_s", self.window_s, "seconds from the first to the last start"),
            head("servers", self.servers as f64, "addresses inside"),
            head("matrices", self.matrices.matrices as f64, "whole intervals"),
        ];
        let groups = [
            (serde_json::to_value(&self.sizes), sizes::METRICS),
            (serde_json::to_value(&self.concurrency), concurrency::METRICS),
            (serde_json::to_value(&self.matrices), matrices::METRICS),
        ];
        for (values, metrics) in groups {
            let Ok(values) = values else { continue };
            for metric in metrics {
                let Some(value) = number(&values, metric.name) else { continue };
                lines.push(ReportLine {
                    name: metric.name.to_owned(),
                    value: value.as_f64().map_or_else(|| "-".to_owned(), plain),
                    paper: PAPER.iter().find(|(name, _)| *name == metric.name).map_or("", |(_, says)| says),
                    meaning: metric.meaning.to_owned(),
                });
            }
        }
        lines
    }

    /// Writes records, summary and page into a folder.
    pub fn write(&self, folder: &RunFolder, records: &Records, seed: u64) -> Result<(), ReportError> {
        let key = TrialKey {
            trial: 1,
            repetition: 1,
            seed,
            overlay: Overlay::Routed,
            workload: "flow-log".to_owned(),
            point: Vec::new(),
        };
        folder.write_trial(&[], &TrialRecords { key, records: records.clone() })?;
        folder.write_json("summary.json", self)?;
        folder.write_text("figures.html", &self.page(records)?)?;
        Ok(())
    }

    /// The page with the figures; it opens without a network.
    fn page(&self, records: &Records) -> Result<String, ReportError> {
        let logs = [(self.log.clone(), records)];
        let mut drawn = figures::by_size(&logs);
        drawn.extend(figures::at_once(&logs));
        if !records.fitting.is_empty() {
            drawn.extend(figures::over_time(&logs));
        }
        let drawn: Vec<Value> = drawn.into_iter().map(figure_value).collect();
        let lines: Vec<[String; 4]> = self.lines().iter().map(ReportLine::cells).collect();
        let table: Table = matrices::table(&self.log, records);
        let mut environment = Environment::new();
        environment.set_auto_escape_callback(|_| minijinja::AutoEscape::Html);
        environment.add_template("page", TEMPLATE)?;
        let style = Value::from_safe_string(STYLE.to_owned());
        let table = minijinja::value::Serde(&table);
        let page = environment.get_template("page")?;
        Ok(page.render(context! { log => self.log.as_str(), style, lines, figures => drawn, table })?)
    }
}
