//! Flags of `weft fabric`.

use std::path::PathBuf;

use clap::{Subcommand, ValueEnum};

use super::OutputFlag;

#[derive(Debug, Subcommand)]
pub(crate) enum FabricCommand {
    /// List the fabrics that come with weft, and the generators with their parameters
    #[command(after_help = "\
Examples:
  weft fabric list
  weft fabric list -o json | jq -r '.generators[].example'")]
    List {
        #[command(flatten)]
        output: OutputFlag,
    },
    /// Write a fabric as a YAML file, to change it or to keep it
    #[command(after_help = "\
Examples:
  weft fabric make fat-tree:k=8                                               on standard output
  weft fabric make leaf-spine:spines=2,leaves=4,servers_per_leaf=8,server_rate=10G,core_rate=40G -w mine.yaml
  weft fabric make vl2-4servers -w mine.yaml                                  a fabric that comes with weft
  weft fabric make fat-tree:k=4 -w mine.yaml --force                          in the place of the file that is there

Parameters are those of `[fabric]` in plans, with units: `weft fabric list` shows them, docs/scenarios.md says what they mean.")]
    Make {
        /// A generator with its parameters, NAME:KEY=VALUE,KEY=VALUE; or another fabric
        fabric: String,
        /// The file; it must not be there yet
        #[arg(short, long, value_name = "FILE")]
        write: Option<PathBuf>,
        /// Replace the file if it is there
        #[arg(long, requires = "write")]
        force: bool,
    },
    /// Check a fabric as bringing it up and simulating it would: all mistakes at once, each with its line
    #[command(after_help = "\
Examples:
  weft fabric check my-fabric.yaml
  weft fabric check fat-tree:k=8,servers_per_tor=12       how large it is, and how oversubscribed
  weft fabric check my-fabric.yaml -o json | jq -r '.mistakes[].place'

Needs no privileges. Exit code 3: there is a mistake.")]
    Check {
        /// Short name of a fabric, path of a YAML file, or generator with its parameters
        fabric: String,
        #[command(flatten)]
        output: OutputFlag,
    },
    /// Draw a fabric
    #[command(after_help = "\
Examples:
  weft fabric draw vl2-4servers
  weft fabric draw fat-tree:k=4
  weft fabric draw my-fabric.yaml --format svg > my-fabric.svg
  weft fabric draw my-fabric.yaml --format dot | dot -Tpdf > my-fabric.pdf")]
    Draw {
        /// Short name of a fabric, path of a YAML file, or generator with its parameters
        fabric: String,
        /// The drawing's format
        #[arg(long, value_enum, default_value_t)]
        format: DrawingFormat,
    },
}

/// Formats of `weft fabric draw`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum DrawingFormat {
    /// Text for the terminal
    #[default]
    Text,
    /// Graphviz
    Dot,
    /// A picture
    Svg,
}
