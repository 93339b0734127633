// Calls the service over gRPC, with a deadline and the reason of an error.
#include <chrono>
#include <iostream>
#include <memory>
#include <string>

#include <grpcpp/grpcpp.h>

#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"
#include "hop/bridge/v1/bridge.grpc.pb.h"

namespace hop_v1 = hop::bridge::v1;
using Bridge = hop_v1::BridgeService::Stub;

namespace {

/// Calls a method with a deadline of five seconds.
template <typename Request, typename Response>
grpc::Status call(Bridge& bridge,
                  grpc::Status (Bridge::*method)(grpc::ClientContext*, const Request&, Response*),
                  const Request& request, Response& response) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(5));
  return (bridge.*method)(&context, request, &response);
}

/// Returns the service's reason for an error, or nothing if the service was not reached or not in time.
std::string reason_of(const grpc::Status& failure) {
  google::rpc::Status status;
  google::rpc::ErrorInfo info;
  if (!status.ParseFromString(failure.error_details())) return "";
  for (const auto& detail : status.details()) {
    if (detail.UnpackTo(&info)) return info.reason();
  }
  return "";
}

/// Prints an error, if there is one, and returns whether the call succeeded.
bool succeeded(const grpc::Status& status) {
  if (!status.ok()) std::cout << "error: " << reason_of(status) << ", " << status.error_message() << "\n";
  return status.ok();
}

}  // namespace

int main(int count, char** arguments) {
  const std::string address = count > 1 ? arguments[1] : "127.0.0.1:8000";
  const auto stub = hop_v1::BridgeService::NewStub(grpc::CreateChannel(address, grpc::InsecureChannelCredentials()));
  Bridge& bridge = *stub;

  hop_v1::ListAvailableRoutesRequest filter;
  hop_v1::ListAvailableRoutesResponse available;
  filter.set_token("rETH");
  filter.set_to_chain("ethereum");
  if (!succeeded(call(bridge, &Bridge::ListAvailableRoutes, filter, available))) return 1;
  for (const auto& route : available.routes()) {
    std::cout << route.token() << " can be sent from " << route.source_chain_slug() << "\n";
  }

  hop_v1::GetQuoteRequest transfer;
  hop_v1::GetQuoteResponse quote;
  transfer.set_amount("25000000");
  transfer.set_token("USDT");
  transfer.set_from_chain("polygon");
  transfer.set_to_chain("arbitrum");
  transfer.set_slippage(0.5);
  if (!succeeded(call(bridge, &Bridge::GetQuote, transfer, quote))) return 1;
  std::cout << quote.estimated_received() << " of " << quote.amount_in() << " arrive, " << quote.bonder_fee()
            << " is the fee\n";

  hop_v1::GetTransferStatusRequest lookup;
  hop_v1::GetTransferStatusResponse status;
  lookup.set_transfer_hash("0x53f632f5c1bfe4e8f46627b8e597af0f161fb14af4cff8ef904cf568fd646073");
  if (!succeeded(call(bridge, &Bridge::GetTransferStatus, lookup, status))) return 1;
  std::cout << status.amount_formatted() << " " << status.token() << " to " << status.destination_chain_slug()
            << ": " << hop_v1::GetTransferStatusResponse::State_Name(status.state()) << "\n";

  // USDT has no bridge to Base.
  transfer.set_to_chain("base");
  succeeded(call(bridge, &Bridge::GetQuote, transfer, quote));
}
