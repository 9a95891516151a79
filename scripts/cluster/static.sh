#!/usr/bin/env bash
# Builds the simulator's static binary, which needs nothing else on a node, and prints its path. Containerfile beside this makes an
# image of it.
set -euo pipefail
source "$(dirname "$0")/common.sh"

target=$(rustc -vV | sed -n 's/^host: //p')
cd "$repository"
RUSTFLAGS="-C target-feature=+crt-static" "${CARGO:-cargo}" build --release --locked --package weft --no-default-features \
  --target "$target" --target-dir "$store/static" >&2
binary=$store/static/$target/release/weft
! ldd "$binary" > "$store/ldd.out" 2>&1 || grep -q 'statically linked' "$store/ldd.out" || die "$binary is not static"
strip -o "$store/weft-static" "$binary"
echo "$store/weft-static"
