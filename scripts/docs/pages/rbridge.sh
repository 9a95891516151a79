# The machines of docs/rbridge.md, and what the page promises.

machines="h1 s1 s2 h2"
wires="h1:eth1 s1:eth1
s1:eth2 s2:eth2
h2:eth1 s2:eth1"

# Pings for $while_s while a command runs; true if nothing was lost. Otherwise it says what was, and what the neighbours noticed.
without_a_loss() {
  line h1 "ping -q -i 0.02 -c $((while_s * 50)) 192.168.10.2" > "$work/ping" &
  local ping=$!
  sleep 0.3
  "$@"
  wait "$ping"
  grep -q ' 0% packet loss' "$work/ping" && return
  tail -n 3 "$work/ping" >&2
  for machine in s1 s2; do line "$machine" 'tail -n 12 /var/lib/weft/rbridge.log' >&2; done
  return 1
}

restart() {
  local begin=${EPOCHREALTIME/./}
  line s1 'kill -9 "$(pgrep -f "weft node rbridge")"'
  again s1 'weft node rbridge --config'
  echo "      the daemon was away for $(((${EPOCHREALTIME/./} - begin) / 1000)) ms"
}

checks() {
  check "SIGKILL of an RBridge with pins and its restart lose nothing" without_a_loss restart
  check "neighbours are believed by the key" line s1 'weft show rbridge adjacency | grep -q " up "'
}

left() { check "no pin is left on s1" line s1 '! test -e /run/weft/bpf/rbridge'; }
