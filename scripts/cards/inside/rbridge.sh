#!/usr/bin/env bash
# One of two machines with an RBridge each: rbridge.sh SITE(1|2) ACTION ..
#   start native|generic   the RBridge on the cards, and the namespace `station` with the other site's port before it
#   ready                  once the other RBridge is known
#   ping                   across
#   known SITE COUNT       how many stations of that machine this RBridge has learned, once it is that many
#   stations ACTION ..     stations.pl in the namespace
#   stop                   ends the RBridge; prints what is left at its cards
# Cards: eth1 is the link; eth2 is wire 2, the port of site 1 and the station of site 2; eth3 is wire 3, the other way round.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
site=$1 action=$2
shift 2
weft=$here/weft
if [[ $site == 1 ]]; then port=eth2 station=eth3; else port=eth3 station=eth2; fi
other=$((3 - site))
patience_s=120

cards() {
  local card
  for card in eth1 $port; do
    awk -v card=$card '$2 == card && $5 ~ /^0180c2/ { print card, $5 }' /proc/net/dev_mcast
    ip -d -o link show dev $card | grep -o "promiscuity [1-9]" | sed "s/^/$card /" || true
  done
}

start() {
  ip link set eth1 mtu 1600 up
  ip link set $port up
  ip netns add station
  ip link set $station netns station
  ip -n station link set $station up
  ip -n station address add 10.0.10.$site/24 dev $station
  printf '%s\n' "name = \"r$site\"" "nickname = 25$site" "xdp = \"$1\"" 'socket = "/run/weft/rbridge.sock"' \
    'pin_dir = "/run/weft/bpf/cards"' '[timing]' 'hello_ms = 1000' 'holding_multiplier = 30' \
    '[[port]]' 'interface = "eth1"' 'kind = "p2p"' '[[port]]' "interface = \"$port\"" 'kind = "access"' 'vlan = 10' > /tmp/rbridge.toml
  setsid "$weft" node rbridge --config /tmp/rbridge.toml > /tmp/rbridge.log 2>&1 < /dev/null &
}

ready() {
  local until=$((SECONDS + patience_s))
  until "$weft" trill show route 2> /dev/null | grep -q "r$other"; do
    ((SECONDS < until)) || { cat /tmp/rbridge.log; "$weft" trill show adjacency; exit 1; }
    sleep 1
  done
}

known() {
  local until=$((SECONDS + 30)) found=0
  while ((SECONDS < until)); do
    found=$("$weft" trill show fdb -o csv | grep -ci "02:cc:$(printf %02x "$1"):" || true)
    ((found < $2)) || break
    sleep 1
  done
  echo "$found"
  ((found == $2))
}

case $action in
  start) start "$1" ;;
  ready) ready ;;
  cards) cards ;;
  ping) ip netns exec station ping -c 5 -i 0.5 -W 20 10.0.10.$other ;;
  known) known "$@" ;;
  stations) ip netns exec station perl "$here/stations.pl" "$1" "$station" "${@:2}" ;;
  crash) kill -KILL "$(pgrep -f "$weft node rbridge")" ;;
  stop)
    "$weft" trill stop
    cards
    ip netns delete station
    ;;
esac
