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
pub(super) struct PortWatch<'a> {
    ports: &'a [WatchedPort],
    groups: Vec<Group>,
    before: Vec<PortMoment>,
    last: Moment,
    text: String,
}

/// Ports of one namespace.
struct Group {
    devices: File,
    qdiscs: QdiscReader,
    /// Place in the list of all ports, and interface index.
    ports: Vec<(usize, u32)>,
}

impl<'a> PortWatch<'a> {
    /// Opens the counters; what they show now counts as zero.
    pub(super) fn open(ports: &'a [WatchedPort]) -> Result<Self, TrafficError> {
        let mut members: BTreeMap<&Path, Vec<usize>> = BTreeMap::new();
        for (place, port) in ports.iter().enumerate() {
            members.entry(&port.namespace).or_default().push(place);
        }
        let members: Vec<(&Path, Vec<usize>)> = members.into_iter().collect();
        let groups =
            namespace::visit(members.iter().map(|(path, _)| *path), |index| Group::open(ports, &members[index].1))?;
        let (before, last) = (Vec::new(), Moment { time_ns: u64::MAX, ports: Vec::new() });
        let mut watch = Self { ports, groups, before, last, text: String::new() };
        watch.before = watch.read()?;
        Ok(watch)
    }

    /// One row per port.
    pub(super) fn rows(&mut self, time_ns: u64) -> Result<Vec<LinkRow>, TrafficError> {
        let ports = self.ports;
        let row = |(port, now): (&WatchedPort, &PortMoment)| LinkRow {
            time_ns,
            node: port.node.clone(),
            interface: port.interface.clone(),
            peer: port.peer.clone(),
            class: port.class.clone(),
            sent_bytes: now.sent_bytes,
            dropped_frames: now.dropped_frames,
        };
        Ok(ports.iter().zip(&self.moment(time_ns)?.ports).map(row).collect())
    }

    /// All ports now, which is this time: who asks twice for the same has the same.
    pub(super) fn moment(&mut self, time_ns: u64) -> Result<&Moment, TrafficError> {
        if self.last.time_ns != time_ns {
            let since = |(now, before): (PortMoment, &PortMoment)| PortMoment {
                sent_bytes: now.sent_bytes.saturating_sub(before.sent_bytes),
                dropped_frames: now.dropped_frames.saturating_sub(before.dropped_frames),
                queued_bytes: now.queued_bytes,
            };
            let now = self.read()?;
            self.last = Moment { time_ns, ports: now.into_iter().zip(&self.before).map(since).collect() };
        }
        Ok(&self.last)
    }

    /// What rows call the ports, in the order of moments.
    pub(super) fn names(&self) -> Vec<PortName<'a>> {
        let name = |port: &'a WatchedPort| PortName { node: &port.node, interface: &port.interface, peer: &port.peer };
        self.ports.iter().map(name).collect()
    }

    fn read(&mut self) -> Result<Vec<PortMoment>, TrafficError> {
        let mut all = vec![PortMoment::default(); self.ports.len()];
        for group in &mut self.groups {
            read_whole(&group.devices, &mut self.text).map_err(TrafficError::system("read /proc/net/dev"))?;
            let devices = parse_devices(&self.text);
            let queues = group.qdiscs.roots().map_err(TrafficError::system("read queue counters"))?;
            for &(place, index) in &group.ports {
                let device = devices.get(self.ports[place].interface.as_str()).copied().unwrap_or_default();
                let queue = queues.get(&index).copied().unwrap_or_default();
                let dropped_frames = device.dropped_frames + queue.dropped_frames;
                all[place] = PortMoment { dropped_frames, queued_bytes: queue.queued_bytes, ..device };
            }
        }
        Ok(all)
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
fn parse_devices(text: &str) -> HashMap<&str, PortMoment> {
    text.lines().filter_map(parse_device).collect()
}

fn parse_device(line: &str) -> Option<(&str, PortMoment)> {
    let (name, numbers) = line.split_once(':')?;
    let mut numbers = numbers.split_ascii_whitespace().map(|number| number.parse().unwrap_or(0));
    // Eight numbers of reception, then bytes, packets, errors and drops of transmission.
    let sent_bytes = numbers.nth(8)?;
    let dropped_frames = numbers.nth(2)?;
    Some((name.trim(), PortMoment { sent_bytes, dropped_frames, queued_bytes: 0 }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transmit_columns_are_found() {
        let text = "Inter-|   Receive          |  Transmit\n \
                    face |bytes packets errs drop fifo frame compressed multicast|bytes packets errs drop\n    \
                    lo: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n  eth0:100 2 3 4 5 6 7 8 1900 10 11 1200 13 14 15 16\n";
        let devices = parse_devices(text);
        assert_eq!(devices.len(), 2);
        assert_eq!((devices["eth0"].sent_bytes, devices["eth0"].dropped_frames), (1900, 1200));
    }

    #[test]
    fn long_proc_files_are_read_whole() {
        let mut text = String::from("left over");
        read_whole(&File::open("/proc/kallsyms").unwrap(), &mut text).unwrap();
        assert!(text.len() > 100_000 && text.ends_with('\n'), "{} bytes", text.len());
    }
}
