//! One etcd process: where it listens, its flags.

use std::collections::BTreeSet;
use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use super::{EtcdClusterSettings, EtcdNode};

impl EtcdNode {
    /// Where clients ask.
    pub fn client_url(&self) -> String {
        format!("http://{}:{}", self.ip, self.client_port)
    }

    fn peer_url(&self) -> String {
        format!("http://{}:{}", self.ip, self.peer_port)
    }

    /// What it says goes here.
    pub fn log(&self) -> PathBuf {
        self.dir.with_extension("log")
    }
}

/// Nodes on loopback. The ports were free a moment ago.
pub(super) fn on_loopback(count: usize, dir: &Path) -> io::Result<Vec<EtcdNode>> {
    let ip = Ipv4Addr::LOCALHOST;
    let ports = (0..2 * count).map(|_| free_port(ip)).collect::<io::Result<Vec<_>>>()?;
    let node = |index: usize| EtcdNode {
        ip,
        client_port: ports[2 * index],
        peer_port: ports[2 * index + 1],
        dir: dir.join(format!("etcd-{index}")),
    };
    Ok((0..count).map(node).collect())
}

/// A port that is free now, and that no other node of this process was given: it may not have started yet.
fn free_port(ip: Ipv4Addr) -> io::Result<u16> {
    static GIVEN: Mutex<BTreeSet<u16>> = Mutex::new(BTreeSet::new());
    let mut given = GIVEN.lock().unwrap_or_else(PoisonError::into_inner);
    loop {
        let port = TcpListener::bind((ip, 0))?.local_addr()?.port();
        if given.insert(port) {
            return Ok(port);
        }
    }
}

impl EtcdClusterSettings {
    /// The flags of node `index`, for whoever starts etcd by other means, as a lab that outlives its maker does.
    pub fn flags(&self, index: usize) -> Vec<String> {
        let node = &self.nodes[index];
        let members = self.nodes.iter().enumerate().map(|(index, node)| format!("n{index}={}", node.peer_url()));
        let cluster: Vec<String> = members.collect();
        let pairs = [
            ("--name", format!("n{index}")),
            ("--data-dir", node.dir.display().to_string()),
            ("--listen-client-urls", node.client_url()),
            ("--advertise-client-urls", node.client_url()),
            ("--listen-peer-urls", node.peer_url()),
            ("--initial-advertise-peer-urls", node.peer_url()),
            ("--initial-cluster", cluster.join(",")),
            ("--initial-cluster-state", "new".to_owned()),
            ("--heartbeat-interval", self.heartbeat_ms.to_string()),
            ("--election-timeout", self.election_ms.to_string()),
            ("--quota-backend-bytes", self.quota_bytes.to_string()),
            ("--auto-compaction-retention", "0".to_owned()),
            ("--logger", "zap".to_owned()),
            ("--log-level", "warn".to_owned()),
        ];
        let pairs = pairs.into_iter().flat_map(|(flag, value)| [flag.to_owned(), value]);
        pairs.chain(["--pre-vote=true".to_owned()]).collect()
    }
}
