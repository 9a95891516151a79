//! Mutual TLS between sessions' ends: files to configurations, certificates to names.
//!
//! Both ends show a certificate of one CA. A client's says in a URI among its alternative names who it is
//! (`weft:operator`, `weft:service:7`), a server's the addresses that it listens on.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use weft_control::directory::Authority;

use crate::error::NodeError;
use crate::key;

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

/// SHA-256 of a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Fingerprint([u8; 32]);

/// Whom a server lets in.
#[derive(Debug)]
pub(crate) struct Trust {
    pub(crate) config: Arc<ServerConfig>,
    revoked: BTreeSet<Fingerprint>,
}

impl Trust {
    /// Whether this certificate, which the CA has signed, is no longer good.
    pub(crate) fn has_revoked(&self, fingerprint: Fingerprint) -> bool {
        self.revoked.contains(&fingerprint)
    }
}

/// For a server that lets in whoever has a certificate of its CA that is not on the list of revoked ones.
pub(crate) fn server(files: &TlsFiles, revoked: Option<&Path>) -> Result<Trust, NodeError> {
    let revoked = revoked.map_or(Ok(BTreeSet::new()), fingerprints)?;
    let provider = provider();
    let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots(files)?), Arc::clone(&provider))
        .build()
        .map_err(|error| fault(&files.ca, error))?;
    ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .map_err(|error| fault(&files.cert, error))?
        .with_client_cert_verifier(verifier)
        .with_single_cert(chain(files)?, private_key(files)?)
        .map(|config| Trust { config: Arc::new(config), revoked })
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

/// What a list of revoked certificates names this one by.
pub(crate) fn fingerprint(certificate: &CertificateDer<'_>) -> Fingerprint {
    Fingerprint(Sha256::digest(certificate).into())
}

/// Whether the certificate in a file, of the CA in another, ends before this time.
pub(crate) fn ends_before(ca: &Path, certificate: &Path, then: UnixTime) -> bool {
    let verified = || {
        let (ca, certificate) =
            (CertificateDer::from_pem_file(ca).ok()?, CertificateDer::from_pem_file(certificate).ok()?);
        let anchors = [webpki::anchor_from_trusted_cert(&ca).ok()?];
        let algorithms = provider().signature_verification_algorithms.all;
        let certificate = webpki::EndEntityCert::try_from(&certificate).ok()?;
        let usage = webpki::KeyUsage::client_auth();
        Some(certificate.verify_for_usage(algorithms, &anchors, &[], then, usage, None, None).map(drop))
    };
    matches!(verified(), Some(Err(webpki::Error::CertExpired { .. })))
}

/// Reads a list of fingerprints: 64 hexadecimal digits a line, with or without colons, after a `=` if there is one. Empty lines
/// and what follows `#` are passed over.
fn fingerprints(path: &Path) -> Result<BTreeSet<Fingerprint>, NodeError> {
    let fault = |why: String| NodeError::Tls { path: path.to_owned(), why };
    let text = std::fs::read_to_string(path).map_err(|error| fault(error.to_string()))?;
    let mut found = BTreeSet::new();
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.split('#').next().unwrap_or_default();
        let digits: String = line.rsplit('=').next().unwrap_or_default().replace(':', "").trim().to_owned();
        if digits.is_empty() {
            continue;
        }
        let print = Fingerprint::from_hex(&digits).ok_or_else(|| {
            fault(format!(
                "line {number} is no fingerprint; write what `openssl x509 -noout -fingerprint -sha256` prints"
            ))
        })?;
        found.insert(print);
    }
    Ok(found)
}

impl Fingerprint {
    fn from_hex(digits: &str) -> Option<Self> {
        let hex = digits.len() == 64 && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
        let byte = |index: usize| u8::from_str_radix(digits.get(2 * index..2 * index + 2)?, 16).ok();
        let mut bytes = [0; 32];
        for (index, place) in bytes.iter_mut().enumerate() {
            *place = byte(index).filter(|_| hex)?;
        }
        Some(Self(bytes))
    }
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
    let pem = key::read_private(path, MAKE)?;
    PrivateKeyDer::from_pem_slice(pem.as_bytes()).map_err(|error| fault(path, error))
}

/// What to do without a file.
const MAKE: &str = "make certificates with `weft directory certs DIR`";

fn fault(path: &Path, why: impl ToString) -> NodeError {
    NodeError::Tls { path: path.to_owned(), why: format!("{}; {MAKE}", why.to_string().replace('\n', " ")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(text: &str) -> Result<usize, String> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        fingerprints(file.path()).map(|found| found.len()).map_err(|error| error.to_string())
    }

    #[test]
    fn a_list_of_fingerprints_is_read_as_openssl_prints_them() {
        let (plain, colons) = ("ab".repeat(32), vec!["CD"; 32].join(":"));
        let text = format!("# gone\n{plain}\n\nsha256 Fingerprint={colons}  # service 7\n{plain}\n");
        assert_eq!(list(&text), Ok(2));
        for bad in ["ab", &plain[1..], &"zz".repeat(32), &"+1".repeat(32), &format!("{plain} {plain}")] {
            let error = list(&format!("\n{bad}\n")).unwrap_err();
            assert!(error.contains("line 2 is no fingerprint") && !error.contains('\n'), "{error}");
        }
    }
}
