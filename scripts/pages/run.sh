#!/usr/bin/env bash
# Opens every kind of page that weft writes in a headless Chromium, on a wide screen and on a telephone: none may scroll sideways,
# and what came out must be on the first screen. Replays are looked at more closely, by replay.py.
#
#   scripts/pages/run.sh WEFT                       checks; pages and pictures stay in target/pages
#   scripts/pages/run.sh WEFT --pictures FOLDER     the pictures of the README: a replay, and the report of the run that it shows
set -euo pipefail
cd "$(dirname "$0")/../.."
weft=$(realpath "$1")
. scripts/pages/browser.sh

if [[ ${2:-} == --pictures ]]; then
  "$weft" sim web-search-dctcp --out "$profile/run" --quiet > /dev/null
  picture 860 1000 "$profile/run/report.html" "$3/report.png"
  "$weft" sim scripts/pages/shuffle-75.toml --out "$profile/shuffle" --quiet > /dev/null
  scripts/pages/replay.py "$profile/shuffle/replay-1.html" --flow 2312 --height 740 --picture "$3/replay.png"
  for file in "$3"/{replay,report}.png; do echo "$file: $(($(stat -c %s "$file") / 1000)) kB"; done
  exit
fi

out=target/pages
rm -rf "$out"
mkdir -p "$out"
plans=crates/cli/tests/cli/plans

echo "pages: running what makes them" >&2
for seed in 1 2; do
  "$weft" run $plans/small-shuffle.toml --engine sim --seed $seed --out "$out/shuffle-$seed" --quiet > /dev/null
done
"$weft" run $plans/small-sweep.toml --engine sim --out "$out/sweep" --quiet > /dev/null
for plan in vl2/failures vl2/cost-scale vl2/fig02-flow-sizes; do
  # A claim that fails is a page, too.
  "$weft" run "$plan" --quick --out "$out/${plan#vl2/}" --quiet > /dev/null || [[ $? == 3 || $? == 5 ]]
done
"$weft" report "$out"/shuffle-1 "$out"/shuffle-2 > /dev/null
"$weft" sim leaf-spine-small --workload web-search --load 60% --out "$out/scenario" --quiet > /dev/null
"$weft" bench sim --rounds 1 --jobs r1w --out "$out/bench" --quiet > /dev/null 2>&1 || [[ $? == 3 ]]

"$weft" run vl2/fig13-convergence --quick --engine sim --out "$out/convergence" --quiet > /dev/null || [[ $? == 3 || $? == 5 ]]
"$weft" run leaf-spine/incast-buffers --quick --out "$out/incast" --quiet > /dev/null || [[ $? == 3 || $? == 5 ]]
"$weft" sim scripts/pages/shuffle-75.toml --out "$out/shuffle-75" --quiet > /dev/null
"$weft" sim scripts/pages/leaf-spine-2000.toml --out "$out/leaf-spine-2000" --quiet > /dev/null

failed=0
scripts/pages/replay.py "$out"/{shuffle-1,convergence,shuffle-75,leaf-spine-2000}/replay-1.html "$out"/incast/replay-8.html || failed=1
for size in "1280 820" "400 800"; do
  read -r width height <<< "$size"
  scripts/pages/replay.py "$out"/convergence/replay-1.html --at 3700000000 --width "$width" --height "$height" --picture "$out/convergence-$width.png"
  scripts/pages/replay.py "$out"/incast/replay-8.html --dark --width "$width" --height "$height" --picture "$out/incast-dark-$width.png"
done
while read -r page; do
  for width in 1280 400; do
    said=$(measured $width "$page")
    number() { sed -n "s/.*\"$1\":\([0-9]*\).*/\1/p" <<< "$said"; }
    verdict=ok
    [[ $(number width) == "$width" ]] || verdict="FAIL: not shown at $width pixels"
    [[ $(number page) -le $width ]] || verdict="FAIL: takes $(number page) pixels"
    [[ $(number headline) -le 700 ]] || verdict="FAIL: what came out ends at $(number headline) pixels"
    [[ $verdict == ok ]] || failed=1
    printf '%-52s %5d px  %s\n' "${page#target/pages/}" $width "$verdict"
    picture $width 3000 "$page" "${page%.html}-$width.png"
  done
done < <(find "$out" -name '*.html' | sort)
exit $failed
