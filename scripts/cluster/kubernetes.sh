#!/usr/bin/env bash
# The YAML that `weft cluster` gives Kubernetes, held against the schemas of its versions by kubernetes-validate (PyPI), and the
# simulator's static binary, the one thing that an image needs, in an empty root.
set -euo pipefail
source "$(dirname "$0")/common.sh"

versions=(1.33 1.34 1.35 1.36 1.37)
venv=$store/venv
[[ -x $venv/bin/kubernetes-validate ]] || {
  python3 -m venv "$venv"
  "$venv/bin/pip" install --quiet --disable-pip-version-check kubernetes-validate
}
submit=("$weft" cluster submit --on kubernetes --claim results --image registry.example/weft:1 --jobs 50 --dry-run)
"${submit[@]}" "$plan" > "$store/job-own-plan.yaml"
"${submit[@]}" leaf-spine/queues --full > "$store/job-plan-of-weft.yaml"
sed 's/{{ name }}/weft-sweep-fetch/; s/{{ \(image\|claim\) }}/"\1"/' "$repository/crates/experiment/src/cluster/fetch.yaml" > "$store/fetch.yaml"
for version in "${versions[@]}"; do
  for file in job-own-plan job-plan-of-weft fetch; do
    "$venv/bin/kubernetes-validate" --strict --no-warn --kubernetes-version "$version" "$store/$file.yaml" > "$store/validate.out" 2>&1 ||
      { cat "$store/validate.out" >&2; die "$file.yaml is not what Kubernetes $version takes"; }
  done
  say "ok: Job, ConfigMap and Pod are what Kubernetes $version takes"
done

static=$("$scripts/static.sh")
root=$store/root
rm -rf "$root"
mkdir -p "$root"
cp "$static" "$root/weft"
cp "$plan" "$root/plan.toml"
chroot "$root" /weft run /plan.toml --shard 1/20 --out /shard --quiet > /dev/null
say "ok: the static binary ($(($(stat -c %s "$static") / 1000000)) MB) has run a shard where there is nothing else"
