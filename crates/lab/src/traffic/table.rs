//! The memory that the parent and its workers share: what to send, and how far each flow is.
//!
//! One memfd: a length and [`Config`] as JSON, then, page-aligned, [`Header`], one [`HostCounters`] per server and one
//! [`FlowCell`] per flow. Everything in the mapped part is atomic. Times are CLOCK_MONOTONIC; 0 means not yet.
#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::net::Ipv4Addr;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, AtomicU64};

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, ftruncate, memfd_create};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use rustix::time::ClockId;
use serde::{Deserialize, Serialize};
use weft_scenario::engine::CongestionControl;
use weft_scenario::workload::MixSpec;
use weft_scenario::workload::services::{DatagramStream, Storm};

use crate::sys;

const PAGE: usize = 4096;

/// Nanoseconds of CLOCK_MONOTONIC.
pub(super) fn now_ns() -> u64 {
    sys::now_ns(ClockId::Monotonic)
}

/// What every worker must know before it starts.
#[derive(Default, Serialize, Deserialize)]
pub(super) struct Config {
    /// The process whose end ends the workers.
    pub(super) parent: i32,
    pub(super) hosts: Vec<HostConfig>,
    pub(super) congestion_control: CongestionControl,
    pub(super) seed: u64,
    /// Number of flow cells.
    pub(super) rows: u32,
    /// Flows that send as much as they can, and the mix, end after this time.
    pub(super) duration_ns: Option<u64>,
    /// The data-centre mix; otherwise the flow cells say what to send.
    pub(super) mix: Option<MixSpec>,
    /// Datagrams at steady rates, beside the flows.
    pub(super) datagrams: Vec<DatagramStream>,
    /// Broadcast at steady rates, which every server listens for.
    pub(super) storms: Vec<Storm>,
    /// How many datagrams of a stream a sender hands to the kernel at once.
    pub(super) datagrams_per_write: u32,
    /// Names of services with their servers, whose received payload is recorded service by service.
    pub(super) services: Vec<(String, Vec<u32>)>,
    /// Distance between samples of TCP state.
    pub(super) tcp_interval_ns: Option<u64>,
    /// Copy received bytes to user space and run on this core, as for a measurement of cost.
    pub(super) cost_core: Option<usize>,
}

/// One server.
#[derive(Serialize, Deserialize)]
pub(super) struct HostConfig {
    pub(super) name: String,
    pub(super) namespace: PathBuf,
    pub(super) address: Ipv4Addr,
}

/// State of the whole run.
#[repr(C, align(64))]
pub(super) struct Header {
    /// Workers that wait for the start.
    pub(super) ready: AtomicU32,
    /// Workers whose time is up and that have counted what had arrived by then.
    pub(super) ended: AtomicU32,
    /// Set by the parent when workers must end.
    pub(super) stop: AtomicU32,
    /// When the run starts; 0 until the parent has decided.
    pub(super) start_ns: AtomicU64,
    /// Cells in use.
    pub(super) rows_used: AtomicU32,
    /// Flows of the mix for which no cell was left.
    pub(super) unlisted_flows: AtomicU64,
}

/// Totals of one receiving server, written by its worker only.
#[repr(C, align(64))]
pub(super) struct HostCounters {
    pub(super) received_bytes: AtomicU64,
    pub(super) flows_done: AtomicU64,
    /// Datagrams of storms: those that it offered, those that it received of its own service's and of others'.
    pub(super) storm_offered: AtomicU64,
    pub(super) storm_own: AtomicU64,
    pub(super) storm_foreign: AtomicU64,
}

/// One flow. The sender writes what it asks for and its TCP state, the receiver writes what arrived.
#[repr(C, align(64))]
pub(super) struct FlowCell {
    pub(super) from: AtomicU32,
    pub(super) to: AtomicU32,
    /// Payload to send; 0: as much as possible.
    pub(super) asked_bytes: AtomicU64,
    /// When it should start, from the start of the run.
    pub(super) asked_start_ns: AtomicU64,
    pub(super) start_ns: AtomicU64,
    pub(super) received_bytes: AtomicU64,
    pub(super) end_ns: AtomicU64,
    /// When the TCP state below was read.
    pub(super) tcp_ns: AtomicU64,
    pub(super) cwnd_segments: AtomicU32,
    pub(super) srtt_us: AtomicU32,
    pub(super) retransmits: AtomicU32,
    /// Data segments sent, repetitions included.
    pub(super) data_segments: AtomicU32,
    /// Segments that the sender got back, nearly all of them pure ACKs.
    pub(super) acks: AtomicU32,
}

/// The shared memory, mapped.
pub(super) struct Table {
    file: File,
    config: Config,
    base: *mut u8,
    length: usize,
}

// SAFETY: `base` points to memory shared between processes that is only ever read as atomics.
unsafe impl Sync for Table {}

impl Table {
    /// Makes the memory; all counters are 0.
    pub(super) fn create(config: Config) -> io::Result<Self> {
        let json = serde_json::to_vec(&config)?;
        let file = File::from(memfd_create("weft-traffic", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?);
        ftruncate(&file, (mapped_at(json.len()) + mapped_length(&config)) as u64)?;
        // A mapping cannot fault once nobody can shrink the file.
        fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)?;
        file.write_all_at(&(json.len() as u64).to_le_bytes(), 0)?;
        file.write_all_at(&json, 8)?;
        Self::map(file, json.len(), config)
    }

    /// Opens the memory that the parent made.
    pub(super) fn open(fd: OwnedFd) -> io::Result<Self> {
        let file = File::from(fd);
        let mut length = [0; 8];
        file.read_exact_at(&mut length, 0)?;
        let size = file.metadata()?.len();
        let length = usize::try_from(u64::from_le_bytes(length).min(size)).map_err(io::Error::other)?;
        let mut json = vec![0; length];
        file.read_exact_at(&mut json, 8)?;
        let config = serde_json::from_slice(&json)?;
        if ((mapped_at(length) + mapped_length(&config)) as u64) > size {
            return Err(io::Error::other("the shared table is too short"));
        }
        Self::map(file, length, config)
    }

    fn map(file: File, json: usize, config: Config) -> io::Result<Self> {
        let length = mapped_length(&config);
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new shared mapping at an address of the kernel's choice; the file is long enough, as both callers
        // made sure, and sealed against shrinking.
        let base =
            unsafe { mmap(std::ptr::null_mut(), length, access, MapFlags::SHARED, &file, mapped_at(json) as u64) }?;
        Ok(Self { file, config, base: base.cast(), length })
    }

    /// Another handle to the memory for a child process.
    pub(super) fn share(&self) -> io::Result<File> {
        self.file.try_clone()
    }

    pub(super) fn config(&self) -> &Config {
        &self.config
    }

    pub(super) fn header(&self) -> &Header {
        // SAFETY: the mapping is page-aligned, begins with a `Header` (only atomics, any bits valid) and lives as long
        // as `self`.
        unsafe { &*self.base.cast::<Header>() }
    }

    pub(super) fn hosts(&self) -> &[HostCounters] {
        let at = size_of::<Header>();
        // SAFETY: `mapped_length` counts this many `HostCounters` here; sizes are multiples of the alignment of 64.
        unsafe { std::slice::from_raw_parts(self.base.add(at).cast(), self.config.hosts.len()) }
    }

    pub(super) fn flows(&self) -> &[FlowCell] {
        let at = size_of::<Header>() + self.config.hosts.len() * size_of::<HostCounters>();
        // SAFETY: `mapped_length` counts this many `FlowCell`s here; sizes are multiples of the alignment of 64.
        unsafe { std::slice::from_raw_parts(self.base.add(at).cast(), self.config.rows as usize) }
    }
}

impl Drop for Table {
    fn drop(&mut self) {
        // SAFETY: exactly what `map` mapped; every reference into it borrows `self`.
        let _ = unsafe { munmap(self.base.cast(), self.length) };
    }
}

fn mapped_at(json: usize) -> usize {
    (8 + json).next_multiple_of(PAGE)
}

fn mapped_length(config: &Config) -> usize {
    size_of::<Header>() + config.hosts.len() * size_of::<HostCounters>() + config.rows as usize * size_of::<FlowCell>()
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering::Relaxed;

    use super::*;

    fn config(rows: u32) -> Config {
        let host = |index: u8| HostConfig {
            name: format!("s{index}"),
            namespace: PathBuf::from("/run/netns/none"),
            address: Ipv4Addr::new(20, 0, 0, index),
        };
        Config { parent: 1, hosts: vec![host(1), host(2)], rows, ..Config::default() }
    }

    #[test]
    fn what_one_side_writes_the_other_reads() {
        let parent = Table::create(config(1000)).unwrap();
        let worker = Table::open(parent.share().unwrap().into()).unwrap();
        assert_eq!(worker.config().hosts[1].name, "s2");
        assert_eq!((worker.hosts().len(), worker.flows().len()), (2, 1000));
        worker.flows()[999].received_bytes.store(5, Relaxed);
        worker.hosts()[1].flows_done.store(6, Relaxed);
        parent.header().start_ns.store(8, Relaxed);
        assert_eq!(parent.flows()[999].received_bytes.load(Relaxed), 5);
        assert_eq!(parent.hosts()[1].flows_done.load(Relaxed), 6);
        assert_eq!(worker.header().start_ns.load(Relaxed), 8);
        assert_eq!(parent.flows()[998].received_bytes.load(Relaxed), 0);
    }

    #[test]
    fn a_foreign_file_is_refused() {
        let file = tempfile::tempfile().unwrap();
        assert!(Table::open(file.try_clone().unwrap().into()).is_err());
        file.write_all_at(&[255; 100], 0).unwrap();
        assert!(Table::open(file.into()).is_err());
    }
}
