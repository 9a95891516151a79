//! Scenarios in which keys are changed: a usual one, and those in which one thing is not usual.

use toml::Table;

use crate::document::{merge, parsed};

/// Four servers on two leaves send three at a time to one, so that queues fill and packets are lost; one way is dead from early on, so
/// that SYNs are lost, too, and half of what is under way.
const USUAL: &str = r#"
[fabric]
generator = "leaf-spine"
spines = 2
leaves = 2
servers_per_leaf = 2
server_rate = "100 Mbit/s"
core_rate = "80 Mbit/s"
server_buffer = "20 kB"
core_buffer = "16 kB"
link_delay = "20 us"

[switching]
reconvergence = "3 ms"
bfd = "20 ms"

[transport]
rto_min = "20 ms"
rto_initial = "40 ms"

[workload]
kind = "flows"
flows = [
  { from = 0, to = 3, bytes = 90000, start_ns = 0 },
  { from = 1, to = 3, bytes = 90000, start_ns = 0 },
  { from = 2, to = 3, bytes = 60000, start_ns = 0 },
  { from = 0, to = 2, bytes = 120000, start_ns = 1000000 },
  { from = 1, to = 2, bytes = 30000, start_ns = 1500000 },
  { from = 3, to = 1, bytes = 3000, start_ns = 2000000 },
  { from = 2, to = 0, bytes = 3000, start_ns = 2100000 },
  { from = 3, to = 0, bytes = 200000, start_ns = 2200000 },
]

[[fault]]
kind = "link-silent"
at = "1 ms"
lasts = "150 ms"
a = "leaf1"
b = "spine1"

[sampling]
interval = "5 ms"
time_limit = "600 ms"
"#;

/// A thing that is not usual: its name, and tables that are laid over the usual ones.
pub(crate) struct Thing {
    name: &'static str,
    tables: &'static str,
}

const fn thing(name: &'static str, tables: &'static str) -> Thing {
    Thing { name, tables }
}

/// All of them. `-` and a name at the end takes something usual away: a fault, whose nodes another fabric does not have, what finds silent
/// ones, or settings of TCP where there is none.
const THINGS: &[Thing] = &[
    thing("reno", "transport.congestion_control = \"reno\""),
    thing("dctcp", "transport.congestion_control = \"dctcp\"\nswitching.ecn_threshold = \"6 kB\""),
    thing("reno without sack", "transport = { congestion_control = \"reno\", sack = false }"),
    thing("old stack", "transport = { congestion_control = \"reno\", stack = \"linux-2.6.26\" }"),
    thing("capped", "transport = { window_cap_segments = 12, timestamps = false }"),
    thing("packet-spray", "switching.load_balance = \"packet-spray\""),
    thing("flowlet", "switching.load_balance = { flowlet = { gap = \"50 us\" } }"),
    thing("rehash", "switching.load_balance = { rehash = { hold = \"1 ms\", large = \"6 kB\" } }"),
    thing("spanning-tree", "switching.load_balance = \"spanning-tree\""),
    thing(
        "shared pool",
        "switching.buffer = { shared-pool = { pool = \"20 kB\" } }\nfabric.server_buffer = \"4 MB\"\nfabric.core_buffer = \"16 MB\"",
    ),
    thing(
        "shares of a pool",
        "switching.buffer = { shared-pool = { pool = \"40 kB\", dynamic_alpha_milli = 500, tier_pools = { leaf = \"30 kB\" } } }\nfabric.server_buffer = \"4 MB\"\nfabric.core_buffer = \"16 MB\"",
    ),
    thing("cut-through", "switching.forwarding = \"cut-through\""),
    thing("drop-tail", "switching.host_queue = { drop-tail = { limit = \"12 kB\" } }"),
    thing("back-pressure", "switching.host_queue = { back-pressure = { limit = \"8 kB\" } }"),
    thing("no fault", "\n-fault"),
    thing(
        "switch-down",
        "fault = [{ kind = \"switch-down\", at = \"1 ms\", lasts = \"100 ms\", node = \"spine1\" }]\n-bfd",
    ),
    thing(
        "link-down",
        "fault = [{ kind = \"link-down\", at = \"1 ms\", lasts = \"100 ms\", a = \"leaf1\", b = \"spine1\" }]\n-bfd",
    ),
    thing(
        "switch-silent",
        "fault = [{ kind = \"switch-silent\", at = \"1 ms\", lasts = \"150 ms\", node = \"spine1\" }]",
    ),
    thing("kernel-vxlan", "overlay = \"kernel-vxlan\""),
    thing("vtep", "overlay = \"vtep\""),
    thing("rbridge", "overlay = \"rbridge\""),
    thing(
        "vl2",
        "overlay = \"vl2\"\nfabric = { generator = \"vl2-testbed\", servers_per_tor = 1, server_rate = \"100 Mbit/s\", core_rate = \"80 Mbit/s\", server_buffer = \"20 kB\", core_buffer = \"16 kB\", link_delay = \"20 us\" }\n-fault",
    ),
    thing(
        "four per ToR",
        "fabric = { generator = \"vl2-testbed\", servers_per_tor = [2, 1, 1, 1], server_rate = \"100 Mbit/s\", core_rate = \"80 Mbit/s\", server_buffer = \"20 kB\", core_buffer = \"16 kB\", link_delay = \"20 us\" }\n-fault",
    ),
    thing(
        "clos",
        "fabric = { generator = \"vl2-clos\", aggregation_ports = 4, intermediate_ports = 4, servers_per_tor = 1, server_rate = \"100 Mbit/s\", core_rate = \"80 Mbit/s\", server_buffer = \"20 kB\", core_buffer = \"16 kB\", link_delay = \"20 us\" }\n-fault",
    ),
    thing(
        "fat tree",
        "fabric = { generator = \"fat-tree\", k = 2, servers_per_tor = 2, server_rate = \"100 Mbit/s\", core_rate = \"80 Mbit/s\", server_buffer = \"20 kB\", core_buffer = \"16 kB\", link_delay = \"20 us\" }\n-fault",
    ),
    thing(
        "mesh",
        "fabric = { generator = \"mesh\", leaves = 4, servers_per_leaf = 1, server_rate = \"100 Mbit/s\", core_rate = \"80 Mbit/s\", server_buffer = \"20 kB\", core_buffer = \"16 kB\", link_delay = \"20 us\" }\n-fault",
    ),
    thing(
        "one switch",
        "fabric = { generator = \"output-queued\", servers = 4, server_rate = \"100 Mbit/s\", server_buffer = \"20 kB\", link_delay = \"20 us\" }\n-fault",
    ),
    thing(
        "tree",
        "fabric = { generator = \"tree\", servers = 4, servers_per_rack = 2, oversubscription = 2, aggregations = 2, server_rate = \"100 Mbit/s\", server_buffer = \"20 kB\", core_buffer = \"16 kB\", link_delay = \"20 us\" }\n-fault",
    ),
    thing(
        "conventional",
        "fabric = { generator = \"conventional\", tors = 4, servers_per_tor = 1, aggregation_pairs = 2, access_pairs = 2, cores = 2, tor_oversubscription = 2, aggregation_oversubscription = 2, access_oversubscription = 2, server_rate = \"100 Mbit/s\", server_buffer = \"20 kB\", core_buffer = \"16 kB\", link_delay = \"20 us\" }\n-fault",
    ),
    thing(
        "pair",
        "fabric = { generator = \"overlay-pair\", server_rate = \"100 Mbit/s\", core_rate = \"80 Mbit/s\", server_buffer = \"20 kB\", core_buffer = \"16 kB\", link_delay = \"20 us\" }\nworkload = { kind = \"one-to-one\", from = 0, to = 1, flows = 3, duration = \"60 ms\" }\n-fault",
    ),
    thing("file", "fabric = { file = \"leaf-spine-small\" }\n-fault"),
    thing("shuffle", "workload = { kind = \"shuffle\", bytes_per_flow = \"30 kB\" }"),
    thing("permutation", "workload = { kind = \"permutation\", bytes_per_flow = \"60 kB\", shift = 1 }"),
    thing("one-to-one", "workload = { kind = \"one-to-one\", from = 0, to = 3, flows = 3, duration = \"200 ms\" }"),
    thing(
        "mix",
        "workload = { kind = \"mix\", duration = \"200 ms\", offered_rate_per_server = \"20 Mbit/s\", size_divisor = 1000 }",
    ),
    thing(
        "traffic",
        "workload = { kind = \"traffic\", duration = \"20 ms\", background = { sizes = { fixed = \"20 kB\" }, load_percent = 40, between_racks_only = true, servers_per_rack = 3 }, query = { fan_in = 2, response = \"20 kB\", rate = { interval = \"5 ms\" }, jitter = \"100 us\" } }",
    ),
    thing(
        "sizes",
        "workload = { kind = \"traffic\", duration = \"20 ms\", background = { sizes = { table = [[\"1 kB\", 0.5], [\"60 kB\", 1.0]] }, load_percent = 40, max_flow_bytes = \"20 kB\", size_divisor = 2 }, query = { fan_in = 2, response = \"20 kB\", rate = { load-percent = 20 } } }",
    ),
    thing(
        "ramp",
        "workload = { kind = \"services\", duration = \"200 ms\", service = { one = { servers = [0, 1, 2, 3], role = { ramp = { begin = \"1 ms\", every = \"2 ms\", bytes_per_flow = \"60 kB\" } } } } }",
    ),
    thing(
        "bursts",
        "workload = { kind = \"services\", duration = \"200 ms\", service = { long = { servers = [0, 2], role = \"long-flows\" }, bursts = { servers = [1, 3], role = { bursts = { begin = \"1 ms\", every = \"5 ms\", bursts = 3, first_flows = 2, more_flows = 1, min_bytes = \"2 kB\", max_bytes = \"9 kB\" } } } } }",
    ),
    thing(
        "flood",
        "workload = { kind = \"services\", duration = \"200 ms\", service = { one = { servers = [0, 1, 2, 3], role = { flood = { begin = \"1 ms\", end = \"60 ms\", rate_per_server = \"40 Mbit/s\", to = 3 } } } } }\n-transport",
    ),
    thing(
        "limited flood",
        "overlay = \"vl2\"\nfabric = { generator = \"vl2-testbed\", servers_per_tor = 1, server_rate = \"100 Mbit/s\", core_rate = \"80 Mbit/s\", server_buffer = \"20 kB\", core_buffer = \"16 kB\", link_delay = \"20 us\" }\nworkload = { kind = \"services\", duration = \"200 ms\", service = { one = { servers = [0, 1, 2, 3], role = { flood = { begin = \"1 ms\", end = \"60 ms\", rate_per_server = \"40 Mbit/s\", to = 3 } }, datagram_limit = { rate = \"4 Mbit/s\", burst = \"6 kB\" } } } }\n-fault transport",
    ),
];

/// A scenario and what is not usual about it.
pub(crate) struct Scene {
    pub(crate) name: &'static str,
    pub(crate) document: Table,
}

/// The usual scenario, and those with one thing that is not.
pub(crate) fn scenes() -> Vec<Scene> {
    let usual = Scene { name: "the usual", document: parsed(USUAL) };
    std::iter::once(usual).chain(THINGS.iter().map(scene)).collect()
}

fn scene(thing: &Thing) -> Scene {
    let mut document = parsed(USUAL);
    let (tables, without) = thing.tables.split_once("\n-").unwrap_or((thing.tables, ""));
    merge(&mut document, &parsed(tables));
    for what in without.split_whitespace() {
        let settings: &[&str] = match what {
            "fault" => &["reconvergence", "bfd"],
            "bfd" => &["bfd"],
            _ => &[],
        };
        document.remove(what);
        if let Some(switching) = document.get_mut("switching").and_then(toml::Value::as_table_mut) {
            settings.iter().for_each(|setting| drop(switching.remove(*setting)));
        }
    }
    Scene { name: thing.name, document }
}
