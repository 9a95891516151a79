# shellcheck shell=bash
# Sourced by the scripts of this folder: where things are, and how they are said.

# shellcheck disable=SC2034  # used by those that source this file
repository=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
scripts=$repository/scripts/kernels
# Everything that is made or downloaded is in this one folder.
store=${WEFT_KERNELS_DIR:-$repository/target/kernels}
mkdir -p "$store"

# The kernels that are tried, oldest first: a name, the suite of Debian that has it.
all_kernels=(6.1 6.12 newest)
suite_of() {
  case $1 in
    6.1) echo bookworm ;;
    6.12) echo bookworm-backports ;;
    newest) echo trixie-backports ;;
    *) die "no kernel is called \`$1\`; there are: ${all_kernels[*]}" ;;
  esac
}

say() { echo "kernels: $*" >&2; }
die() { echo "kernels: $*" >&2; exit 1; }
# This machine lacks something: the exit code of `weft` for the same.
lacks() { echo "kernels: $*" >&2; exit 4; }

# Runs a command while holding a lock on a folder of the store, so that two runs do not make the same thing at once.
locked() {
  local name=$1; shift
  (flock 9; "$@") 9> "$store/.$name.lock"
}

# The hash that tells whether something that was made is still what these inputs would make.
hash_of() { cat "$@" | sha256sum | cut -c1-16; }

# How machines run here. A /dev/kvm may be there with neither VMX nor SVM behind it (nested paravirtualisation): a stock kernel
# hangs there, so emulation it is.
accel() {
  if grep -qwE 'vmx|svm' /proc/cpuinfo && [[ -r /dev/kvm && -w /dev/kvm ]]; then echo kvm; else echo tcg; fi
}

# The same as options of QEMU, in `accelerated`. EMULATOR_THREADS=single: one thread for all CPUs of a machine, slower.
accelerate() {
  case $(accel) in
    kvm) accelerated=(-accel kvm -cpu host) ;;
    tcg) accelerated=(-accel "tcg,thread=${EMULATOR_THREADS:-multi},tb-size=512" -cpu "Nehalem,+rdrand") ;;
  esac
}
