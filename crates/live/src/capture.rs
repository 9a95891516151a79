//! Frames of a lab's ports as one pcapng file, which grows while it is read.

use std::io::{self, BufWriter, Write};
use std::path::PathBuf;
use std::time::Duration;

use axum::body::{Body, Bytes};
use futures_util::stream;
use schemars::JsonSchema;
use serde::Deserialize;
use tokio::sync::{OwnedSemaphorePermit, mpsc, oneshot};
use weft_lab::{CaptureFilter, CaptureOptions, CapturePorts};

/// Pieces on their way to a reader that is slow.
const PIECES_MOST: usize = 16;

/// What is captured.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ToCapture {
    /// `NODE:INTERFACE`, `NODE:NEIGHBOUR`, or `NODE` for all of its ports.
    #[serde(default)]
    ports: Vec<String>,
    /// Both ends of every link, in the place of `ports`.
    #[serde(default)]
    all: bool,
    /// End after so many frames.
    #[serde(default)]
    packets: Option<u64>,
    /// End after so long; without either, when nobody reads any more.
    #[serde(default)]
    #[schemars(range(min = 0.0, max = 86400.0))]
    seconds: Option<f64>,
    /// Bytes of each frame to keep; all, if it is not said.
    #[serde(default)]
    #[schemars(range(min = 14))]
    snap_bytes: Option<u32>,
}

impl ToCapture {
    /// Of this lab.
    pub(crate) fn options(&self, lab: &str) -> Result<CaptureOptions, String> {
        let ports = match (self.ports.is_empty(), self.all) {
            (true, true) => vec![CapturePorts::All],
            (false, false) => self.ports.iter().map(|port| port.parse()).collect::<Result<_, String>>()?,
            _ => return Err("name `ports`, or say `all`".to_owned()),
        };
        let duration = match self.seconds {
            Some(seconds) if !(0.0..=86_400.0).contains(&seconds) => return Err("`seconds` are 0 to 86400".to_owned()),
            seconds => seconds.map(Duration::from_secs_f64),
        };
        if self.snap_bytes.is_some_and(|bytes| bytes < 14) {
            return Err("`snap_bytes` are at least 14".to_owned());
        }
        Ok(CaptureOptions {
            lab: lab.to_owned(),
            ports,
            file: PathBuf::from("-"),
            filter: CaptureFilter::default(),
            packets: self.packets,
            duration,
            snap_bytes: self.snap_bytes,
        })
    }
}

/// The file, once all sockets are open. It ends by what was asked for, or when nobody reads it any more; `turn` is given back then.
pub(crate) async fn begun(options: CaptureOptions, turn: OwnedSemaphorePermit) -> Result<Body, String> {
    let (pieces, read) = mpsc::channel(PIECES_MOST);
    let (begun, begins) = oneshot::channel();
    let run = tokio::task::spawn_blocking(move || {
        let _turn = turn;
        let reader = pieces.clone();
        let open = || {
            // Whoever asked may have gone.
            let _ = begun.send(());
            Ok(Box::new(BufWriter::new(Pieces(pieces))) as Box<dyn Write>)
        };
        weft_lab::capture_to(&options, open, &|| reader.is_closed())
    });
    if begins.await.is_err() {
        // It has ended before it had anything to write to.
        return Err(match run.await {
            Ok(Err(error)) => error.to_string(),
            // The server ends just now.
            Ok(Ok(_)) | Err(_) => "the capture has ended before it began".to_owned(),
        });
    }
    let pieces =
        stream::unfold(read, |mut read| async { read.recv().await.map(|piece| (Ok::<_, io::Error>(piece), read)) });
    Ok(Body::from_stream(pieces))
}

/// What is written goes to the reader.
struct Pieces(mpsc::Sender<Bytes>);

impl Write for Pieces {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        let sent = self.0.blocking_send(Bytes::copy_from_slice(data));
        sent.map(|()| data.len()).map_err(|_| io::ErrorKind::BrokenPipe.into())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_capture_is_refused() {
        let options =
            |text: &str| serde_json::from_str::<ToCapture>(text).map_err(|error| error.to_string())?.options("a");
        for text in [
            "{}",
            "{\"all\":true,\"ports\":[\"tor1\"]}",
            "{\"ports\":[\"\"]}",
            "{\"ports\":[\":x\"]}",
            "{\"all\":true,\"seconds\":-1}",
            "{\"all\":true,\"seconds\":1e300}",
            "{\"all\":true,\"snap_bytes\":13}",
            "{\"all\":true,\"packets\":-1}",
            "{\"all\":true,\"file\":\"/etc/passwd\"}",
        ] {
            assert!(options(text).is_err(), "{text}");
        }
        let some =
            options("{\"ports\":[\"tor1\",\"s1:tor1\"],\"packets\":3,\"seconds\":0.5,\"snap_bytes\":64}").unwrap();
        assert_eq!((some.ports.len(), some.packets, some.snap_bytes), (2, Some(3), Some(64)));
        assert_eq!((some.duration, &*some.lab), (Some(Duration::from_millis(500)), "a"));
        assert_eq!(options("{\"all\":true}").unwrap().ports, [CapturePorts::All]);
    }
}
