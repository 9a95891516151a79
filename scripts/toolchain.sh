#!/usr/bin/env bash
# Which Rust toolchain works: toolchain.sh prints the name that rustup is to be given, if any; toolchain.sh --say tells people.
# The pinned one (deps/rust.txt) is taken where it is installed; nothing is ever downloaded. RUSTUP_TOOLCHAIN of the caller wins.
set -euo pipefail
cd "$(dirname "$0")/.."
pinned=$(grep -v '^#' deps/rust.txt)
works() { rustc --version 2> /dev/null | cut -d' ' -f2; }

if [[ ${1:-} == --say ]]; then
  version=$(works)
  if [[ $version == "$pinned" ]]; then
    echo "toolchain: rustc $version, the one in deps/rust.txt"
  else
    echo "toolchain: rustc ${version:-is missing}, not $pinned of deps/rust.txt: lints may differ; \`rustup toolchain install $pinned\`" >&2
  fi
elif [[ -z ${RUSTUP_TOOLCHAIN:-} && $(works) != "$pinned" ]] && command -v rustup > /dev/null; then
  rustup toolchain list | grep -o "^$pinned-[^ ]*" | head -n 1 || true
fi
