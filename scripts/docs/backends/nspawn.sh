# shellcheck shell=bash
# Machines as systemd-nspawn containers, each with a systemd of its own over this machine's files: /etc, /var and whatever else is written
# is forgotten. Daemons are services there: what a page starts in the background is started by its unit. Wants what namespaces.sh wants.

declare -A holder init
while_s=4 # for a daemon's restart

# A machine's root: this machine's, and what `make install` and the packages' sysusers put there.
root_of() {
  local root=$work/$1/root
  mkdir -p "$work/$1"
  mount -t tmpfs tmpfs "$work/$1"
  mkdir "$root" "$work/$1/upper" "$work/$1/work"
  mount -t overlay overlay -o "lowerdir=/,upperdir=$work/$1/upper,workdir=$work/$1/work" "$root"
  rm -rf "$root/etc/weft" "$root/var/lib/weft" "$root/etc/machine-id" "$root/etc/fstab"
  rm -f "$root"/etc/systemd/system/*.wants/*
  : > "$root/etc/fstab"
  # With an identity it is no first boot, which would enable every service that is installed.
  tr -d - < /proc/sys/kernel/random/uuid > "$root/etc/machine-id"
  echo "$1" > "$root/etc/hostname"
  "$here/../install.sh" "$weft" /usr "$root" > /dev/null
  grep -q '^weft:' "$root/etc/passwd" || systemd-sysusers --root="$root" weft.conf > "$work/sysusers" 2>&1 || { cat "$work/sysusers" >&2; die "no user weft"; }
}

boot() {
  local machine=$1
  systemd-nspawn --quiet --boot --directory="$work/$machine/root" --machine="weft-$machine" --register=no --keep-unit --private-network \
    --link-journal=no --console=pipe --capability=CAP_BPF,CAP_PERFMON,CAP_NET_ADMIN,CAP_SYS_RESOURCE --system-call-filter="bpf perf_event_open" \
    --bind-ro=/sys/kernel/btf --setenv=SYSTEMD_LOG_TARGET=console \
    systemd.unit=multi-user.target < /dev/null > "$work/$machine/console" 2>&1 &
  holder[$machine]=$!
}

wait_booted() {
  local machine=$1
  for _ in $(seq 600); do
    kill -0 "${holder[$machine]}" 2> /dev/null || { cat "$work/$machine/console" >&2; die "$machine did not come up"; }
    read -r "init[$machine]" _ < "/proc/${holder[$machine]}/task/${holder[$machine]}/children" || true
    if [[ ${init[$machine]:-} ]]; then
      case $(inside "$machine" systemctl is-system-running 2> /dev/null) in running | degraded) return ;; esac
    fi
    sleep 0.1
  done
  tail -30 "$work/$machine/console" >&2
  die "$machine did not come up: its systemd does not come to an end with starting"
}

inside() { local machine=$1; shift; nsenter --target "${init[$machine]}" --all "$@" < /dev/null; }

machines_up() {
  local machine near far
  for machine in $machines; do root_of "$machine"; boot "$machine"; done
  for machine in $machines; do wait_booted "$machine"; done
  wires_up
}

# The wires between machines that are up; those that go with one that ended are made again with it.
wires_up() {
  local near far
  while read -r near far; do
    [[ $near ]] || continue
    inside "${near%:*}" ip link show "${near#*:}" > /dev/null 2>&1 && continue
    ip link add "wn$$" netns "${init[${near%:*}]}" type veth peer name "wf$$" netns "${init[${far%:*}]}"
    inside "${near%:*}" ip link set "wn$$" name "${near#*:}"
    inside "${far%:*}" ip link set "wf$$" name "${far#*:}"
  done <<< "$wires"
}

machines_down() {
  local machine
  # The first process of each takes all others with it.
  for machine in "${!init[@]}"; do [[ ! ${init[$machine]} ]] || kill -KILL "${init[$machine]}" 2> /dev/null || true; done
  for machine in "${!holder[@]}"; do
    [[ ${init[$machine]:-} ]] || kill -KILL "${holder[$machine]}" 2> /dev/null || true
    wait "${holder[$machine]}" 2> /dev/null || true
  done
  for machine in $machines; do
    umount "$work/$machine/root" 2> /dev/null || true
    umount "$work/$machine" 2> /dev/null || true
  done
}

# A block as it is on a machine where daemons are services: those that the host's folder names.
as_services() {
  sed -E '
    s#^weft node [a-z]+ --config .* &$#sh /etc/weft/enable.sh#
    s#^kill "\$\(cat /var/lib/weft/([a-z]+)\.pid\)"$#systemctl stop weft-\1#
    /^echo \$! > /d
    /^while kill -0 /d
    /^until grep -q ready /d
    s#^weft stop ([a-z]+)$#systemctl disable --quiet weft-\1; weft stop \1#
  ' "$1"
}

# Runs a file on a machine; what waits for longer than a slow machine takes has failed.
on() { as_services "$2" > "$2.services"; timeout 120 nsenter --target "${init[$1]}" --all bash -eu -s < "$2.services"; }

# Carries a file, or what a folder holds (FOLDER/.), from a machine to another: MACHINE PATH MACHINE PATH.
carry() { cp -pr "/proc/${init[$1]}/root$2" "/proc/${init[$3]}/root$4"; }

# What the page promises, of services.
checks() {
  check "every daemon is an active service that said that it is ready" all_active
  check "the directory server has no rights and no root" directory_is_nobody
  check "a frame has both headers at int1" two_headers
  check "TCP from srv1 to srv2" throughput
  echo "      $((bits / 1000000)) Mbit/s"
  check "a reload by systemctl loses nothing" without_a_loss line srv1 'systemctl reload weft-agent'
  check "a reload of a mistake is an error and changes nothing" bad_reload
  local machine daemon
  while read -r machine daemon; do
    check "SIGKILL of $daemon at $machine: systemd starts it again, and no packet is lost" without_a_loss killed "$machine" "$daemon"
  done <<< "$services"
  check "a daemon that hangs is ended by the watchdog and started again" hung
  check "srv2 is booted again: its services come back by themselves" booted_again
  exposure
}

all_active() {
  local machine daemon
  while read -r machine daemon; do inside "$machine" systemctl is-active --quiet "weft-$daemon" || return; done <<< "$services"
}

directory_is_nobody() {
  local pid
  pid=$(inside dir1 systemctl show --value -p MainPID weft-directory)
  inside dir1 grep -q "^CapBnd:	0000000000000000" "/proc/$pid/status" && [[ $(inside dir1 stat -c %U "/proc/$pid") == weft ]]
}

killed() {
  local before
  before=$(inside "$1" systemctl show --value -p MainPID "weft-$2")
  inside "$1" kill -KILL "$before"
  for _ in $(seq 100); do
    inside "$1" systemctl is-active --quiet "weft-$2" && [[ $(inside "$1" systemctl show --value -p MainPID "weft-$2") != "$before" ]] && return
    sleep 0.1
  done
  return 1
}

bad_reload() {
  line srv1 'cp /etc/weft/agent.toml /etc/weft/agent.good; echo "rate = 1" >> /etc/weft/agent.toml' &&
    ! line srv1 'systemctl reload weft-agent' 2> "$work/refused" &&
    line srv1 'mv /etc/weft/agent.good /etc/weft/agent.toml; systemctl reload weft-agent; ping -q -c 2 20.0.0.2 > /dev/null'
}

hung() {
  line srv1 'mkdir -p /run/systemd/system/weft-agent.service.d; printf "[Service]\nWatchdogSec=1s\n" > /run/systemd/system/weft-agent.service.d/soon.conf
    systemctl daemon-reload; systemctl restart weft-agent'
  local before
  before=$(inside srv1 systemctl show --value -p MainPID weft-agent)
  inside srv1 kill -STOP "$before"
  for _ in $(seq 150); do
    [[ $(inside srv1 systemctl show --value -p MainPID weft-agent) != "$before" ]] && inside srv1 systemctl is-active --quiet weft-agent && return
    sleep 0.1
  done
  return 1
}

# What configures interfaces is the page's, so it runs again; what starts daemons is theirs. A virtual wire goes with one of its ends, so the
# ToR's port is another one.
booted_again() {
  kill -KILL "${init[srv2]}"
  wait "${holder[srv2]}" 2> /dev/null || true
  init[srv2]=
  boot srv2
  wait_booted srv2
  wires_up
  again srv2 'sh /etc/weft/network.sh'
  line tor2 'sh /etc/weft/network.sh; systemctl restart weft-switch'
  for _ in $(seq 150); do
    inside srv2 systemctl is-active --quiet weft-agent && line srv1 'ping -q -c 1 -W 1 20.0.0.2 > /dev/null' && return
    sleep 0.2
  done
  return 1
}

exposure() {
  systemd-analyze security --offline=yes --no-pager "$here"/../../contrib/systemd/*.service 2> /dev/null |
    sed -n 's/^.*Overall exposure level for \([a-z-]*\)\.service: \([0-9.]*\) .*/      \1: exposure \2 of 10/p'
}
