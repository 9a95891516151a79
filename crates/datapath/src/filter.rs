//! Classic TC filters: a program on an interface without a link, for kernels before 6.6, and for thousands of ports (an
//! attachment takes 0.1 ms; with tcx it waits for all CPUs, some 16 ms).
//!
//! A filter is of an interface, not of a process: what nobody takes off stays, until its interface goes or the same
//! program comes again, which takes its place in one step.
#![allow(unsafe_code)]

use std::fs::File;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::fs::MetadataExt;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use libbpf_rs::{
    ErrorKind, ProgramAttachType, ProgramImpl, ProgramMut, TC_EGRESS, TC_INGRESS, TcAttachPoint, TcHook, TcHookBuilder,
};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use crate::error::DatapathError;
use crate::interface;

/// Ours among the filters of an interface: a number that nobody else is likely to have.
const HANDLE: u32 = 0x7776;
/// Where ours stand among others' filters, which the kernel asks in the order of these numbers; those that nobody chose
/// begin at 0xc000.
const FIRST: [u32; 8] = [0x7767, 0x7766, 0x7765, 0x7764, 0x7763, 0x7762, 0x7761, 0x7760];
const LAST: [u32; 8] = [0x7776, 0x7777, 0x7778, 0x7779, 0x777a, 0x777b, 0x777c, 0x777d];

/// Where among the programs that are there; of filters, among our own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// In front of them.
    First,
    /// Behind them.
    Last,
}

/// A filter on an interface. It stays when this is dropped.
#[derive(Clone, Debug)]
pub(crate) struct Filter {
    hook: TcHook,
    program: u32,
    /// That the interface's number is of: whoever takes the filter off may be in another by then.
    namespace: Arc<File>,
}

// SAFETY: a hook is numbers; its one pointer, to the name of a queueing discipline, is null and never followed.
unsafe impl Send for Filter {}
// SAFETY: the same; shared, nothing of it changes.
unsafe impl Sync for Filter {}

/// Attaches `program`, whose section names the direction. A filter with a program of the same name, which an earlier process
/// left, is replaced in one step: every frame meets either the old or the new program.
pub(crate) fn attach(program: &ProgramMut<'_>, ifindex: u32, place: Place) -> Result<Filter, DatapathError> {
    let failed = |source| {
        let what = format!("attaching a filter with {} to interface {ifindex}", program.name().to_string_lossy());
        DatapathError::from_kernel(what, source)
    };
    let namespace = this_namespace().map_err(|error| failed(error.into()))?;
    let name = name_of(program.as_fd()).map_err(failed)?;
    let mut hook = hook_at(program.as_fd(), ifindex, direction_of(program));
    // It may be there: with filters of others, which stay.
    hook.create().map_err(failed)?;
    let slots = if place == Place::First { FIRST } else { LAST };
    let found = slots.map(|priority| hook.priority(priority).query().ok());
    let is_earlier = |id: &Option<u32>| id.is_some_and(|id| name_of_id(id).is_some_and(|found| found == name));
    let earlier = found.iter().position(is_earlier);
    // Beyond all that are there, as long as there is room.
    let beyond = found.iter().rposition(Option::is_some).map_or(0, |taken| taken + 1);
    let free = || (beyond..slots.len()).next().or_else(|| found.iter().position(Option::is_none));
    let slot = earlier.or_else(free).ok_or_else(|| DatapathError::Config {
        field: "interface",
        why: format!("interface {ifindex} has {} filters of ours already; take one off first", slots.len()),
    })?;
    hook.priority(slots[slot]).replace(earlier.is_some()).attach().map_err(failed)?;
    let program = ProgramImpl::id_from_fd(program.as_fd()).map_err(failed)?;
    Ok(Filter { hook, program, namespace })
}

/// The filter of the calling thread's namespace that has this program, whichever interface it is on; looked for on the likely
/// one first, for there may be thousands.
pub(crate) fn find(program: BorrowedFd<'_>, likely: Option<u32>) -> Option<Filter> {
    let id = ProgramImpl::id_from_fd(program).ok()?;
    let places =
        || [TC_INGRESS, TC_EGRESS].into_iter().flat_map(|to| FIRST.into_iter().chain(LAST).map(move |at| (to, at)));
    let on_one = |ifindex| {
        places().find_map(|(direction, priority)| {
            let mut hook = hook_at(program, ifindex, direction);
            let found = hook.priority(priority).query().ok();
            (found == Some(id)).then_some(hook)
        })
    };
    let hook = likely.and_then(on_one).or_else(|| interfaces().into_iter().find_map(on_one))?;
    Some(Filter { hook, program: id, namespace: this_namespace().ok()? })
}

impl Filter {
    /// Takes the filter off; it is no error if it is gone, or its interface, or if another program has its place.
    pub(crate) fn detach(&self) -> Result<(), DatapathError> {
        let detach = || {
            let mut hook = self.hook;
            if hook.query().ok() == Some(self.program) { hook.detach() } else { Ok(()) }
        };
        match self.in_its_namespace(detach) {
            Err(error) if is_gone(&error) => Ok(()),
            result => result.map_err(|source| DatapathError::from_kernel("detaching a filter", source)),
        }
    }

    fn in_its_namespace<T: Send>(
        &self,
        action: impl FnOnce() -> Result<T, libbpf_rs::Error> + Send,
    ) -> Result<T, libbpf_rs::Error> {
        if inode(&self.namespace)? == inode(&*this_namespace()?)? {
            return action();
        }
        let namespace = self.namespace.as_fd();
        let enter_and_act = || {
            move_into_link_name_space(namespace, Some(LinkNameSpaceType::Network)).map_err(std::io::Error::from)?;
            action()
        };
        std::thread::scope(|scope| scope.spawn(enter_and_act).join().expect("nothing in there panics"))
    }
}

/// The calling thread's, held open once for all filters in it: there may be thousands.
fn this_namespace() -> std::io::Result<Arc<File>> {
    static HELD: Mutex<Vec<(u64, Weak<File>)>> = Mutex::new(Vec::new());
    let here = File::open("/proc/thread-self/ns/net")?;
    let number = inode(&here)?;
    let mut held = HELD.lock().unwrap_or_else(PoisonError::into_inner);
    held.retain(|(_, namespace)| namespace.strong_count() > 0);
    if let Some(known) = held.iter().find(|(known, _)| *known == number).and_then(|(_, namespace)| namespace.upgrade())
    {
        return Ok(known);
    }
    let here = Arc::new(here);
    held.push((number, Arc::downgrade(&here)));
    Ok(here)
}

fn inode(file: &File) -> std::io::Result<u64> {
    file.metadata().map(|data| data.ino())
}

fn is_gone(error: &libbpf_rs::Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::InvalidInput)
        || error.to_string().contains("No such device")
}

fn hook_at(program: BorrowedFd<'_>, ifindex: u32, direction: TcAttachPoint) -> TcHook {
    let index = i32::try_from(ifindex).expect("interface indexes are positive ints in the kernel");
    TcHookBuilder::new(program).ifindex(index).handle(HANDLE).hook(direction)
}

fn direction_of(program: &ProgramMut<'_>) -> TcAttachPoint {
    if matches!(program.attach_type(), ProgramAttachType::TcxEgress) { TC_EGRESS } else { TC_INGRESS }
}

fn interfaces() -> Vec<u32> {
    let listed = std::fs::read_to_string("/proc/thread-self/net/dev").unwrap_or_default();
    let names = listed.lines().filter_map(|line| line.split_once(':')).map(|(name, _)| name.trim());
    names.filter_map(|name| interface::index_of(name).ok()).collect()
}

fn name_of_id(id: u32) -> Option<Name> {
    name_of(ProgramImpl::fd_from_id(id).ok()?.as_fd()).ok()
}

/// A program's name as the kernel keeps it, of at most 15 bytes.
type Name = [libc::c_char; 16];

fn name_of(program: BorrowedFd<'_>) -> Result<Name, libbpf_rs::Error> {
    let mut info = libbpf_sys::bpf_prog_info::default();
    let mut length = size_of::<libbpf_sys::bpf_prog_info>() as u32;
    let fd = program.as_raw_fd();
    // SAFETY: the descriptor is open, and the kernel writes at most `length` bytes.
    match unsafe { libbpf_sys::bpf_prog_get_info_by_fd(fd, &raw mut info, &raw mut length) } {
        0 => Ok(info.name),
        error => Err(libbpf_rs::Error::from_raw_os_error(-error)),
    }
}
