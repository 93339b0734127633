#!/usr/bin/env bash
# Creates the folder that is deployed: only what the service needs at run time. Requires Node.js and npm; also Python, make
# and a C++ compiler if no hash of the SQLite driver's prebuilt binary is known (packaging/sqlite.js).
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
node packaging/sqlite.js "$folder"
node packaging/licences.js "$folder"
node packaging/sbom.js >"$folder/sbom.cdx.json"

# The sources of the SQLite driver are not needed once it is built.
rm -rf "$folder"/node_modules/better-sqlite3/{deps,src} "$folder/.npmrc"
