# The machines of docs/vtep.md, and what the page promises.

machines="host1 host2"
wires="host1:eth1 host2:eth1"

throughput() {
  line host2 'iperf3 -s -1 -D -B 192.168.100.2'
  line host1 'ip netns exec vm1 iperf3 -c 192.168.100.2 -t 2 -J' > "$work/iperf"
  bits=$(grep -A12 '"sum_received"' "$work/iperf" | sed -n 's/.*"bits_per_second":[^0-9]*\([0-9]*\).*/\1/p')
  [[ ${bits:-0} -gt 1000000 ]]
}

checks() {
  check "TCP from the VM to the kernel's vxlan device" throughput
  echo "      $((bits / 1000000)) Mbit/s"
}

left() { check "no pin is left on host1" line host1 '! test -e /run/weft/bpf/vtep'; }
