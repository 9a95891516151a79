//! What measures, breaks and stands beside a fabric, and is never deployed.
//!
//! | module | what it is for |
//! | --- | --- |
//! | [`tester`] | the test centre's generator, analyser and emulated links |
//! | [`bed`] | parts of beds for experiments: segments for streams, ends that poll |
//! | [`l2`] | the plain layer-2 switch that every ratio is over |
//! | [`impair`] | links that lose a share of their frames, or carry less |
//! | [`loss`], [`cut`] | a network that loses datagrams of one port, or everything |
//! | [`mod@bench`] | nanoseconds per packet of the programs, relative to the plain switch at the same hook |
//! | [`load`] | load for directory servers, with latencies |
//! | [`etcd`] | etcd clusters as children of this process |
//! | [`cpu`] | CPU time of threads, and a thread's place |
//!
//! It has eBPF programs of its own (`bpf/`), and like those of `weft-datapath` they act in the network namespace of the calling
//! thread.

pub mod abi;
pub mod bed;
pub mod bench;
pub mod cpu;
pub mod cut;
mod detour;
pub mod etcd;
pub mod impair;
mod kept;
pub mod l2;
pub mod load;
pub mod loss;
pub mod tester;

pub use cut::Cut;

use weft_datapath::object::ObjectFile;

/// Our own compiled objects.
pub mod files {
    use weft_datapath::object::ObjectFile;

    include!(concat!(env!("OUT_DIR"), "/objects.rs"));
}

/// Every object that is deployed, and every one of ours.
pub fn objects() -> impl Iterator<Item = ObjectFile> {
    weft_datapath::object::ALL.iter().chain(files::ALL).copied()
}
