//! `outside:`, beside `topology`: the pool of public LAs and the servers that have one (VL2 4.2.3).

use std::fmt::Write as _;

use serde_saphyr::Spanned;
use weft_wire::block::{Block, BlockError};

use super::super::outside::{OutsideError, OutsideSpec};
use super::super::{Fabric, TopologyError};

/// `outside: {pool: 198.51.100.0/24, servers: [s1, s3]}`
#[derive(serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RawOutside {
    #[schemars(with = "String")]
    pool: Spanned<Pool>,
    #[schemars(with = "Vec<String>")]
    servers: Spanned<Vec<Spanned<String>>>,
}

#[derive(Clone, Copy, serde::Deserialize)]
#[serde(try_from = "String")]
struct Pool(Block);

impl TryFrom<String> for Pool {
    type Error = BlockError;

    fn try_from(text: String) -> Result<Self, BlockError> {
        text.parse().map(Self)
    }
}

impl RawOutside {
    pub(super) fn spec(&self) -> OutsideSpec {
        let servers = self.servers.value.iter().map(|name| name.value.clone()).collect();
        OutsideSpec { pool: self.pool.value.0, servers }
    }

    /// The line that breaks a rule about what is outside, where that is here.
    pub(super) fn line_of(&self, error: &TopologyError) -> Option<u64> {
        let TopologyError::Outside(error) = error else { return None };
        match error {
            OutsideError::NoNode | OutsideError::PoolOverlaps { .. } | OutsideError::PoolTooSmall { .. } => {
                Some(self.pool.referenced.line())
            }
            OutsideError::NoServers => Some(self.servers.referenced.line()),
            // Of two that are the same, the second is to blame.
            OutsideError::BadServer { node, .. } => {
                self.servers.value.iter().rfind(|name| name.value == *node).map(|name| name.referenced.line())
            }
            OutsideError::NotDeclared(_)
            | OutsideError::SecondNode(_)
            | OutsideError::NotAtBorder { .. }
            | OutsideError::TooManyLinks { .. } => None,
        }
    }
}

/// Writes the key as it is read.
pub(super) fn write(out: &mut String, fabric: &Fabric) {
    let Some(outside) = fabric.outside() else { return };
    let servers: Vec<String> = outside.servers.iter().map(|id| super::write::key(&fabric.node(*id).name)).collect();
    let _ = writeln!(out, "outside: {{pool: {}, servers: [{}]}}", outside.pool, servers.join(", "));
}

#[cfg(test)]
mod tests {
    use super::super::super::outside::tests::{bed_linked_to, spec};
    use super::super::{from_yaml, to_yaml};

    const GOOD: &str = r#"name: small
topology:
  defaults: {link: {rate: 20 Mbit/s}}
  nodes:
    int1: {role: intermediate}
    tor1: {role: tor}
    s1: {role: server}
    s2: {role: server}
    net: {role: internet}
  links:
    - endpoints: ["net:int1", "int1:net"]
    - endpoints: ["int1:tor1", "tor1:int1"]
    - endpoints: ["tor1:s1", "s1:eth0"]
    - endpoints: ["tor1:s2", "s2:eth0"]
outside:
  pool: 198.51.100.0/24
  servers:
    - s2
    - s1
"#;

    #[test]
    fn what_is_outside_is_read_and_written_back_the_same() {
        let fabric = from_yaml(GOOD, "f.yaml").unwrap();
        assert_eq!(fabric.outside().unwrap().pool, "198.51.100.0/24".parse().unwrap());
        assert_eq!(from_yaml(&to_yaml(&fabric), "f.yaml").unwrap(), fabric);
        let bed = bed_linked_to(&["int1", "int2"]).with_outside(Some(&spec("198.18.0.0/15", &["s1", "s4"]))).unwrap();
        assert_eq!(from_yaml(&to_yaml(&bed), "f.yaml").unwrap(), bed);
    }

    #[test]
    fn every_broken_rule_is_named_with_its_line() {
        for (from, to, wanted) in [
            ("198.51.100.0/24", "10.1.0.0/24", "f.yaml:16: `outside.pool` 10.1.0.0/24 overlaps the LAs"),
            ("198.51.100.0/24", "198.51.100.4/30", ""),
            ("198.51.100.0/24", "198.51.100.4/31", "f.yaml:16: `outside.pool` 198.51.100.4/31 has 0 addresses"),
            ("198.51.100.0/24", "198.51.100.1/24", "f.yaml:16:9: `198.51.100.1/24` is not an address block: bits"),
            ("    - s1\n", "    - s2\n", "f.yaml:19: `outside.servers` names `s2`, twice"),
            ("    - s1\n", "    - s7\n", "f.yaml:19: `outside.servers` names `s7`, which is not among the nodes"),
            ("    - s2\n", "    - tor1\n", "f.yaml:18: `outside.servers` names `tor1`, whose role is Tor"),
            ("\n    - s2\n    - s1\n", " []\n", "f.yaml:17: `outside.servers` is empty"),
            ("  pool: 198.51.100.0/24\n", "", "f.yaml:16:3: the key `pool` is missing"),
            ("  pool:", "  poool: x\n  pool:", "f.yaml:16:3: unknown key `poool`; known here: pool, servers"),
            ("{role: internet}", "{role: server}", "f.yaml:9: server `net` hangs below `int1`"),
            (
                "\"int1:net\"",
                "\"tor1:net\"",
                "f.yaml:9: node `net` is the Internet and has the link `net:int1 - tor1:net`",
            ),
            (
                "    - endpoints: [\"net:int1\", \"int1:net\"]\n",
                "",
                "f.yaml:9: node `net` is the Internet and has no link",
            ),
        ] {
            assert_eq!(GOOD.matches(from).count(), 1, "`{from}` is there once");
            let result = from_yaml(&GOOD.replace(from, to), "f.yaml");
            match result {
                Ok(_) => assert_eq!(wanted, "", "{to}"),
                Err(error) => assert!(!wanted.is_empty() && error.to_string().starts_with(wanted), "{error}"),
            }
        }
        let (without, _) = GOOD.split_once("outside:").unwrap();
        let error = from_yaml(without, "f.yaml").unwrap_err().to_string();
        assert!(error.starts_with("f.yaml:9: node `net` is the Internet; write `outside: {pool"), "{error}");
    }
}
