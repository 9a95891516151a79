#!/usr/bin/env bash
# Installs what was built: the program, units, man pages, completions and example configurations.
#
#   scripts/install.sh WEFT PREFIX [DESTDIR]      DESTDIR: a tree to put it into in the place of /, as packages are made
#
# Of the simulator alone there are no units and examples. `make uninstall` takes away what this put there, and nothing else.
set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)
[[ $# -ge 2 ]] || { echo "usage: $0 WEFT PREFIX [DESTDIR]" >&2; exit 2; }
weft=$1 prefix=${2%/} root=${3:-}
[[ -x $weft ]] || { echo "install: no binary at $weft; build it: make build" >&2; exit 1; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

install -D -m 755 "$weft" "$root$prefix/bin/weft"
strip --strip-unneeded "$root$prefix/bin/weft"

"$weft" man "$work/man"
for page in "$work"/man/*.1; do gzip -9n "$page"; install -D -m 644 "$page.gz" "$root$prefix/share/man/man1/$(basename "$page").gz"; done
completion() { "$weft" completions "$1" > "$work/completion"; install -D -m 644 "$work/completion" "$root$prefix/share/$2"; }
completion bash bash-completion/completions/weft
completion zsh zsh/vendor-completions/_weft
completion fish fish/vendor_completions.d/weft.fish
install -D -m 644 "$here/contrib/debian/copyright" "$root$prefix/share/doc/weft/copyright"

"$weft" node --help > /dev/null 2>&1 || exit 0
for unit in "$here"/contrib/systemd/*.{service,mount}; do
  sed "s#/usr/bin/weft#$prefix/bin/weft#" "$unit" > "$work/unit"
  install -D -m 644 "$work/unit" "$root$prefix/lib/systemd/system/$(basename "$unit")"
done
install -D -m 644 "$here/contrib/systemd/weft.sysusers.conf" "$root$prefix/lib/sysusers.d/weft.conf"

install -d -m 711 "$root/etc/weft"
for daemon in agent directory switch tor vtep rbridge; do
  "$weft" node "$daemon" --print-example > "$work/example"
  install -D -m 644 "$work/example" "$root/etc/weft/examples/$daemon.toml"
done

for file in "$here"/contrib/prometheus/*.yml "$here"/contrib/grafana/*.json; do
  install -D -m 644 "$file" "$root$prefix/share/doc/weft/$(basename "$(dirname "$file")")/$(basename "$file")"
done
