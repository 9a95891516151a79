//! What breaks when.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::id::{LinkId, NodeId};
use crate::topology::Fabric;
use crate::units::Nanos;

/// Something that happens to the fabric during a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(try_from = "RawFault")]
pub struct Fault {
    /// When it begins, from the start of the run.
    pub at: Nanos,
    /// How long it lasts; `None`: to the end of the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lasts: Option<Nanos>,
    /// What fails.
    #[serde(flatten)]
    pub kind: FaultKind,
}

/// What can fail.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum FaultKind {
    /// A switch loses all its links (both ends see them go down).
    SwitchDown {
        /// Name of the switch.
        node: String,
    },
    /// All links of a switch lose everything in both directions and stay up: it is dead, and nobody is told.
    SwitchSilent {
        /// Name of the switch.
        node: String,
    },
    /// The link between two nodes goes down, or all of them if there are several; both ends see it.
    LinkDown {
        /// Name of one end's node.
        a: String,
        /// Name of the other end's node.
        b: String,
    },
    /// The link between two nodes, or all of them if there are several, loses everything in both directions and stays up:
    /// nobody is told.
    LinkSilent {
        /// Name of one end's node.
        a: String,
        /// Name of the other end's node.
        b: String,
    },
}

/// Why faults are refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FaultError {
    /// The fabric has no such node.
    #[error("fault at {at}: the fabric has no node `{node}`")]
    UnknownNode {
        /// When the fault begins.
        at: Nanos,
        node: String,
    },
    /// A host is not a switch.
    #[error("fault at {at}: `{node}` is no switch; take its link down instead (kind `link-down`)")]
    NotASwitch {
        /// When the fault begins.
        at: Nanos,
        node: String,
    },
    /// The two nodes are not neighbours.
    #[error("fault at {at}: no link connects `{a}` and `{b}`")]
    NoLink {
        /// When the fault begins.
        at: Nanos,
        a: String,
        b: String,
    },
    /// A fault that is over as it begins.
    #[error("fault at {at}: `lasts` is 0; leave it out for a fault that lasts to the end of the run")]
    NoTime {
        /// When the fault begins.
        at: Nanos,
    },
    /// Something fails that is down already.
    #[error("fault at {at}: {what} is still down from the fault at {earlier}")]
    Overlap {
        /// When the later fault begins.
        at: Nanos,
        /// When the earlier one begins.
        earlier: Nanos,
        what: String,
    },
}

impl Fault {
    /// The links that the fault takes down, or why it cannot happen to this fabric.
    pub fn links(&self, fabric: &Fabric) -> Result<BTreeSet<LinkId>, FaultError> {
        match &self.kind {
            FaultKind::SwitchDown { node } | FaultKind::SwitchSilent { node } => {
                let id = self.find(fabric, node)?;
                if !fabric.node(id).role.is_switch() {
                    return Err(FaultError::NotASwitch { at: self.at, node: node.clone() });
                }
                Ok(fabric.links_of(id).iter().copied().collect())
            }
            FaultKind::LinkDown { a, b } | FaultKind::LinkSilent { a, b } => {
                let (from, to) = (self.find(fabric, a)?, self.find(fabric, b)?);
                let between = |link: &&LinkId| fabric.link(**link).far_end(from).is_some_and(|port| port.node == to);
                let links: BTreeSet<LinkId> = fabric.links_of(from).iter().filter(between).copied().collect();
                if links.is_empty() {
                    return Err(FaultError::NoLink { at: self.at, a: a.clone(), b: b.clone() });
                }
                Ok(links)
            }
        }
    }

    /// What it happens to, as rows of events name it: a switch, or the two nodes of a link.
    pub fn subject(&self) -> String {
        self.kind.subject()
    }

    /// When it is over; the end of time if it lasts to the end of the run.
    pub fn ends(&self) -> Nanos {
        self.lasts.map_or(Nanos(u64::MAX), |lasts| Nanos(self.at.0.saturating_add(lasts.0)))
    }

    fn find(&self, fabric: &Fabric, name: &str) -> Result<NodeId, FaultError> {
        fabric.find(name).ok_or_else(|| FaultError::UnknownNode { at: self.at, node: name.to_owned() })
    }
}

impl FaultKind {
    /// Whether links stay up and lose everything, so that nobody is told.
    pub fn is_silent(&self) -> bool {
        matches!(self, Self::SwitchSilent { .. } | Self::LinkSilent { .. })
    }

    /// What it happens to, as rows of events name it: a switch, or the two nodes of a link.
    pub fn subject(&self) -> String {
        match self {
            Self::SwitchDown { node } | Self::SwitchSilent { node } => node.clone(),
            Self::LinkDown { a, b } | Self::LinkSilent { a, b } => format!("{a}-{b}"),
        }
    }

    /// What fails, for messages; a link's ends are in alphabetical order.
    fn described(&self) -> String {
        match self {
            Self::SwitchDown { node } | Self::SwitchSilent { node } => format!("switch `{node}`"),
            Self::LinkDown { a, b } | Self::LinkSilent { a, b } => format!("link `{}` - `{}`", a.min(b), a.max(b)),
        }
    }
}

/// Whether all faults can happen to this fabric, and nothing fails that is down already. Faults of different things may
/// overlap in time, also a switch and one of its links.
pub fn check_faults(faults: &[Fault], fabric: &Fabric) -> Result<(), FaultError> {
    for fault in faults {
        fault.links(fabric)?;
        if fault.lasts == Some(Nanos(0)) {
            return Err(FaultError::NoTime { at: fault.at });
        }
    }
    let mut in_time: Vec<&Fault> = faults.iter().collect();
    in_time.sort_by_key(|fault| (fault.kind.described(), fault.at));
    for pair in in_time.windows(2) {
        let (earlier, later) = (pair[0], pair[1]);
        if earlier.kind.described() == later.kind.described() && earlier.ends() > later.at {
            let what = later.kind.described();
            return Err(FaultError::Overlap { at: later.at, earlier: earlier.at, what });
        }
    }
    Ok(())
}

/// A fault as people write it. One flat table, so that an unknown key is refused with its own name.
#[derive(Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
struct RawFault {
    at: Nanos,
    lasts: Option<Nanos>,
    kind: RawKind,
    node: Option<String>,
    a: Option<String>,
    b: Option<String>,
}

#[derive(Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum RawKind {
    SwitchDown,
    SwitchSilent,
    LinkDown,
    LinkSilent,
}

impl TryFrom<RawFault> for Fault {
    type Error = &'static str;

    fn try_from(raw: RawFault) -> Result<Self, Self::Error> {
        let kind = match (raw.kind, raw.node, raw.a, raw.b) {
            (RawKind::SwitchDown, Some(node), None, None) => FaultKind::SwitchDown { node },
            (RawKind::SwitchSilent, Some(node), None, None) => FaultKind::SwitchSilent { node },
            (RawKind::LinkDown, None, Some(a), Some(b)) => FaultKind::LinkDown { a, b },
            (RawKind::LinkSilent, None, Some(a), Some(b)) => FaultKind::LinkSilent { a, b },
            (RawKind::SwitchDown, ..) => return Err("kind `switch-down` takes `node`, the name of a switch, alone"),
            (RawKind::SwitchSilent, ..) => {
                return Err("kind `switch-silent` takes `node`, the name of a switch, alone");
            }
            (RawKind::LinkDown, ..) => {
                return Err("kind `link-down` takes `a` and `b`, the names of a link's two nodes");
            }
            (RawKind::LinkSilent, ..) => {
                return Err("kind `link-silent` takes `a` and `b`, the names of a link's two nodes");
            }
        };
        Ok(Self { at: raw.at, lasts: raw.lasts, kind })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::{TestbedParams, vl2_testbed};

    const SECOND: u64 = 1_000_000_000;

    fn bed() -> Fabric {
        vl2_testbed(&TestbedParams::default()).unwrap()
    }

    fn switch(node: &str, at: u64, lasts: Option<u64>) -> Fault {
        let kind = FaultKind::SwitchDown { node: node.to_owned() };
        Fault { at: Nanos(at * SECOND), lasts: lasts.map(|lasts| Nanos(lasts * SECOND)), kind }
    }

    fn link(a: &str, b: &str, at: u64, lasts: Option<u64>) -> Fault {
        let kind = FaultKind::LinkDown { a: a.to_owned(), b: b.to_owned() };
        Fault { kind, ..switch("", at, lasts) }
    }

    fn silent(a: &str, b: &str, at: u64, lasts: Option<u64>) -> Fault {
        let kind = FaultKind::LinkSilent { a: a.to_owned(), b: b.to_owned() };
        Fault { kind, ..switch("", at, lasts) }
    }

    fn refusal(faults: &[Fault]) -> String {
        check_faults(faults, &bed()).unwrap_err().to_string()
    }

    #[test]
    fn faults_of_different_things_or_one_after_the_other_are_fine() {
        let faults = [
            switch("int1", 20, None),
            switch("int1", 0, Some(10)),
            switch("int1", 10, Some(5)),
            switch("int2", 5, Some(10)),
            link("int1", "agg1", 5, None),
            link("tor1", "s1", 1, Some(1)),
        ];
        assert_eq!(check_faults(&faults, &bed()), Ok(()));
        assert_eq!(check_faults(&[], &bed()), Ok(()));
    }

    #[test]
    fn what_cannot_happen_is_refused_by_name() {
        assert_eq!(refusal(&[switch("int9", 3, None)]), "fault at 3 s: the fabric has no node `int9`");
        assert_eq!(refusal(&[link("int1", "x", 3, None)]), "fault at 3 s: the fabric has no node `x`");
        assert!(refusal(&[switch("s1", 3, None)]).starts_with("fault at 3 s: `s1` is no switch"));
        assert_eq!(refusal(&[link("int1", "tor1", 3, None)]), "fault at 3 s: no link connects `int1` and `tor1`");
        assert!(refusal(&[link("int1", "int1", 3, None)]).contains("no link connects"));
        assert_eq!(refusal(&[silent("int1", "tor1", 3, None)]), "fault at 3 s: no link connects `int1` and `tor1`");
        assert!(refusal(&[switch("int1", 3, Some(0))]).starts_with("fault at 3 s: `lasts` is 0"));
    }

    #[test]
    fn what_is_down_cannot_fail_again() {
        let again = [switch("int1", 9, Some(1)), switch("int1", 1, Some(10))];
        assert_eq!(refusal(&again), "fault at 9 s: switch `int1` is still down from the fault at 1 s");
        let forever = [switch("int1", 1, None), switch("int1", 900, Some(1))];
        assert!(refusal(&forever).contains("still down from the fault at 1 s"));
        let turned = [link("int1", "agg2", 1, Some(5)), link("agg2", "int1", 2, None)];
        assert_eq!(refusal(&turned), "fault at 2 s: link `agg2` - `int1` is still down from the fault at 1 s");
        let twice = [silent("int1", "agg2", 1, Some(5)), link("int1", "agg2", 2, None)];
        assert_eq!(refusal(&twice), "fault at 2 s: link `agg2` - `int1` is still down from the fault at 1 s");
    }

    #[test]
    fn a_fault_knows_its_links() {
        let fabric = bed();
        assert_eq!(switch("agg3", 0, None).links(&fabric).unwrap().len(), 3 + 2);
        let links = link("agg1", "tor1", 0, None).links(&fabric).unwrap();
        assert_eq!(links.iter().map(|id| fabric.link_name(*id)).collect::<Vec<_>>(), ["agg1:tor1 - tor1:agg1"]);
    }

    #[test]
    fn plans_write_faults_as_one_table_and_no_unknown_keys() {
        let read = |text: &str| toml::from_str::<Fault>(text).map_err(|error| error.message().to_owned());
        let text = "at = \"1 s\"\nlasts = \"2 s\"\nkind = \"switch-down\"\nnode = \"int1\"";
        assert_eq!(read(text), Ok(switch("int1", 1, Some(2))));
        let dead = read("at = \"1 s\"\nkind = \"switch-silent\"\nnode = \"int1\"").unwrap();
        assert_eq!(
            (dead.kind.is_silent(), dead.links(&bed()).unwrap()),
            (true, switch("int1", 1, None).links(&bed()).unwrap())
        );
        assert_eq!(read("at = \"1 s\"\nkind = \"link-down\"\na = \"x\"\nb = \"y\""), Ok(link("x", "y", 1, None)));
        assert_eq!(read("at = \"1 s\"\nkind = \"link-silent\"\na = \"x\"\nb = \"y\""), Ok(silent("x", "y", 1, None)));
        for (text, message) in [
            ("at = \"1 s\"\nkind = \"switch-down\"\nnode = \"int1\"\nnod = 1", "unknown field `nod`"),
            ("at = \"1 s\"\nkind = \"switch-down\"\na = \"int1\"", "takes `node`"),
            ("at = \"1 s\"\nkind = \"switch-silent\"\na = \"int1\"", "takes `node`"),
            ("at = \"1 s\"\nkind = \"link-down\"\na = \"int1\"", "takes `a` and `b`"),
            ("at = \"1 s\"\nkind = \"link-down\"\na = \"x\"\nb = \"y\"\nnode = \"z\"", "takes `a` and `b`"),
            ("at = \"1 s\"\nkind = \"link-silent\"\nnode = \"x\"", "takes `a` and `b`"),
            ("at = \"1 s\"\nkind = \"fire\"", "unknown variant `fire`"),
            ("kind = \"switch-down\"\nnode = \"int1\"", "missing field `at`"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.contains(message), "wanted `{message}`, got `{error}`");
        }
    }

    #[test]
    fn written_faults_are_read_back_the_same() {
        for fault in [switch("int1", 1, Some(2)), link("a", "b", 0, None), silent("a", "b", 0, None)] {
            let text = serde_json::to_string(&fault).unwrap();
            assert_eq!(serde_json::from_str::<Fault>(&text).unwrap(), fault, "{text}");
        }
    }
}
