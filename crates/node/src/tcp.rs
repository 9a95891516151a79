//! Listening on TCP: an address of this host's, places for so many at a time, and no end for want of descriptors.

use std::net::{SocketAddr, SocketAddrV4, TcpListener};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tracing::debug;

use crate::error::NodeError;

/// Listens on a TCP address, without blocking; `field` is the setting that it came from.
pub(crate) fn listen(address: SocketAddrV4, field: &'static str) -> Result<TcpListener, NodeError> {
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

/// The address that a listening socket got.
pub(crate) fn address_of(listener: &TcpListener) -> Option<SocketAddrV4> {
    match listener.local_addr() {
        Ok(SocketAddr::V4(address)) => Some(address),
        _ => None,
    }
}

/// Waits until there is a place for one more.
pub(crate) async fn place(places: &Arc<Semaphore>) -> OwnedSemaphorePermit {
    Arc::clone(places).acquire_owned().await.expect("nobody closes it")
}

/// The new connection; after a failure, which may be a lack of file descriptors, a short wait.
pub(crate) async fn accepted<S, A>(outcome: std::io::Result<(S, A)>) -> Option<(S, A)> {
    match outcome {
        Ok(accepted) => Some(accepted),
        Err(error) => {
            debug!(%error, "accepting a client");
            tokio::time::sleep(Duration::from_millis(50)).await;
            None
        }
    }
}
