# shellcheck shell=bash
# Sourced: a page of several machines. A block ```sh begins with `# on MACHINE[, MACHINE ..]`; one without is an error, so that nothing
# that looks like a command is left out. Other blocks are configuration or output. The page's script has the machines, the wires and the
# checks, which come before the page's section "Taking it away".

blocks() {
  awk -v dir="$work" -v kind=machines -f "$here/blocks.awk" "$page" || die "$page cannot be run as it is"
  compgen -G "$work/block*.sh" > /dev/null || die "$page has no commands"
}

# The machines of a block.
machines_of() { head -1 "$1" | sed -E 's/^# on //; s/ *\(.*\)//; s/,/ /g'; }

# Runs a block on its machines, one after the other, or on the given one.
run_block() {
  local file=$1 machine
  for machine in ${2:-$(machines_of "$file")}; do
    [[ " $machines " == *" $machine "* ]] || die "$(head -1 "$file"): there is no machine $machine"
    if grep -q '^scp ' "$file"; then
      ! grep -vE '^(#|scp -pr? [^ ]+ root@[a-z0-9]+:[^ ]+$)' "$file" >&2 || die "$file: a block that copies has other commands, too"
      while read -r _ _ from to; do carry "$machine" "$from" "$(sed -E 's/^root@([^:]+):.*/\1/' <<< "$to")" "${to#*:}"; done \
        < <(grep -E '^scp -pr? ' "$file")
    else
      on "$machine" "$file" > "$work/out" 2>&1 || { cat "$work/out" >&2; die "failed on $machine: $(cat "$file")"; }
      [[ ! ${VERBOSE:-} ]] || cat "$work/out"
    fi
  done
}

# Runs a block of the page again: the one for this machine that has this text.
again() {
  local file
  for file in "$work"/block*.sh; do
    if [[ " $(machines_of "$file") " == *" $1 "* ]] && grep -qF -- "$2" "$file"; then run_block "$file" "$1"; return; fi
  done
  die "no block for $1 has: $2"
}

# Runs a line on a machine.
line() { local file; file=$(mktemp "$work/line.XXXXXX"); echo "$2" > "$file"; on "$1" "$file"; }

# Says what was found, and ends where it is not what was wanted.
check() { local what=$1; shift; if "$@"; then echo "ok    $what"; else die "not so: $what"; fi; }

run_page() {
  local file count=0
  for file in "$work"/block*.sh; do run_block "$file"; count=$((count + 1)); done
  echo "ok    $count blocks of $(basename "$page")"
  checks
  for file in "$work"/last*.sh; do [[ -e $file ]] || continue; run_block "$file"; count=$((count + 1)); done
  left
  echo "ok    all $count blocks of $(basename "$page") ran, and nothing is left"
}
