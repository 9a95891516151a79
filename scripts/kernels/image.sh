#!/usr/bin/env bash
# Makes, or reuses, the root file system of the virtual machines: Debian 12 with what labs and daemons need (deps/debian.txt,
# purposes `run` and `test`), SSH for root, and DHCP on the first card; all other cards are left alone.
# Prints the folder, which holds `root.raw` (sparse; ext4) and `key` (SSH). Root only.
set -euo pipefail
source "$(dirname "$0")/common.sh"
source "$scripts/apt.sh"

system=systemd,systemd-sysv,udev,dbus,openssh-server,kmod,procps,ethtool,tcpdump,strace,ca-certificates,xz-utils,bpftool,jq,nftables
size=6G
folder=$store/image

packages() { awk '$1 == "run" || $1 == "test" { print $2 }' "$repository/deps/debian.txt" | sort -u; }

# make FOLDER
make_image() {
  local root=$1/root
  find_archives
  ssh-keygen -q -t ed25519 -N '' -C 'machines of make kernels' -f "$1/key"
  # The machine's own proxies and certificates, for as long as the packages are fetched.
  apt-config dump --format '%F "%v";%n' Acquire::http Acquire::https > "$1/host.conf"
  suite_sources bookworm > "$1/sources.list"
  say "making the image: Debian 12 with $(packages | wc -l) packages of deps/debian.txt (log: $1/log)"
  mmdebstrap --mode=root --variant=minbase --format=directory --skip=check/empty --aptopt="$1/host.conf" \
    --aptopt='Acquire::Languages "none"' --aptopt='APT::Install-Recommends "false"' \
    --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-exclude=/usr/share/man/*' \
    --include="$system,$(packages | paste -sd,)" \
    bookworm "$root" "$1/sources.list" > "$1/log" 2>&1 || die "the image cannot be made: $(tail -n 3 "$1/log")"
  rm -f "$root/etc/apt/apt.conf.d/99mmdebstrap"
  configure "$root" "$1/key.pub"
  truncate -s "$size" "$1/root.raw"
  mkfs.ext4 -q -d "$root" -E lazy_itable_init=1,lazy_journal_init=1 "$1/root.raw"
  rm -rf "$root"
}

# configure ROOT PUBLIC_KEY
configure() {
  local root=$1 unit
  printf '[Match]\nName=eth0\n[Network]\nDHCP=ipv4\n' > "$root/etc/systemd/network/10-user.network"
  # Routes and rules of others (FRR, a lab) are theirs.
  install -d "$root/etc/systemd/networkd.conf.d"
  printf '[Network]\nManageForeignRoutes=no\nManageForeignRoutingPolicyRules=no\n' > "$root/etc/systemd/networkd.conf.d/foreign.conf"
  printf 'nameserver 10.0.2.3\n' > "$root/etc/resolv.conf"
  printf '/dev/vda / ext4 noatime 0 0\n' > "$root/etc/fstab"
  echo machine > "$root/etc/hostname"
  install -D -m 600 "$2" "$root/root/.ssh/authorized_keys"
  chmod 700 "$root/root/.ssh"
  rm -f "$root"/etc/ssh/ssh_host_*_key*
  ssh-keygen -q -t ed25519 -N '' -f "$root/etc/ssh/ssh_host_ed25519_key"
  chroot "$root" systemctl -q enable systemd-networkd ssh
  # What only takes time, or what weft starts by itself where it is needed.
  for unit in frr etcd avahi-daemon isc-dhcp-relay apt-daily.timer apt-daily-upgrade.timer e2scrub_reap fstrim.timer \
    systemd-timesyncd dpkg-db-backup.timer man-db.timer; do
    chroot "$root" systemctl -q disable "$unit" 2> /dev/null || true
  done
}

make_or_reuse() {
  local inputs
  inputs=$({ cat "$scripts/image.sh"; packages; } | sha256sum | cut -c1-16)
  [[ $(cat "$folder/inputs" 2> /dev/null) == "$inputs" ]] && return
  [[ $(id -u) == 0 ]] || lacks "making the image needs root"
  rm -rf "$folder.part"
  mkdir -p "$folder.part"
  make_image "$folder.part"
  echo "$inputs" > "$folder.part/inputs"
  rm -rf "$folder"
  mv "$folder.part" "$folder"
}

locked image make_or_reuse
echo "$folder"
