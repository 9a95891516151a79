#!/usr/bin/env bash
# Pastes README.md, and the pages of docs that have a line `<!-- pasted -->`, into fresh Debians, and runs the pages of several machines there.
#
#   scripts/docs/debian.sh [12] [13]      BUILT=target/release/weft: a binary to take where a page builds it, which takes ten minutes
#                                         PAGES="README.md docs/live.md": these alone (README.md is always first: it installs weft)
#
# The root tree is made anew (mmdebstrap, minbase: what is essential, and apt) with sudo and a user who may use it. What else there is
# in it has been installed by the pages' own commands; what checks of this folder need beside (tshark, iperf3) comes when all pages
# have been pasted. It has processes, mounts and a host name of its own; the kernel is this machine's, and so is the network namespace around labs, for
# the kernel lets no other one choose which congestion controls labs may use. Archives and crates are fetched as this machine fetches
# them, with its apt settings and certificates.
set -euo pipefail
docs=$(cd "$(dirname "$0")" && pwd)
# The archives, as for the machines of `make kernels`.
source "$docs/../kernels/common.sh"
# shellcheck source=../kernels/apt.sh
source "$docs/../kernels/apt.sh"
say() { echo "readme: $*"; }
die() { echo "readme: $*" >&2; exit 1; }
lacks() { echo "readme: $*" >&2; exit 4; }
[[ $(id -u) -eq 0 ]] || lacks "needs root, for the trees"
command -v mmdebstrap > /dev/null || lacks "mmdebstrap is missing: scripts/deps.sh package"
[[ ! ${BUILT:-} || -x $BUILT ]] || die "no binary at $BUILT; build it: make build"
suite_of_debian() { case $1 in 12) echo bookworm ;; 13) echo trixie ;; *) die "\`$1\` is none of 12, 13" ;; esac; }
work=$repository/target/readme
mkdir -p "$work"
exec 8> "$work.lock"
flock -n 8 || die "another run works in $work"
# Mounts below are in namespaces that end with this script, whatever ends it; files of a killed run are removed by the next.
rm -rf --one-file-system "$work"
mkdir "$work"
trap 'rm -rf --one-file-system "$work"' EXIT
cd "$repository"
pages=${PAGES:-README.md $(grep -lx -- '<!-- pasted -->' docs/*.md | paste -sd' ')}

# tree DEBIAN FOLDER
tree() {
  local suite root=$2 certificate
  suite=$(suite_of_debian "$1")
  apt-config dump --format '%F "%v";%n' Acquire::http Acquire::https > "$work/host.conf"
  suite_sources "$suite" > "$work/sources.list"
  unshare --mount --propagation private --fork --kill-child mmdebstrap --mode=root --variant=minbase --format=directory --skip=check/empty --aptopt="$work/host.conf" \
    --aptopt='Acquire::Languages "none"' --include=sudo,mount "$suite" "$root" "$work/sources.list" > "$work/log" 2>&1 ||
    die "no fresh Debian $1: $(tail -n 3 "$work/log")"
  chroot "$root" useradd --create-home --shell /bin/bash --groups sudo someone
  echo 'someone ALL=(ALL) NOPASSWD: ALL' > "$root/etc/sudoers.d/someone"
  cp /etc/resolv.conf "$root/etc/resolv.conf"
  echo "debian$1" > "$root/etc/hostname"
  echo "127.0.0.1 localhost debian$1" > "$root/etc/hosts"
  mkdir -p "$root/usr/local/share/ca-certificates"
  for certificate in /usr/local/share/ca-certificates/*.crt; do
    [[ ! -e $certificate ]] || cp -L "$certificate" "$root/usr/local/share/ca-certificates/"
  done
}

# What the pages are read from, and what `git clone` finds: the repository as it is, with what is not committed.
sources() {
  local root=$1 commit
  mkdir -p "$root/srv/weft"
  cp -r --parents README.md docs scripts deps "$root/srv/weft/"
  commit=$(git -c user.name=weft -c user.email=weft@weft.invalid stash create)
  [[ ! $(git ls-files --others --exclude-standard) ]] || say "files that git does not know are not in the tree's clone"
  git init -q --bare --initial-branch=main "$root/srv/weft.git"
  git push -q "$root/srv/weft.git" "${commit:-HEAD}:refs/heads/main"
  # git clones nothing that belongs to somebody else.
  chroot "$root" chown -R someone /srv/weft.git
  [[ ! ${BUILT:-} ]] || {
    cp "$BUILT" "$root/srv/built"
    printf '#!/bin/sh\n[ "$1" = build ] && mkdir -p target/release && cp /srv/built target/release/weft\n' > "$root/srv/cargo"
    chmod 755 "$root/srv/cargo"
  }
}

# What happens in the tree.
inside() {
  local page
  export PLACEHOLDERS="<this repository's address>=/srv/weft.git"
  cd /srv/weft
  BACKEND=debian FOLDER=/home/someone scripts/docs/run.sh README.md
  for page in $pages; do
    [[ $page == README.md ]] || BACKEND=debian FOLDER=/home/someone/weft scripts/docs/run.sh "$page"
  done
  [[ ! ${several:-} ]] || apt-get install -y -qq --no-install-recommends tshark iperf3 > /tmp/checks 2>&1 || { cat /tmp/checks; exit 1; }
  for page in $several; do scripts/docs/run.sh "docs/$page.md" /usr/local/bin/weft; done
}

several=''
[[ ${PAGES:-} ]] || several=$(cd "$docs/pages" && ls | sed 's/\.sh$//' | paste -sd' ')
find_archives
for debian in "${@:-12}"; do suite_of_debian "$debian" > /dev/null; done
for debian in "${@:-12}"; do
  begin=$SECONDS
  root=$work/$debian
  tree "$debian" "$root"
  sources "$root"
  say "a fresh Debian $debian in $((SECONDS - begin)) s, $(chroot "$root" dpkg-query -W | wc -l) packages${BUILT:+; weft is built outside: $BUILT}"
  { declare -f inside; declare -p pages several; echo 'set -euo pipefail; inside'; } > "$root/srv/inside.sh"
  unshare --mount --pid --uts --ipc --fork --kill-child --propagation private bash -euc '
    root=$1
    hostname "debian$2"
    # `ip netns exec` wants a root that is a mount point.
    mount --bind "$root" "$root"
    mount --rbind /dev "$root/dev"
    mount -t proc proc "$root/proc"
    mount --rbind /sys "$root/sys"
    mount -t tmpfs -o mode=755 tmpfs "$root/run"
    CARGO=$3 exec chroot "$root" bash /srv/inside.sh' tree "$root" "$debian" "${BUILT:+/srv/cargo}" < /dev/null ||
    die "Debian $debian: not as printed (see above)"
  say "Debian $debian: all as printed, in $((SECONDS - begin)) s"
  rm -rf --one-file-system "$root"
done
