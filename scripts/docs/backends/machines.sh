# shellcheck shell=bash
# Machines as virtual machines with virtio cards (scripts/kernels/vm.sh) and the kernel $KERNEL (default 6.12).
# A wire is a pair of UDP ports of 127.0.0.1; interfaces of a machine are eth1, eth2, .. without a gap. Wants what namespaces.sh wants.

vms=$here/../kernels
export WEFT_VMS
WEFT_VMS=$("$vms/vm.sh" store)/deployment-$(basename "$page" .md)-${KERNEL:=6.12}
while_s=30 # for a daemon's restart
ssh_port=${SSH_PORT:-2301} wire_port=${WIRE_PORT:-23001}

# The wires of a machine in the order of its interfaces: LOCAL:REMOTE,..
wires_of() {
  local near far number=0 ends=()
  while read -r near far; do
    [[ $near ]] || continue
    [[ ${near%:*} != "$1" ]] || ends[${near#*:eth}]=$((wire_port + number)):$((wire_port + number + 1))
    [[ ${far%:*} != "$1" ]] || ends[${far#*:eth}]=$((wire_port + number + 1)):$((wire_port + number))
    number=$((number + 2))
  done <<< "$wires"
  (IFS=,; echo "${ends[*]}")
}

machines_up() {
  local machine port=$ssh_port
  mkdir "$work/disk"
  strip -o "$work/disk/weft" "$weft"
  truncate -s 200M "$work/disk.raw"
  mkfs.ext4 -q -d "$work/disk" -O ^has_journal "$work/disk.raw"
  for machine in $machines; do
    "$vms/vm.sh" start "$machine" kernel="$KERNEL" port="$port" cpus=1 mem=768 p2p="$(wires_of "$machine")" disk="$work/disk.raw"
    port=$((port + 1))
  done
  for machine in $machines; do
    "$vms/vm.sh" wait "$machine"
    "$vms/vm.sh" ssh "$machine" 'mkdir /weft && mount -o ro /dev/vdc /weft && ln -s /weft/weft /usr/local/bin/weft'
  done
}

# shellcheck disable=SC2086
machines_down() { "$vms/vm.sh" stop $machines; }

# Runs a file on a machine; what it leaves in the background keeps none of our descriptors.
on() {
  # shellcheck disable=SC2016
  timeout 600 "$vms/vm.sh" ssh "$1" 'f=$(mktemp) && cat > $f && { code=0; bash -eu $f < /dev/null > $f.out 2> $f.err || code=$?
    cat $f.out; cat $f.err >&2; exit $code; }' < "$2"
}

# Carries a file that only its owner may read, or what a folder holds (FOLDER/.): MACHINE PATH MACHINE PATH.
carry() {
  if [[ $2 == */. ]]; then
    "$vms/vm.sh" ssh "$1" "tar -C $2 -c ." < /dev/null | "$vms/vm.sh" ssh "$3" "tar -C $4 -xp"
  else
    "$vms/vm.sh" ssh "$1" "cat $2" < /dev/null | "$vms/vm.sh" ssh "$3" "umask 077 && cat > $4"
  fi
}
