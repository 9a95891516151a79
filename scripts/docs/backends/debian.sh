# shellcheck shell=bash
# The one machine is the root tree that debian.sh made, and whoever runs this is in it already. Commands are those of a user who may sudo.

machines_up() { chown someone "$work"; }
machines_down() { :; }

on() {
  local person=(runuser -u someone -- env -i "HOME=/home/someone" "USER=someone" "LANG=C.UTF-8" "TERM=dumb")
  person+=("PATH=/usr/local/bin:/usr/bin:/bin:/usr/local/games:/usr/games" ${CARGO:+"CARGO=$CARGO"})
  timeout 5400 "${person[@]}" bash "$2" < /dev/null
}
