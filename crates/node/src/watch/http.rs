//! HTTP for whoever watches over a daemon. A thread of its own: who reads slowly or asks often costs the daemon nothing but one
//! look at its numbers a second.

use std::net::TcpListener;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use tokio::sync::{Mutex, oneshot};

use super::{Loop, Question, metrics};
use crate::error::NodeError;
use crate::runner::DaemonKind;
use crate::web::{self, WebLimits};

/// How long a connection may last. Whoever reads often makes another one.
const CONNECTION_MAX: Duration = Duration::from_secs(60);
/// How long a daemon may take to answer.
const ANSWER_MAX: Duration = Duration::from_secs(5);
/// How long the same text is given out.
const FRESH: Duration = Duration::from_secs(1);

/// What answers need.
struct Asked {
    kind: DaemonKind,
    daemon: Loop,
    /// The last text, and when it was made. Who waits for it to be made anew waits for the same.
    text: Mutex<Option<(Instant, Bytes)>>,
}

/// Serves at most so many connections at a time until it fails.
pub(super) async fn serve(listener: TcpListener, kind: DaemonKind, daemon: Loop, max: usize) -> Result<(), NodeError> {
    let router = Router::new()
        .route("/metrics", get(metrics))
        .route("/healthz", get(healthy))
        .route("/readyz", get(ready))
        .with_state(Arc::new(Asked { kind, daemon, text: Mutex::new(None) }));
    web::serve(listener, router, WebLimits { connections: max, lasts: CONNECTION_MAX }).await
}

async fn metrics(State(asked): State<Arc<Asked>>) -> Response {
    match asked.text().await {
        Ok(text) => ([(header::CONTENT_TYPE, metrics::CONTENT_TYPE)], text).into_response(),
        Err(why) => (StatusCode::INTERNAL_SERVER_ERROR, format!("{why}\n")).into_response(),
    }
}

async fn healthy(State(asked): State<Arc<Asked>>) -> Response {
    match asked.daemon(Question::Alive).await {
        Ok(()) => "ok\n".into_response(),
        Err(why) => (StatusCode::SERVICE_UNAVAILABLE, format!("{why}\n")).into_response(),
    }
}

async fn ready(State(asked): State<Arc<Asked>>) -> Response {
    let check = match asked.daemon(Question::Ready).await {
        Ok(check) => check,
        Err(why) => return (StatusCode::SERVICE_UNAVAILABLE, format!("not ready: {why}\n")).into_response(),
    };
    // It may wait for others.
    match tokio::task::spawn_blocking(check).await {
        Ok(Ok(())) => "ready\n".into_response(),
        Ok(Err(why)) => (StatusCode::SERVICE_UNAVAILABLE, format!("not ready: {why}\n")).into_response(),
        Err(_) => (StatusCode::INTERNAL_SERVER_ERROR, "the check failed\n").into_response(),
    }
}

impl Asked {
    /// What the daemon's loop answers.
    async fn daemon<T>(&self, question: impl FnOnce(oneshot::Sender<T>) -> Question) -> Result<T, String> {
        let (sender, answer) = oneshot::channel();
        self.daemon.ask(question(sender));
        let answer = tokio::time::timeout(ANSWER_MAX, answer).await;
        let why = || format!("the daemon has not answered for {} s", ANSWER_MAX.as_secs());
        answer.map_err(|_| why())?.map_err(|_| "the daemon ends".to_owned())
    }

    async fn text(&self) -> Result<Bytes, String> {
        let mut kept = self.text.lock().await;
        if let Some((_, text)) = kept.as_ref().filter(|(made, _)| made.elapsed() < FRESH) {
            return Ok(text.clone());
        }
        let metrics = self.daemon(Question::Metrics).await?.map_err(|error| error.to_string())?;
        let text = Bytes::from(metrics.text(self.kind).map_err(|error| error.to_string())?);
        *kept = Some((Instant::now(), text.clone()));
        Ok(text)
    }
}
