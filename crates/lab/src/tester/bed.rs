//! The tester's own paths, in namespaces of its own: a plain veth pair, whose latency is the tester's floor and whose rate
//! is the generator's, and a relay with a known cost, by which the cost method is checked.

use std::sync::atomic::{AtomicU32, Ordering};

use weft_testbed::tester::{EmulatedLinks, LinkParams};

use super::error::TesterError;
use super::path::Path;
use super::port::Port;
use super::sizes::Sizes;
use super::stream::StreamPlan;
use crate::batch::{self, Program};
use crate::error::LabError;
use crate::home::{PREFIX, namespace_path};
use crate::netns::{self, Found};
use crate::owner::Owner;
use crate::process::{in_namespaces, kill_all};

/// MTU of all interfaces of beds.
pub(crate) const BED_MTU: u32 = 9216;
/// What the names of beds' namespaces begin with; then the process and a number.
const BED_PREFIX: &str = "tester-";
static NUMBER: AtomicU32 = AtomicU32::new(0);

/// What is between the two ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Between {
    /// Nothing: the ports are the two ends of one veth pair.
    Direct,
    /// The tester's own XDP relay.
    Relay {
        /// What it spends on every frame, nanoseconds.
        burn_ns: u32,
        /// The link that it sends over.
        link: LinkParams,
    },
    /// The kernel's bridge, with the link on its egress.
    Bridge {
        /// The link; `None`: no program there.
        link: Option<LinkParams>,
    },
}

/// Namespaces with two ports; they go when this is dropped.
#[derive(Debug)]
pub struct Bed {
    ports: [Port; 2],
    links: Option<EmulatedLinks>,
    namespaces: Namespaces,
}

impl Bed {
    /// Makes it.
    ///
    /// # Errors
    /// Any [`TesterError`]; nothing is left behind.
    pub fn new(between: Between) -> Result<Self, TesterError> {
        let namespaces = make_namespaces(&["a", "b", "dut"].map(str::to_owned))?;
        let [a, b, dut] = namespaces.names() else { unreachable!("three namespaces") };
        let direct = between == Between::Direct;
        let (far_a, far_b) = if direct { (b, a) } else { (dut, dut) };
        wire(a, "g0", far_a, if direct { "k0" } else { "s0" })?;
        if !direct {
            wire(b, "k0", far_b, "s1")?;
        }
        let links = netns::in_namespace(&namespace_path(dut), || join(between))??;
        let ports = [Port::open(&format!("{a}:g0"))?, Port::open(&format!("{b}:k0"))?];
        Ok(Self { ports, links, namespaces })
    }

    /// The sending and the receiving port.
    pub fn ports(&self) -> &[Port; 2] {
        &self.ports
    }

    /// Opens a path over it.
    ///
    /// # Errors
    /// As [`Path::open`].
    pub fn path(&self, plan: &StreamPlan, sizes: impl Into<Sizes>) -> Result<Path, TesterError> {
        Path::open(&self.ports[0], &self.ports[1..], plan, sizes)
    }

    /// Runs `work` with the bed's links, in the namespace of the device.
    ///
    /// # Errors
    /// Any [`TesterError`].
    pub fn with_links<T: Send>(&self, work: impl FnOnce(&EmulatedLinks) -> T + Send) -> Result<T, TesterError> {
        let links = self.links.as_ref().ok_or_else(|| TesterError::Refused("this bed has no links".to_owned()))?;
        Ok(netns::in_namespace(&namespace_path(&self.namespaces.0[2]), || work(links))?)
    }
}

/// Namespaces of a bed. They go when this is dropped.
#[derive(Debug)]
pub(crate) struct Namespaces(Vec<String>);

impl Namespaces {
    /// In the order of the nodes.
    pub(crate) fn names(&self) -> &[String] {
        &self.0
    }
}

impl Drop for Namespaces {
    fn drop(&mut self) {
        // Nothing can be done about a failure here; the next bed sweeps what begins like this, as does `weft lab down --all`.
        let _gone = netns::delete(&self.0);
    }
}

/// Makes a namespace for each node, after sweeping what killed processes have left.
pub(crate) fn make_namespaces(nodes: &[String]) -> Result<Namespaces, TesterError> {
    sweep()?;
    let id = format!("{PREFIX}{BED_PREFIX}{}-{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
    let names: Vec<String> = nodes.iter().map(|node| format!("{id}-{node}")).collect();
    let made = Namespaces(names);
    netns::create(&made.0, |_| quiet_ipv6())?;
    Ok(made)
}

/// Removes namespaces of beds whose process is gone, and with them whatever was in them; their names.
///
/// # Errors
/// [`TesterError::Lab`].
pub fn sweep() -> Result<Vec<String>, TesterError> {
    let of_the_dead = |found: &Found| match found {
        Found::Ours(Owner::Process(id), _) | Found::Stub(Some(Owner::Process(id))) => !id.is_alive(),
        _ => false,
    };
    let mut left = netns::look_at_all(&format!("{PREFIX}{BED_PREFIX}"))?;
    left.retain(|(_, found)| of_the_dead(found));
    let inode = |found: &Found| if let Found::Ours(_, inode) = found { Some(*inode) } else { None };
    // Daemons would keep their namespaces.
    kill_all(&in_namespaces(&left.iter().filter_map(|(_, found)| inode(found)).collect()));
    let left: Vec<String> = left.into_iter().map(|(name, _)| name).collect();
    netns::delete(&left)?;
    Ok(left)
}

/// No IPv6: router solicitations would be frames that nobody generated.
fn quiet_ipv6() -> Result<(), LabError> {
    for scope in ["all", "default"] {
        let path = format!("/proc/sys/net/ipv6/conf/{scope}/disable_ipv6");
        if std::path::Path::new(&path).exists() {
            std::fs::write(&path, "1").map_err(LabError::io(format!("write {path}")))?;
        }
    }
    Ok(())
}

/// A veth pair between two namespaces, both ends up.
pub(crate) fn wire(a: &str, a_interface: &str, b: &str, b_interface: &str) -> Result<(), LabError> {
    let add =
        format!("link add dev {a_interface} mtu {BED_MTU} type veth peer name {b_interface} mtu {BED_MTU} netns {b}");
    let up = |interface: &str| format!("link set dev {interface} up");
    netns::in_namespace(&namespace_path(a), || batch::run(Program::Ip, a, &[add, up(a_interface)]))??;
    netns::in_namespace(&namespace_path(b), || batch::run(Program::Ip, b, &[up(b_interface)]))?
}

/// Joins `s0` and `s1` of the calling thread's namespace.
fn join(between: Between) -> Result<Option<EmulatedLinks>, TesterError> {
    let mut links = match between {
        Between::Direct => return Ok(None),
        _ => EmulatedLinks::load()?,
    };
    match between {
        Between::Direct => {}
        Between::Relay { burn_ns, link } => {
            links.set("s1", &link)?;
            links.relay("s0", "s1", burn_ns)?;
        }
        Between::Bridge { link } => {
            let ports = ["link set dev s0 master br0", "link set dev s1 master br0"];
            let lines = ["link add dev br0 type bridge", ports[0], ports[1], "link set dev br0 up"];
            batch::run(Program::Ip, "bridge", &lines)?;
            // A veth end takes live frames only if its peer polls, which any XDP program makes it do.
            links.hold("s0")?;
            if let Some(link) = link {
                links.set("s1", &link)?;
                links.attach_tc("s1")?;
            }
        }
    }
    Ok(Some(links))
}
