"""Over gRPC, with a deadline and the reason of a refusal."""

import sys

import grpc
from google.rpc.error_details_pb2 import ErrorInfo
from google.rpc.status_pb2 import Status
from hop.bridge.v1 import bridge_pb2 as hop
from hop.bridge.v1.bridge_pb2_grpc import BridgeServiceStub

TIMEOUT_SECONDS = 5


def reason_of(error):
    """What the service says of why a call failed; None where it says nothing: it was not reached, or not in time."""
    for key, value in error.trailing_metadata() or ():
        if key == "grpc-status-details-bin":
            for detail in Status.FromString(value).details:
                info = ErrorInfo()
                if detail.Unpack(info):
                    return info.reason
    return None


def main(address):
    with grpc.insecure_channel(address) as channel:
        bridge = BridgeServiceStub(channel)

        wanted = hop.ListAvailableRoutesRequest(token="rETH", to_chain="ethereum")
        for route in bridge.ListAvailableRoutes(wanted, timeout=TIMEOUT_SECONDS).routes:
            print(f"{route.token} can go home from {route.source_chain_slug}")

        wish = {"amount": "25000000", "token": "USDT", "from_chain": "polygon", "slippage": 0.5}
        quote = bridge.GetQuote(hop.GetQuoteRequest(**wish, to_chain="arbitrum"), timeout=TIMEOUT_SECONDS)
        print(f"{quote.estimated_received} of {quote.amount_in} arrive, {quote.bonder_fee} is the fee")

        sent = "0xf74083036ad84acb7efc97f2c3877659135d97d02552915b96c1cf77ad48b270"
        transfer = bridge.GetTransferStatus(hop.GetTransferStatusRequest(transfer_hash=sent), timeout=TIMEOUT_SECONDS)
        state = hop.GetTransferStatusResponse.State.Name(transfer.state)
        print(f"{transfer.amount_formatted:g} {transfer.token} to {transfer.destination_chain_slug}: {state}")

        try:
            # USDT has no bridge to Base.
            bridge.GetQuote(hop.GetQuoteRequest(**wish, to_chain="base"), timeout=TIMEOUT_SECONDS)
        except grpc.RpcError as error:
            print(f"refused: {reason_of(error)}, {error.details()}")


main(sys.argv[1] if len(sys.argv) > 1 else "127.0.0.1:8000")
