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

get /v1/available-routes -d token=rETH -d toChain=ethereum
get /v1/quote -d amount=25000000 -d token=USDT -d fromChain=polygon -d toChain=arbitrum -d slippage=0.5
get /v1/transfer-status -d transferHash=0x53f632f5c1bfe4e8f46627b8e597af0f161fb14af4cff8ef904cf568fd646073

# USDT has no bridge to Base.
get /v1/quote -d amount=25000000 -d token=USDT -d fromChain=polygon -d toChain=base -d slippage=0.5
