//! Pins: names in a bpffs that keep maps and links alive, so that a restart of the agent cuts no flow.

#![allow(unsafe_code)]

use std::ffi::CString;
use std::fs;
use std::io::{Error, ErrorKind};
use std::os::fd::{AsRawFd, BorrowedFd};
use std::path::{Path, PathBuf};

use libbpf_rs::{MapCore, MapHandle, MapMut, Object, OpenMapMut, OpenObject};

use crate::bpffs;
use crate::error::DatapathError;
use crate::object::ObjectFile;

/// The directory of one node's pins.
#[derive(Clone, Debug)]
pub(crate) struct PinDir(PathBuf);

impl PinDir {
    /// Creates the directory; refuses a place where pins cannot live.
    pub(crate) fn create(path: &Path) -> Result<Self, DatapathError> {
        fs::create_dir_all(path).map_err(|source| failed("creating", path, source))?;
        if !bpffs::is_mounted(path) {
            let _leave_no_trace = fs::remove_dir(path);
            let why = Error::new(ErrorKind::Unsupported, "not on a bpffs; mount one first (`bpffs::ensure_mounted`)");
            return Err(failed("pinning at", path, why));
        }
        Ok(Self(path.to_owned()))
    }

    pub(crate) fn path_of(&self, name: &str) -> PathBuf {
        self.0.join(pin_name(name))
    }

    /// Removes the named pins and the directory, if nothing else is in it.
    pub(crate) fn remove(&self, names: &[&str]) -> Result<(), DatapathError> {
        for name in names {
            remove_pin(&self.path_of(name))?;
        }
        match fs::remove_dir(&self.0) {
            Ok(()) => Ok(()),
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::DirectoryNotEmpty) => Ok(()),
            Err(source) => Err(failed("removing", &self.0, source)),
        }
    }

    /// Removes the named pins.
    pub(crate) fn remove_pins(&self, names: &[&str]) -> Result<(), DatapathError> {
        names.iter().try_for_each(|name| remove_pin(&self.path_of(name)))
    }

    /// Names of pins that begin so.
    pub(crate) fn names(&self, prefix: &str) -> Result<Vec<String>, DatapathError> {
        let entries = fs::read_dir(&self.0).map_err(|source| failed("reading", &self.0, source))?;
        let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
        Ok(names.filter(|name| name.starts_with(prefix)).collect())
    }

    /// Pins maps of a loaded object in the place of others of these names.
    pub(crate) fn replace(&self, object: &mut Object, maps: &[&'static str]) -> Result<(), DatapathError> {
        self.remove_pins(maps)?;
        maps.iter().try_for_each(|map| self.pin(object, map))
    }

    /// Whether a map of this name is pinned that fits.
    pub(crate) fn holds(&self, open: &mut OpenObject, name: &'static str) -> bool {
        let Ok(pinned) = MapHandle::from_pinned_path(self.path_of(name)) else { return false };
        open.maps_mut().find(|map| map.name() == name).is_some_and(|map| fits(&pinned, &map))
    }

    /// Lets the object use the pinned map of this name, if there is one that fits; one that does not fit (another size,
    /// another version's layout) is unpinned, and a new map takes its place when the object is loaded.
    fn reuse(&self, open: &mut OpenObject, name: &'static str) -> Result<(), DatapathError> {
        let path = self.path_of(name);
        let Ok(pinned) = MapHandle::from_pinned_path(&path) else { return Ok(()) };
        let mut map = open.maps_mut().find(|map| map.name() == name).expect("the object has this map");
        if !fits(&pinned, &map) {
            return remove_pin(&path);
        }
        use std::os::fd::AsFd;
        map.reuse_fd(pinned.as_fd()).map_err(|source| DatapathError::Map { map: name, what: "reusing", source })
    }

    /// Pins a map of a loaded object, unless it came from the pin.
    fn pin(&self, object: &mut Object, name: &'static str) -> Result<(), DatapathError> {
        let path = self.path_of(name);
        if path.exists() {
            return Ok(());
        }
        let mut map: MapMut<'_> = object.maps_mut().find(|map| map.name() == name).expect("the object has this map");
        map.pin(&path).map_err(|source| DatapathError::Map { map: name, what: "pinning", source })
    }
}

/// Loads an object; maps of these names are those that an earlier run pinned and that fit, or are pinned now.
pub(crate) fn load(
    file: ObjectFile,
    mut open: OpenObject,
    pins: Option<&PinDir>,
    maps: &[&'static str],
) -> Result<Object, DatapathError> {
    let Some(pins) = pins else { return file.load(open) };
    maps.iter().try_for_each(|map| pins.reuse(&mut open, map))?;
    let mut object = file.load(open)?;
    maps.iter().try_for_each(|map| pins.pin(&mut object, map))?;
    Ok(object)
}

/// Names in a bpffs may not contain dots, names of data sections begin with one.
fn pin_name(name: &str) -> String {
    name.trim_start_matches('.').replace('.', "_")
}

/// A map that is pinned in `dir`.
pub(crate) fn open_map(dir: &Path, name: &'static str) -> Result<MapHandle, DatapathError> {
    let path = dir.join(pin_name(name));
    MapHandle::from_pinned_path(&path).map_err(|error| match error.kind() {
        libbpf_rs::ErrorKind::NotFound => DatapathError::NotPinned { path: dir.to_owned() },
        libbpf_rs::ErrorKind::PermissionDenied => {
            DatapathError::NoRights { what: format!("opening {}", path.display()) }
        }
        _ => DatapathError::Map { map: name, what: "opening the pin of", source: error },
    })
}

/// Pins a program or link.
pub fn pin_fd(object: BorrowedFd<'_>, path: &Path) -> Result<(), DatapathError> {
    let name = CString::new(path.as_os_str().as_encoded_bytes())
        .map_err(|_nul| failed("pinning at", path, ErrorKind::InvalidFilename.into()))?;
    // SAFETY: descriptor and path are valid for the call.
    match unsafe { libbpf_sys::bpf_obj_pin(object.as_raw_fd(), name.as_ptr()) } {
        0 => Ok(()),
        error => Err(failed("pinning at", path, Error::from_raw_os_error(-error))),
    }
}

/// Removes one pin; it is no error if there is none.
pub fn remove_pin(path: &Path) -> Result<(), DatapathError> {
    match fs::remove_file(path) {
        Err(source) if source.kind() != ErrorKind::NotFound => Err(failed("unpinning", path, source)),
        _ => Ok(()),
    }
}

fn fits(pinned: &MapHandle, wanted: &OpenMapMut<'_>) -> bool {
    pinned.map_type() == wanted.map_type()
        && pinned.key_size() == wanted.key_size()
        && pinned.value_size() == wanted.value_size()
        && pinned.max_entries() == wanted.max_entries()
}

fn failed(what: &'static str, path: &Path, source: Error) -> DatapathError {
    DatapathError::Pin { what, path: path.to_owned(), source }
}
