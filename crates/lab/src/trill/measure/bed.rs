//! Switches without daemons between two ports of the test centre, one bed for each way of forwarding.
//!
//! ```text
//!              S3
//!            /    \
//!  t1 --- S1 - S4 - S2 --- t2        a line has S3 only
//!            \ S5 /
//!              S6
//! ```
//!
//! The switches' programs are the shipped ones, told beforehand what a control plane would tell them: so nothing is flooded
//! while something is measured, and a chain can end where a daemon would not let it.

use weft_datapath::bed::{BedPrograms, Cut};
use weft_scenario::workload::trill::{Network, Way};

use super::switch::{ON_TREE, Running, Spread, Switch, TESTER_INTERFACE, interface_to, middles, neighbours};
use crate::home::namespace_path;
use crate::netns;
use crate::tester::TesterError;
use crate::tester::bed::{Namespaces, make_namespaces, wire};
use crate::tester::port::Port;
use crate::tester::stream::StreamPlan;

/// The test centre's interfaces.
pub(super) const PORT: &str = "g0";

/// Where a chain ends: what comes next drops every frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// Behind the test centre's own port.
    Tester,
    /// Behind S1.
    S1,
    /// Behind the middle switches.
    Middle,
    /// Behind S2.
    S2,
}

/// What is between the test centre's ports.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    pub(super) network: Network,
    pub(super) way: Way,
    /// `None`: frames go to the other port.
    pub(super) end: Option<End>,
    pub(super) spread: Spread,
}

impl Shape {
    /// Whether frames are the kernel's packets on their way, not XDP frames.
    fn in_stack(self) -> bool {
        matches!(self.way, Way::Stp | Way::TrillGeneric)
    }
}

/// The bed. Fields end in this order.
pub(super) struct Bed {
    switches: Vec<(u8, Running)>,
    _cuts: Vec<Cut>,
    cut_programs: BedPrograms,
    network: Network,
    names: Names,
    _namespaces: Namespaces,
}

/// Names of the namespaces.
struct Names {
    testers: [String; 2],
    switches: Vec<String>,
}

impl Names {
    /// Switches count from 1.
    fn switch(&self, number: u8) -> &str {
        &self.switches[usize::from(number) - 1]
    }
}

impl Bed {
    pub(super) fn new(shape: Shape, plan: &StreamPlan) -> Result<Self, TesterError> {
        let streams = plan.streams().map_err(TesterError::Refused)?;
        let (namespaces, names) = make_names(shape)?;
        connect(shape.network, &names)?;
        let mut switches = Vec::new();
        for number in 1..=names.switches.len() as u8 {
            if forwards(shape.end, number) {
                let (network, way, spread) = (shape.network, shape.way, shape.spread);
                let switch = Switch { number, network, way, spread, streams: &streams };
                let namespace = names.switch(number);
                let running = netns::in_namespace(&namespace_path(namespace), || switch.set_up(namespace))??;
                switches.push((number, running));
            }
        }
        let (cut_programs, cuts) = cut(shape, &names)?;
        Ok(Self { switches, _cuts: cuts, cut_programs, network: shape.network, names, _namespaces: namespaces })
    }

    /// The test centre's ports, first the sending one.
    pub(super) fn ports(&self) -> Result<[Port; 2], TesterError> {
        let [sending, receiving] = &self.names.testers;
        let port = |namespace: &str| Port::open(&format!("{namespace}:{PORT}"));
        Ok([port(sending)?, port(receiving)?])
    }

    /// The middle switches, each with its port towards S1.
    pub(super) fn middles(&self) -> Result<Vec<(String, Port)>, TesterError> {
        let middle = |number: u8| {
            let port = Port::open(&format!("{}:{}", self.names.switch(number), interface_to(1)))?;
            Ok((format!("s{number}"), port))
        };
        middles(self.network).map(middle).collect()
    }

    /// Frames that the first middle switch, if it is an RBridge, sent on, by the CPU that worked on them.
    pub(super) fn transit_by_cpu(&self) -> Result<Vec<u64>, TesterError> {
        match self.switches.iter().find(|(number, _)| *number == ON_TREE) {
            Some((_, Running::RBridge(rbridge))) => Ok(rbridge.maps().by_cpu("transit")?),
            _ => Ok(Vec::new()),
        }
    }

    /// Namespace of the sending port.
    pub(super) fn sender(&self) -> &str {
        &self.names.testers[0]
    }

    /// Frames that came to the cut since the bed was made.
    pub(super) fn cut_frames(&self) -> Result<u64, TesterError> {
        Ok(self.cut_programs.cut_frames()?)
    }
}

/// Whether a switch is in front of the end.
fn forwards(end: Option<End>, number: u8) -> bool {
    match end {
        None | Some(End::S2) => true,
        Some(End::Middle) => number != 2,
        Some(End::S1) => number == 1,
        Some(End::Tester) => false,
    }
}

fn make_names(shape: Shape) -> Result<(Namespaces, Names), TesterError> {
    let switches = 2 + shape.network.paths() as usize;
    let mut nodes: Vec<String> = ["t1", "t2"].map(str::to_owned).into();
    nodes.extend((1..=switches).map(|number| format!("s{number}")));
    let namespaces = make_namespaces(&nodes)?;
    let names = namespaces.names();
    let testers = [names[0].clone(), names[1].clone()];
    let names = Names { testers, switches: names[2..2 + switches].to_vec() };
    Ok((namespaces, names))
}

/// A link between S1 or S2 and a middle switch: number of the outer one, number of the middle one.
fn between(network: Network) -> impl Iterator<Item = (u8, u8)> {
    neighbours(network, 1).into_iter().flat_map(|middle| [(1, middle), (2, middle)])
}

fn connect(network: Network, names: &Names) -> Result<(), TesterError> {
    for (outer, middle) in between(network) {
        wire(names.switch(outer), &interface_to(middle), names.switch(middle), &interface_to(outer))?;
    }
    for (edge, tester) in (1..).zip(&names.testers) {
        wire(tester, PORT, names.switch(edge), TESTER_INTERFACE)?;
    }
    Ok(())
}

/// Ends the chain.
fn cut(shape: Shape, names: &Names) -> Result<(BedPrograms, Vec<Cut>), TesterError> {
    let mut programs = BedPrograms::load()?;
    let at: Vec<(&str, String)> = match shape.end {
        None => Vec::new(),
        Some(End::Tester) => vec![(names.switch(1), TESTER_INTERFACE.to_owned())],
        Some(End::S1) => middles(shape.network).map(|middle| (names.switch(middle), interface_to(1))).collect(),
        Some(End::Middle) => middles(shape.network).map(|middle| (names.switch(2), interface_to(middle))).collect(),
        Some(End::S2) => vec![(&names.testers[1], PORT.to_owned())],
    };
    let mut cuts = Vec::new();
    for (namespace, interface) in at {
        let path = namespace_path(namespace);
        // The test centre alone is the same for all ways: what makes a packet of a frame is the first switch's work.
        if shape.in_stack() && shape.end != Some(End::Tester) {
            cuts.push(netns::in_namespace(&path, || programs.cut(&interface))??);
        } else {
            netns::in_namespace(&path, || programs.cut_xdp(&interface))??;
        }
    }
    Ok((programs, cuts))
}
