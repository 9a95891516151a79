#!/usr/bin/env bash
# What recording a replay costs in a shuffle of 75 servers: the recorder's own CPU time over that of the machine, and the machine's with it over
# without it, in turns, which spreads by ten percent and more. Needs root and a machine that does nothing else.
#
#   scripts/pages/recording.sh WEFT [PAIRS]       five pairs, 25 s each run
set -euo pipefail
cd "$(dirname "$0")/../.."
weft=$(realpath "$1")
pairs=${2:-5}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

for replay in true false; do
  sed -e '0,/^id = .*/s##id = "test/recording"#' -e 's/^repetitions = .*/repetitions = 1/' -e 's/^bytes_per_flow = "1408 kB".*/bytes_per_flow = "470 kB"/' \
    -e "s/^interval = \"250 ms\"/interval = \"250 ms\"\nreplay = $replay/" plans/vl2/fig09-shuffle.toml > "$work/$replay.toml"
done
question="select sum((1 - idle_ratio) * took) as busy_s from (
  select idle_ratio, (time_ns - lag(time_ns) over (partition by core order by time_ns)) / 1e9 as took from cpu)"
own="select coalesce(max(value), 0) * (select max(time_ns) / 1e9 from cpu) as own_s from facts where name = 'replay_cpu_ratio'"
for pair in $(seq "$pairs"); do
  order=(true false)
  ((pair % 2)) || order=(false true)
  for replay in "${order[@]}"; do
    # What the claims come to is another matter.
    "$weft" run "$work/$replay.toml" --engine lab --out "$work/$replay-$pair" --quiet > /dev/null 2>&1 || [[ $? == 3 || $? == 5 ]]
    "$weft" query "$work/$replay-$pair" "$question" -o csv | tail -1 >> "$work/$replay.csv"
  done
  "$weft" query "$work/true-$pair" "$own" -o csv | tail -1 >> "$work/own.csv"
  paste -d' ' "$work/true.csv" "$work/false.csv" "$work/own.csv" |
    awk 'END { printf "with %.2f s of CPU, %.3f s of them the recorder'"'"'s, without %.2f s: %.3f\n", $1, $3, $2, $1 / $2 }'
done
paste -d' ' "$work/true.csv" "$work/own.csv" | awk '{ print $1 / ($1 - $2) }' | sort -n | awk '{ all[NR] = $1 }
  END { printf "with the recorder over without what it used itself: median %.4f (%.4f .. %.4f)\n", (all[int((NR + 1) / 2)] + all[int(NR / 2) + 1]) / 2, all[1], all[NR] }'
paste -d' ' "$work/true.csv" "$work/false.csv" | awk '{ print $1 / $2 }' | sort -n | awk '{ all[NR] = $1 }
  END { printf "median of %d pairs: %.3f (%.3f .. %.3f); wanted: at most 1.02\n", NR, (all[int((NR + 1) / 2)] + all[int(NR / 2) + 1]) / 2, all[1], all[NR] }'
