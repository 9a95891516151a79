# shellcheck shell=bash
# Sourced: initial file systems of busybox and what one purpose needs, nothing else. Wants common.sh.

# begin_tree FOLDER: busybox with its libraries, and the places that are mounted on.
begin_tree() {
  mkdir -p "$1"/{bin,dev,proc,sys,run,tmp,new,etc,modules}
  copy_program "$(command -v busybox)" "$1"
  [[ -e $1/bin/busybox ]] || ln -s "$(command -v busybox)" "$1/bin/busybox"
}

# copy_program PROGRAM FOLDER: it and its libraries, to the same places below FOLDER.
copy_program() {
  local file
  for file in "$1" $(ldd "$1" 2> /dev/null | grep -o '/[^ ]*'); do
    mkdir -p "$2$(dirname "$file")"
    [[ -e $2$file ]] || cp -L "$file" "$2$file"
  done
}

# copy_modules TREE RELEASE FOLDER MODULE..: modules and what they need, unpacked and numbered in the order of their loading.
copy_modules() {
  local tree=$1 release=$2 folder=$3 number=100 module path
  shift 3
  for module in "$@"; do
    modprobe -d "$tree" -S "$release" --show-depends "$module" | sed -n 's/^insmod \([^ ]*\).*/\1/p'
  done | awk '!seen[$0]++' | while read -r path; do
    number=$((number + 1))
    module=$(basename "$path")
    case $module in
      *.xz) xz -dc "$path" > "$folder/modules/$number-${module%.xz}" ;;
      *) cp "$path" "$folder/modules/$number-$module" ;;
    esac
  done
}

# pack_tree FOLDER FILE
pack_tree() { (cd "$1" && find . | busybox cpio -o -H newc 2> /dev/null | gzip -1) > "$2"; }

# make_disk_initrd TREE RELEASE FILE: mounts the first disk and the modules' disk (by its label), and goes on there.
make_disk_initrd() {
  local work
  work=$(mktemp -d)
  begin_tree "$work"
  copy_modules "$1" "$2" "$work" virtio_pci virtio_blk ext4
  install -m 755 "$scripts/inside/init-disk" "$work/init"
  pack_tree "$work" "$3"
  rm -rf "$work"
}
