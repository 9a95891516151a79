//! A directory server's look-ups, answered at its card by XDP (VL2 4.3.2): in the bytes in which the server would answer, or
//! not at all, and then the server gets the frame.
//!
//! [`LookupDatapath`] is the program, [`CardTable`] what it answers by. The server writes that table while look-ups read it: a
//! change begins with a step of a sequence to an odd number and ends with one to an even number, and no look-up that met an
//! odd one, or two, is answered here. So no answer has a mapping of one revision and the number of another.
//!
//! Nothing is pinned: without the server nobody would keep the table up to date, and the program goes with the process.

pub mod abi;
mod places;
mod table;
mod words;

use std::net::{Ipv4Addr, SocketAddrV4};

use libbpf_rs::{Object, ProgramMut};

use crate::error::DatapathError;
use crate::frame::{self, FrameOutput};
use crate::table::Table;
use crate::trill::XdpMode;
use crate::trill::attach::PortLink;
use crate::{interface, object};
pub use table::{CardTable, Change};

const STATE: &str = ".data.directory";
const ROWS: &str = "directory_rows";
const RULES: &str = "directory_rules";
const COUNTERS: &str = "directory_counters";

/// Most mappings that a table at a card may be made for.
pub const MAPPINGS_MAX: u32 = 1 << 26;

/// How the program is set up.
#[derive(Clone, Debug)]
pub struct LookupConfig {
    /// Where the server is asked.
    pub listen: SocketAddrV4,
    /// The card's own address: frames to others are none of the server's.
    pub mac: [u8; 6],
    /// Mappings that there is room for. Those beyond are the server's to answer.
    pub mappings: u32,
}

/// A mapping as the card has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    pub aa: Ipv4Addr,
    /// Whose AA it is.
    pub service: u32,
    pub tor_la: Ipv4Addr,
    pub anycast_la: Ipv4Addr,
    /// Version of the mapping; not 0.
    pub version: u64,
}

/// The program, and the interface that it is on.
#[derive(Debug)]
pub struct LookupDatapath {
    object: Object,
    counters: Table,
    link: Option<PortLink>,
}

impl LookupDatapath {
    /// Loads the program. Its table is empty, and nothing is answered before its first change has ended.
    ///
    /// # Errors
    /// Any [`DatapathError`].
    pub fn load(config: &LookupConfig) -> Result<(Self, CardTable), DatapathError> {
        if !(1..=MAPPINGS_MAX).contains(&config.mappings) {
            let why = format!("{} is not between 1 and {MAPPINGS_MAX}", config.mappings);
            return Err(DatapathError::Config { field: "xdp_mappings", why });
        }
        let places = places::wanted(config.mappings);
        let mut open = object::DIRECTORY.open()?;
        let constants = abi::DirectoryConstants { places: places - 1, shift: 64 - places.trailing_zeros() };
        object::set_constants(&mut open, ".rodata.directory", &constants);
        object::set_max_entries(&mut open, ROWS, places)?;
        let object = object::DIRECTORY.load(open)?;
        let table = CardTable::of(&object, places, config)?;
        Ok((Self { counters: Table::of(&object, COUNTERS)?, object, link: None }, table))
    }

    /// Puts the program on an interface of the caller's namespace, which must have none.
    ///
    /// # Errors
    /// [`DatapathError::NoInterface`], [`DatapathError::NoRights`], or [`DatapathError::Config`] with the words of a driver that
    /// does not take it.
    pub fn attach(&mut self, interface: &str, mode: XdpMode) -> Result<(), DatapathError> {
        let ifindex = interface::index_of(interface)?;
        self.link = Some(PortLink::attach(&self.program(), ifindex, interface, mode, None)?);
        Ok(())
    }

    /// Takes the program off at once.
    ///
    /// # Errors
    /// [`DatapathError::Program`].
    pub fn detach(&mut self) -> Result<(), DatapathError> {
        self.link.take().map_or(Ok(()), PortLink::detach)
    }

    /// The program, to be measured.
    pub fn program(&self) -> ProgramMut<'_> {
        object::program(&self.object, "directory_lookup")
    }

    /// One frame through the program, without a network.
    ///
    /// # Errors
    /// [`DatapathError::Program`] if the kernel refuses the frame, for example for being shorter than 14 bytes.
    pub fn run(&self, bytes: &[u8]) -> Result<FrameOutput, DatapathError> {
        frame::run_xdp(&self.program(), bytes)
    }

    /// What became of the frames: [`abi::DIRECTORY_OUTCOMES`] with their numbers.
    ///
    /// # Errors
    /// [`DatapathError::Map`].
    pub fn counters(&self) -> Result<Vec<(&'static str, u64)>, DatapathError> {
        self.counters.counters(&abi::DIRECTORY_OUTCOMES)
    }
}
