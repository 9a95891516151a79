//! Fetches memory ahead of its use, without waiting for it.

/// Bytes of a line of the processor's cache.
const LINE: usize = 64;

/// Asks for all of a value. On processors for which the language has no safe or stable way to ask, it does nothing.
#[inline(always)]
pub(crate) fn prefetch<T>(value: &T) {
    for line in 0..size_of::<T>().div_ceil(LINE) {
        ask(std::ptr::from_ref(value).cast::<i8>().wrapping_add(line * LINE));
    }
}

/// Asks for so many bytes, at most a line's length, from the beginning of a value in a row; where the row ends before, for what is there.
#[inline(always)]
pub(crate) fn prefetch_from<T>(row: &[T], place: usize, bytes: usize) {
    let begin = row.as_ptr().wrapping_add(place).cast::<i8>();
    ask(begin);
    ask(begin.wrapping_add(bytes - 1));
}

#[cfg(target_arch = "x86_64")]
#[expect(unsafe_code, reason = "the language has no safe prefetch")]
#[inline(always)]
fn ask(place: *const i8) {
    use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};

    // SAFETY: a prefetch gives the program nothing to see, and no address makes it fail.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(place) };
}

#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
fn ask(_place: *const i8) {}
