//! Mutual TLS between sessions' ends: files to configurations, certificates to names.
//!
//! Both ends show a certificate of one CA. A client's says in a URI among its alternative names who it is
//! (`weft:operator`, `weft:service:7`), a server's the addresses that it listens on.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use serde::{Deserialize, Serialize};

use crate::directory::Authority;
use crate::error::NodeError;

/// The files that one end needs, all PEM.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TlsFiles {
    /// Certificates of the CA that the other end's certificate must come from.
    pub ca: PathBuf,
    /// Own certificate, and those between it and the CA.
    pub cert: PathBuf,
    /// Its private key, mode 0600.
    pub key: PathBuf,
}

impl TlsFiles {
    /// The files of `name` in a folder that `weft directory certs` made.
    pub fn in_dir(dir: &Path, name: &str) -> Self {
        Self { ca: dir.join("ca.pem"), cert: dir.join(format!("{name}.pem")), key: dir.join(format!("{name}.key")) }
    }
}

/// For a server that lets in whoever has a certificate of its CA.
pub(crate) fn server(files: &TlsFiles) -> Result<Arc<ServerConfig>, NodeError> {
    let provider = provider();
    let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots(files)?), Arc::clone(&provider))
        .build()
        .map_err(|error| fault(&files.ca, error))?;
    ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .map_err(|error| fault(&files.cert, error))?
        .with_client_cert_verifier(verifier)
        .with_single_cert(chain(files)?, private_key(files)?)
        .map(Arc::new)
        .map_err(|error| fault(&files.key, error))
}

/// For a client.
pub(crate) fn client(files: &TlsFiles) -> Result<Arc<ClientConfig>, NodeError> {
    ClientConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&rustls::version::TLS13])
        .map_err(|error| fault(&files.cert, error))?
        .with_root_certificates(roots(files)?)
        .with_client_auth_cert(chain(files)?, private_key(files)?)
        .map(Arc::new)
        .map_err(|error| fault(&files.key, error))
}

/// Who a certificate says its holder is. Its signature was checked before.
pub(crate) fn authority_of(certificate: &CertificateDer<'_>) -> Option<Authority> {
    let certificate = webpki::EndEntityCert::try_from(certificate).ok()?;
    let mut names = certificate.valid_uri_names().filter_map(Authority::from_uri);
    let name = names.next()?;
    // Two names would leave open which one holds.
    names.next().is_none().then_some(name)
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

fn roots(files: &TlsFiles) -> Result<RootCertStore, NodeError> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(&files.ca)? {
        roots.add(certificate).map_err(|error| fault(&files.ca, error))?;
    }
    Ok(roots)
}

fn chain(files: &TlsFiles) -> Result<Vec<CertificateDer<'static>>, NodeError> {
    certificates(&files.cert)
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, NodeError> {
    let read = CertificateDer::pem_file_iter(path).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let certificates = read.map_err(|error| fault(path, error))?;
    if certificates.is_empty() {
        return Err(fault(path, "no certificate in it"));
    }
    Ok(certificates)
}

fn private_key(files: &TlsFiles) -> Result<PrivateKeyDer<'static>, NodeError> {
    let path = &files.key;
    let mode = std::fs::metadata(path).map_err(|error| fault(path, error))?.mode() & 0o777;
    if mode & 0o177 != 0 {
        return Err(fault(path, format!("its mode {mode:04o} lets others use it; run `chmod 600 {}`", path.display())));
    }
    PrivateKeyDer::from_pem_file(path).map_err(|error| fault(path, error))
}

fn fault(path: &Path, why: impl ToString) -> NodeError {
    let make = "make certificates with `weft directory certs DIR`";
    NodeError::Tls { path: path.to_owned(), why: format!("{}; {make}", why.to_string().replace('\n', " ")) }
}
