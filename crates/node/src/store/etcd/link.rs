//! Calls to a cluster of which any node may be dead, paused, cut off or without a leader.
//!
//! Each endpoint has a connection of its own. A call goes to the endpoint that answered last; when there is no answer
//! for a while, it goes to the next one too, and whichever answers first counts. So every call must be one that may be
//! carried out more than once.

use std::future::Future;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

use etcd_client::{Channel, Client, ConnectOptions, Error};
use futures_util::stream::{FuturesUnordered, StreamExt};
use tokio::sync::OnceCell;
use tonic::Code;
use tonic::transport::Endpoint;

use super::settings::causes;
use crate::store::{EtcdSettings, StoreError};

/// How long an endpoint has before another is asked too.
const HEDGE: Duration = Duration::from_millis(200);
/// How long to wait after an error before the next endpoint is asked.
const PAUSE: Duration = Duration::from_millis(15);
/// Largest answer taken, bytes.
const ANSWER_MAX: usize = 256 << 20;

/// The endpoints of a cluster.
pub(super) struct Link {
    /// Others once files were read again.
    connections: RwLock<Arc<Connections>>,
    nodes: usize,
    /// The endpoint that answered last.
    current: AtomicUsize,
    name: String,
    pub(super) timeout: Duration,
}

/// A connection to each endpoint, made when it is needed.
struct Connections {
    nodes: Vec<Node>,
    options: ConnectOptions,
}

struct Node {
    endpoint: Endpoint,
    client: OnceCell<Client>,
}

/// What an error of a node means for the call.
enum Meaning {
    /// Another node, or the same one later, may carry it out; this one did not.
    Refused,
    /// The same, but this one may have carried it out.
    Unsure,
    /// It will not be carried out anywhere.
    Final(StoreError),
}

impl Link {
    /// Checks the settings; connects when that is needed.
    pub(super) fn new(settings: &EtcdSettings) -> Result<Self, StoreError> {
        let connections = Connections::new(settings)?;
        let nodes = connections.nodes.len();
        let spread = crate::sys::random_u128().map_err(|error| settings.fault(error.to_string()))?;
        let current = AtomicUsize::new(spread as usize % nodes);
        let (name, timeout) = (settings.name(), settings.timeout());
        Ok(Self { connections: RwLock::new(Arc::new(connections)), nodes, current, name, timeout })
    }

    /// Connects anew, with what the files of the same settings hold now. What is under way goes on over the old connections.
    pub(super) fn renew(&self, settings: &EtcdSettings) -> Result<(), StoreError> {
        let connections = Arc::new(Connections::new(settings)?);
        *self.connections.write().unwrap_or_else(PoisonError::into_inner) = connections;
        Ok(())
    }

    /// The endpoint that answered last.
    pub(super) fn current(&self) -> usize {
        self.current.load(Ordering::Relaxed)
    }

    /// The one after this.
    pub(super) fn after(&self, node: usize) -> usize {
        (node + 1) % self.nodes
    }

    /// A client of one endpoint only.
    pub(super) async fn client(&self, node: usize) -> Result<Client, Error> {
        let connections = Arc::clone(&self.connections.read().unwrap_or_else(PoisonError::into_inner));
        let Node { endpoint, client } = &connections.nodes[node % self.nodes];
        let connect =
            || Client::from_channel(Channel::Tonic(endpoint.connect_lazy()), Some(connections.options.clone()));
        client.get_or_try_init(connect).await.cloned()
    }

    /// Carries out `call`, which may be carried out more than once, on any endpoint.
    ///
    /// # Errors
    /// What no endpoint can change, or [`StoreError::Unreachable`] or [`StoreError::Unknown`] when the time is over.
    pub(super) async fn call<T, F>(&self, deadline: Instant, call: impl Fn(Client) -> F) -> Result<T, StoreError>
    where
        F: Future<Output = Result<T, Error>>,
    {
        self.call_counted(deadline, call).await.map(|(answer, _)| answer)
    }

    /// [`Self::call`], which also says how often the call was begun.
    pub(super) async fn call_counted<T, F>(
        &self,
        deadline: Instant,
        call: impl Fn(Client) -> F,
    ) -> Result<(T, usize), StoreError>
    where
        F: Future<Output = Result<T, Error>>,
    {
        let mut node = self.current();
        let attempt = |node: usize| {
            let call = &call;
            async move {
                let outcome = match self.client(node).await {
                    Ok(client) => call(client).await,
                    Err(error) => Err(error),
                };
                (node, outcome)
            }
        };
        let mut attempts = FuturesUnordered::new();
        attempts.push(attempt(node));
        let (mut begun, mut unsure, mut last) = (1, false, None);
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(self.over(unsure || !attempts.is_empty(), last.as_ref()));
            }
            let patience = if attempts.is_empty() { PAUSE } else { HEDGE };
            match tokio::time::timeout(patience.min(left), next(&mut attempts)).await {
                Ok((node, Ok(answer))) => {
                    self.current.store(node, Ordering::Relaxed);
                    return Ok((answer, begun));
                }
                Ok((_, Err(error))) => {
                    match self.meaning(&error) {
                        Meaning::Final(StoreError::Unreachable { .. }) | Meaning::Refused => {}
                        Meaning::Unsure => unsure = true,
                        Meaning::Final(_) if unsure => return Err(self.over(true, Some(&error))),
                        Meaning::Final(error) => return Err(error),
                    }
                    last = Some(error);
                    continue;
                }
                Err(_) => {}
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if attempts.len() <= 2 * self.nodes && left > 2 * PAUSE {
                node = self.after(node);
                begun += 1;
                attempts.push(attempt(node));
            }
        }
    }

    fn over(&self, unsure: bool, last: Option<&Error>) -> StoreError {
        let ms = self.timeout.as_millis();
        let store = self.name.clone();
        let why =
            last.map_or_else(|| format!("no answer within {ms} ms"), |error| format!("{} (for {ms} ms)", said(error)));
        if unsure { StoreError::Unknown { store, why } } else { StoreError::Unreachable { store, why } }
    }

    /// An operation that any endpoint could have carried out in time, but none did.
    pub(super) fn unreachable(&self, why: impl Into<String>) -> StoreError {
        StoreError::Unreachable { store: self.name.clone(), why: why.into() }
    }

    /// There is something else where our data should be.
    pub(super) fn foreign(&self, key: &str, why: String) -> StoreError {
        StoreError::Foreign { store: self.name.clone(), key: key.to_owned(), why }
    }

    /// The space quota is used up.
    pub(super) fn full(&self) -> StoreError {
        StoreError::Quota { store: self.name.clone() }
    }

    /// The cluster's name in messages.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    fn meaning(&self, error: &Error) -> Meaning {
        let Error::GRpcStatus(status) = error else {
            return match error {
                Error::TransportError(_) | Error::IoError(_) | Error::EndpointError(_) => Meaning::Unsure,
                other => Meaning::Final(self.unreachable(said(other))),
            };
        };
        let message = status.message();
        match status.code() {
            Code::ResourceExhausted if message.contains("database space exceeded") => Meaning::Final(self.full()),
            Code::ResourceExhausted if message.contains("too many requests") => Meaning::Refused,
            Code::Unavailable if message.contains("no leader") => Meaning::Refused,
            Code::Unauthenticated | Code::PermissionDenied => {
                Meaning::Final(StoreError::Denied { store: self.name.clone(), why: message.to_owned() })
            }
            Code::OutOfRange if message.contains("compacted") => {
                Meaning::Final(StoreError::Compacted { from: 0, compacted: 0 })
            }
            Code::InvalidArgument | Code::ResourceExhausted | Code::Unimplemented | Code::FailedPrecondition => {
                Meaning::Final(StoreError::Rejected { store: self.name.clone(), why: message.to_owned() })
            }
            _ if never_sent(status) => Meaning::Refused,
            _ => Meaning::Unsure,
        }
    }
}

impl Connections {
    fn new(settings: &EtcdSettings) -> Result<Self, StoreError> {
        let nodes = settings.connections()?.into_iter().map(|endpoint| Node { endpoint, client: OnceCell::new() });
        Ok(Self { nodes: nodes.collect(), options: settings.options()? })
    }
}

/// Whether there was no connection to send the request over.
fn never_sent(status: &tonic::Status) -> bool {
    let mut cause: Option<&dyn std::error::Error> = Some(status);
    while let Some(error) = cause {
        if error.to_string().contains("tcp connect error") {
            return true;
        }
        cause = error.source();
    }
    false
}

/// The next outcome; none ever if nothing is on its way.
async fn next<F: Future>(attempts: &mut FuturesUnordered<F>) -> F::Output {
    match attempts.next().await {
        Some(outcome) => outcome,
        None => std::future::pending().await,
    }
}

/// What a node said, in one line.
pub(super) fn said(error: &Error) -> String {
    match error {
        Error::GRpcStatus(status) => {
            let cause = std::error::Error::source(status).map(causes).unwrap_or_default();
            let message = status.message();
            if cause.is_empty() || message.contains(&cause) {
                message.to_owned()
            } else {
                format!("{message}: {cause}")
            }
        }
        other => causes(other),
    }
}

/// Takes clients that accept large answers.
pub(super) fn reader(client: &Client) -> etcd_client::KvClient {
    client.kv_client().max_decoding_message_size(ANSWER_MAX)
}
