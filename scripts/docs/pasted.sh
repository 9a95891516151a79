# shellcheck shell=bash
# Sourced: a page that is pasted block by block into a shell, in the page's order.
#
# Every command must end with 0; `&&` between commands on a line without `||`, `if`, `while`, `until` or a quotation mark is read as the
# end of a command, so that no failure hides before it. A block is a shell of its own, which begins in the folder where the one before
# ended. What the page prints below a command (`$ COMMAND` in a block ```console) must be its standard output, word for word; a line `...`
# stands for any lines. What has nothing below it is not compared, nor is what goes to standard error (progress, how fast). A comment on the line above a block says what else is so:
#
#   <!-- numbers vary -->      numbers of the output may be others, and as many blanks as it takes before them
#   <!-- bare only: WHY -->    runs in a fresh Debian only (make readme)
#   <!-- not run: WHY -->      is not run
#   <!-- file: NAME -->        the block, of any kind, is a file that the reader saves under this name
#
# Nothing but the programs of a bare Debian and of the packages for building and running weft is found, whatever this machine has.
# `<...>` in a command is for the reader to fill in: PLACEHOLDERS has lines `<text>=value`. Where there is no sudo, root leaves it out.

# For the backend: one machine, without wires.
# shellcheck disable=SC2034
machines=here wires=''

blocks() {
  awk -v dir="$work" -v kind=pasted -f "$here/blocks.awk" "$page" || die "$page cannot be run as it is"
  compgen -G "$work/block*.sh" > /dev/null || die "$page has no commands"
  [[ $BACKEND == debian ]] || only_packages
}

# Makes a folder with the programs of Debian's essential packages, of those of deps/debian.txt for building and running, of all that these
# depend on, and a sudo for root, who needs none.
only_packages() {
  local packages files link
  programs=$work/programs
  mkdir "$programs"
  # shellcheck disable=SC2046
  packages=$(apt-cache depends --installed --recurse --no-recommends --no-suggests --no-conflicts --no-breaks --no-replaces --no-enhances \
    $(dpkg-query -W -f '${Essential} ${Package}\n' | sed -n 's/^yes //p') $(awk '$1 == "build" || $1 == "run" { print $2 }' "$here/../../deps/debian.txt") |
    grep '^[a-z0-9]' | sort -u)
  # An alternative that is not installed has no files.
  # shellcheck disable=SC2086
  files=$(dpkg-query -L $packages 2> /dev/null | grep -E '^(/usr)?/s?bin/[^/]+$' | awk -F/ '!seen[$NF]++') || true
  # Of several programs of one name (awk) /etc/alternatives has the chosen one.
  for link in /usr/bin/* /usr/sbin/*; do
    [[ ! -L $link || $(readlink "$link") != /etc/alternatives/* ]] || ! grep -qx "$(realpath "$link")" <<< "$files" || files+=$'\n'$link
  done
  # shellcheck disable=SC2086
  ln -sf -t "$programs" $files "$weft"
  printf '#!/bin/sh\nexec "$@"\n' > "$programs/sudo"
  chmod 755 "$programs/sudo"
}

# What is run of a block: line n of it is line n + 1.
script_of() {
  echo "cd \"\$(cat '$work/folder')\"; trap 'echo \$LINENO > $work/at' ERR; trap 'pwd > $work/folder' EXIT; set -eE"
  local line
  while IFS= read -r line; do
    [[ $2 == "file: "* || $line =~ (\|\||\'|\"|(^|[ ;])(if|while|until)[ ]|\&[ ]*$) ]] || line=${line// && /; }
    filled_in "$line"
  done < "$1"
}

# A line with what the reader has to fill in.
filled_in() {
  local line=$1 text value
  while IFS='=' read -r text value; do [[ ! $text ]] || line=${line//"$text"/$value}; done <<< "${PLACEHOLDERS:-}"
  printf '%s\n' "$line"
}

# Whether two files of output say the same: same WANT GOT [vary].
same() {
  awk -v vary="${3:-}" '
    function plain(s) { sub(/[ \t\r]+$/, "", s); if (vary) { gsub(/[0-9][0-9.,]*/, "0", s); gsub(/ +/, " ", s); gsub(/--+/, "--", s) } return s }
    function match_from(i, j) {
      if (i > wants) return j > gots
      if (want[i] == "...") return match_from(i + 1, j) || (j <= gots && match_from(i, j + 1))
      return j <= gots && want[i] == got[j] && match_from(i + 1, j + 1)
    }
    FNR == NR { want[++wants] = plain($0); next }
    { got[++gots] = plain($0) }
    END { exit !match_from(1, 1) }' "$1" "$2"
}

# Ends with the place of what went wrong, and what it said.
fails() {
  local place=$1 what=$2
  shift 2
  { echo "docs: $place: $what"; tail -n 60 "$@"; } >&2
  exit 1
}

run_pasted() {
  local file=$1 fence said begin want got line
  { read -r fence; read -r said; } < "$file.head"
  case $said in
    "not run: "*) echo "--    $name:$fence  $said"; return ;;
    "bare only: "*) [[ $BACKEND == debian ]] || { echo "--    $name:$fence  $said"; return; } ;;
  esac
  script_of "$file" "$said" > "$file.run"
  begin=${EPOCHREALTIME/./}
  rm -f "$work/at"
  if ! on here "$file.run" > "$file.out" 2>&1; then
    line=$(cat "$work/at" 2> /dev/null || echo 1)
    # Commands of a block with output write into files of their own.
    # shellcheck disable=SC2046
    fails "$name:$((fence + line - 1))" "failed: $(sed -n "$((line - 1))p" "$file" | sed -E "s/^exec > [^;]*; //")" -q "$file.out" $(compgen -G "$file.out.*")
  fi
  for want in "$file".want.*; do
    [[ -e $want ]] || continue
    line=${want##*.} got=$file.out.${want##*.}
    same "$want" "$got" "$([[ $said != "numbers vary" ]] || echo yes)" ||
      fails "$name:$((fence + line))" "prints something else (- the page, + here)" <(diff -u "$want" "$got" | tail -n +3)
  done
  count=$((count + 1))
  echo "ok    $name:$fence  $(tenths $((${EPOCHREALTIME/./} - begin))) s"
  [[ ! ${VERBOSE:-} ]] || cat "$file.out"
}

tenths() { echo "$(($1 / 1000000)).$(($1 / 100000 % 10))"; }

run_page() {
  local file count=0 begin=${EPOCHREALTIME/./}
  [[ ${FOLDER:-} ]] || mkdir "$work/begins"
  install -m 666 /dev/stdin "$work/folder" <<< "${FOLDER:-$work/begins}"
  for file in "$work"/block*.sh; do run_pasted "$file"; done
  echo "ok    all $count blocks of $name that are for this machine ran, in $(tenths $((${EPOCHREALTIME/./} - begin))) s"
}
