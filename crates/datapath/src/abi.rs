//! What programs and user space share: the Rust of `bpf/abi.h` and what all such headers need.
//!
//! The headers say it once; `build/abi.rs` writes structures, numbers and lists of names from them at build time. A test compares every
//! size and offset with the BTF of the compiled objects.
#![allow(unsafe_code)]

use std::net::Ipv4Addr;

/// Plain data without padding, so that its bytes are all initialised and any bytes are a value of it.
///
/// # Safety
/// Implementors are `repr(C)`, made of integers and arrays of them, and have no padding.
pub unsafe trait Abi: Copy + Default {
    /// The bytes as the programs see them.
    fn bytes(&self) -> &[u8] {
        // SAFETY: no padding, so all bytes are initialised; the slice borrows `self`.
        unsafe { std::slice::from_raw_parts(std::ptr::from_ref(self).cast::<u8>(), size_of::<Self>()) }
    }

    /// From bytes of exactly this size; `None` for any other size.
    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        if bytes.len() != size_of::<Self>() {
            return None;
        }
        // SAFETY: the size was checked, any bytes are a valid value, and the read does not need alignment.
        Some(unsafe { bytes.as_ptr().cast::<Self>().read_unaligned() })
    }
}

/// Name of a structure in C, its size, and the offset of every field; bytes.
pub type Layout = (&'static str, usize, &'static [(&'static str, usize)]);

/// Everything of one header `bpf/*abi.h` of the calling crate, which `build.rs` of `weft-datapath` has built.
#[macro_export]
macro_rules! header {
    ($name:literal) => {
        mod written {
            use $crate::abi::{Abi, Layout};

            include!(concat!(env!("OUT_DIR"), "/", $name, ".rs"));
        }

        pub use written::*;
    };
}

pub use header;

header!("abi");

// SAFETY: an integer.
unsafe impl Abi for u32 {}

// SAFETY: an integer.
unsafe impl Abi for u64 {}

// SAFETY: bytes.
unsafe impl Abi for [u8; 4] {}

impl OwnLas {
    /// Of at most [`OWN_LAS_MAX`] LAs; `None` if there are more.
    pub fn new(las: &[Ipv4Addr]) -> Option<Self> {
        let mut own = Self { count: u32::try_from(las.len()).ok()?, ..Self::default() };
        if las.len() > OWN_LAS_MAX as usize {
            return None;
        }
        for (slot, la) in own.la.iter_mut().zip(las) {
            *slot = la.octets();
        }
        Some(own)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_and_values_agree() {
        let key = MacKey { mac: [1, 2, 3, 4, 5, 6], vlan: 0x0707 };
        assert_eq!(key.bytes(), &[1, 2, 3, 4, 5, 6, 7, 7]);
        assert_eq!(MacKey::from_bytes(key.bytes()), Some(key));
        assert_eq!(MacKey::from_bytes(&key.bytes()[1..]), None);
    }

    #[test]
    fn an_intermediate_owns_at_most_sixteen_anycast_las() {
        let las = vec![Ipv4Addr::new(10, 255, 255, 1); OWN_LAS_MAX as usize + 1];
        assert_eq!(OwnLas::new(&las), None);
        assert_eq!(OwnLas::new(&las[1..]).map(|own| own.count), Some(16));
    }
}
