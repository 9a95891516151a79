//! The compiled objects, embedded, and how they are opened, loaded and spoken with. Names of maps and programs are the objects' own: what
//! an object does not have is a panic.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io::Read;
use std::os::fd::{AsFd, AsRawFd};
use std::sync::{Mutex, PoisonError};

use libbpf_rs::{MapCore, MapFlags, MapHandle, Object, ObjectBuilder, OpenObject, PrintLevel, ProgramMut};

use crate::abi::Abi;
use crate::error::DatapathError;

/// One compiled file of a crate's `bpf/`.
#[derive(Clone, Copy, Debug)]
pub struct ObjectFile {
    /// Its file name without `.bpf.c`.
    pub name: &'static str,
    packed: &'static [u8],
}

include!(concat!(env!("OUT_DIR"), "/objects.rs"));

impl ObjectFile {
    /// For what the build script writes.
    #[doc(hidden)]
    pub const fn new(name: &'static str, packed: &'static [u8]) -> Self {
        Self { name, packed }
    }

    /// The ELF file, unpacked once for good: objects that are open may refer to it.
    pub fn image(self) -> &'static [u8] {
        static UNPACKED: Mutex<BTreeMap<&str, &[u8]>> = Mutex::new(BTreeMap::new());
        let unpack = || {
            let mut image = Vec::new();
            flate2::read::ZlibDecoder::new(self.packed).read_to_end(&mut image).expect("the build packed it");
            &*image.leak()
        };
        UNPACKED.lock().unwrap_or_else(PoisonError::into_inner).entry(self.name).or_insert_with(unpack)
    }

    /// Parses it; maps and constants can be changed before [`Self::load`].
    ///
    /// # Errors
    /// [`DatapathError::Load`].
    pub fn open(self) -> Result<OpenObject, DatapathError> {
        collect_loader_messages();
        let mut builder = ObjectBuilder::default();
        let named = builder.name(self.name).map_err(|error| self.refused(error))?;
        let image = STAND_INS.with_borrow(|all| all.get(self.name).copied());
        named.open_memory(image.unwrap_or_else(|| self.image())).map_err(|error| self.refused(error))
    }

    /// Makes the maps, and has the kernel verify the programs.
    ///
    /// # Errors
    /// [`DatapathError::Verifier`] or any other reason why the object cannot be used here.
    pub fn load(self, open: OpenObject) -> Result<Object, DatapathError> {
        open.load().map_err(|error| self.refused(error))
    }

    fn refused(self, error: libbpf_rs::Error) -> DatapathError {
        let messages = LOADER_MESSAGES.take();
        let what = || format!("loading eBPF object `{}`", self.name);
        match (verifier_said(&messages), error.kind()) {
            // First: a program with a fault is answered with "permission denied" as well.
            (Some(why), _) => DatapathError::Verifier { object: self.name, why: why.to_owned() },
            (None, libbpf_rs::ErrorKind::PermissionDenied) => DatapathError::NoRights { what: what() },
            (None, libbpf_rs::ErrorKind::Unsupported) => DatapathError::NoEbpf { what: what() },
            _ => DatapathError::Load { object: self.name, why: last_words(&error, &messages) },
        }
    }
}

thread_local! {
    /// Objects that this thread opens in the place of those embedded, by name.
    static STAND_INS: RefCell<BTreeMap<&'static str, &'static [u8]>> = const { RefCell::new(BTreeMap::new()) };
    /// What libbpf printed on this thread since it last opened an object; it tells more than its error number.
    static LOADER_MESSAGES: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Has `work` open other objects, by name, in the place of those embedded: another release's, to test how it is taken over.
#[doc(hidden)]
pub fn with_stand_ins<T>(objects: Vec<(&'static str, Vec<u8>)>, work: impl FnOnce() -> T) -> T {
    // For good, as what is embedded.
    STAND_INS.set(objects.into_iter().map(|(name, image)| (name, &*image.leak())).collect());
    let result = work();
    STAND_INS.take();
    result
}

const MESSAGES_MAX_BYTES: usize = 1 << 16;

/// Keeps libbpf from writing to standard error, which belongs to the caller's progress and log.
pub(crate) fn collect_loader_messages() {
    LOADER_MESSAGES.take();
    libbpf_rs::set_print(Some((PrintLevel::Warn, |_, message| {
        LOADER_MESSAGES.with_borrow_mut(|kept| {
            kept.push_str(&message);
            // The end tells: a verifier's log can be megabytes long.
            let surplus = kept.len().saturating_sub(MESSAGES_MAX_BYTES);
            let start = (surplus..=kept.len()).find(|at| kept.is_char_boundary(*at));
            kept.drain(..start.unwrap_or(0));
        });
    })));
}

/// Lines that say what went wrong, not how much work it was.
fn telling_lines(messages: &str) -> impl DoubleEndedIterator<Item = &str> {
    messages.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with("processed "))
}

/// The last line of the verifier's log, if libbpf printed one. It does so only for a program that was looked at and
/// refused.
fn verifier_said(messages: &str) -> Option<&str> {
    let (log, _) = messages.rsplit_once("-- END PROG LOAD LOG --")?;
    // What is left of the line is the name of the program.
    telling_lines(log).rfind(|line| !line.starts_with("libbpf: "))
}

fn last_words(error: &libbpf_rs::Error, messages: &str) -> String {
    match telling_lines(messages).next_back() {
        Some(line) => format!("{error} ({line})"),
        None => error.to_string(),
    }
}

/// Sets read-only data of an object before it is loaded; the verifier then takes it for constants.
pub fn set_constants(open: &mut OpenObject, section: &'static str, value: &impl Abi) {
    let mut map = open.maps_mut().find(|map| map.name() == section).expect("the object has this section");
    let data = map.initial_value_mut().expect("read-only data has an initial value");
    let bytes = value.bytes();
    data[..bytes.len()].copy_from_slice(bytes);
}

/// Sets how many entries a map will hold.
///
/// # Errors
/// [`DatapathError::Map`].
pub fn set_max_entries(open: &mut OpenObject, name: &'static str, max_entries: u32) -> Result<(), DatapathError> {
    let mut map = open.maps_mut().find(|map| map.name() == name).expect("the object has this map");
    map.set_max_entries(max_entries).map_err(|source| DatapathError::Map { map: name, what: "sizing", source })
}

/// Lets an object that is not loaded yet use the map of this name of one that is.
pub(crate) fn share_map(open: &mut OpenObject, name: &'static str, from: &Object) -> Result<(), DatapathError> {
    let shared = map_handle(from, name)?;
    let mut map = open.maps_mut().find(|map| map.name() == name).expect("the object has this map");
    map.reuse_fd(shared.as_fd()).map_err(|source| DatapathError::Map { map: name, what: "sharing", source })
}

/// A handle of its own on a map of a loaded object.
///
/// # Errors
/// [`DatapathError::Map`].
pub fn map_handle(object: &Object, name: &'static str) -> Result<MapHandle, DatapathError> {
    let map = object.maps().find(|map| map.name() == name).expect("the object has this map");
    MapHandle::try_from(&map).map_err(|source| DatapathError::Map { map: name, what: "opening", source })
}

/// What a map of a loaded object has for a key.
///
/// # Errors
/// [`DatapathError::Map`].
pub fn lookup(object: &Object, map: &'static str, key: &[u8]) -> Result<Option<Vec<u8>>, DatapathError> {
    let found = map_handle(object, map)?.lookup(key, MapFlags::ANY);
    found.map_err(|source| DatapathError::Map { map, what: "reading", source })
}

/// Sets an entry of a map of a loaded object.
///
/// # Errors
/// [`DatapathError::Map`].
pub fn update(object: &Object, map: &'static str, key: &[u8], value: &[u8]) -> Result<(), DatapathError> {
    let set = map_handle(object, map)?.update(key, value, MapFlags::ANY);
    set.map_err(|source| DatapathError::Map { map, what: "setting an entry", source })
}

/// A program of a loaded object.
pub fn program<'object>(object: &'object Object, name: &str) -> ProgramMut<'object> {
    object.progs_mut().find(|program| program.name() == name).expect("the object has this program")
}

/// `struct bpf_devmap_val`: an interface, and the program for what leaves by it.
pub fn device(ifindex: u32, program: Option<&ProgramMut<'_>>) -> [u8; 8] {
    let fd = program.map_or(-1, |program| program.as_fd().as_raw_fd());
    let mut value = [0; 8];
    value[..4].copy_from_slice(&ifindex.to_ne_bytes());
    value[4..].copy_from_slice(&fd.to_ne_bytes());
    value
}

#[cfg(test)]
#[allow(clippy::print_stderr)]
mod tests {
    use super::*;

    /// A copy of an object whose look-ups are replaced by reads that the verifier does not allow.
    fn with_a_fault(file: ObjectFile) -> Vec<u8> {
        const LOOK_UP: [u8; 8] = [0x85, 0, 0, 0, 1, 0, 0, 0];
        const READ_BEYOND: [u8; 8] = [0x79, 0x10, 0xf0, 0x7f, 0, 0, 0, 0]; // r0 = *(u64 *)(r1 + 0x7ff0)
        let mut words: Vec<[u8; 8]> = file.image().as_chunks().0.to_vec();
        words.iter_mut().filter(|word| **word == LOOK_UP).for_each(|word| *word = READ_BEYOND);
        words.as_flattened().to_vec()
    }

    #[test]
    fn a_refusal_by_the_verifier_is_not_taken_for_missing_rights() {
        if !weft_needs::root() {
            return;
        }
        VL2_SWITCH.open().and_then(|open| VL2_SWITCH.load(open)).expect("it loads as it is");
        let load = || VL2_SWITCH.open().and_then(|open| VL2_SWITCH.load(open));
        let faulty = vec![(VL2_SWITCH.name, with_a_fault(VL2_SWITCH))];
        let error = with_stand_ins(faulty, load).expect_err("the verifier sees the fault");
        let DatapathError::Verifier { object: "vl2_switch", why } = &error else { panic!("{error}") };
        assert!(why.contains("access") && !why.contains("libbpf"), "{why}");
        assert!(error.to_string().contains("verifier refused"), "{error}");
        // And the next object is not blamed for it.
        VL2_SWITCH.open().and_then(|open| VL2_SWITCH.load(open)).expect("it loaded before");
    }

    #[test]
    fn without_a_log_the_verifier_is_not_the_one() {
        let messages = "libbpf: Error in bpf_object__probe_loading(): -EPERM. Couldn't load trivial BPF program.\n\
                        libbpf: failed to load object 'vl2_switch'\n";
        assert_eq!(verifier_said(messages), None);
        let denied = || libbpf_rs::Error::from_raw_os_error(libc::EPERM);
        LOADER_MESSAGES.set(messages.to_owned());
        assert!(matches!(VL2_SWITCH.refused(denied()), DatapathError::NoRights { .. }));
    }
}
