"""Calls the service over gRPC, with a deadline and the reason of an error."""

import sys

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


def main(address):
    with grpc.insecure_channel(address) as channel:
        bridge = BridgeServiceStub(channel)

        request = hop.ListAvailableRoutesRequest(token="rETH", to_chain="ethereum")
        for route in call(bridge.ListAvailableRoutes, request).routes:
            print(f"{route.token} can be sent from {route.source_chain_slug}")

        transfer = {"amount": "25000000", "token": "USDT", "from_chain": "polygon", "slippage": 0.5}
        quote = call(bridge.GetQuote, hop.GetQuoteRequest(**transfer, to_chain="arbitrum"))
        print(f"{quote.estimated_received} of {quote.amount_in} arrive, {quote.bonder_fee} is the fee")

        transfer_hash = "0x53f632f5c1bfe4e8f46627b8e597af0f161fb14af4cff8ef904cf568fd646073"
        status = call(bridge.GetTransferStatus, hop.GetTransferStatusRequest(transfer_hash=transfer_hash))
        state = hop.GetTransferStatusResponse.State.Name(status.state)
        print(f"{status.amount_formatted:g} {status.token} to {status.destination_chain_slug}: {state}")

        try:
            # USDT has no bridge to Base.
            call(bridge.GetQuote, hop.GetQuoteRequest(**transfer, to_chain="base"))
        except grpc.RpcError as error:
            print(f"error: {reason_of(error)}, {error.details()}")


main(sys.argv[1] if len(sys.argv) > 1 else "127.0.0.1:8000")
