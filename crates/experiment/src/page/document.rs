//! Everything that a page shows of one trial, as JSON.

use serde::Serialize;
use weft_scenario::topology::{self, Fabric, Role};

use super::chunk::{self, Chunk};
use super::events;
use super::flows::{self, Followed};
use super::layout::{Layout, Place};
use super::picture::Picture;
use crate::analysis::{TrialKey, TrialRecords};
use crate::plan::{Axis, PlanSpec};

/// The form of the document; a page reads no other.
const FORMAT: u32 = 1;

/// What a page shows.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Document {
    pub format: u32,
    /// What ran.
    pub title: String,
    /// How and which of its trials.
    pub subtitle: String,
    /// The trial among others of its run.
    pub label: String,
    /// The page that it belongs to.
    pub report: String,
    pub layout: Layout,
    pub nodes: Vec<Node>,
    pub links: Vec<Link>,
    /// What happened.
    pub chunk: Chunk,
    /// Flows whose ways are known.
    pub flows: Vec<Followed>,
}

/// A node and where it stands.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Node {
    pub name: String,
    pub role: Role,
    /// Whether it is drawn as a box with its name.
    pub is_switch: bool,
    /// How many nodes it stands for.
    pub members: usize,
    pub x: f64,
    pub y: f64,
    /// Where away from the network is.
    pub out: (f64, f64),
}

/// A link; its nodes are numbers.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Link {
    pub a: usize,
    pub b: usize,
    pub a_interface: String,
    pub b_interface: String,
    pub class: String,
    /// Of all links that it stands for, together.
    pub rate_bps: u64,
    /// How many they are.
    pub members: usize,
    /// How far its middle lies from the straight line.
    pub bend: f64,
}

impl Document {
    /// The document of a network that runs.
    pub(super) fn live(picture: &Picture<'_>, title: &str, subtitle: &str, chunk: Chunk) -> Self {
        let layout = Layout::of(&picture.drawn);
        Self {
            format: FORMAT,
            title: title.to_owned(),
            subtitle: subtitle.to_owned(),
            label: String::new(),
            report: String::new(),
            nodes: nodes(picture, &layout),
            links: links(picture, &layout),
            layout,
            chunk,
            flows: Vec::new(),
        }
    }

    /// The document of a trial; `None` where its rows say nothing about links over time, or the fabric is too large. `axes` are those of the sweep.
    pub fn of(spec: &PlanSpec, axes: &[Axis], fabric: &Fabric, trial: &TrialRecords) -> Option<Self> {
        let picture = Picture::of(fabric)?;
        let events = events::of(&picture, &spec.fault, &trial.records);
        let chunk = chunk::of(&picture, &trial.records, events)?;
        let layout = Layout::of(&picture.drawn);
        let label = label(axes, &trial.key);
        Some(Self {
            format: FORMAT,
            title: if spec.title.is_empty() { spec.id.clone() } else { spec.title.clone() },
            subtitle: format!(
                "{}, engine {}, {label}, seed {}, on {}",
                spec.id,
                spec.runs_on,
                trial.key.seed,
                fabric.name()
            ),
            label,
            report: "report.html".to_owned(),
            nodes: nodes(&picture, &layout),
            links: links(&picture, &layout),
            layout,
            chunk,
            flows: flows::of(&picture, &trial.records),
        })
    }
}

/// `trial 3: load 20 %, all-to-all, vl2`.
pub(super) fn label(axes: &[Axis], key: &TrialKey) -> String {
    let place = |(axis, place): (&Axis, &String)| format!("{} {place} {}", axis.name, axis.unit).trim_end().to_owned();
    let places = axes.iter().zip(&key.point).map(place);
    let what = places.chain([key.workload.clone(), key.overlay.name().to_owned()]).collect::<Vec<_>>().join(", ");
    format!("trial {}: {what}", key.trial)
}

fn nodes(picture: &Picture<'_>, layout: &Layout) -> Vec<Node> {
    let round = |value: f64| (value * 10.0).round() / 10.0;
    let parts = picture.drawn.nodes().iter().zip(&picture.node_members).zip(&layout.places);
    let node = |((node, members), place): ((&topology::Node, &usize), &Place)| Node {
        name: node.name.clone(),
        role: node.role,
        is_switch: node.role.tier() != Role::HOST_TIER,
        members: *members,
        x: round(place.x),
        y: round(place.y),
        out: ((place.out.0 * 1e3).round() / 1e3, (place.out.1 * 1e3).round() / 1e3),
    };
    parts.map(node).collect()
}

fn links(picture: &Picture<'_>, layout: &Layout) -> Vec<Link> {
    let fabric = &picture.drawn;
    let link = |(number, bend): (usize, &f64)| {
        let id = weft_scenario::id::LinkId(number as u32);
        let link = fabric.link(id);
        Link {
            a: link.a.node.index(),
            b: link.b.node.index(),
            a_interface: link.a.interface.clone(),
            b_interface: link.b.interface.clone(),
            class: fabric.link_class(id),
            rate_bps: picture.rates[number],
            members: picture.link_members[number],
            bend: bend.round(),
        }
    };
    layout.bends.iter().enumerate().map(link).collect()
}
