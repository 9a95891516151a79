//! What a configuration means: checked, with numbers instead of texts.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;

use weft_control::isis::{SharedConfig, Timing, cost_of_rate};
use weft_control::snooper;
use weft_datapath::offload::HIDDEN_FROM_XDP;
use weft_datapath::trill::CLUSTERS;
use weft_datapath::trill::abi::{OTHER_NICKNAMES_MAX, TREES_MAX};
use weft_wire::ethernet::MacAddress;
use weft_wire::isis::{PDU_LEN_MIN, SystemId};
use weft_wire::trill::nickname::{LARGEST, is_usable};
use weft_wire::trill::{ALL_IS_IS_RBRIDGES, ALL_RBRIDGES};
use weft_wire::vlan::{VLAN_MAX, VlanSet};

use super::config::{GatewayTable, GroupsTable, KindText, PortTable, RBridgeConfig};
use crate::cards::Needs;
use crate::error::NodeError;
use crate::settings_file::check_interface;

/// The designated VLAN of a link whose frames have no tag.
const VLAN_UNTAGGED: u16 = 1;
/// Ports are numbered from 1 to this.
pub const PORTS_MAX: usize = 63;
/// Metrics of links that paths lead over (RFC 5305 section 3).
const COST_MAX: u32 = 0xff_fffe;
const NAME_MAX: usize = 64;
/// Priorities to become DRB (RFC 7176 section 2.2.1 has seven bits for them).
const PRIORITY_MAX: u8 = 127;
/// Frames of Ethernet are hardly longer anywhere.
const LSP_BUFFER_MAX: u16 = 9216;
/// CPUs are numbered below this.
const CPUS_MAX: u32 = 4096;

/// An RBridge that can be.
#[derive(Clone, Debug)]
pub(super) struct Settings {
    pub(super) system: Option<SystemId>,
    /// By number, which is the place plus 1.
    pub(super) ports: Vec<PortSettings>,
    /// Longest LSP that all its links have to carry.
    pub(super) lsp_buffer_bytes: u16,
    pub(super) timing: Timing,
    pub(super) station_age_s: u32,
    /// CPUs that links' frames are spread over; none: they are not.
    pub(super) spread_cpus: Vec<u32>,
    /// When stations are asked which groups they listen to; `None`: that is not found out.
    pub(super) groups: Option<snooper::Config>,
    pub(super) gateway: Option<Gateway>,
}

/// A port.
#[derive(Clone, Debug)]
pub(super) struct PortSettings {
    pub(super) number: u8,
    pub(super) interface: String,
    pub(super) kind: Kind,
}

/// What is behind a port.
#[derive(Clone, Debug)]
pub(super) enum Kind {
    /// Another RBridge; without a cost, the interface's rate tells it.
    Link { cost: Option<u32>, designated_vlan: u16, mtu_test: bool, elide: bool },
    /// Other RBridges and end stations.
    Shared(Shared),
    /// End stations.
    Native { untagged: Option<u16>, tagged: Vec<(u16, u16)> },
}

/// What a port of a shared link is to be.
#[derive(Clone, Debug)]
pub(super) struct Shared {
    /// Without a cost, the interface's rate tells it.
    pub(super) cost: Option<u32>,
    pub(super) priority: u8,
    /// VLAN of frames without a tag.
    pub(super) untagged: u16,
    /// All VLANs, that one among them.
    pub(super) enabled: VlanSet,
    /// VLAN in which RBridges are to talk.
    pub(super) designated_vlan: u16,
    /// VLANs in which Hellos go, beside that one.
    pub(super) announcing: VlanSet,
    pub(super) mtu_test: bool,
    /// Whether it may be a forwarder of end stations.
    pub(super) serves_stations: bool,
}

impl Kind {
    /// Whether other RBridges are behind it.
    pub(super) fn is_link(&self) -> bool {
        !matches!(self, Self::Native { .. })
    }

    /// What a card has to do: let in, beside frames to its own address, groups (RFC 6325 section 7.1). Frames of stations may
    /// be for any station, and those of a link without outer header begin like them; frames with a tag need more than a
    /// group where a card filters VLANs too.
    pub(super) fn needs(&self) -> Needs {
        let off = HIDDEN_FROM_XDP;
        match self {
            Self::Link { elide, designated_vlan, .. } => {
                let tags = *designated_vlan != VLAN_UNTAGGED;
                Needs { everything: *elide || tags, off, tags, ..Needs::groups([ALL_RBRIDGES, ALL_IS_IS_RBRIDGES]) }
            }
            // An outer tag may be about RBridges, too, which the program is to see.
            Self::Shared(_) => Needs { off, tags: true, ..Needs::everything() },
            Self::Native { tagged, .. } => Needs { off, tags: !tagged.is_empty(), ..Needs::everything() },
        }
    }
}

/// Routing between VLANs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Gateway {
    pub(super) mac: MacAddress,
    pub(super) vlans: Vec<Subnet>,
    pub(super) hosts: Vec<Host>,
}

/// The gateway's place in a VLAN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Subnet {
    pub(super) vlan: u16,
    pub(super) address: Ipv4Addr,
    pub(super) prefix: u8,
}

/// A host that packets are routed to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Host {
    pub(super) address: Ipv4Addr,
    pub(super) mac: MacAddress,
    pub(super) vlan: u16,
    /// The RBridge that it is behind; `None`: not known, or this one.
    pub(super) behind: Option<u16>,
}

impl Settings {
    pub(super) fn of(config: &RBridgeConfig) -> Result<Self, NodeError> {
        check_name(&config.name)?;
        if let Some(bad) = config.nickname.filter(|nickname| !is_usable(*nickname)) {
            let why = format!("{bad:#06x} is reserved; use 1 to {LARGEST} ({LARGEST:#06x}), or leave it out");
            return Err(NodeError::config("nickname", why));
        }
        for (field, count, most) in [
            ("nicknames", config.nicknames, OTHER_NICKNAMES_MAX + 1),
            ("trees", config.trees, TREES_MAX),
            ("trees_used", config.trees_used, TREES_MAX),
        ] {
            if !(1..=most).contains(&usize::from(count)) {
                return Err(NodeError::config(field, format!("{count} is not 1 to {most}")));
            }
        }
        if !(PDU_LEN_MIN..=LSP_BUFFER_MAX).contains(&config.lsp_buffer_bytes) {
            let why = format!("{} is not {PDU_LEN_MIN} to {LSP_BUFFER_MAX}", config.lsp_buffer_bytes);
            return Err(NodeError::config("lsp_buffer_bytes", why));
        }
        let system = config.system_id.as_deref().map(system_id).transpose()?;
        for (field, count) in [
            ("capacity.stations", config.capacity.stations),
            ("capacity.port_stations", config.capacity.port_stations),
            ("capacity.nickname_stations", config.capacity.nickname_stations),
            ("capacity.host_routes", config.capacity.host_routes),
        ] {
            if count == 0 {
                return Err(NodeError::config(field, "0 is no room; leave it out for the default"));
            }
        }
        Ok(Self {
            system,
            ports: ports(&config.port)?,
            lsp_buffer_bytes: config.lsp_buffer_bytes,
            timing: config.timing.timing()?,
            station_age_s: config.timing.station_age()?,
            spread_cpus: config.spread_cpus.as_deref().map_or(Ok(Vec::new()), spread_cpus)?,
            groups: config.groups.map(GroupsTable::config).transpose()?,
            gateway: config.gateway.as_ref().map(|table| Gateway::of(table, config)).transpose()?,
        })
    }

    /// VLANs that end stations are in, as ranges.
    pub(super) fn vlans(&self) -> impl Iterator<Item = (u16, u16)> + '_ {
        self.ports.iter().flat_map(|port| port.kind.vlans())
    }
}

impl Kind {
    fn vlans(&self) -> Vec<(u16, u16)> {
        match self {
            Self::Link { .. } | Self::Shared(_) => Vec::new(),
            Self::Native { untagged, tagged } => {
                untagged.iter().map(|vlan| (*vlan, *vlan)).chain(tagged.iter().copied()).collect()
            }
        }
    }
}

/// `"0-3,6"`.
fn spread_cpus(text: &str) -> Result<Vec<u32>, NodeError> {
    let fault = |why: String| NodeError::config("spread_cpus", why);
    let number = |text: &str| {
        let cpu: Result<u32, _> = text.trim().parse();
        cpu.ok().filter(|cpu| *cpu < CPUS_MAX).ok_or_else(|| fault(format!("`{text}` is no CPU; write \"0-3,6\"")))
    };
    let mut cpus = BTreeSet::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        cpus.extend(number(first)?..=number(last)?);
    }
    if cpus.is_empty() || cpus.len() > CLUSTERS {
        return Err(fault(format!("`{text}` are {} CPUs; use 1 to {CLUSTERS}", cpus.len())));
    }
    Ok(cpus.into_iter().collect())
}

fn check_name(name: &str) -> Result<(), NodeError> {
    if name.is_empty() || name.len() > NAME_MAX || !name.bytes().all(|byte| byte.is_ascii_graphic()) {
        let why = format!("`{}` is no name; use 1 to {NAME_MAX} visible ASCII characters", name.escape_default());
        return Err(NodeError::config("name", why));
    }
    Ok(())
}

fn system_id(text: &str) -> Result<SystemId, NodeError> {
    let fault = |why: String| NodeError::config("system_id", format!("`{text}`: {why}"));
    let id: SystemId = text.parse().map_err(|error| fault(format!("{error}")))?;
    if id == SystemId::default() {
        return Err(fault("zero names nobody".to_owned()));
    }
    Ok(id)
}

fn ports(tables: &[PortTable]) -> Result<Vec<PortSettings>, NodeError> {
    if tables.is_empty() || tables.len() > PORTS_MAX {
        let why = format!("there are {}; write 1 to {PORTS_MAX} [[port]] tables", tables.len());
        return Err(NodeError::config("port", why));
    }
    let mut interfaces = BTreeSet::new();
    let mut ports = Vec::with_capacity(tables.len());
    for (place, table) in tables.iter().enumerate() {
        check_interface("port", &table.interface)?;
        let number = place + 1;
        let fault = |why: String| NodeError::config("port", format!("{number} (`{}`): {why}", table.interface));
        if !interfaces.insert(&table.interface) {
            return Err(fault("its interface is another port's already; give each port one of its own".to_owned()));
        }
        let kind = kind(table).map_err(fault)?;
        ports.push(PortSettings { number: number as u8, interface: table.interface.clone(), kind });
    }
    Ok(ports)
}

fn kind(table: &PortTable) -> Result<Kind, String> {
    let strays = match table.kind {
        KindText::P2p => {
            [shared_only(table), vec![("vlan", table.vlan.is_some()), ("vlans", table.vlans.is_some())]].concat()
        }
        KindText::Access => {
            [links_only(table), p2p_only(table), shared_only(table), vec![("vlans", table.vlans.is_some())]].concat()
        }
        KindText::Trunk => [links_only(table), p2p_only(table), shared_only(table)].concat(),
        KindText::Shared => vec![elision(table)],
    };
    if let Some((stray, _)) = strays.iter().find(|(_, is_set)| *is_set) {
        return Err(format!("`{stray}` means nothing to this kind of port; take it out"));
    }
    match table.kind {
        KindText::P2p => link(table),
        KindText::Shared => shared(table),
        KindText::Access => {
            let vlan = table.vlan.ok_or("an access port needs its `vlan`")?;
            Ok(Kind::Native { untagged: Some(check_vlan(vlan)?), tagged: Vec::new() })
        }
        KindText::Trunk => {
            let text = table.vlans.as_deref().ok_or("a trunk needs its `vlans`, as in vlans = \"10,20-30\"")?;
            let tagged = vlan_ranges(text)?;
            Ok(Kind::Native { untagged: table.vlan.map(check_vlan).transpose()?, tagged })
        }
    }
}

fn links_only(table: &PortTable) -> Vec<(&'static str, bool)> {
    vec![("cost", table.cost.is_some()), ("rate_bps", table.rate_bps.is_some()), ("mtu_test", table.mtu_test.is_some())]
}

fn p2p_only(table: &PortTable) -> Vec<(&'static str, bool)> {
    vec![("designated_vlan", table.designated_vlan.is_some()), elision(table)]
}

fn elision(table: &PortTable) -> (&'static str, bool) {
    ("elide_outer_header", table.elide_outer_header.is_some())
}

fn shared_only(table: &PortTable) -> Vec<(&'static str, bool)> {
    vec![
        ("drb_priority", table.drb_priority.is_some()),
        ("stations", table.stations.is_some()),
        ("announcing_vlans", table.announcing_vlans.is_some()),
    ]
}

fn cost(table: &PortTable) -> Result<Option<u32>, String> {
    Ok(match (table.cost, table.rate_bps) {
        (Some(_), Some(_)) => return Err("it has both `cost` and `rate_bps`; keep one of them".to_owned()),
        (Some(cost), None) if !(1..=COST_MAX).contains(&cost) => {
            return Err(format!("cost {cost} is not 1 to {COST_MAX}"));
        }
        (None, Some(0)) => return Err("rate_bps is 0; write bits per second".to_owned()),
        (cost, rate) => cost.or(rate.map(cost_of_rate)),
    })
}

/// In all VLANs that it has, of which the Designated VLAN is one.
fn shared(table: &PortTable) -> Result<Kind, String> {
    let priority = table.drb_priority.unwrap_or(SharedConfig::PRIORITY);
    if priority > PRIORITY_MAX {
        return Err(format!("drb_priority {priority} is not 0 to {PRIORITY_MAX}"));
    }
    let untagged = check_vlan(table.vlan.unwrap_or(VLAN_UNTAGGED))?;
    let mut enabled = VlanSet::of_ranges(&table.vlans.as_deref().map_or(Ok(Vec::new()), vlan_ranges)?);
    enabled.add_range(untagged, untagged);
    let one_of_them = |vlan: u16, what: &str| {
        let why = || format!("{what} {vlan} is no VLAN of the port; add it to `vlans`");
        enabled.contains(vlan).then_some(vlan).ok_or_else(why)
    };
    let designated_vlan = one_of_them(table.designated_vlan.unwrap_or(untagged), "designated_vlan")?;
    let announcing =
        table.announcing_vlans.as_deref().map(|text| vlan_ranges(text).map(|ranges| VlanSet::of_ranges(&ranges)));
    let announcing = announcing.transpose()?.unwrap_or_else(|| enabled.clone());
    announcing.iter().try_for_each(|vlan| one_of_them(vlan, "announcing_vlans:").map(drop))?;
    Ok(Kind::Shared(Shared {
        cost: cost(table)?,
        priority,
        untagged,
        designated_vlan,
        announcing,
        enabled,
        mtu_test: table.mtu_test.unwrap_or(false),
        serves_stations: table.stations.unwrap_or(true),
    }))
}

fn link(table: &PortTable) -> Result<Kind, String> {
    let cost = cost(table)?;
    let designated_vlan = check_vlan(table.designated_vlan.unwrap_or(1))?;
    let (mtu_test, elide) = (table.mtu_test.unwrap_or(false), table.elide_outer_header.unwrap_or(false));
    Ok(Kind::Link { cost, designated_vlan, mtu_test, elide })
}

fn check_vlan(vlan: u16) -> Result<u16, String> {
    if (1..=VLAN_MAX).contains(&vlan) { Ok(vlan) } else { Err(format!("VLAN {vlan} is not 1 to {VLAN_MAX}")) }
}

/// `"10,20-30"`.
fn vlan_ranges(text: &str) -> Result<Vec<(u16, u16)>, String> {
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let number = |text: &str| {
            let vlan: Result<u16, _> = text.trim().parse();
            vlan.map_err(|_| format!("`{part}` in `{text}` is no VLAN; write vlans = \"10,20-30\""))
        };
        let (first, last) = (check_vlan(number(first)?)?, check_vlan(number(last)?)?);
        if first > last { Err(format!("`{part}` ends before it begins")) } else { Ok((first, last)) }
    };
    text.split(',').map(range).collect()
}

impl Gateway {
    fn of(table: &GatewayTable, config: &RBridgeConfig) -> Result<Self, NodeError> {
        let mac = station_mac(&table.mac).map_err(|why| NodeError::config("gateway.mac", why))?;
        let mut vlans: Vec<Subnet> = Vec::with_capacity(table.vlan.len());
        for row in &table.vlan {
            let fault = |why: String| NodeError::config("gateway.vlan", format!("{}: {why}", row.vlan));
            let subnet = Subnet::of(row.vlan, &row.address).map_err(fault)?;
            if vlans.iter().any(|other| other.vlan == subnet.vlan) {
                return Err(fault("is there twice".to_owned()));
            }
            if let Some(other) = vlans.iter().find(|other| other.overlaps(&subnet)) {
                return Err(fault(format!("`{}` overlaps the block of VLAN {}", row.address, other.vlan)));
            }
            vlans.push(subnet);
        }
        let routes = vlans.len() + table.host.len();
        if routes > config.capacity.host_routes as usize {
            let why = format!("{routes} addresses with the gateway's own, but there is room for fewer; raise it");
            return Err(NodeError::config("capacity.host_routes", why));
        }
        let mut gateway = Self { mac, vlans, hosts: Vec::with_capacity(table.host.len()) };
        let mut known = BTreeSet::new();
        for row in &table.host {
            let fault = |why: String| NodeError::config("gateway.host", format!("{}: {why}", row.address));
            let mac = station_mac(&row.mac).map_err(fault)?;
            if let Some(bad) = row.nickname.filter(|nickname| !is_usable(*nickname)) {
                return Err(fault(format!("nickname {bad:#06x} is reserved; name the RBridge that it is behind")));
            }
            let behind = row.nickname.filter(|nickname| config.nickname != Some(*nickname));
            let host = Host { address: row.address, mac, vlan: row.vlan, behind };
            gateway.check_host(&host).map_err(fault)?;
            if !known.insert(host.address) {
                return Err(fault("is there twice".to_owned()));
            }
            gateway.hosts.push(host);
        }
        Ok(gateway)
    }

    /// Whether a host can be routed to.
    fn check_host(&self, host: &Host) -> Result<(), String> {
        let Some(subnet) = self.vlans.iter().find(|subnet| subnet.vlan == host.vlan) else {
            return Err(format!("its VLAN {} is none of [[gateway.vlan]]", host.vlan));
        };
        if !subnet.contains(host.address) {
            return Err(format!("is not in {}/{} of VLAN {}", subnet.address, subnet.prefix, subnet.vlan));
        }
        if subnet.address == host.address || self.mac == host.mac {
            return Err("is the gateway's own address".to_owned());
        }
        Ok(())
    }
}

impl Subnet {
    fn of(vlan: u16, text: &str) -> Result<Self, String> {
        let vlan = check_vlan(vlan)?;
        let parts =
            text.split_once('/').and_then(|(address, prefix)| Some((address.parse().ok()?, prefix.parse().ok()?)));
        match parts {
            Some((address, prefix @ 1..=30)) => Ok(Self { vlan, address, prefix }),
            _ => Err(format!("`{text}` is no address with prefix length; write as 10.0.10.254/24")),
        }
    }

    pub(super) fn contains(&self, address: Ipv4Addr) -> bool {
        (self.address.to_bits() ^ address.to_bits()) >> (32 - self.prefix) == 0
    }

    fn overlaps(&self, other: &Self) -> bool {
        let wider = if self.prefix < other.prefix { self } else { other };
        wider.contains(self.address) && wider.contains(other.address)
    }
}

/// The MAC of one station.
fn station_mac(text: &str) -> Result<MacAddress, String> {
    let mac: MacAddress = text.parse().map_err(|error| format!("`{text}`: {error}"))?;
    if mac.is_group() || mac.0 == [0; 6] { Err(format!("`{text}` is the MAC of no single station")) } else { Ok(mac) }
}

#[cfg(test)]
mod tests {
    use super::super::config::{GatewayHost, GatewayVlan};
    use weft_control::{NS_PER_MS, NS_PER_S};

    use super::super::TimingTable;
    use super::*;

    fn refusal(spoil: impl FnOnce(&mut RBridgeConfig)) -> String {
        let mut config = RBridgeConfig::example();
        spoil(&mut config);
        let error = Settings::of(&config).expect_err("it cannot be").to_string();
        assert!(!error.contains('\n'), "one line: {error}");
        error
    }

    #[test]
    fn the_example_is_good_and_survives_as_text() {
        let config = RBridgeConfig::example();
        Settings::of(&config).unwrap();
        assert_eq!(toml::from_str::<RBridgeConfig>(&crate::settings_file::to_text(&config)).unwrap(), config);
        let settings = Settings::of(&config).unwrap();
        assert_eq!(settings.vlans().collect::<Vec<_>>(), [(10, 10), (10, 10), (20, 30)]);
        assert_eq!((settings.timing.hello_ns, settings.timing.holding_s()), (3 * NS_PER_S, 9));
        assert!(matches!(
            settings.ports[0].kind,
            Kind::Link { cost: Some(2000), designated_vlan: 1, mtu_test: false, elide: false }
        ));
    }

    #[test]
    fn what_is_missing_is_as_usual() {
        let mut config = RBridgeConfig::new("a");
        config.port = vec![PortTable::p2p("eth1")];
        let settings = Settings::of(&config).unwrap();
        assert_eq!(settings.timing, Timing::default());
        assert_eq!((settings.system, settings.station_age_s, settings.gateway), (None, 300, None));
        let text = "name = \"a\"\n[[port]]\ninterface = \"eth1\"\nkind = \"p2p\"\n";
        assert_eq!(toml::from_str::<RBridgeConfig>(text).unwrap(), config);
    }

    #[test]
    fn a_shared_link_is_as_usual_but_for_what_the_file_says() {
        let text = "name = \"a\"\n[[port]]\ninterface = \"lan\"\nkind = \"shared\"\n";
        let mut config: RBridgeConfig = toml::from_str(text).unwrap();
        let settings = Settings::of(&config).unwrap();
        let Kind::Shared(shared) = &settings.ports[0].kind else { panic!("a shared link") };
        assert_eq!((shared.priority, shared.untagged, shared.designated_vlan), (64, 1, 1));
        assert_eq!((shared.enabled.ranges(), shared.announcing.ranges()), ([(1, 1)].into(), [(1, 1)].into()));
        assert!(shared.serves_stations && !shared.mtu_test && shared.cost.is_none());
        assert_eq!(settings.vlans().count(), 0, "who serves whom is found out");
        config.port[0] = PortTable {
            drb_priority: Some(127),
            stations: Some(false),
            vlans: Some("20-22".to_owned()),
            designated_vlan: Some(21),
            ..PortTable::shared("lan", 10)
        };
        let settings = Settings::of(&config).unwrap();
        let Kind::Shared(shared) = &settings.ports[0].kind else { panic!("a shared link") };
        assert_eq!((shared.priority, shared.untagged, shared.designated_vlan), (127, 10, 21));
        let all = vec![(10, 10), (20, 22)];
        assert_eq!(
            (shared.enabled.ranges(), shared.announcing.ranges()),
            (all.clone(), all),
            "Hellos go in all of them"
        );
        assert!(!shared.serves_stations);
        config.port[0].announcing_vlans = Some("20,22".to_owned());
        let settings = Settings::of(&config).unwrap();
        let Kind::Shared(shared) = &settings.ports[0].kind else { panic!("a shared link") };
        assert_eq!(shared.announcing.ranges(), [(20, 20), (22, 22)]);
    }

    #[test]
    fn echoes_are_sent_where_they_are_wanted() {
        let table = TimingTable { hello_ms: Some(200), echo_ms: Some(100), ..TimingTable::default() };
        let timing = table.timing().unwrap();
        assert_eq!((timing.echo_ns, timing.echoes_missed), (100 * NS_PER_MS, 3));
    }

    #[test]
    fn a_silence_of_a_second_is_enough_where_hellos_are_frequent() {
        let table = TimingTable { hello_ms: Some(300), ..TimingTable::default() };
        assert_eq!(table.timing().unwrap().holding_s(), 1);
    }

    #[test]
    fn timers_of_shared_links_are_as_the_file_says() {
        let table: TimingTable = toml::from_str("csnp_ms = 500\nroot_change_s = 0\n").unwrap();
        let timing = table.timing().unwrap();
        assert_eq!((timing.csnp_ns, timing.root_change_ns), (500 * NS_PER_MS, 0));
    }

    #[test]
    fn what_cannot_be_is_refused_with_its_place() {
        type Spoil = fn(&mut RBridgeConfig);
        let cases: Vec<(Spoil, &str)> = vec![
            (|config| config.name.clear(), "name: `` is no name"),
            (|config| config.name = "a b".to_owned(), "name: `a b`"),
            (|config| config.nicknames = 0, "nicknames: 0 is not 1 to 4"),
            (|config| config.nicknames = 5, "nicknames: 5 is not 1 to 4"),
            (|config| config.trees = 0, "trees: 0 is not 1 to 4"),
            (|config| config.trees = 5, "trees: 5 is not 1 to 4"),
            (|config| config.lsp_buffer_bytes = 1469, "lsp_buffer_bytes: 1469 is not 1470 to 9216"),
            (|config| config.lsp_buffer_bytes = 9217, "lsp_buffer_bytes: 9217 is not 1470 to 9216"),
            (|config| config.trees_used = 0, "trees_used: 0 is not 1 to 4"),
            (|config| config.trees_used = 5, "trees_used: 5 is not 1 to 4"),
            (|config| config.nickname = Some(0), "nickname: 0x0000 is reserved"),
            (|config| config.nickname = Some(0xffc0), "nickname: 0xffc0 is reserved"),
            (|config| config.nickname = Some(0xffff), "nickname: 0xffff is reserved"),
            (|config| config.system_id = Some("1".to_owned()), "system_id: `1`: not a system ID"),
            (|config| config.system_id = Some("0000.0000.0000".to_owned()), "zero names nobody"),
            (|config| config.spread_cpus = Some("0,x".to_owned()), "spread_cpus: `x` is no CPU"),
            (|config| config.spread_cpus = Some("0-16".to_owned()), "`0-16` are 17 CPUs; use 1 to 16"),
            (|config| config.spread_cpus = Some("3-2".to_owned()), "`3-2` are 0 CPUs"),
            (|config| config.capacity.stations = 0, "capacity.stations: 0 is no room"),
            (|config| config.port.clear(), "port: there are 0"),
            (|config| config.port = vec![PortTable::p2p("e"); 64], "port: there are 64"),
            (
                |config| config.port[1].interface = "eth1".to_owned(),
                "port: 2 (`eth1`): its interface is another port's",
            ),
            (|config| config.port[0].interface = "a/b".to_owned(), "`a/b` is no interface name"),
            (|config| config.port[0].cost = Some(1), "port: 1 (`eth1`): it has both"),
            (|config| config.port[1].cost = Some(0), "port: 2 (`eth2`): cost 0 is not"),
            (|config| config.port[1].cost = Some(0xff_ffff), "cost 16777215 is not"),
            (|config| config.port[0].rate_bps = Some(0), "rate_bps is 0"),
            (|config| config.port[0].designated_vlan = Some(4095), "VLAN 4095 is not 1 to 4094"),
            (|config| config.port[0].vlan = Some(1), "`vlan` means nothing to this kind of port"),
            (|config| config.port[2].vlan = Some(0), "port: 3 (`host1`): VLAN 0 is not 1 to 4094"),
            (|config| config.port[2].vlan = None, "an access port needs its `vlan`"),
            (|config| config.port[2].mtu_test = Some(true), "`mtu_test` means nothing"),
            (|config| config.port[3].elide_outer_header = Some(true), "`elide_outer_header` means nothing"),
            (|config| config.port[3].vlans = None, "a trunk needs its `vlans`"),
            (|config| config.port[2].drb_priority = Some(1), "`drb_priority` means nothing"),
            (|config| config.port[0].stations = Some(true), "`stations` means nothing"),
            (
                |config| config.port[2] = PortTable { designated_vlan: Some(1), ..PortTable::shared("lan", 10) },
                "port: 3 (`lan`): designated_vlan 1 is no VLAN of the port; add it to `vlans`",
            ),
            (
                |config| {
                    let announcing_vlans = Some("10-11".to_owned());
                    config.port[2] = PortTable { announcing_vlans, ..PortTable::shared("lan", 10) };
                },
                "port: 3 (`lan`): announcing_vlans: 11 is no VLAN of the port; add it to `vlans`",
            ),
            (|config| config.port[0].announcing_vlans = Some("1".to_owned()), "`announcing_vlans` means nothing"),
            (
                |config| config.port[2] = PortTable { drb_priority: Some(128), ..PortTable::shared("lan", 10) },
                "port: 3 (`lan`): drb_priority 128 is not 0 to 127",
            ),
            (|config| config.port[2] = PortTable::shared("lan", 0), "port: 3 (`lan`): VLAN 0 is not 1 to 4094"),
            (|config| config.port[3].vlans = Some(String::new()), "is no VLAN"),
            (|config| config.port[3].vlans = Some("10-5".to_owned()), "`10-5` ends before it begins"),
            (|config| config.port[3].vlans = Some("1-4095".to_owned()), "VLAN 4095 is not"),
            (|config| config.timing.hello_ms = Some(0), "timing.hello_ms: 0 is not 10 to 300000"),
            (|config| config.timing.holding_multiplier = Some(1), "timing.holding_multiplier: 1 is not"),
            (|config| config.timing.echo_ms = Some(9), "timing.echo_ms: 9 is not 10 to 300000"),
            (|config| config.timing.echo_ms = Some(1000), "3 Echoes take 3000 ms, and Hellos come every 3000 ms"),
            (|config| config.timing.echo_multiplier = Some(1), "timing.echo_multiplier: 1 is not 2 to 100"),
            (|config| config.timing.refresh_s = Some(1200), "timing.refresh_s: 1200 is not 1 to 1199"),
            (|config| config.timing.csnp_ms = Some(9), "timing.csnp_ms: 9 is not 10 to 3600000"),
            (|config| config.timing.root_change_s = Some(31), "timing.root_change_s: 31 is not 0 to 30"),
            (|config| groups(config).interval_s = 0, "groups.interval_s: 0 is not 1 to 31744"),
            (|config| groups(config).response_ms = 99, "groups.response_ms: 99 is not 100 to 3174400"),
            (|config| groups(config).interval_s = 10, "groups.response_ms: 10000 is not below the interval of 10 s"),
            (
                |config| gateway(config).mac = "01:00:5e:00:00:01".to_owned(),
                "gateway.mac: `01:00:5e:00:00:01` is the MAC",
            ),
            (|config| gateway(config).vlan[0].vlan = 4095, "gateway.vlan: 4095: VLAN 4095"),
            (|config| gateway(config).vlan[0].address = "10.0.0.1".to_owned(), "no address with prefix length"),
            (|config| gateway(config).vlan[1].address = "10.0.10.7/16".to_owned(), "overlaps the block of VLAN 10"),
            (|config| gateway(config).host[0].vlan = 9, "gateway.host: 10.0.20.1: its VLAN 9"),
            (|config| gateway(config).host[0].vlan = 10, "is not in 10.0.10.254/24"),
            (|config| gateway(config).host[0].address = [10, 0, 20, 254].into(), "is the gateway's own address"),
            (|config| gateway(config).host[0].nickname = Some(0xffc0), "10.0.20.1: nickname 0xffc0 is reserved"),
            (|config| config.capacity.host_routes = 2, "capacity.host_routes: 3 addresses"),
        ];
        for (spoil, says) in cases {
            let error = refusal(spoil);
            assert!(error.contains(says), "{error} does not say {says}");
        }
        let twice = refusal(|config| {
            let host: GatewayHost = gateway(config).host[0].clone();
            gateway(config).host.push(host);
        });
        assert!(twice.contains("10.0.20.1: is there twice"), "{twice}");
        let twice = refusal(|config| {
            let row: GatewayVlan = gateway(config).vlan[0].clone();
            gateway(config).vlan.push(row);
        });
        assert!(twice.contains("gateway.vlan: 10: is there twice"), "{twice}");
    }

    fn groups(config: &mut RBridgeConfig) -> &mut GroupsTable {
        config.groups.as_mut().expect("the example has one")
    }

    fn gateway(config: &mut RBridgeConfig) -> &mut GatewayTable {
        config.gateway.as_mut().expect("the example has one")
    }
}
