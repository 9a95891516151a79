#!/usr/bin/env bash
# Tries one kernel: runs in a virtual machine, or on this one. try.sh FOLDER [ROW ..]: the folder holds `weft`, `tests/`,
# `labs/` with their daemon in `examples/`, and `plan.toml`, rows are those that an earlier try has come to.
# For each row of the table it prints `result|ROW|ok or failed|what came out`, everything else is the log.
set -uo pipefail
here=$1
done_rows=" ${*:2} "
weft=$here/weft
lab=kernels-try
lab_patience_s=300
test_patience_s=600

wanted() { [[ $done_rows != *" $1 "* ]]; }

result() { printf 'result|%s|%s|%s\n' "$1" "$2" "$3"; }

# The line of an output that says why: of weft's error, or else the last.
reason() { (grep -m 1 -E '^(weft|error)' "$1" || grep -v '^$' "$1" | tail -n 1 | grep . || echo 'no answer') | tr '|' '/' | cut -c 1-300; }

objects() {
  WEFT_REQUIRE_ALL=1 "$here/tests/verifier" --nocapture > /tmp/kernels-try.log 2>&1
  local code=$? refused
  cat /tmp/kernels-try.log
  refused=$(sed -n 's/\.bpf\.o: refused.*//p' /tmp/kernels-try.log | paste -sd, | sed 's/,/, /g')
  if [[ $code == 0 ]]; then
    result objects ok "$(grep -c '\.bpf\.o: loaded' /tmp/kernels-try.log) load"
  else
    result objects failed "${refused:+refused: }${refused:-$(reason /tmp/kernels-try.log)}"
  fi
}

frames() {
  local passed=0 failed=0 whys=() names=() binary name
  for binary in "$here"/tests/*; do
    name=${binary##*/}
    [[ $name != verifier ]] || continue
    echo "== $name"
    : > /tmp/kernels-skips
    WEFT_SKIPS=/tmp/kernels-skips timeout -k 5 "$test_patience_s" "$binary" --test-threads 2 --show-output > /tmp/kernels-try.log 2>&1 ||
      { [[ $? != 124 ]] || names+=("$name ran out of time"); }
    cat /tmp/kernels-try.log
    # A test that skips passed for cargo.
    mapfile -t -O ${#whys[@]} whys < <(sort -u /tmp/kernels-skips | cut -f 1)
    passed=$((passed + $(grep -c '^test .* \.\.\. ok' /tmp/kernels-try.log)))
    failed=$((failed + $(grep -c '^test .* \.\.\. FAILED' /tmp/kernels-try.log)))
    mapfile -t -O ${#names[@]} names < <(sed -n "s/^test \(.*\) \.\.\. FAILED.*/$name::\1/p" /tmp/kernels-try.log)
  done
  local sum="$((passed - ${#whys[@]})) passed, $failed failed, ${#whys[@]} skipped"
  [[ ${#whys[@]} == 0 ]] || sum+=" ($(printf '%s\n' "${whys[@]}" | sort -u | paste -sd';' | sed 's/;/; /g'))"
  if [[ ${#names[@]} == 0 ]]; then result frames ok "$sum"; else result frames failed "$sum: ${names[*]:0:6}$([[ ${#names[@]} -le 6 ]] || echo ' ..')"; fi
}

# try_lab ROW FABRIC "OPTIONS" FROM>ADDRESS..: up, a ping for each pair, down.
try_lab() {
  local row=$1 fabric=$2 options=$3 pair failed='' began=$SECONDS
  shift 3
  # shellcheck disable=SC2086
  if timeout -k 5 "$lab_patience_s" "$weft" lab up "$fabric" --unshaped --name "$lab" $options > /tmp/kernels-try.log 2>&1; then
    local up=$((SECONDS - began))
    for pair in "$@"; do
      timeout 60 "$weft" lab exec --lab "$lab" "${pair%>*}" -- ping -c 3 -W 10 "${pair#*>}" || failed+=" $pair"
    done
    if [[ $failed ]]; then result "$row" failed "up, but no ping:$failed"; else result "$row" ok "$# pairs, up in $up s"; fi
  else
    cat /tmp/kernels-try.log
    result "$row" failed "$(reason /tmp/kernels-try.log)"
  fi
  "$weft" lab down "$lab" > /dev/null 2>&1
}

# Two of our VTEPs and a station behind each, in namespaces of their own.
try_vtep() {
  local row=$1 hook=$2 n other pids=() code=1
  for n in 1 2; do ip netns add kt-vtep$n; ip netns add kt-vm$n; done
  ip link add under netns kt-vtep1 mtu 1600 type veth peer name under netns kt-vtep2 mtu 1600
  for n in 1 2; do
    other=$((3 - n))
    ip -n kt-vtep$n address add 10.64.0.$n/24 dev under
    ip -n kt-vtep$n link set under up
    ip link add port netns kt-vtep$n type veth peer name eth0 netns kt-vm$n
    ip -n kt-vtep$n link set port up
    ip -n kt-vm$n address add 192.168.7.$n/24 dev eth0
    ip -n kt-vm$n link set eth0 up
    # What XDP wants of veth (docs/vtep.md): whole checksums, and an end that takes frames from XDP.
    ip netns exec kt-vm$n ethtool -K eth0 tx off gro on > /dev/null
    ip netns exec kt-vtep$n "$weft" node vtep --local 10.64.0.$n --uplink under --peer 10.64.0.$other --vni 100 --port port \
      --hook "$hook" --socket /run/kt-vtep$n.sock > /tmp/kernels-vtep$n.log 2>&1 &
    pids+=($!)
  done
  for n in $(seq 60); do
    ip netns exec kt-vm1 ping -c 1 -W 1 192.168.7.2 > /dev/null && { code=0; break; }
    kill -0 "${pids[@]}" 2> /dev/null || break
    sleep 0.5
  done
  if [[ $code == 0 ]]; then
    result "$row" ok "1 pair"
  else
    cat /tmp/kernels-vtep1.log
    result "$row" failed "$(reason /tmp/kernels-vtep1.log)"
  fi
  remove_vtep "${pids[@]}"
}

remove_vtep() {
  local n
  [[ $# == 0 ]] || { kill "$@" && wait "$@"; } 2> /dev/null
  for n in 1 2; do ip netns delete kt-vtep$n; ip netns delete kt-vm$n; done 2> /dev/null
}

# What is left where it was interrupted.
finish() {
  "$weft" lab down "$lab" > /dev/null 2>&1
  # shellcheck disable=SC2046
  remove_vtep $(jobs -p)
}

try_plan() {
  local began=$SECONDS
  if (cd /tmp && timeout -k 5 600 "$weft" run "$here/plan.toml" --engine lab --quiet) > /tmp/kernels-try.log 2>&1; then
    cat /tmp/kernels-try.log
    result plan ok "its claims hold, $((SECONDS - began)) s"
  else
    cat /tmp/kernels-try.log
    result plan failed "$(reason /tmp/kernels-try.log)"
  fi
}

# Links that netem delays: the kernel loads its module when it is asked for it.
late() {
  : > /tmp/kernels-skips
  if ! WEFT_SKIPS=/tmp/kernels-skips timeout -k 5 "$test_patience_s" "$here/labs/late" --show-output > /tmp/kernels-try.log 2>&1; then
    result late failed "$(grep -A 1 -m 1 panicked /tmp/kernels-try.log | tail -n 1 | tr '|' '/')"
  elif [[ -s /tmp/kernels-skips ]]; then
    result late none "$(head -n 1 /tmp/kernels-skips | cut -f 1)"
  else
    result late ok 'as late as told, and as before when mended'
  fi
  cat /tmp/kernels-try.log
}

trap finish EXIT
trap 'exit 130' INT TERM
echo "release|$(uname -r)"
wanted objects && objects
wanted vl2 && try_lab vl2 vl2-4servers '' 's1>20.0.0.4' 's4>20.0.0.1'
wanted trill && try_lab trill trill-s1-s6 '' 'h1>10.0.10.2' 'h4>10.0.20.3'
wanted vxlan && try_lab vxlan leaf-spine-small '--overlay kernel-vxlan' 's1>20.0.0.3' 's4>20.0.0.2'
wanted vtep && try_vtep vtep tc
wanted vtep-xdp && try_vtep vtep-xdp xdp
wanted late && late
wanted bed && try_lab bed vl2-testbed '' 's1>20.0.0.75' 's20>20.0.0.39' 's39>20.0.0.1' 's58>20.0.0.20' 's75>20.0.0.58'
wanted plan && try_plan
wanted frames && frames
exit 0
