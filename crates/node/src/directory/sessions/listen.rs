//! Where sessions come in: the Unix socket, mutual TLS, and HTTP for whoever watches over the server.

use std::future::Future;
use std::net::{SocketAddr, SocketAddrV4, TcpListener};
use std::sync::Arc;
use std::time::Duration;

use rustix::net::sockopt;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_rustls::TlsAcceptor;
use tracing::debug;

use super::authority::Authority;
use super::connection;
use super::handler::Handler;
use crate::directory::http;
use crate::error::NodeError;
use crate::socket::Listener;
use crate::tls;

/// Sessions over the Unix socket at a time; more wait.
const LOCAL_MAX: usize = 256;
/// Sessions over TLS at a time, handshakes included; more wait.
const REMOTE_MAX: usize = 4096;
/// Longest line over the Unix socket, bytes: room for the largest `set-many`.
const LOCAL_LINE_MAX: usize = 16 << 20;
/// Longest line over TLS, bytes.
const REMOTE_LINE_MAX: usize = 2 << 20;
/// How long a handshake may take.
const HANDSHAKE_MAX: Duration = Duration::from_secs(5);
/// What is still read of a client that was refused, bytes, and for how long.
const PART_BYTES_MAX: u64 = 1 << 20;
const PART_MAX: Duration = Duration::from_secs(1);
/// Silence after which a peer is asked whether it is still there, and how often then.
const KEEPALIVE: Duration = Duration::from_secs(10);

/// Listens on a TCP address; `field` is the setting that it came from.
pub(in crate::directory) fn listen_tcp(address: SocketAddrV4, field: &'static str) -> Result<TcpListener, NodeError> {
    let listener = TcpListener::bind(address).map_err(|error| match error.kind() {
        std::io::ErrorKind::AddrInUse => NodeError::AddressInUse { address },
        std::io::ErrorKind::AddrNotAvailable => {
            NodeError::config(field, format!("{} is not an address of this host; add it first", address.ip()))
        }
        _ => NodeError::system(format!("binding TCP {address}"))(error),
    })?;
    listener.set_nonblocking(true).map_err(NodeError::system("setting up a listening socket"))?;
    Ok(listener)
}

/// Everything that sessions come in by.
pub(in crate::directory) struct Listeners {
    pub(in crate::directory) local: Listener,
    pub(in crate::directory) remote: Option<(TcpListener, Arc<rustls::ServerConfig>)>,
    pub(in crate::directory) http: Option<TcpListener>,
}

/// Where TLS and HTTP listen.
pub(in crate::directory) type Addresses = (Option<SocketAddrV4>, Option<SocketAddrV4>);

impl Listeners {
    pub(in crate::directory) fn remote_address(&self) -> Option<SocketAddrV4> {
        self.remote.as_ref().and_then(|(listener, _)| address_of(listener))
    }

    pub(in crate::directory) fn http_address(&self) -> Option<SocketAddrV4> {
        self.http.as_ref().and_then(address_of)
    }

    /// Serves until one of them fails.
    pub(super) async fn serve(self, handler: Arc<Handler>) -> Result<(), NodeError> {
        let local = accept_local(&self.local, &handler);
        let remote = optional(self.remote.map(|(listener, config)| accept_remote(listener, config, &handler)));
        let http = optional(self.http.map(|listener| http::serve(listener, Arc::clone(&handler))));
        tokio::select! {
            ended = local => ended,
            ended = remote => ended,
            ended = http => ended,
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

async fn accept_local(local: &Listener, handler: &Arc<Handler>) -> Result<(), NodeError> {
    let failed = || NodeError::system("listening on the Unix socket");
    let listener = local.socket.try_clone().map_err(failed())?;
    let listener = tokio::net::UnixListener::from_std(listener).map_err(failed())?;
    let places = Arc::new(Semaphore::new(LOCAL_MAX));
    loop {
        let place = place(&places).await;
        let Some((stream, _)) = accepted(listener.accept().await).await else { continue };
        let session = connection::serve(stream, Authority::Operator, Arc::clone(handler), LOCAL_LINE_MAX);
        tokio::spawn(async move {
            session.await;
            drop(place);
        });
    }
}

async fn accept_remote(
    listener: TcpListener,
    config: Arc<rustls::ServerConfig>,
    handler: &Arc<Handler>,
) -> Result<(), NodeError> {
    let listener = tokio::net::TcpListener::from_std(listener).map_err(NodeError::system("listening for TLS"))?;
    let acceptor = TlsAcceptor::from(config);
    let places = Arc::new(Semaphore::new(REMOTE_MAX));
    loop {
        let place = place(&places).await;
        let Some((stream, peer)) = accepted(listener.accept().await).await else { continue };
        let (acceptor, handler) = (acceptor.clone(), Arc::clone(handler));
        tokio::spawn(async move {
            if let Err(why) = remote_session(stream, acceptor, handler).await {
                debug!(%peer, %why, "no session");
            }
            drop(place);
        });
    }
}

async fn remote_session(stream: TcpStream, acceptor: TlsAcceptor, handler: Arc<Handler>) -> Result<(), String> {
    set_up(&stream).map_err(|error| error.to_string())?;
    let handshake = tokio::time::timeout(HANDSHAKE_MAX, acceptor.accept(stream).into_fallible()).await;
    let mut stream = match handshake.map_err(|_| "no handshake in time")? {
        Ok(stream) => stream,
        Err((error, stream)) => {
            part(stream).await;
            return Err(error.to_string());
        }
    };
    let certificates = stream.get_ref().1.peer_certificates().unwrap_or_default();
    let Some(who) = certificates.first().and_then(tls::authority_of) else {
        // The end of the TLS session first, then that of the connection.
        let _ = stream.shutdown().await;
        part(stream.into_inner().0).await;
        return Err("the certificate names neither `weft:operator` nor `weft:service:N`".to_string());
    };
    connection::serve(stream, who, handler, REMOTE_LINE_MAX).await;
    Ok(())
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

/// Waits until there is a place for one more.
async fn place(places: &Arc<Semaphore>) -> OwnedSemaphorePermit {
    Arc::clone(places).acquire_owned().await.expect("nobody closes it")
}

/// The new connection; after a failure, which may be a lack of file descriptors, a short wait.
async fn accepted<S, A>(outcome: std::io::Result<(S, A)>) -> Option<(S, A)> {
    match outcome {
        Ok(accepted) => Some(accepted),
        Err(error) => {
            debug!(%error, "accepting a client");
            tokio::time::sleep(Duration::from_millis(50)).await;
            None
        }
    }
}

/// The address that a listening socket got.
fn address_of(listener: &TcpListener) -> Option<SocketAddrV4> {
    match listener.local_addr() {
        Ok(SocketAddr::V4(address)) => Some(address),
        _ => None,
    }
}
