#!/usr/bin/env bash
# Creates the folder that is deployed: only what the service needs at run time. Requires Node.js and npm.
#
#   deploy/build.sh <folder>    then: node <folder>/dist/src/main.js
set -euo pipefail

if [ $# -ne 1 ]; then
  echo "usage: deploy/build.sh <folder>" >&2
  exit 2
fi
folder=$(realpath -m "$1")
if [ -e "$folder" ] && [ -n "$(ls -A "$folder")" ]; then
  echo "$folder is not empty" >&2
  exit 2
fi
cd "$(dirname "$0")/.."

npm ci
npm run --silent build

# The files that npm would publish, with the dependency versions of the lock file. npm pack does not follow the link dist.
packed=$(mktemp -d)
trap 'rm -rf "$packed"' EXIT
mkdir "$packed/package"
cp -RL package.json README.md LICENSE CHANGELOG.md SECURITY.md dist gen proto "$packed/package"
npm pack --silent --ignore-scripts --pack-destination "$packed" "$packed/package" >/dev/null
mkdir -p "$folder"
tar -xzf "$packed"/*.tgz -C "$folder" --strip-components=1 --no-same-owner
cp package-lock.json "$folder"
cp .npmrc "$folder"
(cd "$folder" && npm ci --omit=dev --ignore-scripts)
node packaging/licences.js "$folder"
node packaging/sbom.js >"$folder/sbom.cdx.json"

# The sources of the SQLite driver and its binaries for other platforms are not needed.
driver=$folder/node_modules/@photostructure/sqlite
find "$driver/prebuilds" -mindepth 1 -maxdepth 1 ! -name "$(node -p 'process.platform + "-" + process.arch')" -exec rm -r {} +
rm -rf "$driver/src" "$folder/.npmrc"
