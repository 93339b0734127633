#!/usr/bin/env bash
# Makes the folder that is deployed: what the service needs to run, and nothing else. Needs Node.js and npm, and Python, make
# and a C++ compiler where the SQLite driver's prebuilt binary cannot be had.
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

# What npm would publish, with its dependencies as the lock file names them.
packed=$(mktemp -d)
trap 'rm -rf "$packed"' EXIT
npm pack --silent --ignore-scripts --pack-destination "$packed" >/dev/null
mkdir -p "$folder"
tar -xzf "$packed"/*.tgz -C "$folder" --strip-components=1 --no-same-owner
cp package-lock.json "$folder"
cd "$folder"
npm ci --omit=dev --ignore-scripts
npm run --silent build:sqlite

# The driver's sources, once it is built.
rm -rf node_modules/better-sqlite3/deps node_modules/better-sqlite3/build/Release/obj*
