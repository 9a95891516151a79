#!/usr/bin/env bash
# Installs each package with apt on a bare Debian 12, runs it there as an ordinary user, purges it, and holds the tree against what it was.
#
#   scripts/package/test.sh PACKAGE.deb..       root only; packages come from the archive that this machine's apt names
#
# The tree is made anew (mmdebstrap, minbase: what is essential, and apt), and forgotten. What runs there has no network.
set -euo pipefail
[[ $# -ge 1 ]] || { echo "usage: $0 PACKAGE.deb.." >&2; exit 2; }
[[ $(id -u) -eq 0 ]] || { echo "package: needs root, for the tree" >&2; exit 4; }
scripts=$(cd "$(dirname "$0")/../kernels" && pwd)
# The archive: as for the machines of `make kernels`.
source "$scripts/common.sh"
# shellcheck source=../kernels/apt.sh
source "$scripts/apt.sh"
work=$(mktemp -d)
trap 'rm -rf --one-file-system "$work"' EXIT
base=$work/base
seconds() { echo "$(((${EPOCHREALTIME/./} - $1) / 100000))" | sed -E 's/(.)$/.\1/; s/^\./0./'; }
say() { echo "package: $*"; }
die() { echo "package: $*" >&2; exit 1; }
lacks() { echo "package: $*" >&2; exit 4; }

make_base() {
  local begin=${EPOCHREALTIME/./}
  find_archives
  apt-config dump --format '%F "%v";%n' Acquire::http Acquire::https > "$work/host.conf"
  suite_sources bookworm > "$work/sources.list"
  mmdebstrap --mode=root --variant=minbase --format=directory --skip=check/empty --aptopt="$work/host.conf" \
    --aptopt='Acquire::Languages "none"' bookworm "$base" "$work/sources.list" > "$work/log" 2>&1 ||
    die "no bare Debian 12: $(tail -n 3 "$work/log")"
  chroot "$base" useradd --create-home someone
  cp /etc/resolv.conf "$base/etc/resolv.conf"
  chroot "$base" apt-get update -qq > "$work/log" 2>&1 || die "its apt has no lists: $(tail -n 3 "$work/log")"
  say "a bare Debian 12 in $(seconds "$begin") s, $(chroot "$base" dpkg-query -W | wc -l) packages"
}

# Every file with its mode, owner and content, but what apt, dpkg and mount keep for themselves, and copies that editors of users leave.
trace() {
  (cd "$1" && find . \( -path ./proc -o -path ./sys -o -path ./var/lib/dpkg -o -path ./var/lib/apt -o -path ./var/cache \
    -o -path ./var/log -o -path ./package.deb -o -name '*-' -path './etc/*' -o -path ./etc/ld.so.cache -o -path ./run/mount \) -prune -o \
    \( -type f -printf '%p %M %U:%G ' -exec sh -c 'sha256sum < "$1"' sh {} \; \) -o -printf '%p %M %U:%G %l\n' | LC_ALL=C sort)
}

# What happens in the tree.
cat > "$work/inside.sh" <<'END'
set -euo pipefail
export DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8
name=$1
seconds() { echo "$(((${EPOCHREALTIME/./} - $1) / 100000))" | sed -E 's/(.)$/.\1/; s/^\./0./'; }
die() { echo "package: $name: $*" >&2; exit 1; }
someone() { unshare --net setpriv --reuid=someone --regid=someone --init-groups env HOME=/home/someone sh -c "cd && $1"; }
begin=${EPOCHREALTIME/./}
apt-get install -y -qq --no-install-recommends /package.deb > /tmp/apt 2>&1 || { cat /tmp/apt >&2; die "apt does not install it"; }
echo "package: $name: installed in $(seconds "$begin") s, with $(grep -c '^Setting up' /tmp/apt) packages in all"
dpkg --verify "$name" || die "what is installed is not what the package holds"
begin=${EPOCHREALTIME/./} code=0
someone 'weft doctor' > /tmp/doctor 2>&1 || code=$?
# What an ordinary user can do is simulate: that is what the doctor says.
knows='works: ' may=0
[[ $code == "$may" ]] && grep -q "$knows" /tmp/doctor || { cat /tmp/doctor >&2; die "weft doctor: $code"; }
echo "package: $name: weft doctor in $(seconds "$begin") s, exit code $code"
begin=${EPOCHREALTIME/./}
someone 'weft run vl2/fig09-shuffle --quick --out first' > /tmp/run 2>&1 || { cat /tmp/run >&2; die "weft run: $?"; }
[[ -s /home/someone/first/report.html ]] || die "weft run left no report"
echo "package: $name: weft run vl2/fig09-shuffle --quick in $(seconds "$begin") s: $(grep -c ' pass' /tmp/run) claims pass, a report of $(stat -c %s /home/someone/first/report.html) bytes"
rm -r /home/someone/first
# As daemons leave them.
if [[ $name == weft ]]; then
  getent passwd weft > /dev/null || die "there is no user weft"
  install -d /run/weft /var/lib/weft/directory
  touch /etc/weft/agent.toml /var/lib/weft/directory/table.redb
fi
apt-get purge -y -qq --auto-remove "$name" > /tmp/apt 2>&1 || { cat /tmp/apt >&2; die "apt does not purge it"; }
apt-get clean
rm -f /tmp/apt /tmp/doctor /tmp/run
END

try() {
  local package=$1 name tree
  name=$(dpkg-deb --field "$package" Package)
  tree=$work/$name
  mkdir -p "$tree"/{upper,work,root}
  say "$name: $(($(stat -c %s "$package") / 1024)) KiB as a package, $(dpkg-deb --field "$package" Installed-Size) KiB installed, /usr/bin/weft $(($(dpkg-deb --fsys-tarfile "$package" | tar -tv ./usr/bin/weft | awk '{ print $3 }') / 1024)) KiB"
  trace "$base" > "$work/before"
  PACKAGE=$package unshare --mount --pid --fork --kill-child --propagation private bash -euc '
    mount -t overlay overlay -o "lowerdir=$2,upperdir=$1/upper,workdir=$1/work" "$1/root"
    mount -t proc proc "$1/root/proc"
    mount -t sysfs -o ro sysfs "$1/root/sys"
    cp "$PACKAGE" "$1/root/package.deb"
    cp "$3" "$1/root/inside.sh"
    chroot "$1/root" bash /inside.sh "$4"
    rm "$1/root/package.deb" "$1/root/inside.sh"
    umount "$1/root/proc" "$1/root/sys"
    '"$(declare -f trace)"'
    trace "$1/root" > "$1/after"' tree "$tree" "$base" "$work/inside.sh" "$name"
  diff "$work/before" "$tree/after" > "$work/left" || { cat "$work/left" >&2; die "$name: purged, it leaves a trace (< before, > after)"; }
  say "$name: purged, and the tree is what it was: $(wc -l < "$work/before") files and folders"
}

make_base
for package in "$@"; do try "$(realpath "$package")"; done
