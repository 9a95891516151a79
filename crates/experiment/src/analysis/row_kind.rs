//! Which rows an analysis reads, so that a sweep's memory holds no others.

use weft_scenario::record::Records;

macro_rules! row_kinds {
    ($($kind:ident = $rows:ident,)+) => {
        /// A kind of rows that an analysis may read.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum RowKind {
            $(#[doc = concat!("[`Records::", stringify!($rows), "`]")] $kind,)+
        }

        impl RowKind {
            /// Every kind.
            pub const ALL: &'static [Self] = &[$(Self::$kind),+];

            /// Drops the rows of every kind but these.
            pub fn keep(kinds: &[Self], records: &mut Records) {
                $(if !kinds.contains(&Self::$kind) {
                    records.$rows = Vec::new();
                })+
            }
        }
    };
}

row_kinds! {
    Flows = flows,
    Progress = progress,
    Services = services,
    Links = links,
    Queues = queues,
    Tcp = tcp,
    Cpu = cpu,
    Events = events,
    Latencies = latencies,
    Directory = directory,
    Migrations = migrations,
    Servers = servers,
    Offered = offered,
    PathCosts = path_costs,
    Segments = segments,
    Crossings = crossings,
    PathShares = path_shares,
    Chains = chains,
    SwitchLosses = switch_losses,
    VlanMixes = vlan_mixes,
    Elephants = elephants,
    Networks = networks,
    LinkUses = link_uses,
    RoutedMatrices = routed_matrices,
    Availability = availability,
    Failures = failures,
    FlowSizes = flow_sizes,
    Concurrency = concurrency,
    Matrices = matrices,
    Fitting = fitting,
    Gaps = gaps,
}
