# shellcheck shell=bash
# Sourced by the scripts of this folder: where things are, how they are said, what is compared.

repository=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
# shellcheck disable=SC2034  # used by those that source this file
scripts=$repository/scripts/cluster
# Everything that is made is in this one folder.
store=${WEFT_CLUSTER_DIR:-$repository/target/cluster}
# shellcheck disable=SC2034
weft=${WEFT:-$repository/target/release/weft}
# shellcheck disable=SC2034
plan=$scripts/plan.toml
mkdir -p "$store"

say() { echo "cluster: $*" >&2; }
die() { echo "cluster: $*" >&2; exit 1; }
# This machine lacks something: the exit code of `weft` for the same.
lacks() { echo "cluster: $*" >&2; exit 4; }
needs() {
  local program
  for program in "$@"; do
    command -v "$program" > /dev/null || [[ -x /usr/sbin/$program ]] || lacks "$program is missing: scripts/deps.sh cluster"
  done
}

now_ms() { date +%s%3N; }

# Runs a command; how long it took, in ms, in `took_ms`.
timed() {
  local begin
  begin=$(now_ms)
  "$@"
  took_ms=$(($(now_ms) - begin))
}

# The run that all others are compared with, once: one_run WORKERS. Its folder is `$store/one-WORKERS/result`, its time `took_ms`.
one_run() {
  rm -rf "$store/one-$1"
  mkdir -p "$store/one-$1"
  timed env -C "$store/one-$1" "$weft" run "$plan" --engine sim --workers "$1" --out result --quiet > /dev/null
}

# Ends unless two run folders are equal to the byte, but for the file that says when and where they were made.
same_bytes() {
  diff --recursive --brief --exclude=manifest.json "$1" "$2" || die "$2 is not what one run gives"
  say "ok: $(find "$2" -type f ! -name manifest.json | wc -l) files of $(basename "$(dirname "$2")"), report included, are those of one run to the byte"
}
