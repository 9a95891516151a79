//! Bytes of a log record and of a snapshot page: what every store keeps, so that stores can be exchanged.
//!
//! Big-endian. Both begin with a format number and a kind. A record is a batch; a snapshot is a list of pages that
//! together are a table. Format 3 is written; format 2, which knew no authorities and kept the row of every deleted
//! mapping, and format 1, which knew no policy, no hosts and no refusals either, are read as well.

use std::net::Ipv4Addr;

use super::authority::Authority;
use super::clients::Last;
use super::fault::Fault;
use super::policy::PolicyChange;
use super::table::{Record, Table};
use super::update::{Batch, Change, Request, Update};
use crate::address::Locator;

/// Format of the bytes described here.
const FORMAT: u8 = 3;
/// The oldest format that is read.
const FORMAT_OLDEST: u8 = 1;
const KIND_BATCH: u8 = 1;
const KIND_RECORDS: u8 = 2;
const KIND_CLIENTS: u8 = 3;
/// From format 2 on.
const KIND_POLICY: u8 = 4;
/// From format 3 on.
const KIND_FORGOTTEN: u8 = 5;
/// Things per snapshot page.
const PER_PAGE: usize = 4096;

const HAS_LOCATOR: u8 = 1;
const HAS_IF_VERSION: u8 = 2;
const HAS_VERSION: u8 = 4;
/// From format 2 on.
const HAS_HOST: u8 = 8;

const OF_OPERATOR: u8 = 0;
const OF_SERVICE: u8 = 1;

/// Bytes that are no record or page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RecordError {
    /// They end too early.
    #[error("stored record ends after {0} bytes, in the middle of a field")]
    Short(usize),
    /// Something follows.
    #[error("stored record has {0} bytes too many")]
    Long(usize),
    /// Of another format or kind.
    #[error("stored record has format {format} kind {kind}; this version reads formats 1 to 3")]
    Format {
        /// The format number found.
        format: u8,
        kind: u8,
    },
    /// Flags without a meaning.
    #[error("stored record has unknown flags {0:#04x}")]
    Flags(u8),
    /// A version that nothing ever has.
    #[error("stored record has a row of version 0, which is that of no row")]
    Version,
}

/// The bytes of a log record.
pub fn encode_batch(batch: &Batch) -> Vec<u8> {
    let mut out = vec![FORMAT, KIND_BATCH];
    put_len(&mut out, batch.requests.len());
    for request in &batch.requests {
        put_authority(&mut out, request.authority);
        out.extend(request.client.to_be_bytes());
        out.extend(request.sequence.to_be_bytes());
        put_len(&mut out, request.updates.len());
        for update in &request.updates {
            put_update(&mut out, update);
        }
        put_policy(&mut out, &request.policy);
    }
    out
}

/// Reads a log record.
///
/// # Errors
/// Any deviation from the format.
pub fn decode_batch(bytes: &[u8]) -> Result<Batch, RecordError> {
    let mut reader = Reader::new(bytes);
    reader.expect_kind(KIND_BATCH)?;
    let mut batch = Batch::default();
    for _ in 0..reader.u32()? {
        let authority = reader.authority()?;
        let (client, sequence) = (reader.u64()?, reader.u64()?);
        let mut request = Request { authority, client, sequence, ..Request::once(Vec::new()) };
        for _ in 0..reader.u32()? {
            request.updates.push(reader.update()?);
        }
        if reader.format >= 2 {
            request.policy = reader.policy()?;
        }
        batch.requests.push(request);
    }
    reader.end()?;
    Ok(batch)
}

/// A table as pages.
pub fn encode_snapshot(table: &Table) -> Vec<Vec<u8>> {
    let mut pages = Vec::new();
    for records in table.records().chunks(PER_PAGE) {
        let mut page = vec![FORMAT, KIND_RECORDS];
        put_len(&mut page, records.len());
        for (aa, record) in records {
            put_record(&mut page, *aa, record);
        }
        pages.push(page);
    }
    let clients: Vec<_> = table.clients().collect();
    for clients in clients.chunks(PER_PAGE) {
        let mut page = vec![FORMAT, KIND_CLIENTS];
        put_len(&mut page, clients.len());
        for (authority, client, last) in clients {
            put_authority(&mut page, *authority);
            page.extend(client.to_be_bytes());
            page.extend(last.sequence.to_be_bytes());
            page.extend(last.revision.to_be_bytes());
            put_fault(&mut page, last.fault);
        }
        pages.push(page);
    }
    for rules in table.policy().chunks(PER_PAGE) {
        let mut page = vec![FORMAT, KIND_POLICY];
        put_policy(&mut page, rules);
        pages.push(page);
    }
    if table.forgotten() > 0 {
        pages.push([&[FORMAT, KIND_FORGOTTEN][..], &table.forgotten().to_be_bytes()].concat());
    }
    pages
}

/// Reads the pages of a table at this revision.
///
/// # Errors
/// Any deviation from the format.
pub fn decode_snapshot<'a>(revision: u64, pages: impl Iterator<Item = &'a [u8]>) -> Result<Table, RecordError> {
    let mut table = Table::at(revision);
    for page in pages {
        let mut reader = Reader::new(page);
        match reader.kind()? {
            KIND_RECORDS => {
                for _ in 0..reader.u32()? {
                    let (aa, record) = reader.record()?;
                    table.put(aa, record);
                }
            }
            KIND_CLIENTS => {
                for _ in 0..reader.u32()? {
                    let authority = reader.authority()?;
                    let client = reader.u64()?;
                    let (sequence, revision) = (reader.u64()?, reader.u64()?);
                    let fault = if reader.format >= 2 { reader.fault()? } else { None };
                    table.remember(authority, client, Last { sequence, revision, fault });
                }
            }
            KIND_POLICY if reader.format >= 2 => {
                for change in reader.policy()? {
                    table.set_rule(&change);
                }
            }
            KIND_FORGOTTEN if reader.format >= 3 => table.set_forgotten(reader.u64()?),
            kind => return Err(RecordError::Format { format: reader.format, kind }),
        }
        reader.end()?;
    }
    Ok(table)
}

fn put_len(out: &mut Vec<u8>, len: usize) {
    let len = u32::try_from(len).expect("requests and pages are bounded far below 2^32");
    out.extend(len.to_be_bytes());
}

fn put_authority(out: &mut Vec<u8>, authority: Authority) {
    match authority {
        Authority::Operator => out.push(OF_OPERATOR),
        Authority::Service(service) => {
            out.push(OF_SERVICE);
            out.extend(service.to_be_bytes());
        }
    }
}

fn put_place(out: &mut Vec<u8>, locator: Option<Locator>, host_la: Option<Ipv4Addr>, service: u32) {
    if let Some(Locator { tor_la, anycast_la }) = locator {
        out.extend(tor_la.octets());
        out.extend(anycast_la.octets());
    }
    if let Some(host_la) = host_la {
        out.extend(host_la.octets());
    }
    out.extend(service.to_be_bytes());
}

fn put_update(out: &mut Vec<u8>, update: &Update) {
    let (locator, host_la, service) = match update.change {
        Change::Set { locator, service, host_la } => (Some(locator), host_la, service),
        Change::Delete => (None, None, 0),
    };
    let flag = |set: bool, bit: u8| if set { bit } else { 0 };
    out.push(
        flag(locator.is_some(), HAS_LOCATOR)
            | flag(update.if_version.is_some(), HAS_IF_VERSION)
            | flag(update.version.is_some(), HAS_VERSION)
            | flag(host_la.is_some(), HAS_HOST),
    );
    out.extend(update.aa.octets());
    put_place(out, locator, host_la, service);
    for version in [update.if_version, update.version].into_iter().flatten() {
        out.extend(version.to_be_bytes());
    }
}

fn put_record(out: &mut Vec<u8>, aa: Ipv4Addr, record: &Record) {
    let flag = |set: bool, bit: u8| if set { bit } else { 0 };
    out.push(flag(record.locator.is_some(), HAS_LOCATOR) | flag(record.host_la.is_some(), HAS_HOST));
    out.extend(aa.octets());
    put_place(out, record.locator, record.host_la, record.service);
    out.extend(record.version.to_be_bytes());
}

fn put_fault(out: &mut Vec<u8>, fault: Option<Fault>) {
    let Some((kind, words)) = fault.map(Fault::words) else { return out.push(0) };
    out.push(kind);
    out.extend(words.iter().flat_map(|word| word.to_be_bytes()));
}

fn put_policy(out: &mut Vec<u8>, policy: &[PolicyChange]) {
    put_len(out, policy.len());
    for change in policy {
        out.extend(change.from_service.to_be_bytes());
        out.extend(change.to_service.to_be_bytes());
        out.push(change.allow.into());
    }
}

/// A cursor over stored bytes.
struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    /// Of the bytes; known after [`Reader::kind`].
    format: u8,
}

impl<'a> Reader<'a> {
    fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0, format: 0 }
    }

    fn take<const N: usize>(&mut self) -> Result<[u8; N], RecordError> {
        let short = RecordError::Short(self.bytes.len());
        let field = self.bytes.get(self.at..self.at + N).ok_or(short)?;
        self.at += N;
        field.try_into().map_err(|_| short)
    }

    fn u8(&mut self) -> Result<u8, RecordError> {
        self.take::<1>().map(|[byte]| byte)
    }

    fn u32(&mut self) -> Result<u32, RecordError> {
        self.take().map(u32::from_be_bytes)
    }

    fn u64(&mut self) -> Result<u64, RecordError> {
        self.take().map(u64::from_be_bytes)
    }

    /// Older formats knew operators only.
    fn authority(&mut self) -> Result<Authority, RecordError> {
        let kind = if self.format >= 3 { self.u8()? } else { OF_OPERATOR };
        match kind {
            OF_OPERATOR => Ok(Authority::Operator),
            OF_SERVICE => self.u32().map(Authority::Service),
            other => Err(RecordError::Flags(other)),
        }
    }

    fn address(&mut self) -> Result<Ipv4Addr, RecordError> {
        self.take::<4>().map(Ipv4Addr::from)
    }

    /// The kind, if the format is one that is read.
    fn kind(&mut self) -> Result<u8, RecordError> {
        self.format = self.u8()?;
        let kind = self.u8()?;
        if !(FORMAT_OLDEST..=FORMAT).contains(&self.format) {
            return Err(RecordError::Format { format: self.format, kind });
        }
        Ok(kind)
    }

    fn expect_kind(&mut self, kind: u8) -> Result<(), RecordError> {
        match self.kind()? {
            found if found == kind => Ok(()),
            kind => Err(RecordError::Format { format: self.format, kind }),
        }
    }

    fn flags(&mut self, known: u8) -> Result<u8, RecordError> {
        let known = if self.format >= 2 { known } else { known & !HAS_HOST };
        let flags = self.u8()?;
        if flags & !known == 0 { Ok(flags) } else { Err(RecordError::Flags(flags)) }
    }

    /// Locator, host and service.
    fn place(&mut self, flags: u8) -> Result<(Option<Locator>, Option<Ipv4Addr>, u32), RecordError> {
        let locator = if flags & HAS_LOCATOR == 0 {
            None
        } else {
            Some(Locator { tor_la: self.address()?, anycast_la: self.address()? })
        };
        let host_la = if flags & HAS_HOST == 0 { None } else { Some(self.address()?) };
        Ok((locator, host_la, self.u32()?))
    }

    fn update(&mut self) -> Result<Update, RecordError> {
        let flags = self.flags(HAS_LOCATOR | HAS_IF_VERSION | HAS_VERSION | HAS_HOST)?;
        let aa = self.address()?;
        let (locator, host_la, service) = self.place(flags)?;
        let change = locator.map_or(Change::Delete, |locator| Change::Set { locator, service, host_la });
        let if_version = if flags & HAS_IF_VERSION != 0 { Some(self.u64()?) } else { None };
        let version = if flags & HAS_VERSION != 0 { Some(self.u64()?) } else { None };
        Ok(Update { aa, change, if_version, version })
    }

    fn record(&mut self) -> Result<(Ipv4Addr, Record), RecordError> {
        let flags = self.flags(HAS_LOCATOR | HAS_HOST)?;
        let aa = self.address()?;
        let (locator, host_la, service) = self.place(flags)?;
        match self.u64()? {
            // A table takes it for an empty place.
            0 => Err(RecordError::Version),
            version => Ok((aa, Record { locator, service, host_la, version })),
        }
    }

    fn fault(&mut self) -> Result<Option<Fault>, RecordError> {
        let kind = self.u8()?;
        if kind == 0 {
            return Ok(None);
        }
        let words = [self.u64()?, self.u64()?, self.u64()?];
        Fault::of_words(kind, words).map(Some).ok_or(RecordError::Flags(kind))
    }

    fn policy(&mut self) -> Result<Vec<PolicyChange>, RecordError> {
        let mut policy = Vec::new();
        for _ in 0..self.u32()? {
            let (from_service, to_service) = (self.u32()?, self.u32()?);
            let allow = match self.u8()? {
                allow @ 0..=1 => allow == 1,
                other => return Err(RecordError::Flags(other)),
            };
            policy.push(PolicyChange { from_service, to_service, allow });
        }
        Ok(policy)
    }

    fn end(&self) -> Result<(), RecordError> {
        match self.bytes.len() - self.at {
            0 => Ok(()),
            left => Err(RecordError::Long(left)),
        }
    }
}
