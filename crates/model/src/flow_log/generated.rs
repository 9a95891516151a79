//! A generated flow log ([`FlowLogSpec`]): recorded as it is drawn, or written down as text that [`super::reader`] reads.
//!
//! As text, rack r has the addresses 10.x.y.1 and up with x = r / 256 and y = r % 256, so that `/24` finds the racks, and the
//! outside has addresses of 203.0.113.0/24, which nobody owns (RFC 5737).

use std::io::Write;
use std::net::Ipv4Addr;

use weft_scenario::record::Records;
use weft_scenario::workload::{FlowLog, FlowLogSpec, LoggedFlow, Servers, Site, WorkloadError};

use super::{End, Flow, Options, Recorder, fact};

/// Columns of the text.
pub const HEADER: &str = "start_ns,end_ns,from,to,bytes";
/// How often the progress is told.
const FLOWS_PER_REPORT: u64 = 1 << 15;
/// Share of the work that is drawing and recording; the rest is clustering.
const DRAWING: f64 = 0.6;
/// Racks and servers of a rack that the addresses have room for.
const RACKS_MAX: u32 = 65_536;
const SERVERS_PER_RACK_MAX: u32 = 250;

/// Why a log was not generated.
#[derive(Debug, thiserror::Error)]
pub enum GenerateError {
    /// The workload makes no sense on these servers.
    #[error(transparent)]
    Workload(#[from] WorkloadError),
    /// Too much to record.
    #[error("{0}")]
    Record(String),
    /// The text cannot be written.
    #[error(transparent)]
    Write(#[from] std::io::Error),
    /// More racks or servers than addresses.
    #[error("a written log has addresses for {RACKS_MAX} racks of {SERVERS_PER_RACK_MAX} servers; choose fewer")]
    NoAddresses,
    /// The user asked to stop.
    #[error("interrupted")]
    Interrupted,
}

/// Records the log, and writes every flow to `text` too if there is one. `on_progress` hears how much is done, 0 to 1, and
/// answers whether to go on.
pub fn record(
    spec: &FlowLogSpec,
    servers: &Servers,
    seed: u64,
    options: Options,
    mut text: Option<&mut dyn Write>,
    mut on_progress: impl FnMut(f64) -> bool,
) -> Result<Records, GenerateError> {
    let addresses = text.is_some().then(|| addresses(servers)).transpose()?;
    if let Some(text) = &mut text {
        writeln!(text, "{HEADER}")?;
    }
    let mut recorder = Recorder::new(options);
    let end = |site: Site| match site {
        Site::Server(server) => End::Server { server, rack: servers.rack(server) },
        Site::Outside => End::Outside,
    };
    for logged in FlowLog::new(spec, servers, seed)? {
        let LoggedFlow { from, to, bytes, start_ns, end_ns } = logged;
        recorder.add(&Flow { from: end(from), to: end(to), bytes, start_ns, end_ns }).map_err(GenerateError::Record)?;
        if let (Some(text), Some(addresses)) = (&mut text, &addresses) {
            let outside = Ipv4Addr::new(203, 0, 113, (recorder.flows() % 254 + 1) as u8);
            let address = |site| if let Site::Server(server) = site { addresses[server as usize] } else { outside };
            writeln!(text, "{start_ns},{end_ns},{},{},{bytes}", address(from), address(to))?;
        }
        let done = start_ns as f64 / spec.duration.0 as f64 * DRAWING;
        if recorder.flows().is_multiple_of(FLOWS_PER_REPORT) && !on_progress(done) {
            return Err(GenerateError::Interrupted);
        }
    }
    let merged = |done: f64| on_progress(DRAWING + done * (1.0 - DRAWING));
    let records = recorder.finish(Some(spec.duration.0), merged).ok_or(GenerateError::Interrupted)?;
    // Servers without any flow were not seen, but they were there.
    Ok(with_idle_servers(records, servers, spec.duration.0))
}

fn with_idle_servers(mut records: Records, servers: &Servers, window_ns: u64) -> Records {
    let Some((_, seen)) = records.facts.iter_mut().find(|(name, _)| name == fact::SERVERS) else { return records };
    let idle_s = (f64::from(servers.count()) - *seen) * window_ns as f64 / 1e9;
    *seen = f64::from(servers.count());
    match records.concurrency.first_mut().filter(|row| row.flows == 0) {
        Some(none) => none.server_s += idle_s,
        None if idle_s > 0.0 => {
            records.concurrency.insert(0, weft_scenario::record::ConcurrencyRow { flows: 0, server_s: idle_s });
        }
        None => {}
    }
    records
}

fn addresses(servers: &Servers) -> Result<Vec<Ipv4Addr>, GenerateError> {
    let mut used: Vec<u32> = Vec::new();
    let address = |server| {
        let rack = servers.rack(server);
        used.resize(used.len().max(rack as usize + 1), 0);
        let number = &mut used[rack as usize];
        *number += 1;
        let fits = rack < RACKS_MAX && *number <= SERVERS_PER_RACK_MAX;
        fits.then(|| Ipv4Addr::from(0x0a00_0000 | rack << 8 | *number)).ok_or(GenerateError::NoAddresses)
    };
    (0..servers.count()).map(address).collect()
}

#[cfg(test)]
mod tests {
    use weft_scenario::units::{BitsPerSec, Nanos};

    use super::*;

    #[test]
    fn racks_have_their_own_slash_24() {
        let addresses = addresses(&Servers::alike(5, BitsPerSec(1), 2)).unwrap();
        let text: Vec<String> = addresses.iter().map(ToString::to_string).collect();
        assert_eq!(text, ["10.0.0.1", "10.0.0.2", "10.0.1.1", "10.0.1.2", "10.0.2.1"]);
        assert!(super::addresses(&Servers::alike(251, BitsPerSec(1), 251)).is_err());
        let many = super::addresses(&Servers::alike(257, BitsPerSec(1), 1)).unwrap();
        assert_eq!(many[256].to_string(), "10.1.0.1");
    }

    #[test]
    fn every_flow_is_written_and_all_servers_are_counted() {
        let (spec, servers) =
            (FlowLogSpec::vl2(Nanos(30_000_000_000)), Servers::alike(40, BitsPerSec(1_000_000_000), 20));
        let mut text = Vec::new();
        let options = Options { interval: None, ..Options::default() };
        let records = record(&spec, &servers, 1, options, Some(&mut text), |_| true).unwrap();
        let lines = text.iter().filter(|byte| **byte == b'\n').count() as u64;
        assert_eq!(lines, 1 + records.flow_sizes.iter().map(|row| row.flows).sum::<u64>());
        let stood_s: f64 = records.concurrency.iter().map(|row| row.server_s).sum();
        assert!((stood_s - 40.0 * 30.0).abs() < 1e-6, "{stood_s}");
    }
}
