//! Look-ups of a directory server at the card: nanoseconds of the program alone, each time on another question, by the thread's
//! CPU time.

use std::net::{Ipv4Addr, SocketAddrV4};

use libbpf_rs::Object;
use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::{Rng, SeedableRng};
use serde::Serialize;
use weft_datapath::DatapathError;
use weft_datapath::directory::{LookupConfig, LookupDatapath, Row};
use weft_datapath::object;
use weft_wire::directory::{Entry, Kind, Message, PORT, Path, Secret};
use weft_wire::{ipv4, udp};

use super::program_run::{set_target, time};
use super::{BenchOptions, median};
use crate::abi::FrameStart;
use crate::files;

const XDP_DROP: u32 = 1;
const XDP_TX: u32 = 3;
/// As many as the program that asks them has.
const QUESTIONS: u32 = 65_536;
/// Agents that ask.
const ASKERS: u32 = 10_000;

const SERVER: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(10, 64, 0, 9), PORT);
const SERVER_MAC: [u8; 6] = [0x02, 0, 0, 0, 0, 0x09];
const ROUTER_MAC: [u8; 6] = [0x02, 0, 0, 0, 0, 0x01];
const SECRET: [u8; 16] = *b"a bench's secret";
const REVISION: u64 = 1 << 50;

/// What a look-up of one AA costs at the card, with one size of the table.
#[derive(Clone, Debug, Serialize)]
pub struct CardNumbers {
    /// Mappings in the table, all of which are asked for alike.
    pub mappings: u32,
    /// CPU time of a look-up: median of the rounds.
    pub ns_per_lookup: f64,
    /// How many a CPU answers in a second of its time.
    pub lookups_per_cpu_s: f64,
    /// Memory of the table in the kernel, MB of 10^6 bytes.
    pub memory_mb: f64,
}

/// Measures each of these sizes in every round.
///
/// # Errors
/// Any [`DatapathError`]; [`DatapathError::Verdict`] if a look-up was not answered.
pub fn card(mappings: &[u32], options: &BenchOptions) -> Result<Vec<CardNumbers>, DatapathError> {
    let benches = mappings.iter().map(|mappings| Bench::load(*mappings)).collect::<Result<Vec<_>, _>>()?;
    let mut samples = vec![Vec::new(); benches.len()];
    for _ in 0..options.rounds.max(1) {
        for (bench, samples) in benches.iter().zip(&mut samples) {
            samples.push(bench.round(options.repeat.max(1))?);
        }
    }
    Ok(benches.iter().zip(samples).map(|(bench, samples)| bench.numbers(median(&samples))).collect())
}

struct Bench {
    mappings: u32,
    memory_bytes: usize,
    datapath: LookupDatapath,
    wrapper: Object,
    frame: Vec<u8>,
}

impl Bench {
    fn load(mappings: u32) -> Result<Self, DatapathError> {
        let config = LookupConfig { listen: SERVER, mac: SERVER_MAC, mappings };
        let (datapath, mut table) = LookupDatapath::load(&config)?;
        table.change(|change| {
            change.set_secrets([(1, SECRET)]);
            change.set_revision(REVISION);
            (0..mappings).for_each(|n| change.set(&row(n)));
            Ok(())
        })?;
        let wrapper = files::BENCH_DIRECTORY.load(files::BENCH_DIRECTORY.open()?)?;
        let mut random = Pcg64Mcg::seed_from_u64(u64::from(mappings));
        let mut frame = Vec::new();
        for index in 0..QUESTIONS {
            frame = question(random.next_u32() % ASKERS, random.next_u32() % mappings, random.next_u64());
            let mut start = FrameStart::default();
            start.bytes[..frame.len()].copy_from_slice(&frame);
            object::update(&wrapper, "questions", &index.to_ne_bytes(), &start.bytes)?;
        }
        Ok(Self { mappings, memory_bytes: table.memory_bytes(), datapath, wrapper, frame })
    }

    /// Nanoseconds of a look-up without what the asking costs.
    fn round(&self, repeat: u32) -> Result<f64, DatapathError> {
        let asking = object::program(&self.wrapper, "bench_directory_lookup");
        set_target(&self.wrapper, &object::program(&self.wrapper, "bench_directory_nothing"))?;
        let nothing_ns = time(&asking, &self.frame, repeat, XDP_DROP)?;
        set_target(&self.wrapper, &self.datapath.program())?;
        Ok(time(&asking, &self.frame, repeat, XDP_TX)? - nothing_ns)
    }

    fn numbers(&self, ns_per_lookup: f64) -> CardNumbers {
        CardNumbers {
            mappings: self.mappings,
            ns_per_lookup,
            lookups_per_cpu_s: 1e9 / ns_per_lookup,
            memory_mb: self.memory_bytes as f64 / 1e6,
        }
    }
}

fn aa(n: u32) -> Ipv4Addr {
    Ipv4Addr::from(0x1400_0000 + n)
}

fn row(n: u32) -> Row {
    let tor_la = Ipv4Addr::from(0x0a01_0000 + n / 20);
    Row { aa: aa(n), service: 0, tor_la, anycast_la: Ipv4Addr::new(10, 255, 255, 1), version: u64::from(n) + 1 }
}

/// The frame of an agent's look-up.
fn question(asker: u32, n: u32, request_id: u64) -> Vec<u8> {
    let la = Ipv4Addr::from(0x0a40_0100 + asker);
    let path = Path { source: SocketAddrV4::new(la, 40_000), destination: SERVER };
    let entries = vec![Entry::question(aa(n), 0)];
    let message = Message { kind: Kind::Ask, service: 0, request_id, revision: 0, key_id: 1, entries };
    let datagram = message.emit(&Secret::from_bytes(SECRET).derive(0, la), &path);
    let length = (udp::HEADER_LEN + datagram.len()) as u16;
    let mut header = vec![0; ipv4::HEADER_LEN];
    ipv4::Header::new(la, *SERVER.ip(), ipv4::protocol::UDP, length).emit_into(&mut header);
    let ports = [path.source.port(), SERVER.port(), length, 0].map(u16::to_be_bytes).concat();
    [&SERVER_MAC[..], &ROUTER_MAC, &[8, 0], &header, &ports, &datagram].concat()
}
