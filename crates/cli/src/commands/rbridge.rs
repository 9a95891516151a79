//! `weft show rbridge`.

use weft_node::DaemonKind;
use weft_node::rbridge::protocol::{
    AdjacencyRow, FdbRow, GroupRow, HopRow, LspRow, NicknameRow, RouteRow, RpfRow, SharedRow, Shown, TreeRow, What,
};

use super::daemon::{Document, Running, counter_table};
use crate::args::{Output, RBridgeWhat, ShowArgs};
use crate::exit::Failure;
use crate::output::{self, Rows};

pub(super) fn show(args: ShowArgs<RBridgeWhat>) -> Result<(), Failure> {
    let (running, format) = (Running::of(DaemonKind::Rbridge, args.which)?, args.output.output);
    let what = match args.what {
        RBridgeWhat::Config => return running.print_config(),
        RBridgeWhat::Counters => What::Counters,
        RBridgeWhat::Adjacency => What::Adjacency,
        RBridgeWhat::Shared => What::Shared,
        RBridgeWhat::Lsdb => What::Lsdb,
        RBridgeWhat::Nickname => What::Nickname,
        RBridgeWhat::Route => What::Route,
        RBridgeWhat::Tree => What::Tree,
        RBridgeWhat::Rpf => What::Rpf,
        RBridgeWhat::Groups => What::Groups,
        RBridgeWhat::Fdb => What::Fdb,
    };
    let shown: Shown = running.shown(what)?;
    output::print(format, &table(&shown, format), &Document { schema_version: 1, shown })
}

fn table(shown: &Shown, format: Output) -> Rows {
    match shown {
        Shown::Adjacencies(adjacencies) => adjacency_table(adjacencies),
        Shown::SharedLinks(links) => shared_table(links),
        Shown::Lsps(lsps) => lsp_table(lsps),
        Shown::Nicknames(nicknames) => nickname_table(nicknames),
        Shown::Routes(routes) => route_table(routes),
        Shown::Trees(trees) => tree_table(trees),
        Shown::Rpf(rpf) => rpf_table(rpf),
        Shown::Groups(groups) => group_table(groups),
        Shown::Stations(stations) => fdb_table(stations),
        Shown::Counters(groups) => counter_table(groups, format),
    }
}

/// A nickname as RFC 6325 writes it.
fn hex(nickname: u16) -> String {
    format!("{nickname:#06x}")
}

/// A value, or a dash for none.
fn or_dash<T: ToString>(value: Option<&T>) -> String {
    value.map_or_else(|| "-".to_owned(), ToString::to_string)
}

fn yes(is_so: bool) -> String {
    if is_so { "yes" } else { "no" }.to_owned()
}

fn adjacency_table(adjacencies: &[AdjacencyRow]) -> Rows {
    let header = [
        "port",
        "interface",
        "link",
        "state",
        "neighbor",
        "system",
        "MAC",
        "holding_s",
        "elision",
        "echoes",
        "refused",
        "cost",
        "MTU",
        "tested",
        "Sz",
    ];
    let mut rows = Rows::new(&header);
    for row in adjacencies {
        rows.push(vec![
            row.port.to_string(),
            row.interface.clone(),
            row.link.clone(),
            row.state.clone(),
            or_dash(row.neighbor.as_ref()),
            or_dash(row.system.as_ref()),
            or_dash(row.mac.as_ref()),
            or_dash(row.holding_s.map(|holding_s| format!("{holding_s:.1}")).as_ref()),
            row.elision.clone(),
            yes(row.echoes),
            row.refused.to_string(),
            row.cost.to_string(),
            row.mtu.to_string(),
            or_dash(row.tested_bytes.as_ref()),
            row.sz_bytes.to_string(),
        ]);
    }
    rows
}

/// One line for each forwarder that is known.
fn shared_table(links: &[SharedRow]) -> Rows {
    let header = ["port", "interface", "state", "DRB", "VLAN", "link", "serves", "inhibited", "forwarder", "of VLANs"];
    let mut rows = Rows::new(&header);
    let dash = |text: &str| if text.is_empty() { "-" } else { text }.to_owned();
    for row in links {
        let link = if row.bypass { "bypassed".to_owned() } else { row.lan_id.clone() };
        let start = [row.port.to_string(), row.interface.clone(), row.state.clone(), row.drb.clone()];
        let middle = [row.designated_vlan.to_string(), link, dash(&row.carried), dash(&row.inhibited)];
        let start: Vec<String> = start.into_iter().chain(middle).collect();
        if row.forwarders.is_empty() {
            rows.push(start.iter().cloned().chain([dash(""), dash("")]).collect());
        }
        for forwarder in &row.forwarders {
            let who = format!("{} ({})", forwarder.hostname, hex(forwarder.nickname));
            rows.push(start.iter().cloned().chain([who, dash(&forwarder.vlans)]).collect());
        }
    }
    rows
}

fn lsp_table(lsps: &[LspRow]) -> Rows {
    let header =
        ["LSP", "hostname", "sequence", "checksum", "remaining_s", "bytes", "takes bytes", "overloaded", "own"];
    let mut rows = Rows::new(&header);
    for row in lsps {
        rows.push(vec![
            row.lsp.clone(),
            row.hostname.clone(),
            format!("{:#x}", row.sequence),
            format!("{:#06x}", row.checksum),
            row.remaining_s.to_string(),
            row.bytes.to_string(),
            or_dash(row.lsp_buffer_bytes.as_ref()),
            yes(row.overloaded),
            yes(row.own),
        ]);
    }
    rows
}

fn nickname_table(nicknames: &[NicknameRow]) -> Rows {
    let mut rows = Rows::new(&["nickname", "hostname", "system", "priority", "root priority", "own", "reachable"]);
    for row in nicknames {
        rows.push(vec![
            hex(row.nickname),
            row.hostname.clone(),
            row.system.clone(),
            row.priority.to_string(),
            row.root_priority.to_string(),
            yes(row.own),
            yes(row.reachable),
        ]);
    }
    rows
}

/// One line for each next hop.
fn route_table(routes: &[RouteRow]) -> Rows {
    let mut rows = Rows::new(&["egress", "hostname", "cost", "port", "interface", "next hop", "MAC"]);
    for row in routes {
        let line = |hop: &HopRow| {
            let port = hop.port.to_string();
            let to = [hex(row.egress), row.hostname.clone(), row.cost.to_string()];
            to.into_iter().chain([port, hop.interface.clone(), hop.neighbor.clone(), hop.mac.clone()]).collect()
        };
        row.hops.iter().for_each(|hop| rows.push(line(hop)));
    }
    rows
}

/// One line for each branch.
fn tree_table(trees: &[TreeRow]) -> Rows {
    let mut rows =
        Rows::new(&["tree", "root", "hostname", "depth", "used", "users", "port", "interface", "towards", "VLANs"]);
    for row in trees {
        let dash = || "-".to_owned();
        let users = if row.users.is_empty() { dash() } else { row.users.join(",") };
        let start =
            [row.number.to_string(), hex(row.root), row.hostname.clone(), row.depth.to_string(), yes(row.used), users];
        if row.branches.is_empty() {
            rows.push(start.iter().cloned().chain([dash(), dash(), dash(), dash()]).collect());
        }
        for branch in &row.branches {
            let vlans = if branch.vlans.is_empty() { dash() } else { branch.vlans.clone() };
            let end = [branch.port.to_string(), branch.interface.clone(), branch.neighbor.clone(), vlans];
            rows.push(start.iter().cloned().chain(end).collect());
        }
    }
    rows
}

fn rpf_table(rpf: &[RpfRow]) -> Rows {
    let mut rows = Rows::new(&["root", "ingress", "hostname", "port", "interface"]);
    for row in rpf {
        rows.push(vec![
            hex(row.root),
            hex(row.ingress),
            row.hostname.clone(),
            row.port.to_string(),
            row.interface.clone(),
        ]);
    }
    rows
}

fn group_table(groups: &[GroupRow]) -> Rows {
    let mut rows = Rows::new(&["VLANs", "group", "interfaces", "RBridges"]);
    let listed = |names: &[String]| if names.is_empty() { "-".to_owned() } else { names.join(",") };
    for row in groups {
        rows.push(vec![row.vlans.clone(), row.group.clone(), listed(&row.interfaces), listed(&row.rbridges)]);
    }
    rows
}

fn fdb_table(stations: &[FdbRow]) -> Rows {
    let mut rows = Rows::new(&["VLAN", "MAC", "behind", "origin", "silent_s"]);
    for row in stations {
        let behind = match (&row.interface, row.nickname) {
            (Some(interface), _) => interface.clone(),
            (None, Some(nickname)) => format!("{} ({})", or_dash(row.hostname.as_ref()), hex(nickname)),
            (None, None) => row.place.clone(),
        };
        let silent_s = or_dash(row.silent_s.as_ref());
        rows.push(vec![row.vlan.to_string(), row.mac.clone(), behind, row.origin.clone(), silent_s]);
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_names_its_version_and_what_it_holds() {
        let hop = HopRow { port: 1, interface: "s3".into(), neighbor: "s3".into(), mac: "02:00:00:00:00:03".into() };
        let routes = vec![RouteRow { egress: 0x102, hostname: "s2".into(), cost: 4000, hops: vec![hop] }];
        let table = route_table(&routes);
        let text = serde_json::to_value(Document { schema_version: 1, shown: Shown::Routes(routes) }).unwrap();
        let expected = serde_json::json!({
            "schema_version": 1,
            "routes": [{
                "egress": 258, "hostname": "s2", "cost": 4000,
                "hops": [{ "port": 1, "interface": "s3", "neighbor": "s3", "mac": "02:00:00:00:00:03" }],
            }],
        });
        assert_eq!(text, expected);
        assert_eq!(table.rows[0][0], "0x0102");
    }
}
