// Over gRPC, with a deadline and the reason of a refusal.
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

/// Calls with a deadline of five seconds.
template <typename Request, typename Answer>
grpc::Status call(Bridge& bridge,
                  grpc::Status (Bridge::*method)(grpc::ClientContext*, const Request&, Answer*),
                  const Request& request, Answer& answer) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(5));
  return (bridge.*method)(&context, request, &answer);
}

/// What the service says of why a call failed; empty where it says nothing: it was not reached, or not in time.
std::string reason_of(const grpc::Status& failure) {
  google::rpc::Status status;
  google::rpc::ErrorInfo info;
  if (!status.ParseFromString(failure.error_details())) return "";
  for (const auto& detail : status.details()) {
    if (detail.UnpackTo(&info)) return info.reason();
  }
  return "";
}

/// Tells of a failure and passes on whether there was none.
bool succeeded(const grpc::Status& status) {
  if (!status.ok()) std::cout << "refused: " << reason_of(status) << ", " << status.error_message() << "\n";
  return status.ok();
}

}  // namespace

int main(int count, char** arguments) {
  const std::string address = count > 1 ? arguments[1] : "127.0.0.1:8000";
  const auto stub = hop_v1::BridgeService::NewStub(grpc::CreateChannel(address, grpc::InsecureChannelCredentials()));
  Bridge& bridge = *stub;

  hop_v1::ListAvailableRoutesRequest wanted;
  hop_v1::ListAvailableRoutesResponse found;
  wanted.set_token("rETH");
  wanted.set_to_chain("ethereum");
  if (!succeeded(call(bridge, &Bridge::ListAvailableRoutes, wanted, found))) return 1;
  for (const auto& route : found.routes()) {
    std::cout << route.token() << " can go home from " << route.source_chain_slug() << "\n";
  }

  hop_v1::GetQuoteRequest wish;
  hop_v1::GetQuoteResponse quote;
  wish.set_amount("25000000");
  wish.set_token("USDT");
  wish.set_from_chain("polygon");
  wish.set_to_chain("arbitrum");
  wish.set_slippage(0.5);
  if (!succeeded(call(bridge, &Bridge::GetQuote, wish, quote))) return 1;
  std::cout << quote.estimated_received() << " of " << quote.amount_in() << " arrive, " << quote.bonder_fee()
            << " is the fee\n";

  hop_v1::GetTransferStatusRequest sent;
  hop_v1::GetTransferStatusResponse transfer;
  sent.set_transfer_hash("0xf74083036ad84acb7efc97f2c3877659135d97d02552915b96c1cf77ad48b270");
  if (!succeeded(call(bridge, &Bridge::GetTransferStatus, sent, transfer))) return 1;
  std::cout << transfer.amount_formatted() << " " << transfer.token() << " to " << transfer.destination_chain_slug()
            << ": " << hop_v1::GetTransferStatusResponse::State_Name(transfer.state()) << "\n";

  // USDT has no bridge to Base.
  wish.set_to_chain("base");
  succeeded(call(bridge, &Bridge::GetQuote, wish, quote));
}
