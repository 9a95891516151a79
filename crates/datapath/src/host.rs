//! A server's data path: the VL2 agent's half in the kernel (VL2 4.2.1).
//!
//! On the egress of the server's interface, packets to AAs leave with both outer headers and ARP requests for AAs are
//! answered, as long as the AA is in the map. Everything else that concerns an AA goes to the agent over
//! [`HostConfig::miss_interface`]; frames that the agent sends again carry [`crate::AGENT_MARK`]. Broadcast and multicast
//! leave with one outer header where [`HostConfig::broadcast`] says whom they reach; then a program on ingress lets the
//! stack have what the others broadcast (VL2 4.2.3).

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::ops::Deref;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use libbpf_rs::{Object, ProgramMut};
use weft_wire::block::Block;

use crate::abi::{AaMapping, HOST_OUTCOMES, HostConstants, MAPPING_REFUSED, RECEIVE_OUTCOMES, SPREAD_OUTCOMES};
use crate::broadcast::{self, Broadcast};
use crate::error::DatapathError;
use crate::frame::{self, FrameInput, FrameOutput};
use crate::hook::{self, Attached, TcHook};
use crate::pin::{self, PinDir};
use crate::spread::{self, Spread};
use crate::table::Table;
use crate::{interface, object};

/// Entries of the AA map unless asked otherwise: about 0.5 MiB, and below 10 ms to load.
pub const MAP_ENTRIES_DEFAULT: u32 = 4096;

/// Outer headers of VL2, bytes.
const OUTER_BYTES: u32 = weft_wire::vl2::OVERHEAD_BYTES as u32;
const ETHERNET_BYTES: u32 = weft_wire::ethernet::HEADER_LEN as u32;
const PS_PER_S: u64 = 1_000_000_000_000;

const AA_MAP: &str = "aa_map";
const COUNTERS: &str = "host_counters";
const LINK: &str = "host_link";
const INGRESS_LINK: &str = "host_ingress_link";
const PROGRAM: &str = "vl2_host_egress";
const INGRESS_PROGRAM: &str = "vl2_host_ingress";
/// What outlives a restart.
const MAPS: [&str; 4] = [AA_MAP, COUNTERS, spread::COUNTERS, broadcast::COUNTERS];

/// How a server's data path is set up.
#[derive(Clone, Debug)]
pub struct HostConfig {
    /// Interface towards the ToR.
    pub interface: String,
    /// Interface that frames without a mapping leave by; the agent reads them at its far end.
    pub miss_interface: String,
    /// The AA block; its prefix has 1 to 30 bits.
    pub aa_block: Block,
    /// MAC of the ToR's host port. Every AA resolves to it.
    pub gateway_mac: [u8; 6],
    /// Largest IPv4 packet that the fabric carries, outer headers included, bytes.
    pub underlay_mtu: u32,
    /// LA of the ToR that this server is behind.
    pub own_tor_la: Ipv4Addr,
    /// Send packets for the own rack to the ToR at once, with one outer header, instead of over an Intermediate.
    ///
    /// Off in the paper's experiments: all traffic bounces.
    pub rack_direct: bool,
    /// Most that the server may send to AAs; `None`: no limit.
    pub rate_limit: Option<RateLimit>,
    /// Most AAs that the map holds; the least recently used one makes room for the next.
    pub map_entries: u32,
    /// Which flows under way get another path.
    pub spread: Spread,
    /// Whom broadcast and multicast reach; `None`: they are dropped.
    pub broadcast: Option<Broadcast>,
    /// What packets may have as their source; `None`: anything.
    pub own: Option<OwnAddresses>,
    /// Where maps and links are pinned, in a mounted bpffs; `None`: they end with the process.
    pub pin_dir: Option<PathBuf>,
}

/// A server's addresses (RFC 2827). A packet from another one is dropped and counted as `foreign_source`, a packet in an outer
/// header that the server made itself as `made_up_header`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OwnAddresses {
    pub aa: Ipv4Addr,
    pub la: Ipv4Addr,
    /// Its public LA, if it has one.
    pub public_la: Option<Ipv4Addr>,
}

/// A token bucket: what a server sends to AAs beyond it is dropped and counted as `rate_limited`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateLimit {
    /// Rate in the long run; of frames without FCS and without outer headers.
    pub bits_per_s: u64,
    /// What may leave at once, in bytes of the same. A larger super frame leaves when the bucket is full.
    pub burst_bytes: u32,
    pub traffic: LimitedTraffic,
}

/// Rate and burst of a limit, as in [`RateLimit`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TokenBucket {
    /// Rate in the long run.
    pub bits_per_s: u64,
    /// What may leave at once.
    pub burst_bytes: u32,
}

/// What a [`RateLimit`] is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LimitedTraffic {
    /// Everything but TCP, which keeps to its share by itself.
    NonTcp,
    /// Everything.
    All,
}

/// Where an AA is, as the directory said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mapping {
    /// LA of its ToR.
    pub tor_la: Ipv4Addr,
    /// Anycast LA of the Intermediates to bounce off.
    pub anycast_la: Ipv4Addr,
    /// The directory refuses this AA: packets and ARP requests for it are dropped and counted.
    pub refused: bool,
    /// Version of the directory entry.
    pub version: u64,
}

/// The maps of a server's data path, of this process or of a running agent's.
#[derive(Debug)]
pub struct HostMaps {
    aa: Table,
    counters: Table,
    spread: Table,
    received: Table,
}

/// A server's data path.
#[derive(Debug)]
pub struct HostDatapath {
    object: Object,
    maps: HostMaps,
    config: HostConfig,
    links: Vec<(&'static str, Attached)>,
    pins: Option<PinDir>,
    #[allow(dead_code)] // Held for what it keeps.
    memberships: Vec<OwnedFd>,
}

impl HostDatapath {
    /// Loads the program and attaches it. With pins of an earlier run, its map and counters are taken over and its
    /// program is replaced in place: no frame passes in between.
    ///
    /// # Errors
    /// Any [`DatapathError`]; then nothing is attached that was not before.
    pub fn attach(config: &HostConfig) -> Result<Self, DatapathError> {
        let mut datapath = Self::load(config)?;
        datapath.put_in_place()?;
        Ok(datapath)
    }

    /// Becomes what `config` says, with the same interface, pins and number of entries: AAs and counters stay, and every frame
    /// meets either the old or the new program.
    ///
    /// # Errors
    /// Any [`DatapathError`]; then it goes on as before.
    pub fn replace(&mut self, config: &HostConfig) -> Result<(), DatapathError> {
        let mut next = Self::load_with(config, Some(&self.object))?;
        next.links = std::mem::take(&mut self.links);
        let placed = next.put_in_place();
        if placed.is_ok() {
            *self = next;
        } else {
            self.links = next.links;
            // The first error is the one to tell.
            let _ = self.put_in_place();
        }
        placed
    }

    /// Puts the programs on the interface, in the place of those that are there.
    fn put_in_place(&mut self) -> Result<(), DatapathError> {
        let ifindex = interface::index_of(&self.config.interface)?;
        match &self.config.broadcast {
            Some(_) => self.attach_program(INGRESS_PROGRAM, INGRESS_LINK, ifindex)?,
            None => self.detach_earlier(INGRESS_LINK)?,
        }
        self.attach_program(PROGRAM, LINK, ifindex)?;
        // Last: the memberships' reports leave by way of the program.
        self.memberships =
            self.config.broadcast.as_ref().map_or(Ok(Vec::new()), |broadcast| broadcast.join(ifindex))?;
        Ok(())
    }

    fn attach_program(&mut self, program: &'static str, name: &'static str, ifindex: u32) -> Result<(), DatapathError> {
        let program = object::program(&self.object, program);
        let pin = self.pins.as_ref().map(|pins| pins.path_of(name));
        if let Some((_, link)) = self.links.iter_mut().find(|(known, _)| *known == name) {
            return hook::replace(link, &program, ifindex, pin.as_deref());
        }
        let link = hook::attach_as(TcHook::available(), &program, ifindex, &self.config.interface, pin.as_deref())?;
        self.links.push((name, link));
        Ok(())
    }

    /// Takes off what this or an earlier run had there with another configuration.
    fn detach_earlier(&mut self, name: &'static str) -> Result<(), DatapathError> {
        let ours = self.links.iter().position(|(known, _)| *known == name).map(|at| self.links.remove(at));
        match (ours, &self.pins) {
            (Some((_, link)), pins) => {
                link.detach()?;
                pins.as_ref().map_or(Ok(()), |pins| pins.remove_pins(&[name]))
            }
            (None, Some(pins)) => hook::detach_pinned(&pins.path_of(name)),
            (None, None) => Ok(()),
        }
    }

    /// Loads the program without attaching it: for [`Self::run`].
    ///
    /// # Errors
    /// Any [`DatapathError`].
    pub fn load(config: &HostConfig) -> Result<Self, DatapathError> {
        Self::load_with(config, None)
    }

    /// The same with the maps of a data path that is at work.
    fn load_with(config: &HostConfig, from: Option<&Object>) -> Result<Self, DatapathError> {
        let constants = constants(config)?;
        let pins = config.pin_dir.as_deref().map(PinDir::create).transpose()?;
        let mut open = object::VL2_HOST.open()?;
        object::set_constants(&mut open, ".rodata.host", &constants);
        object::set_max_entries(&mut open, AA_MAP, config.map_entries)?;
        spread::prepare(&mut open, config.spread)?;
        broadcast::prepare(&mut open, config.broadcast.as_ref(), INGRESS_PROGRAM)?;
        let object = match from {
            Some(from) => {
                MAPS.iter().try_for_each(|map| object::share_map(&mut open, map, from))?;
                object::VL2_HOST.load(open)?
            }
            None => pin::load(object::VL2_HOST, open, pins.as_ref(), &MAPS)?,
        };
        broadcast::set_members(&object, config.broadcast.as_ref())?;
        let maps = HostMaps::by(|name| Table::of(&object, name))?;
        let (config, links, memberships) = (config.clone(), Vec::new(), Vec::new());
        Ok(Self { object, maps, config, links, pins, memberships })
    }

    /// Sets where an AA is.
    ///
    /// # Errors
    /// [`DatapathError::OutsideBlock`] or [`DatapathError::Map`].
    pub fn set(&self, aa: Ipv4Addr, mapping: &Mapping) -> Result<(), DatapathError> {
        let block = self.config.aa_block;
        if !block.contains(aa) {
            return Err(DatapathError::OutsideBlock { aa, block });
        }
        self.maps.aa.put(&aa.octets(), &AaMapping::from(mapping))
    }

    /// The program for what leaves.
    pub fn program(&self) -> ProgramMut<'_> {
        object::program(&self.object, PROGRAM)
    }

    /// One frame through the program for what leaves, without a network.
    ///
    /// # Errors
    /// [`DatapathError::Program`] if the kernel refuses the frame, for example for being shorter than 14 bytes.
    pub fn run(&self, input: &FrameInput<'_>) -> Result<FrameOutput, DatapathError> {
        frame::run_tc(&self.program(), input)
    }

    /// The same for what comes in, of a data path with broadcast.
    ///
    /// # Errors
    /// The same.
    pub fn run_incoming(&self, input: &FrameInput<'_>) -> Result<FrameOutput, DatapathError> {
        frame::run_tc(&object::program(&self.object, INGRESS_PROGRAM), input)
    }

    /// Takes the programs off the interface and removes the pins. Dropping instead leaves a pinned data path at work.
    ///
    /// # Errors
    /// [`DatapathError::Program`] or [`DatapathError::Pin`].
    pub fn detach(mut self) -> Result<(), DatapathError> {
        self.links.drain(..).try_for_each(|(_, link)| link.detach())?;
        let names = [&[LINK, INGRESS_LINK], &MAPS[..]].concat();
        self.pins.take().map_or(Ok(()), |pins| pins.remove(&names))
    }
}

impl Deref for HostDatapath {
    type Target = HostMaps;

    fn deref(&self) -> &HostMaps {
        &self.maps
    }
}

impl HostMaps {
    /// The maps of a data path that some agent pinned at `dir`.
    ///
    /// # Errors
    /// [`DatapathError::NotPinned`], [`DatapathError::NoRights`] or [`DatapathError::Map`].
    pub fn open_pinned(dir: impl AsRef<Path>) -> Result<Self, DatapathError> {
        Self::by(|name| Table::pinned(dir.as_ref(), name))
    }

    fn by(table: impl Fn(&'static str) -> Result<Table, DatapathError>) -> Result<Self, DatapathError> {
        let (spread, received) = (table(spread::COUNTERS)?, table(broadcast::COUNTERS)?);
        Ok(Self { aa: table(AA_MAP)?, counters: table(COUNTERS)?, spread, received })
    }

    /// Forgets an AA. Returns whether it was known.
    ///
    /// # Errors
    /// [`DatapathError::Map`].
    pub fn remove(&self, aa: Ipv4Addr) -> Result<bool, DatapathError> {
        self.aa.delete(&aa.octets())
    }

    /// Where an AA is, if the map has it. Looking from here does not count as use.
    ///
    /// # Errors
    /// [`DatapathError::Map`].
    pub fn get(&self, aa: Ipv4Addr) -> Result<Option<Mapping>, DatapathError> {
        Ok(self.aa.get::<AaMapping>(&aa.octets())?.map(Mapping::from))
    }

    /// All AAs in the map, in order of address.
    ///
    /// # Errors
    /// [`DatapathError::Map`].
    pub fn entries(&self) -> Result<Vec<(Ipv4Addr, Mapping)>, DatapathError> {
        let all = self.aa.all::<[u8; 4], AaMapping>()?.into_iter();
        // By address: what changed meanwhile may have come twice.
        let entries: BTreeMap<Ipv4Addr, Mapping> = all.map(|(aa, mapping)| (aa.into(), mapping.into())).collect();
        Ok(entries.into_iter().collect())
    }

    /// What became of the frames since the maps were made: [`HOST_OUTCOMES`] with their numbers.
    ///
    /// # Errors
    /// [`DatapathError::Map`].
    pub fn counters(&self) -> Result<Vec<(&'static str, u64)>, DatapathError> {
        self.counters.counters(&HOST_OUTCOMES)
    }

    /// What became of the flows of segments, where a rule is in force: [`SPREAD_OUTCOMES`] with their numbers.
    ///
    /// # Errors
    /// [`DatapathError::Map`].
    pub fn spread_counters(&self) -> Result<Vec<(&'static str, u64)>, DatapathError> {
        self.spread.counters(&SPREAD_OUTCOMES)
    }

    /// What became of the frames that came in, where broadcast reaches somebody: [`RECEIVE_OUTCOMES`] with their numbers.
    ///
    /// # Errors
    /// [`DatapathError::Map`].
    pub fn receive_counters(&self) -> Result<Vec<(&'static str, u64)>, DatapathError> {
        self.received.counters(&RECEIVE_OUTCOMES)
    }
}

impl From<&Mapping> for AaMapping {
    fn from(mapping: &Mapping) -> Self {
        Self {
            version: mapping.version,
            tor_la: mapping.tor_la.octets(),
            anycast_la: mapping.anycast_la.octets(),
            flags: if mapping.refused { MAPPING_REFUSED } else { 0 },
            reserved: 0,
        }
    }
}

impl From<AaMapping> for Mapping {
    fn from(mapping: AaMapping) -> Self {
        Self {
            tor_la: mapping.tor_la.into(),
            anycast_la: mapping.anycast_la.into(),
            refused: mapping.flags & MAPPING_REFUSED != 0,
            version: mapping.version,
        }
    }
}

fn constants(config: &HostConfig) -> Result<HostConstants, DatapathError> {
    check(config)?;
    spread::check(config.spread)?;
    let own = |address: fn(OwnAddresses) -> Ipv4Addr| config.own.map_or([0; 4], |own| address(own).octets());
    Ok(HostConstants {
        aa_network: config.aa_block.network().octets(),
        aa_mask: config.aa_block.netmask().octets(),
        own_tor_la: config.own_tor_la.octets(),
        miss_ifindex: interface::index_of(&config.miss_interface)?,
        underlay_mtu: config.underlay_mtu,
        rack_direct: u32::from(config.rack_direct),
        gateway_mac: config.gateway_mac,
        reserved: [0; 2],
        limit_ps_per_byte: config.rate_limit.map_or(0, |limit| limit.bucket().ps_per_byte()),
        limit_burst_ns: config.rate_limit.map_or(0, |limit| limit.bucket().burst_ns()),
        limit_tcp: u32::from(config.rate_limit.is_some_and(|limit| limit.traffic == LimitedTraffic::All)),
        own_aa: own(|own| own.aa),
        own_la: own(|own| own.la),
        public_la: own(|own| own.public_la.unwrap_or(own.la)),
    })
}

impl RateLimit {
    fn bucket(self) -> TokenBucket {
        TokenBucket { bits_per_s: self.bits_per_s, burst_bytes: self.burst_bytes }
    }
}

impl TokenBucket {
    /// Rounded up to at least one: above 8 Tbit/s there is no limit to speak of.
    pub(crate) fn ps_per_byte(self) -> u64 {
        (8 * PS_PER_S / self.bits_per_s).max(1)
    }

    pub(crate) fn burst_ns(self) -> u64 {
        u64::from(self.burst_bytes) * self.ps_per_byte() / 1000
    }

    /// Whether it ever lets the longest frame out.
    pub(crate) fn check(self, field: &'static str, underlay_mtu: u32) -> Result<(), DatapathError> {
        let refuse = |why: String| Err(DatapathError::Config { field, why });
        let Self { bits_per_s: rate, burst_bytes: burst } = self;
        if rate < 1000 {
            return refuse(format!("{rate} bit/s lets next to nothing out; choose 1000 or more"));
        }
        let frame = underlay_mtu - OUTER_BYTES + ETHERNET_BYTES;
        if burst < frame {
            return refuse(format!("a burst of {burst} bytes is less than one frame, which has up to {frame}"));
        }
        Ok(())
    }
}

fn check(config: &HostConfig) -> Result<(), DatapathError> {
    let refuse = |field, why: String| Err(DatapathError::Config { field, why });
    let length = config.aa_block.prefix_len();
    if !(1..=30).contains(&length) {
        return refuse("aa_block", format!("prefix length {length} is not between 1 and 30"));
    }
    if config.map_entries == 0 {
        return refuse("map_entries", "0 leaves no room for a mapping; 4096 is usual".to_owned());
    }
    if !(68 + OUTER_BYTES..=65535).contains(&config.underlay_mtu) {
        let mtu = config.underlay_mtu;
        return refuse(
            "underlay_mtu",
            format!("{mtu} is not between 108 and 65535 bytes; 1600 carries 1500 of payload"),
        );
    }
    if let Some(limit) = config.rate_limit {
        limit.bucket().check("rate_limit", config.underlay_mtu)?;
    }
    if let Some(broadcast) = &config.broadcast {
        broadcast.check(config.underlay_mtu)?;
    }
    if config.gateway_mac[0] & 1 == 1 {
        return refuse("gateway_mac", "is a group address; use the MAC of the ToR's host port".to_owned());
    }
    Ok(())
}
