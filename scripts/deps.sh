#!/usr/bin/env bash
# Installs the Debian packages of the given purposes (build, run, test, ..) that deps/debian.txt lists and this machine lacks.
# Not interactive, main component only, pulls no Rust toolchain. Who is not root is asked by sudo. No service is started, and none that came with a package starts
# at the next boot: labs and daemons run the programs themselves.
set -euo pipefail
cd "$(dirname "$0")/.."

die() { echo "deps: $*" >&2; exit 4; }

[[ $# -gt 0 ]] || die "say what for: build, run, test, soak, kernels, services, metrics, cluster, pages, package"
wanted=()
for purpose_asked in "$@"; do
  case $purpose_asked in build | run | test | soak | kernels | services | metrics | cluster | pages | package) ;; *) die "\`$purpose_asked\` is none of build, run, test, soak, kernels, services, metrics, cluster, pages, package" ;; esac
  [[ $purpose_asked != build || ${WEFT_DEPS_BY:-} ]] || command -v cargo > /dev/null ||
    die "cargo is missing: install a Rust toolchain (1.90 or newer): apt-get install rustc-web cargo-web on Debian 12 and 13, or https://rustup.rs"
  while read -r purpose package _provides; do
    [[ $purpose == "$purpose_asked" ]] && wanted+=("$package")
  done < deps/debian.txt
done

missing=()
for package in $(printf '%s\n' "${wanted[@]}" | sort -u); do
  dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q '^install ok installed' || missing+=("$package")
done
[[ ${#missing[@]} -eq 0 ]] && exit 0

command -v apt-get >/dev/null || die "these packages are missing and there is no apt-get: ${missing[*]}"
if [[ $(id -u) -ne 0 ]]; then
  command -v sudo > /dev/null || die "these packages are missing: ${missing[*]}; run as root: apt-get install ${missing[*]}"
  # Root's PATH may lack the toolchain of a user, which has been seen to be there.
  exec sudo env WEFT_DEPS_BY="$(id -un)" scripts/deps.sh "$@"
fi

# Everything that starts at boot: units of systemd, and links of init.
enabled() {
  find /etc/systemd/system \( -path '*.wants/*' -o -path '*.requires/*' -o -type l \) ! -type d 2>/dev/null || true
  find /etc/rc?.d -name 'S*' 2>/dev/null || true
}

# A package may want to start a service as it is installed (frr does): forbid it for the duration.
policy=/usr/sbin/policy-rc.d
before=$(mktemp)
trap 'rm -f "$before" "${made_policy:-}"' EXIT
enabled | sort > "$before"
if [[ ! -e $policy ]]; then
  made_policy=$policy
  printf '#!/bin/sh\nexit 101\n' > "$policy"
  chmod 755 "$policy"
fi

echo "deps: installing ${missing[*]}" >&2
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
apt-get install -y -qq --no-install-recommends "${missing[@]}" > /dev/null

# What came with the packages and would start at the next boot. Taking the links away is what disabling a unit is; init's are
# turned around, or an upgrade would make them again.
enabled | sort | comm -13 "$before" - | while read -r link; do
  case $link in
    /etc/rc*) update-rc.d "$(basename "$link" | sed 's/^S[0-9]*//')" disable > /dev/null 2>&1 ;;
    *) rm -f "$link" ;;
  esac
done
