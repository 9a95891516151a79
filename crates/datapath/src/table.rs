//! Maps from user space: typed access, of a loaded object or of a running one's pins.

use std::path::Path;

use libbpf_rs::{ErrorKind, MapCore, MapFlags, MapHandle, Object};

use crate::abi::Abi;
use crate::error::DatapathError;
use crate::{object, pin};

/// Entries that one call to the kernel sets.
const BATCH: usize = 1024;

/// One table.
#[derive(Debug)]
pub struct Table {
    map: MapHandle,
    name: &'static str,
}

impl Table {
    /// Of a loaded object.
    ///
    /// # Errors
    /// [`DatapathError::Map`].
    pub fn of(object: &Object, name: &'static str) -> Result<Self, DatapathError> {
        Ok(Self { map: object::map_handle(object, name)?, name })
    }

    /// The one that is pinned there.
    ///
    /// # Errors
    /// [`DatapathError::Map`].
    pub fn at(pin: &Path, name: &'static str) -> Result<Self, DatapathError> {
        let opened = MapHandle::from_pinned_path(pin);
        let map = opened.map_err(|source| DatapathError::Map { map: name, what: "opening the pin of", source })?;
        Ok(Self { map, name })
    }

    /// The one that is pinned in a directory.
    pub(crate) fn pinned(dir: &Path, name: &'static str) -> Result<Self, DatapathError> {
        Ok(Self { map: pin::open_map(dir, name)?, name })
    }

    fn failed(&self, what: &'static str) -> impl Fn(libbpf_rs::Error) -> DatapathError + use<> {
        let map = self.name;
        move |source| DatapathError::Map { map, what, source }
    }

    pub(crate) fn get<V: Abi>(&self, key: &impl Abi) -> Result<Option<V>, DatapathError> {
        Ok(self.get_bytes(key)?.and_then(|bytes| V::from_bytes(&bytes)))
    }

    pub(crate) fn get_bytes(&self, key: &impl Abi) -> Result<Option<Vec<u8>>, DatapathError> {
        self.map.lookup(key.bytes(), MapFlags::ANY).map_err(self.failed("reading"))
    }

    pub(crate) fn put(&self, key: &impl Abi, value: &impl Abi) -> Result<(), DatapathError> {
        self.put_bytes(key, value.bytes())
    }

    pub(crate) fn put_bytes(&self, key: &impl Abi, value: &[u8]) -> Result<(), DatapathError> {
        self.map.update(key.bytes(), value, MapFlags::ANY).map_err(self.failed("setting an entry"))
    }

    /// Sets many entries, with a call to the kernel for each thousand.
    pub(crate) fn put_all<K: Abi, V: Abi>(&self, entries: &[(K, V)]) -> Result<(), DatapathError> {
        for some in entries.chunks(BATCH) {
            let keys: Vec<u8> = some.iter().flat_map(|(key, _)| key.bytes()).copied().collect();
            let values: Vec<u8> = some.iter().flat_map(|(_, value)| value.bytes()).copied().collect();
            let count = u32::try_from(some.len()).expect("at most a batch");
            let put = self.map.update_batch(&keys, &values, count, MapFlags::ANY, MapFlags::ANY);
            put.map_err(self.failed("setting entries"))?;
        }
        Ok(())
    }

    /// Returns whether there was one.
    pub(crate) fn delete(&self, key: &impl Abi) -> Result<bool, DatapathError> {
        match self.map.delete(key.bytes()) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            Err(error) => Err(self.failed("removing an entry")(error)),
        }
    }

    /// Everything in it. What changes meanwhile may be missed or come twice.
    pub(crate) fn all<K: Abi, V: Abi>(&self) -> Result<Vec<(K, V)>, DatapathError> {
        // As one batch: the library takes one that the kernel did not fill to the brim for the last.
        let whole = self.map.max_entries();
        let batches = self.map.lookup_batch(whole, MapFlags::ANY, MapFlags::ANY).map_err(self.failed("listing"))?;
        Ok(batches.filter_map(|(key, value)| Some((K::from_bytes(&key)?, V::from_bytes(&value)?))).collect())
    }

    /// The value on every CPU.
    pub(crate) fn per_cpu<V: Abi>(&self, key: u32) -> Result<Vec<V>, DatapathError> {
        let values = self.map.lookup_percpu(key.bytes(), MapFlags::ANY).map_err(self.failed("reading"))?;
        Ok(values.unwrap_or_default().iter().filter_map(|bytes| V::from_bytes(bytes)).collect())
    }

    /// Sets the value on every CPU.
    pub(crate) fn put_per_cpu(&self, key: u32, value: &impl Abi) -> Result<(), DatapathError> {
        let values = self.map.lookup_percpu(key.bytes(), MapFlags::ANY).map_err(self.failed("reading"))?;
        let same: Vec<Vec<u8>> = values.unwrap_or_default().iter().map(|_| value.bytes().to_vec()).collect();
        self.map.update_percpu(key.bytes(), &same, MapFlags::ANY).map_err(self.failed("setting an entry"))
    }

    /// Sets the value to zero on every CPU.
    pub(crate) fn clear_per_cpu(&self, key: u32) -> Result<(), DatapathError> {
        let values = self.map.lookup_percpu(key.bytes(), MapFlags::ANY).map_err(self.failed("reading"))?;
        let zeros: Vec<Vec<u8>> = values.unwrap_or_default().iter().map(|value| vec![0; value.len()]).collect();
        self.map.update_percpu(key.bytes(), &zeros, MapFlags::ANY).map_err(self.failed("clearing"))
    }

    /// Sets the bytes of its only entry to zero.
    pub(crate) fn clear(&self) -> Result<(), DatapathError> {
        self.put_bytes(&0u32, &vec![0; self.map.value_size() as usize])
    }

    /// Of outcome counters: each one's name with its sum over all CPUs, in the order of the programs' enum.
    ///
    /// # Errors
    /// [`DatapathError::Map`].
    pub fn counters(&self, names: &'static [&'static str]) -> Result<Vec<(&'static str, u64)>, DatapathError> {
        self.counters_from(0, names)
    }

    /// The same from this place on.
    pub(crate) fn counters_from(
        &self,
        first: u32,
        names: &'static [&'static str],
    ) -> Result<Vec<(&'static str, u64)>, DatapathError> {
        (first..).zip(names).map(|(place, name)| Ok((*name, self.per_cpu::<u64>(place)?.iter().sum()))).collect()
    }
}
