#!/usr/bin/env bash
# Makes a Debian package of what scripts/install.sh installs, and prints its path.
#
#   scripts/package/build.sh weft|weft-sim WEFT FOLDER      WEFT: the binary; COMPRESSION (xz): zstd, gzip or none
#
# What it depends on is read from the binary and from deps/debian.txt: what labs run is recommended, not needed.
set -euo pipefail
repository=$(cd "$(dirname "$0")/../.." && pwd)
[[ $# -eq 3 ]] || { echo "usage: $0 weft|weft-sim WEFT FOLDER" >&2; exit 2; }
name=$1 weft=$(realpath "$2") folder=$(realpath -m "$3")
die() { echo "package: $*" >&2; exit 1; }
for program in dpkg-deb dpkg-shlibdeps; do command -v $program > /dev/null || die "$program is missing: scripts/deps.sh package"; done
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
root=$work/root
umask 022

case $name in
  weft) about="builds, runs and measures virtual layer-2 data-centre fabrics" other=weft-sim ;;
  weft-sim) about="simulator of layer-2 data-centre fabrics" other=weft ;;
  *) die "\`$name\` is neither weft nor weft-sim" ;;
esac
mkdir "$root"
"$repository/scripts/install.sh" "$weft" /usr "$root"
daemons=no
[[ ! -d $root/usr/lib/systemd ]] || daemons=yes
[[ $name/$daemons == weft/yes || $name/$daemons == weft-sim/no ]] || die "$weft is not what $name holds: built with \`lab\`, $daemons"
[[ $name == weft ]] || mv "$root/usr/share/doc/weft" "$root/usr/share/doc/$name"

# The libraries that the binary is linked with, in Debian's words.
libraries() {
  mkdir "$work/debian"
  printf 'Source: %s\n\nPackage: %s\nArchitecture: any\n' "$name" "$name" > "$work/debian/control"
  (cd "$work" && dpkg-shlibdeps --warnings=0 -O root/usr/bin/weft) | sed 's/^shlibs:Depends=//'
}
# What labs run beside iproute2, and what people measure with.
recommended() { { awk '$1 == "run" && $2 != "iproute2" { print $2 }' "$repository/deps/debian.txt"; echo iperf3; } | sort -u | paste -sd, | sed 's/,/, /g'; }

mkdir "$root/DEBIAN"
depends=$(libraries)
{
  echo "Package: $name"
  echo "Version: $("$weft" --version | sed 's/^weft //')"
  echo "Architecture: $(dpkg --print-architecture)"
  echo "Maintainer: developers of weft <weft@weft.invalid>"
  echo "Section: net"
  echo "Priority: optional"
  echo "Installed-Size: $(du -sk --apparent-size "$root" | cut -f1)"
  echo "Conflicts: $other"
  echo "Replaces: $other"
  if [[ $daemons == yes ]]; then
    echo "Depends: $depends, iproute2, passwd"
    echo "Recommends: $(recommended)"
    echo "Suggests: tshark"
  else
    echo "Depends: $depends"
  fi
  echo "Description: $about"
  if [[ $daemons == yes ]]; then
    echo " Daemons for VL2, VXLAN and TRILL with their data paths as eBPF, labs of network"
    echo " namespaces, a test centre, and the simulator of weft-sim."
  else
    echo " Plans of papers' figures and scenarios of one's own in virtual time; no root, no"
    echo " kernel features. The package weft has all of it, and daemons and labs as well."
  fi
} > "$root/DEBIAN/control"
if [[ $daemons == yes ]]; then
  (cd "$root" && find etc -type f | sed 's#^#/#' | LC_ALL=C sort) > "$root/DEBIAN/conffiles"
  for script in postinst prerm postrm; do install -m 755 "$repository/contrib/debian/weft.$script" "$root/DEBIAN/$script"; done
fi
(cd "$root" && find usr -type f -print0 | LC_ALL=C sort -z | xargs -0 md5sum) > "$root/DEBIAN/md5sums"

mkdir -p "$folder"
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git -C "$repository" log -1 --format=%ct 2> /dev/null || date +%s)}
export SOURCE_DATE_EPOCH
dpkg-deb --root-owner-group -Z"${COMPRESSION:-xz}" --build "$root" "$folder" > /dev/null
package=$(echo "$folder/${name}_"*"_$(dpkg --print-architecture).deb")
echo "$package"
