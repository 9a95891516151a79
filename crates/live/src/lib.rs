//! A lab in a browser and over HTTP.
//!
//! ```text
//! a lab's counters ── source ──> hub ──> stream ──> the fabric page in a browser
//! verbs ──> weft_lab ──> the kernel                       |
//!   ^───────────────────── POST, with the token ──────────┘
//! ```
//!
//! * [`serve`]: all of it, until it is to stop
//! * `source`, `hub`: looks at a lab ten times a second, and what of it is kept for who reads
//! * `guard`: who may ask anything at all
//! * [`verbs`]: what can be asked of a lab; the router and [`openapi`] are made from that list
//! * `capture`: frames of its ports, as a file that grows
//! * `http`: answers

mod capture;
mod guard;
mod http;
mod hub;
pub mod openapi;
mod source;
pub mod verbs;

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use weft_lab::{LabError, ProcessId};
use weft_node::NodeError;

use guard::Guard;
pub use guard::Token;
use hub::Hub;

/// How often it is looked whether to stop.
const ATTENTION: Duration = Duration::from_millis(50);

/// Which lab is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Which {
    /// The one of this name.
    Named(String),
    /// Those that this process makes for a run, one after the other. Nobody but the run changes them.
    OfRun(ProcessId),
}

/// Why a lab is not shown any more.
#[derive(Debug, thiserror::Error)]
pub enum LiveError {
    #[error(transparent)]
    Lab(#[from] LabError),
    #[error(transparent)]
    Node(#[from] NodeError),
    #[error("cannot listen on {address}: {why}; name another address with --listen")]
    Listen { address: SocketAddr, why: String },
    #[error("lab `{0}` is too large for a page")]
    TooLarge(String),
    #[error("cannot {what}: {why}")]
    System { what: &'static str, why: std::io::Error },
}

/// A server that listens and has not begun to answer.
#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
    address: SocketAddr,
    token: Token,
}

impl Server {
    /// Listens on an address of this host.
    ///
    /// # Errors
    /// [`LiveError::Listen`], also for an address that stands for all: whoever asks names the one it means.
    pub fn listen(address: SocketAddr) -> Result<Self, LiveError> {
        let failed = |why: String| LiveError::Listen { address, why };
        if address.ip().is_unspecified() {
            return Err(failed("that is every address of this host".to_owned()));
        }
        let listener = TcpListener::bind(address).map_err(|error| failed(error.to_string()))?;
        listener.set_nonblocking(true).map_err(|error| failed(error.to_string()))?;
        let address = listener.local_addr().map_err(|error| failed(error.to_string()))?;
        Ok(Self { listener, address, token: Token::random()? })
    }

    /// What to open in a browser. The token is behind `#`: browsers do not send that.
    pub fn url(&self) -> String {
        format!("http://{}/#token={}", self.address, self.token.text())
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Who changes a lab says this.
    pub fn token(&self) -> &Token {
        &self.token
    }
}

/// Shows a lab until `stop` is set, or until it is taken down.
///
/// # Errors
/// [`LiveError`]: there is no such lab, or what the system refuses.
pub fn serve(server: Server, which: &Which, stop: &Arc<AtomicBool>) -> Result<(), LiveError> {
    let hub = Arc::new(Hub::new());
    let over = Arc::new(AtomicBool::new(false));
    std::thread::scope(|scope| {
        let source = scope.spawn(|| {
            let outcome = source::follow(which, &hub, &|| over.load(Ordering::Acquire) || stop.load(Ordering::Acquire));
            over.store(true, Ordering::Release);
            outcome
        });
        let served = answer(server, &hub, || over.load(Ordering::Acquire) || stop.load(Ordering::Acquire));
        over.store(true, Ordering::Release);
        let followed = source.join().expect("looking at a lab does not panic");
        followed.and(served)
    })
}

fn answer(server: Server, hub: &Arc<Hub>, is_over: impl Fn() -> bool) -> Result<(), LiveError> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
    let runtime = runtime.map_err(|why| LiveError::System { what: "start HTTP's runtime", why })?;
    let Server { listener, address, token } = server;
    let router = http::router(Arc::clone(hub), Guard::new(address, token));
    let served = runtime.block_on(async {
        let over = async {
            while !is_over() {
                tokio::time::sleep(ATTENTION).await;
            }
        };
        tokio::select! {
            () = over => Ok(()),
            outcome = weft_node::web::serve(listener, router, http::LIMITS) => outcome,
        }
    });
    // Streams see the end of the lab first.
    runtime.shutdown_timeout(ATTENTION * 4);
    Ok(served?)
}
