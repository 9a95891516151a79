//! HTTP for whoever watches over the server: `/metrics` (Prometheus text), `/healthz` (the process answers) and `/readyz`
//! (updates would be kept now; says why not).

use std::net::TcpListener;
use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;

use super::metrics;
use super::sessions::Handler;
use crate::error::NodeError;

/// Serves until it fails.
pub(super) async fn serve(listener: TcpListener, handler: Arc<Handler>) -> Result<(), NodeError> {
    let failed = || NodeError::system("serving HTTP");
    let listener = tokio::net::TcpListener::from_std(listener).map_err(failed())?;
    let router = Router::new()
        .route("/metrics", get(metrics))
        .route("/healthz", get(async || "ok\n"))
        .route("/readyz", get(ready))
        .with_state(handler);
    axum::serve(listener, router).await.map_err(failed())
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
