//! The analyser of one port, and what it counted.

use libbpf_rs::{Link, MapCore, MapFlags, Object};
use weft_datapath::DatapathError;
use weft_datapath::abi::Abi;
use weft_datapath::frame::{self, FrameOutput};
use weft_datapath::object;
use weft_datapath::trill::XdpMode;

use super::attach_xdp;
use super::live::words;
use crate::abi::{BUCKETS, TesterAnalyser, TesterPort, TesterSeen, TesterStream};
use crate::files;

const STATE: &str = ".data.analyser";
const PORT: &str = "tester_port";
const SEEN: &str = "tester_seen";
const STREAMS: &str = "tester_streams";
const PORT_STATE_BYTES: usize = size_of::<TesterPort>();

/// One stream's counters: what they mean is in `bpf/testbed_abi.h` and in `weft-lab`'s account.
pub type StreamReading = TesterSeen;

/// A port's counters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PortReading {
    pub port: TesterPort,
    /// Latencies by bucket.
    pub histogram: Vec<u64>,
}

/// A loaded analyser; it counts while it is attached.
#[derive(Debug)]
pub struct Analyser {
    object: Object,
    streams: u32,
    attached: Option<(Link, XdpMode)>,
}

impl Analyser {
    /// Loads an analyser. `stations` has an entry for each stream: the hardware address and the VLAN (0: no tag) that its
    /// frames must arrive with, or `None` where they must not arrive at this port at all.
    ///
    /// # Errors
    /// Any [`DatapathError`].
    pub fn load(stations: &[Option<([u8; 6], u16)>]) -> Result<Self, DatapathError> {
        let streams = u32::try_from(stations.len()).unwrap_or(u32::MAX);
        if streams == 0 || streams > 1 << 16 {
            let why = format!("{streams}; an analyser knows 1 to 65536");
            return Err(DatapathError::Config { field: "streams", why });
        }
        let mut open = files::TESTER_ANALYSE.open()?;
        for map in [STREAMS, SEEN] {
            object::set_max_entries(&mut open, map, streams)?;
        }
        let analyser = Self { object: files::TESTER_ANALYSE.load(open)?, streams, attached: None };
        for (number, station) in (0u32..).zip(stations) {
            let station = station.map_or(0, |(mac, vlan)| word_of(mac) << 16 | u64::from(vlan));
            let state = TesterStream { station, ..TesterStream::default() };
            object::update(&analyser.object, STREAMS, number.bytes(), state.bytes())?;
        }
        Ok(analyser)
    }

    /// Attaches it to an interface of the caller's namespace. It stays until this value is dropped.
    ///
    /// # Errors
    /// [`DatapathError::NoInterface`]; [`DatapathError::Program`] where another XDP program is attached.
    pub fn attach(&mut self, interface: &str) -> Result<XdpMode, DatapathError> {
        let attached = attach_xdp(&object::program(&self.object, "tester_analyse"), interface)?;
        let mode = attached.1;
        self.attached = Some(attached);
        Ok(mode)
    }

    /// Begins a trial: all counters are zero, and frames of other seeds are of earlier ones. The payload is checked in
    /// every frame whose sequence has no bit of `payload_mask`.
    ///
    /// # Errors
    /// [`DatapathError::Map`].
    pub fn begin(&self, trial: u32, seed: u8, payload_mask: u32) -> Result<(), DatapathError> {
        let per_cpu = vec![vec![0; PORT_STATE_BYTES + BUCKETS * 8]; cpus()?];
        object::map_handle(&self.object, PORT)?
            .update_percpu(0u32.bytes(), &per_cpu, MapFlags::ANY)
            .map_err(|source| DatapathError::Map { map: PORT, what: "clearing", source })?;
        let state = TesterAnalyser { trial, streams: self.streams, seed: u32::from(seed), payload_mask };
        object::update(&self.object, STATE, 0u32.bytes(), state.bytes())
    }

    /// The port's counters, over all CPUs.
    ///
    /// # Errors
    /// [`DatapathError::Map`].
    pub fn port(&self) -> Result<PortReading, DatapathError> {
        let mut sum = PortReading { histogram: vec![0; BUCKETS], ..PortReading::default() };
        for value in self.read_percpu(PORT, 0)? {
            let (numbers, histogram) = value.split_at(PORT_STATE_BYTES.min(value.len()));
            let port = TesterPort::from_bytes(numbers).unwrap_or_default();
            add_port(&mut sum.port, &port);
            sum.histogram.iter_mut().zip(words(histogram)).for_each(|(sum, count)| *sum += count);
        }
        Ok(sum)
    }

    /// Every stream's counters in this trial, over all CPUs.
    ///
    /// # Errors
    /// [`DatapathError::Map`].
    pub fn streams(&self, trial: u32) -> Result<Vec<StreamReading>, DatapathError> {
        (0..self.streams).map(|number| self.stream(number, trial)).collect()
    }

    fn stream(&self, number: u32, trial: u32) -> Result<StreamReading, DatapathError> {
        let mut sum = TesterSeen { trial: u64::from(trial), ..TesterSeen::default() };
        let values = self.read_percpu(SEEN, number)?;
        for seen in values.iter().filter_map(|value| TesterSeen::from_bytes(value)) {
            // A CPU that has seen nothing of this trial still has the counters of another.
            if seen.trial == u64::from(trial) {
                sum.received += seen.received;
                sum.misdelivered += seen.misdelivered;
                sum.corrupt += seen.corrupt;
                sum.stale += seen.stale;
                sum.reordered += seen.reordered;
                sum.duplicated += seen.duplicated;
            }
        }
        Ok(sum)
    }

    /// One frame through the program, without a network.
    ///
    /// # Errors
    /// [`DatapathError::Program`] if the kernel refuses the frame.
    pub fn run(&self, bytes: &[u8]) -> Result<FrameOutput, DatapathError> {
        frame::run_xdp(&object::program(&self.object, "tester_analyse"), bytes)
    }

    fn read_percpu(&self, map: &'static str, key: u32) -> Result<Vec<Vec<u8>>, DatapathError> {
        let value = object::map_handle(&self.object, map)?
            .lookup_percpu(key.bytes(), MapFlags::ANY)
            .map_err(|source| DatapathError::Map { map, what: "reading", source })?;
        Ok(value.unwrap_or_default())
    }
}

pub(super) fn cpus() -> Result<usize, DatapathError> {
    libbpf_rs::num_possible_cpus().map_err(|source| DatapathError::Program { what: "counting CPUs".to_owned(), source })
}

fn word_of(mac: [u8; 6]) -> u64 {
    mac.iter().fold(0, |word, byte| word << 8 | u64::from(*byte))
}

fn add_port(sum: &mut TesterPort, port: &TesterPort) {
    if port.frames > 0 {
        sum.first_ns = if sum.frames == 0 { port.first_ns } else { sum.first_ns.min(port.first_ns) };
        sum.last_ns = sum.last_ns.max(port.last_ns);
    }
    sum.frames += port.frames;
    sum.bytes += port.bytes;
    sum.latency_sum_ns += port.latency_sum_ns;
    sum.latency_max_ns = sum.latency_max_ns.max(port.latency_max_ns);
    sum.jitter_sum_ns += port.jitter_sum_ns;
    sum.jitter_count += port.jitter_count;
    sum.damaged += port.damaged;
    sum.earlier += port.earlier;
    sum.unknown += port.unknown;
}
