#!/usr/bin/env bash
# Tries weft on kernels, and writes the table of docs/kernels.md: run.sh [running|6.1|6.12|newest ..]
# `running` is this machine's own kernel, without a virtual machine. Virtual machines run two at a time; Ctrl-C ends them.
# Exit code 1 if something fails that scripts/kernels/known.txt does not name. The table is written where all kernels were tried.
set -euo pipefail
source "$(dirname "$0")/common.sh"
source "$scripts/table.sh"

export WEFT_VMS=$store/tried
results=$store/results
payload=$store/payload
[[ $# -gt 0 ]] || set -- running "${all_kernels[@]}"
for kernel in "$@"; do [[ $kernel == running ]] || suite_of "$kernel" > /dev/null; done
[[ $(id -u) == 0 ]] || lacks "labs and the image need root"

# What is tried: the binary, the tests and the plan, on a read-only disk.
make_payload() {
  rm -rf "$payload" "$payload.raw"
  mkdir -p "$payload/tests"
  (cd "$repository" && "${CARGO:-cargo}" build --release --locked --workspace --bin weft)
  "$scripts/binaries.sh" "$payload/tests"
  strip -o "$payload/weft" "$repository/target/release/weft"
  cp "$scripts"/inside/{try.sh,plan.toml} "$payload/"
  truncate -s 1G "$payload.raw"
  mkfs.ext4 -q -d "$payload" -O ^has_journal "$payload.raw"
}

# Keeps what was said, and shows results as they come: follow KERNEL
follow() {
  local kind row state detail
  tee "$results/$1.log" | while IFS='|' read -r kind row state detail; do
    case $kind in
      release) echo "$row" > "$results/$1.release" ;;
      result)
        printf '%s|%s|%s\n' "$row" "$state" "$detail" >> "$results/$1.rows"
        say "$1: $row: $state ($detail)"
        ;;
    esac
  done
}

# try_machine KERNEL PORT
try_machine() {
  local name=kernel-${1//./-}
  if "$scripts/vm.sh" start "$name" kernel="$1" port="$2" cpus=2 mem=4096 disk="$payload.raw" && "$scripts/vm.sh" wait "$name"; then
    say "$1: the machine is up"
    "$scripts/vm.sh" ssh "$name" "mkdir -p /weft && mount -o ro /dev/vdc /weft && exec /weft/try.sh /weft 2>&1" | follow "$1" ||
      say "$1: the machine ended early"
  else
    say "$1: the machine did not come up"
  fi
  "$scripts/vm.sh" stop "$name"
}

try_running() { nice -n 5 "$payload/try.sh" "$payload" 2>&1 | follow running; }

finish() {
  # shellcheck disable=SC2046
  kill $(jobs -p) 2> /dev/null || true
  "$scripts/vm.sh" stop-all
}
trap finish EXIT
trap 'exit 130' INT TERM

CARGO=${CARGO:-cargo} "$repository/scripts/deps.sh" build run test kernels
make_payload
mkdir -p "$results"
for kernel in "$@"; do rm -f "$results/$kernel".{rows,release,log}; done
port=${KERNELS_PORT:-2201}
for kernel in "$@"; do
  if [[ $kernel == running ]]; then
    try_running
  else
    while (($(jobs -rp | wc -l) >= 2)); do wait -n || true; done
    try_machine "$kernel" "$port" &
    port=$((port + 1))
  fi
done
wait
judge_and_print "$@"
say "$((SECONDS / 60)) min $((SECONDS % 60)) s, by $(accel)"
exit "$unexpected"
