# shellcheck shell=bash
# Sourced by run.sh: results become a table, printed and, where there are some of every kernel, written to docs/kernels.md. Wants
# common.sh; `results` is the folder with each kernel's rows, and when and of which commit they are. `unexpected` becomes 1 if a
# failure is not known.

rows=(objects frames vl2 trill vxlan vtep vtep-xdp late bed plan docs-vl2 docs-rbridge docs-vtep cards)
declare -A titles=(
  [objects]='eBPF objects'
  [frames]='frame tests'
  [vl2]='lab: VL2, four servers'
  [trill]='lab: TRILL, six RBridges'
  [vxlan]='lab: kernel VXLAN'
  [vtep]='two `weft node vtep`'
  [vtep-xdp]='the same, `--hook xdp`'
  [late]='links that are late: delay, jitter, order'
  [bed]="demo's bed: 85 nodes"
  [plan]='a plan in the lab engine'
  [docs-vl2]='docs/vl2.md, command by command: six machines'
  [docs-rbridge]='docs/rbridge.md: four machines'
  [docs-vtep]='docs/vtep.md: two machines, the kernel at the far end'
  [cards]='two RBridges on virtio cards, 1000 stations, native and generic XDP'
)
# shellcheck disable=SC2034
unexpected=0

# field KERNEL ROW NUMBER
field() { awk -F'|' -v row="$2" -v n="$3" '$1 == row { print $n }' "$results/$1.rows" 2> /dev/null; }

# known ROW KERNEL: why and what instead, or nothing.
known() {
  sed 's/#.*//' "$scripts/known.txt" | awk -F' *[|] *' -v row="$1" -v kernel="$2" \
    '$1 == row && $2 == kernel { print $3 ". Instead: " $4 }'
}

# cell KERNEL ROW: what stands in the table; what is not ok gets a note of its own below it.
cell() {
  local state detail why
  state=$(field "$1" "$2" 2)
  detail=$(field "$1" "$2" 3)
  why=$(known "$2" "$1")
  if [[ $state == ok ]]; then
    text="ok: $detail"
    [[ -z $why ]] || say "$1: $2 works now; delete its line in scripts/kernels/known.txt"
    return
  fi
  [[ $state != none ]] || { text="- ($detail)"; return; }
  notes+=("${why:-**unexpected**: ${detail:-nothing came out, see target/kernels/results/$1.log}}")
  text="no [${#notes[@]}]"
  # shellcheck disable=SC2034
  [[ $why ]] || unexpected=1
}

table() {
  local kernel row text line
  line='| |'
  for kernel in "$@"; do line+=" $(title "$kernel") |"; done
  echo "$line"
  line='| --- |'
  for kernel in "$@"; do line+=' --- |'; done
  echo "$line"
  for row in "${rows[@]}"; do
    line="| ${titles[$row]} |"
    for kernel in "$@"; do cell "$kernel" "$row"; line+=" $text |"; done
    echo "$line"
  done
  [[ ${#notes[@]} == 0 ]] || echo
  for line in "${!notes[@]}"; do echo "$((line + 1)). ${notes[line]}"; done
}

title() {
  local release
  release=$(cat "$results/$1.release" 2> /dev/null || echo 'did not come up')
  case $1 in
    running) echo "the machine's own: $release, $(cat "$results/$1.when")" ;;
    *) echo "$1 ($(suite_of "$1")): $release, $(cat "$results/$1.when")" ;;
  esac
}

# judge_and_print KERNEL..: those that were tried now.
judge_and_print() {
  local notes=() file=$results/table.md document=$repository/docs/kernels.md kernel
  table "$@" > "$file"
  cat "$file"
  for kernel in running "${all_kernels[@]}"; do
    [[ -e $results/$kernel.rows ]] || { say "docs/kernels.md is as it was: it is written once every kernel has results"; return; }
  done
  notes=()
  table running "${all_kernels[@]}" > "$file"
  local part="<!-- table: written by make kernels -->"
  awk -v part="$part" -v file="$file" -v accel="$(accel)" '
    $0 == part && !inside { inside = 1; print; print ""
                            print "Each kernel with the day and the commit of its trial; virtual machines by " accel ":"; print ""
                            while ((getline line < file) > 0) print line; print ""; next }
    $0 == "<!-- end of table -->" { inside = 0 }
    !inside' "$document" > "$document.new"
  mv "$document.new" "$document"
}
