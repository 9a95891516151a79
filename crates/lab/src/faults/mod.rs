//! Breaks and mends a lab while traffic runs: switches and links go down at both ends or fall silent, anycast LAs find new
//! owners, links are worse than they should be.

mod broken;
mod impair;
mod live;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use weft_scenario::fault::Fault;

use crate::error::LabError;
use crate::routes;
use crate::state::LabState;
use crate::traffic::FaultActuator;
use crate::up::Lab;

use broken::Broken;
pub(crate) use impair::dropped as dropped_on_purpose;
pub use impair::{Impaired, Impairment};
pub(crate) use live::links_of;
pub use live::{Change, fail, impair, repair};

/// Folder of a lab's pins for all of this; no node can be called so.
const PINS: &str = "+faults";

/// How long after a repair the kernel's routes are watched.
const RESTORE_TIMEOUT: Duration = Duration::from_secs(60);
const RESTORE_POLL: Duration = Duration::from_millis(100);

/// How long after the n-th repair all routes were back; `None`: not before the run ended or something else broke.
type Restored = Arc<Mutex<Vec<(usize, Option<Duration>)>>>;

/// Applies faults to a lab. Dropping it stops watching; what is broken stays so until repaired.
pub struct LabActuator<'a> {
    broken: Broken<'a>,
    repairs: usize,
    restored: Restored,
    watch: Option<Watch>,
}

struct Watch {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

impl<'a> LabActuator<'a> {
    /// For a lab that is up.
    pub fn new(lab: &'a Lab) -> Self {
        Self { broken: Broken::nothing(lab), repairs: 0, restored: Restored::default(), watch: None }
    }

    /// Stops watching and says, for each repair, when the kernel had all routes that the links allow.
    pub fn finish(mut self) -> Vec<(usize, Option<Duration>)> {
        self.stop_watch();
        std::mem::take(&mut *self.restored.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Writes down what is broken, for who looks on.
    fn note(&self) -> Result<(), LabError> {
        let Broken { lab, active, .. } = &self.broken;
        LabState { faults: active.clone(), ..lab.state.clone() }.save()
    }

    fn start_watch(&mut self, repair: usize) {
        let tables = self.broken.tables();
        let (stop, restored) = (Arc::new(AtomicBool::new(false)), Arc::clone(&self.restored));
        let stopped = Arc::clone(&stop);
        let start = Instant::now();
        let thread = std::thread::spawn(move || {
            // Once told to stop it looks a last time, so what is back by then always counts.
            let back = loop {
                let (looked, last) = (start.elapsed(), stopped.load(Ordering::Acquire));
                if tables.iter().all(routes::is_there) {
                    break Some(looked);
                }
                if last || looked >= RESTORE_TIMEOUT {
                    break None;
                }
                std::thread::park_timeout(RESTORE_POLL);
            };
            restored.lock().unwrap_or_else(PoisonError::into_inner).push((repair, back));
        });
        self.watch = Some(Watch { stop, thread });
    }

    fn stop_watch(&mut self) {
        if let Some(watch) = self.watch.take() {
            watch.stop.store(true, Ordering::Release);
            watch.thread.thread().unpark();
            if watch.thread.join().is_err() {
                tracing::warn!("the watch over restored routes failed");
            }
        }
    }
}

impl FaultActuator for LabActuator<'_> {
    fn apply(&mut self, fault: &Fault) -> Result<(), String> {
        self.stop_watch();
        self.broken.active.push(fault.kind.clone());
        self.broken.settle().and_then(|()| self.note()).map_err(|error| error.to_string())
    }

    fn repair(&mut self, fault: &Fault) -> Result<(), String> {
        if let Some(place) = self.broken.active.iter().position(|active| *active == fault.kind) {
            self.broken.active.remove(place);
        }
        let repair = self.repairs;
        self.repairs += 1;
        self.broken.settle().and_then(|()| self.note()).map_err(|error| error.to_string())?;
        if !self.broken.lab.scenario.overlay.forwards_frames() {
            self.start_watch(repair);
        }
        Ok(())
    }
}
