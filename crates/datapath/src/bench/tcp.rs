//! What TCP over two VTEPs costs: CPU time for a gigabyte from station to station, over ours and over the kernel's bridge
//! and vxlan device, in turns.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};

use rustix::time::ClockId;
use serde::Serialize;

use super::bed::{Namespace, SoftirqThreads, connect, ip, ns, setup_failed};
use super::{Ceiling, TCP_OVER_KERNEL_MAX};
use crate::error::DatapathError;
use crate::interface;
use crate::vxlan::{AccessRule, Flood, Vni, VniSettings, Vtep, VtepOptions};

/// How much to send.
#[derive(Clone, Copy, Debug)]
pub struct TcpOptions {
    /// Bytes of one flow.
    pub bytes: usize,
    /// Pairs of flows, one over ours and one over the kernel's, in changing order.
    pub rounds: u32,
}

impl Default for TcpOptions {
    fn default() -> Self {
        Self { bytes: 512 << 20, rounds: 16 }
    }
}

/// What [`tcp`] found.
#[derive(Clone, Debug, Serialize)]
pub struct TcpReport {
    /// CPU seconds for 10^9 bytes over our VTEPs, of each round.
    pub ours_cpu_s_per_gb: Vec<f64>,
    /// The same over the kernel's.
    pub kernel_cpu_s_per_gb: Vec<f64>,
    /// Geometric mean of the rounds' ratios, ours to the kernel's.
    pub ratio: f64,
    /// Its 95 % interval.
    pub interval: [f64; 2],
    /// Of the interval's upper end.
    #[serde(skip)]
    pub ceiling: Ceiling,
}

/// CPU time of TCP over our VTEPs and over the kernel's, in namespaces `weft-bench-*` of its own.
///
/// # Errors
/// Any [`DatapathError`]; the namespaces are gone afterwards.
pub fn tcp(options: &TcpOptions) -> Result<TcpReport, DatapathError> {
    let options = *options;
    // A thread of its own, because it changes its namespace.
    let thread = std::thread::spawn(move || measure(&options));
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

fn measure(options: &TcpOptions) -> Result<TcpReport, DatapathError> {
    let (ours, kernel) = (Bed::new(Kind::Ours)?, Bed::new(Kind::Kernel)?);
    // Caches and neighbours first.
    ours.send(options.bytes / 8)?;
    kernel.send(options.bytes / 8)?;
    let (mut with_ours, mut with_kernel) = (Vec::new(), Vec::new());
    for round in 0..options.rounds.max(2) {
        if round % 2 == 0 {
            with_ours.push(ours.send(options.bytes)?);
            with_kernel.push(kernel.send(options.bytes)?);
        } else {
            with_kernel.push(kernel.send(options.bytes)?);
            with_ours.push(ours.send(options.bytes)?);
        }
    }
    let logs: Vec<f64> = with_ours.iter().zip(&with_kernel).map(|(ours, kernel)| (ours / kernel).ln()).collect();
    let (mean, half) = mean_and_half_width(&logs);
    let interval = [(mean - half).exp(), (mean + half).exp()];
    let id = "tcp_cpu_over_kernel_vxlan_upper_end".to_owned();
    Ok(TcpReport {
        ours_cpu_s_per_gb: with_ours,
        kernel_cpu_s_per_gb: with_kernel,
        ratio: mean.exp(),
        interval,
        ceiling: Ceiling { id, ours: interval[1], want_max: TCP_OVER_KERNEL_MAX },
    })
}

/// Mean and half of its 95 % interval. Twice the standard error and a bit: Student's t for some ten to thirty values.
fn mean_and_half_width(values: &[f64]) -> (f64, f64) {
    const T: f64 = 2.13;
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (count - 1.0);
    (mean, T * (variance / count).sqrt())
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Ours,
    Kernel,
}

const STATIONS: [Ipv4Addr; 2] = [Ipv4Addr::new(20, 0, 0, 1), Ipv4Addr::new(20, 0, 0, 2)];
const VTEPS: [Ipv4Addr; 2] = [Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 2)];
const SEGMENT: u32 = 42;

/// station - VTEP - VTEP - station. Fields end in this order.
struct Bed {
    _vteps: Vec<Vtep>,
    softirqs: SoftirqThreads,
    stations: [Namespace; 2],
    _nodes: [Namespace; 2],
}

impl Bed {
    fn new(kind: Kind) -> Result<Self, DatapathError> {
        let id = format!("{}-tcp{}", std::process::id(), u8::from(kind == Kind::Kernel));
        let stations = ["sa", "sb"].map(|node| Namespace::new(&id, node));
        let nodes = ["na", "nb"].map(|node| Namespace::new(&id, node));
        stations.iter().chain(&nodes).try_for_each(Namespace::create)?;
        connect((&nodes[0], "up"), (&nodes[1], "up"))?;
        let mut vteps = Vec::new();
        for side in 0..2 {
            let (station, node) = (&stations[side], &nodes[side]);
            connect((station, "eth0"), (node, "vm"))?;
            ip(&["-n", &station.0, "link", "set", "dev", "eth0", "mtu", "1500"])?;
            ip(&["-n", &station.0, "addr", "add", &format!("{}/24", STATIONS[side]), "dev", "eth0"])?;
            ip(&["-n", &node.0, "addr", "add", &format!("{}/24", VTEPS[side]), "dev", "up"])?;
            node.enter()?;
            match kind {
                Kind::Ours => vteps.push(our_vtep(side)?),
                Kind::Kernel => kernel_vtep(node, side)?,
            }
        }
        Ok(Self { _vteps: vteps, softirqs: SoftirqThreads::find(None), stations, _nodes: nodes })
    }

    /// CPU seconds for 10^9 bytes.
    fn send(&self, bytes: usize) -> Result<f64, DatapathError> {
        let [from, to] = &self.stations;
        let failed = |source| setup_failed("sending over TCP", source);
        to.enter()?;
        let listener = TcpListener::bind((STATIONS[1], 0)).map_err(failed)?;
        let port = listener.local_addr().map_err(failed)?.port();
        from.enter()?;
        let mut stream = TcpStream::connect((STATIONS[1], port)).map_err(failed)?;
        let before = self.softirqs.cpu_ns();
        let receiver = std::thread::spawn(move || receive(&listener));
        let block = vec![7u8; 1 << 18];
        for _ in 0..bytes / block.len() {
            stream.write_all(&block).map_err(failed)?;
        }
        drop(stream);
        let (received, spent) = receiver.join().expect("it does not panic").map_err(failed)?;
        let cpu_ns = self.softirqs.cpu_ns() - before + spent;
        Ok(cpu_ns / received as f64)
    }
}

fn receive(listener: &TcpListener) -> std::io::Result<(usize, f64)> {
    let (mut stream, _) = listener.accept()?;
    let mut block = vec![0u8; 1 << 18];
    let mut received = 0;
    loop {
        match stream.read(&mut block)? {
            0 => return Ok((received, ns(ClockId::ThreadCPUTime))),
            length => received += length,
        }
    }
}

fn our_vtep(side: usize) -> Result<Vtep, DatapathError> {
    let vni = Vni::new(SEGMENT).expect("a valid number");
    let mut vtep = Vtep::load(&VtepOptions::new(VTEPS[side]))?;
    let flood = Flood::HeadEnd(vec![VTEPS[1 - side]]);
    vtep.add_vni(vni, &VniSettings { flood, ..VniSettings::default() })?;
    vtep.attach_uplink(interface::index_of("up")?)?;
    vtep.attach_access(interface::index_of("vm")?, vni, AccessRule::default())?;
    Ok(vtep)
}

fn kernel_vtep(node: &Namespace, side: usize) -> Result<(), DatapathError> {
    let name = &node.0;
    let (id, local, remote) = (SEGMENT.to_string(), VTEPS[side].to_string(), VTEPS[1 - side].to_string());
    let tunnel = ["vxlan", "id", &id, "dstport", "4789", "local", &local, "remote", &remote, "dev", "up", "noudpcsum"];
    ip(&["-n", name, "link", "add", "br0", "mtu", "1500", "type", "bridge"])?;
    ip(&[&["-n", name, "link", "add", "vx0", "mtu", "1500", "type"][..], &tunnel].concat())?;
    for port in ["vm", "vx0"] {
        ip(&["-n", name, "link", "set", "dev", port, "master", "br0"])?;
        ip(&["-n", name, "link", "set", "dev", port, "up"])?;
    }
    ip(&["-n", name, "link", "set", "dev", "br0", "up"])
}

#[cfg(test)]
mod tests {
    use super::mean_and_half_width;

    #[test]
    fn the_interval_is_that_of_the_mean() {
        let (mean, half) = mean_and_half_width(&[1.0, 2.0, 3.0, 4.0]);
        assert!((mean - 2.5).abs() < 1e-9 && (half - 2.13 * (5.0f64 / 3.0 / 4.0).sqrt()).abs() < 1e-9);
    }
}
