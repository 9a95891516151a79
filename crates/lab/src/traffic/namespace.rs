//! Work inside other network namespaces, on a thread of its own so that the caller never leaves its namespace.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::path::Path;

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use super::TrafficError;

/// Moves the calling thread into a network namespace.
pub(super) fn enter(path: &Path) -> io::Result<()> {
    let namespace = File::open(path)?;
    Ok(move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network))?)
}

/// Calls `work` once inside each namespace, in order; sockets and /proc/thread-self/net files opened there stay there.
pub(crate) fn visit<'a, T: Send>(
    paths: impl IntoIterator<Item = &'a Path> + Send,
    mut work: impl FnMut(usize) -> io::Result<T> + Send,
) -> Result<Vec<T>, TrafficError> {
    let visitor = || {
        paths
            .into_iter()
            .enumerate()
            .map(|(index, path)| {
                enter(path)
                    .and_then(|()| work(index))
                    .map_err(TrafficError::system(format!("namespace {}", path.display())))
            })
            .collect()
    };
    std::thread::scope(|scope| scope.spawn(visitor).join().expect("visitors do not panic"))
}
