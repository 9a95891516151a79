//! The fuzz bodies as an ordinary test: every file of the corpora, and some thousand mutations of each.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use rand::{Rng, RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use weft_fuzz::seeds::seeds;
use weft_fuzz::{TARGETS, Target};
use weft_wire::{checksum, ipv4};

/// Of a file that a fuzzer found one mutation in so many is tried: it is one itself.
const FEWER_OF_FOUND: usize = 100;
/// Of the mutations. It is fixed, so a failure comes back.
const SEED: u64 = 0x5745_4654;

/// Set to write the seeds anew after a format has changed.
const BLESS: &str = "WEFT_BLESS";

fn corpus(target: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target)
}

/// Every file of a corpus by its name, in a fixed order.
fn files(target: &str) -> BTreeMap<String, Vec<u8>> {
    let folder = corpus(target);
    let entries = fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let read = |path: PathBuf| (path.file_name().unwrap().to_string_lossy().into_owned(), fs::read(&path).unwrap());
    entries.map(|entry| read(entry.unwrap().path())).collect()
}

/// Changes `bytes` in one to four places: a bit, a byte, a 16-bit word at a boundary, the length.
fn mutate(bytes: &mut Vec<u8>, rng: &mut impl Rng) {
    const EDGES: [u8; 6] = [0, 1, 0x45, 0x7f, 0x80, 0xff];
    for _ in 0..rng.random_range(1..=4) {
        let at = rng.random_range(0..=bytes.len());
        match rng.random_range(0..5) {
            0 if at < bytes.len() => bytes[at] ^= 1 << rng.random_range(0..8),
            1 if at < bytes.len() => bytes[at] = rng.random(),
            2 if at < bytes.len() => bytes[at] = EDGES[rng.random_range(0..EDGES.len())],
            3 => bytes.truncate(at),
            _ => bytes.insert(at, rng.random()),
        }
    }
    if rng.random() {
        // After an Ethernet header, or as the packet itself, then the header inside.
        let offset = if rng.random() { 14 } else { 0 };
        repair(bytes, offset);
        repair(bytes, offset + ipv4::HEADER_LEN);
    }
}

/// Makes the checksum of an IPv4 header at `offset` right again, or most mutations would end there.
fn repair(bytes: &mut [u8], offset: usize) {
    if let Some(header) = bytes.get_mut(offset..offset + ipv4::HEADER_LEN) {
        header[10..12].fill(0);
        let checksum = checksum::of(header);
        header[10..12].copy_from_slice(&checksum.to_be_bytes());
    }
}

/// Runs a body and names its input when it panics.
fn run(target: Target, name: &str, bytes: &[u8]) {
    struct Blame<'a>(Target, &'a str, &'a [u8]);
    impl Drop for Blame<'_> {
        fn drop(&mut self) {
            if std::thread::panicking() {
                eprintln!("{} broke on {} mutated to {:02x?}", self.0.name, self.1, self.2);
            }
        }
    }
    let _blame = Blame(target, name, bytes);
    (target.run)(bytes);
}

/// Runs every file of the corpora and one in `fewer` of the mutations that each target has of it.
fn replay(seed: u64, fewer: usize) {
    let mut rng = Pcg64Mcg::seed_from_u64(seed);
    for target in TARGETS {
        let files = files(target.name);
        assert!(files.len() >= 10, "the corpus of {} has {} files", target.name, files.len());
        for (name, bytes) in &files {
            run(target, name, bytes);
            let is_found = ["found-", "crash-"].iter().any(|found| name.starts_with(found));
            let mutations = if is_found { target.mutations / FEWER_OF_FOUND } else { target.mutations };
            for _ in 0..mutations.div_ceil(fewer) {
                let mut mutated = bytes.clone();
                mutate(&mut mutated, &mut rng);
                run(target, name, &mutated);
            }
        }
    }
}

#[test]
fn every_file_and_its_mutations() {
    replay(SEED, 4);
}

#[test]
#[ignore = "long: make test-long"]
fn every_file_and_more_mutations() {
    replay(SEED + 1, 1);
}

#[test]
fn random_bytes() {
    let mut rng = Pcg64Mcg::seed_from_u64(SEED);
    for _ in 0..2000 {
        let mut bytes = vec![0; rng.random_range(0..200)];
        rng.fill_bytes(&mut bytes);
        for target in TARGETS {
            run(target, "random bytes", &bytes);
        }
    }
}

#[test]
fn corpora_hold_the_seeds() {
    for seed in seeds() {
        let path = corpus(seed.target).join(seed.name);
        if std::env::var_os(BLESS).is_some() {
            fs::create_dir_all(corpus(seed.target)).unwrap();
            fs::write(&path, &seed.bytes).unwrap();
        }
        let bytes = fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        assert_eq!(bytes, seed.bytes, "{} is stale; {BLESS}=1 writes it anew", path.display());
    }
}

#[test]
fn every_target_has_a_libfuzzer_binary() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let manifest = fs::read_to_string(root.join("libfuzzer/Cargo.toml")).unwrap();
    for target in TARGETS {
        let source = fs::read_to_string(root.join("fuzz_targets").join(format!("{}.rs", target.name))).unwrap();
        assert!(source.contains(&format!("weft_fuzz::{}(bytes)", target.name)));
        assert!(manifest.contains(&format!("name = \"{}\"", target.name)));
    }
}
