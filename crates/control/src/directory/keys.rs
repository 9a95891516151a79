//! Whose datagrams a server believes: the secrets that keys are derived from, by number.

use std::net::Ipv4Addr;

use weft_wire::directory::{Key, Secret};

/// The secrets of a server. Several while they are being replaced: old keys hold until their secret is taken out.
#[derive(Clone, Debug)]
pub struct KeyRing {
    /// By key id; few.
    secrets: Vec<(u32, Secret)>,
    open: bool,
}

impl KeyRing {
    /// Of these secrets, each with its key id.
    pub fn new(secrets: impl IntoIterator<Item = (u32, Secret)>) -> Self {
        Self { secrets: secrets.into_iter().collect(), open: false }
    }

    /// Believes everybody who uses [`Key::OPEN`], whatever service and address they claim.
    pub fn open() -> Self {
        Self { secrets: Vec::new(), open: true }
    }

    /// The secrets, each with its key id; `None`: everybody has the same key.
    pub fn secrets(&self) -> Option<&[(u32, Secret)]> {
        (!self.open).then_some(&self.secrets)
    }

    /// The key of the agent of `service` at `la`; `None` if there is no such key id.
    pub fn key(&self, key_id: u32, service: u32, la: Ipv4Addr) -> Option<Key> {
        if self.open {
            return Some(Key::OPEN);
        }
        self.secrets.iter().find(|(id, _)| *id == key_id).map(|(_, secret)| secret.derive(service, la))
    }

    /// All keys that this agent may have, with their key ids. A server does not know which one it uses.
    pub fn keys(&self, service: u32, la: Ipv4Addr) -> Vec<(u32, Key)> {
        if self.open {
            return vec![(0, Key::OPEN)];
        }
        self.secrets.iter().map(|(id, secret)| (*id, secret.derive(service, la))).collect()
    }
}
