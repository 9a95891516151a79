//! One session: a task reads requests ahead, another writes their answers in order and what a watch has to tell.

use std::collections::HashSet;
use std::io;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadHalf};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinSet;
use tokio::time::Instant;
use weft_control::directory::{Authority, Request};

use super::handler::{Handler, Listing, Outcome, beyond, response};
use crate::directory::config::SessionTimers;
use crate::directory::protocol::codec::{Decoder, Form, Input, encode};
use crate::directory::protocol::{AdminRequest, AdminResponse, Event};
use crate::directory::replica::Failure;

/// Requests that a session may have open; then it is not read any further.
const PIPELINE_MAX: usize = 1024;
/// AAs of updates that a session remembers as open; then it waits until they are not.
const AAS_OPEN_MAX: usize = 65_536;
/// Answers are sent once there are so many bytes of them, or once the next is not there yet.
const FLUSH_BYTES: usize = 64 << 10;
/// Bytes read at a time, as many as a TLS record has: then it is the others' turn.
const READ_BYTES: usize = 16 << 10;

/// An answer in its place in the order.
type Answer = (Form, Outcome);

/// Serves a client until it goes, or as long as `timers` let it.
pub(super) async fn serve<S>(
    stream: S,
    who: Authority,
    handler: Arc<Handler>,
    line_max: usize,
    timers: Option<SessionTimers>,
) where
    S: AsyncRead + AsyncWrite + Send + 'static,
{
    let _open = Counted::new(Arc::clone(&handler), |handler| &handler.open);
    let (input, output) = tokio::io::split(stream);
    let (answers, pending) = mpsc::channel(PIPELINE_MAX);
    let watches = Arc::new(AtomicBool::new(false));
    let reader = Reader {
        who,
        handler: Arc::clone(&handler),
        answers,
        open: HashSet::new(),
        timers,
        watches: Arc::clone(&watches),
    };
    // It ends with the session, however that ends.
    let mut reading = JoinSet::new();
    reading.spawn(async move {
        // A client that is gone has nothing to be told.
        let _ = reader.run(input, line_max).await;
    });
    let stall = timers.map(SessionTimers::stall);
    let listing = Listing::none(&handler, who);
    let mut writer = Writer { who, handler, output, bytes: Vec::new(), watch: None, watches, listing, stall };
    let _ = writer.run(pending).await;
}

struct Reader {
    who: Authority,
    handler: Arc<Handler>,
    answers: mpsc::Sender<Answer>,
    /// AAs in updates of a service that may be open still.
    open: HashSet<Ipv4Addr>,
    timers: Option<SessionTimers>,
    /// Whether the client listens, and so may be silent.
    watches: Arc<AtomicBool>,
}

impl Reader {
    async fn run<R: AsyncRead>(mut self, mut input: ReadHalf<R>, line_max: usize) -> io::Result<()> {
        let mut decoder = Decoder::new(line_max);
        let mut buffered = self.handler.buffer(self.who);
        // Since when a request has been unfinished.
        let mut since = None;
        loop {
            let room = decoder.room();
            room.reserve(READ_BYTES);
            if self.read(&mut input, room, since).await? == 0 {
                return Ok(());
            }
            let before = decoder.partial();
            while let Some(next) = decoder.next() {
                let (answer, lost) = self.answer(next).await;
                if self.answers.send(answer).await.is_err() || lost {
                    return Ok(());
                }
            }
            let left = decoder.partial();
            since = since.filter(|_| left == before).or_else(|| Some(Instant::now())).filter(|_| left > 0);
            if let Err(exceeded) = self.handler.set_buffered(self.who, &mut buffered, left) {
                let answer = Outcome::Now(Box::new(beyond(exceeded)));
                // The session ends with it.
                let _ = self.answers.send((Form::Json, answer)).await;
                return Ok(());
            }
        }
    }

    /// Reads some bytes; none once the client is gone or has been silent for too long.
    async fn read<R: AsyncRead>(
        &self,
        input: &mut ReadHalf<R>,
        room: &mut Vec<u8>,
        since: Option<Instant>,
    ) -> io::Result<usize> {
        loop {
            let read = input.read_buf(room);
            let Some(timers) = self.timers else { return read.await };
            let until = since.map_or_else(|| Instant::now() + timers.idle(), |since| since + timers.stall());
            match tokio::time::timeout_at(until, read).await {
                Ok(outcome) => return outcome,
                Err(_) if since.is_none() && self.watches.load(Ordering::Relaxed) => {}
                Err(_) => return Ok(0),
            }
        }
    }

    /// The answer, and whether the session cannot go on.
    async fn answer(&mut self, input: Input) -> (Answer, bool) {
        let cost = if let Input::Line(request) = &input { self.handler.cost(request) } else { 1 };
        let wait_ns = self.handler.charge(self.who, cost);
        if wait_ns > 0 {
            tokio::time::sleep(Duration::from_nanos(wait_ns)).await;
        }
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
        if self.open.len() + aas.len() > AAS_OPEN_MAX || aas.iter().any(|aa| self.open.contains(aa)) {
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
    /// Told to the reader.
    watches: Arc<AtomicBool>,
    listing: Listing,
    /// How long an answer may be unread.
    stall: Option<Duration>,
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
            Outcome::Now(response) => self.put(form, &response),
            Outcome::Later(mut outcome) => {
                let outcome = match outcome.try_recv() {
                    Ok(outcome) => outcome,
                    Err(_) => {
                        self.flush().await?;
                        outcome.await.unwrap_or_else(|_| Err(Failure::Store("the server stops".to_owned())))
                    }
                };
                self.put(form, &response(outcome));
            }
            Outcome::Look(request) => {
                let response = self.handler.look(self.who, &request, &mut self.listing);
                self.put(form, &response);
                let (AdminRequest::Watch { .. }, Some(revision)) = (request, response.revision) else {
                    return self.flush_if_long().await;
                };
                let watching = Counted::new(Arc::clone(&self.handler), |handler| &handler.watching);
                self.watch = Some(Watch { news: self.handler.feed.news(), revision, _watching: watching });
                self.watches.store(true, Ordering::Relaxed);
                self.tell_news().await?;
            }
            Outcome::Passed(passed) => {
                // The reader waits for it, or is gone.
                let _ = passed.send(());
            }
        }
        self.flush_if_long().await
    }

    fn put(&mut self, form: Form, response: &AdminResponse) {
        if response.kind.is_some() {
            self.handler.charge_refused(self.who);
        }
        encode(form, response, &mut self.bytes);
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
            self.watches.store(false, Ordering::Relaxed);
            let lagged = AdminResponse { event: Some(Event::Lagged), ..AdminResponse::committed(watch.revision) };
            encode(Form::Json, &lagged, &mut self.bytes);
        }
    }

    async fn flush_if_long(&mut self) -> io::Result<()> {
        if self.bytes.len() >= FLUSH_BYTES { self.flush().await } else { Ok(()) }
    }

    /// Sends what is written. A client that does not read it in time has no session any more.
    async fn flush(&mut self) -> io::Result<()> {
        match self.stall {
            None => self.send().await,
            Some(stall) => tokio::time::timeout(stall, self.send()).await?,
        }
    }

    async fn send(&mut self) -> io::Result<()> {
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
