//! Classic TC filters: a program on an interface without a link. Attaching one does not wait for all CPUs as tcx does
//! (some 16 ms each time), so thousands of ports take no time; but filters stay when a process ends, pinned or not.
#![allow(unsafe_code)]

use std::os::fd::AsFd;

use libbpf_rs::{ErrorKind, ProgramMut, TC_INGRESS, TcHook, TcHookBuilder};

use crate::error::DatapathError;

/// Ours among the filters of an interface: a number that nobody else is likely to have.
const HANDLE: u32 = 0x7776;
const PRIORITY: u32 = 0x7776;

/// A filter on the ingress of an interface. Dropping this leaves it there.
#[derive(Debug)]
pub(crate) struct Filter(TcHook);

// SAFETY: a hook is numbers; its one pointer, to the name of a queueing discipline, is null for ingress and never followed.
unsafe impl Send for Filter {}
// SAFETY: the same; shared, nothing of it changes.
unsafe impl Sync for Filter {}

/// Attaches `program`; an earlier filter of ours is replaced in one step.
pub(crate) fn attach(program: &ProgramMut<'_>, ifindex: u32) -> Result<Filter, DatapathError> {
    let failed = |source| DatapathError::from_kernel(format!("attaching a filter to interface {ifindex}"), source);
    let mut hook = hook_of(program, ifindex);
    hook.create().map_err(failed)?;
    hook.attach().map(Filter).map_err(failed)
}

impl Filter {
    /// Takes the filter off; it is no error if it is gone already, or its interface.
    pub(crate) fn detach(mut self) -> Result<(), DatapathError> {
        match self.0.detach() {
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::InvalidInput) => Ok(()),
            Err(error) if error.to_string().contains("No such device") => Ok(()),
            result => result.map_err(|source| DatapathError::from_kernel("detaching a filter", source)),
        }
    }
}

fn hook_of(program: &ProgramMut<'_>, ifindex: u32) -> TcHook {
    let index = i32::try_from(ifindex).expect("interface indexes are positive ints in the kernel");
    let mut builder = TcHookBuilder::new(program.as_fd());
    builder.ifindex(index).replace(true).handle(HANDLE).priority(PRIORITY);
    builder.hook(TC_INGRESS)
}
