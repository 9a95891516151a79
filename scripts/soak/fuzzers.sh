#!/usr/bin/env bash
# Builds the libFuzzer binaries on the stable toolchain and prints the folder that they are in: fuzzers.sh [CARGO OPTION..]
# The flags are those that cargo-fuzz would pass, with assertions and overflow checks, and without a sanitizer, for which there is no
# unsafe code in what is fuzzed.
set -euo pipefail
cd "$(dirname "$0")/../.."
manifest=fuzz/libfuzzer/Cargo.toml lock=fuzz/libfuzzer/Cargo.lock
# The crates of the workspace at the workspace's versions; cargo adds libFuzzer's own.
[[ $lock -nt Cargo.lock ]] || cp Cargo.lock "$lock"
export RUSTFLAGS="-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
  -Cllvm-args=-sanitizer-coverage-trace-compares -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
  -Cllvm-args=-sanitizer-coverage-pc-table -Cdebug-assertions -Coverflow-checks=on -Ccodegen-units=4 --cfg fuzzing"
host=$(rustc -vV | sed -n 's/^host: //p')
export CARGO_TARGET_DIR=$PWD/target/soak/build
"${CARGO:-cargo}" build --release --manifest-path "$manifest" --target "$host" "$@" >&2
echo "$CARGO_TARGET_DIR/$host/release"
