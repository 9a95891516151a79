#!/usr/bin/env bash
# Sweeps by GNU parallel, two shards at a time, beside one run on one core: bytes equal, and how much faster.
set -euo pipefail
source "$(dirname "$0")/common.sh"
needs parallel

one_run 1
serial_ms=$took_ms
rm -rf "$store/parallel"
timed env -C "$store" "$weft" cluster submit "$plan" --on parallel --jobs 2 --out parallel --wait --quiet > "$store/parallel.out"
mkdir "$store/parallel/here"
env -C "$store/parallel/here" "$weft" cluster fetch .. --out result --quiet > /dev/null
same_bytes "$store/one-1/result" "$store/parallel/here/result"
say "two jobs: $took_ms ms, one run on one core: $serial_ms ms, ratio $(awk "BEGIN { printf \"%.2f\", $took_ms / $serial_ms }"); load $(cut -d' ' -f1 /proc/loadavg) (at most 0.6 is wanted of an idle machine)"
