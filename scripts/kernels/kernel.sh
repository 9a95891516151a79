#!/usr/bin/env bash
# Fetches one of Debian's kernels, for direct boot: kernel.sh 6.1|6.12|newest
# Prints its folder, which holds `release`, `vmlinuz`, `tree` (with /lib/modules), `initrd` and `modules.raw` for machines with
# a root disk. A kernel that is there is used for a day before a newer one is looked for; without a network, for ever.
set -euo pipefail
source "$(dirname "$0")/common.sh"
source "$scripts/apt.sh"
source "$scripts/initrd.sh"

# Modules of no use to a machine without devices.
unwanted=(
  sound drivers/{gpu,media,infiniband,staging,iio,usb,scsi,hwmon,input,platform,bluetooth,isdn,mmc,mtd,power,video}
  drivers/net/{wireless,ethernet,can} net/{wireless,mac80211,bluetooth,sunrpc} fs/{btrfs,xfs,ocfs2,nfs,nfsd,ceph,smb,gfs2,jfs,f2fs}
)

fetch() {
  local name=$1 folder=$store/kernel-$1 package
  if [[ -e $folder/release ]] && { [[ $(find "$folder/checked" -mmin -1440) ]] || ! (update_lists); }; then
    return
  fi
  update_lists
  package=$(newest_kernel "$(suite_of "$name")")
  if [[ $(cat "$folder/package" 2> /dev/null) != "$package" ]]; then
    say "fetching ${package%%=*} (version ${package#*=})"
    rm -rf "$folder.part"
    mkdir -p "$folder.part/tree"
    # shellcheck disable=SC2046
    (cd "$folder.part" && own_apt apt-get download $(parts_of_kernel "$package") >&2) || lacks "$package cannot be fetched (see above)"
    unpack "$folder.part"
    echo "$package" > "$folder.part/package"
    rm -rf "$folder"
    mv "$folder.part" "$folder"
  fi
  touch "$folder/checked"
}

# unpack FOLDER: of the packages in it, what boots.
unpack() {
  local release package
  for package in "$1"/*.deb; do
    # Packages for a merged /usr have the modules there.
    dpkg-deb --fsys-tarfile "$package" | tar x -C "$1/tree" "${unwanted[@]/#/--exclude=*/kernel/}" --exclude='*/share/*' \
      --transform='s,^\./usr/lib/,./lib/,'
    rm "$package"
  done
  release=$(ls "$1/tree/lib/modules")
  mv "$1/tree/boot/vmlinuz-$release" "$1/vmlinuz" 2> /dev/null || mv "$1/tree/lib/modules/$release/vmlinuz" "$1/vmlinuz"
  depmod -b "$1/tree" "$release"
  make_disk_initrd "$1/tree" "$release" "$1/initrd"
  truncate -s 300M "$1/modules.raw"
  mkfs.ext4 -q -d "$1/tree/lib/modules" -O ^has_journal "$1/modules.raw"
  echo "$release" > "$1/release"
}

[[ $(dpkg --print-architecture 2> /dev/null) == amd64 ]] || lacks "only kernels for amd64 are tried"
locked kernels fetch "$1" # one at a time: the lists of packages are shared
echo "$store/kernel-$1"
