//! Why a workload is refused.

use super::FLOWS_MAX;
use crate::units::{Bytes, Nanos};

/// Why a workload is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WorkloadError {
    /// Nobody to send to.
    #[error("a workload needs at least 2 servers; the fabric has {servers}")]
    TooFewServers {
        /// How many the fabric has.
        servers: u32,
    },
    /// A server's number is not below the number of servers.
    #[error("there is no server number {server}; the fabric's {servers} servers are numbered from 0")]
    NoSuchServer {
        server: u32,
        /// How many the fabric has.
        servers: u32,
    },
    /// A spine's number is not below the number of spines.
    #[error("there is no spine number {spine}; the fabric's {spines} spines are numbered from 0")]
    NoSuchSpine {
        spine: u16,
        /// How many the fabric has.
        spines: usize,
    },
    /// Sender and receiver are the same.
    #[error("server {server} cannot send to itself; choose another `from` or `to`")]
    ToItself {
        /// The server's number.
        server: u32,
    },
    /// A permutation that maps servers onto themselves or goes round more than once.
    #[error("`shift` is {shift}; with this fabric it is 1 to {most}")]
    Shift {
        shift: u32,
        /// The largest that makes sense.
        most: u32,
    },
    /// Flows with nothing to send.
    #[error("`bytes_per_flow` is 0; give each flow something to send, such as `1 MB`")]
    ZeroBytes,
    /// No flows, or more than can be kept.
    #[error("the workload starts {flows} flows; allowed are 1 to {FLOWS_MAX}")]
    Flows {
        /// How many it would start.
        flows: u64,
    },
    /// Nothing can be sent in no time.
    #[error("`duration` is 0; choose a time such as `10 s`")]
    ZeroDuration,
    /// The servers of the mix offer nothing.
    #[error("`offered_rate_per_server` is 0; choose a rate such as `4 Mbit/s`, or leave it out and TCP decides")]
    ZeroRate,
    /// Sizes cannot be divided by zero.
    #[error("`size_divisor` is 0; 1 leaves the sizes as in the paper")]
    ZeroDivisor,
    /// A load that is none.
    #[error("`{setting}` is {percent}; choose 1 to 100")]
    Load { setting: &'static str, percent: u32 },
    /// Background and queries together ask more of a link than it can carry.
    #[error("background and queries together load a server's link with {percent} %; choose at most 100 %")]
    LoadSum { percent: u64 },
    /// Traffic without any part.
    #[error("the traffic has neither `background` nor `query`; give it one of them or both")]
    NoTraffic,
    /// A size of 0.
    #[error("`{setting}` is 0 bytes; give flows something to send, such as `1 MB`")]
    ZeroSize { setting: &'static str },
    /// A query cannot ask so many.
    #[error("`query.fan_in` is {fan_in}; with this fabric it is 1 to {most}")]
    FanIn {
        /// How many it is to ask.
        fan_in: u32,
        /// How many others there are.
        most: u32,
    },
    /// A response that cannot be shared.
    #[error("`query.response` is {response}, less than a byte for each of {fan_in} workers")]
    Response {
        /// All responses to a query.
        response: Bytes,
        /// How many workers send it.
        fan_in: u32,
    },
    /// Queries without end in no time.
    #[error("`query.rate.interval` is 0; choose a time such as `10 ms`")]
    ZeroInterval,
    /// Racks of no servers.
    #[error("`background.servers_per_rack` is 0; leave it out for the fabric's racks")]
    ZeroRack,
    /// A rack's size that nothing depends on.
    #[error("`background.servers_per_rack` has no effect without `between_racks_only = true`; remove it")]
    RackWithoutEffect,
    /// Nobody is in another rack.
    #[error("all servers are in one rack, so none can send between racks; set `background.servers_per_rack`")]
    OneRack,
    /// The first flow would start after the end.
    #[error("no flow starts within `duration`; choose a longer one or a higher load")]
    NoFlows,
    /// Flows of the mix start when others end.
    #[error("the mix starts flows as others end; they are not known before the run")]
    ClosedLoop,
    /// Traffic at a load cannot be listed without the links' rates.
    #[error("traffic at a load depends on the rates of the servers' links, which are not known here")]
    NeedsRates,
    /// A setting outside its range.
    #[error("`{setting}` is {value}; it is {least} to {most}")]
    DirectoryRange {
        setting: &'static str,
        value: u32,
        /// The least that makes sense.
        least: u32,
        most: u32,
    },
    /// A time of 0.
    #[error("`{setting}` is 0; choose a time such as `2 s`")]
    ZeroTime { setting: &'static str },
    /// A directory that nobody uses.
    #[error("the directory's load has neither `lookups` nor `updates` with a rate in `per_s`; give it one or both")]
    NoDirectoryLoad,
    /// Lists of rates that do not match.
    #[error("{lookups} rates of look-ups and {updates} of updates do not make steps; give as many, or one")]
    DirectorySteps {
        /// Rates of look-ups.
        lookups: usize,
        updates: usize,
    },
    /// Visibility at a server that is dead.
    #[error("`until_visible` cannot be measured while something is killed; remove it or `kill`")]
    WatchedKill,
    /// Something is to happen after the end.
    #[error("something is to happen at {at}, when the load is over; choose a longer `duration`")]
    KillAfterEnd { at: Nanos },
    /// Something comes back before it goes.
    #[error("what is killed is back at {back_at}, not after it was killed at {at}; choose a later `back_at`")]
    BackBeforeKill { at: Nanos, back_at: Nanos },
    /// A migration to where it is.
    #[error("server {server} moves to its own rack; choose another `to_rack_of`")]
    MovesNowhere {
        /// The server's number.
        server: u32,
    },
    /// A workload without flows that can be listed.
    #[error("a workload of kind `{kind}` needs real servers; run it in the lab")]
    LabOnly { kind: &'static str },
    /// A workload of which nothing is sent.
    #[error("a workload of kind `{kind}` sends nothing; run it with the engine `calc`")]
    CalcOnly { kind: &'static str },
    /// A question that cannot be answered.
    #[error("{what}")]
    Model {
        /// What is wrong with it.
        what: String,
    },
    /// An empty list, or something in it twice.
    #[error("`{setting}` must name something, and nothing twice")]
    NotAList { setting: &'static str },
    /// Only a socket has it.
    #[error("`{setting}` needs `to = \"socket\"`")]
    ForSockets { setting: &'static str },
    /// Only the test centre's ports have it.
    #[error("`{setting}` is for ports of the test centre, not for sockets; leave it out, or the sockets")]
    ForPorts { setting: &'static str },
    /// Streams to several servers have no one path.
    #[error("rates and mixes of VLANs need one of `receivers`; several are for `cost` alone")]
    CostAlone,
    /// Only streams that switches copy have it.
    #[error("`{setting}` is for `copies = \"tree\"`; leave it out, or let switches make the copies")]
    ForTrees { setting: &'static str },
    /// A link that would go down when nobody sends any more.
    #[error("`link_down_at` is not before the end; choose a time within `trial`")]
    LateLink,
    /// Nothing is to be sent.
    #[error(
        "the workload sends nothing; give it rates in `per_s`, loads in `load_percent`, `search`, `steady` or `cost`"
    )]
    NoRates,
    /// Rates that belong to sizes, and not one for each.
    #[error("there are {rates} of `steady.rates` for {sizes} sizes; give one for each of `frame_bytes`, or one size")]
    SteadyRates { rates: usize, sizes: usize },
    /// A service that has nobody to send to.
    #[error("a service needs at least 2 servers, which send to each other; `servers` names {servers}")]
    LonelyService {
        /// How many it has.
        servers: usize,
    },
    /// A server that is in a service twice, or in two.
    #[error("server {server} is in service `{other}` already; a server is in one service, once")]
    ServerTaken {
        /// The server's number.
        server: u32,
        /// The service that named it first.
        other: String,
    },
    /// Something would happen after the end of a run.
    #[error("something is to happen at {at}, when the run is over; choose a longer `duration`")]
    AfterEnd { at: Nanos },
    /// A limit where nothing is limited.
    #[error("`datagram_limit` has no effect on a service that sends none; it is for the roles `flood` and `storm`")]
    LimitWithoutDatagrams,
    /// What makes one burst differ from the next, where there is one.
    #[error("`{setting}` has no effect on a single burst; write {none}, or more `bursts`")]
    OneBurst {
        setting: &'static str,
        /// What it is then.
        none: &'static str,
    },
    /// Sizes between limits that cross.
    #[error("`max_bytes` is {max}, less than `min_bytes`, which is {min}")]
    BurstSizes { min: Bytes, max: Bytes },
    /// A rate of 0.
    #[error("`{setting}` is 0; choose a rate such as `2 Mbit/s`")]
    ZeroServiceRate { setting: &'static str },
    /// A flood that leaves its service.
    #[error("`to` is server {to}, which is not one of the service's `servers`")]
    FloodsStranger {
        /// The server's number.
        to: u32,
    },
    /// A flood that lasts no time.
    #[error("the flood ends at {end} and begins at {begin}; `end` must be later than `begin`")]
    FloodTimes { begin: Nanos, end: Nanos },
    /// A storm from outside its service.
    #[error("`from` is server {from}, which is not one of the service's `servers`")]
    StormOfStranger {
        /// The server's number.
        from: u32,
    },
    /// A storm where nothing is broadcast.
    #[error("a storm needs `broadcast` in its fabric, and fabric `{fabric}` has none; see docs/broadcast.md")]
    NoBroadcast {
        /// The fabric's name.
        fabric: String,
    },
    /// A storm whose service is not the fabric's.
    #[error(
        "server {server} {} of the sender's service in the fabric; `servers` must be all of that service and no others",
        if *.heard { "is" } else { "is not" }
    )]
    StormElsewhere {
        /// The server's number.
        server: u32,
        /// Whether it hears the sender's broadcast.
        heard: bool,
    },
    /// A storm outside the lab.
    #[error("a storm needs agents and real switches; run it with the engine `lab`")]
    StormLabOnly,
    /// A token bucket that never holds a whole packet.
    #[error("`datagram_limit.burst` is {burst}; a packet of 1500 bytes needs {least}")]
    LimitBurst {
        /// The bucket's size.
        burst: Bytes,
        /// The least that makes sense.
        least: Bytes,
    },
    /// A service of several.
    #[error("service `{service}`: {error}")]
    Service {
        service: String,
        /// What is wrong with it.
        error: Box<WorkloadError>,
    },
    /// A flow of a list.
    #[error("flow {number} of the list: {error}")]
    Flow {
        /// Its place, counted from 1.
        number: usize,
        /// What is wrong with it.
        error: Box<WorkloadError>,
    },
}

impl WorkloadError {
    /// The same, said of a service.
    pub(super) fn of_service(self, service: &str) -> Self {
        Self::Service { service: service.to_owned(), error: Box::new(self) }
    }
}
