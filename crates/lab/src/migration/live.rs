//! Moves of servers in a lab that is up.

use std::net::Ipv4Addr;
use std::time::Instant;

use serde::Serialize;
use weft_scenario::engine::{Overlay, Progress};
use weft_scenario::id::NodeId;
use weft_scenario::topology::Role;

use super::mover::{self, Place};
use super::tell;
use crate::error::LabError;
use crate::home;
use crate::options::LabOptions;
use crate::up::Lab;

/// What became of a server.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
pub struct Move {
    pub lab: String,
    pub server: String,
    /// The edge switch that it was at.
    pub from: String,
    /// The one that it is at.
    pub to: String,
    /// Its LA there.
    pub la: Ipv4Addr,
    /// Seconds without a link and an agent.
    pub away_s: f64,
    /// Seconds from the beginning until the directory knew.
    pub told_s: f64,
}

/// Takes a server of a VL2 lab to another rack, or home. Its AA and its connections stay; senders that still ask for the old place
/// are corrected (VL2 4.3.2).
///
/// # Errors
/// [`LabError`]: no such lab, server or edge switch, no overlay that follows, or the rack is full. Nothing has moved then; where the
/// kernel refuses on the way the server may be without a link.
pub fn move_server(
    name: &str,
    [server, edge]: [&str; 2],
    options: &LabOptions,
    progress: &dyn Progress,
) -> Result<Move, LabError> {
    let _turn = home::lock_lab(name)?;
    let mut lab = Lab::open(name)?;
    if lab.state.owner.is_some() {
        return Err(LabError::OfARun { lab: name.to_owned() });
    }
    let (id, there) = ends(&lab, server, edge)?;
    let (from, to) = (Place::now(&lab, id)?, Place::at(&lab, id, there)?);
    if from.edge == to.edge {
        return Err(LabError::Migration(format!("`{server}` is at `{edge}` already")));
    }
    check_port(&lab, id, &to)?;
    let start = Instant::now();
    mover::take(&mut lab, options, progress, id, &from, &to)?;
    let away_s = start.elapsed().as_secs_f64();
    tell(&lab, id, &to)?;
    let told_s = start.elapsed().as_secs_f64();
    let from = lab.plan.node(from.edge).name.clone();
    Ok(Move { lab: name.to_owned(), server: server.to_owned(), from, to: edge.to_owned(), la: to.la, away_s, told_s })
}

/// Whether the switch has no interface that is called as the server's port is.
fn check_port(lab: &Lab, server: NodeId, to: &Place) -> Result<(), LabError> {
    let fabric = &lab.scenario.fabric;
    let Some((home, link)) = fabric.edge_of(server).filter(|(home, _)| *home != to.edge) else { return Ok(()) };
    let port = fabric.link(link).end_at(home).map_or("", |end| end.interface.as_str());
    let edge = &fabric.node(to.edge).name;
    let mut own = fabric.links_of(to.edge).iter().filter_map(|link| fabric.link(*link).end_at(to.edge));
    let of_others = lab.state.moved.iter().any(|moved| moved.edge == *edge && moved.port == port);
    if own.any(|end| end.interface == port) || of_others {
        return Err(LabError::Migration(format!(
            "`{edge}` has an interface `{port}` already, which the server's port is called"
        )));
    }
    Ok(())
}

/// The server and the switch, if the one can be at the other.
fn ends(lab: &Lab, server: &str, edge: &str) -> Result<(NodeId, NodeId), LabError> {
    let fabric = &lab.scenario.fabric;
    if lab.scenario.overlay != Overlay::Vl2 {
        return Err(LabError::Migration(
            "only servers of a VL2 lab move; others have no directory that follows".to_owned(),
        ));
    }
    let missing = |node: &str| lab.state.no_such_node(node);
    let (id, there) =
        (fabric.find(server).ok_or_else(|| missing(server))?, fabric.find(edge).ok_or_else(|| missing(edge))?);
    if fabric.node(id).role != Role::Server {
        return Err(LabError::Migration(format!("`{server}` is no server")));
    }
    if !fabric.servers().any(|other| fabric.edge_of(other).is_some_and(|(at, _)| at == there)) {
        return Err(LabError::Migration(format!("`{edge}` is no edge switch with a rack of servers")));
    }
    Ok((id, there))
}
