#!/usr/bin/env bash
# Small virtual machines of the image (image.sh) with a kernel of choice (kernel.sh), for any script that needs some.
#
#   vm.sh start NAME [kernel=6.1] [port=2201] [cpus=2] [mem=2048] [p2p=LOCAL:REMOTE,..] [disk=FILE,..] [append=..]
#   vm.sh wait NAME                  until SSH answers
#   vm.sh ssh NAME COMMAND..         run it as root; its exit code
#   vm.sh put NAME FILE.. FOLDER     copy files in
#   vm.sh get NAME FILE.. FOLDER     copy files out
#   vm.sh stop NAME..                end these machines, and only these
#   vm.sh stop-all                   end every machine of this folder
#   vm.sh accel                      kvm or tcg: what machines run by here
#   vm.sh store                      the folder of all that is made or fetched
#
# port: on 127.0.0.1, for SSH. p2p: each a wire to another machine, as UDP ports of 127.0.0.1: the cards are eth1, eth2, ..
# with p2p=24001:24002 on one side and p2p=24002:24001 on the other. disk: further disks, read-only: /dev/vdc, ..
# A machine's disk is a copy-on-write overlay that is new at every start. WEFT_VMS is the folder of this caller's machines
# (default target/kernels/machines); names are the caller's own within it.
set -euo pipefail
source "$(dirname "$0")/common.sh"
machines=${WEFT_VMS:-$store/machines}
patience_s=600

start() {
  local name=$1 folder=$machines/$1 kernel=6.1 port=2201 cpus=2 mem=2048 p2p='' disk='' append='' setting; shift
  for setting in "$@"; do
    case $setting in
      kernel=* | port=* | cpus=* | mem=* | p2p=* | disk=* | append=*) printf -v "${setting%%=*}" %s "${setting#*=}" ;;
      *) die "vm.sh start: what is \`$setting\`?" ;;
    esac
  done
  [[ $name =~ ^[a-z0-9][a-z0-9-]*$ ]] || die "a machine cannot be called \`$name\`"
  running "$name" && die "machine $name is running; stop it first"
  local image kernel_folder
  image=$("$scripts/image.sh")
  kernel_folder=$("$scripts/kernel.sh" "$kernel")
  mkdir -p "$folder"
  echo "$port" > "$folder/port"
  rm -f "$folder/disk.qcow2"
  qemu-img create -q -f qcow2 -F raw -b "$image/root.raw" "$folder/disk.qcow2"

  local options=() hash
  accelerate
  hash=$(printf %s "$machines/$name" | md5sum)
  local mac_tail=${hash:0:2}:${hash:2:2}:${hash:4:2}
  add_disk() { options+=(-drive "file=$1,format=$2,if=none,id=$3,$4" -device "virtio-blk-pci,drive=$3"); }
  add_disk "$folder/disk.qcow2" qcow2 root cache=unsafe
  add_disk "$kernel_folder/modules.raw" raw modules readonly=on
  local number=0 file wire
  for file in ${disk//,/ }; do number=$((number + 1)); add_disk "$file" raw "extra$number" readonly=on; done
  options+=(-nic "user,model=virtio-net-pci,hostfwd=tcp:127.0.0.1:$port-:22,mac=52:54:00:$mac_tail")
  number=0
  for wire in ${p2p//,/ }; do
    number=$((number + 1))
    options+=(-nic "socket,model=virtio-net-pci,localaddr=127.0.0.1:${wire%:*},udp=127.0.0.1:${wire#*:},mac=$(printf '52:54:%02x' $number):$mac_tail")
  done
  nice -n 15 qemu-system-x86_64 "${accelerated[@]}" "${options[@]}" -machine q35 -smp "$cpus" -m "$mem" -nodefaults -display none -no-reboot \
    -kernel "$kernel_folder/vmlinuz" -initrd "$kernel_folder/initrd" \
    -append "console=ttyS0 quiet net.ifnames=0 mitigations=off nokaslr systemd.hostname=$name $append" \
    -device virtio-rng-pci -serial "file:$folder/console.log" -pidfile "$folder/pid" -daemonize 9>&- # no lock of a caller is its
}

# The process of machine $1, if it is running and ours: the id alone may be another's by now.
running() {
  local pid
  pid=$(cat "$machines/$1/pid" 2> /dev/null) && tr '\0' ' ' < "/proc/$pid/cmdline" 2> /dev/null | grep -qF "$machines/$1/disk.qcow2"
}

stop() {
  local name=$1 pid
  running "$name" || return 0
  pid=$(cat "$machines/$name/pid")
  kill "$pid"
  while [[ -e /proc/$pid ]]; do sleep 0.1; done
  rm -f "$machines/$name/pid" "$machines/$name/disk.qcow2"
}

stop_all() {
  local folder
  for folder in "$machines"/*/; do stop "$(basename "$folder")"; done
}

wait_for() {
  local until=$((SECONDS + patience_s))
  while ((SECONDS < until)); do
    ssh_options "$1"
    ssh "${ssh[@]}" -o ConnectTimeout=20 -p "$port" root@127.0.0.1 true 2> /dev/null && return
    running "$1" || die "machine $1 ended: $(tail -n 3 "$machines/$1/console.log")"
    sleep 0.5
  done
  die "machine $1 does not answer after $patience_s s: $(tail -n 3 "$machines/$1/console.log")"
}

ssh_options() {
  port=$(cat "$machines/$1/port" 2> /dev/null) || die "no machine is called \`$1\`"
  ssh=(-q -i "$store/image/key" -o IdentitiesOnly=yes -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o ServerAliveInterval=60)
}

action=${1:-}; shift || true
case $action in
  start) start "$@" ;;
  wait) wait_for "$1" ;;
  ssh) ssh_options "$1"; exec ssh "${ssh[@]}" -p "$port" root@127.0.0.1 "${@:2}" ;;
  put) ssh_options "$1"; exec scp "${ssh[@]}" -r -P "$port" "${@:2:$#-2}" "root@127.0.0.1:${!#}" ;;
  get) ssh_options "$1"; exec scp "${ssh[@]}" -r -P "$port" "${@:2:$#-2}" "${!#}" ;;
  stop) for name in "$@"; do stop "$name"; done ;;
  stop-all) stop_all ;;
  accel) accel ;;
  store) echo "$store" ;;
  *) sed -n '2,/^set/{/^set/!s/^# \{0,1\}//p}' "$0" >&2; exit 2 ;;
esac
