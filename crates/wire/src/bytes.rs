//! Big-endian reads and writes at fixed offsets, for buffers whose length a view has already checked.

use std::net::Ipv4Addr;

/// The `N` bytes at `offset`; the caller has checked that the buffer reaches that far.
#[inline]
pub(crate) fn array<const N: usize>(bytes: &[u8], offset: usize) -> [u8; N] {
    bytes[offset..offset + N].try_into().expect("a slice of N bytes is an array of N bytes")
}

#[inline]
pub(crate) fn u16_at(bytes: &[u8], offset: usize) -> u16 {
    u16::from_be_bytes(array(bytes, offset))
}

#[inline]
pub(crate) fn u32_at(bytes: &[u8], offset: usize) -> u32 {
    u32::from_be_bytes(array(bytes, offset))
}

#[inline]
pub(crate) fn u64_at(bytes: &[u8], offset: usize) -> u64 {
    u64::from_be_bytes(array(bytes, offset))
}

#[inline]
pub(crate) fn ipv4_at(bytes: &[u8], offset: usize) -> Ipv4Addr {
    Ipv4Addr::from(array::<4>(bytes, offset))
}

/// Overwrites the bytes from `offset` on with `value`; the caller has checked the length.
#[inline]
pub(crate) fn put(bytes: &mut [u8], offset: usize, value: &[u8]) {
    bytes[offset..offset + value.len()].copy_from_slice(value);
}
