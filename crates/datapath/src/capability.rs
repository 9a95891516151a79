//! What the running kernel can do for the programs: asked by trying, not by its version.

use std::os::fd::AsFd;

use libbpf_rs::query::ProgInfoIter;
use libbpf_rs::{OpenObject, ProgramImpl};

use crate::error::DatapathError;
use crate::object::ObjectFile;

/// What the verifier made of one program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verified {
    /// The program's name.
    pub program: String,
    /// Instructions that the verifier looked at.
    pub instructions: u32,
}

/// Loads an object, with no branch dead, so that the kernel's verifier looks at all of each program; and lets it go again.
/// Nothing is attached.
///
/// # Errors
/// [`DatapathError::Verifier`] or any other reason why the object cannot be used here.
pub fn load(file: ObjectFile) -> Result<Vec<Verified>, DatapathError> {
    let object = file.load(all_alive(file)?)?;
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
