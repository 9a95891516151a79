//! Answers: the page to anybody who asks this server by its name, everything else to who has the token.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{DefaultBodyLimit, Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, get, post};
use futures_util::stream;
use serde_json::{Value, json};
use tokio::sync::Semaphore;
use weft_node::web::WebLimits;
use weft_scenario::engine::Progress;

use crate::capture;
use crate::guard::Guard;
use crate::hub::{Hub, News};
use crate::openapi;
use crate::verbs::{self, Refusal, Verb};

/// Connections: a browser opens up to six. A page's stream lasts as long as it is looked at; then it comes again.
pub(crate) const LIMITS: WebLimits = WebLimits { connections: 64, lasts: Duration::from_secs(12 * 3600) };
/// Longest request.
const BODY_MAX: usize = 64 << 10;
/// How long the next look is waited for.
const BEGINNING_MAX: Duration = Duration::from_secs(5);

/// Captures at a time.
const CAPTURES_MOST: usize = 8;

/// What answers need.
struct Desk {
    hub: Arc<Hub>,
    guard: Guard,
    /// One change at a time, in the order in which they come.
    turn: tokio::sync::Mutex<()>,
    /// Captures that may begin.
    captures: Arc<Semaphore>,
    page: String,
    openapi: String,
}

/// All answers.
pub(crate) fn router(hub: Arc<Hub>, guard: Guard) -> Router {
    let page = weft_experiment::page::render_live().expect("the page is one of ours");
    let openapi = serde_json::to_string_pretty(&openapi::document()).expect("a document is plain data");
    let desk = Arc::new(Desk {
        hub,
        guard,
        turn: tokio::sync::Mutex::new(()),
        captures: Arc::new(Semaphore::new(CAPTURES_MOST)),
        page,
        openapi,
    });
    let mut api = Router::new()
        .route("/lab", get(lab))
        .route("/document", get(document))
        .route("/stream", get(stream_of))
        .route("/capture", post(capture_of));
    for verb in verbs::all() {
        api = api.route(&format!("/{}", verb.word), route(verb));
    }
    let api = api.layer(middleware::from_fn_with_state(Arc::clone(&desk), with_token));
    Router::new()
        .route("/", get(page_of))
        .route("/openapi.json", get(openapi_of))
        .nest("/api/v1", api)
        .fallback(|| async { said(StatusCode::NOT_FOUND, "there is no such thing; see /openapi.json") })
        .method_not_allowed_fallback(|| async { said(StatusCode::METHOD_NOT_ALLOWED, "not so; see /openapi.json") })
        .layer(DefaultBodyLimit::max(BODY_MAX))
        .layer(middleware::from_fn_with_state(Arc::clone(&desk), meant))
        .with_state(desk)
}

fn said(status: StatusCode, why: &str) -> Response {
    answer(status, &json!({ "error": why }))
}

fn answer(status: StatusCode, value: &Value) -> Response {
    (status, [(header::CONTENT_TYPE, "application/json")], value.to_string()).into_response()
}

/// Lets in what was meant for this server; nobody keeps or frames an answer.
async fn meant(State(desk): State<Arc<Desk>>, request: Request, next: Next) -> Response {
    let mut response = match desk.guard.meant(request.headers()) {
        Ok(()) => next.run(request).await,
        Err((status, why)) => said(status, why),
    };
    for (name, value) in [
        (header::CACHE_CONTROL, "no-store"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::CONTENT_SECURITY_POLICY, "frame-ancestors 'none'"),
    ] {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}

async fn with_token(State(desk): State<Arc<Desk>>, request: Request, next: Next) -> Response {
    match desk.guard.allowed(request.headers()) {
        Ok(()) => next.run(request).await,
        Err((status, why)) => said(status, why),
    }
}

async fn page_of(State(desk): State<Arc<Desk>>) -> Response {
    ([(header::CONTENT_TYPE, "text/html; charset=utf-8")], desk.page.clone()).into_response()
}

async fn openapi_of(State(desk): State<Arc<Desk>>) -> Response {
    ([(header::CONTENT_TYPE, "application/json")], desk.openapi.clone()).into_response()
}

fn no_lab() -> Response {
    said(StatusCode::NOT_FOUND, "no lab is up")
}

/// What is on disk about the lab.
async fn lab(State(desk): State<Arc<Desk>>) -> Response {
    let Some(shown) = desk.hub.shown() else { return no_lab() };
    match weft_lab::ps(&shown.lab) {
        Ok(state) => answer(StatusCode::OK, &serde_json::to_value(state).expect("a state is plain data")),
        Err(error) => said(StatusCode::NOT_FOUND, &error.to_string()),
    }
}

async fn document(State(desk): State<Arc<Desk>>) -> Response {
    if desk.hub.shown().is_none() {
        return no_lab();
    }
    match tokio::time::timeout(BEGINNING_MAX, desk.hub.ask()).await {
        Ok(Ok(beginning)) => {
            let body = serde_json::to_string(&beginning).expect("a document is plain data");
            ([(header::CONTENT_TYPE, "application/json")], body).into_response()
        }
        _ => no_lab(),
    }
}

/// Looks as server-sent events, from the number after `Last-Event-ID` on.
async fn stream_of(State(desk): State<Arc<Desk>>, headers: HeaderMap) -> Response {
    let last = headers.get("last-event-id").and_then(|value| value.to_str().ok()?.parse::<u64>().ok());
    let hub = Arc::clone(&desk.hub);
    let from = last.map_or_else(|| hub.next(), |last| last.saturating_add(1));
    let changes = hub.changes();
    let events = stream::unfold(Some((hub, changes, from)), |reader| async {
        let (hub, mut changes, from) = reader?;
        loop {
            let news = hub.news(from);
            match news {
                None if changes.changed().await.is_err() => return None,
                None => {}
                Some(News::Looks(looks)) => {
                    let next = looks.last().map_or(from, |(number, _)| number + 1);
                    let text = looks.iter().map(|(number, look)| format!("id: {number}\ndata: {look}\n\n"));
                    return Some((text.collect::<String>(), Some((hub, changes, next))));
                }
                Some(News::Others) => return Some(("event: others\ndata:\n\n".to_owned(), None)),
                Some(News::Gone) => return Some(("event: gone\ndata:\n\n".to_owned(), None)),
            }
        }
    });
    let body = Body::from_stream(futures_util::StreamExt::map(events, Ok::<_, Infallible>));
    ([(header::CONTENT_TYPE, "text/event-stream")], body).into_response()
}

fn route(verb: Verb) -> MethodRouter<Arc<Desk>> {
    let verb = Arc::new(verb);
    post(move |State(desk): State<Arc<Desk>>, headers: HeaderMap, body: Bytes| {
        let verb = Arc::clone(&verb);
        async move { act(&desk, &verb, &headers, body).await }
    })
}

/// Whether a body is JSON: a page from elsewhere cannot send that without asking first.
fn is_json(headers: &HeaderMap) -> bool {
    headers.get(header::CONTENT_TYPE).is_some_and(|kind| kind.as_bytes().starts_with(b"application/json"))
}

fn not_json() -> Response {
    said(StatusCode::UNSUPPORTED_MEDIA_TYPE, "send JSON: `Content-Type: application/json`")
}

/// Frames, as long as they are read.
async fn capture_of(State(desk): State<Arc<Desk>>, headers: HeaderMap, body: Bytes) -> Response {
    if !is_json(&headers) {
        return not_json();
    }
    let Some(shown) = desk.hub.shown() else { return no_lab() };
    let wanted = serde_json::from_slice::<capture::ToCapture>(&body).map_err(|error| error.to_string());
    let options = match wanted.and_then(|wanted| wanted.options(&shown.lab)) {
        Ok(options) => options,
        Err(why) => return said(StatusCode::BAD_REQUEST, &why),
    };
    let Ok(turn) = Arc::clone(&desk.captures).try_acquire_owned() else {
        return said(StatusCode::CONFLICT, "as many captures run as may");
    };
    match capture::begun(options, turn).await {
        Ok(file) => ([(header::CONTENT_TYPE, "application/x-pcapng")], file).into_response(),
        Err(why) => said(StatusCode::CONFLICT, &why),
    }
}

async fn act(desk: &Desk, verb: &Arc<Verb>, headers: &HeaderMap, body: Bytes) -> Response {
    if !is_json(headers) {
        return not_json();
    }
    let _turn = if verb.changes { Some(desk.turn.lock().await) } else { None };
    let Some(shown) = desk.hub.shown() else { return no_lab() };
    if verb.changes && !shown.may_change {
        return said(StatusCode::CONFLICT, "a run has made this lab and says itself what becomes of it");
    }
    let asker = Arc::new(Asker::default());
    let _gone = Gone(Arc::clone(&asker));
    let verb = Arc::clone(verb);
    match tokio::task::spawn_blocking(move || (verb.act)(&shown.lab, &body, &*asker)).await {
        Ok(Ok(value)) => answer(StatusCode::OK, &value),
        Ok(Err(Refusal::Request(why))) => said(StatusCode::BAD_REQUEST, &why),
        Ok(Err(Refusal::Lab(error))) => said(StatusCode::CONFLICT, &error.to_string()),
        Err(_) => said(StatusCode::INTERNAL_SERVER_ERROR, "it failed, for a reason that is a bug of weft's"),
    }
}

/// Whoever asked; waits end when it goes.
#[derive(Default)]
struct Asker(AtomicBool);

struct Gone(Arc<Asker>);

impl Drop for Gone {
    fn drop(&mut self) {
        self.0.0.store(true, Ordering::Release);
    }
}

impl Progress for Asker {
    fn phase(&self, _: &str, _: &str) {}

    fn advance(&self, _: f64, _: &str) {}

    fn note(&self, _: &str) {}

    fn interrupted(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}
