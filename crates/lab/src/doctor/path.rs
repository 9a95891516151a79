//! `weft doctor --path`: brings up a small VL2 fabric and sends real frames through all of it; then the same for VXLAN.

use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use weft_datapath::switch::SwitchMaps;
use weft_scenario::addressing::{AddressPlan, AddressingOptions};
use weft_scenario::engine::{DirectoryStore, Overlay, Progress, Scenario, Transport};
use weft_scenario::switching::Switching;
use weft_scenario::topology::{LinkParams, Role, TestbedParams, vl2_testbed};

use super::transfer::{self, TRANSFER_BYTES};
use super::tunnel::Kind;
use super::{Check, Use, overlay, require_use};
use crate::capture::PacketSocket;
use crate::down;
use crate::error::LabError;
use crate::home::namespace_path;
use crate::netns::{self, join};
use crate::options::LabOptions;
use crate::ping::{Answer, Echo};
use crate::up::{Lab, up_owned};

const FLOWS: u16 = 300;
/// A buffer above the fabric's MTU is one that segmentation offload left whole.
const FABRIC_MTU_BYTES: usize = 1600;

/// Sends frames through everything that can be on this machine; what cannot be is said by a line.
pub fn path_checks(options: &LabOptions, progress: &dyn Progress) -> Result<Vec<Check>, LabError> {
    let mut checks = match require_use(Use::Vl2Lab) {
        Ok(()) => vl2_checks(options, progress)?,
        Err(error) => vec![not_tried("path", &error)],
    };
    for kind in [Kind::Kernel, Kind::Weft] {
        match kind.needs().map_or(Ok(()), require_use) {
            Ok(()) => checks.extend(overlay::overlay_checks(kind, progress)?),
            Err(error) => checks.push(not_tried(kind.name(), &error)),
        }
    }
    Ok(checks)
}

fn not_tried(name: &str, error: &LabError) -> Check {
    Check::warn(name, format!("not tried: {error}"), "see the line above about it")
}

/// Brings up the paper's switches with one server per ToR, tries them and takes everything down again.
fn vl2_checks(options: &LabOptions, progress: &dyn Progress) -> Result<Vec<Check>, LabError> {
    let name = format!("doctor{}", std::process::id());
    let options = LabOptions { name: Some(name), self_test: false, ..options.clone() };
    down::sweep_orphans()?;
    let lab = up_owned(&scenario()?, &options, Some(crate::ProcessId::own()), progress)?;
    progress.phase("path", "real frames");
    let checks = Path::of(&lab).map(|path| path.checks());
    lab.take_down()?;
    checks
}

fn scenario() -> Result<Scenario, LabError> {
    let invalid = |error: String| LabError::not_fit(error, "please report this");
    let params = TestbedParams { servers_per_tor: [1; 4], links: LinkParams::default() };
    let fabric = vl2_testbed(&params).map_err(|error| invalid(error.to_string()))?;
    let addresses =
        AddressPlan::new(&fabric, AddressingOptions::default()).map_err(|error| invalid(error.to_string()))?;
    let (transport, switching) = (Transport::default(), Switching::default());
    Ok(Scenario {
        fabric,
        addresses,
        overlay: Overlay::Vl2,
        directory: DirectoryStore::default(),
        transport,
        switching,
        shaped: false,
    })
}

/// The first and the last server, and the Intermediates between them.
struct Path<'a> {
    lab: &'a Lab,
    near: (PathBuf, Ipv4Addr),
    far: (PathBuf, Ipv4Addr),
}

impl<'a> Path<'a> {
    fn of(lab: &'a Lab) -> Result<Self, LabError> {
        let servers = lab.server_addresses();
        let place = |(node, address): &(weft_scenario::id::NodeId, Ipv4Addr)| {
            (namespace_path(&lab.plan.node(*node).namespace), *address)
        };
        match (servers.first(), servers.last()) {
            (Some(near), Some(far)) if near != far => Ok(Self { lab, near: place(near), far: place(far) }),
            _ => Err(LabError::Traffic("a path needs two servers".into())),
        }
    }

    fn checks(&self) -> Vec<Check> {
        let whole = |name: &str, check: &dyn Fn(&str) -> Result<Check, LabError>| {
            check(name).unwrap_or_else(|error| Check::fail(name, error.to_string(), "see the reason"))
        };
        vec![
            whole("path: ping", &|name| self.echo(name, 84, 0, is_reply)),
            whole("path: TTL 1", &|name| self.echo(name, 84, 1, is_reply)),
            whole("path: 1500 bytes, DF", &|name| self.echo(name, 1500, 0, is_reply)),
            whole("path: 1501 bytes, DF", &|name| self.echo(name, 1501, 0, |answer| *answer == Answer::TooBig)),
            whole("path: TCP data", &|name| self.transfer(name)),
            whole("path: spread", &|name| self.spread(name)),
        ]
    }

    /// To servers the fabric is one hop that carries 1500 bytes.
    fn echo(&self, name: &str, packet_bytes: usize, ttl: u32, good: fn(&Answer) -> bool) -> Result<Check, LabError> {
        let echo = Echo { packet_bytes, ttl, ..Echo::new(self.near.1, self.far.1) };
        let answer = echo.send_in(&self.near.0)?;
        let found = match answer {
            Answer::Reply(time) => format!("answered in {:.1} ms", time.as_secs_f64() * 1e3),
            Answer::TooBig => "refused as too big".into(),
            Answer::TimeExceeded(by) => format!("TTL ran out at {by}"),
            Answer::Unreachable(by) => format!("{by} knows no way"),
            Answer::Nothing => "no answer".into(),
        };
        if good(&answer) {
            return Ok(Check::ok(name, found));
        }
        Ok(Check::fail(name, found, "look at the counters and logs of a lab: weft lab up vl2-4servers"))
    }

    /// Every byte arrives as sent, which covers checksums, and buffers stay whole on the way, which is what makes a
    /// fabric of namespaces fast.
    fn transfer(&self, name: &str) -> Result<Check, LabError> {
        let taps = self.taps()?;
        let over = AtomicBool::new(false);
        let (received, largest) = std::thread::scope(|scope| {
            let watching = scope.spawn(|| largest_frame(&taps, &over));
            let received = transfer::between(&self.near.0, &self.far.0, self.far.1);
            over.store(true, Ordering::Relaxed);
            (received, join(watching))
        });
        let received = received?;
        let intact = received == transfer::pattern();
        let found = format!(
            "{} of {TRANSFER_BYTES} bytes, {}; largest buffer at an Intermediate {largest} bytes",
            received.len(),
            if intact { "intact" } else { "damaged" }
        );
        Ok(match (intact, largest > FABRIC_MTU_BYTES) {
            (true, true) => Check::ok(name, found),
            (true, false) => Check::warn(name, found, "segmentation offload is off somewhere; labs will be slow"),
            _ => Check::fail(name, found, "checksums or segmentation are broken on this kernel; please report this"),
        })
    }

    fn taps(&self) -> Result<Vec<PacketSocket>, LabError> {
        let fabric = &self.lab.scenario.fabric;
        let mut taps = Vec::new();
        for node in fabric.with_role(Role::Intermediate) {
            for port in fabric.links_of(node).iter().filter_map(|link| fabric.link(*link).end_at(node)) {
                let namespace = namespace_path(&self.lab.plan.node(node).namespace);
                let socket = netns::in_namespace(&namespace, || PacketSocket::open(&port.interface))?;
                taps.push(socket.map_err(LabError::io(format!("listen at {}", port.interface)))?);
            }
        }
        Ok(taps)
    }

    /// Many flows between two servers use all Intermediates: the hash in the outer source address has entropy.
    fn spread(&self, name: &str) -> Result<Check, LabError> {
        let before = self.bounced()?;
        let target = SocketAddrV4::new(self.far.1, 9);
        let near = self.near.1;
        let sent = netns::in_namespace(&self.near.0, || {
            (0..FLOWS).try_for_each(|_| {
                let socket = UdpSocket::bind(SocketAddrV4::new(near, 0))?;
                socket.send_to(b"weft", target).map(drop)
            })
        })?;
        sent.map_err(LabError::io("send datagrams"))?;
        std::thread::sleep(Duration::from_millis(100));
        let shares: Vec<u64> =
            self.bounced()?.iter().zip(before).map(|(now, before)| now.saturating_sub(before)).collect();
        let (least, most) = (shares.iter().min().copied().unwrap_or(0), shares.iter().max().copied().unwrap_or(0));
        let found = format!("{FLOWS} flows over the Intermediates: {shares:?}");
        if least * 2 >= most && least > 0 {
            return Ok(Check::ok(name, found));
        }
        Ok(Check::fail(name, found, "the kernel does not spread over equal paths; see fib_multipath_hash_policy"))
    }

    /// Packets that each Intermediate has decapsulated so far.
    fn bounced(&self) -> Result<Vec<u64>, LabError> {
        let fabric = &self.lab.scenario.fabric;
        let count = |node| {
            let node = &fabric.node(node).name;
            let counters = SwitchMaps::open_pinned(self.lab.pins(node)).and_then(|maps| maps.counters());
            let counters = counters.map_err(|error| crate::overlay::datapath_error(node, &error))?;
            let bounced = counters.iter().filter(|(name, _)| matches!(*name, "decapsulated" | "forwarded"));
            Ok(bounced.map(|(_, count)| count).sum())
        };
        fabric.with_role(Role::Intermediate).map(count).collect()
    }
}

fn is_reply(answer: &Answer) -> bool {
    matches!(answer, Answer::Reply(_))
}

/// The largest frame that any tap saw until the transfer was over and what had queued up by then was read.
fn largest_frame(taps: &[PacketSocket], over: &AtomicBool) -> usize {
    let mut buffer = vec![0; 1 << 17];
    let mut largest = 0;
    loop {
        let last_round = over.load(Ordering::Relaxed);
        for tap in taps {
            // Routing never stops sending: a bounded number of frames per round.
            for _ in 0..4096 {
                let Ok(Some(frame)) = tap.receive(&mut buffer) else { break };
                largest = largest.max(frame.original_bytes as usize);
            }
        }
        if last_round {
            return largest;
        }
    }
}
