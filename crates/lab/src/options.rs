//! What may be chosen about a lab besides its scenario.

use std::path::PathBuf;

/// Options of a lab.
#[derive(Clone, Debug)]
pub struct LabOptions {
    /// Name of the lab; `None`: the fabric's name.
    pub name: Option<String>,
    /// The `weft` program that the lab's daemons are started from.
    pub weft_binary: PathBuf,
    /// Seed of the choices that switches make among equal paths.
    pub seed: u64,
    /// Whether shaped links are measured before use.
    pub self_test: bool,
}

impl LabOptions {
    /// Options with the program that runs now, no seed of its own and a self-test of shaped links.
    pub fn new(weft_binary: impl Into<PathBuf>) -> Self {
        Self { name: None, weft_binary: weft_binary.into(), seed: 1, self_test: true }
    }
}
