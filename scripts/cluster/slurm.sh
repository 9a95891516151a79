#!/usr/bin/env bash
# Sweeps on a real Slurm. Sets Debian's slurm-wlm and munge up in a folder of its own, with two node daemons on this machine and
# without systemd; runs 200 trials by it at 12 and 25 trials a shard; runs them again, kills a node's daemon with its job step and
# a shard's process on the other node in the middle; compares all with one run to the byte; takes everything down. All traffic is
# on loopback; only processes that it has started are ended.
set -euo pipefail
source "$(dirname "$0")/common.sh"
needs sbatch slurmctld slurmd munged
[[ $(id -u) == 0 ]] || lacks "slurmd wants root"

dir=$store/slurm
export SLURM_CONF=$dir/slurm.conf
PATH=$PATH:/usr/sbin
ctld_port=${SLURM_PORT:-26817}
declare -A daemon

# Starts a daemon of ours and keeps its number: start NAME COMMAND ..
start() {
  local name=$1
  shift
  "$@" > "$dir/log/$name.out" 2>&1 < /dev/null &
  daemon[$name]=$!
}

# Ends one and waits: stop NAME [SIGNAL]
stop() {
  local pid=${daemon[$1]:-}
  [[ -n $pid ]] || return 0
  kill "-${2:-TERM}" "$pid" 2> /dev/null || true
  wait "$pid" 2> /dev/null || true
  unset "daemon[$1]"
}

# Jobs first: a node's daemon leaves the steps of its jobs alone when it ends.
take_down() {
  local name
  [[ -z ${daemon[ctld]:-} ]] || scancel --user=root --full 2> /dev/null || true
  for _ in {1..50}; do
    [[ -n ${daemon[ctld]:-} && -n $(squeue --noheader 2> /dev/null) ]] || break
    sleep 0.2
  done
  for name in n1 n2 ctld munge; do stop "$name"; done
}
trap take_down EXIT
trap 'exit 130' INT TERM

start_node() { start "$1" slurmd -D -N "$1"; }

bring_up() {
  local node port=$ctld_port nodes=
  rm -rf "$dir"
  mkdir -p "$dir"/{log,state,spool,munge}
  chmod 755 "$dir/munge"
  head -c 1024 /dev/urandom > "$dir/munge/key"
  chmod 400 "$dir/munge/key"
  start munge munged --foreground --force --socket="$dir/munge/socket" --key-file="$dir/munge/key" \
    --pid-file="$dir/munge/pid" --log-file="$dir/log/munge" --seed-file="$dir/munge/seed"
  for node in n1 n2; do
    port=$((port + 1))
    nodes+="NodeName=$node NodeHostname=$(hostname -s) NodeAddr=127.0.0.1 Port=$port CPUs=1 RealMemory=512"$'\n'
  done
  cat > "$SLURM_CONF" << CONF
ClusterName=weft
SlurmctldHost=$(hostname -s)(127.0.0.1)
SlurmctldPort=$ctld_port
CommunicationParameters=NoCtldInAddrAny,NoInAddrAny
AuthType=auth/munge
AuthInfo=socket=$dir/munge/socket
SlurmUser=root
SlurmdUser=root
StateSaveLocation=$dir/state
SlurmdSpoolDir=$dir/spool/%n
SlurmctldPidFile=$dir/ctld.pid
SlurmdPidFile=$dir/%n.pid
SlurmctldLogFile=$dir/log/ctld
SlurmdLogFile=$dir/log/%n
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides
ReturnToService=2
SlurmdTimeout=10
KillWait=5
JobRequeue=1
$nodes
PartitionName=all Nodes=n1,n2 Default=YES MaxTime=INFINITE State=UP
CONF
  # This plugin touches no control group until it is asked to, unlike the others.
  echo "CgroupPlugin=cgroup/v1" > "$dir/cgroup.conf"
  start ctld slurmctld -D
  start_node n1
  start_node n2
  for _ in {1..150}; do
    [[ $(sinfo --noheader --format='%D %t' 2> /dev/null) == "2 idle" ]] && return
    sleep 0.2
  done
  tail -n 5 "$dir"/log/* >&2
  die "no Slurm within 30 s"
}

# The process of a shard, by its folder: process_of SWEEP SHARD
process_of() {
  local file words
  for file in /proc/[0-9]*/cmdline; do
    words=$(tr '\0' ' ' < "$file" 2> /dev/null) || continue
    if [[ $words == "$weft run "*"--out $1/shards/$2 " ]]; then
      file=${file#/proc/}
      echo "${file%/cmdline}"
      return
    fi
  done
  return 1
}

parent_of() { awk '/^PPid:/ { print $2 }' "/proc/$1/status"; }

# The shard that runs on a node: shard_on NODE
shard_on() { squeue --noheader --nodelist="$1" --states=RUNNING --format=%K | head -n 1; }

# sweep NAME SHARDS: all of it by Slurm, compared with one run.
sweep() {
  rm -rf "$store/$1"
  timed env -C "$store" "$weft" cluster submit "$plan" --on slurm --shards "$2" --out "$1" --wait --quiet > "$store/$1.out"
  mkdir "$store/$1/here"
  env -C "$store/$1/here" "$weft" cluster fetch .. --out result --quiet > /dev/null
  same_bytes "$store/one-2/result" "$store/$1/here/result"
}

# kills NAME SHARDS: a node's daemon with its job step, and a shard's process on the other node, while they run.
kills() {
  local on_n1 on_n2 weft_n1 weft_n2 script step folder=$store/$1
  rm -rf "$folder"
  env -C "$store" "$weft" cluster submit "$plan" --on slurm --shards "$2" --out "$1" | sed -n 's/^job/cluster: job/p' >&2
  until (($(ls -d "$folder"/shards/*/trials/[0-9]* 2> /dev/null | wc -l) >= 60)); do sleep 0.1; done
  until on_n1=$(shard_on n1) && on_n2=$(shard_on n2) && [[ -n $on_n1 && -n $on_n2 ]] &&
    weft_n1=$(process_of "$folder" "$on_n1") && weft_n2=$(process_of "$folder" "$on_n2"); do sleep 0.1; done
  script=$(parent_of "$weft_n2")
  step=$(parent_of "$script")
  kill -KILL "$weft_n1" "$weft_n2" "$script" "$step"
  stop n2 KILL
  say "killed: node n2 with the step of shard $on_n2, and the process of shard $on_n1 on n1"
  env -C "$store" "$weft" cluster status "$1" | tail -n 1 >&2
  until [[ $(sinfo --noheader --nodes=n2 --format=%t) == down* ]]; do sleep 0.5; done
  say "Slurm has noticed that n2 is down; its daemon starts again"
  start_node n2
  # Slurm holds what a failed node ran back for two minutes before it tries it again. Nobody needs to wait.
  until [[ -z $(squeue --noheader --array --format=%r | grep -v BeginTime) ]]; do sleep 0.5; done
  env -C "$store" "$weft" cluster status "$1" | tail -n 1 >&2
  env -C "$store" "$weft" cluster cancel "$1" | sed 's/^/cluster: /' >&2
  env -C "$store" "$weft" cluster submit "$plan" --on slurm --shards "$2" --out "$1" --wait --quiet | sed -n 's/^job/cluster: job/p' >&2
  mkdir "$folder/here"
  env -C "$folder/here" "$weft" cluster fetch .. --out result --quiet > /dev/null
  same_bytes "$store/one-2/result" "$folder/here/result"
  grep -h "runs are there from before" "$folder"/log/* | sort | uniq -c >&2 || true
}

one_run 2
one_ms=$took_ms
say "one run on two cores: $one_ms ms"
timed bring_up
say "Slurm $(sinfo --version | cut -d' ' -f2) is up with two nodes after $took_ms ms"
for shards in 16 8; do
  sweep "slurm-$shards" "$shards"
  say "$((200 / shards)) trials a shard: $took_ms ms, $(((took_ms - one_ms) / 200)) ms for each trial more than one run on two cores"
done
kills slurm-kills 16
take_down
say "all is down"
