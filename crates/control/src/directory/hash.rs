//! Hashes of the table: one for its maps, one to compare tables of different servers by.
//!
//! Neither meets an adversary: AAs and rules come from operators, and tables differ by accident only.

use std::hash::Hasher;

/// Hashes one number with one multiplication: AAs come from one dense block.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct NumberHasher(u64);

impl Hasher for NumberHasher {
    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.write_u64(u64::from_ne_bytes(word));
        }
    }

    fn write_u32(&mut self, word: u32) {
        self.write_u64(word.into());
    }

    fn write_u64(&mut self, word: u64) {
        self.0 = folded_product(self.0 ^ word, 0x9e37_79b9_7f4a_7c15);
    }

    fn write_usize(&mut self, word: usize) {
        self.write_u64(word as u64);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// Mixes words to one number, the same on every machine. `seed` tells kinds of things apart.
pub(super) fn mix(seed: u64, words: &[u64]) -> u64 {
    let step =
        |hash: u64, word: &u64| folded_product(hash ^ word ^ 0x2d35_8dcc_aa6c_78a5, 0x8bb8_4b93_962e_acc9 ^ hash);
    words.iter().fold(folded_product(seed ^ 0x9e37_79b9_7f4a_7c15, 0xe703_7ed1_a0b4_28db), step)
}

fn folded_product(left: u64, right: u64) -> u64 {
    let wide = u128::from(left) * u128::from(right);
    (wide >> 64) as u64 ^ wide as u64
}
