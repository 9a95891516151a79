//! Where sessions come in: the Unix socket, mutual TLS, and HTTP for whoever watches over the server.

use std::future::Future;
use std::net::{SocketAddrV4, TcpListener};
use std::sync::Arc;
use std::time::Duration;

use rustix::net::sockopt;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_rustls::TlsAcceptor;
use tracing::debug;
use weft_control::directory::Authority;

use super::connection;
use super::handler::{Handler, beyond};
use crate::descriptors::Places;
use crate::directory::protocol::AdminResponse;
use crate::directory::protocol::codec::{Form, encode};
use crate::error::NodeError;
use crate::socket::Listener;
use crate::tcp::{accepted, address_of, place};
use crate::tls;

/// Longest line over the Unix socket, bytes: room for the largest `set-many`.
const LOCAL_LINE_MAX: usize = 16 << 20;
/// Longest line over TLS, bytes.
const REMOTE_LINE_MAX: usize = 2 << 20;
/// How long a handshake may take.
const HANDSHAKE_MAX: Duration = Duration::from_secs(5);
/// What is still read of a client that was refused, bytes, and for how long.
const PART_BYTES_MAX: u64 = 1 << 20;
const PART_MAX: Duration = Duration::from_secs(1);
/// How long a service that has all its sessions waits to hear that.
const REFUSED_AFTER: Duration = Duration::from_millis(200);
/// So many wait at a time; more are told at once.
static REFUSED_LATE: Semaphore = Semaphore::const_new(64);
/// Silence after which a peer is asked whether it is still there, and how often then.
const KEEPALIVE: Duration = Duration::from_secs(10);

/// Everything that sessions come in by.
pub(in crate::directory) struct Listeners {
    pub(in crate::directory) local: Listener,
    pub(in crate::directory) remote: Option<TcpListener>,
}

impl Listeners {
    /// Where TLS listens.
    pub(in crate::directory) fn remote_address(&self) -> Option<SocketAddrV4> {
        self.remote.as_ref().and_then(address_of)
    }

    /// Serves until one of them fails.
    pub(super) async fn serve(self, handler: Arc<Handler>) -> Result<(), NodeError> {
        let places = Places::here();
        let local = accept_local(&self.local, &handler, places.local);
        let remote = optional(self.remote.map(|listener| accept_remote(listener, &handler, places)));
        tokio::select! {
            ended = local => ended,
            ended = remote => ended,
        }
    }
}

/// Waits for ever where there is nothing.
async fn optional<F: Future>(future: Option<F>) -> F::Output {
    match future {
        Some(future) => future.await,
        None => std::future::pending().await,
    }
}

async fn accept_local(local: &Listener, handler: &Arc<Handler>, max: usize) -> Result<(), NodeError> {
    let failed = || NodeError::system("listening on the Unix socket");
    let listener = local.socket.try_clone().map_err(failed())?;
    let listener = tokio::net::UnixListener::from_std(listener).map_err(failed())?;
    let places = Arc::new(Semaphore::new(max));
    loop {
        let place = place(&places).await;
        let Some((stream, _)) = accepted(listener.accept().await).await else { continue };
        let session = connection::serve(stream, Authority::Operator, Arc::clone(handler), LOCAL_LINE_MAX, None);
        tokio::spawn(async move {
            session.await;
            drop(place);
        });
    }
}

async fn accept_remote(listener: TcpListener, handler: &Arc<Handler>, max: Places) -> Result<(), NodeError> {
    let listener = tokio::net::TcpListener::from_std(listener).map_err(NodeError::system("listening for TLS"))?;
    let (handshakes, sessions) = (Arc::new(Semaphore::new(max.handshakes)), Arc::new(Semaphore::new(max.remote)));
    loop {
        let handshake = place(&handshakes).await;
        let Some((stream, peer)) = accepted(listener.accept().await).await else { continue };
        let (handler, sessions) = (Arc::clone(handler), Arc::clone(&sessions));
        tokio::spawn(async move {
            if let Err(why) = remote_session(stream, handler, handshake, &sessions).await {
                debug!(%peer, %why, "no session");
            }
        });
    }
}

/// Serves a client from its handshake on. Whoever has not shown a certificate takes the place of a handshake only.
async fn remote_session(
    stream: TcpStream,
    handler: Arc<Handler>,
    handshake: OwnedSemaphorePermit,
    sessions: &Arc<Semaphore>,
) -> Result<(), String> {
    set_up(&stream).map_err(|error| error.to_string())?;
    let terms = handler.terms();
    let trust = terms.trust.as_ref().ok_or("no certificate of the server's")?;
    let acceptor = TlsAcceptor::from(Arc::clone(&trust.config));
    let shaken = tokio::time::timeout(HANDSHAKE_MAX, acceptor.accept(stream).into_fallible()).await;
    let stream = match shaken.map_err(|_| "no handshake in time")? {
        Ok(stream) => stream,
        Err((error, stream)) => {
            part(stream).await;
            return Err(error.to_string());
        }
    };
    let certificates = stream.get_ref().1.peer_certificates().unwrap_or_default();
    let shown = certificates.first().map(|shown| (tls::fingerprint(shown), tls::authority_of(shown)));
    let Some((fingerprint, Some(who))) = shown else {
        return refuse(stream, None, "the certificate names neither `weft:operator` nor `weft:service:N`").await;
    };
    if trust.has_revoked(fingerprint) {
        let why = "the certificate is revoked; ask an operator for another one";
        return refuse(stream, Some(AdminResponse::failed("denied", why)), why).await;
    }
    let _mine = match handler.open_session(who) {
        Ok(mine) => mine,
        Err(exceeded) => {
            drop(handshake);
            return refuse_late(stream, beyond(exceeded)).await;
        }
    };
    let Ok(_place) = Arc::clone(sessions).try_acquire_owned() else {
        let why = "the server has as many sessions as it may; ask another one";
        return refuse(stream, Some(AdminResponse::failed("busy", why)), why).await;
    };
    drop(handshake);
    let timers = terms.timers;
    let session = connection::serve(stream, who, Arc::clone(&handler), REMOTE_LINE_MAX, Some(timers));
    tokio::select! {
        () = session => Ok(()),
        () = handler.revoked(fingerprint) => Err("its certificate was revoked".to_owned()),
    }
}

/// Tells a service that it has too many sessions, but not at once: a handshake costs more than all that it could ask for meanwhile, and
/// whoever tries again as soon as it is refused would have the server do nothing else.
async fn refuse_late(stream: tokio_rustls::server::TlsStream<TcpStream>, answer: AdminResponse) -> Result<(), String> {
    if let Ok(_waits) = REFUSED_LATE.try_acquire() {
        tokio::time::sleep(REFUSED_AFTER).await;
    }
    refuse(stream, Some(answer), "too many sessions of this service").await
}

/// Tells a client why there is no session, and ends it.
async fn refuse(
    mut stream: tokio_rustls::server::TlsStream<TcpStream>,
    answer: Option<AdminResponse>,
    why: &str,
) -> Result<(), String> {
    if let Some(answer) = answer {
        let mut line = Vec::new();
        encode(Form::Json, &answer, &mut line);
        let _ = tokio::time::timeout(PART_MAX, stream.write_all(&line)).await;
    }
    // The end of the TLS session first, then that of the connection.
    let _ = tokio::time::timeout(PART_MAX, stream.shutdown()).await;
    part(stream.into_inner().0).await;
    Err(why.to_owned())
}

/// Ends the connection of a refused client so that it still reads why.
///
/// A socket that is closed with bytes unread is reset by the kernel, and the reset overtakes the TLS alert; with
/// TLS 1.3 the client's first request is already under way when its certificate is refused. So what the client
/// sent is read and thrown away until it closes too: at most [`PART_BYTES_MAX`], for at most [`PART_MAX`].
async fn part(mut stream: TcpStream) {
    let drained = async {
        stream.shutdown().await?;
        tokio::io::copy(&mut (&mut stream).take(PART_BYTES_MAX), &mut tokio::io::sink()).await
    };
    let _ = tokio::time::timeout(PART_MAX, drained).await;
}

fn set_up(stream: &TcpStream) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    sockopt::set_socket_keepalive(stream, true)?;
    sockopt::set_tcp_keepidle(stream, KEEPALIVE)?;
    sockopt::set_tcp_keepintvl(stream, KEEPALIVE)?;
    Ok(())
}
