//! HTTP for few: so many connections at a time, each with little time to say what it wants.

use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1::Builder;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::sync::Semaphore;

use crate::error::NodeError;
use crate::tcp::{accepted, place};

/// How long a client may take for the head of a request, and be silent before the next.
const HEAD_MAX: Duration = Duration::from_secs(5);

/// What clients may use.
#[derive(Clone, Copy, Debug)]
pub struct WebLimits {
    /// Connections at a time.
    pub connections: usize,
    /// How long each may last.
    pub lasts: Duration,
}

/// Serves until it fails. `listener` does not block.
///
/// # Errors
/// [`NodeError::System`].
pub async fn serve(listener: TcpListener, router: Router, limits: WebLimits) -> Result<(), NodeError> {
    let listener = tokio::net::TcpListener::from_std(listener).map_err(NodeError::system("serving HTTP"))?;
    let service = TowerToHyperService::new(router);
    let mut http = Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(HEAD_MAX);
    let places = Arc::new(Semaphore::new(limits.connections));
    loop {
        let place = place(&places).await;
        let Some((stream, _)) = accepted(listener.accept().await).await else { continue };
        let connection = http.serve_connection(TokioIo::new(stream), service.clone());
        tokio::spawn(async move {
            // Whoever goes or is too slow has had its chance.
            let _ = tokio::time::timeout(limits.lasts, connection).await;
            drop(place);
        });
    }
}
