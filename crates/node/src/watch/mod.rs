//! What every daemon tells whoever watches over it, by HTTP where its `http_listen` says: `/metrics` (Prometheus), `/healthz` (its
//! loop turns) and `/readyz` (it can do its work; says why not).
//!
//! ```text
//! HTTP's thread ──Question──> the daemon's loop ──> its metrics, or whether it is ready
//! ```
//!
//! A daemon lists its metrics ([`Metrics`]) and nothing else; connections, times and the text are here, once for all.

mod http;
mod metrics;
mod process;

use std::net::{SocketAddrV4, TcpListener};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::runtime::Builder;
use tokio::sync::oneshot;
use tracing::warn;

use crate::descriptors::Places;
use crate::error::NodeError;
use crate::runner::{Daemon, DaemonKind};
use crate::stop::Requests;
use crate::tcp;

pub(crate) use metrics::Metrics;
pub(crate) use prometheus_client::registry::Unit;

/// How long answers under way may take when the daemon ends.
const PATIENCE: Duration = Duration::from_millis(100);

/// Whether a daemon is ready: what is left to find out, which may wait for others. The error is one line.
pub(crate) type Readiness = Box<dyn FnOnce() -> Result<(), String> + Send>;

/// What HTTP asks the daemon's loop. At most one at a time for each connection.
enum Question {
    Alive(oneshot::Sender<()>),
    Ready(oneshot::Sender<Readiness>),
    Metrics(oneshot::Sender<Result<Metrics, NodeError>>),
}

/// The way to the daemon's loop.
struct Loop {
    questions: Sender<Question>,
    wake: Arc<Requests>,
}

/// The daemon's end. Readable (`AsFd`) when there is something to answer. Dropping it ends HTTP.
pub(crate) struct Watch {
    address: Option<SocketAddrV4>,
    questions: Receiver<Question>,
    wake: Arc<Requests>,
    /// Dropped, it ends the thread.
    over: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// Listens where the settings say; before anything is made, so that an address in use leaves nothing behind.
pub(crate) fn listen(address: SocketAddrV4) -> Result<TcpListener, NodeError> {
    process::begins();
    tcp::listen(address, "http_listen")
}

impl Watch {
    /// Answers from now on.
    pub(crate) fn start(listener: TcpListener, kind: DaemonKind) -> Result<Self, NodeError> {
        let address = tcp::address_of(&listener);
        let (sender, questions) = channel();
        let wake = Requests::new()?;
        let daemon = Loop { questions: sender, wake: Arc::clone(&wake) };
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(NodeError::system("starting HTTP's runtime"))?;
        let (over, ended) = oneshot::channel();
        let serve = move || {
            let outcome = runtime.block_on(async {
                tokio::select! {
                    _ = ended => Ok(()),
                    outcome = http::serve(listener, kind, daemon, Places::here().http) => outcome,
                }
            });
            if let Err(error) = outcome {
                warn!(%error, "no metrics from now on");
            }
            runtime.shutdown_timeout(PATIENCE);
        };
        let thread = std::thread::Builder::new().name("http".to_owned()).spawn(serve);
        let thread = thread.map_err(NodeError::system("starting a thread"))?;
        Ok(Self { address, questions, wake, over: Some(over), thread: Some(thread) })
    }

    /// Where it listens.
    pub(crate) fn address(&self) -> Option<SocketAddrV4> {
        self.address
    }

    /// Answers what was asked. Who no longer waits is not told.
    pub(crate) fn answer<D: Daemon>(&self, daemon: &D) {
        self.wake.take();
        while let Ok(question) = self.questions.try_recv() {
            let _ = match question {
                Question::Alive(reply) => reply.send(()).ok(),
                Question::Ready(reply) => reply.send(daemon.readiness()).ok(),
                Question::Metrics(reply) => reply.send(metrics_of(daemon)).ok(),
            };
        }
    }
}

fn metrics_of<D: Daemon>(daemon: &D) -> Result<Metrics, NodeError> {
    let mut metrics = Metrics::default();
    daemon.metrics(&mut metrics)?;
    Ok(metrics)
}

/// The text of a scrape.
pub(crate) fn text_of<D: Daemon>(daemon: &D) -> Result<String, NodeError> {
    let text = metrics_of(daemon)?.text(D::KIND);
    Ok(text.expect("a text takes whatever is written to it"))
}

impl Loop {
    fn ask(&self, question: Question) {
        // Nobody is there to answer once the daemon ends; then the answer's channel is closed.
        let _ = self.questions.send(question);
        self.wake.request();
    }
}

impl AsFd for Watch {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.wake.as_fd()
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.over.take();
        if let Some(thread) = self.thread.take() {
            // It has said why, if it failed.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::io::{Read, Write};
    use std::net::{Ipv4Addr, TcpStream};
    use std::path::Path;
    use std::time::Instant;

    use serde::Serialize;

    use super::*;
    use crate::poll::Poller;
    use crate::runner;
    use crate::socket::Nothing;

    #[derive(Clone, Serialize)]
    struct NoSettings;

    impl runner::Settings for NoSettings {
        const LIVE: &'static [&'static str] = &[];

        fn check(&self) -> Result<(), NodeError> {
            Ok(())
        }

        fn places(&self) -> (&Path, Option<&Path>) {
            (Path::new("/nowhere"), None)
        }

        fn http_listen(&self) -> Option<SocketAddrV4> {
            None
        }
    }

    /// Counts how often it is asked for its metrics.
    struct Asked(Cell<u64>);

    impl Daemon for Asked {
        const KIND: DaemonKind = DaemonKind::Tor;
        type Settings = NoSettings;
        type What = ();
        type Shown = ();
        type Item = Nothing;

        fn start(_: &NoSettings) -> Result<Self, NodeError> {
            Ok(Self(Cell::new(0)))
        }

        fn ready_line(&self) -> String {
            String::new()
        }

        fn show(&self, (): ()) -> Result<(), NodeError> {
            Ok(())
        }

        fn metrics(&self, to: &mut Metrics) -> Result<(), NodeError> {
            self.0.set(self.0.get() + 1);
            to.gauge("asked", "How often", self.0.get());
            Ok(())
        }

        fn readiness(&self) -> Readiness {
            Box::new(|| Err("not yet".to_owned()))
        }

        fn reload(&mut self, _: &NoSettings) -> Result<Vec<String>, NodeError> {
            Ok(Vec::new())
        }

        fn end(self, _: bool) -> Result<(), NodeError> {
            Ok(())
        }
    }

    fn get(at: SocketAddrV4, path: &str) -> String {
        let mut stream = TcpStream::connect(at).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    #[test]
    fn however_many_ask_the_daemon_counts_once_a_second() {
        let daemon = Asked::start(&NoSettings).unwrap();
        let watch = Watch::start(listen(SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0)).unwrap(), Asked::KIND).unwrap();
        let at = watch.address().unwrap();
        let poller = Poller::new().unwrap();
        poller.add(&watch, 0).unwrap();
        let began = Instant::now();
        std::thread::scope(|scope| {
            let scrape = || (0..20).map(|_| get(at, "/metrics")).collect::<Vec<String>>();
            let clients: Vec<_> = (0..8).map(|_| scope.spawn(scrape)).collect();
            while !clients.iter().all(|client| client.is_finished()) {
                poller.wait(Some(10_000_000)).unwrap();
                watch.answer(&daemon);
            }
            for answer in clients.into_iter().flat_map(|client| client.join().unwrap()) {
                assert!(answer.starts_with("HTTP/1.1 200") && answer.contains("\nweft_tor_asked "), "{answer}");
            }
        });
        let (asked, seconds) = (daemon.0.get(), began.elapsed().as_secs());
        assert!((1..=seconds + 1).contains(&asked), "{asked} times in {seconds} s");
        let others = std::thread::scope(|scope| {
            let others = scope.spawn(|| [get(at, "/healthz"), get(at, "/readyz"), get(at, "/config")]);
            while !others.is_finished() {
                poller.wait(Some(10_000_000)).unwrap();
                watch.answer(&daemon);
            }
            others.join().unwrap()
        });
        assert!(others[0].starts_with("HTTP/1.1 200") && others[0].ends_with("ok\n"), "{}", others[0]);
        assert!(others[1].starts_with("HTTP/1.1 503") && others[1].ends_with("not ready: not yet\n"), "{}", others[1]);
        assert!(others[2].starts_with("HTTP/1.1 404"), "{}", others[2]);
        drop(watch);
        assert!(TcpStream::connect(at).is_err(), "nobody listens any more");
    }
}
