//! A directory tier that runs: its servers, as whom they are asked, and what can be killed in it.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::{Path, PathBuf};

use weft_node::client::{AdminClient, Target};
use weft_node::directory::protocol::MappingToSet;
use weft_scenario::engine::Progress;
use weft_scenario::workload::DirectoryVictim;
use weft_testbed::load::Access;

use crate::error::LabError;

/// The AAs that loads are about begin here, far above those of a lab's servers in the default block.
pub const FIRST_AA: Ipv4Addr = Ipv4Addr::new(20, 128, 0, 1);
/// Number n of an update is kept in its anycast LA, which nobody routes to: this block's address n.
const NUMBERS: u32 = u32::from_be_bytes([10, 192, 0, 0]);
/// Numbers that fit there, below the block of the fabrics' own anycast LAs (10.255.0.0/16).
pub(super) const NUMBERS_MAX: u32 = (1 << 22) - (1 << 16);
/// Mappings in one request while a directory is filled.
const FILL_BATCH: usize = 1024;

/// A directory server that runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerView {
    pub name: String,
    /// Namespace that it is in; `None`: this process's.
    pub namespace: Option<PathBuf>,
    /// Where look-ups go.
    pub lookups: SocketAddrV4,
    /// Its admin socket.
    pub admin: PathBuf,
    /// Where updates go, as an operator.
    pub sessions: Target,
    /// Its process.
    pub pid: u32,
}

/// A directory tier that can be asked, broken and mended.
pub trait Tier {
    /// Its servers, in order.
    fn servers(&self) -> Vec<ServerView>;
    /// Processes of its store; none if the servers have theirs built in.
    fn store_pids(&self) -> Vec<u32>;
    /// Whether an update at one server reaches the others.
    fn is_shared(&self) -> bool;
    /// As whom look-ups ask.
    fn access(&self) -> Access;
    /// LA of a ToR that mappings may name.
    fn tor_la(&self) -> Ipv4Addr;
    /// Namespace that clients are in; `None`: this process's.
    fn client_namespace(&self) -> Option<PathBuf>;
    /// Kills with SIGKILL: of servers the last of the first `asked`. Returns what it was.
    fn kill(&mut self, victim: DirectoryVictim, asked: usize) -> Result<Vec<String>, LabError>;
    /// Starts again what was killed and waits until it is ready. Returns what it was.
    fn mend(&mut self, progress: &dyn Progress) -> Result<Vec<String>, LabError>;
    /// From now on loses so many percent of look-ups' datagrams to, and from, every server; 0 ends it.
    fn set_loss(&mut self, percent: u32) -> Result<(), LabError>;
}

/// Which of a store's nodes a victim is, in order, where the one at `leader` leads.
pub(super) fn store_victims(victim: DirectoryVictim, nodes: usize, leader: Option<usize>) -> Vec<usize> {
    match victim {
        DirectoryVictim::Server => Vec::new(),
        DirectoryVictim::StoreLeader => leader.into_iter().collect(),
        DirectoryVictim::StoreFollower => (0..nodes).rfind(|node| Some(*node) != leader).into_iter().collect(),
        DirectoryVictim::Store => (0..nodes).collect(),
    }
}

/// The AA with this number.
pub(super) fn aa(number: u32) -> Ipv4Addr {
    Ipv4Addr::from(u32::from(FIRST_AA) + number)
}

/// The anycast LA that says which update a mapping is from.
pub(super) fn mark(update: u32) -> Ipv4Addr {
    Ipv4Addr::from(NUMBERS + update % NUMBERS_MAX)
}

/// Which update a mapping is from; 0 for one from before the load.
pub(super) fn update_of(anycast_la: Ipv4Addr) -> u32 {
    u32::from(anycast_la).checked_sub(NUMBERS).filter(|update| *update < NUMBERS_MAX).unwrap_or(0)
}

/// Connects to a server's admin socket.
pub(super) fn connect(server: &ServerView) -> Result<AdminClient, LabError> {
    connect_to(&server.admin, &server.name)
}

pub(super) fn connect_to(socket: &Path, name: &str) -> Result<AdminClient, LabError> {
    AdminClient::connect(socket).map_err(|error| refused(name, &error))
}

/// A server did not do what it was asked.
pub(super) fn refused(server: &str, error: &weft_node::NodeError) -> LabError {
    LabError::DirectoryLoad(format!("directory server `{server}`: {error}"))
}

/// Gives the first `count` AAs a mapping, at every server that has a store of its own, if it has fewer.
pub fn fill(tier: &dyn Tier, count: u32, progress: &dyn Progress) -> Result<(), LabError> {
    let mapping = |number| MappingToSet {
        aa: aa(number),
        tor_la: tier.tor_la(),
        anycast_la: mark(0),
        service: 0,
        host_la: None,
        if_version: None,
        version: None,
    };
    fill_with(tier, count, mapping, progress)
}

/// The same with these mappings, one for each number.
pub(super) fn fill_with(
    tier: &dyn Tier,
    count: u32,
    mapping: impl Fn(u32) -> MappingToSet,
    progress: &dyn Progress,
) -> Result<(), LabError> {
    let servers = tier.servers();
    let to_fill = if tier.is_shared() { &servers[..1.min(servers.len())] } else { &servers[..] };
    for server in to_fill {
        let failed = |error: weft_node::NodeError| refused(&server.name, &error);
        let mut client = connect(server)?;
        let last = client.get(aa(count.saturating_sub(1))).map_err(failed)?;
        if last.is_some() {
            continue;
        }
        for from in (0..count).step_by(FILL_BATCH) {
            if progress.interrupted() {
                return Err(LabError::Interrupted);
            }
            let to = (from + FILL_BATCH as u32).min(count);
            client.set_many((from..to).map(&mapping).collect()).map_err(failed)?;
            progress.advance(f64::from(to) / f64::from(count), &format!("{to} mappings"));
        }
    }
    wait_for_mappings(&servers, count, progress)
}

/// Waits until every server has at least so many mappings.
fn wait_for_mappings(servers: &[ServerView], count: u32, progress: &dyn Progress) -> Result<(), LabError> {
    for server in servers {
        let mut client = connect(server)?;
        super::usage::wait_until(progress, &format!("directory server `{}` has all mappings", server.name), || {
            let status = client.status().map_err(|error| refused(&server.name, &error))?;
            Ok(status.mappings >= count as usize)
        })?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn victims_of_a_store_are_its_leader_others_or_all() {
        let of = |victim, leader| store_victims(victim, 3, leader);
        assert_eq!(of(DirectoryVictim::StoreLeader, Some(2)), [2]);
        assert_eq!(of(DirectoryVictim::StoreFollower, Some(2)), [1]);
        assert_eq!(of(DirectoryVictim::StoreFollower, Some(0)), [2]);
        assert_eq!(of(DirectoryVictim::Store, None), [0, 1, 2]);
        assert!(of(DirectoryVictim::StoreLeader, None).is_empty() && of(DirectoryVictim::Server, Some(1)).is_empty());
    }

    #[test]
    fn an_update_is_known_by_its_anycast_la() {
        for update in [0, 1, 77, NUMBERS_MAX - 1] {
            assert_eq!(update_of(mark(update)), update);
        }
        assert_eq!(update_of(Ipv4Addr::new(10, 255, 255, 1)), 0);
        assert_eq!(update_of(Ipv4Addr::new(10, 1, 0, 1)), 0);
        assert_eq!(aa(256), Ipv4Addr::new(20, 128, 1, 1));
    }
}
