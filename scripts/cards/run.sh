#!/usr/bin/env bash
# weft on network cards (virtio), which unlike veth hear only what they are told to: two virtual machines with three wires.
#   run.sh [KERNEL] [native|generic ..]     default: 6.12 native generic
# Two RBridges with a station behind each: a ping across, with ARP; a thousand stations learned and reached, before and after
# SIGKILL of a daemon; nothing left at cards in the end. Exit code 1 if one of it does not hold.
set -euo pipefail
folder=$(cd "$(dirname "$0")" && pwd)
source "$folder/../kernels/common.sh"
kernel=${1:-6.12}
shift || true
[[ $# -gt 0 ]] || set -- native generic
export WEFT_VMS=$store/cards-$kernel
port=${CARDS_PORT:-2601} wire=$((${CARDS_WIRES:-27001}))
weft=${WEFT:-$repository/target/release/weft}
stations=1000
vm() { "$scripts/vm.sh" "$@"; }
in_site() { vm ssh "site$1" "/root/cards/rbridge.sh $1 ${*:2}"; }
failed=0
holds() { say "cards: $1: ok"; }
fails() { say "cards: $1: FAILED ($2)"; failed=1; }

start_machines() {
  local near='' far='' n site
  for n in 0 2 4; do near+=",$((wire + n)):$((wire + n + 1))" far+=",$((wire + n + 1)):$((wire + n))"; done
  vm start site1 kernel="$kernel" port="$port" cpus=1 mem=1200 p2p="${near#,}"
  vm start site2 kernel="$kernel" port=$((port + 1)) cpus=1 mem=1200 p2p="${far#,}"
  mkdir -p "$WEFT_VMS/payload"
  strip -o "$WEFT_VMS/payload/weft" "$weft"
  cp "$folder"/inside/* "$WEFT_VMS/payload/"
  for site in 1 2; do
    vm wait site$site
    vm ssh site$site 'mkdir -p /root/cards'
    vm put site$site "$WEFT_VMS/payload"/* /root/cards
  done
}

# Stations of machine $2 speak: both RBridges learn them, one from its port and one from the campus, and machine $1 reaches them.
reach() {
  local near=$1 far=$2 what="$3" site known
  in_site "$far" stations announce "$far" $stations
  for site in 1 2; do
    known=$(in_site $site known "$far" $stations) &&
      holds "$what: $known stations learned by r$site" || fails "$what: stations learned by r$site" "$known of $stations"
  done
  in_site "$far" stations listen "$far" $stations 120 > "$WEFT_VMS/reached" & local listener=$!
  sleep 5
  in_site "$near" stations send "$far" $stations
  if wait $listener; then holds "$what: $stations stations reached"; else fails "$what: stations reached" "$(< "$WEFT_VMS/reached") of $stations"; fi
}

try_rbridges() {
  local mode=$1 site left before
  before=$(for site in 1 2; do in_site $site cards; done)
  for site in 1 2; do in_site $site start "$mode"; done
  for site in 1 2; do in_site $site ready || { fails "$mode: RBridges" "they do not know each other"; return; }; done
  if in_site 1 ping > "$WEFT_VMS/ping"; then holds "$mode: ping across"; else fails "$mode: ping across" "$(tail -n 3 "$WEFT_VMS/ping" | paste -sd' ')"; fi
  reach 1 2 "$mode"
  in_site 2 crash
  if in_site 1 ping > "$WEFT_VMS/ping"; then holds "$mode: ping after SIGKILL"; else fails "$mode: ping after SIGKILL" "$(tail -n 3 "$WEFT_VMS/ping" | paste -sd' ')"; fi
  vm ssh site2 'setsid /root/cards/weft node rbridge --config /tmp/rbridge.toml > /tmp/rbridge.log 2>&1 < /dev/null &'
  in_site 2 ready
  left=$(for site in 1 2; do in_site $site stop; done)
  if [[ $left == "$before" ]]; then holds "$mode: nothing left at cards"; else fails "$mode: left at cards" "$left"; fi
}

trap 'vm stop site1 site2' EXIT
trap 'exit 130' INT TERM
start_machines
for mode in "$@"; do try_rbridges "$mode"; done
exit $failed
