#!/bin/sh
# Calls the service with curl alone.
set -eu
base=${1:-http://127.0.0.1:8000}

# Takes at most five seconds. After 429 and 503, curl retries when the service asks for it (Retry-After). The body of an
# error is printed too, and ends the script.
get() {
  path=$1
  shift
  curl --silent --show-error --fail-with-body --max-time 5 --retry 2 --get "$base$path" "$@"
  echo
}

# Prints the states of transfers as they change, until nothing can change any more: the event `end`, or the status 204.
# Whatever else ends the connection, curl starts again after the last event that arrived.
watch() {
  pipe=$(mktemp -u)
  mkfifo "$pipe"
  id=
  event=
  while [ "$event" != end ]; do
    curl --silent --show-error --fail --retry 2 --no-buffer --write-out 'status: %{http_code}\n' \
      --header "Last-Event-ID: $id" --get "$base/v1/transfers:watch" "$@" >"$pipe" &
    while read -r name value; do
      case $name:$value in
        event::*) event=$value ;;
        id::*) id=$value ;;
        data::*) if [ "$event" = transfer ]; then echo "$value"; fi ;;
        status::204) event=end ;;
      esac
    done <"$pipe"
    # 22: the service rejects the request.
    wait $! || [ $? -ne 22 ]
    if [ "$event" != end ]; then sleep 1; fi
  done
  rm "$pipe"
}

hash=0x2a6e5685b82b1262614ea73a4000775147af693d53e5feeeeebf33910d264ca5

get /v1/available-routes -d token=rETH -d toChain=ethereum
get /v1/quote -d amount=25000000 -d token=USDT -d fromChain=polygon -d toChain=arbitrum -d slippage=0.5
get /v1/quotes -d amount=25000000 -d token=USDT -d fromChain=polygon -d toChain=arbitrum -d toChain=base -d slippage=0.5
get /v1/quote -d amount=25000000 -d token=USDT -d fromChain=polygon -d toChain=arbitrum -d slippage=0.5 -d view=FULL
get /v1/transfer-status -d transferHash=$hash
watch -d transferHash=$hash

# Needs a server with an index: INDEX_REQUIRED without one.
account=0x70997970c51812dc3a010c7d01b50e0d17dc79c8
get /v1/transfers -d account=$account -d token=HOP -d fromChain=arbitrum -d toChain=optimism -d pageSize=20 || true

# USDT has no bridge to Base.
get /v1/quote -d amount=25000000 -d token=USDT -d fromChain=polygon -d toChain=base -d slippage=0.5
