//! Reading and writing the variable parts of a PDU: fields in order, TLVs with their length filled in afterwards.

use crate::bytes::{array, put};

/// Fields taken one after the other from the front; `None` when the bytes run out.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reader<'a>(pub(super) &'a [u8]);

impl<'a> Reader<'a> {
    pub(super) fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.slice(N).map(|bytes| array(bytes, 0))
    }

    pub(super) fn u8(&mut self) -> Option<u8> {
        self.array::<1>().map(|[byte]| byte)
    }

    pub(super) fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_be_bytes)
    }

    pub(super) fn u24(&mut self) -> Option<u32> {
        self.array::<3>().map(|[a, b, c]| u32::from_be_bytes([0, a, b, c]))
    }

    pub(super) fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_be_bytes)
    }

    pub(super) fn slice(&mut self, len: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(taken)
    }

    /// The next type, length and value, if the value is all there.
    pub(super) fn tlv(&mut self) -> Option<(u8, &'a [u8])> {
        let (code, len) = (self.u8()?, self.u8()?);
        Some((code, self.slice(len.into())?))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.0)
    }

    /// Everything that is left, item by item; `None` if the last one is cut short.
    pub(super) fn all<T>(&mut self, mut item: impl FnMut(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        let mut items = Vec::new();
        while !self.is_empty() {
            items.push(item(self)?);
        }
        Some(items)
    }
}

/// Bytes that grow; remembers when a value did not fit its length field.
#[derive(Debug, Default)]
pub(super) struct Writer {
    pub(super) bytes: Vec<u8>,
    /// Type of the first TLV whose value was longer than 255 bytes.
    pub(super) too_long: Option<u8>,
}

impl Writer {
    pub(super) fn u8(&mut self, value: u8) {
        self.bytes.push(value);
    }

    pub(super) fn u16(&mut self, value: u16) {
        self.slice(&value.to_be_bytes());
    }

    /// The lower 24 bits.
    pub(super) fn u24(&mut self, value: u32) {
        self.slice(&value.to_be_bytes()[1..]);
    }

    pub(super) fn u32(&mut self, value: u32) {
        self.slice(&value.to_be_bytes());
    }

    pub(super) fn slice(&mut self, value: &[u8]) {
        self.bytes.extend_from_slice(value);
    }

    /// A type, the length of what `value` writes, and that.
    pub(super) fn tlv(&mut self, code: u8, value: impl FnOnce(&mut Self)) {
        self.u8(code);
        let length_at = self.bytes.len();
        self.u8(0);
        value(self);
        let len = self.bytes.len() - length_at - 1;
        match u8::try_from(len) {
            Ok(len) => self.bytes[length_at] = len,
            Err(_) => self.too_long = self.too_long.or(Some(code)),
        }
    }

    /// Overwrites two bytes.
    pub(super) fn patch_u16(&mut self, offset: usize, value: u16) {
        put(&mut self.bytes, offset, &value.to_be_bytes());
    }
}
