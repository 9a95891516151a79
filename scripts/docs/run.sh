#!/usr/bin/env bash
# Runs every command of a page word for word, and checks what the page promises.
#
#   scripts/docs/run.sh PAGE [WEFT]     PAGE: README.md, docs/vl2.md, ..; WEFT: the binary's path
#
# A page that has a script in pages/ is of several machines (on_machines.sh): they are network namespaces with /run, /etc and /var of their
# own; with BACKEND=machines virtual machines, with BACKEND=nspawn containers with a systemd each.
#
# Any other page is pasted on one machine (pasted.sh): such a namespace where only the programs of a bare Debian and of the packages for
# building and running weft are found; with BACKEND=debian the fresh Debian that debian.sh made.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
die() { echo "docs: $*" >&2; exit 1; }
[[ $# -ge 1 ]] || die "say which page: README.md"
[[ $(id -u) -eq 0 ]] || die "needs root, for namespaces"
page=$(realpath "$1")
name=${page#"$(realpath "$here/../..")/"}
weft=$(realpath -m "${2:-$here/../../target/release/weft}")
BACKEND=${BACKEND:-namespaces}
[[ -x $weft || $BACKEND == debian ]] || die "no binary at $weft; build it: make build"
work=$(mktemp -d)
# The shell of a pasted page may be another user's.
chmod 755 "$work"
if [[ -e $here/pages/$(basename "$page" .md).sh ]]; then
  # shellcheck source=pages/vl2.sh
  . "$here/pages/$(basename "$page" .md).sh"
  # shellcheck source=on_machines.sh
  . "$here/on_machines.sh"
else
  # shellcheck source=pasted.sh
  . "$here/pasted.sh"
fi
# shellcheck source=backends/namespaces.sh
. "$here/backends/$BACKEND.sh"

blocks
trap 'machines_down; rm -rf "$work"' EXIT
machines_up
run_page
