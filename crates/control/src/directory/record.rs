//! Bytes of a log record and of a snapshot page: what every store keeps, so that stores can be exchanged.
//!
//! Big-endian. Both begin with a format number (1) and a kind. A record is a batch; a snapshot is a list of pages that
//! together are a table.

use std::net::Ipv4Addr;

use super::table::{Last, Record, Table};
use super::update::{Batch, Change, Request, Update};
use crate::address::Locator;

/// Format of the bytes described here.
const FORMAT: u8 = 1;
const KIND_BATCH: u8 = 1;
const KIND_RECORDS: u8 = 2;
const KIND_CLIENTS: u8 = 3;
/// Things per snapshot page.
const PER_PAGE: usize = 4096;

const HAS_LOCATOR: u8 = 1;
const HAS_IF_VERSION: u8 = 2;
const HAS_VERSION: u8 = 4;

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
    #[error("stored record has format {format} kind {kind}; this version reads format 1 only")]
    Format {
        /// The format number found.
        format: u8,
        /// The kind found.
        kind: u8,
    },
    /// Flags without a meaning.
    #[error("stored record has unknown flags {0:#04x}")]
    Flags(u8),
}

/// The bytes of a log record.
pub fn encode_batch(batch: &Batch) -> Vec<u8> {
    let mut out = vec![FORMAT, KIND_BATCH];
    put_len(&mut out, batch.requests.len());
    for request in &batch.requests {
        out.extend(request.client.to_be_bytes());
        out.extend(request.sequence.to_be_bytes());
        put_len(&mut out, request.updates.len());
        for update in &request.updates {
            put_update(&mut out, update);
        }
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
        let mut request = Request { client: reader.u64()?, sequence: reader.u64()?, updates: Vec::new() };
        for _ in 0..reader.u32()? {
            request.updates.push(reader.update()?);
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
        for (client, last) in clients {
            page.extend(client.to_be_bytes());
            page.extend(last.sequence.to_be_bytes());
            page.extend(last.revision.to_be_bytes());
        }
        pages.push(page);
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
        match (reader.u8()?, reader.u8()?) {
            (FORMAT, KIND_RECORDS) => {
                for _ in 0..reader.u32()? {
                    let (aa, record) = reader.record()?;
                    table.put(aa, record);
                }
            }
            (FORMAT, KIND_CLIENTS) => {
                for _ in 0..reader.u32()? {
                    let client = reader.u64()?;
                    table.remember(client, Last { sequence: reader.u64()?, revision: reader.u64()? });
                }
            }
            (format, kind) => return Err(RecordError::Format { format, kind }),
        }
        reader.end()?;
    }
    Ok(table)
}

fn put_len(out: &mut Vec<u8>, len: usize) {
    let len = u32::try_from(len).expect("requests and pages are bounded far below 2^32");
    out.extend(len.to_be_bytes());
}

fn put_locator(out: &mut Vec<u8>, locator: Option<Locator>, service: u32) {
    if let Some(Locator { tor_la, anycast_la }) = locator {
        out.extend(tor_la.octets());
        out.extend(anycast_la.octets());
    }
    out.extend(service.to_be_bytes());
}

fn put_update(out: &mut Vec<u8>, update: &Update) {
    let (locator, service) = match update.change {
        Change::Set { locator, service } => (Some(locator), service),
        Change::Delete => (None, 0),
    };
    let flag = |set: bool, bit: u8| if set { bit } else { 0 };
    out.push(
        flag(locator.is_some(), HAS_LOCATOR)
            | flag(update.if_version.is_some(), HAS_IF_VERSION)
            | flag(update.version.is_some(), HAS_VERSION),
    );
    out.extend(update.aa.octets());
    put_locator(out, locator, service);
    for version in [update.if_version, update.version].into_iter().flatten() {
        out.extend(version.to_be_bytes());
    }
}

fn put_record(out: &mut Vec<u8>, aa: Ipv4Addr, record: &Record) {
    out.push(if record.locator.is_some() { HAS_LOCATOR } else { 0 });
    out.extend(aa.octets());
    put_locator(out, record.locator, record.service);
    out.extend(record.version.to_be_bytes());
}

/// A cursor over stored bytes.
struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
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

    fn address(&mut self) -> Result<Ipv4Addr, RecordError> {
        self.take::<4>().map(Ipv4Addr::from)
    }

    fn expect_kind(&mut self, kind: u8) -> Result<(), RecordError> {
        match (self.u8()?, self.u8()?) {
            (FORMAT, found) if found == kind => Ok(()),
            (format, kind) => Err(RecordError::Format { format, kind }),
        }
    }

    fn flags(&mut self, known: u8) -> Result<u8, RecordError> {
        let flags = self.u8()?;
        if flags & !known == 0 { Ok(flags) } else { Err(RecordError::Flags(flags)) }
    }

    fn locator(&mut self, flags: u8) -> Result<Option<Locator>, RecordError> {
        if flags & HAS_LOCATOR == 0 {
            return Ok(None);
        }
        Ok(Some(Locator { tor_la: self.address()?, anycast_la: self.address()? }))
    }

    fn update(&mut self) -> Result<Update, RecordError> {
        let flags = self.flags(HAS_LOCATOR | HAS_IF_VERSION | HAS_VERSION)?;
        let aa = self.address()?;
        let locator = self.locator(flags)?;
        let service = self.u32()?;
        let change = locator.map_or(Change::Delete, |locator| Change::Set { locator, service });
        let if_version = if flags & HAS_IF_VERSION != 0 { Some(self.u64()?) } else { None };
        let version = if flags & HAS_VERSION != 0 { Some(self.u64()?) } else { None };
        Ok(Update { aa, change, if_version, version })
    }

    fn record(&mut self) -> Result<(Ipv4Addr, Record), RecordError> {
        let flags = self.flags(HAS_LOCATOR)?;
        let aa = self.address()?;
        let locator = self.locator(flags)?;
        Ok((aa, Record { locator, service: self.u32()?, version: self.u64()? }))
    }

    fn end(&self) -> Result<(), RecordError> {
        match self.bytes.len() - self.at {
            0 => Ok(()),
            left => Err(RecordError::Long(left)),
        }
    }
}
