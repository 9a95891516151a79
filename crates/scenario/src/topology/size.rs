//! How large a fabric is, from its parameters alone: what would not fit anywhere is refused before it is made.

use super::{
    Fabric, FabricSpec, Role, TopologyError, clos, conventional, fat_tree, leaf_spine, mesh, output_queued, testbed,
    tree,
};

/// Most links of a fabric: some way above what an engine takes, and little enough to be built anywhere.
pub const LINKS_MAX: u64 = 1 << 20;

/// How many nodes and links a fabric has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FabricSize {
    /// Servers and directory servers included.
    pub nodes: u64,
    /// Servers, which workloads number.
    pub servers: u64,
    pub links: u64,
    /// The highest rate of a server's link, in bits per second.
    pub server_bps: u64,
}

impl FabricSize {
    /// That of a fabric that is there.
    pub fn of(fabric: &Fabric) -> Self {
        let rate = |server| fabric.edge_of(server).map(|(_, link)| fabric.link(link).spec.rate.0);
        Self {
            nodes: fabric.nodes().len() as u64,
            servers: fabric.with_role(Role::Server).count() as u64,
            links: fabric.links().len() as u64,
            server_bps: fabric.servers().filter_map(rate).max().unwrap_or(0),
        }
    }
}

impl FabricSpec {
    /// How large the fabric will be, or why there will be none; `None` for a file.
    pub fn size(&self) -> Result<Option<FabricSize>, TopologyError> {
        self.check()?;
        let Some([switches, servers, directories, between_switches]) = self.counts() else { return Ok(None) };
        let links = between_switches + servers + directories;
        if links > LINKS_MAX {
            return Err(TopologyError::TooManyLinks { links, most: LINKS_MAX });
        }
        let server_bps = self.server_bps();
        Ok(Some(FabricSize { nodes: switches + servers + directories, servers, links, server_bps }))
    }

    fn check(&self) -> Result<(), TopologyError> {
        match self {
            Self::Vl2Testbed(params) => testbed::check(params),
            Self::Vl2Clos(params) => clos::check(params),
            Self::LeafSpine(params) => leaf_spine::check(params),
            Self::FatTree(params) => fat_tree::check(params),
            Self::Mesh(params) => mesh::check(params),
            Self::OutputQueued(params) => output_queued::check(params),
            Self::Tree(params) => tree::check(params),
            Self::Conventional(params) => conventional::check(params),
            Self::OverlayPair(_) | Self::File(_) => Ok(()),
        }
    }

    /// Switches, servers, directory servers and links between switches.
    fn counts(&self) -> Option<[u64; 4]> {
        Some(match self {
            Self::Vl2Testbed(params) => {
                [10, params.servers_per_tor.iter().map(|servers| u64::from(*servers)).sum(), 1, 3 * 3 + 4 * 2]
            }
            Self::Vl2Clos(params) => {
                let [up, down, below] =
                    [params.aggregation_ports, params.intermediate_ports, params.servers_per_tor].map(u64::from);
                let tors = up * down / 4;
                [up / 2 + down + tors, tors * below, 1, up / 2 * down + 2 * tors]
            }
            Self::LeafSpine(params) => {
                let [spines, leaves, below, parallel] =
                    [params.spines, params.leaves, params.servers_per_leaf, params.links_per_pair].map(u64::from);
                [spines + leaves, leaves * below, 0, spines * leaves * parallel]
            }
            Self::FatTree(params) => {
                let [half, below] = [params.k / 2, params.servers_per_tor].map(u64::from);
                let tors = 2 * half * half;
                [half * half + 2 * tors, tors * below, 0, 2 * tors * half]
            }
            Self::Mesh(params) => {
                let [leaves, below] = [params.leaves, params.servers_per_leaf].map(u64::from);
                [leaves, leaves * below, 0, leaves * (leaves - 1) / 2]
            }
            Self::OutputQueued(params) => [1, params.servers.into(), 0, 0],
            Self::Tree(params) => {
                let racks = u64::from(params.servers.div_ceil(params.servers_per_rack));
                let aggregations = racks.min(params.aggregations.into());
                [1 + aggregations + racks, params.servers.into(), 0, aggregations + racks]
            }
            Self::Conventional(params) => {
                let [tors, below, aggregations, accesses, cores] =
                    [params.tors, params.servers_per_tor, params.aggregation_pairs, params.access_pairs, params.cores]
                        .map(u64::from);
                let links = 2 * accesses * cores + 4 * aggregations + 2 * tors;
                [cores + 2 * (accesses + aggregations) + tors, tors * below, 0, links]
            }
            Self::OverlayPair(_) => [3, 2, 1, 2],
            Self::File(_) => return None,
        })
    }

    fn server_bps(&self) -> u64 {
        match self {
            Self::Vl2Testbed(params) => params.links.server_rate.0,
            Self::Vl2Clos(params) => params.links.server_rate.0,
            Self::LeafSpine(params) => params.links.server_rate.0,
            Self::FatTree(params) => params.links.server_rate.0,
            Self::Mesh(params) => params.links.server_rate.0,
            Self::OutputQueued(params) => params.rate.0,
            Self::Tree(params) => params.links.server_rate.0,
            Self::Conventional(params) => params.links.server_rate.0,
            Self::OverlayPair(links) => links.server_rate.0,
            Self::File(_) => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(toml: &str) -> FabricSpec {
        toml::from_str(toml).expect("it is one")
    }

    #[test]
    fn what_is_built_is_as_large_as_was_said() {
        for toml in [
            "generator = \"vl2-testbed\"\nserver_rate = \"3 Mbit/s\"",
            "generator = \"vl2-testbed\"\nservers_per_tor = [1, 2, 0, 4]",
            "generator = \"vl2-clos\"\naggregation_ports = 6\nintermediate_ports = 10\nservers_per_tor = 7",
            "generator = \"vl2-clos\"\naggregation_ports = 144\nintermediate_ports = 144",
            "generator = \"leaf-spine\"\nspines = 3\nleaves = 5\nservers_per_leaf = 4\nlinks_per_pair = 2",
            "generator = \"fat-tree\"\nk = 6",
            "generator = \"fat-tree\"\nk = 4\nservers_per_tor = 7",
            "generator = \"mesh\"\nleaves = 7\nservers_per_leaf = 2",
            "generator = \"output-queued\"\nservers = 17",
            "generator = \"tree\"\nservers = 75\naggregations = 3",
            "generator = \"tree\"\nservers = 5\nservers_per_rack = 5\naggregations = 3",
            "generator = \"conventional\"\ntors = 30\nservers_per_tor = 3\naggregation_pairs = 5\naccess_pairs = 2\ncores = 3",
            "generator = \"overlay-pair\"",
        ] {
            let spec = spec(toml);
            let built = spec.build(&|_| Err("no file".to_owned())).expect("it is valid");
            assert_eq!(spec.size(), Ok(Some(FabricSize::of(&built))), "{toml}");
        }
        assert_eq!(spec("file = \"x.yaml\"").size(), Ok(None));
    }

    #[test]
    fn what_fits_nowhere_is_refused_before_it_is_built() {
        let spec = spec(
            "generator = \"leaf-spine\"\nspines = 1024\nleaves = 1024\nservers_per_leaf = 252\nlinks_per_pair = 64",
        );
        let refused = spec.build(&|_| Err("no file".to_owned())).expect_err("it has 134 million ports");
        assert_eq!(
            refused.to_string(),
            "the fabric would have 67366912 links; the most is 1048576: choose smaller switches or fewer of them"
        );
    }

    #[test]
    fn what_makes_no_fabric_has_no_size() {
        let most = u32::MAX;
        for toml in [
            format!("generator = \"vl2-clos\"\naggregation_ports = {most}\nintermediate_ports = {most}"),
            format!(
                "generator = \"vl2-clos\"\naggregation_ports = 4\nintermediate_ports = 4\nservers_per_tor = {most}"
            ),
            format!("generator = \"leaf-spine\"\nspines = 1\nleaves = 1\nservers_per_leaf = {most}"),
            format!("generator = \"fat-tree\"\nk = {most}"),
            format!("generator = \"fat-tree\"\nk = 4\nservers_per_tor = {most}"),
            format!("generator = \"mesh\"\nleaves = {most}"),
            "generator = \"mesh\"\nleaves = 0".to_owned(),
            format!("generator = \"output-queued\"\nservers = {most}"),
            format!("generator = \"conventional\"\ncores = {most}"),
            "generator = \"tree\"\nservers = 300000000".to_owned(),
            "generator = \"tree\"\nservers_per_rack = 0".to_owned(),
            "generator = \"vl2-testbed\"\nservers_per_tor = 0".to_owned(),
        ] {
            let (spec, load) = (spec(&toml), |_: &str| Err("no file".to_owned()));
            let refused = spec.size().expect_err(&toml);
            assert!(matches!(refused, TopologyError::BadParameter { .. }), "{toml}: {refused}");
            assert_eq!(spec.build(&load), Err(refused.into()), "{toml}");
        }
    }
}
