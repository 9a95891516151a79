//! What joins two links in some VLANs alone, as a bridge that filters VLANs does: in user space, for not every kernel has that.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use super::Namespace;
use super::tap::Tap;

/// Ends when it is dropped.
pub(crate) struct Trunk {
    ends: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Trunk {
    /// Between two interfaces of a namespace: it passes frames with the tag of a VLAN for which `passes` says so; 0: without one.
    pub(crate) fn between(namespace: &Namespace, interfaces: [&str; 2], passes: fn(u16) -> bool) -> Self {
        let mut taps = interfaces.map(|interface| Tap::open(namespace, interface, false));
        let ends = Arc::new(AtomicBool::new(false));
        let ended = Arc::clone(&ends);
        let thread = std::thread::spawn(move || {
            while !ended.load(Ordering::Relaxed) {
                let moved = [(0, 1), (1, 0)].map(|(from, to)| {
                    let frame = taps[from].poll_tagged();
                    let passed = frame.iter().filter(|(vlan, _)| passes(*vlan));
                    passed.for_each(|(_, frame)| taps[to].send(frame));
                    frame.is_some()
                });
                if moved == [false; 2] {
                    std::thread::sleep(Duration::from_micros(100));
                }
            }
        });
        Self { ends, thread: Some(thread) }
    }
}

impl Drop for Trunk {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Relaxed);
        self.thread.take().map(JoinHandle::join);
    }
}
