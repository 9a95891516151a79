#!/usr/bin/env bash
# Loads every eBPF object on Debian 12's own kernel and on its backports' kernel: objects.sh [KERNEL..]
# Small enough for `make test`: a kernel and the test itself as its whole file system. Where QEMU or the kernels cannot be had
# it says `skipped: why`; exit code 1 if a kernel refuses an object.
set -euo pipefail
source "$(dirname "$0")/common.sh"
source "$scripts/initrd.sh"

patience_s=150
kernels=("$@")
[[ ${#kernels[@]} -gt 0 ]] || kernels=(6.1 6.12)
ok=0 skipped=0 failed=0 work=''

# skip KERNEL WHY: `make test` counts it like a test's.
skip() {
  echo "skipped: objects on kernel $1: $2"
  skipped=$((skipped + 1))
  [[ -z ${WEFT_SKIPS:-} ]] || printf 'no virtual machine with kernel %s\tobjects\tscripts/kernels/objects.sh\n' "$1" >> "$WEFT_SKIPS"
}

finish() {
  # shellcheck disable=SC2046
  kill $(jobs -p) 2> /dev/null || true
  [[ -z $work ]] || rm -rf "$work"
}

# make_initrd FILE: the test, its libraries, and the first process.
make_initrd() {
  local tree=$work/tree
  "$scripts/binaries.sh" "$work" verifier
  begin_tree "$tree"
  copy_program "$work/verifier" "$tree"
  mv "$tree$work/verifier" "$tree/verifier"
  install -m 755 "$scripts/inside/init-objects" "$tree/init"
  pack_tree "$tree" "$1"
}

# boot KERNEL: its console goes to a file.
boot() {
  accelerate
  exec timeout "$patience_s" nice -n 15 qemu-system-x86_64 "${accelerated[@]}" -machine q35 -smp 1 -m 768 -nodefaults -display none \
    -no-reboot -kernel "$store/kernel-$1/vmlinuz" -initrd "$work/initrd" -append "console=ttyS0 quiet mitigations=off panic=-1" \
    -serial "file:$work/$1.log"
}

# judge KERNEL: by what its console said.
judge() {
  local log=$work/$1.log release loaded
  release=$(sed -n 's/^release: \([^\r]*\).*/\1/p' "$log")
  loaded=$(grep -c '\.bpf\.o: loaded' "$log" || true)
  if grep -q '^exit code: 0' "$log"; then
    echo "ok: all $loaded eBPF objects load on $release"
    ok=$((ok + 1))
  else
    grep -E -B 3 '^processed .* insns|not found in kernel|panicked|: [0-9]+ of [0-9]+ instructions' "$log" | grep -vE '^(processed|--$|[a-z0-9_]+: [0-9]+ of [0-9]+$|[a-z0-9_]+\.bpf\.o)' | tail -n 40 >&2 || true
    sed -n 's/\.bpf\.o: refused: /: /p' "$log"
    echo "FAILED: eBPF objects on ${release:-kernel $1, which did not come up}: $loaded load"
    failed=$((failed + 1))
  fi
}

trap finish EXIT
trap 'exit 130' INT TERM
if ! why=$(CARGO=${CARGO:-cargo} "$repository/scripts/deps.sh" kernels 2>&1); then
  for kernel in "${kernels[@]}"; do skip "$kernel" "${why##*$'\n'}"; done
else
  have=()
  for kernel in "${kernels[@]}"; do
    if why=$("$scripts/kernel.sh" "$kernel" 2>&1 > /dev/null); then have+=("$kernel"); else skip "$kernel" "${why##*$'\n'}"; fi
  done
  work=$(mktemp -d "$store/objects.XXXXXX")
  [[ ${#have[@]} -eq 0 ]] || make_initrd "$work/initrd"
  for kernel in "${have[@]}"; do boot "$kernel" & done
  wait
  for kernel in "${have[@]}"; do judge "$kernel"; done
fi
echo "objects on Debian's kernels: $ok ok, $failed failed, $skipped skipped, ${SECONDS} s"
((failed == 0))
