import type {
  GetTransferStatusResponse,
  WatchTransfersRequest,
  WatchTransfersResponse,
} from "../../gen/hop/bridge/v1/bridge_pb.js";
import { ServiceError } from "../errors.js";
import type { WatchSink } from "../transfers/watch/transfer-watch.js";
import type { TransferWatcher } from "../transfers/watch/transfer-watcher.js";
import type { WatchTarget } from "../transfers/watch/watch-target.js";
import type { MessageStream, StreamOperation } from "./operation.js";
import { parseAddress, parseChain, parseIsFullView, parseNetwork } from "./parameters.js";
import { parseTransactionHash, parseTransferId } from "./transfer-identifiers.js";

/** Transfer IDs and hashes of one watch. */
const MAX_TARGETS = 100;

export function createWatchTransfers(deps: {
  readonly watcher: TransferWatcher<GetTransferStatusResponse>;
}): StreamOperation<WatchTransfersRequest, WatchTransfersResponse> {
  return (request, stream, context) => {
    const targets = parseTargets(request);
    const network = parseNetwork(request.network);
    const likelySource = request.fromChain === "" ? "" : parseChain(network, "fromChain", request.fromChain).slug;
    if (targets.length === 0)
      throw new ServiceError("INDEX_REQUIRED", `this server has no index of transfers on ${network.slug}`);
    context.addLogFields({ network: network.slug, watched: targets.length });
    const { resumeToken } = request;
    return deps.watcher.open({ targets, resumeToken, likelySource, caller: context.caller }, new StreamSink(stream));
  };
}

/** Returns the transfers to watch; none for an account. @throws ServiceError. */
function parseTargets({ transferId, transferHash, account, network: slug, view }: WatchTransfersRequest) {
  const network = parseNetwork(slug);
  const isFull = parseIsFullView(view);
  const count = transferId.length + transferHash.length;
  if (account !== "") {
    if (count > 0)
      throw new ServiceError("INVALID_PARAMETER", "account excludes transferId and transferHash", { field: "account" });
    parseAddress("account", account);
    return [];
  }
  if (count === 0) {
    const message = "transferId, transferHash or account is required";
    throw new ServiceError("MISSING_PARAMETER", message, { field: "transferId" });
  }
  if (count > MAX_TARGETS) {
    const field = transferId.length > 0 ? "transferId" : "transferHash";
    throw new ServiceError("INVALID_PARAMETER", `at most ${MAX_TARGETS} transfers can be watched at once`, { field });
  }
  const ids = transferId.map((value): WatchTarget => {
    return { network, isFull, kind: "id", value: parseTransferId("transferId", value) };
  });
  const hashes = transferHash.map((value): WatchTarget => {
    return { network, isFull, kind: "hash", value: parseTransactionHash("transferHash", value) };
  });
  return [...ids, ...hashes];
}

/** Sends the events of a watch as messages. A class, because there is one for each of thousands of watches. */
class StreamSink implements WatchSink<GetTransferStatusResponse> {
  constructor(private readonly stream: MessageStream<WatchTransfersResponse>) {}

  isReady(): boolean {
    return this.stream.isReady();
  }

  sendTransfer(value: GetTransferStatusResponse, resumeToken: string): void {
    this.send(resumeToken, { case: "transfer", value });
  }

  sendUnknown({ kind, value: idOrHash }: WatchTarget, isFinal: boolean, resumeToken: string): void {
    const transferId = kind === "id" ? idOrHash : "";
    const transferHash = kind === "hash" ? idOrHash : "";
    const value = { $typeName: "hop.bridge.v1.UnknownTransfer" as const, transferId, transferHash, isFinal };
    this.send(resumeToken, { case: "unknown", value });
  }

  sendBookmark(resumeToken: string): void {
    this.send(resumeToken, { case: "bookmark", value: BOOKMARK });
  }

  end(error?: unknown): void {
    this.stream.end(error);
  }

  interrupt(): void {
    this.stream.interrupt();
  }

  private send(resumeToken: string, event: WatchTransfersResponse["event"]): void {
    this.stream.send({ $typeName: "hop.bridge.v1.WatchTransfersResponse", resumeToken, event });
  }
}

const BOOKMARK = Object.freeze({ $typeName: "hop.bridge.v1.Bookmark" as const });
