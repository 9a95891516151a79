//! Names of hosts and interfaces.

use std::collections::{BTreeMap, BTreeSet};

use super::hosts_file::{At, HostsFile};
use super::tree::OPERATOR;
use crate::error::NodeError;
use crate::settings_file::check_interface;

/// Names of hosts, each once.
pub(super) struct Names<'f> {
    file: &'f HostsFile,
    taken: BTreeSet<String>,
}

impl<'f> Names<'f> {
    pub(super) fn new(file: &'f HostsFile) -> Self {
        Self { file, taken: BTreeSet::new() }
    }

    pub(super) fn take(&mut self, list: &'static str, index: usize, name: &str) -> Result<(), NodeError> {
        let fault = |why: String| self.file.fault(At::of(list, index, "name"), why);
        let usual = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        if name.is_empty() || name.len() > 63 || !name.bytes().all(usual) || name.starts_with('-') {
            return Err(fault(format!("`{name}` is no host name: letters, digits and hyphens, at most 63")));
        }
        if name == OPERATOR {
            return Err(fault(format!(
                "`{OPERATOR}` is the folder of whoever runs the network; name the host otherwise"
            )));
        }
        if !self.taken.insert(name.to_owned()) {
            return Err(fault(format!("`{name}` is named twice; each host has one role and one folder")));
        }
        Ok(())
    }
}

/// What each interface of a host is for.
#[derive(Default)]
pub(super) struct Interfaces(BTreeMap<(String, String), String>);

impl Interfaces {
    /// Takes an interface of a host for something; each is for one thing.
    pub(super) fn take(
        &mut self,
        file: &HostsFile,
        at: At,
        (host, interface): (&str, &str),
        what: String,
    ) -> Result<(), NodeError> {
        check_interface("interface", interface).map_err(|error| file.fault(at, error))?;
        match self.0.insert((host.to_owned(), interface.to_owned()), what) {
            Some(before) => Err(file.fault(at, format!("{interface} of {host} is {before} already"))),
            None => Ok(()),
        }
    }
}
