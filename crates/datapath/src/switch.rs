//! A VL2 switch's data path: decapsulation on the ingress of its ports, then the kernel's routes (VL2 4.2.1).

use std::net::Ipv4Addr;
use std::ops::Deref;
use std::path::{Path, PathBuf};

use libbpf_rs::{Object, ProgramMut};

use crate::abi::{OWN_LAS_MAX, OwnLas, SWITCH_OUTCOMES};
use crate::error::DatapathError;
use crate::frame::{self, FrameInput, FrameOutput};
use crate::hook::{self, Attached, TcHook};
use crate::pin::{self, PinDir};
use crate::stale::{STALE_SAMPLES, StaleSamples};
use crate::table::Table;
use crate::{interface, object};

const OWN_LAS: &str = ".data.own_las";
const HOST_PORTS: &str = "host_ports";
const COUNTERS: &str = "switch_counters";
const MAPS: [&str; 4] = [OWN_LAS, HOST_PORTS, COUNTERS, STALE_SAMPLES];

/// Which header a switch takes off, and what it does with what is inside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tier {
    /// Takes the anycast header off and sends the packet on by the kernel's routes, one TTL less (counted as
    /// `forwarded`). Without a plain route onwards the stack gets it and answers as for any other packet (counted as
    /// `decapsulated`).
    Intermediate,
    /// Takes its own header off and sends the server's packet out of a host port, TTL untouched.
    Tor,
}

/// How a switch's data path is set up.
#[derive(Clone, Debug)]
pub struct SwitchConfig {
    /// Interfaces towards other switches.
    pub ports: Vec<String>,
    /// A ToR's interfaces towards servers. What is decapsulated may leave by these only. What comes in by one is dropped,
    /// counted as `foreign_source`, unless the kernel's route to its source leaves by the same one.
    pub host_ports: Vec<String>,
    /// The LAs to take the outer header off for: anycast LAs at an Intermediate, its own LA at a ToR.
    pub own_las: Vec<Ipv4Addr>,
    pub tier: Tier,
    /// Where maps and links are pinned, in a mounted bpffs; `None`: they end with the process.
    pub pin_dir: Option<PathBuf>,
}

/// The maps of a switch's data path, of this process or of a running lab's.
#[derive(Debug)]
pub struct SwitchMaps {
    own_las: Table,
    counters: Table,
}

/// A switch's data path.
#[derive(Debug)]
pub struct SwitchDatapath {
    object: Object,
    maps: SwitchMaps,
    tier: Tier,
    host_ports: Vec<u32>,
    links: Vec<Attached>,
    pins: Option<PinDir>,
    pin_names: Vec<String>,
}

impl SwitchDatapath {
    /// Loads the program and attaches it to all ports. With pins of an earlier run, counters are taken over and the
    /// programs replaced in place; the LAs are those of `config`.
    ///
    /// # Errors
    /// Any [`DatapathError`]; links made by this call are taken back, if they are not pinned yet.
    pub fn attach(config: &SwitchConfig) -> Result<Self, DatapathError> {
        let mut datapath = Self::load(config)?;
        for port in config.ports.iter().chain(&config.host_ports) {
            datapath.attach_port(port)?;
        }
        Ok(datapath)
    }

    /// Loads the program without attaching it: for [`Self::run`].
    ///
    /// # Errors
    /// Any [`DatapathError`].
    pub fn load(config: &SwitchConfig) -> Result<Self, DatapathError> {
        let host_ports: Vec<u32> =
            config.host_ports.iter().map(|name| interface::index_of(name)).collect::<Result<_, _>>()?;
        let pins = config.pin_dir.as_deref().map(PinDir::create).transpose()?;
        let object = load_object(&host_ports, pins.as_ref())?;
        let maps = SwitchMaps::by(|name| Table::of(&object, name))?;
        maps.set_own_las(&config.own_las)?;
        replace_keys(&Table::of(&object, HOST_PORTS)?, &host_ports)?;
        Ok(Self { object, maps, tier: config.tier, host_ports, links: Vec::new(), pins, pin_names: Vec::new() })
    }

    /// The ends of packets that a ToR could not deliver. For one reader; [`StaleSamples::open_pinned`] makes another.
    ///
    /// # Errors
    /// [`DatapathError::Map`].
    pub fn stale_samples(&self) -> Result<StaleSamples, DatapathError> {
        StaleSamples::of_map(object::map_handle(&self.object, STALE_SAMPLES)?)
    }

    /// The program that an interface has, or would have.
    pub fn program_at(&self, ifindex: u32) -> ProgramMut<'_> {
        object::program(&self.object, self.tier.program(self.host_ports.contains(&ifindex)))
    }

    /// One frame through the program of its interface, without a network.
    ///
    /// # Errors
    /// [`DatapathError::Program`] if the kernel refuses the frame, for example for being shorter than 14 bytes.
    pub fn run(&self, input: &FrameInput<'_>) -> Result<FrameOutput, DatapathError> {
        frame::run_tc(&self.program_at(input.ifindex), input)
    }

    /// Takes the program off all ports and removes the pins. Dropping instead leaves a pinned data path at work.
    ///
    /// # Errors
    /// [`DatapathError::Program`] or [`DatapathError::Pin`].
    pub fn detach(mut self) -> Result<(), DatapathError> {
        for link in self.links.drain(..) {
            link.detach()?;
        }
        let Some(pins) = self.pins.take() else { return Ok(()) };
        let names: Vec<&str> = self.pin_names.iter().map(String::as_str).chain(MAPS).collect();
        pins.remove(&names)
    }

    fn attach_port(&mut self, port: &str) -> Result<(), DatapathError> {
        let ifindex = interface::index_of(port)?;
        let program = self.program_at(ifindex);
        let name = format!("port_{ifindex}");
        let pin = self.pins.as_ref().map(|pins| pins.path_of(&name));
        let link = hook::attach_as(TcHook::available(), &program, ifindex, port, pin.as_deref())?;
        self.pin_names.extend(pin.map(|_| name));
        self.links.push(link);
        Ok(())
    }
}

impl Deref for SwitchDatapath {
    type Target = SwitchMaps;

    fn deref(&self) -> &SwitchMaps {
        &self.maps
    }
}

impl SwitchMaps {
    /// The maps of a data path that is pinned at `dir`.
    ///
    /// # Errors
    /// [`DatapathError::NotPinned`], [`DatapathError::NoRights`] or [`DatapathError::Map`].
    pub fn open_pinned(dir: impl AsRef<Path>) -> Result<Self, DatapathError> {
        Self::by(|name| Table::pinned(dir.as_ref(), name))
    }

    fn by(table: impl Fn(&'static str) -> Result<Table, DatapathError>) -> Result<Self, DatapathError> {
        Ok(Self { own_las: table(OWN_LAS)?, counters: table(COUNTERS)? })
    }

    /// Sets for which LAs the outer header comes off, also while traffic runs: an Intermediate takes over an anycast LA
    /// when another one fails (VL2 4.2.2).
    ///
    /// # Errors
    /// [`DatapathError::Config`] for more than 16 LAs, or [`DatapathError::Map`].
    pub fn set_own_las(&self, las: &[Ipv4Addr]) -> Result<(), DatapathError> {
        let own = OwnLas::new(las).ok_or_else(|| DatapathError::Config {
            field: "own_las",
            why: format!("{} LAs, a switch takes at most {OWN_LAS_MAX}; use more anycast groups", las.len()),
        })?;
        self.own_las.put(&0u32, &own)
    }

    /// The LAs for which the outer header comes off.
    ///
    /// # Errors
    /// [`DatapathError::Map`].
    pub fn own_las(&self) -> Result<Vec<Ipv4Addr>, DatapathError> {
        let own: OwnLas = self.own_las.get(&0u32)?.unwrap_or_default();
        Ok(own.la.into_iter().take(own.count as usize).map(Ipv4Addr::from).collect())
    }

    /// What became of the frames: [`SWITCH_OUTCOMES`] with their numbers.
    ///
    /// # Errors
    /// [`DatapathError::Map`].
    pub fn counters(&self) -> Result<Vec<(&'static str, u64)>, DatapathError> {
        self.counters.counters(&SWITCH_OUTCOMES)
    }
}

impl Tier {
    fn program(self, is_host_port: bool) -> &'static str {
        match self {
            Self::Intermediate => "vl2_int_decap",
            Self::Tor if is_host_port => "vl2_tor_server",
            Self::Tor => "vl2_tor_decap",
        }
    }
}

fn load_object(host_ports: &[u32], pins: Option<&PinDir>) -> Result<Object, DatapathError> {
    let room = u32::try_from(host_ports.len()).unwrap_or(u32::MAX).max(1);
    let mut open = object::VL2_SWITCH.open()?;
    object::set_max_entries(&mut open, HOST_PORTS, room)?;
    pin::load(object::VL2_SWITCH, open, pins, &MAPS)
}

/// Makes `wanted` the keys of a set, first removing what is too many, so that a full map has room.
fn replace_keys(set: &Table, wanted: &[u32]) -> Result<(), DatapathError> {
    for (old, _) in set.all::<u32, u32>()?.iter().filter(|(port, _)| !wanted.contains(port)) {
        set.delete(old)?;
    }
    wanted.iter().try_for_each(|port| set.put(port, &1u32))
}
