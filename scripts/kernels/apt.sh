# shellcheck shell=bash
# Sourced: packages of other suites of Debian, fetched and verified by this machine's apt with its own proxies and keys, but
# with lists of their own, so that the machine's apt is left as it is. Wants common.sh.

apt_home=$store/apt
keyring=/usr/share/keyrings/debian-archive-keyring.gpg

# The archives that this machine's own configuration names, as `main` and `security`.
# shellcheck disable=SC2016  # the variables are apt's
find_archives() {
  local uri release
  main='' security=''
  command -v apt-get > /dev/null || lacks "there is no apt-get here, so Debian's kernels cannot be had"
  while read -r uri release; do
    case $release in
      *-security) security=${security:-$uri} ;;
      bookworm | trixie | forky | sid | stable | oldstable | testing | unstable) main=${main:-$uri} ;;
    esac
  done < <(apt-get indextargets --format '$(REPO_URI) $(RELEASE)' 'Created-By: Packages')
  [[ $main ]] || lacks "this machine's apt names no archive of Debian: nowhere to take kernels from"
  [[ -e $keyring ]] || lacks "$keyring is missing: install debian-archive-keyring"
}

# source_line URI SUITE
source_line() { echo "deb [signed-by=$keyring] $1 $2 main"; }

# suite_sources SUITE: what a machine of this release of Debian would have in its sources.
suite_sources() {
  source_line "$main" "$1"
  source_line "$main" "$1-updates"
  [[ -z $security ]] || source_line "$security" "$1-security"
}

# Our own apt: the machine's settings, other sources and lists.
own_apt() {
  local program=$1; shift
  "$program" -qq -o Dir::Etc::sourcelist="$apt_home/sources.list" -o Dir::Etc::sourceparts=- -o Dir::State="$apt_home/state" \
    -o Dir::State::status="$apt_home/status" -o Dir::Cache="$apt_home/cache" -o Acquire::Languages=none \
    -o APT::Sandbox::User=root -o Acquire::Retries=3 "$@"
}

# Fetches the lists if they are older than a day.
update_lists() {
  find_archives
  mkdir -p "$apt_home"/{state/lists/partial,cache/archives/partial}
  touch "$apt_home/status"
  { suite_sources bookworm; source_line "$main" bookworm-backports; source_line "$main" trixie-backports; } > "$apt_home/sources.new"
  if cmp -s "$apt_home/sources.new" "$apt_home/sources.list" && [[ $(find "$apt_home/updated" -mmin -1440 2> /dev/null) ]]; then
    return
  fi
  mv "$apt_home/sources.new" "$apt_home/sources.list"
  say "fetching the lists of packages"
  own_apt apt-get update >&2 || lacks "the lists of packages cannot be fetched (see above)"
  touch "$apt_home/updated"
}

# newest_kernel SUITE: package and version of the suite's current kernel. Debian 12's own comes from security, too.
newest_kernel() {
  local suites=("$1") package
  [[ $1 != bookworm ]] || suites=(bookworm-security bookworm)
  for suite in "${suites[@]}"; do
    package=$(own_apt apt-cache show "linux-image-amd64/$suite" 2> /dev/null | sed -n 's/^Depends: //p' | tr ',' '\n' |
      sed -n 's/^ *\(linux-image-[^ ]*\) (= \(.*\)).*/\1=\2/p' | sort -V | tail -n 1)
    [[ -z $package ]] || { echo "$package"; return; }
  done
  lacks "$1 has no kernel for this machine"
}

# parts_of_kernel PACKAGE=VERSION: what has its files: the package itself, or those it was divided into (since Linux 6.17).
parts_of_kernel() {
  echo "$1"
  own_apt apt-cache show "$1" | sed -n 's/^Depends: //p' | tr ',' '\n' |
    sed -n 's/^ *\(linux-\(base\|binary\|modules\)-[0-9][^ ]*\) (= \(.*\)).*/\1=\3/p'
}
