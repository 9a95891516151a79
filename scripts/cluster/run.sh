#!/usr/bin/env bash
# All of this folder: GNU parallel, Slurm, Kubernetes on paper.
set -euo pipefail
source "$(dirname "$0")/common.sh"

"$repository/scripts/deps.sh" build cluster
(cd "$repository" && "${CARGO:-cargo}" build --release --locked --package weft)
for part in parallel slurm kubernetes; do "$scripts/$part.sh"; done
say "$((SECONDS / 60)) min $((SECONDS % 60)) s"
