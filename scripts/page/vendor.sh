#!/usr/bin/env bash
# Fetches the libraries of the fabric page that scripts/page/vendor.txt names into crates/experiment/src/page/vendor: by npm, at
# their versions, refused unless the registry's digest is the one in that file. Needs npm and openssl. Run again it changes nothing.
#
#   scripts/page/vendor.sh            fetch
#   scripts/page/vendor.sh --check    say whether what is there is what would be fetched
set -euo pipefail
cd "$(dirname "$0")/../.."
vendor=crates/experiment/src/page/vendor
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/vendor"

while read -r package version digest files; do
  tarball=$work/$(cd "$work" && npm pack --silent "$package@$version")
  found=sha512-$(openssl dgst -sha512 -binary "$tarball" | base64 --wrap=0)
  [[ $found == "$digest" ]] || { echo "vendor: $package $version has digest $found, not $digest" >&2; exit 1; }
  mkdir "$work/$package"
  tar --extract --gzip --file "$tarball" --directory "$work/$package" --strip-components=1
  for file in ${files//,/ }; do
    cp "$work/$package/$file" "$work/vendor/$(basename "$file")"
  done
  cp "$work/$package/LICENSE" "$work/vendor/$package.LICENSE"
  echo "$package $version" >&2
done < <(grep -v '^#' scripts/page/vendor.txt)

case ${1:-} in
  --check) diff --recursive "$work/vendor" "$vendor" && echo "vendor: the same" >&2 ;;
  *) rm -rf "$vendor" && cp --recursive "$work/vendor" "$vendor" ;;
esac
