// Calls the service over gRPC, with a deadline and the reason of an error.
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <random>
#include <string>
#include <thread>

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

/// Prints the states of transfers as they change, until nothing can change any more. Resumes where a stream ends.
grpc::Status watch(Bridge& bridge, hop_v1::WatchTransfersRequest request) {
  std::mt19937 random{std::random_device{}()};
  std::uniform_real_distribution<> share{0.5, 1};
  for (int seconds = 1;; seconds = std::min(seconds * 2, 30)) {
    grpc::ClientContext context;  // No deadline: it would end the watch.
    hop_v1::WatchTransfersResponse event;
    bool is_bookmark = false;
    const auto stream = bridge.WatchTransfers(&context, request);
    while (stream->Read(&event)) {
      seconds = 1;
      request.set_resume_token(event.resume_token());
      is_bookmark = event.has_bookmark();
      if (event.has_transfer()) {
        std::cout << "watched: " << hop_v1::GetTransferStatusResponse::State_Name(event.transfer().state()) << "\n";
      }
    }
    const grpc::Status status = stream->Finish();
    const auto code = status.error_code();
    if (status.ok() ? !is_bookmark : code != grpc::UNAVAILABLE && code != grpc::RESOURCE_EXHAUSTED) return status;
    const auto& trailers = context.GetServerTrailingMetadata();
    const auto retry_after = trailers.find("retry-after");
    std::string least = "0";
    if (retry_after != trailers.end()) least.assign(retry_after->second.data(), retry_after->second.size());
    std::this_thread::sleep_for(std::chrono::duration<double>(std::strtod(least.c_str(), nullptr) + seconds * share(random)));
  }
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

  hop_v1::BatchGetQuotesRequest many;
  hop_v1::BatchGetQuotesResponse batch;
  many.add_amount("25000000");
  many.set_token("USDT");
  many.set_from_chain("polygon");
  many.add_to_chain("arbitrum");
  many.add_to_chain("base");
  many.set_slippage(0.5);
  if (!succeeded(call(bridge, &Bridge::BatchGetQuotes, many, batch))) return 1;
  for (const auto& result : batch.results()) {
    const auto& outcome = result.has_quote() ? result.quote().estimated_received() : result.error().reason();
    std::cout << result.to_chain() << ": " << outcome << "\n";
  }

  transfer.set_view("FULL");
  if (!succeeded(call(bridge, &Bridge::GetQuote, transfer, quote))) return 1;
  const auto& limits = quote.details().limits();
  std::cout << limits.min_amount() << " is the least amount, " << limits.available_liquidity() << " the most\n";

  hop_v1::GetTransferStatusRequest lookup;
  hop_v1::GetTransferStatusResponse status;
  lookup.set_transfer_hash("0x2a6e5685b82b1262614ea73a4000775147af693d53e5feeeeebf33910d264ca5");
  if (!succeeded(call(bridge, &Bridge::GetTransferStatus, lookup, status))) return 1;
  std::cout << status.amount_formatted() << " " << status.token() << " to " << status.destination_chain_slug()
            << ": " << hop_v1::GetTransferStatusResponse::State_Name(status.state()) << "\n";

  hop_v1::WatchTransfersRequest watched;
  watched.add_transfer_hash(lookup.transfer_hash());
  if (!succeeded(watch(bridge, watched))) return 1;

  // Needs a server with an index.
  hop_v1::ListTransfersRequest page;
  hop_v1::ListTransfersResponse listed;
  page.set_account("0x70997970c51812dc3a010c7d01b50e0d17dc79c8");
  page.set_token("HOP");
  page.set_from_chain("arbitrum");
  page.set_to_chain("optimism");
  do {
    if (!succeeded(call(bridge, &Bridge::ListTransfers, page, listed))) break;
    for (const auto& item : listed.transfers()) std::cout << "listed: " << item.transfer_id() << "\n";
    page.set_page_token(listed.next_page_token());
  } while (!page.page_token().empty());

  // USDT has no bridge to Base.
  transfer.set_to_chain("base");
  succeeded(call(bridge, &Bridge::GetQuote, transfer, quote));
}
