#!/usr/bin/env bash
# Every daemon on one machine, and Prometheus beside them with the configuration of contrib/prometheus. Run inside namespaces of its own:
#
#   unshare --net --mount --pid --fork --kill-child --mount-proc --propagation private scripts/metrics/machine.sh WEFT DIR
#
# Leaves in DIR: DAEMON.log (JSON), DAEMON.metrics, bundle/ (what `weft bundle` wrote), secrets (one a line, none of which may be in it),
# targets.json, and for the Nth line of DIR/queries N.json, what Prometheus answers. All processes end with this one.
set -euo pipefail
weft=$1 dir=$2
here=$(cd "$(dirname "$0")" && pwd)
declare -A port=([agent]=9541 [directory]=9542 [switch]=9543 [tor]=9544 [vtep]=9545 [rbridge]=9546)
die() { echo "metrics: $*" >&2; exit 1; }

# Waits until a command succeeds.
until_ok() {
  local what=$1; shift
  for _ in $(seq 600); do ! "$@" > /dev/null 2>&1 || return 0; sleep 0.1; done
  die "not within a minute: $what"
}

mount -t tmpfs -o mode=755 tmpfs /run
mkdir /run/etc /run/etc.work
mount -t overlay overlay -o lowerdir=/etc,upperdir=/run/etc,workdir=/run/etc.work /etc
rm -rf /etc/weft
mkdir /etc/weft
ip link set lo up
for wire in eth0 swp1 swp2 up0 vm0 rb0 rb1; do
  ip link add "$wire" type veth peer name "$wire-far"
  ip link set "$wire-far" up
  ip link set "$wire" up
done
ip link set eth0 mtu 1500
for end in vm0 vm0-far; do ip link set "$end" mtu 1450; done
for end in rb0 rb0-far; do ip link set "$end" mtu 2000; done
ip address add 20.0.0.1/8 dev eth0
for address in 10.64.0.1 10.1.0.1; do ip address add "$address/32" dev lo; done
ip address add 10.9.0.1/24 dev up0

# Keys and passwords, as people have them. Each is a line of DIR/secrets, and so is what must not be seen of files in PEM.
umask 077
key() { head -c "$2" /dev/urandom | od -An -tx1 -v | tr -d ' \n' > "/etc/weft/$1"; }
key directory.key 16
"$weft" directory key /etc/weft/directory.key --la 10.64.0.1 --service 0 --write /etc/weft/agent.key > /dev/null
"$weft" directory key /etc/weft/directory.key --la 10.1.0.1 --write /etc/weft/tor.key > /dev/null
"$weft" directory certs /etc/weft/tls > /dev/null
key campus.hex 32
echo "1 hmac-sha-256 $(cat /etc/weft/campus.hex)" > /etc/weft/campus.keys
echo "correct horse" > /etc/weft/etcd.password
{
  cat /etc/weft/*.key /etc/weft/campus.hex /etc/weft/etcd.password | sed 's/^1 hmac-sha-256 //' | fold -w 64 | sed '/^$/d'
  sed '/^-----/d' /etc/weft/tls/*.key
  echo hunter22
} | sed -E 's/([0-9a-f]{32})([0-9a-f]{32})/\1\n\2/g' > "$dir/secrets"
rm /etc/weft/campus.hex

write() { { cat; echo; } > "/etc/weft/$1.toml"; }
write directory << END
listen = "127.0.0.1:5300"
http_listen = "127.0.0.1:${port[directory]}"
admin_socket = "/run/weft/directory/admin.sock"
store = { redb = "$dir/table.redb" }
aa_block = "20.0.0.0/8"
key_file = "/etc/weft/directory.key"
tls_listen = "127.0.0.1:5310"
[tls]
ca = "/etc/weft/tls/ca.pem"
cert = "/etc/weft/tls/server.pem"
key = "/etc/weft/tls/server.key"
END
# Settings of a server that never started: a password where none belongs, and one in a file.
write other << END
listen = "127.0.0.1:5301"
password = "hunter22"
[store.etcd]
endpoints = ["https://root:hunter22@127.0.0.1:2379"]
password_file = "/etc/weft/etcd.password"
END
write agent << END
interface = "eth0"
aa = "20.0.0.1"
aa_block = "20.0.0.0/8"
la = "10.64.0.1"
own_tor_la = "10.1.0.1"
gateway_mac = "02:56:4c:32:00:01"
underlay_mtu = 1540
directory_servers = ["127.0.0.1:5300"]
key_file = "/etc/weft/agent.key"
http_listen = "127.0.0.1:${port[agent]}"
END
write switch << END
tier = "tor"
ports = ["swp1"]
host_ports = ["swp2"]
own_las = ["10.1.0.1"]
pin_dir = "/run/weft/bpf/switch"
http_listen = "127.0.0.1:${port[switch]}"
END
write tor << END
la = "10.1.0.1"
directory_servers = ["127.0.0.1:5300"]
key_file = "/etc/weft/tor.key"
pin_dir = "/run/weft/bpf/switch"
http_listen = "127.0.0.1:${port[tor]}"
END
write vtep << END
local = "10.9.0.1"
uplink = ["up0"]
peers = ["10.9.0.2"]
http_listen = "127.0.0.1:${port[vtep]}"
[[vni]]
id = "100-109"
[[port]]
interface = "vm0"
vni = 100
END
write rbridge << END
name = "s1"
xdp = "generic"
http_listen = "127.0.0.1:${port[rbridge]}"
[authentication]
key_file = "/etc/weft/campus.keys"
[[port]]
interface = "rb0"
kind = "p2p"
[[port]]
interface = "rb1"
kind = "access"
vlan = 10
END

export WEFT_LOG_FORMAT=json
for daemon in directory switch tor agent vtep rbridge; do
  "$weft" node "$daemon" --config "/etc/weft/$daemon.toml" 2> "$dir/$daemon.log" &
  until_ok "$daemon is healthy; $(cat "$dir/$daemon.log")" curl -fsS "http://127.0.0.1:${port[$daemon]}/healthz"
done
# An AA that nobody has, so that there is something to count.
ping -c 1 -W 1 20.0.0.9 > /dev/null || true
for daemon in "${!port[@]}"; do
  curl -fsS "http://127.0.0.1:${port[$daemon]}/readyz" > "$dir/$daemon.ready"
  curl -fsS "http://127.0.0.1:${port[$daemon]}/metrics" > "$dir/$daemon.metrics"
done
# A daemon that does not start says so in the same form.
! "$weft" node vtep --config /etc/weft/vtep.toml 2> "$dir/refused.log" || die "two VTEPs on one socket"

# An archive; and none where somebody asks to stop, here while the journal is read. Its last lines say a secret, which no daemon would.
mkdir "$dir/bin" "$dir/bundle" "$dir/nothing"
printf '#!/bin/sh\n%s\n' 'echo "$*: $(cat /etc/weft/agent.key) correct horse $(cat /etc/weft/tls/server.key)"' > "$dir/bin/journalctl"
chmod +x "$dir/bin/journalctl"
PATH=$dir/bin:$PATH "$weft" --quiet bundle --out "$dir/bundle.tar.gz" > /dev/null
[[ $(stat -c %a "$dir/bundle.tar.gz") == 600 ]] || die "others may read the archive"
tar -xzf "$dir/bundle.tar.gz" -C "$dir/bundle"
! "$weft" bundle --out "$dir/bundle.tar.gz" 2> "$dir/again.log" || die "an archive was overwritten"
printf '#!/bin/sh\ntouch %s/asked\nexec sleep 60\n' "$dir" > "$dir/bin/journalctl"
(cd "$dir/nothing" && PATH=$dir/bin:$PATH exec "$weft" bundle) 2> /dev/null &
bundle=$!
until_ok "the journal is asked" test -e "$dir/asked"
kill -INT "$bundle"
code=0
wait "$bundle" || code=$?
[[ $code == 130 ]] || die "an interrupted bundle ended with $code"

command -v prometheus > /dev/null || exit 0
mkdir "$dir/prometheus"
cp "$here"/../../contrib/prometheus/*.yml "$dir/prometheus"
sed -i 's/_interval: 15s/_interval: 1s/' "$dir/prometheus/prometheus.yml"
prometheus --config.file="$dir/prometheus/prometheus.yml" --storage.tsdb.path="$dir/prometheus/data" --log.level=warn \
  --web.listen-address=127.0.0.1:9090 2> "$dir/prometheus.log" &
api=http://127.0.0.1:9090/api/v1
all_up() { curl -fsS "$api/query" --data-urlencode 'query=count(up == 1)' | grep -q '"6"'; }
until_ok "every target is up" all_up
curl -fsS "$api/targets" > "$dir/targets.json"
count=0
while read -r query; do
  curl -sS "$api/query" --data-urlencode "query=$query" > "$dir/$count.json"
  count=$((count + 1))
done < "$dir/queries"
