#!/usr/bin/env bash
# Tries weft on kernels, and writes the table of docs/kernels.md: run.sh [running|6.1|6.12|newest ..]
# `running` is this machine's own kernel, without a virtual machine. Ctrl-C ends its virtual machines.
# Exit code 1 if something fails that scripts/kernels/known.txt does not name. The table is written once there are results of every kernel.
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
  (cd "$repository" && "${CARGO:-cargo}" build --release --locked --workspace --bin weft --example lab-daemon)
  "$scripts/binaries.sh" "$payload/tests"
  # As cargo has them: a test of labs finds its daemon beside its own folder.
  "$scripts/binaries.sh" "$payload/labs" late
  install -D -s "$repository/target/release/examples/lab-daemon" "$payload/examples/lab-daemon"
  strip -o "$payload/weft" "$repository/target/release/weft"
  cp "$scripts"/inside/{try.sh,plan.toml} "$payload/"
  truncate -s 1G "$payload.raw"
  mkfs.ext4 -q -d "$payload" -O ^has_journal "$payload.raw"
}

# Keeps what was said, and shows results as they come: follow KERNEL
follow() {
  local kind row state detail
  tee -a "$results/$1.log" | while IFS='|' read -r kind row state detail; do
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
  try_once "$1" "$2" "$name"
  if emulator_fell "$name"; then
    say "$1: the emulator kept code that another CPU had changed; what is left is tried on one of its threads"
    # shellcheck disable=SC2046 # names of rows
    EMULATOR_THREADS=single try_once "$1" "$2" "$name" $(cut -d'|' -f1 "$results/$1.rows")
  fi
}

# try_once KERNEL PORT MACHINE [ROW ..]: all but these rows.
try_once() {
  if "$scripts/vm.sh" start "$3" kernel="$1" port="$2" cpus=2 mem=4096 disk="$payload.raw" && "$scripts/vm.sh" wait "$3"; then
    say "$1: the machine is up"
    "$scripts/vm.sh" ssh "$3" "mkdir -p /weft && mount -o ro /dev/vdc /weft && exec /weft/try.sh /weft ${*:4} 2>&1" | follow "$1" ||
      say "$1: the machine ended early"
  else
    say "$1: the machine did not come up"
  fi
  "$scripts/vm.sh" stop "$3"
}

# Whether the kernel met a breakpoint of its own in code that it had finished changing: seen with QEMU 7.2, whose multi-threaded
# emulation can keep what it translated while another CPU changed it. No program of ours can cause or prevent that.
# emulator_fell MACHINE
emulator_fell() {
  [[ $(accel) == tcg ]] && grep -q 'Oops: int3' "$WEFT_VMS/$1/console.log" 2> /dev/null
}

try_running() { nice -n 5 "$payload/try.sh" "$payload" 2>&1 | follow running; }

# The commands of the docs, on machines with cards: try_pages KERNEL. This machine's own kernel has namespaces and veth instead, and
# of the others the least one stands for all.
try_pages() {
  local page log backend=machines
  [[ $1 != running ]] || backend=namespaces
  for page in vl2 rbridge vtep; do
    log=$results/$1.$page.log
    if [[ $1 != running && $1 != "${all_kernels[0]}" ]]; then
      echo "result|docs-$page|none|tried on ${all_kernels[0]}"
      continue
    fi
    echo "== docs/$page.md on $backend"
    if KERNEL=$1 BACKEND=$backend "$repository/scripts/docs/run.sh" "$repository/docs/$page.md" "$payload/weft" > "$log" 2>&1; then
      echo "result|docs-$page|ok|$(sed -n 's/^ok *all \([0-9]* blocks\) of.*/\1/p' "$log"), $(($(grep -c '^ok' "$log") - 2)) checks"
    else
      echo "result|docs-$page|failed|$(tail -n 1 "$log")"
    fi
    cat "$log"
  done
}

# RBridges between virtual machines: try_cards KERNEL PORT.
try_cards() {
  local log=$results/$1.cards.log
  echo "== cards"
  if [[ $1 == running ]]; then
    echo "result|cards|none|no virtual machine has this kernel"
  elif WEFT=$payload/weft CARDS_PORT=$2 CARDS_WIRES=${2}0 "$repository/scripts/cards/run.sh" "$1" > "$log" 2>&1; then
    echo "result|cards|ok|$(grep -c ': ok$' "$log") checks"
  else
    echo "result|cards|failed|$(grep -E -m 1 'FAILED' "$log" || tail -n 1 "$log")"
  fi
  [[ ! -e $log ]] || cat "$log"
}

# try_all KERNEL PORT: that one and the two after it are used.
try_all() {
  try_machine "$1" "$2"
  { try_pages "$1"; try_cards "$1" "$(($2 + 1))"; } | follow "$1"
}

# Ends a process and all that it has started: scripts end their own machines.
end_tree() {
  local child
  for child in $(pgrep -P "$1"); do end_tree "$child"; done
  kill "$1" 2> /dev/null || true
}

finish() {
  local job
  for job in $(jobs -p); do end_tree "$job"; done
  wait
  "$scripts/vm.sh" stop-all
}
trap finish EXIT
trap 'exit 130' INT TERM

CARGO=${CARGO:-cargo} "$repository/scripts/deps.sh" build run test kernels
"$scripts/image.sh" > /dev/null
for kernel in "$@"; do [[ $kernel == running ]] || "$scripts/kernel.sh" "$kernel" > /dev/null; done
make_payload
mkdir -p "$results"
for kernel in "$@"; do
  rm -f "$results/$kernel".*
  echo "$(date -u +%F) at $(git -C "$repository" describe --always --dirty)" > "$results/$kernel.when"
done
port=${KERNELS_PORT:-2201}
# One after the other: two machines beside each other take as long together, and their daemons miss their deadlines.
for kernel in "$@"; do
  if [[ $kernel == running ]]; then
    try_running
    { try_pages running; try_cards running; } | follow running
  else
    try_all "$kernel" "$port" & # waited for, so that a signal is taken at once
    wait $! || true
  fi
done
judge_and_print "$@"
say "$((SECONDS / 60)) min $((SECONDS % 60)) s, by $(accel)"
exit "$unexpected"
