#!/usr/bin/env bash
# Builds the deployment from a clean checkout like deploy/Containerfile, and runs it like a container: as an unprivileged
# user, with an empty environment and a single writable folder. Needs root (for user and mounts) and curl.
set -euo pipefail
cd "$(dirname "$0")/.."

work=$(mktemp -d)
service=
trap 'if [ -n "$service" ]; then kill -KILL "$service" 2>/dev/null || true; fi; rm -rf "$work"' EXIT

git clone --quiet --no-hardlinks . "$work/checkout"
# Only the files of the container's build context.
mkdir "$work/context"
(cd "$work/checkout" && sed -n 's/^!//p' .dockerignore | xargs cp -r --parents --target-directory="$work/context")
"$work/context/deploy/build.sh" "$work/app" >"$work/build.log" 2>&1 || { cat "$work/build.log"; exit 1; }
echo "$(du -sm "$work/app" | cut -f1) MB deployed"

for forbidden in src test devnet bench deploy .git node_modules/typescript node_modules/vitest; do
  if [ -e "$work/app/$forbidden" ]; then echo "$forbidden is deployed" >&2; exit 1; fi
done

user=65534
mkdir "$work/data"
chown "$user:$user" "$work/data"
chmod 755 "$work"
# The user may not be allowed to read the folder that Node.js is in.
mkdir "$work/bin"
cp "$(node -p process.execPath)" "$work/bin/node"
environment=(PATH="$work/bin:$PATH" HOST=127.0.0.1 PORT=0 METRICS_PORT=0 INDEX="sqlite:$work/data/hop.db" ASSETS_URL=off EXPLORER_API_URL=off)
for chain in ETHEREUM ARBITRUM OPTIMISM GNOSIS POLYGON NOVA BASE LINEA POLYGONZK; do
  environment+=("RPC_URL_$chain=http://127.0.0.1:1")
done
unprivileged=(setpriv "--reuid=$user" "--regid=$user" --clear-groups --no-new-privs --inh-caps=-all --bounding-set=-all)
command=("${unprivileged[@]}" env -i "${environment[@]}" node --max-semi-space-size=16 dist/src/main.js)

# Runs in a separate mount namespace, where everything except the data folder is read-only.
# shellcheck disable=SC2016 # The inner shell reads its own arguments.
unshare --mount bash -ec '
  data=$1 app=$2; shift 2
  mount --bind "$data" "$data"
  for mounted in / "$(findmnt --noheadings --output TARGET --target "$app")"; do
    mount --options remount,bind,ro "$mounted"
  done
  if touch "$app/written" 2>/dev/null; then echo "the root is not read-only" >&2; exit 1; fi
  cd "$app"
  exec "$@"
' read-only "$work/data" "$work/app" "${command[@]}" >"$work/log" 2>&1 &
service=$!

for _ in $(seq 100); do
  url=$(sed -n 's/^hop-gateway listens on \([^ ]*\).*/\1/p' "$work/log")
  metrics=$(sed -n 's/^hop-gateway serves metrics at //p' "$work/log")
  if [ -n "$url" ] || ! kill -0 "$service" 2>/dev/null; then break; fi
  sleep 0.1
done
if [ -z "$url" ]; then cat "$work/log"; exit 1; fi

for path in /livez /openapi.json /v1/available-routes / /docs; do
  curl --silent --show-error --fail --output /dev/null "$url$path"
  echo "GET $path: 200"
done
for address in "$metrics" "${metrics%/metrics}/livez"; do
  curl --silent --show-error --fail --output /dev/null "$address"
  echo "GET /${address##*/} on the port of the metrics: 200"
done
curl --silent --show-error "$url/readyz" | cut --characters=1-60
test -s "$work/data/hop.db"
if [ "$(ps -o user:20= -p "$service" | tr -d ' ')" = root ]; then echo "it runs as root" >&2; exit 1; fi

kill -TERM "$service"
code=0
wait "$service" || code=$?
service=
echo "SIGTERM: ended with $code"
exit "$code"
