//! A fabric as a plan names it: a generator with its parameters, or a file.
//!
//! ```toml
//! [fabric]
//! generator = "vl2-testbed"
//! servers_per_tor = [19, 19, 19, 18]
//! server_rate = "20 Mbit/s"
//! ```
//!
//! The command line names one by a word, `vl2-testbed:servers_per_tor=[19,19,19,18],server_rate=20M` (`word.rs`).

mod word;

use serde::Deserialize;

use super::{
    ClosParams, ConventionalParams, Fabric, FatTreeParams, LeafSpineParams, LinkParams, LoadError, MeshParams,
    OutputQueuedParams, TestbedParams, TopologyError, TreeParams, conventional, fat_tree, from_yaml, leaf_spine, mesh,
    output_queued, overlay_pair, tree, vl2_clos, vl2_testbed,
};
use crate::units::{BitsPerSec, Bytes, Nanos};

/// A fabric that can be built.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "RawSpec")]
pub enum FabricSpec {
    /// `generator = "vl2-testbed"`; `servers_per_tor` is a list of four, or one number for all.
    Vl2Testbed(TestbedParams),
    /// `generator = "vl2-clos"`
    Vl2Clos(ClosParams),
    /// `generator = "leaf-spine"`
    LeafSpine(LeafSpineParams),
    /// `generator = "fat-tree"`
    FatTree(FatTreeParams),
    /// `generator = "mesh"`
    Mesh(MeshParams),
    /// `generator = "output-queued"`
    OutputQueued(OutputQueuedParams),
    /// `generator = "tree"`
    Tree(TreeParams),
    /// `generator = "conventional"`
    Conventional(ConventionalParams),
    /// `generator = "overlay-pair"`
    OverlayPair(LinkParams),
    /// `file = "name.yaml"`
    File(String),
}

impl schemars::JsonSchema for FabricSpec {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "FabricSpec".into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        RawSpec::json_schema(generator)
    }
}

/// Why a fabric cannot be built.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FabricError {
    /// The generator refuses its parameters.
    #[error(transparent)]
    Generator(#[from] TopologyError),
    /// The file cannot be read.
    #[error("cannot read fabric file `{file}`: {reason}")]
    Read {
        /// The file as the plan names it.
        file: String,
        /// What the reader said.
        reason: String,
    },
    /// The file is no fabric.
    #[error(transparent)]
    Load(#[from] LoadError),
}

impl FabricSpec {
    /// Keys of buffers that differ from their defaults.
    pub fn given_buffers(&self) -> Vec<&'static str> {
        let links = match self {
            Self::Vl2Testbed(TestbedParams { links, .. })
            | Self::Vl2Clos(ClosParams { links, .. })
            | Self::LeafSpine(LeafSpineParams { links, .. })
            | Self::FatTree(FatTreeParams { links, .. })
            | Self::Mesh(MeshParams { links, .. })
            | Self::Tree(TreeParams { links, .. })
            | Self::Conventional(ConventionalParams { links, .. })
            | Self::OverlayPair(links) => links,
            Self::OutputQueued(params) => return params.buffer.map(|_| "server_buffer").into_iter().collect(),
            Self::File(_) => return Vec::new(),
        };
        let usual = LinkParams::default();
        let buffers = [
            ("server_buffer", links.server_buffer != usual.server_buffer),
            ("core_buffer", links.core_buffer != usual.core_buffer),
        ];
        buffers.into_iter().filter(|(_, given)| *given).map(|(key, _)| key).collect()
    }

    /// Builds the fabric. `load` turns the name of a file into its text; it is called for [`FabricSpec::File`] only.
    pub fn build(&self, load: &dyn Fn(&str) -> Result<String, String>) -> Result<Fabric, FabricError> {
        Ok(match self {
            Self::Vl2Testbed(params) => vl2_testbed(params)?,
            Self::Vl2Clos(params) => vl2_clos(params)?,
            Self::LeafSpine(params) => leaf_spine(params)?,
            Self::FatTree(params) => fat_tree(params)?,
            Self::Mesh(params) => mesh(params)?,
            Self::OutputQueued(params) => output_queued(params)?,
            Self::Tree(params) => tree(params)?,
            Self::Conventional(params) => conventional(params)?,
            Self::OverlayPair(links) => overlay_pair(links)?,
            Self::File(file) => {
                let text = load(file).map_err(|reason| FabricError::Read { file: file.clone(), reason })?;
                from_yaml(&text, file)?
            }
        })
    }
}

/// Every key that some fabric takes.
#[derive(Clone, Debug, Default, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
struct RawSpec {
    generator: Option<Generator>,
    file: Option<String>,
    servers_per_tor: Option<PerTor>,
    aggregation_ports: Option<u32>,
    intermediate_ports: Option<u32>,
    spines: Option<u32>,
    leaves: Option<u32>,
    servers_per_leaf: Option<u32>,
    links_per_pair: Option<u32>,
    k: Option<u32>,
    servers: Option<u32>,
    servers_per_rack: Option<u32>,
    oversubscription: Option<u32>,
    aggregations: Option<u32>,
    tors: Option<u32>,
    aggregation_pairs: Option<u32>,
    access_pairs: Option<u32>,
    cores: Option<u32>,
    tor_oversubscription: Option<u32>,
    aggregation_oversubscription: Option<u32>,
    access_oversubscription: Option<u32>,
    server_rate: Option<BitsPerSec>,
    core_rate: Option<BitsPerSec>,
    server_buffer: Option<Bytes>,
    core_buffer: Option<Bytes>,
    link_delay: Option<Nanos>,
}

/// What makes a fabric of a few numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Generator {
    Vl2Testbed,
    Vl2Clos,
    LeafSpine,
    FatTree,
    Mesh,
    OutputQueued,
    Tree,
    Conventional,
    OverlayPair,
}

impl Generator {
    /// Every generator, in the order of the documentation.
    pub const ALL: [Self; 9] = [
        Self::Vl2Testbed,
        Self::Vl2Clos,
        Self::LeafSpine,
        Self::FatTree,
        Self::Mesh,
        Self::OutputQueued,
        Self::Tree,
        Self::Conventional,
        Self::OverlayPair,
    ];

    /// Its name in files and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Vl2Testbed => "vl2-testbed",
            Self::Vl2Clos => "vl2-clos",
            Self::LeafSpine => "leaf-spine",
            Self::FatTree => "fat-tree",
            Self::Mesh => "mesh",
            Self::OutputQueued => "output-queued",
            Self::Tree => "tree",
            Self::Conventional => "conventional",
            Self::OverlayPair => "overlay-pair",
        }
    }

    /// The keys that it takes; none of the others has an effect.
    pub fn keys(self) -> &'static [&'static str] {
        match self {
            Self::Vl2Testbed => {
                &["servers_per_tor", "server_rate", "core_rate", "server_buffer", "core_buffer", "link_delay"]
            }
            Self::Vl2Clos => &[
                "aggregation_ports",
                "intermediate_ports",
                "servers_per_tor",
                "server_rate",
                "core_rate",
                "server_buffer",
                "core_buffer",
                "link_delay",
            ],
            Self::LeafSpine => &[
                "spines",
                "leaves",
                "servers_per_leaf",
                "links_per_pair",
                "server_rate",
                "core_rate",
                "server_buffer",
                "core_buffer",
                "link_delay",
            ],
            Self::FatTree => {
                &["k", "servers_per_tor", "server_rate", "core_rate", "server_buffer", "core_buffer", "link_delay"]
            }
            Self::Mesh => &[
                "leaves",
                "servers_per_leaf",
                "server_rate",
                "core_rate",
                "server_buffer",
                "core_buffer",
                "link_delay",
            ],
            Self::OutputQueued => &["servers", "server_rate", "server_buffer", "link_delay"],
            Self::Tree => &[
                "servers",
                "servers_per_rack",
                "oversubscription",
                "aggregations",
                "server_rate",
                "server_buffer",
                "core_buffer",
                "link_delay",
            ],
            Self::Conventional => &[
                "tors",
                "servers_per_tor",
                "aggregation_pairs",
                "access_pairs",
                "cores",
                "tor_oversubscription",
                "aggregation_oversubscription",
                "access_oversubscription",
                "server_rate",
                "server_buffer",
                "core_buffer",
                "link_delay",
            ],
            Self::OverlayPair => &["server_rate", "core_rate", "server_buffer", "core_buffer", "link_delay"],
        }
    }

    /// A fabric of it as the command line names one: with the keys that it needs, where it needs some.
    pub fn example(self) -> &'static str {
        match self {
            Self::Vl2Testbed => "vl2-testbed:servers_per_tor=5",
            Self::Vl2Clos => "vl2-clos:aggregation_ports=4,intermediate_ports=4",
            Self::LeafSpine => "leaf-spine:spines=2,leaves=4,servers_per_leaf=8",
            Self::FatTree => "fat-tree:k=4",
            Self::Mesh => "mesh:leaves=8",
            Self::OutputQueued => "output-queued:servers=100",
            Self::Tree => "tree:servers=80,oversubscription=5",
            Self::Conventional => "conventional:tors=30",
            Self::OverlayPair => "overlay-pair:server_rate=10G",
        }
    }

    /// What its keys are about, where that explains why one is missing.
    fn about(self) -> &'static str {
        match self {
            Self::Tree | Self::Conventional => ", whose core rates follow from the oversubscription",
            _ => "",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize, schemars::JsonSchema)]
#[serde(untagged, expecting = "servers_per_tor is one number, or a list of four for vl2-testbed")]
enum PerTor {
    Each(u32),
    Four([u32; 4]),
}

impl RawSpec {
    /// Keys that are set, apart from the one that names the fabric.
    fn keys(&self) -> Vec<&'static str> {
        let all = [
            ("servers_per_tor", self.servers_per_tor.is_some()),
            ("aggregation_ports", self.aggregation_ports.is_some()),
            ("intermediate_ports", self.intermediate_ports.is_some()),
            ("spines", self.spines.is_some()),
            ("leaves", self.leaves.is_some()),
            ("servers_per_leaf", self.servers_per_leaf.is_some()),
            ("links_per_pair", self.links_per_pair.is_some()),
            ("k", self.k.is_some()),
            ("servers", self.servers.is_some()),
            ("servers_per_rack", self.servers_per_rack.is_some()),
            ("oversubscription", self.oversubscription.is_some()),
            ("aggregations", self.aggregations.is_some()),
            ("tors", self.tors.is_some()),
            ("aggregation_pairs", self.aggregation_pairs.is_some()),
            ("access_pairs", self.access_pairs.is_some()),
            ("cores", self.cores.is_some()),
            ("tor_oversubscription", self.tor_oversubscription.is_some()),
            ("aggregation_oversubscription", self.aggregation_oversubscription.is_some()),
            ("access_oversubscription", self.access_oversubscription.is_some()),
            ("server_rate", self.server_rate.is_some()),
            ("core_rate", self.core_rate.is_some()),
            ("server_buffer", self.server_buffer.is_some()),
            ("core_buffer", self.core_buffer.is_some()),
            ("link_delay", self.link_delay.is_some()),
        ];
        all.into_iter().filter(|(_, set)| *set).map(|(key, _)| key).collect()
    }

    /// Refuses keys that the generator does not take, so that no setting is silently without effect.
    fn only(&self, generator: Generator) -> Result<(), String> {
        match self.keys().into_iter().find(|key| !generator.keys().contains(key)) {
            None => Ok(()),
            Some(key) => Err(format!(
                "`{key}` has no effect on the generator {}{}; it takes {}",
                generator.name(),
                generator.about(),
                generator.keys().join(", ")
            )),
        }
    }

    /// Refuses all keys beside a file, which says everything itself.
    fn nothing(&self) -> Result<(), String> {
        match self.keys().first() {
            None => Ok(()),
            Some(key) => Err(format!("`{key}` has no effect on a fabric from a file; remove it")),
        }
    }

    fn of(self, generator: Generator) -> Result<FabricSpec, String> {
        match generator {
            Generator::Vl2Testbed => Ok(self.testbed()),
            Generator::Vl2Clos => self.clos(),
            Generator::LeafSpine => self.leaf_spine(),
            Generator::FatTree => self.fat_tree(),
            Generator::Mesh => self.mesh(),
            Generator::OutputQueued => self.output_queued(),
            Generator::Tree => Ok(self.tree()),
            Generator::Conventional => self.conventional(),
            Generator::OverlayPair => Ok(FabricSpec::OverlayPair(self.links())),
        }
    }

    fn links(&self) -> LinkParams {
        let base = self.server_rate.map_or_else(LinkParams::default, LinkParams::for_server_rate);
        LinkParams {
            server_rate: base.server_rate,
            core_rate: self.core_rate.unwrap_or(base.core_rate),
            server_buffer: self.server_buffer.unwrap_or(base.server_buffer),
            core_buffer: self.core_buffer.unwrap_or(base.core_buffer),
            delay: self.link_delay.unwrap_or(base.delay),
        }
    }

    fn testbed(self) -> FabricSpec {
        let servers_per_tor = match self.servers_per_tor {
            None => TestbedParams::default().servers_per_tor,
            Some(PerTor::Each(servers)) => [servers; 4],
            Some(PerTor::Four(servers)) => servers,
        };
        FabricSpec::Vl2Testbed(TestbedParams { servers_per_tor, links: self.links() })
    }

    fn clos(self) -> Result<FabricSpec, String> {
        let (Some(aggregation_ports), Some(intermediate_ports)) = (self.aggregation_ports, self.intermediate_ports)
        else {
            return Err("the generator vl2-clos needs `aggregation_ports` and `intermediate_ports`".to_owned());
        };
        let servers_per_tor = match self.servers_per_tor {
            None => 20,
            Some(PerTor::Each(servers)) => servers,
            Some(PerTor::Four(_)) => return Err("`servers_per_tor` of vl2-clos is one number for all ToRs".to_owned()),
        };
        let links = self.links();
        Ok(FabricSpec::Vl2Clos(ClosParams { aggregation_ports, intermediate_ports, servers_per_tor, links }))
    }

    fn leaf_spine(self) -> Result<FabricSpec, String> {
        let (Some(spines), Some(leaves), Some(servers_per_leaf)) = (self.spines, self.leaves, self.servers_per_leaf)
        else {
            return Err("the generator leaf-spine needs `spines`, `leaves` and `servers_per_leaf`".to_owned());
        };
        let (links_per_pair, links) = (self.links_per_pair.unwrap_or(1), self.links());
        Ok(FabricSpec::LeafSpine(LeafSpineParams { spines, leaves, servers_per_leaf, links_per_pair, links }))
    }

    fn fat_tree(self) -> Result<FabricSpec, String> {
        let k = self.k.ok_or("the generator fat-tree needs `k`, the ports of a switch")?;
        let servers_per_tor = match self.servers_per_tor {
            None => k / 2,
            Some(PerTor::Each(servers)) => servers,
            Some(PerTor::Four(_)) => return Err("`servers_per_tor` of fat-tree is one number for all ToRs".to_owned()),
        };
        let links = self.links();
        let links = LinkParams { core_rate: self.core_rate.unwrap_or(links.server_rate), ..links };
        Ok(FabricSpec::FatTree(FatTreeParams { k, servers_per_tor, links }))
    }

    fn mesh(self) -> Result<FabricSpec, String> {
        let default = MeshParams::default();
        Ok(FabricSpec::Mesh(MeshParams {
            leaves: self.leaves.ok_or("the generator mesh needs `leaves`")?,
            servers_per_leaf: self.servers_per_leaf.unwrap_or(default.servers_per_leaf),
            links: self.links(),
        }))
    }

    fn output_queued(self) -> Result<FabricSpec, String> {
        let Some(servers) = self.servers else {
            return Err("the generator output-queued needs `servers`".to_owned());
        };
        let default = OutputQueuedParams::default();
        Ok(FabricSpec::OutputQueued(OutputQueuedParams {
            servers,
            rate: self.server_rate.unwrap_or(default.rate),
            buffer: self.server_buffer,
            delay: self.link_delay.unwrap_or(default.delay),
        }))
    }

    fn tree(self) -> FabricSpec {
        let default = TreeParams::default();
        FabricSpec::Tree(TreeParams {
            servers: self.servers.unwrap_or(default.servers),
            servers_per_rack: self.servers_per_rack.unwrap_or(default.servers_per_rack),
            oversubscription: self.oversubscription.unwrap_or(default.oversubscription),
            aggregations: self.aggregations.unwrap_or(default.aggregations),
            links: self.links(),
        })
    }

    fn conventional(self) -> Result<FabricSpec, String> {
        let default = ConventionalParams::default();
        let servers_per_tor = match self.servers_per_tor {
            None => default.servers_per_tor,
            Some(PerTor::Each(servers)) => servers,
            Some(PerTor::Four(_)) => {
                return Err("`servers_per_tor` of conventional is one number for all ToRs".to_owned());
            }
        };
        let links = self.links();
        Ok(FabricSpec::Conventional(ConventionalParams {
            tors: self.tors.unwrap_or(default.tors),
            servers_per_tor,
            aggregation_pairs: self.aggregation_pairs.unwrap_or(default.aggregation_pairs),
            access_pairs: self.access_pairs.unwrap_or(default.access_pairs),
            cores: self.cores.unwrap_or(default.cores),
            tor_oversubscription: self.tor_oversubscription.unwrap_or(default.tor_oversubscription),
            aggregation_oversubscription: self
                .aggregation_oversubscription
                .unwrap_or(default.aggregation_oversubscription),
            access_oversubscription: self.access_oversubscription.unwrap_or(default.access_oversubscription),
            links,
        }))
    }
}

impl TryFrom<RawSpec> for FabricSpec {
    type Error = String;

    fn try_from(raw: RawSpec) -> Result<Self, String> {
        match (raw.generator, raw.file.clone()) {
            (Some(generator), None) => {
                raw.only(generator)?;
                raw.of(generator)
            }
            (None, Some(file)) => raw.nothing().map(|()| Self::File(file)),
            (Some(_), Some(_)) => Err("a fabric has a `generator` or a `file`, not both".to_owned()),
            (None, None) => Err("name the fabric: `generator = \"vl2-testbed\"` or `file = \"name.yaml\"`".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(toml: &str) -> Result<FabricSpec, String> {
        toml::from_str(toml).map_err(|error| error.message().to_owned())
    }

    fn built(toml: &str) -> Fabric {
        spec(toml).unwrap().build(&|_| Err("no file expected".to_owned())).unwrap()
    }

    #[test]
    fn every_generator_is_reached_by_its_name() {
        for (toml, name, servers) in [
            ("generator = \"vl2-testbed\"", "vl2-testbed", 75),
            ("generator = \"vl2-testbed\"\nservers_per_tor = [1, 2, 3, 4]", "vl2-testbed", 10),
            ("generator = \"vl2-testbed\"\nservers_per_tor = 5", "vl2-testbed", 20),
            ("generator = \"vl2-clos\"\naggregation_ports = 4\nintermediate_ports = 4", "vl2-clos", 80),
            ("generator = \"leaf-spine\"\nspines = 2\nleaves = 3\nservers_per_leaf = 4", "leaf-spine", 12),
            ("generator = \"fat-tree\"\nk = 4", "fat-tree", 16),
            ("generator = \"fat-tree\"\nk = 4\nservers_per_tor = 5", "fat-tree", 40),
            ("generator = \"mesh\"\nleaves = 75", "mesh", 75),
            ("generator = \"output-queued\"\nservers = 1600", "output-queued", 1600),
            ("generator = \"tree\"\nservers = 30", "tree", 30),
            ("generator = \"conventional\"\ntors = 30", "conventional", 600),
            ("generator = \"overlay-pair\"", "overlay-pair", 2),
        ] {
            let fabric = built(toml);
            assert_eq!((fabric.name(), fabric.servers().count()), (name, servers), "{toml}");
        }
    }

    #[test]
    fn the_core_follows_the_servers_unless_it_is_named() {
        let links = |toml: &str| match spec(toml) {
            Ok(FabricSpec::OverlayPair(links)) => links,
            other => panic!("{other:?}"),
        };
        let followed = links("generator = \"overlay-pair\"\nserver_rate = \"10 Mbit/s\"");
        assert_eq!((followed.server_rate.0, followed.core_rate.0), (10_000_000, 100_000_000));
        let named = links("generator = \"overlay-pair\"\ncore_rate = \"1 Gbit/s\"\ncore_buffer = \"1 MB\"");
        assert_eq!((named.core_rate.0, named.core_buffer.0), (1_000_000_000, 1_000_000));
    }

    #[test]
    fn links_of_a_fat_tree_are_alike_unless_the_core_is_named() {
        let rates = |more: &str| {
            let fabric = built(&format!("generator = \"fat-tree\"\nk = 2\nserver_rate = \"3 Mbit/s\"{more}"));
            [0, fabric.links().len() - 1].map(|link| fabric.links()[link].spec.rate.0 / 1_000_000)
        };
        assert_eq!(rates(""), [3, 3]);
        assert_eq!(rates("\ncore_rate = \"9 Mbit/s\""), [9, 3]);
    }

    #[test]
    fn delay_and_parallel_links_reach_the_fabric() {
        let fabric = built(
            "generator = \"leaf-spine\"\nspines = 2\nleaves = 3\nservers_per_leaf = 4\nlinks_per_pair = 5\nlink_delay = \"1 us\"",
        );
        assert_eq!(fabric.links().len(), 2 * 3 * 5 + 3 * 4);
        let ideal =
            built("generator = \"output-queued\"\nservers = 2\nserver_buffer = \"1 MB\"\nlink_delay = \"1 us\"");
        assert!(fabric.links().iter().chain(ideal.links()).all(|link| link.spec.delay == Nanos(1_000)));
        assert_eq!(ideal.links()[0].spec.buffer, Bytes(1_000_000));
    }

    #[test]
    fn a_setting_without_effect_is_refused_by_name() {
        for (toml, message) in [
            ("generator = \"tree\"\nspines = 2", "`spines` has no effect on the generator tree"),
            ("generator = \"tree\"\ncore_rate = \"1 Gbit/s\"", "`core_rate` has no effect"),
            ("file = \"a.yaml\"\nserver_rate = \"1 Gbit/s\"", "`server_rate` has no effect on a fabric from a file"),
            ("generator = \"tree\"\nfile = \"a.yaml\"", "not both"),
            ("", "name the fabric"),
            ("generator = \"ring\"", "unknown variant `ring`"),
            ("generator = \"tree\"\nserver = 3", "unknown field `server`"),
            ("generator = \"vl2-clos\"", "needs `aggregation_ports` and `intermediate_ports`"),
            ("generator = \"fat-tree\"", "needs `k`"),
            ("generator = \"fat-tree\"\nk = 4\nservers_per_tor = [1, 2, 3, 4]", "one number for all ToRs"),
            ("generator = \"fat-tree\"\nk = 4\nspines = 2", "`spines` has no effect on the generator fat-tree"),
            ("generator = \"mesh\"", "needs `leaves`"),
            ("generator = \"mesh\"\nleaves = 4\nspines = 2", "`spines` has no effect on the generator mesh"),
            ("generator = \"output-queued\"", "needs `servers`"),
            ("generator = \"output-queued\"\nservers = 2\ncore_rate = \"1 Gbit/s\"", "`core_rate` has no effect"),
            ("generator = \"vl2-testbed\"\nlinks_per_pair = 2", "`links_per_pair` has no effect"),
            ("generator = \"leaf-spine\"\nspines = 1", "needs `spines`, `leaves` and `servers_per_leaf`"),
            (
                "generator = \"vl2-clos\"\naggregation_ports = 4\nintermediate_ports = 4\nservers_per_tor = [1, 2, 3, 4]",
                "one number for all ToRs",
            ),
            ("generator = \"vl2-testbed\"\nservers_per_tor = [1]", "a list of four"),
            ("generator = \"vl2-testbed\"\nserver_rate = \"fast\"", "`fast` is not a rate"),
        ] {
            let error = spec(toml).expect_err(toml);
            assert!(error.contains(message), "{toml}: {error}");
        }
    }

    #[test]
    fn a_file_comes_from_the_loader_and_its_errors_name_it() {
        let pair = || overlay_pair(&LinkParams::default()).unwrap();
        let spec = spec("file = \"pair.yaml\"").unwrap();
        let text = super::super::to_yaml(&pair());
        let load = |file: &str| if file == "pair.yaml" { Ok(text.clone()) } else { Err("not there".to_owned()) };
        assert_eq!(spec.build(&load), Ok(pair()));
        let missing = FabricSpec::File("b.yaml".to_owned()).build(&load).unwrap_err();
        assert_eq!(missing.to_string(), "cannot read fabric file `b.yaml`: not there");
        let broken = spec.build(&|_| Ok("name: x".to_owned())).unwrap_err();
        assert_eq!(broken.to_string(), "pair.yaml:1:1: the key `topology` is missing");
    }
}
