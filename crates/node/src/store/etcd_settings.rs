//! Which etcd cluster a log is in, and how to reach it. It is read by a build without etcd, too, which then says so.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::StoreError;

/// How to reach an etcd cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EtcdSettings {
    /// Client URLs of the nodes: `http://10.0.0.1:2379`, or `https://` with `tls`.
    pub endpoints: Vec<String>,
    /// What all keys begin with; one for each fabric.
    #[serde(default = "default_prefix")]
    pub prefix: String,
    /// Mutual TLS; needed for `https://`.
    #[serde(default)]
    pub tls: Option<EtcdTls>,
    /// User of the cluster; should see nothing but the prefix.
    #[serde(default)]
    pub user: Option<String>,
    /// File with the user's password, mode 0600.
    #[serde(default)]
    pub password_file: Option<PathBuf>,
    /// How long the cluster is asked before an operation fails, milliseconds.
    #[serde(default = "default_timeout_ms")]
    pub timeout_ms: u64,
}

/// Files for mutual TLS, PEM.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EtcdTls {
    /// Who signed the nodes' certificates.
    pub ca_file: PathBuf,
    /// Our certificate.
    pub cert_file: PathBuf,
    /// Its key, mode 0600.
    pub key_file: PathBuf,
    /// The name that the nodes' certificates carry, if it is not in the endpoints.
    #[serde(default)]
    pub server_name: Option<String>,
}

fn default_prefix() -> String {
    "weft/".to_owned()
}

fn default_timeout_ms() -> u64 {
    3000
}

impl EtcdSettings {
    /// A cluster at these client URLs, without TLS or user.
    pub fn plain(endpoints: impl IntoIterator<Item = String>, prefix: &str) -> Self {
        Self {
            endpoints: endpoints.into_iter().collect(),
            prefix: prefix.to_owned(),
            tls: None,
            user: None,
            password_file: None,
            timeout_ms: default_timeout_ms(),
        }
    }

    /// How the cluster is called in messages.
    pub(super) fn name(&self) -> String {
        format!("etcd {}", self.endpoints.join(","))
    }

    pub(crate) fn fault(&self, why: impl Into<String>) -> StoreError {
        StoreError::Settings { store: self.name(), why: why.into() }
    }
}
