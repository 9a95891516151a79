//! The receiver of frames that are sent as they are: which of those it knows came in, and how often.

use libbpf_rs::{Link, MapCore, MapFlags, Object};
use weft_datapath::DatapathError;
use weft_datapath::abi::Abi;
use weft_datapath::frame::{self, FrameOutput};
use weft_datapath::object;
use weft_datapath::trill::XdpMode;

use super::analyser::cpus;
use super::attach_xdp;
use crate::abi::{TesterKnown, TesterRecognised};
use crate::files;

const KNOWN: &str = "tester_known";
const PORT: &str = "tester_recognised";

/// Most digests that one receiver knows.
const KNOWN_MAX: u32 = 1 << 20;

/// A loaded receiver; it counts while it is attached.
#[derive(Debug)]
pub struct Recogniser {
    object: Object,
    digests: Vec<u64>,
    attached: Option<(Link, XdpMode)>,
}

impl Recogniser {
    /// Loads a receiver for frames of these digests, each once.
    ///
    /// # Errors
    /// Any [`DatapathError`].
    pub fn load(digests: Vec<u64>) -> Result<Self, DatapathError> {
        let known = u32::try_from(digests.len()).unwrap_or(u32::MAX);
        if known == 0 || known > KNOWN_MAX {
            let why = format!("{known}; a receiver knows 1 to {KNOWN_MAX}");
            return Err(DatapathError::Config { field: "digests", why });
        }
        let mut open = files::TESTER_RECOGNISE.open()?;
        object::set_max_entries(&mut open, KNOWN, known)?;
        let recogniser = Self { object: files::TESTER_RECOGNISE.load(open)?, digests, attached: None };
        recogniser.begin()?;
        Ok(recogniser)
    }

    /// Attaches it to an interface of the caller's namespace. It stays until this value is dropped.
    ///
    /// # Errors
    /// [`DatapathError::NoInterface`]; [`DatapathError::Program`] where another XDP program is attached.
    pub fn attach(&mut self, interface: &str) -> Result<XdpMode, DatapathError> {
        let attached = attach_xdp(&object::program(&self.object, "tester_recognise"), interface)?;
        let mode = attached.1;
        self.attached = Some(attached);
        Ok(mode)
    }

    /// Begins a trial: all counters are zero.
    ///
    /// # Errors
    /// [`DatapathError::Map`].
    pub fn begin(&self) -> Result<(), DatapathError> {
        let known = object::map_handle(&self.object, KNOWN)?;
        let none = TesterKnown::default();
        let clear = |digest: &u64| known.update(digest.bytes(), none.bytes(), MapFlags::ANY);
        self.digests.iter().try_for_each(clear).map_err(failed(KNOWN, "clearing"))?;
        let per_cpu = vec![TesterRecognised::default().bytes().to_vec(); cpus()?];
        let port = object::map_handle(&self.object, PORT)?;
        port.update_percpu(0u32.bytes(), &per_cpu, MapFlags::ANY).map_err(failed(PORT, "clearing"))
    }

    /// How many frames of each digest came in.
    ///
    /// # Errors
    /// [`DatapathError::Map`].
    pub fn received(&self) -> Result<Vec<u64>, DatapathError> {
        let known = object::map_handle(&self.object, KNOWN)?;
        let count = |digest: &u64| {
            let value = known.lookup(digest.bytes(), MapFlags::ANY).map_err(failed(KNOWN, "reading"))?;
            Ok(value.and_then(|value| TesterKnown::from_bytes(&value)).unwrap_or_default().received)
        };
        self.digests.iter().map(count).collect()
    }

    /// The port's counters, over all CPUs.
    ///
    /// # Errors
    /// [`DatapathError::Map`].
    pub fn port(&self) -> Result<TesterRecognised, DatapathError> {
        let values = object::map_handle(&self.object, PORT)?
            .lookup_percpu(0u32.bytes(), MapFlags::ANY)
            .map_err(failed(PORT, "reading"))?;
        let mut sum = TesterRecognised::default();
        for port in values.unwrap_or_default().iter().filter_map(|value| TesterRecognised::from_bytes(value)) {
            if port.frames > 0 {
                sum.first_ns = if sum.frames == 0 { port.first_ns } else { sum.first_ns.min(port.first_ns) };
                sum.last_ns = sum.last_ns.max(port.last_ns);
            }
            sum.frames += port.frames;
            sum.bytes += port.bytes;
            sum.foreign += port.foreign;
        }
        Ok(sum)
    }

    /// One frame through the program, without a network.
    ///
    /// # Errors
    /// [`DatapathError::Program`] if the kernel refuses the frame.
    pub fn run(&self, bytes: &[u8]) -> Result<FrameOutput, DatapathError> {
        frame::run_xdp(&object::program(&self.object, "tester_recognise"), bytes)
    }
}

fn failed(map: &'static str, what: &'static str) -> impl FnOnce(libbpf_rs::Error) -> DatapathError {
    move |source| DatapathError::Map { map, what, source }
}
