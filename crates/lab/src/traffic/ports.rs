//! Counters of the watched ports, read from inside their namespaces without entering them again.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use rustix::net::{AddressFamily, SocketFlags, SocketType, netdevice, socket_with};
use weft_scenario::record::{LinkRow, Moment, PortMoment, PortName};

use super::qdisc::QdiscReader;
use super::{TrafficError, WatchedPort, namespace};

/// The watched ports, grouped by namespace, with their counters at the start.
pub(crate) struct PortWatch<'a> {
    ports: &'a [WatchedPort],
    groups: Vec<Group>,
    /// For a port that is alone in its namespace: the port at the other end of its link, which counts the same.
    far: Vec<Option<usize>>,
    before: Vec<Reading>,
    /// What the last rows said.
    sampled: Vec<PortMoment>,
    text: String,
}

/// Ports of one namespace.
struct Group {
    devices: File,
    qdiscs: QdiscReader,
    /// Place in the list of all ports, and interface index.
    ports: Vec<(usize, u32)>,
}

/// Counters since the interface was made.
#[derive(Clone, Copy, Default)]
struct Reading {
    port: PortMoment,
    received_bytes: u64,
}

impl<'a> PortWatch<'a> {
    /// Opens the counters; what they show now counts as zero.
    pub(crate) fn open(ports: &'a [WatchedPort]) -> Result<Self, TrafficError> {
        let mut members: BTreeMap<&Path, Vec<usize>> = BTreeMap::new();
        for (place, port) in ports.iter().enumerate() {
            members.entry(&port.namespace).or_default().push(place);
        }
        let far = far_ends(ports, &members);
        let members: Vec<(&Path, Vec<usize>)> = members.into_iter().collect();
        let groups =
            namespace::visit(members.iter().map(|(path, _)| *path), |index| Group::open(ports, &members[index].1))?;
        let (before, sampled) = (Vec::new(), vec![PortMoment::default(); ports.len()]);
        let mut watch = Self { ports, groups, far, before, sampled, text: String::new() };
        watch.before = watch.read(true)?;
        Ok(watch)
    }

    /// One row per port.
    pub(crate) fn rows(&mut self, time_ns: u64) -> Result<Vec<LinkRow>, TrafficError> {
        let now = self.read(true)?;
        self.sampled = now.iter().zip(&self.before).map(|(now, before)| now.since(before)).collect();
        let row = |(port, now): (&WatchedPort, &PortMoment)| LinkRow {
            time_ns,
            node: port.node.clone(),
            interface: port.interface.clone(),
            peer: port.peer.clone(),
            class: port.class.clone(),
            sent_bytes: now.sent_bytes,
            dropped_frames: now.dropped_frames,
        };
        Ok(self.ports.iter().zip(&self.sampled).map(row).collect())
    }

    /// All ports, read where there are many of them: what a port that is alone in its namespace has sent is what the other end of its
    /// link has received; what it has dropped is that of the last rows, and what waits at it is not known.
    pub(crate) fn moment(&mut self, time_ns: u64) -> Result<Moment, TrafficError> {
        let now = self.read(false)?;
        let port = |place: usize| match self.far[place] {
            None => now[place].since(&self.before[place]),
            Some(far) => PortMoment {
                sent_bytes: now[far].received_bytes.saturating_sub(self.before[far].received_bytes),
                dropped_frames: self.sampled[place].dropped_frames,
                queued_bytes: 0,
            },
        };
        Ok(Moment { time_ns, ports: (0..self.ports.len()).map(port).collect(), windows: Vec::new() })
    }

    /// What rows call the ports, in the order of moments.
    pub(crate) fn names(&self) -> Vec<PortName<'a>> {
        let name = |port: &'a WatchedPort| PortName { node: &port.node, interface: &port.interface, peer: &port.peer };
        self.ports.iter().map(name).collect()
    }

    /// All ports, or those without another that counts the same.
    fn read(&mut self, all: bool) -> Result<Vec<Reading>, TrafficError> {
        let mut readings = vec![Reading::default(); self.ports.len()];
        let far = &self.far;
        let wanted = |group: &&mut Group| all || group.ports.iter().any(|(place, _)| far[*place].is_none());
        for group in self.groups.iter_mut().filter(wanted) {
            read_whole(&group.devices, &mut self.text).map_err(TrafficError::system("read /proc/net/dev"))?;
            let devices = parse_devices(&self.text);
            let queues = group.qdiscs.roots().map_err(TrafficError::system("read queue counters"))?;
            for &(place, index) in &group.ports {
                let device = devices.get(self.ports[place].interface.as_str()).copied().unwrap_or_default();
                let queue = queues.get(&index).copied().unwrap_or_default();
                let dropped_frames = device.port.dropped_frames + queue.dropped_frames;
                let port = PortMoment { dropped_frames, queued_bytes: queue.queued_bytes, ..device.port };
                readings[place] = Reading { port, ..device };
            }
        }
        Ok(readings)
    }
}

/// For each port that is alone in its namespace: that at the other end, where there is one of many.
fn far_ends(ports: &[WatchedPort], members: &BTreeMap<&Path, Vec<usize>>) -> Vec<Option<usize>> {
    let is_alone = |port: &WatchedPort| members[port.namespace.as_path()].len() == 1;
    let by_ends: HashMap<(&str, &str), usize> =
        ports.iter().enumerate().map(|(place, port)| ((port.node.as_str(), port.peer.as_str()), place)).collect();
    let far = |port: &WatchedPort| {
        let far = *by_ends.get(&(port.peer.as_str(), port.node.as_str()))?;
        (is_alone(port) && !is_alone(&ports[far])).then_some(far)
    };
    ports.iter().map(far).collect()
}

impl Reading {
    fn since(&self, before: &Self) -> PortMoment {
        PortMoment {
            sent_bytes: self.port.sent_bytes.saturating_sub(before.port.sent_bytes),
            dropped_frames: self.port.dropped_frames.saturating_sub(before.port.dropped_frames),
            queued_bytes: self.port.queued_bytes,
        }
    }
}

impl Group {
    /// Called inside the namespace.
    fn open(ports: &[WatchedPort], members: &[usize]) -> io::Result<Self> {
        let probe = socket_with(AddressFamily::INET, SocketType::DGRAM, SocketFlags::CLOEXEC, None)?;
        let index = |&place: &usize| {
            let name = &ports[place].interface;
            let index = netdevice::name_to_index(&probe, name)
                .map_err(|error| io::Error::other(format!("interface {name}: {error}")))?;
            Ok((place, index))
        };
        Ok(Self {
            devices: File::open("/proc/thread-self/net/dev")?,
            qdiscs: QdiscReader::open()?,
            ports: members.iter().map(index).collect::<io::Result<_>>()?,
        })
    }
}

/// Reads a /proc file from its start; such files come in pieces.
pub(super) fn read_whole(file: &File, text: &mut String) -> io::Result<()> {
    let mut bytes = std::mem::take(text).into_bytes();
    let mut length = 0;
    loop {
        if bytes.len() < length + 4096 {
            bytes.resize(length + 16384, 0);
        }
        match file.read_at(&mut bytes[length..], length as u64)? {
            0 => break,
            more => length += more,
        }
    }
    bytes.truncate(length);
    *text = String::from_utf8(bytes).map_err(io::Error::other)?;
    Ok(())
}

/// Transmit counters by interface name.
fn parse_devices(text: &str) -> HashMap<&str, Reading> {
    text.lines().filter_map(parse_device).collect()
}

fn parse_device(line: &str) -> Option<(&str, Reading)> {
    let (name, numbers) = line.split_once(':')?;
    let mut numbers = numbers.split_ascii_whitespace().map(|number| number.parse().unwrap_or(0));
    // Eight numbers of reception, the first of which is bytes, then bytes, packets, errors and drops of transmission.
    let received_bytes = numbers.next()?;
    let sent_bytes = numbers.nth(7)?;
    let dropped_frames = numbers.nth(2)?;
    let port = PortMoment { sent_bytes, dropped_frames, queued_bytes: 0 };
    Some((name.trim(), Reading { port, received_bytes }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_found() {
        let text = "Inter-|   Receive          |  Transmit\n \
                    face |bytes packets errs drop fifo frame compressed multicast|bytes packets errs drop\n    \
                    lo: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n  eth0:100 2 3 4 5 6 7 8 1900 10 11 1200 13 14 15 16\n";
        let devices = parse_devices(text);
        assert_eq!(devices.len(), 2);
        let Reading { port, received_bytes } = devices["eth0"];
        assert_eq!((received_bytes, port.sent_bytes, port.dropped_frames), (100, 1900, 1200));
    }

    #[test]
    fn long_proc_files_are_read_whole() {
        let mut text = String::from("left over");
        read_whole(&File::open("/proc/kallsyms").unwrap(), &mut text).unwrap();
        assert!(text.len() > 100_000 && text.ends_with('\n'), "{} bytes", text.len());
    }
}
