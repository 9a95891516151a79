//! The checksum of LSPs: Fletcher's, with two check bytes inside what they cover (ISO 8473 annex C).

/// The check bytes for `covered`, which holds them at `offset`; what stands there now counts as zero.
///
/// # Panics
/// When `covered` ends before `offset + 2`.
pub fn check_bytes(covered: &[u8], offset: usize) -> [u8; 2] {
    assert!(offset + 2 <= covered.len(), "the check bytes lie within what they cover");
    let (first, second) = sums(&[&covered[..offset], &[0, 0], &covered[offset + 2..]]);
    let behind = (covered.len() - offset - 1) as i64;
    let x = (behind * i64::from(first) - i64::from(second)).rem_euclid(255);
    let y = (-i64::from(first) - x).rem_euclid(255);
    // 0 and 255 are the same number here; 0 would mean "no checksum".
    [if x == 0 { 255 } else { x as u8 }, if y == 0 { 255 } else { y as u8 }]
}

/// Whether `covered` holds its own right checksum: both sums over all of it are zero.
pub fn is_valid(covered: &[u8]) -> bool {
    sums(&[covered]) == (0, 0)
}

/// Both running sums modulo 255 over the parts, one after the other.
fn sums(parts: &[&[u8]]) -> (u32, u32) {
    // So many bytes fit before the second sum could leave 32 bits.
    const CHUNK: usize = 4096;
    let (mut first, mut second) = (0_u32, 0_u32);
    for chunk in parts.iter().flat_map(|part| part.chunks(CHUNK)) {
        for byte in chunk {
            first += u32::from(*byte);
            second += first;
        }
        first %= 255;
        second %= 255;
    }
    (first, second)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_sealed_is_valid_and_nothing_else() {
        for len in [2_usize, 3, 20, 255, 1470, 70_000] {
            for offset in [0, (len - 2) / 2, len - 2] {
                let mut bytes: Vec<u8> = (0..len).map(|at| (at * 7 + 3) as u8).collect();
                let check = check_bytes(&bytes, offset);
                bytes[offset..offset + 2].copy_from_slice(&check);
                assert!(is_valid(&bytes), "{len} bytes, check bytes at {offset}");
                bytes[len - 1] ^= 0x10;
                assert!(!is_valid(&bytes));
            }
        }
    }

    #[test]
    fn the_largest_bytes_do_not_overflow() {
        let mut bytes = vec![0xff; 65_535];
        let check = check_bytes(&bytes, 12);
        bytes[12..14].copy_from_slice(&check);
        assert!(is_valid(&bytes));
    }
}
