//! Progress on standard error, with the time that a phase still takes: a bar on a terminal, plain lines elsewhere, nothing when quiet.

use std::io::{IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock, Mutex};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use weft_scenario::engine::Progress;

/// How often a plain line is written where there is no terminal.
const PLAIN_LINE_INTERVAL: Duration = Duration::from_secs(10);

/// Set when the user has asked any command of this process to stop.
static WAS_INTERRUPTED: LazyLock<Arc<AtomicBool>> = LazyLock::new(Arc::default);

/// Whether the user has asked to stop: what fails from then on fails for that, as a program that the same Ctrl-C has ended.
pub(crate) fn was_interrupted() -> bool {
    WAS_INTERRUPTED.load(Ordering::Relaxed)
}

/// Draws progress and knows whether the user asked to stop.
pub(crate) struct TerminalProgress {
    bar: Option<ProgressBar>,
    quiet: bool,
    interrupted: Arc<AtomicBool>,
    plain: Mutex<PlainState>,
}

struct PlainState {
    phase: String,
    phase_begin: Instant,
    last_line: Instant,
}

/// What a phase still takes, if it goes on as it went: `, 40 s to go`. Nothing before that can be told.
fn to_go(elapsed: Duration, done_ratio: f64) -> String {
    const TOO_EARLY: Duration = Duration::from_secs(2);
    if elapsed < TOO_EARLY || !(0.02..1.0).contains(&done_ratio) {
        return String::new();
    }
    let left = (elapsed.as_secs_f64() * (1.0 - done_ratio) / done_ratio).ceil() as u64;
    match left {
        0..=99 => format!(", {left} s to go"),
        100..=5_999 => format!(", {} min to go", left.div_ceil(60)),
        _ => format!(", {} h to go", left.div_ceil(3600)),
    }
}

impl TerminalProgress {
    /// The first Ctrl-C, SIGTERM or end of the terminal (SIGHUP, unless `nohup` has it ignored) asks to stop and clean up; a second
    /// one ends the process at once, as Ctrl-\ does (the next run or `weft lab down --all` sweeps up then).
    pub(crate) fn new(quiet: bool) -> std::io::Result<Self> {
        let interrupted = Arc::new(AtomicBool::new(false));
        use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let hangs_up = (!is_ignored(SIGHUP, &status)).then_some(SIGHUP);
        for signal in [SIGINT, SIGTERM].into_iter().chain(hangs_up) {
            signal_hook::flag::register_conditional_shutdown(signal, 130, interrupted.clone())?;
            signal_hook::flag::register(signal, interrupted.clone())?;
            signal_hook::flag::register(signal, Arc::clone(&WAS_INTERRUPTED))?;
        }
        let bar = (!quiet && std::io::stderr().is_terminal()).then(|| {
            let style = ProgressStyle::with_template("{prefix:>12} [{bar:32}] {percent:>3} % {elapsed:>4} {wide_msg}")
                .expect("the template is a constant")
                .progress_chars("=> ");
            let bar = ProgressBar::new(1000).with_style(style);
            bar.enable_steady_tick(Duration::from_millis(250));
            bar
        });
        let plain =
            Mutex::new(PlainState { phase: String::new(), phase_begin: Instant::now(), last_line: Instant::now() });
        Ok(Self { bar, quiet, interrupted, plain })
    }

    /// Set when the user asks to stop.
    #[cfg(feature = "lab")]
    pub(crate) fn flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.interrupted)
    }

    /// Clears the bar, so that results start on a clean line.
    pub(crate) fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }

    fn line(&self, text: &str) {
        match &self.bar {
            Some(bar) => bar.println(text),
            None => say(text),
        }
    }
}

/// One line on standard error. That nobody hears it any more, on a terminal that has gone, ends no clean-up.
fn say(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}

/// Whether a process with this `/proc/PID/status` ignores a signal.
fn is_ignored(signal: i32, status: &str) -> bool {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    mask >> (signal - 1) & 1 == 1
}

impl Progress for TerminalProgress {
    fn phase(&self, name: &str, detail: &str) {
        if self.quiet {
            return;
        }
        let mut plain = self.plain.lock().expect("nobody panics while drawing");
        plain.phase = name.to_owned();
        plain.phase_begin = Instant::now();
        plain.last_line = Instant::now();
        match &self.bar {
            Some(bar) => {
                bar.set_prefix(name.to_owned());
                bar.set_message(detail.to_owned());
                bar.set_position(0);
            }
            None => say(&format!("{name:>12}  {detail}")),
        }
    }

    fn advance(&self, done_ratio: f64, text: &str) {
        if self.quiet {
            return;
        }
        let mut plain = self.plain.lock().expect("nobody panics while drawing");
        let to_go = to_go(plain.phase_begin.elapsed(), done_ratio);
        if let Some(bar) = &self.bar {
            bar.set_position((done_ratio.clamp(0.0, 1.0) * 1000.0) as u64);
            bar.set_message(format!("{text}{to_go}"));
            return;
        }
        if plain.last_line.elapsed() >= PLAIN_LINE_INTERVAL {
            plain.last_line = Instant::now();
            say(&format!("{:>12}  {:3.0} %  {text}{to_go}", plain.phase, done_ratio.clamp(0.0, 1.0) * 100.0));
        }
    }

    fn note(&self, line: &str) {
        if !self.quiet {
            self.line(line);
        }
    }

    fn interrupted(&self) -> bool {
        self.interrupted.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nohup_is_heeded() {
        let status = |mask: &str| format!("Name:\tweft\nSigIgn:\t{mask}\nSigCgt:\t0\n");
        assert!(is_ignored(1, &status("0000000000001001")));
        assert!(!is_ignored(1, &status("0000000000001000")) && !is_ignored(1, "junk"));
    }

    #[test]
    fn what_is_left_is_told_once_it_can_be() {
        let after = |seconds: u64, done: f64| to_go(Duration::from_secs(seconds), done);
        assert_eq!(after(10, 0.25), ", 30 s to go");
        assert_eq!(after(100, 0.25), ", 5 min to go");
        assert_eq!(after(3_600, 0.1), ", 9 h to go");
        for (seconds, done) in [(1, 0.5), (10, 0.01), (10, 1.0), (10, f64::NAN), (10, -1.0)] {
            assert_eq!(after(seconds, done), "", "{seconds} {done}");
        }
    }
}
