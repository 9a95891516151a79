# The machines of docs/vl2.md, and what the page promises.

machines="srv1 srv2 dir1 tor1 tor2 int1"
wires="srv1:eth1 tor1:eth2
dir1:eth1 tor1:eth3
srv2:eth1 tor2:eth2
tor1:eth1 int1:eth1
tor2:eth1 int1:eth2"
services="dir1 directory
tor1 switch
tor1 tor
tor2 switch
tor2 tor
int1 switch
srv1 agent
srv2 agent"

# Pings for $while_s while a command runs; true if nothing was lost.
without_a_loss() {
  line srv1 "ping -q -i 0.02 -c $((while_s * 50)) 20.0.0.2" > "$work/ping" &
  local ping=$!
  sleep 0.3
  "$@"
  wait "$ping"
  grep -q ' 0% packet loss' "$work/ping"
}

kill_agent() {
  line srv1 'kill -9 "$(cat /var/lib/weft/agent.pid)"'
  sleep 0.5
  again srv1 '2>> /var/lib/weft/agent.log'
}

two_headers() {
  line int1 "timeout 60 tshark -q -i eth1 -c 3 -f 'ip proto 4' -T fields -E separator=, -e ip.dst" > "$work/seen" 2> /dev/null &
  local capture=$!
  while kill -0 "$capture" 2> /dev/null; do line srv1 'ping -q -i 0.1 -c 10 20.0.0.2 > /dev/null' || true; done
  wait "$capture"
  grep -q '^10.255.255.1,10.1.0.2,20.0.0.2' "$work/seen"
}

throughput() {
  line srv2 'iperf3 -s -1 -D -B 20.0.0.2'
  line srv1 'iperf3 -c 20.0.0.2 -t 2 -J' > "$work/iperf"
  bits=$(grep -A12 '"sum_received"' "$work/iperf" | sed -n 's/.*"bits_per_second":[^0-9]*\([0-9]*\).*/\1/p')
  [[ ${bits:-0} -gt 1000000 ]]
}

# While the directory is stopped, questions for an AA that nobody knows are not answered.
silence() {
  line dir1 'kill -STOP "$(cat /var/lib/weft/directory.pid)"' &&
    line srv1 'ping -c 3 -W 1 20.0.0.99 > /dev/null || grep -q "no answer from any of 1 directory" /var/lib/weft/agent.log' &&
    line dir1 'kill -CONT "$(cat /var/lib/weft/directory.pid)"' &&
    line srv1 'ping -c 2 -W 1 20.0.0.99 > /dev/null || grep -q "answers again" /var/lib/weft/agent.log'
}

all_ready() {
  line dir1 'grep -q "directory server ready" /var/lib/weft/directory.log' &&
    line srv2 'grep -q "agent ready" /var/lib/weft/agent.log' &&
    line tor1 'grep -q "Tor ready" /var/lib/weft/switch.log && grep -q "ToR reporter ready" /var/lib/weft/tor.log' &&
    line int1 'grep -q "Intermediate ready" /var/lib/weft/switch.log'
}

checks() {
  check "every daemon says that it is ready" all_ready
  check "an agent says when the directory is silent, and when it answers again" silence
  check "a frame has both headers at int1" two_headers
  check "TCP from srv1 to srv2" throughput
  echo "      $((bits / 1000000)) Mbit/s"
  check "a reload of an agent loses nothing" without_a_loss line srv1 'weft reload agent'
  check "SIGKILL of an agent and its restart lose nothing" without_a_loss kill_agent
  check "a restart of the directory loses nothing" without_a_loss again dir1 'weft directory get'
}

left() {
  check "no interface of ours is left on srv1" line srv1 '! ip link show weft-up0 2> /dev/null'
  check "no pin is left on tor1" line tor1 '! test -e /run/weft/bpf/switch'
}
