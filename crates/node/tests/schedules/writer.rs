//! A client that updates and remembers what it was told. What it is not told it asks again, by the same number, as clients do.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use weft_control::address::Locator;
use weft_control::directory::{Request, Update};
use weft_node::directory::replica::{Failure, Replica};

use crate::common::ANYCAST;

/// How long a server has for a request.
const ANSWER: Duration = Duration::from_secs(4);
/// Between two updates, so that the table of a long run stays small.
const REST: Duration = Duration::from_millis(3);

pub(crate) struct Writer {
    stop: Arc<AtomicBool>,
    acknowledged: Arc<AtomicU64>,
    repeated: Arc<AtomicU64>,
    thread: JoinHandle<Vec<(Ipv4Addr, u64)>>,
}

impl Writer {
    /// Writer `index`, whose AAs are its own. Each request sets a new AA, and the writer's first one anew if nobody else has: so none
    /// may happen twice.
    pub(crate) fn start(replica: &Replica, index: u32) -> Self {
        let (stop, acknowledged, repeated): (Arc<AtomicBool>, Arc<AtomicU64>, Arc<AtomicU64>) = Default::default();
        let (theirs, count, repeats, replica) =
            (Arc::clone(&stop), Arc::clone(&acknowledged), Arc::clone(&repeated), replica.clone());
        let aa = move |k: u64| Ipv4Addr::from(0x1400_0000 + (index << 22) + k as u32);
        let thread = std::thread::spawn(move || {
            let (mut done, mut last, mut sequence) = (Vec::new(), 0, 0);
            while !theirs.load(Ordering::Relaxed) {
                sequence += 1;
                let set = |aa| {
                    let tor_la = Ipv4Addr::from(0x0a01_0001 + sequence as u32 % 250);
                    Update::set(aa, Locator { tor_la, anycast_la: ANYCAST })
                };
                let updates = vec![set(aa(sequence)), Update { if_version: Some(last), ..set(aa(0)) }];
                let request = Request { client: u64::from(index) + 1, sequence, ..Request::once(updates) };
                last = loop {
                    match replica.commit(request.clone(), ANSWER) {
                        Ok(revision) => break revision,
                        Err(Failure::Refused(refusal)) => panic!("writer {index}, request {sequence}: {refusal}"),
                        Err(_) => _ = repeats.fetch_add(1, Ordering::Relaxed),
                    }
                };
                done.push((aa(sequence), last));
                count.fetch_add(1, Ordering::Relaxed);
                std::thread::sleep(REST);
            }
            done.extend((last > 0).then_some((aa(0), last)));
            done
        });
        Self { stop, acknowledged, repeated, thread }
    }

    pub(crate) fn acknowledged(&self) -> u64 {
        assert!(!self.thread.is_finished(), "the writer ended; its panic says why");
        self.acknowledged.load(Ordering::Relaxed)
    }

    pub(crate) fn repeated(&self) -> u64 {
        self.repeated.load(Ordering::Relaxed)
    }

    pub(crate) fn finish(self) -> Vec<(Ipv4Addr, u64)> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().expect("nothing was refused")
    }
}
