//! The log: lines on standard error, each kind of them limited, so that nobody outside fills a disk with what a daemon says of it.

use std::collections::HashMap;
use std::fmt;
use std::io::IsTerminal;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use tracing::callsite::Identifier;
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::FmtContext;
use tracing_subscriber::fmt::format::{self, Format, FormatEvent, FormatFields, Json, Writer};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt;

use crate::args::LogFormat;
use crate::exit::FAILURE_LOG;

/// Warnings, that a daemon is ready, and what somebody changed of it.
const QUIET: &str = "warn,weft::ready=info,weft::changes=info";

/// Lines of one place in the code that may come at once.
const BURST: u32 = 100;
/// Between two of them after that.
const INTERVAL: Duration = Duration::from_millis(100);

/// Logs go to standard error, so that standard output holds results only; with colours only where somebody sees them. As JSON they have
/// a line for each event, also for a failure or a panic at the end.
pub(crate) fn start(verbose: u8, format: LogFormat) {
    let wants_none = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let colours = std::io::stderr().is_terminal() && !wants_none;
    let log = tracing_subscriber::registry().with(wanted(verbose, std::env::var("RUST_LOG").ok().as_deref()));
    let lines = tracing_subscriber::fmt::layer().with_ansi(colours).with_writer(std::io::stderr);
    match format {
        LogFormat::Text => log.with(lines.event_format(Limited::new(format::format(), in_words))).init(),
        LogFormat::Json => {
            let lines = lines.with_ansi(false).json().event_format(Limited::new(json(), in_json));
            log.with(lines).init();
            std::panic::set_hook(Box::new(|panic| tracing::error!(target: FAILURE_LOG, "{panic}")));
        }
    }
}

/// Which events become lines: those that `asked` (`RUST_LOG`) lists, or as many as `verbose` says; failures always.
fn wanted(verbose: u8, asked: Option<&str>) -> Targets {
    let level = [QUIET, "info", "debug", "trace"][usize::from(verbose.min(3))];
    let listed = asked.and_then(|asked| asked.parse::<Targets>().ok());
    let wanted = listed.unwrap_or_else(|| level.parse().expect("it is a list of directives"));
    wanted.with_target(FAILURE_LOG, Level::ERROR)
}

/// A line for each event.
fn json() -> Format<Json> {
    format::format().json().flatten_event(true).with_current_span(false).with_span_list(false)
}

/// Another format, without what is too much. Who asks for more than `info` gets everything.
struct Limited<F> {
    inner: F,
    /// Says how many lines are missing, in the words of the format.
    missing: fn(&mut Writer<'_>, u64) -> fmt::Result,
    places: Mutex<HashMap<Identifier, Place>>,
}

impl<F> Limited<F> {
    fn new(inner: F, missing: fn(&mut Writer<'_>, u64) -> fmt::Result) -> Self {
        Self { inner, missing, places: Mutex::default() }
    }

    /// How many lines like this one are missing before it; `None`: it is missing, too.
    fn may(&self, event: &Event<'_>, now: Instant) -> Option<u64> {
        if *event.metadata().level() > Level::INFO {
            return Some(0);
        }
        let mut places = self.places.lock().unwrap_or_else(PoisonError::into_inner);
        places.entry(event.metadata().callsite()).or_insert_with(|| Place::new(now)).may(now)
    }
}

impl<S, N, F> FormatEvent<S, N> for Limited<F>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
    F: FormatEvent<S, N>,
{
    fn format_event(&self, context: &FmtContext<'_, S, N>, mut writer: Writer<'_>, event: &Event<'_>) -> fmt::Result {
        let Some(missing) = self.may(event, Instant::now()) else { return Ok(()) };
        if missing > 0 {
            (self.missing)(&mut writer, missing)?;
        }
        self.inner.format_event(context, writer, event)
    }
}

/// As people read it.
fn in_words(writer: &mut Writer<'_>, missing: u64) -> fmt::Result {
    writeln!(writer, "({missing} lines like the next one were too many)")
}

/// As programs read it.
fn in_json(writer: &mut Writer<'_>, missing: u64) -> fmt::Result {
    writeln!(writer, r#"{{"level":"WARN","message":"lines like the next one were too many","missing":{missing}}}"#)
}

/// A place in the code that writes lines.
#[derive(Debug)]
struct Place {
    /// When what was written would have been written at the usual distance (GCRA's theoretical arrival time).
    paid: Instant,
    missing: u64,
}

impl Place {
    fn new(now: Instant) -> Self {
        Self { paid: now, missing: 0 }
    }

    fn may(&mut self, now: Instant) -> Option<u64> {
        let paid = self.paid.max(now) + INTERVAL;
        if paid > now + INTERVAL * BURST {
            self.missing += 1;
            return None;
        }
        self.paid = paid;
        Some(std::mem::take(&mut self.missing))
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::sync::Arc;

    use super::*;

    #[test]
    fn the_environment_says_more_than_the_command_line_and_failures_are_always_told() {
        let tells = |verbose, asked, target, level| wanted(verbose, asked).would_enable(target, &level);
        assert!(tells(0, None, "weft_node::agent", Level::WARN) && !tells(0, None, "weft_node::agent", Level::INFO));
        assert!(tells(0, None, "weft::changes", Level::INFO));
        assert!(tells(0, None, "weft::ready", Level::INFO) && !tells(0, None, "weft::ready", Level::DEBUG));
        assert!(tells(1, None, "h2::client", Level::INFO) && tells(9, None, "h2::client", Level::TRACE));
        let asked = Some("warn,weft_node=debug,weft_node::agent=off");
        assert!(tells(3, asked, "weft_node::tor", Level::DEBUG) && !tells(3, asked, "weft_node::tor", Level::TRACE));
        assert!(!tells(3, asked, "weft_node::agent", Level::ERROR) && !tells(3, asked, "weft_lab", Level::INFO));
        assert!(tells(0, Some("off"), FAILURE_LOG, Level::ERROR));
        assert!(tells(2, Some("a=b=c"), "weft_lab", Level::DEBUG), "what is no list says nothing");
    }

    #[test]
    fn a_place_writes_a_burst_and_then_now_and_then_and_says_how_many_are_missing() {
        let start = Instant::now();
        let mut place = Place::new(start);
        assert!((0..BURST).all(|_| place.may(start) == Some(0)));
        assert!((0..50).all(|_| place.may(start).is_none()));
        assert_eq!(place.may(start + INTERVAL), Some(50));
        assert_eq!(place.may(start + INTERVAL), None);
        let later = start + INTERVAL * (BURST + 5);
        assert_eq!(place.may(later), Some(1));
        assert!((1..BURST).all(|_| place.may(later) == Some(0)));
    }

    #[derive(Clone, Default)]
    struct Kept(Arc<Mutex<Vec<u8>>>);

    impl Write for Kept {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn one_kind_of_line_does_not_keep_others_back_and_every_line_of_json_can_be_read() {
        let kept = Kept::default();
        let writer = kept.clone();
        let format = Limited::new(json(), in_json);
        let log = tracing_subscriber::fmt().json().event_format(format).with_writer(move || writer.clone()).finish();
        tracing::subscriber::with_default(log, || {
            let say = |what: &str| tracing::warn!(what, "said by somebody outside");
            (0..1000).for_each(|_| say("much"));
            tracing::error!("something else");
            std::thread::sleep(INTERVAL);
            say("last");
        });
        let text = String::from_utf8(kept.0.lock().unwrap().clone()).unwrap();
        let lines: Vec<serde_json::Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert!((103..200).contains(&lines.len()), "{}", lines.len());
        assert!(lines.iter().any(|line| line["message"] == "something else"));
        assert!(lines.iter().any(|line| line["missing"].as_u64().is_some_and(|missing| missing > 800)));
        assert_eq!(lines.last().unwrap()["what"], "last");
    }
}
