//! Parts side by side, window by window: all run to the end of a window, and then read what the others have told them.
//!
//! Nothing that a part sends takes effect in another one before the window has ended, and nothing depends on the order in
//! which parts run, so the outcome is that of one part to the last bit, however many threads there are.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use super::cut::Cut;
use super::part::Part;
use super::post::Parcel;
use super::timers::Due;
use super::{SoFar, Watcher};
use crate::error::SimError;
use crate::job::CpuClock;

mod barrier;

use barrier::Barrier;

/// When a run is over whose parts have more to do, or ended their last flow at a time.
pub(super) fn ends(cut: &Cut, parts: impl Iterator<Item = (bool, u64)>) -> Due {
    let last = parts.fold((false, 0), |(any, last_ps), (more, end_ps)| (any | more, last_ps.max(end_ps)));
    if last.0 { Due::NEVER } else { Due::at(cut.window_ends_ps(last.1)) }
}

/// What threads know of each other's parts.
struct Shared<'c> {
    cut: &'c Cut,
    /// By part.
    states: Vec<Mutex<State>>,
    /// By sending part and receiving part.
    parcels: Vec<Mutex<Parcel>>,
    barrier: Barrier,
    stop: AtomicBool,
    clock: Option<CpuClock>,
    /// By thread, the CPU time of what it did last before each of the two barriers of a window, in nanoseconds.
    busy_ns: [Vec<AtomicU64>; 2],
}

/// A span of a window that ends with a barrier.
#[derive(Clone, Copy)]
enum Span {
    Run = 0,
    Read = 1,
}

/// What all have to know of a part to agree on the next window. Written before a barrier and read after it.
#[derive(Clone, Copy, Debug)]
struct State {
    next: Due,
    last_end_ps: u64,
    has_more: bool,
    so_far: SoFar,
}

/// Runs parts up to a time, or to the end of the run.
pub(super) fn advance(
    parts: &mut [Part<'_>],
    threads: u32,
    due: Due,
    watcher: &mut Watcher<'_>,
) -> Result<(), SimError> {
    let Some(first) = parts.first() else { return Ok(()) };
    let (cut, clock, count) = (Arc::clone(&first.cut), first.job.watch.cpu_clock, parts.len());
    let per_thread = count.div_ceil(threads.max(1) as usize);
    let threads = count.div_ceil(per_thread);
    let idle = || std::iter::repeat_with(AtomicU64::default).take(threads).collect();
    let shared = Shared {
        cut: &cut,
        states: parts.iter().map(|part| Mutex::new(State::of(part))).collect(),
        parcels: std::iter::repeat_with(Mutex::default).take(count * count).collect(),
        barrier: Barrier::new(threads),
        stop: AtomicBool::new(false),
        clock,
        busy_ns: [idle(), idle()],
    };
    let (own, others) = parts.split_at_mut(per_thread);
    thread::scope(|scope| {
        let shared = &shared;
        let helpers: Vec<_> = (1..)
            .zip(others.chunks_mut(per_thread))
            .map(|(thread, parts)| scope.spawn(move || run(parts, thread, shared, due, None)))
            .collect();
        let first = run(own, 0, shared, due, Some(watcher));
        let rest =
            helpers.into_iter().map(|helper| helper.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        rest.fold(first, Result::and)
    })
}

/// Lets parts read what is left of what others have told them.
pub(super) fn exchange(parts: &mut [Part<'_>]) {
    while parts.len() > 1 && parts.iter().any(Part::has_post) {
        for from in 0..parts.len() {
            for to in (0..parts.len()).filter(|to| *to != from) {
                let mut parcel = Parcel::default();
                parts[from].hand_over(to as u32, &mut parcel);
                parts[to].unpack(from as u32, &mut parcel);
            }
        }
    }
}

/// One thread's parts, window by window. Only the first thread has a watcher.
fn run(
    parts: &mut [Part<'_>],
    thread: usize,
    shared: &Shared<'_>,
    due: Due,
    mut watcher: Option<&mut Watcher<'_>>,
) -> Result<(), SimError> {
    let _guard = shared.barrier.guard();
    let mut failed = None;
    let mut since_ns = shared.clock_ns();
    loop {
        parts.iter().for_each(|part| shared.publish(part));
        shared.meet(Span::Read, thread, since_ns, watcher.as_deref_mut());
        if shared.stop.load(Ordering::Relaxed) {
            return failed.map_or(Ok(()), Err);
        }
        let Some(until) = shared.next_window(due) else { return Ok(()) };
        since_ns = shared.clock_ns();
        for part in &mut *parts {
            if let Err(error) = part.advance(until, &mut |_| Ok(())).and_then(|()| part.check_pools()) {
                failed = Some(error);
            }
            part.pack();
            shared.post(part);
        }
        if let Some(Err(error)) = watcher.as_deref_mut().map(|watcher| watcher.follow(shared.so_far())) {
            failed = Some(error);
        }
        if failed.is_some() {
            shared.stop.store(true, Ordering::Relaxed);
        }
        shared.meet(Span::Run, thread, since_ns, watcher.as_deref_mut());
        since_ns = shared.clock_ns();
        parts.iter_mut().for_each(|part| shared.fetch(part));
    }
}

impl Shared<'_> {
    /// CPU time of this thread, where somebody wants to know.
    fn clock_ns(&self) -> u64 {
        self.clock.map_or(0, |clock| clock())
    }

    /// Waits for all threads. The first one counts how long the slowest has taken since the last barrier.
    fn meet(&self, span: Span, thread: usize, since_ns: u64, watcher: Option<&mut Watcher<'_>>) {
        let busy_ns = &self.busy_ns[span as usize];
        busy_ns[thread].store(self.clock_ns() - since_ns, Ordering::Relaxed);
        self.barrier.wait();
        // Nobody writes there again before the other kind of span, which needs this thread, too.
        if let Some(watcher) = watcher {
            let busy_ns = || busy_ns.iter().map(|busy_ns| busy_ns.load(Ordering::Relaxed));
            watcher.times.windows += u64::from(matches!(span, Span::Run));
            watcher.times.slowest_ns += busy_ns().max().unwrap_or(0);
            watcher.times.all_ns += busy_ns().sum::<u64>();
        }
    }

    fn publish(&self, part: &Part<'_>) {
        *locked(&self.states[part.number as usize]) = State::of(part);
    }

    /// How far parts may run next; `None` if nothing is left before `due`.
    fn next_window(&self, due: Due) -> Option<Due> {
        let states = || self.states.iter().map(|state| *locked(state));
        let end = due.min(ends(self.cut, states().map(|state| (state.has_more, state.last_end_ps))));
        let next = states().map(|state| state.next).min().filter(|next| *next < end)?;
        Some(end.min(Due::at(self.cut.window_ends_ps(next.time_ps))))
    }

    fn so_far(&self) -> SoFar {
        self.states.iter().map(|state| locked(state).so_far).fold(SoFar::default(), SoFar::and)
    }

    fn parcel(&self, from: u32, to: u32) -> &Mutex<Parcel> {
        &self.parcels[from as usize * self.states.len() + to as usize]
    }

    fn post(&self, part: &mut Part<'_>) {
        let own = part.number;
        for to in (0..self.states.len() as u32).filter(|to| *to != own) {
            part.hand_over(to, &mut locked(self.parcel(own, to)));
        }
    }

    fn fetch(&self, part: &mut Part<'_>) {
        let own = part.number;
        for from in (0..self.states.len() as u32).filter(|from| *from != own) {
            part.unpack(from, &mut locked(self.parcel(from, own)));
        }
    }
}

impl State {
    fn of(part: &Part<'_>) -> Self {
        Self { next: part.next(), last_end_ps: part.last_end_ps, has_more: part.has_more(), so_far: part.so_far() }
    }
}

fn locked<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}
