# Machines as namespaces: mounts (a /run of its own, /etc and /var that forget what is written), process IDs and, where there are several, network.
# The first process takes over and buries what others leave. Sets $while_s. Wants $machines, $wires
# ("MACHINE:INTERFACE MACHINE:INTERFACE" a line), $work and $weft; $programs: a folder with the only programs that are found.

declare -A holder init
while_s=4 # for a daemon's restart

machines_up() {
  local machine a b network=(--net)
  # The kernel lets no other namespace choose which congestion controls labs may use.
  [[ $machines == *" "* ]] || network=()
  for machine in $machines; do
    mkdir "$work/$machine"
    unshare "${network[@]}" --mount --pid --fork --kill-child --propagation private bash -euc '
      mount -t tmpfs tmpfs "$1"
      for tree in etc var; do
        mkdir "$1/$tree" "$1/$tree.work"
        mount -t overlay overlay -o "lowerdir=/$tree,upperdir=$1/$tree,workdir=$1/$tree.work" "/$tree"
      done
      mount -t proc proc /proc
      [[ ! ${2:-} ]] || mount -t sysfs sysfs /sys
      mount -t tmpfs -o mode=755 tmpfs /run
      rm -rf /etc/weft /var/lib/weft
      ! id frr > /dev/null 2>&1 || install -d -o frr -g frr /run/frr
      touch /run/up
      while :; do sleep 3600 & wait $!; done' machine "$work/$machine" "${network[@]}" < /dev/null 2> "$work/$machine.err" &
    holder[$machine]=$!
  done
  for machine in $machines; do
    for _ in $(seq 500); do
      read -r "init[$machine]" _ < "/proc/${holder[$machine]}/task/${holder[$machine]}/children" || true
      [[ ${init[$machine]:-} && -e /proc/${init[$machine]}/root/run/up ]] && break
      kill -0 "${holder[$machine]}" || { cat "$work/$machine.err" >&2; die "$machine did not come up"; }
      sleep 0.02
    done
  done
  while read -r a b; do
    [[ $a ]] || continue
    ip link add "${a#*:}" netns "${init[${a%:*}]}" type veth peer name "${b#*:}" netns "${init[${b%:*}]}"
  done <<< "$wires"
}

machines_down() {
  local machine
  # The first process of each takes all others with it; its parent does not listen to signals.
  for machine in "${!init[@]}"; do kill -KILL "${init[$machine]}" 2> /dev/null || true; done
  wait
}

# Runs a file on a machine; what waits for longer than a slow machine takes has failed.
on() { PATH=${programs:-$(dirname "$weft"):$PATH} timeout 120 nsenter --target "${init[$1]}" --net --mount --pid bash -eu "$2" < /dev/null; }

# Carries a file, or what a folder holds (FOLDER/.), from a machine to another: MACHINE PATH MACHINE PATH.
carry() { cp -pr "/proc/${init[$1]}/root$2" "/proc/${init[$3]}/root$4"; }
