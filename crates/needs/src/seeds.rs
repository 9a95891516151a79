//! Seeds of simulators: which of them run, where those stay that a long run found, and how long a run is.
//!
//! Usually a simulator lives its own range of seeds, after those in `fuzz/seeds/SIMULATOR.txt`, which once failed. `WEFT_SEEDS`
//! is another range: `FIRST..END`, or `FIRST..` together with `WEFT_SEEDS_S`, so many seconds.

use std::fs::OpenOptions;
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// `FIRST..END` or `FIRST..`: other seeds than usual.
const SEEDS: &str = "WEFT_SEEDS";
/// So many seconds, if the range has no end.
const SECONDS: &str = "WEFT_SEEDS_S";
/// `1`: a seed that fails is added to those that stay.
const KEEP: &str = "WEFT_SEEDS_KEEP";

/// Lives a history for each seed. A failure names its seed, after the panic.
///
/// Returns how many were lived.
///
/// # Panics
/// As `live` does; where the environment holds no range.
pub fn each_seed(simulator: &str, usual: impl IntoIterator<Item = u64>, mut live: impl FnMut(u64)) -> u64 {
    let began = Instant::now();
    let (seeds, limit) = match std::env::var(SEEDS) {
        Ok(text) => asked(&text),
        Err(_) => (Box::new(kept(simulator).into_iter().chain(usual)) as Box<dyn Iterator<Item = u64> + '_>, None),
    };
    let mut lived = 0;
    for seed in seeds.take_while(|_| limit.is_none_or(|limit| began.elapsed() < limit)) {
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| live(seed))) {
            eprintln!("seed {seed} failed; run it alone with {SEEDS}={seed}..{}", seed + 1);
            if std::env::var_os(KEEP).is_some_and(|keep| keep == "1") {
                keep(simulator, seed);
            }
            resume_unwind(panic);
        }
        lived += 1;
    }
    eprintln!("{simulator}: {lived} seeds in {} s", began.elapsed().as_secs());
    lived
}

fn asked<'a>(text: &str) -> (Box<dyn Iterator<Item = u64> + 'a>, Option<Duration>) {
    let (first, end) = text.split_once("..").expect("WEFT_SEEDS is FIRST..END, or FIRST.. with WEFT_SEEDS_S");
    let first: u64 = first.parse().expect("a number before `..`");
    if end.is_empty() {
        let seconds = std::env::var(SECONDS).ok().and_then(|text| text.parse().ok());
        let limit =
            Duration::from_secs(seconds.expect("WEFT_SEEDS_S says how many seconds, where there is no last seed"));
        return (Box::new(first..), Some(limit));
    }
    (Box::new(first..end.parse().expect("a number after `..`")), None)
}

fn file(simulator: &str) -> PathBuf {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/seeds")).join(simulator).with_extension("txt")
}

/// Seeds that once failed: the first word of each line, unless it begins a comment.
fn kept(simulator: &str) -> Vec<u64> {
    let text = std::fs::read_to_string(file(simulator)).unwrap_or_default();
    let words = text.lines().filter_map(|line| line.split_whitespace().next()).filter(|word| !word.starts_with('#'));
    words.map(|word| word.parse().unwrap_or_else(|_| panic!("{simulator}.txt: `{word}` is no seed"))).collect()
}

fn keep(simulator: &str, seed: u64) {
    let path = file(simulator);
    let file = OpenOptions::new().create(true).append(true).open(&path);
    let line = format!("{seed} # found by a long run\n");
    match file.and_then(|mut file| file.write_all(line.as_bytes())) {
        Ok(()) => eprintln!("seed {seed} is kept in {}", path.display()),
        Err(error) => eprintln!("seed {seed} is not kept: {}: {error}", path.display()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_seed_is_lived_and_the_one_that_fails_ends_it() {
        let mut seen = Vec::new();
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            each_seed("no-such-simulator", 3..9, |seed| {
                seen.push(seed);
                assert!(seed < 5, "five is bad");
            })
        }));
        assert_eq!((outcome.is_err(), seen), (true, vec![3, 4, 5]));
    }

    #[test]
    fn seeds_that_stay_are_numbers() {
        let folder = std::fs::read_dir(file("x").parent().unwrap()).unwrap();
        let files =
            folder.map(|entry| entry.unwrap().path()).filter(|path| path.extension().is_some_and(|end| end == "txt"));
        for path in files {
            kept(&path.file_stem().unwrap().to_string_lossy());
        }
    }
}
