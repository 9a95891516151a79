//! What the running kernel can do for the programs: asked by trying, not by its version.

use std::os::fd::AsFd;

use libbpf_rs::query::ProgInfoIter;
use libbpf_rs::{OpenObject, ProgramImpl};

use crate::error::DatapathError;
use crate::object::{self, ObjectFile};

/// What the verifier made of one program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verified {
    /// The program's name.
    pub program: String,
    /// Instructions that the verifier looked at.
    pub instructions: u32,
}

/// Every object, and what it is for.
const OBJECTS: &[(ObjectFile, &str)] = &[
    (object::VL2_HOST, "VL2 at a server"),
    (object::VL2_SWITCH, "VL2 at an Intermediate or ToR"),
    (object::XDP, "VL2 at XDP"),
    (object::VXLAN_TC, "a VTEP at TC"),
    (object::VXLAN_XDP, "a VTEP at XDP, beside the one at TC"),
    (object::TRILL, "an RBridge"),
    (object::TESTER_GENERATE, "the test centre's generator"),
    (object::TESTER_ANALYSE, "the test centre's analyser"),
    (object::TESTER_LINK, "emulated links"),
    (object::L2, "plain switches"),
    (object::BED, "cuts and segments of experiments"),
    (object::BENCH, "loops around VL2's and VXLAN's programs"),
    (object::BENCH_TRILL, "loops around TRILL's programs"),
    (object::LOSS, "links that lose"),
    (object::COPIES, "a look at the kernel's copies of frames"),
];

/// Names of all objects, each with what it is for.
pub fn objects() -> impl Iterator<Item = (&'static str, &'static str)> {
    OBJECTS.iter().map(|(file, purpose)| (file.name, *purpose))
}

/// Loads an object, with no branch dead, so that the kernel's verifier looks at all of each program; and lets it go again.
/// Nothing is attached.
///
/// # Errors
/// [`DatapathError::Verifier`] or any other reason why the object cannot be used here.
///
/// # Panics
/// If [`objects`] does not have the name.
pub fn load(name: &str) -> Result<Vec<Verified>, DatapathError> {
    let (file, _) = OBJECTS.iter().find(|(file, _)| file.name == name).expect("the name is one of `objects`");
    let object = file.load(all_alive(*file)?)?;
    let verified = |program: libbpf_rs::Program<'_>| {
        let id = ProgramImpl::id_from_fd(program.as_fd()).ok();
        let info = ProgInfoIter::default().find(|info| Some(info.id) == id);
        let instructions = info.map_or(0, |info| info.verified_insns);
        Verified { program: program.name().to_string_lossy().into_owned(), instructions }
    };
    Ok(object.progs().map(verified).collect())
}

/// With constants that make no branch dead.
fn all_alive(file: ObjectFile) -> Result<OpenObject, DatapathError> {
    let mut open = file.open()?;
    for mut map in open.maps_mut().filter(|map| map.name().to_string_lossy().starts_with(".rodata")) {
        if let Some(constants) = map.initial_value_mut() {
            constants.fill(1);
        }
    }
    Ok(open)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// `build.rs` compiles these.
    #[test]
    fn every_compiled_object_is_listed_once() {
        let folder = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/bpf")).expect("the sources are there");
        let names = folder.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        let compiled: BTreeSet<String> =
            names.filter_map(|name| name.strip_suffix(".bpf.c").map(str::to_owned)).collect();
        let listed: Vec<String> = objects().map(|(name, _)| name.to_owned()).collect();
        assert_eq!(listed.iter().cloned().collect::<BTreeSet<_>>(), compiled);
        assert_eq!(listed.len(), compiled.len(), "twice: {listed:?}");
    }
}
