//! A small CA for sessions: `weft directory certs` makes a folder of certificates, so that mutual TLS needs no other tool.
//!
//! The folder's CA is kept, so that further services and servers can be added to it later. A fabric with a CA of its own
//! uses that instead; [`crate::tls`] says what certificates must hold.

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rcgen::string::Ia5String;
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, SanType,
};

use rustls::pki_types::UnixTime;

use crate::error::NodeError;
use crate::{key, tls};

/// How long a certificate holds, days, and the CA, which whoever trusts it has to be given.
const HOLDS_DAYS: i64 = 365;
const CA_HOLDS_DAYS: i64 = 3650;
/// One that holds no longer than this is made anew.
const RENEW: Duration = Duration::from_secs(60 * 86_400);

const CA: &str = "ca";
/// Name of the server's files.
pub const SERVER: &str = "server";
/// Name of the operator's files.
pub const OPERATOR: &str = "operator";

/// What a folder is to hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// Addresses that servers listen on.
    pub addresses: Vec<IpAddr>,
    /// Names that servers have.
    pub names: Vec<String>,
    /// Services that get a certificate of their own, besides the operator.
    pub services: Vec<u32>,
}

/// Name of a service's files.
pub fn service_name(service: u32) -> String {
    format!("service-{service}")
}

/// Makes what is missing of the CA, the operator's and the services' certificates or will not hold for two more months, and
/// the servers' anew. Returns the certificates made.
///
/// # Errors
/// [`NodeError::Tls`] with the file; [`NodeError::System`].
pub fn make(dir: &Path, wanted: &Wanted) -> Result<Vec<PathBuf>, NodeError> {
    key::make_folder(dir).map_err(NodeError::at("making", dir))?;
    let mut made = Vec::new();
    let issuer = authority(dir, &mut made)?;
    let mut server = subject(SERVER);
    server.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
    server.subject_alt_names = server_names(dir, wanted)?;
    issue(dir, SERVER, server, &issuer, &mut made)?;
    let services = wanted.services.iter().map(|service| (service_name(*service), format!("weft:service:{service}")));
    for (name, uri) in std::iter::once((OPERATOR.to_owned(), "weft:operator".to_owned())).chain(services) {
        if !is_due(dir, &name) {
            continue;
        }
        let mut client = subject(&name);
        client.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        client.subject_alt_names = vec![SanType::URI(text(dir, &uri)?)];
        issue(dir, &name, client, &issuer, &mut made)?;
    }
    Ok(made)
}

/// Whether the certificate is missing or soon ends.
fn is_due(dir: &Path, name: &str) -> bool {
    let certificate = file(dir, name, "pem");
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let soon = UnixTime::since_unix_epoch(now + RENEW);
    !certificate.exists() || tls::ends_before(&file(dir, CA, "pem"), &certificate, soon)
}

/// The CA of the folder; made if it is missing.
fn authority(dir: &Path, made: &mut Vec<PathBuf>) -> Result<Issuer<'static, KeyPair>, NodeError> {
    let (certificate, private) = (file(dir, CA, "pem"), file(dir, CA, "key"));
    let mut params = subject("weft directory CA");
    params.not_after = params.not_before + time::Duration::days(1 + CA_HOLDS_DAYS);
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    if certificate.exists() {
        let pem = key::read_private(&private, "it made the certificates of this folder; begin another one")?;
        let pair = KeyPair::from_pem(&pem).map_err(|error| fault(&private, error))?;
        return Ok(Issuer::new(params, pair));
    }
    let pair = KeyPair::generate().map_err(|error| fault(&private, error))?;
    let signed = params.self_signed(&pair).map_err(|error| fault(&certificate, error))?;
    key::replace(&private, &pair.serialize_pem(), 0o600)?;
    key::replace(&certificate, &signed.pem(), 0o644)?;
    made.push(certificate);
    Ok(Issuer::new(params, pair))
}

fn issue(
    dir: &Path,
    name: &str,
    params: CertificateParams,
    issuer: &Issuer<'static, KeyPair>,
    made: &mut Vec<PathBuf>,
) -> Result<(), NodeError> {
    let (certificate, private) = (file(dir, name, "pem"), file(dir, name, "key"));
    let pair = KeyPair::generate().map_err(|error| fault(&private, error))?;
    let signed = params.signed_by(&pair, issuer).map_err(|error| fault(&certificate, error))?;
    key::replace(&private, &pair.serialize_pem(), 0o600)?;
    key::replace(&certificate, &signed.pem(), 0o644)?;
    made.push(certificate);
    Ok(())
}

/// Who the certificate is for, valid from yesterday (clocks differ) for a year from now.
fn subject(name: &str) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    let now = time::OffsetDateTime::now_utc();
    params.not_before = now - time::Duration::days(1);
    params.not_after = now + time::Duration::days(HOLDS_DAYS);
    params.use_authority_key_identifier_extension = true;
    params
}

fn server_names(dir: &Path, wanted: &Wanted) -> Result<Vec<SanType>, NodeError> {
    let local = [SanType::IpAddress(IpAddr::from([127, 0, 0, 1])), SanType::DnsName(text(dir, "localhost")?)];
    let addresses = wanted.addresses.iter().map(|address| Ok(SanType::IpAddress(*address)));
    let names = wanted.names.iter().map(|name| text(dir, name).map(SanType::DnsName));
    local.into_iter().map(Ok).chain(addresses).chain(names).collect()
}

fn text(dir: &Path, text: &str) -> Result<Ia5String, NodeError> {
    Ia5String::try_from(text).map_err(|error| fault(dir, error))
}

fn file(dir: &Path, name: &str, ending: &str) -> PathBuf {
    dir.join(format!("{name}.{ending}"))
}

fn fault(path: &Path, why: impl ToString) -> NodeError {
    NodeError::Tls { path: path.to_owned(), why: why.to_string() }
}
