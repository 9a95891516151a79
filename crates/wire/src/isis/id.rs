//! The three sizes of IS-IS ID: a system (6 bytes), a node (7: a system or one of its pseudonodes), an LSP (8).

use std::fmt;
use std::str::FromStr;

/// An RBridge: usually a MAC address of it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct SystemId(pub [u8; 6]);

/// A node of the graph: an RBridge (last byte 0) or a shared link that it speaks for (any other).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct NodeId(pub [u8; 7]);

/// One fragment of a node's LSP.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct LspId(pub [u8; 8]);

impl SystemId {
    /// The node that the system itself is.
    pub const fn node(self) -> NodeId {
        let [a, b, c, d, e, f] = self.0;
        NodeId([a, b, c, d, e, f, 0])
    }

    /// Its LSP's fragment `number`.
    pub const fn lsp(self, number: u8) -> LspId {
        self.node().lsp(number)
    }
}

impl NodeId {
    /// The system that it is, or that speaks for it.
    pub const fn system(self) -> SystemId {
        let [a, b, c, d, e, f, _] = self.0;
        SystemId([a, b, c, d, e, f])
    }

    /// Whether it stands for a shared link.
    pub const fn is_pseudonode(self) -> bool {
        self.0[6] != 0
    }

    /// Its LSP's fragment `number`.
    pub const fn lsp(self, number: u8) -> LspId {
        let [a, b, c, d, e, f, g] = self.0;
        LspId([a, b, c, d, e, f, g, number])
    }
}

impl LspId {
    /// The smallest LSP ID: where a complete CSNP begins.
    pub const FIRST: Self = Self([0; 8]);
    /// The largest LSP ID: where a complete CSNP ends.
    pub const LAST: Self = Self([0xff; 8]);

    /// Whose LSP it is.
    pub const fn node(self) -> NodeId {
        let [a, b, c, d, e, f, g, _] = self.0;
        NodeId([a, b, c, d, e, f, g])
    }

    /// The system that issued it.
    pub const fn system(self) -> SystemId {
        self.node().system()
    }

    /// Which fragment it is.
    pub const fn fragment(self) -> u8 {
        self.0[7]
    }
}

impl fmt::Display for SystemId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, f] = self.0;
        write!(formatter, "{a:02x}{b:02x}.{c:02x}{d:02x}.{e:02x}{f:02x}")
    }
}

/// Text that is not a system ID.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a system ID; write twelve hexadecimal digits in three groups, as in 0200.0000.0001")]
pub struct SystemIdError;

impl FromStr for SystemId {
    type Err = SystemIdError;

    fn from_str(text: &str) -> Result<Self, SystemIdError> {
        let groups: Vec<&str> = text.split('.').collect();
        let is_group = |group: &&str| group.len() == 4 && group.bytes().all(|digit| digit.is_ascii_hexdigit());
        if groups.len() != 3 || !groups.iter().all(is_group) {
            return Err(SystemIdError);
        }
        let digits = groups.concat();
        let number = u64::from_str_radix(&digits, 16).map_err(|_| SystemIdError)?;
        let [_, _, id @ ..] = number.to_be_bytes();
        Ok(Self(id))
    }
}

impl fmt::Display for NodeId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}.{:02x}", self.system(), self.0[6])
    }
}

impl fmt::Display for LspId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}-{:02x}", self.node(), self.fragment())
    }
}

impl fmt::Debug for SystemId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}

impl fmt::Debug for NodeId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}

impl fmt::Debug for LspId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_and_text() {
        let system = SystemId([0x0a, 0, 0, 0, 0, 1]);
        let lsp = system.lsp(3);
        assert_eq!((lsp.system(), lsp.node(), lsp.fragment()), (system, system.node(), 3));
        assert_eq!(lsp.to_string(), "0a00.0000.0001.00-03");
        let shared = NodeId([0x0a, 0, 0, 0, 0, 1, 2]);
        assert!(shared.is_pseudonode() && !system.node().is_pseudonode());
        assert_eq!(format!("{shared:?}"), "0a00.0000.0001.02");
    }

    #[test]
    fn a_system_id_as_text() {
        let system = SystemId([0x0a, 0xbc, 0, 0, 0, 1]);
        assert_eq!(system.to_string().parse(), Ok(system));
        assert_eq!("0ABC.0000.0001".parse(), Ok(system));
        for bad in [
            "",
            "0abc.0000",
            "0abc.0000.00001",
            "0abc00000001",
            "0abc.0000.000g",
            "0abc.0000.0001.00",
            "+abc.0000.0001",
        ] {
            assert_eq!(bad.parse::<SystemId>(), Err(SystemIdError), "{bad}");
        }
    }
}
