//! Interfaces as network cards: a card hears only what is for it, unless it is told otherwise, and may take off or join
//! headers that the programs work on. What a port needs is set here for the interface itself, so that a pinned data path goes
//! on when its daemon has ended, and taken back at the end.
//!
//! What was changed is written down before it is changed, in a file beside the daemon's socket. So a daemon that was killed
//! leaves behind nothing that the next one does not know, and what was so before is left alone.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use tracing::{info, warn};
use weft_datapath::offload;
use weft_wire::ethernet::MacAddress;

use crate::error::NodeError;
use crate::sys;

/// What a port needs of its interface.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Needs {
    /// To hear these groups, beside its own address.
    pub(crate) groups: BTreeSet<MacAddress>,
    /// To hear whatever it is addressed to.
    pub(crate) everything: bool,
    /// That it does none of this ([`offload::features`]).
    pub(crate) off: &'static [&'static str],
    /// Frames with VLAN tags come by it, so that a card that cannot but hide tags is of no use.
    pub(crate) tags: bool,
}

impl Needs {
    pub(crate) fn everything() -> Self {
        Self { everything: true, ..Self::default() }
    }

    pub(crate) fn groups(groups: impl IntoIterator<Item = MacAddress>) -> Self {
        Self { groups: groups.into_iter().collect(), ..Self::default() }
    }
}

/// What was changed at the interfaces of one daemon.
#[derive(Debug)]
pub(crate) struct Cards {
    path: PathBuf,
    changed: BTreeMap<String, Changed>,
}

/// At one interface, compared with what was there before.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
struct Changed {
    ifindex: u32,
    groups: BTreeSet<[u8; 6]>,
    everything: bool,
    /// Features that were on.
    off: BTreeSet<String>,
}

impl Changed {
    fn is_nothing(&self) -> bool {
        self.groups.is_empty() && !self.everything && self.off.is_empty()
    }
}

impl Cards {
    /// Of the daemon with this socket, which it holds: nobody else has the same record.
    pub(crate) fn open(socket: &Path) -> Result<Self, NodeError> {
        let path = socket.with_extension("cards");
        let changed = match std::fs::read(&path) {
            Ok(text) => serde_json::from_slice(&text).unwrap_or_else(|error| {
                warn!(path = %path.display(), %error, "what an earlier run changed at interfaces is not known");
                BTreeMap::new()
            }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => BTreeMap::new(),
            Err(error) => return Err(NodeError::at("reading", &path)(error)),
        };
        Ok(Self { path, changed })
    }

    /// Lets an interface hear this; what else it was told it keeps until [`Self::settle`].
    pub(crate) fn prepare(&mut self, interface: &str, ifindex: u32, needs: &Needs) -> Result<(), NodeError> {
        let failed = |what: &str| NodeError::system(format!("interface `{interface}`: {what}"));
        let there = sys::set_groups(ifindex);
        let groups: Vec<[u8; 6]> =
            needs.groups.iter().map(|group| group.0).filter(|group| !there.contains(group)).collect();
        let everything = needs.everything && !sys::takes_all(interface).map_err(failed("reading its flags"))?;
        let off = to_turn_off(interface, needs)?;
        let changed = self.of(interface, ifindex);
        let before = changed.clone();
        changed.groups.extend(&groups);
        changed.everything |= everything;
        changed.off.extend(off.iter().map(|name| (*name).to_owned()));
        if *changed != before {
            self.save()?;
        }
        for group in groups {
            let what = format!("joining {}", MacAddress(group));
            sys::set_group(interface, group, true).map_err(failed(&what))?;
        }
        if everything {
            sys::take_all(ifindex, true).map_err(failed("making it promiscuous"))?;
            info!(interface, "promiscuous, to hear what is for the stations behind other ports");
        }
        for name in &off {
            offload::set_feature(interface, name, false)?;
        }
        if !off.is_empty() {
            info!(interface, off = off.join(" "), "offloads that hide headers turned off (ethtool -k)");
        }
        Ok(())
    }

    /// Takes back what is not wanted: of interfaces that are none of ours now, and groups that have gone.
    pub(crate) fn settle(&mut self, wanted: &BTreeMap<String, Needs>) -> Result<(), NodeError> {
        let nothing = Needs::default();
        let before = self.changed.clone();
        for (interface, changed) in &mut self.changed {
            take_back(interface, changed, wanted.get(interface).unwrap_or(&nothing));
        }
        self.changed.retain(|_, changed| !changed.is_nothing());
        if self.changed == before && (!self.changed.is_empty() || !self.path.exists()) { Ok(()) } else { self.save() }
    }

    /// Takes everything back.
    pub(crate) fn release(&mut self) -> Result<(), NodeError> {
        self.settle(&BTreeMap::new())
    }

    /// The record of an interface. One of the same name that is another one now was never changed.
    fn of(&mut self, interface: &str, ifindex: u32) -> &mut Changed {
        let changed = self.changed.entry(interface.to_owned()).or_default();
        if changed.ifindex != ifindex {
            *changed = Changed { ifindex, ..Changed::default() };
        }
        changed
    }

    fn save(&self) -> Result<(), NodeError> {
        if self.changed.values().all(Changed::is_nothing) {
            return match std::fs::remove_file(&self.path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    Err(NodeError::at("removing", &self.path)(error))
                }
                _ => Ok(()),
            };
        }
        let text = serde_json::to_vec(&self.changed).expect("its keys are text");
        let (new, failed) = (self.path.with_extension("cards.new"), NodeError::at("writing", &self.path));
        std::fs::write(&new, text).and_then(|()| std::fs::rename(&new, &self.path)).map_err(failed)
    }
}

/// What has to be turned off, and can be. Cards that cannot are refused where it matters.
fn to_turn_off(interface: &str, needs: &Needs) -> Result<Vec<&'static str>, NodeError> {
    if needs.off.is_empty() {
        return Ok(Vec::new());
    }
    let features = offload::features(interface)?;
    let is = |name: &str, can_change| features.get(name).is_some_and(|f| f.is_on && f.can_change == can_change);
    if let Some(name) = needs.off.iter().find(|name| is(name, false)) {
        let why = format!("`{interface}` keeps {name} on, whatever it is told, and so hides VLAN tags from XDP");
        if needs.tags {
            return Err(NodeError::config("port", format!("{why}; use another card for a port with tags")));
        }
        warn!(interface, "{why}; frames with tags count as untagged");
    }
    Ok(needs.off.iter().copied().filter(|name| is(name, true)).collect())
}

/// What cannot be taken back is gone with its interface, or is said.
fn take_back(interface: &str, changed: &mut Changed, wanted: &Needs) {
    if sys::interface_index(interface).ok() != Some(changed.ifindex) {
        *changed = Changed::default();
        return;
    }
    let result = |outcome: Result<(), NodeError>| {
        if let Err(error) = outcome {
            warn!(interface, %error, "the interface could not be made again what it was");
        }
    };
    let system = |outcome: io::Result<()>| outcome.map_err(NodeError::system("taking back"));
    changed.groups.retain(|group| {
        let stays = wanted.groups.contains(&MacAddress(*group));
        if !stays {
            result(system(sys::set_group(interface, *group, false)));
        }
        stays
    });
    if changed.everything && !wanted.everything {
        result(system(sys::take_all(changed.ifindex, false)));
        changed.everything = false;
    }
    changed.off.retain(|name| {
        let stays = wanted.off.contains(&name.as_str());
        if !stays {
            result(offload::set_feature(interface, name, true).map_err(NodeError::from));
        }
        stays
    });
}
