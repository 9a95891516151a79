//! How likely hashed flows fit on a leaf's uplinks (leaf-spine paper, "Intuition"): counted exactly, and drawn at random.
//!
//! The flows of a trial leave one leaf; the fabric says how many uplinks that has and how many servers' rates fit on one. "Full
//! throughput" means that no uplink has more flows than fit: then every flow has its server's rate.

mod chance;

use chance::{Chance, Fraction};
use weft_scenario::id::LinkId;
use weft_scenario::topology::{Fabric, Role};

use super::Value;
use crate::analysis::series::Window;
use crate::analysis::{Input, TrialRecords};

/// Draws, in the first repetition: the standard error is at most 0.0005.
const DRAWS: u32 = 1_000_000;

pub(super) const COLUMNS: &[&str] =
    &["flow_count", "link_count", "fit_count", "exact", "full_ratio", "throughput_ratio", "drawn", "draws", "problem"];

pub(super) fn rows(input: &Input<'_>, trial: &TrialRecords, _: Window) -> Vec<Vec<Value>> {
    let Some((_, fabric)) = input.at(&trial.key) else { return Vec::new() };
    let from: Vec<u32> = trial.records.flows.iter().map(|flow| flow.from).collect();
    let row = chance_of(fabric, &from).and_then(|chance| counted(chance, &trial.key));
    let unknown = |problem| [vec![Value::Null; COLUMNS.len() - 1], vec![Value::Text(problem)]].concat();
    vec![row.unwrap_or_else(unknown)]
}

fn counted(chance: Chance, key: &crate::analysis::TrialKey) -> Result<Vec<Value>, String> {
    let exact = |fraction: Option<Fraction>| fraction.ok_or("the numbers are too large to count exactly");
    let (full, throughput) = (exact(chance.all_fit())?, exact(chance.expected_throughput())?);
    let number = |count: u32| Value::Integer(count.into());
    let drawn = match key.repetition {
        1 => [number(chance.draw(DRAWS, key.seed)), number(DRAWS)],
        _ => [Value::Null, Value::Null],
    };
    let head = [number(chance.flows), number(chance.uplinks), number(chance.fit), Value::Text(full.to_string())];
    let ratios = [Value::Real(full.value()), Value::Real(throughput.value())];
    Ok(head.into_iter().chain(ratios).chain(drawn).chain([Value::Null]).collect())
}

/// The question for flows of these servers, which hang below one leaf.
fn chance_of(fabric: &Fabric, from: &[u32]) -> Result<Chance, String> {
    let servers: Vec<_> = fabric.servers().collect();
    let edges: Option<Vec<_>> = from.iter().map(|from| fabric.edge_of(*servers.get(*from as usize)?)).collect();
    let edges = edges.ok_or("a flow comes from a server that the fabric does not have")?;
    let Some((leaf, link)) = edges.first().copied() else { return Err("there are no flows".into()) };
    if edges.iter().any(|(edge, _)| *edge != leaf) {
        return Err("the flows leave more than one leaf".into());
    }
    let far = |link: LinkId| fabric.link(link).far_end(leaf).map(|port| fabric.node(port.node).role);
    let uplinks: Vec<_> =
        fabric.links_of(leaf).iter().copied().filter(|link| far(*link) == Some(Role::Spine)).collect();
    let Some(uplink) = uplinks.first() else { return Err("the leaf has no uplinks".into()) };
    let fit = fabric.link(*uplink).spec.rate.0 / fabric.link(link).spec.rate.0.max(1);
    Ok(Chance { flows: from.len() as u32, uplinks: uplinks.len() as u32, fit: fit as u32 })
}
