//! One session: a task reads requests ahead, another writes their answers in order and what a watch has to tell.

use std::collections::HashSet;
use std::io;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadHalf};
use tokio::sync::{mpsc, oneshot, watch};
use weft_control::directory::Request;

use super::authority::Authority;
use super::codec::{Decoder, Form, Input, encode};
use super::handler::{Handler, Listing, Outcome, response};
use crate::directory::protocol::{AdminRequest, AdminResponse, Event};
use crate::directory::replica::Failure;

/// Requests that a session may have open; then it is not read any further.
const PIPELINE_MAX: usize = 1024;
/// Answers are sent once there are so many bytes of them, or once the next is not there yet.
const FLUSH_BYTES: usize = 64 << 10;
/// Bytes read at a time.
const READ_BYTES: usize = 64 << 10;

/// An answer in its place in the order.
type Answer = (Form, Outcome);

/// Serves a client until it goes.
pub(super) async fn serve<S>(stream: S, who: Authority, handler: Arc<Handler>, line_max: usize)
where
    S: AsyncRead + AsyncWrite + Send + 'static,
{
    let _open = Counted::new(Arc::clone(&handler), |handler| &handler.open);
    let (input, output) = tokio::io::split(stream);
    let (answers, pending) = mpsc::channel(PIPELINE_MAX);
    let theirs = Arc::clone(&handler);
    let reading = tokio::spawn(async move {
        // A client that is gone has nothing to be told.
        let _ = Reader { who, handler: theirs, answers, open: HashSet::new() }.run(input, line_max).await;
    });
    let mut writer = Writer { who, handler, output, bytes: Vec::new(), watch: None, listing: None };
    let _ = writer.run(pending).await;
    reading.abort();
}

struct Reader {
    who: Authority,
    handler: Arc<Handler>,
    answers: mpsc::Sender<Answer>,
    /// AAs in updates of a service that may be open still.
    open: HashSet<Ipv4Addr>,
}

impl Reader {
    async fn run<R: AsyncRead>(mut self, mut input: ReadHalf<R>, line_max: usize) -> io::Result<()> {
        let mut decoder = Decoder::new(line_max);
        loop {
            let room = decoder.room();
            room.reserve(READ_BYTES);
            if input.read_buf(room).await? == 0 {
                return Ok(());
            }
            while let Some(next) = decoder.next() {
                let (answer, lost) = self.answer(next).await;
                if self.answers.send(answer).await.is_err() || lost {
                    return Ok(());
                }
            }
        }
    }

    /// The answer, and whether the session cannot go on.
    async fn answer(&mut self, input: Input) -> (Answer, bool) {
        match input {
            Input::Line(request) => {
                if matches!(request, AdminRequest::Move { .. }) {
                    self.let_all_pass().await;
                }
                self.let_pass(aas_of(&request)).await;
                ((Form::Json, self.handler.handle(self.who, request)), false)
            }
            Input::Frame(request) => {
                self.let_pass(request_aas(&request)).await;
                ((Form::Frame, self.handler.update(self.who, request)), false)
            }
            Input::Bad(form, why) => ((form, bad(why)), false),
            Input::Lost(form, why) => ((form, bad(why)), true),
        }
    }

    /// What a service may change is checked against the table. So an update of an AA waits for earlier ones of the same AA
    /// in this session: then the table has seen them.
    async fn let_pass(&mut self, aas: Vec<Ipv4Addr>) {
        if self.who.is_operator() || aas.is_empty() {
            return;
        }
        if aas.iter().any(|aa| self.open.contains(aa)) {
            self.let_all_pass().await;
        }
        self.open.extend(aas);
    }

    /// Waits until every earlier request was answered.
    async fn let_all_pass(&mut self) {
        let (passed, all_before) = oneshot::channel();
        if self.answers.send((Form::Json, Outcome::Passed(passed))).await.is_ok() {
            // If the writer is gone, the session ends.
            let _ = all_before.await;
        }
        self.open.clear();
    }
}

struct Writer<W> {
    who: Authority,
    handler: Arc<Handler>,
    output: W,
    bytes: Vec<u8>,
    watch: Option<Watch>,
    listing: Option<Listing>,
}

/// A watch that runs.
struct Watch {
    news: watch::Receiver<()>,
    /// Everything up to this revision was sent.
    revision: u64,
    _watching: Counted,
}

enum Next {
    Answer(Option<Answer>),
    News,
}

impl<W: AsyncWrite + Unpin> Writer<W> {
    async fn run(&mut self, mut pending: mpsc::Receiver<Answer>) -> io::Result<()> {
        loop {
            let next = match &mut self.watch {
                None => Next::Answer(pending.recv().await),
                Some(watch) => tokio::select! {
                    answer = pending.recv() => Next::Answer(answer),
                    news = watch.news.changed() => {
                        if news.is_err() { return Ok(()) }
                        Next::News
                    }
                },
            };
            match next {
                Next::Answer(Some(answer)) => {
                    self.answer(answer).await?;
                    while let Ok(answer) = pending.try_recv() {
                        self.answer(answer).await?;
                    }
                }
                Next::Answer(None) => return self.flush().await,
                Next::News => {}
            }
            self.tell_news().await?;
            self.flush().await?;
        }
    }

    async fn answer(&mut self, (form, outcome): Answer) -> io::Result<()> {
        match outcome {
            Outcome::Now(response) => encode(form, &response, &mut self.bytes),
            Outcome::Later(mut outcome) => {
                let outcome = match outcome.try_recv() {
                    Ok(outcome) => outcome,
                    Err(_) => {
                        self.flush().await?;
                        outcome.await.unwrap_or_else(|_| Err(Failure::Store("the server stops".to_owned())))
                    }
                };
                encode(form, &response(outcome), &mut self.bytes);
            }
            Outcome::Look(request) => {
                let response = self.handler.look(self.who, &request, &mut self.listing);
                encode(form, &response, &mut self.bytes);
                let (AdminRequest::Watch { .. }, Some(revision)) = (request, response.revision) else {
                    return self.flush_if_long().await;
                };
                let watching = Counted::new(Arc::clone(&self.handler), |handler| &handler.watching);
                self.watch = Some(Watch { news: self.handler.feed.news(), revision, _watching: watching });
                self.tell_news().await?;
            }
            Outcome::Passed(passed) => {
                // The reader waits for it, or is gone.
                let _ = passed.send(());
            }
        }
        self.flush_if_long().await
    }

    /// Sends what was committed since the watch last looked.
    async fn tell_news(&mut self) -> io::Result<()> {
        let Some(watch) = &mut self.watch else { return Ok(()) };
        watch.news.mark_unchanged();
        let Ok(records) = self.handler.feed.above(watch.revision) else {
            self.lagged();
            return Ok(());
        };
        for record in records {
            let (changes, policy) = (self.handler.changes(self.who, &record), &record.policy);
            if !policy.is_empty() && !self.who.is_operator() {
                // What a service sees is another now, not only what was touched.
                self.lagged();
                return Ok(());
            }
            if let Some(watch) = &mut self.watch {
                watch.revision = record.revision;
            }
            if changes.is_empty() && policy.is_empty() {
                continue;
            }
            let event = AdminResponse {
                event: Some(Event::Changed),
                changes: Some(changes),
                policy: (!policy.is_empty()).then(|| policy.iter().copied().map(Into::into).collect()),
                ..AdminResponse::committed(record.revision)
            };
            encode(Form::Json, &event, &mut self.bytes);
            self.flush_if_long().await?;
        }
        Ok(())
    }

    /// Says that changes are missing, and ends the watch.
    fn lagged(&mut self) {
        if let Some(watch) = self.watch.take() {
            let lagged = AdminResponse { event: Some(Event::Lagged), ..AdminResponse::committed(watch.revision) };
            encode(Form::Json, &lagged, &mut self.bytes);
        }
    }

    async fn flush_if_long(&mut self) -> io::Result<()> {
        if self.bytes.len() >= FLUSH_BYTES { self.flush().await } else { Ok(()) }
    }

    async fn flush(&mut self) -> io::Result<()> {
        if !self.bytes.is_empty() {
            self.output.write_all(&self.bytes).await?;
            self.bytes.clear();
            self.bytes.shrink_to(4 * FLUSH_BYTES);
        }
        self.output.flush().await
    }
}

/// One more in a counter, as long as it lives.
struct Counted {
    handler: Arc<Handler>,
    counter: fn(&Handler) -> &AtomicU64,
}

impl Counted {
    fn new(handler: Arc<Handler>, counter: fn(&Handler) -> &AtomicU64) -> Self {
        counter(&handler).fetch_add(1, Ordering::Relaxed);
        Self { handler, counter }
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        (self.counter)(&self.handler).fetch_sub(1, Ordering::Relaxed);
    }
}

fn bad(why: String) -> Outcome {
    Outcome::Now(Box::new(AdminResponse::failed("request", why)))
}

fn aas_of(request: &AdminRequest) -> Vec<Ipv4Addr> {
    match request {
        AdminRequest::Set { aa, .. } | AdminRequest::Del { aa, .. } | AdminRequest::Move { aa, .. } => vec![*aa],
        AdminRequest::SetMany { mappings, .. } => mappings.iter().map(|mapping| mapping.aa).collect(),
        _ => Vec::new(),
    }
}

fn request_aas(request: &Request) -> Vec<Ipv4Addr> {
    request.updates.iter().map(|update| update.aa).collect()
}
