#!/usr/bin/env bash
# Looks for what ordinary tests have not met yet: run.sh MINUTES [PART..]
#   seeds    every simulator with fresh seeds
#   faults   schedules of faults on real etcd clusters, with fresh seeds
#   fuzz     libFuzzer on every target of fuzz/
# All of them without PART. `fuzz` has all CPUs but one; the others share that one, one after the other. Building comes on top.
#
# What is found stays where `make test` meets it from then on: a file in fuzz/corpus/TARGET, a seed in fuzz/seeds/SIMULATOR.txt.
# Exit code 1 at a finding, 130 after Ctrl-C. Logs are in target/soak/log, what fuzzers learnt in target/soak/corpus, and every
# run's numbers in target/soak/history.tsv.
set -euo pipefail
cd "$(dirname "$0")/../.."

die() { echo "soak: $*" >&2; exit 2; }
say() { echo "soak: $*"; }

minutes=${1:-}; shift || true
[[ $minutes =~ ^[1-9][0-9]*$ ]] || die "say for how long: make soak MINUTES=10"
parts=("$@")
[[ ${#parts[@]} -gt 0 ]] || parts=(seeds faults fuzz)
for part in "${parts[@]}"; do case $part in seeds | faults | fuzz) ;; *) die "\`$part\` is none of seeds, faults, fuzz" ;; esac; done
is_wanted() { [[ " ${parts[*]} " == *" $1 "* ]]; }

store=$PWD/target/soak
work=$store/run-$$
mkdir -p "$store/log" "$store/corpus" "$work/tmp" "$work/found" "$work/now"
: > "$work/results"
seconds=$((minutes * 60))
lanes=() interrupted=''

# Simulators: name, the test's source, the test.
simulators=(
  "directory-system crates/control/tests/system.rs properties_hold_for_every_seed"
  "directory-agents crates/control/tests/harness.rs properties_hold_for_every_seed"
  "isis-campus crates/control/tests/isis/main.rs campus::after_quiet_everybody_holds_the_oracles_routes"
  "isis-campus-keys crates/control/tests/isis/main.rs campus::after_quiet_everybody_holds_the_oracles_routes_with_keys_too"
  "isis-campus-groups crates/control/tests/isis/main.rs campus::after_quiet_everybody_prunes_the_groups_that_the_oracle_prunes"
  "isis-shared crates/control/tests/isis/main.rs shared_campus::after_quiet_everybody_is_what_the_oracle_says"
  "isis-shared-keys crates/control/tests/isis/main.rs shared_campus::after_quiet_everybody_is_what_the_oracle_says_with_keys_too"
  "isis-shared-groups crates/control/tests/isis/main.rs shared_campus::after_quiet_everybody_prunes_the_groups_that_the_oracle_prunes"
  "isis-shared-restart crates/control/tests/isis/main.rs shared_restart::nobody_notices_a_restart_in_campuses_with_shared_links"
  "isis-merge crates/control/tests/isis/main.rs merge::two_campuses_become_one_and_part_again"
  "isis-merge-shared crates/control/tests/isis/main.rs merge::two_campuses_with_shared_links_become_one_and_part_again"
  "isis-parts crates/control/tests/isis/main.rs merge::a_campus_and_its_shared_links_fall_into_parts_and_heal"
  "vtep-settings crates/control/tests/vtep.rs the_steps_lead_from_any_settings_to_any_others_and_touch_nothing_else"
  "vtep-resolver crates/control/tests/vtep_resolver.rs seeded_histories_leak_nothing_answer_everything_and_settle"
  "tcp crates/sim/tests/tcp/main.rs adversary::everything_arrives_whatever_the_seed"
  "network crates/sim/tests/faults.rs books_balance_and_flows_complete_whatever_the_seed"
)
schedules="etcd-faults crates/node/tests/schedules/main.rs no_acknowledged_update_is_lost_whatever_the_schedule"

# Ends all lanes, and waits until they have ended.
end_lanes() {
  [[ ${#lanes[@]} -eq 0 ]] || kill -TERM "${lanes[@]}" 2> /dev/null || true
  wait
}

finish() {
  trap '' INT TERM
  end_lanes
  rm -rf "$work"
}
trap finish EXIT
trap 'interrupted=yes' INT TERM

# In a lane, which is told to end: so does what it runs. etcd dies with the test that started it, namespaces have no names.
in_lane() {
  child=''
  trap - EXIT
  trap '[[ -z $child ]] || kill "$child" 2> /dev/null || true; wait; exit 143' TERM
}
run() {
  "$@" &
  child=$!
  wait "$child"
}

# result PART WHAT COUNT UNIT SECONDS FINDING
result() {
  printf '%s\t%s\t%s\t%s\t%s\t%s\n' "$@" >> "$work/results"
  printf '%s\t%s\t%s\t%s\t%s\t%s\t%s\n' "$(date -u +%FT%TZ)" "$@" >> "$store/history.tsv"
}

# Test executables by their source, one `SOURCE EXECUTABLE` a line.
build_tests() {
  local wanted=() name source _test
  for line in "${simulators[@]}" "$schedules"; do
    read -r name source _test <<< "$line"
    wanted+=(--test "$(basename "${source%/main.rs}" .rs)")
  done
  "${CARGO:-cargo}" test --release --locked --workspace "${wanted[@]}" --no-run --message-format=json > "$work/built"
  sed -n "s|.*\"src_path\":\"$PWD/\([^\"]*\)\".*\"executable\":\"\([^\"]*\)\".*|\1 \2|p" "$work/built" > "$work/tests"
}

fresh_seed() { echo $((RANDOM << 15 | RANDOM)); }

# live PART SECONDS NAME SOURCE TEST: a simulator, from a fresh seed on.
live() {
  local part=$1 limit=$2 name=$3 source=$4 test=$5 first executable log=$store/log/$3.log began=$SECONDS rc=0 finding='' seed count
  executable=$(sed -n "s|^$source ||p" "$work/tests")
  first=$(fresh_seed)
  echo "$name from seed $first" > "$work/now/$part"
  WEFT_SEEDS="$first.." WEFT_SEEDS_S=$limit WEFT_SEEDS_KEEP=1 TMPDIR=$work/tmp \
    run "$executable" --exact "$test" --nocapture > "$log" 2>&1 || rc=$?
  count=$(sed -n "s/^$name: \([0-9]*\) seeds in .*/\1/p" "$log")
  if [[ $rc -ne 0 ]]; then
    seed=$(sed -n 's/^seed \([0-9]*\) failed.*/\1/p' "$log" | tail -n 1)
    count=$((${seed:-$first} - first))
    finding="seed ${seed:-unknown}"
    if [[ -n $seed ]]; then
      finding+="; WEFT_SEEDS=$seed..$((seed + 1)) cargo test --release --workspace --test $(basename "${source%/main.rs}" .rs) ${test##*::}"
    else
      finding+="; see $log"
    fi
  fi
  if [[ $part == faults ]]; then
    result "$part" "$name" "$(grep -c '^seed [0-9]*, fault ' "$log" || true)" faults $((SECONDS - began)) "$finding"
  else
    result "$part" "$name" "${count:-0}" seeds $((SECONDS - began)) "$finding"
  fi
}

# fuzz TARGET SECONDS
fuzz() {
  local target=$1 limit=$2 log=$store/log/$1.log began=$SECONDS rc=0 finding='' artifact kept count more=() length=2048
  case $target in
    fabric_yaml) more=(fabrics) length=4096 ;;
    plan_toml) more=(plans) length=4096 ;;
    daemon_settings | session_lines) length=4096 ;;
  esac
  mkdir -p "$store/corpus/$target"
  run "$fuzzers/$target" "-max_len=$length" "-max_total_time=$limit" -timeout=20 -rss_limit_mb=2048 -print_final_stats=1 \
    "-artifact_prefix=$work/found/$target-" "$store/corpus/$target" "fuzz/corpus/$target" "${more[@]}" > "$log" 2>&1 || rc=$?
  if [[ $rc -ne 0 && $rc -ne 72 ]]; then
    artifact=$(find "$work/found" -name "$target-crash-*" -o -name "$target-timeout-*" -o -name "$target-oom-*" | head -n 1)
    if [[ -n $artifact ]]; then
      kept=${artifact##*/"$target"-}
      kept=fuzz/corpus/$target/${kept:0:$((${#kept} - 30))}
      cp "$artifact" "$kept"
      finding="$kept; $fuzzers/$target $kept, or cargo test --release --workspace --test replay"
    else
      finding="see $log"
    fi
  fi
  count=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log" | tail -n 1)
  result fuzz "$target" "${count:-0}" executions $((SECONDS - began)) "$finding"
}

fuzz_lane() {
  local lane=$1 limit=$2 target; shift 2
  in_lane
  for target in "$@"; do
    echo "$target" > "$work/now/fuzz-$lane"
    fuzz "$target" "$limit"
  done
  rm -f "$work/now/fuzz-$lane"
}

# rest_lane SECONDS: of each part that is no fuzzing.
rest_lane() {
  local limit=$1 line
  in_lane
  if is_wanted seeds; then
    for line in "${simulators[@]}"; do
      # shellcheck disable=SC2086
      live seeds $((limit / ${#simulators[@]})) $line
    done
    rm -f "$work/now/seeds"
  fi
  # shellcheck disable=SC2086
  if is_wanted faults; then live faults "$limit" $schedules; fi
}

say "building"
if is_wanted seeds || is_wanted faults; then build_tests; fi
if is_wanted fuzz; then fuzzers=$(scripts/soak/fuzzers.sh); fi
[[ -z $interrupted ]] || exit 130

cpus=$(nproc) rest=0
for part in seeds faults; do if is_wanted $part; then rest=$((rest + 1)); fi; done
began=$SECONDS
if is_wanted fuzz; then
  fuzz_lanes=$((cpus > 1 && rest > 0 ? cpus - 1 : cpus))
  targets=(fuzz/corpus/*/)
  targets=("${targets[@]%/}")
  targets=("${targets[@]##*/}")
  for ((lane = 0; lane < fuzz_lanes; lane++)); do
    mine=()
    for ((index = lane; index < ${#targets[@]}; index += fuzz_lanes)); do mine+=("${targets[index]}"); done
    [[ ${#mine[@]} -gt 0 ]] || continue
    fuzz_lane "$lane" $((seconds / ${#mine[@]} > 0 ? seconds / ${#mine[@]} : 1)) "${mine[@]}" &
    lanes+=($!)
  done
fi
if ((rest > 0)); then
  rest_lane $((seconds / rest)) &
  lanes+=($!)
fi

# Until all lanes have ended, or somebody has enough.
running() { local lane; for lane in "${lanes[@]}"; do if kill -0 "$lane" 2> /dev/null; then return 0; fi; done; return 1; }
shown=0
while running && [[ -z $interrupted ]]; do
  sleep 1 || true
  if ((SECONDS - began >= shown)); then
    now=$(cat "$work"/now/* 2> /dev/null | paste -sd ',' | sed 's/,/, /g' || true)
    say "$((SECONDS - began)) of $seconds s: ${now:-starting}; $(wc -l < "$work/results") parts done, $(cut -f 6 "$work/results" | grep -c . || true) findings"
    shown=$((SECONDS - began + 15))
  fi
done
[[ -z $interrupted ]] || end_lanes
wait

findings=$(cut -f 6 "$work/results" | grep -c . || true)
printf '\n%-8s %-22s %14s %-12s %8s  %s\n' part what count '' seconds finding
while IFS=$'\t' read -r part what count unit took finding; do
  printf '%-8s %-22s %14s %-12s %8s  %s\n' "$part" "$what" "${count:-0}" "$unit" "$took" "${finding:--}"
done < "$work/results"
say "$((SECONDS - began)) s on $cpus CPUs, $findings findings"
[[ -z $interrupted ]] || exit 130
((findings == 0))
