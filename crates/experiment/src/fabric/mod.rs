//! Networks as the command line names them: a fabric that comes with weft, a file, or a generator with its parameters; what is wrong
//! with a file, and what is in it.

pub mod drawing;

use std::collections::BTreeMap;
use std::path::Path;

use serde::Serialize;
use weft_scenario::addressing::{AddressPlan, AddressingOptions};
use weft_scenario::engine::Overlay;
use weft_scenario::topology::{Fabric, FabricSpec, LoadError, check_yaml};
use weft_scenario::units::BitsPerSec;

use crate::plan::fabric_text;

/// What a word of the command line names: `vl2-4servers`, `my-fabric.yaml`, `fat-tree:k=8`.
pub fn named(word: &str) -> Result<FabricSpec, String> {
    match is_generator(word) {
        true => FabricSpec::parse_word(word),
        false => Ok(FabricSpec::File(word.to_owned())),
    }
}

/// Whether a word is one of a generator with parameters, and no file of that name is there.
fn is_generator(word: &str) -> bool {
    let name = word.split_once(':').map(|(name, _)| name);
    name.is_some_and(|name| !name.contains(['/', '.'])) && !Path::new(word).exists()
}

/// Reads or makes the fabric that a word names. The error is the first mistake, and says how many others there are.
pub fn read(word: &str) -> Result<Fabric, String> {
    let whose = |reason: &dyn std::fmt::Display| format!("fabric `{word}`: {reason}");
    if is_generator(word) {
        return FabricSpec::parse_word(word)
            .map_err(|error| whose(&error))?
            .build(&|name| fabric_text(name, None))
            .map_err(|error| whose(&error));
    }
    let text = fabric_text(word, Some(Path::new(""))).map_err(|reason| whose(&reason))?;
    check_yaml(&text, word).map_err(|mistakes| match &mistakes[..] {
        [only] => only.to_string(),
        [first, others @ ..] => format!("{first} (and {} more: weft fabric check {word})", others.len()),
        [] => whose(&"it is no fabric"),
    })
}

/// What `weft fabric check` says.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Checked {
    pub schema_version: u32,
    /// As it was named.
    pub file: String,
    /// Everything that is wrong, in the order of the file; empty if nothing is.
    pub mistakes: Vec<Mistake>,
    /// What is in it, if it is a fabric.
    pub fabric: Option<Facts>,
}

/// What is wrong, and where.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Mistake {
    /// `file:line:column`, `file:line`, or the file alone where a rule is about the whole.
    pub place: String,
    /// What is wrong there and what to do.
    pub message: String,
}

/// What is in a fabric.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Facts {
    pub name: String,
    pub nodes: usize,
    pub switches: usize,
    pub servers: usize,
    pub links: usize,
    /// How many nodes have each role.
    pub roles: BTreeMap<String, usize>,
    /// What carries packets there unless something else is said.
    pub overlay: Overlay,
    /// What all links between servers and switches carry together, each way.
    pub server_rate: BitsPerSec,
    /// The most that an edge switch's servers can send over what its links to other switches carry: 1 or less is not oversubscribed. None
    /// where an edge switch has no such link.
    pub oversubscription: Option<f64>,
}

/// Checks a fabric as bringing it up and simulating it would, and finds every mistake. The error says why there is nothing to check.
pub fn check(word: &str) -> Result<Checked, String> {
    let mistake = |error: &LoadError| Mistake { place: error.place().to_owned(), message: error.message() };
    let on_the_whole = |message: String| vec![Mistake { place: word.to_owned(), message }];
    let built = match is_generator(word) {
        true => read(word).map_err(on_the_whole),
        false => {
            let text = fabric_text(word, Some(Path::new(""))).map_err(|reason| format!("fabric `{word}`: {reason}"))?;
            check_yaml(&text, word).map_err(|mistakes| mistakes.iter().map(mistake).collect())
        }
    };
    let checked = built.and_then(|fabric| {
        AddressPlan::new(&fabric, AddressingOptions::default()).map_err(|error| on_the_whole(error.to_string()))?;
        fabric.check_forwarding(fabric.default_overlay()).map_err(|error| vec![mistake(&error)])?;
        Ok(Facts::of(&fabric))
    });
    let (fabric, mistakes) = checked.map_or_else(|mistakes| (None, mistakes), |facts| (Some(facts), Vec::new()));
    Ok(Checked { schema_version: 1, file: word.to_owned(), mistakes, fabric })
}

impl Facts {
    fn of(fabric: &Fabric) -> Self {
        let mut roles = BTreeMap::new();
        for node in fabric.nodes() {
            *roles.entry(format!("{:?}", node.role).to_lowercase()).or_insert(0) += 1;
        }
        let rate = |link| fabric.link(link).spec.rate.0;
        let servers = fabric.servers().filter_map(|server| fabric.edge_of(server)).map(|(_, link)| rate(link));
        Self {
            name: fabric.name().to_owned(),
            nodes: fabric.nodes().len(),
            switches: fabric.switches().count(),
            servers: fabric.servers().count(),
            links: fabric.links().len(),
            roles,
            overlay: fabric.default_overlay(),
            server_rate: BitsPerSec(servers.sum()),
            oversubscription: oversubscription(fabric),
        }
    }
}

/// The worst ratio of what servers below an edge switch send to what leads on from it.
fn oversubscription(fabric: &Fabric) -> Option<f64> {
    let mut worst = None;
    for edge in fabric.switches().filter(|switch| fabric.node(*switch).role.is_edge_switch()) {
        let (mut below, mut beyond) = (0u64, 0u64);
        for link in fabric.links_of(edge).iter().map(|link| fabric.link(*link)) {
            let far = link.far_end(edge).map(|port| fabric.node(port.node).role);
            match far {
                Some(role) if role.is_switch() => beyond += link.spec.rate.0,
                Some(_) => below += link.spec.rate.0,
                None => {}
            }
        }
        if below > 0 {
            let ratio = (beyond > 0).then(|| below as f64 / beyond as f64)?;
            worst = Some(worst.map_or(ratio, |worst: f64| worst.max(ratio)));
        }
    }
    worst
}

#[cfg(test)]
mod tests;
