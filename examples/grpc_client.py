"""Calls the service over gRPC, with a deadline and the reason of an error."""

import random
import sys
import time

import grpc
from google.rpc.error_details_pb2 import ErrorInfo
from google.rpc.status_pb2 import Status
from hop.bridge.v1 import bridge_pb2 as hop
from hop.bridge.v1.bridge_pb2_grpc import BridgeServiceStub

try:
    from protovalidate import validate
except ImportError:  # Optional: the service checks every request itself.
    def validate(_request):
        pass

TIMEOUT_SECONDS = 5


def reason_of(error):
    """Returns the service's reason for an error, or None if the service was not reached or not in time."""
    for key, value in error.trailing_metadata() or ():
        if key == "grpc-status-details-bin":
            for detail in Status.FromString(value).details:
                info = ErrorInfo()
                if detail.Unpack(info):
                    return info.reason
    return None


def call(method, request):
    """Checks a request by the rules of the contract before sending it; raises ValidationError if it breaks one."""
    validate(request)
    return method(request, timeout=TIMEOUT_SECONDS)


def watch(bridge, request):
    """Yields the states of transfers as they change, until nothing can change any more. Resumes where a stream ends."""
    failures = 0
    while True:
        kind, pause = None, 0
        try:
            for event in bridge.WatchTransfers(request):  # No timeout: it would end the watch.
                failures = 0
                request.resume_token = event.resume_token
                kind = event.WhichOneof("event")
                if kind != "bookmark":
                    yield event
            if kind != "bookmark":
                return
        except grpc.RpcError as error:
            if error.code() not in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.RESOURCE_EXHAUSTED):
                raise
            failures += 1
            pause = int(dict(error.trailing_metadata() or ()).get("retry-after", 0))
        time.sleep(pause + min(2**failures, 30) * random.uniform(0.5, 1))


def main(address):
    with grpc.insecure_channel(address) as channel:
        bridge = BridgeServiceStub(channel)

        request = hop.ListAvailableRoutesRequest(token="rETH", to_chain="ethereum")
        for route in call(bridge.ListAvailableRoutes, request).routes:
            print(f"{route.token} can be sent from {route.source_chain_slug}")

        transfer = {"amount": "25000000", "token": "USDT", "from_chain": "polygon", "slippage": 0.5}
        quote = call(bridge.GetQuote, hop.GetQuoteRequest(**transfer, to_chain="arbitrum"))
        print(f"{quote.estimated_received} of {quote.amount_in} arrive, {quote.bonder_fee} is the fee")

        batch = {**transfer, "amount": ["25000000"], "to_chain": ["arbitrum", "base"]}
        for result in call(bridge.BatchGetQuotes, hop.BatchGetQuotesRequest(**batch)).results:
            is_quote = result.WhichOneof("result") == "quote"
            print(f"{result.to_chain}: {result.quote.estimated_received if is_quote else result.error.reason}")

        full = call(bridge.GetQuote, hop.GetQuoteRequest(**transfer, to_chain="arbitrum", view="FULL"))
        limits = full.details.limits
        print(f"{limits.min_amount} is the least amount, {limits.available_liquidity} the most")

        transfer_hash = "0x2a6e5685b82b1262614ea73a4000775147af693d53e5feeeeebf33910d264ca5"
        status = call(bridge.GetTransferStatus, hop.GetTransferStatusRequest(transfer_hash=transfer_hash))
        state = hop.GetTransferStatusResponse.State.Name(status.state)
        print(f"{status.amount_formatted:g} {status.token} to {status.destination_chain_slug}: {state}")

        for event in watch(bridge, hop.WatchTransfersRequest(transfer_hash=[transfer_hash])):
            if event.WhichOneof("event") == "transfer":
                print(f"watched: {hop.GetTransferStatusResponse.State.Name(event.transfer.state)}")

        try:
            # Needs a server with an index.
            account = "0x70997970c51812dc3a010c7d01b50e0d17dc79c8"
            page = hop.ListTransfersRequest(account=account, token="HOP", from_chain="arbitrum", to_chain="optimism")
            while True:
                listed = call(bridge.ListTransfers, page)
                for item in listed.transfers:
                    print(f"listed: {item.transfer_id}")
                page.page_token = listed.next_page_token
                if not page.page_token:
                    break
        except grpc.RpcError as error:
            print(f"error: {reason_of(error)}, {error.details()}")

        try:
            # USDT has no bridge to Base.
            call(bridge.GetQuote, hop.GetQuoteRequest(**transfer, to_chain="base"))
        except grpc.RpcError as error:
            print(f"error: {reason_of(error)}, {error.details()}")


main(sys.argv[1] if len(sys.argv) > 1 else "127.0.0.1:8000")
