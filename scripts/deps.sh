#!/usr/bin/env bash
# Installs the Debian packages of the given purposes (build, run, test) that deps/debian.txt lists and this machine lacks.
# Not interactive, main component only, starts no service, pulls no Rust toolchain.
set -euo pipefail
cd "$(dirname "$0")/.."

die() { echo "deps: $*" >&2; exit 4; }

command -v cargo >/dev/null || die "cargo is missing: install a Rust toolchain (1.90 or newer), see https://rustup.rs"

wanted=()
while read -r purpose package _provides; do
  [[ -z $purpose || $purpose == \#* ]] && continue
  for purpose_asked in "$@"; do
    [[ $purpose == "$purpose_asked" ]] && wanted+=("$package")
  done
done < deps/debian.txt

missing=()
for package in $(printf '%s\n' "${wanted[@]}" | sort -u); do
  dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q '^install ok installed' || missing+=("$package")
done
[[ ${#missing[@]} -eq 0 ]] && exit 0

command -v apt-get >/dev/null || die "these packages are missing and there is no apt-get: ${missing[*]}"
[[ $(id -u) -eq 0 ]] || die "these packages are missing: ${missing[*]}; run as root: apt-get install ${missing[*]}"

# A package may want to start a service as it is installed (frr does): forbid it for the duration.
policy=/usr/sbin/policy-rc.d
if [[ ! -e $policy ]]; then
  printf '#!/bin/sh\nexit 101\n' > "$policy"
  chmod 755 "$policy"
  trap 'rm -f "$policy"' EXIT
fi

echo "deps: installing ${missing[*]}" >&2
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
apt-get install -y -qq --no-install-recommends "${missing[@]}" > /dev/null
