//! A lab in a browser.

use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use serde::Serialize;
use weft_lab::ProcessId;
use weft_live::{LiveError, Server, Which};

use super::{failure, lab_name};
use crate::args::Output;
use crate::exit::Failure;
use crate::output::{self, Rows};
use crate::progress::TerminalProgress;

#[derive(Serialize)]
struct Said<'a> {
    schema_version: u32,
    lab: &'a str,
    url: String,
    address: SocketAddr,
    token: &'a str,
}

/// Shows it until Ctrl-C, or until it is taken down.
pub(super) fn watch(name: Option<String>, listen: SocketAddr, format: Output) -> Result<ExitCode, Failure> {
    let lab = lab_name(name)?;
    weft_lab::ps(&lab).map_err(failure)?;
    let stop = TerminalProgress::new(true)?.flag();
    let server = Server::listen(listen).map_err(of_live)?;
    if format == Output::Table {
        output::print_line(&server.url())?;
        eprintln!("open it in a browser of this machine; Ctrl-C ends it, and the lab stays");
    } else {
        let (url, address, token) = (server.url(), server.address(), server.token().text());
        let mut rows = Rows::new(&["lab", "url"]);
        rows.push(vec![lab.clone(), url.clone()]);
        output::print(format, &rows, &Said { schema_version: 1, lab: &lab, url, address, token })?;
    }
    weft_live::serve(server, &Which::Named(lab.clone()), &stop).map_err(of_live)?;
    if !stop.load(Ordering::Relaxed) {
        eprintln!("lab `{lab}` is down");
    }
    Ok(ExitCode::SUCCESS)
}

/// Shows the labs of this process's run until it is dropped.
pub(crate) struct Watched {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Result<(), LiveError>>>,
}

impl Watched {
    pub(crate) fn start() -> Result<Self, Failure> {
        let server = Server::listen(([127, 0, 0, 1], 0).into()).map_err(of_live)?;
        eprintln!("watch it: {}", server.url());
        let (stop, which) = (Arc::new(AtomicBool::new(false)), Which::OfRun(ProcessId::own()));
        let stopped = Arc::clone(&stop);
        let thread = std::thread::spawn(move || weft_live::serve(server, &which, &stopped));
        Ok(Self { stop, thread: Some(thread) })
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        match self.thread.take().map(JoinHandle::join) {
            Some(Ok(Err(error))) => eprintln!("weft: warning: nothing to watch any more: {error}"),
            Some(Err(_)) => eprintln!("weft: warning: nothing to watch any more, for a reason that is a bug of weft's"),
            Some(Ok(Ok(()))) | None => {}
        }
    }
}

fn of_live(error: LiveError) -> Failure {
    match error {
        LiveError::Lab(error) => failure(error),
        other => Failure::failed(other),
    }
}
