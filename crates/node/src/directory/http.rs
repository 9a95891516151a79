//! HTTP for whoever watches over the server: `/metrics` (Prometheus text), `/healthz` (the process answers) and `/readyz`
//! (updates would be kept now; says why not).

use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use hyper::server::conn::http1::Builder;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::sync::Semaphore;

use super::metrics;
use super::sessions::{Handler, accepted, place};
use crate::error::NodeError;

/// How long a client may take for the head of a request, and be silent before the next.
const HEAD_MAX: Duration = Duration::from_secs(5);
/// How long a connection may last. Whoever reads often makes another one.
const CONNECTION_MAX: Duration = Duration::from_secs(60);

/// Serves at most so many connections at a time until it fails.
pub(super) async fn serve(listener: TcpListener, handler: Arc<Handler>, max: usize) -> Result<(), NodeError> {
    let failed = || NodeError::system("serving HTTP");
    let listener = tokio::net::TcpListener::from_std(listener).map_err(failed())?;
    let router = Router::new()
        .route("/metrics", get(metrics))
        .route("/healthz", get(async || "ok\n"))
        .route("/readyz", get(ready))
        .with_state(handler);
    let service = TowerToHyperService::new(router);
    let mut http = Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(HEAD_MAX);
    let places = Arc::new(Semaphore::new(max));
    loop {
        let place = place(&places).await;
        let Some((stream, _)) = accepted(listener.accept().await).await else { continue };
        let connection = http.serve_connection(TokioIo::new(stream), service.clone());
        tokio::spawn(async move {
            // Whoever goes or is too slow has had its chance.
            let _ = tokio::time::timeout(CONNECTION_MAX, connection).await;
            drop(place);
        });
    }
}

async fn metrics(State(handler): State<Arc<Handler>>) -> Response {
    let status = handler.status();
    match metrics::text(status) {
        Ok(text) => ([(header::CONTENT_TYPE, metrics::CONTENT_TYPE)], text).into_response(),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, format!("{error}\n")).into_response(),
    }
}

async fn ready(State(handler): State<Arc<Handler>>) -> Response {
    // It may wait for the store.
    match tokio::task::spawn_blocking(move || handler.ready()).await {
        Ok(Ok(())) => "ready\n".into_response(),
        Ok(Err(why)) => (StatusCode::SERVICE_UNAVAILABLE, format!("not ready: {why}\n")).into_response(),
        Err(_) => (StatusCode::INTERNAL_SERVER_ERROR, "the check failed\n").into_response(),
    }
}
