//! Connections to the cluster of the settings.

use std::path::Path;
use std::time::Duration;

use etcd_client::{Certificate, ConnectOptions, Identity, TlsOptions};
use tonic::transport::Endpoint;

use crate::error::NodeError;
use crate::key;
use crate::store::{EtcdSettings, EtcdTls, StoreError};

/// Size of windows for bytes on their way: a snapshot does not wait for acknowledgements.
const STREAM_WINDOW_BYTES: u32 = 4 << 20;
const CONNECTION_WINDOW_BYTES: u32 = 16 << 20;
/// How long a connection may take to be made.
const CONNECT: Duration = Duration::from_millis(500);

impl EtcdSettings {
    pub(super) fn timeout(&self) -> Duration {
        Duration::from_millis(self.timeout_ms.max(1))
    }

    /// Checks everything that can be checked without the cluster.
    pub(super) fn connections(&self) -> Result<Vec<Endpoint>, StoreError> {
        if self.endpoints.is_empty() {
            return Err(self.fault("no endpoints; name the client URL of at least one node"));
        }
        if self.prefix.is_empty() {
            return Err(self.fault("`prefix` is empty; choose one for this fabric, as `weft/`"));
        }
        let tls = self.tls.as_ref().map(|tls| self.tls(tls)).transpose()?;
        self.endpoints.iter().map(|url| self.connection(url, tls.as_ref())).collect()
    }

    fn connection(&self, url: &str, tls: Option<&TlsOptions>) -> Result<Endpoint, StoreError> {
        let https = url.starts_with("https://");
        if !https && !url.starts_with("http://") {
            return Err(self.fault(format!("endpoint `{url}` is no URL; write http://HOST:2379 or https://HOST:2379")));
        }
        let endpoint = Endpoint::from_shared(url.to_owned())
            .map_err(|error| self.fault(format!("endpoint `{url}`: {error}")))?
            .connect_timeout(CONNECT)
            .tcp_nodelay(true)
            .tcp_keepalive(Some(Duration::from_secs(5)))
            .initial_stream_window_size(STREAM_WINDOW_BYTES)
            .initial_connection_window_size(CONNECTION_WINDOW_BYTES);
        match (https, tls) {
            (false, None) => Ok(endpoint),
            (true, Some(tls)) => {
                endpoint.tls_config(tls.clone()).map_err(|error| self.fault(format!("TLS: {}", causes(&error))))
            }
            (true, None) => Err(self.fault(format!("endpoint `{url}` needs `tls`: the CA, a certificate, its key"))),
            (false, Some(_)) => Err(self.fault(format!("endpoint `{url}` is not https, so `tls` would go unused"))),
        }
    }

    fn tls(&self, tls: &EtcdTls) -> Result<TlsOptions, StoreError> {
        let read = |path: &Path| {
            std::fs::read(path).map_err(|error| self.fault(format!("TLS file {}: {error}", path.display())))
        };
        let private = self.secret("TLS file", &tls.key_file, "copy the key of our certificate there")?;
        let options = TlsOptions::new()
            .ca_certificate(Certificate::from_pem(read(&tls.ca_file)?))
            .identity(Identity::from_pem(read(&tls.cert_file)?, private));
        Ok(match &tls.server_name {
            Some(name) => options.domain_name(name),
            None => options,
        })
    }

    /// The text of a file that others may not read.
    fn secret(&self, what: &str, path: &Path, make: &str) -> Result<String, StoreError> {
        key::read_private(path, make).map_err(|error| match error {
            NodeError::KeyFile { path, why } => self.fault(format!("{what} {}: {why}", path.display())),
            other => self.fault(other.to_string()),
        })
    }

    pub(super) fn options(&self) -> Result<ConnectOptions, StoreError> {
        let options = ConnectOptions::new().with_require_leader(true);
        match (&self.user, &self.password_file) {
            (None, None) => Ok(options),
            (Some(user), Some(path)) => {
                let password =
                    self.secret("password file", path, "write the password of etcd's user there, mode 0600")?;
                Ok(options.with_user(user, password.trim_end_matches('\n')).with_auto_token_refresh(true))
            }
            _ => Err(self.fault("`user` and `password_file` go together; give both or none")),
        }
    }
}

/// An error with what caused it, in one line.
pub(super) fn causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(next) = cause {
        let more = next.to_string();
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        cause = next.source();
    }
    text.replace('\n', " ")
}
