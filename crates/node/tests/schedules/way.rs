//! The ways from a directory server to the nodes: small proxies that let requests or answers come late, or hold them back and
//! deliver them all when that is over, as TCP does once a cut is mended.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

/// A direction of a way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    Requests,
    Answers,
}

/// What happens to bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Treatment {
    /// How late they are.
    pub(crate) late: Duration,
    /// They wait until that is over.
    pub(crate) held: bool,
}

/// Those of one server.
pub(crate) struct Ways(Vec<Way>);

struct Way {
    url: String,
    /// For requests and answers.
    treatments: [Arc<Treated>; 2],
}

#[derive(Default)]
struct Treated {
    now: Mutex<Treatment>,
    change: Condvar,
}

impl Ways {
    /// A way to each of these URLs; they end with the process.
    pub(crate) fn open(nodes: &[String]) -> Self {
        Self(nodes.iter().map(|node| Way::open(node.trim_start_matches("http://").to_owned())).collect())
    }

    pub(crate) fn urls(&self) -> Vec<String> {
        self.0.iter().map(|way| way.url.clone()).collect()
    }

    pub(crate) fn treat(&self, node: usize, direction: Direction, treatment: Treatment) {
        let treated = &self.0[node].treatments[direction as usize];
        *treated.now.lock().unwrap() = treatment;
        treated.change.notify_all();
    }
}

impl Way {
    fn open(node: String) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let treatments: [Arc<Treated>; 2] = Default::default();
        let theirs = treatments.clone();
        std::thread::spawn(move || {
            while let Ok((client, _)) = listener.accept() {
                let (node, theirs) = (node.clone(), theirs.clone());
                std::thread::spawn(move || carry(client, &node, &theirs));
            }
        });
        Self { url, treatments }
    }
}

fn carry(client: TcpStream, node: &str, treatments: &[Arc<Treated>; 2]) {
    // A node that is down refuses; the client sees its connection end.
    let Ok(server) = TcpStream::connect(node) else { return };
    for (from, to, treated) in [(&client, &server, &treatments[0]), (&server, &client, &treatments[1])] {
        to.set_nodelay(true).unwrap();
        let (sender, receiver) = channel();
        let (from, to, treated) = (from.try_clone().unwrap(), to.try_clone().unwrap(), Arc::clone(treated));
        let theirs = Arc::clone(&treated);
        std::thread::spawn(move || read(from, &sender, &theirs));
        std::thread::spawn(move || write(to, &receiver, &treated));
    }
}

fn read(mut from: TcpStream, sender: &Sender<(Instant, Vec<u8>)>, treated: &Treated) {
    let mut bytes = vec![0; 64 << 10];
    while let Ok(count @ 1..) = from.read(&mut bytes) {
        let due = Instant::now() + treated.now.lock().unwrap().late;
        if sender.send((due, bytes[..count].to_vec())).is_err() {
            return;
        }
    }
}

fn write(mut to: TcpStream, receiver: &Receiver<(Instant, Vec<u8>)>, treated: &Treated) {
    for (due, bytes) in receiver {
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
        drop(treated.change.wait_while(treated.now.lock().unwrap(), |now| now.held).unwrap());
        if to.write_all(&bytes).is_err() {
            break;
        }
    }
    // Both directions: an end that is gone answers nothing.
    let _ = to.shutdown(Shutdown::Both);
}
