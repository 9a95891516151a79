#!/usr/bin/env bash
# Runs every command of a page of docs, word for word, on the machines that it names, and checks what it promises.
#
#   scripts/deployment/run.sh PAGE [WEFT]     PAGE: docs/vl2.md, docs/rbridge.md or docs/vtep.md; WEFT: the binary's path
#
# A block ```sh of the page begins with `# on MACHINE[, MACHINE ..]`; one without is an error, so that nothing that looks like a
# command is left out. Other blocks are configuration or output. PAGE.sh beside this file has the machines, the wires and the checks,
# which come before the page's section "Taking it away". Machines are network namespaces with /run, /etc and /var of their own;
# with BACKEND=machines they are virtual machines, with BACKEND=nspawn containers with a systemd each.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
die() { echo "deployment: $*" >&2; exit 1; }
[[ $# -ge 1 ]] || die "say which page: docs/vl2.md"
[[ $(id -u) -eq 0 ]] || die "needs root, for namespaces"
page=$(realpath "$1")
weft=$(realpath "${2:-$here/../../target/release/weft}")
[[ -x $weft ]] || die "no binary at $weft; build it: make build"
work=$(mktemp -d)
# shellcheck source=vl2.sh
. "$here/$(basename "$page" .md).sh"
# shellcheck source=namespaces.sh
. "$here/${BACKEND:-namespaces}.sh"

# Splits the page into numbered blocks; the first line of each file names its machines.
blocks() {
  awk -v dir="$work" '
    /^## Taking it away/ { last = 1 }
    !inside && /^ *(```|~~~)/ && !/^```(sh|text|toml|ini|json)$/ {
      printf "line %d: neither commands (```sh) nor configuration or output: %s\n", NR, $0 > "/dev/stderr"; exit 1
    }
    !inside && /^```/ { inside = 1; shell = ($0 == "```sh"); first = 1; next }
    inside && /^```$/ { inside = 0; if (shell) close(file); next }
    inside && shell && first {
      first = 0
      if ($0 !~ /^# on [a-z]/) { printf "line %d: a block of commands that says not on which machine: %s\n", NR, $0 > "/dev/stderr"; exit 1 }
      file = sprintf("%s/%s%03d.sh", dir, last ? "last" : "block", ++count)
    }
    inside && shell { print > file }
    END { if (inside) { print "a block without an end" > "/dev/stderr"; exit 1 } }
  ' "$page" || die "$page cannot be run as it is"
  compgen -G "$work/block*.sh" > /dev/null || die "$page has no commands"
}

# The machines of a block.
machines_of() { head -1 "$1" | sed -E 's/^# on //; s/ *\(.*\)//; s/,/ /g'; }

# Runs a block on its machines, one after the other, or on the given one.
run_block() {
  local file=$1 machine
  for machine in ${2:-$(machines_of "$file")}; do
    [[ " $machines " == *" $machine "* ]] || die "$(head -1 "$file"): there is no machine $machine"
    if grep -q '^scp ' "$file"; then
      ! grep -vE '^(#|scp -pr? [^ ]+ root@[a-z0-9]+:[^ ]+$)' "$file" >&2 || die "$file: a block that copies has other commands, too"
      while read -r _ _ from to; do carry "$machine" "$from" "$(sed -E 's/^root@([^:]+):.*/\1/' <<< "$to")" "${to#*:}"; done \
        < <(grep -E '^scp -pr? ' "$file")
    else
      on "$machine" "$file" > "$work/out" 2>&1 || { cat "$work/out" >&2; die "failed on $machine: $(cat "$file")"; }
      [[ ! ${VERBOSE:-} ]] || cat "$work/out"
    fi
  done
}

# Runs a block of the page again: the one for this machine that has this text.
again() {
  local file
  for file in "$work"/block*.sh; do
    if [[ " $(machines_of "$file") " == *" $1 "* ]] && grep -qF -- "$2" "$file"; then run_block "$file" "$1"; return; fi
  done
  die "no block for $1 has: $2"
}

# Runs a line on a machine.
line() { local file; file=$(mktemp "$work/line.XXXXXX"); echo "$2" > "$file"; on "$1" "$file"; }

# Says what was found, and ends where it is not what was wanted.
check() { local what=$1; shift; if "$@"; then echo "ok    $what"; else die "not so: $what"; fi; }

blocks
trap 'machines_down; rm -rf "$work"' EXIT
machines_up
count=0
for file in "$work"/block*.sh; do run_block "$file"; count=$((count + 1)); done
echo "ok    $count blocks of $(basename "$page")"
checks
for file in "$work"/last*.sh; do [[ -e $file ]] || continue; run_block "$file"; count=$((count + 1)); done
left
echo "ok    all $count blocks of $(basename "$page") ran, and nothing is left"
