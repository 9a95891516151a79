//! A network that loses: a share of the UDP datagrams to and from one port of an interface, for measurements of what
//! losses do (VL2 5.5 loses 10 % between clients and directory servers). And cuts: links that are up, and nothing comes.

use std::path::Path;

use libbpf_rs::Object;
use weft_datapath::DatapathError;
use weft_datapath::abi::Abi;
use weft_datapath::hook::{self, Attached, Place};
use weft_datapath::table::Table;
use weft_datapath::{interface, object};

use crate::abi::{LOSS_OUTCOMES, LossConstants};
use crate::cut::{self, Cut};
use crate::files;
use crate::kept;
use crate::tester::attach_xdp;

const COUNTERS: &str = "loss_counters";
const CONSTANTS: &str = ".rodata.loss";

/// Losses on one interface; they end when this is dropped.
#[derive(Debug)]
pub struct Loss {
    _links: [Cut; 2],
    counters: Table,
}

impl Loss {
    /// From now on loses `percent` of the datagrams that come to `port` by this interface of the calling thread's
    /// namespace, and of those that leave it from that port, each for itself. A burst in one super frame is lost whole.
    ///
    /// # Errors
    /// [`DatapathError::Config`] for more than 100 %, or any other [`DatapathError`].
    pub fn attach(interface: &str, port: u16, percent: u32) -> Result<Self, DatapathError> {
        if percent > 100 {
            let why = format!("{percent} % cannot be lost; choose 0 to 100");
            return Err(DatapathError::Config { field: "percent", why });
        }
        let ifindex = interface::index_of(interface)?;
        let threshold = u32::try_from(u64::from(percent) * (1 << 32) / 100).unwrap_or(u32::MAX);
        let mut open = files::LOSS.open()?;
        let constants = LossConstants { threshold, port: port.to_be_bytes(), reserved: [0; 2] };
        object::set_constants(&mut open, CONSTANTS, &constants);
        let object = files::LOSS.load(open)?;
        let attach = |name| {
            let program = object::program(&object, name);
            hook::attach(&program, ifindex, interface, Place::Last).map(Cut::from)
        };
        let _links = [attach("lose_incoming")?, attach("lose_outgoing")?];
        Ok(Self { _links, counters: Table::of(&object, COUNTERS)? })
    }

    /// What became of the frames: [`LOSS_OUTCOMES`] with their numbers.
    ///
    /// # Errors
    /// [`DatapathError::Map`].
    pub fn counters(&self) -> Result<Vec<(&'static str, u64)>, DatapathError> {
        self.counters.counters(&LOSS_OUTCOMES)
    }
}

/// What takes all frames: it makes links silent, and ends chains of switches.
#[derive(Debug)]
pub struct Cuts(Object);

impl Cuts {
    /// Loads the programs, so that they can be attached at once later.
    ///
    /// # Errors
    /// Any [`DatapathError`].
    pub fn load() -> Result<Self, DatapathError> {
        Ok(Self(files::LOSS.load(files::LOSS.open()?)?))
    }

    /// From now on everything that comes in by this interface of the calling thread's namespace is lost, in the place of an XDP
    /// program or in front of all others, until the result is dropped.
    ///
    /// # Errors
    /// [`DatapathError::NoInterface`] or any other [`DatapathError`].
    pub fn cut(&self, interface: &str) -> Result<Cut, DatapathError> {
        let [tc, xdp] = ["lose_everything", "lose_everything_xdp"].map(|name| object::program(&self.0, name));
        Cut::instead(&xdp, &tc, interface::index_of(interface)?, interface)
    }

    /// The same at the XDP hook of an interface without a program, before the kernel makes a packet of a frame.
    ///
    /// # Errors
    /// Any [`DatapathError`].
    pub fn cut_at_xdp(&self, interface: &str) -> Result<Cut, DatapathError> {
        Ok(Attached::from(attach_xdp(&object::program(&self.0, "lose_everything_xdp"), interface)?.0).into())
    }

    /// As [`Self::cut`], for longer than this process, until [`cut::mend`] with the same `pin`, also if that is killed. What somebody has left half
    /// done there is undone first.
    ///
    /// # Errors
    /// [`DatapathError::NoInterface`] or any other [`DatapathError`]; then it is as before.
    pub fn cut_for_good(&self, pin: &Path, interface: &str) -> Result<(), DatapathError> {
        let [tc, xdp] = ["lose_everything", "lose_everything_xdp"].map(|name| object::program(&self.0, name));
        cut::mend(pin, interface)?;
        kept::put(pin, interface, [&tc, &xdp], |_| Ok(())).or_else(|error| cut::mend(pin, interface).and(Err(error)))
    }

    /// Frames that came as far as the cuts of these programs, all together.
    ///
    /// # Errors
    /// [`DatapathError::Map`].
    pub fn frames(&self) -> Result<u64, DatapathError> {
        let found = object::lookup(&self.0, ".data.taken", 0u32.bytes())?;
        Ok(found.and_then(|bytes| bytes.try_into().ok()).map_or(0, u64::from_ne_bytes))
    }
}
