//! Independent runs side by side: each worker takes the next one, brings its network up, runs it, keeps its rows and
//! takes the network down. What a run yields depends on nothing but its scenario, trial and seed.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Instant;

use weft_scenario::engine::{Engine, EngineError, Progress};
use weft_scenario::record::RowKind;

use super::RunError;
use super::schedule::{Job, Network};
use crate::analysis::TrialRecords;
use crate::plan::Axis;
use crate::run_folder::{FinishedRun, WorkFolder};

/// One run and the engine that it runs on.
#[derive(Clone, Copy)]
pub(super) struct Task<'a> {
    pub(super) network: Network<'a>,
    pub(super) job: &'a Job,
    pub(super) engine: &'a (dyn Engine + Sync),
}

/// What all runs share.
#[derive(Clone, Copy)]
pub(super) struct Shared<'a> {
    pub(super) axes: &'a [Axis],
    pub(super) kinds: &'a [RowKind],
    pub(super) work: &'a WorkFolder,
    pub(super) progress: &'a dyn Progress,
    pub(super) workers: usize,
    /// Of each run.
    pub(super) threads: usize,
}

/// Runs all tasks and returns what they yielded, in any order. The first error stops the others; finished runs stay in
/// the work folder.
pub(super) fn run_all(tasks: &[Task<'_>], shared: Shared<'_>) -> Result<Vec<FinishedRun>, RunError> {
    let workers = shared.workers.clamp(1, tasks.len().max(1));
    shared.progress.phase("runs", &format!("{} on {workers} workers", tasks.len()));
    let board = Board::new(tasks.len(), workers);
    let (next, finished, error) = (AtomicUsize::new(0), Mutex::new(Vec::new()), Mutex::new(None));
    let work = |worker: usize| {
        let progress = Share { outer: shared.progress, board: &board, worker };
        while let Some(task) = tasks.get(next.fetch_add(1, Ordering::Relaxed)).filter(|_| !progress.interrupted()) {
            match run_one(*task, shared, &progress) {
                Ok(run) => lock(&finished).push(run),
                Err(found) => {
                    lock(&error).get_or_insert(found);
                    board.stop.store(true, Ordering::Relaxed);
                }
            }
            board.done(worker);
        }
    };
    std::thread::scope(|scope| {
        for worker in 0..workers {
            let work = &work;
            scope.spawn(move || work(worker));
        }
    });
    let finished = finished.into_inner().expect(NO_PANIC);
    match error.into_inner().expect(NO_PANIC) {
        Some(error) => Err(error),
        None if finished.len() < tasks.len() => Err(EngineError::Interrupted.into()),
        None => Ok(finished),
    }
}

fn run_one(task: Task<'_>, shared: Shared<'_>, progress: &dyn Progress) -> Result<FinishedRun, RunError> {
    let mut session = task.engine.prepare(&task.network.scenario()?, progress)?;
    session.use_threads(shared.threads);
    let trial = TrialRecords { key: task.job.key.clone(), records: session.run(&task.job.trial)? };
    let mut run = FinishedRun { trial, session_facts: session.facts() };
    session.close()?;
    shared.work.keep(shared.axes, &run)?;
    run.trial.records.keep(shared.kinds);
    Ok(run)
}

const NO_PANIC: &str = "a worker that panics ends the run before anybody asks";

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().expect(NO_PANIC)
}

/// How far all workers are.
struct Board {
    started: Instant,
    planned: usize,
    stop: AtomicBool,
    state: Mutex<State>,
}

struct State {
    done: usize,
    current: Vec<f64>,
}

impl Board {
    fn new(planned: usize, workers: usize) -> Self {
        let state = Mutex::new(State { done: 0, current: vec![0.0; workers] });
        Self { started: Instant::now(), planned, stop: AtomicBool::new(false), state }
    }

    fn done(&self, worker: usize) {
        let mut state = lock(&self.state);
        state.done += 1;
        state.current[worker] = 0.0;
    }

    /// Notes how far one worker's run is; the share of all runs that is done, and a line that says so.
    fn advance(&self, worker: usize, ratio: f64) -> (f64, String) {
        let mut state = lock(&self.state);
        state.current[worker] = ratio.clamp(0.0, 1.0);
        let share = (state.done as f64 + state.current.iter().sum::<f64>()) / self.planned.max(1) as f64;
        let left = match share > 0.0 {
            true => time_left(self.started.elapsed().as_secs_f64(), share),
            false => String::new(),
        };
        (share, format!("{} of {} runs{left}", state.done, self.planned))
    }
}

/// The rest at the pace so far, as if all runs were alike.
fn time_left(elapsed_s: f64, share: f64) -> String {
    let left_s = (elapsed_s / share - elapsed_s).ceil();
    match left_s {
        _ if left_s < 100.0 => format!(", about {left_s:.0} s left"),
        _ => format!(", about {:.0} min left", (left_s / 60.0).ceil()),
    }
}

/// One worker's view of the progress of all.
struct Share<'a> {
    outer: &'a dyn Progress,
    board: &'a Board,
    worker: usize,
}

impl Progress for Share<'_> {
    /// Phases of runs side by side would only chase each other.
    fn phase(&self, _: &str, _: &str) {}

    fn advance(&self, done_ratio: f64, text: &str) {
        let (share, line) = self.board.advance(self.worker, done_ratio);
        let line = if text.is_empty() { line } else { format!("{line}; {text}") };
        self.outer.advance(share, &line);
    }

    fn note(&self, line: &str) {
        self.outer.note(line);
    }

    fn interrupted(&self) -> bool {
        self.outer.interrupted() || self.board.stop.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_left_is_the_pace_so_far() {
        assert_eq!(time_left(10.0, 0.25), ", about 30 s left");
        assert_eq!(time_left(60.0, 0.1), ", about 9 min left");
        assert_eq!(time_left(1.0, 1.0), ", about 0 s left");
    }

    #[test]
    fn the_board_counts_whole_and_partial_runs() {
        let board = Board::new(4, 2);
        board.advance(0, 0.5);
        board.done(0);
        let (share, line) = board.advance(1, 0.5);
        assert_eq!(share, 0.375);
        assert!(line.starts_with("1 of 4 runs, about "), "{line}");
    }
}
