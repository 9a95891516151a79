#!/usr/bin/env bash
# Builds the tests of the eBPF programs, and copies them stripped: binaries.sh FOLDER [TEST..]
# No TEST: all of weft-datapath and those of weft-testbed with frames; not its benches, whose bounds are on times that an emulated
# machine does not have. Of weft-lab there is `late` alone.
# With the features of the whole workspace, so that nothing is built twice where `cargo test --workspace` ran.
set -euo pipefail
source "$(dirname "$0")/common.sh"
cd "$repository"
folder=$1; shift
if [[ $# -eq 0 ]]; then
  mapfile -t tests < <(cd crates/datapath/tests && printf '%s\n' *.rs | sed 's/\.rs$//')
  set -- "${tests[@]}" tester loss impair
fi
mkdir -p "$folder"
selected=()
for test in "$@"; do selected+=(--test "$test"); done
"${CARGO:-cargo}" test --release --locked --workspace "${selected[@]}" --no-run --message-format=json |
  sed -n 's/.*"src_path":"\([^"]*\)".*"executable":"\([^"]*\)".*/\1 \2/p' | while read -r source executable; do
    [[ $source == "$repository"/crates/@(datapath/tests/*|testbed/tests/*|lab/tests/late.rs) ]] || continue
    name=$(basename "${source%/main.rs}" .rs)
    strip -o "$folder/$name" "$executable"
  done
