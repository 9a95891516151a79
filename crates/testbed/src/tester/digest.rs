//! The digest by which a receiver knows frames that have no probe: all bytes and their number, in 64 bits. Damage shows, because
//! every step can be undone: frames that differ in one word differ in their digest. It does not keep out who wants to deceive.
//!
//! `bpf/tester_recognise.bpf.c` computes the same.

const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
const LANES: usize = 4;
const BLOCK_BYTES: usize = 64;

/// The digest of a frame.
pub fn digest(frame: &[u8]) -> u64 {
    let mut lanes = [1, 2, 3, 4];
    for block in frame.chunks(BLOCK_BYTES) {
        let mut whole = [0; BLOCK_BYTES];
        whole[..block.len()].copy_from_slice(block);
        for (place, word) in whole.as_chunks::<8>().0.iter().enumerate() {
            let lane = &mut lanes[place % LANES];
            *lane = stir(*lane, u64::from_ne_bytes(*word));
        }
    }
    lanes.into_iter().fold(frame.len() as u64, stir)
}

fn stir(lane: u64, word: u64) -> u64 {
    let lane = (lane ^ word).wrapping_mul(FACTOR);
    lane ^ lane >> 32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_that_differ_anywhere_have_another_digest() {
        let frame: Vec<u8> = (0..130u8).collect();
        let mut digests = std::collections::BTreeSet::from([digest(&frame)]);
        for bit in 0..frame.len() * 8 {
            let mut other = frame.clone();
            other[bit / 8] ^= 1 << (bit % 8);
            assert!(digests.insert(digest(&other)), "bit {bit}");
        }
        // Words that change places, and zeros at the end.
        let mut swapped = frame.clone();
        swapped.rotate_left(8);
        assert!(digests.insert(digest(&swapped)));
        let zeros: Vec<u64> = (60..200).map(|bytes| digest(&vec![0; bytes])).collect();
        assert!(zeros.iter().all(|zeros| digests.insert(*zeros)), "lengths count");
    }
}
