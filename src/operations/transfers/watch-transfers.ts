import type {
  GetTransferStatusResponse,
  WatchTransfersRequest,
  WatchTransfersResponse,
} from "../../../gen/hop/bridge/v1/bridge_pb.js";
import { ServiceError } from "../../errors.js";
import type { Network } from "../../hop/networks.js";
import type { TransferWatcher } from "../../transfers/watch/transfer-watcher.js";
import type { WatchEvent, WatchSink, WatchTarget } from "../../transfers/watch/watch-lifecycle.js";
import type { MessageStream, StreamOperation } from "../operation.js";
import {
  parseAddress,
  parseChain,
  parseIsFullView,
  parseNetwork,
  parseTransactionHash,
  parseTransferId,
} from "../parameters.js";

/** Transfer IDs and hashes of one watch. */
const MAX_TARGETS = 100;

export function createWatchTransfers(deps: {
  readonly watcher: TransferWatcher<GetTransferStatusResponse>;
}): StreamOperation<WatchTransfersRequest, WatchTransfersResponse> {
  return (request, stream, context) => {
    const network = parseNetwork(request.network);
    const account = parseWatchedAccount(request);
    const isFull = parseIsFullView(request.view);
    const targets = account === undefined ? parseTargets(request, network, isFull) : [];
    const likelySource = request.fromChain === "" ? "" : parseChain(network, "fromChain", request.fromChain).slug;
    const { resumeToken } = request;
    const { caller } = context;
    const sink = new StreamSink(stream);
    context.addLogFields({ network: network.slug, watched: targets.length });
    if (account !== undefined) return deps.watcher.openAccount({ network, account, isFull, resumeToken, caller }, sink);
    return deps.watcher.open({ targets, resumeToken, likelySource, caller }, sink);
  };
}

/** Returns the address to watch; undefined: transfers are to be watched. @throws ServiceError. */
function parseWatchedAccount({ account, transferId, transferHash }: WatchTransfersRequest): string | undefined {
  if (account === "") return undefined;
  if (transferId.length + transferHash.length > 0)
    throw new ServiceError("INVALID_PARAMETER", "account excludes transferId and transferHash", { field: "account" });
  return parseAddress("account", account);
}

/** Returns the transfers to watch. @throws ServiceError. */
function parseTargets({ transferId, transferHash }: WatchTransfersRequest, network: Network, isFull: boolean) {
  const count = transferId.length + transferHash.length;
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
  readonly #stream: MessageStream<WatchTransfersResponse>;

  constructor(stream: MessageStream<WatchTransfersResponse>) {
    this.#stream = stream;
  }

  isReady(): boolean {
    return this.#stream.isReady();
  }

  send(event: WatchEvent<GetTransferStatusResponse>, resumeToken: string): void {
    const message = toEventMessage(event);
    this.#stream.send({ $typeName: "hop.bridge.v1.WatchTransfersResponse", resumeToken, event: message });
  }

  end(error?: unknown): void {
    this.#stream.end(error);
  }

  interrupt(): void {
    this.#stream.interrupt();
  }
}

const BOOKMARK = Object.freeze({ case: "bookmark", value: Object.freeze({ $typeName: "hop.bridge.v1.Bookmark" }) });

function toEventMessage(event: WatchEvent<GetTransferStatusResponse>): WatchTransfersResponse["event"] {
  if (event.kind === "bookmark") return BOOKMARK;
  if (event.kind === "transfer") return { case: "transfer", value: event.message };
  const { target, isFinal } = event;
  const [transferId, transferHash] = target.kind === "id" ? [target.value, ""] : ["", target.value];
  const $typeName = "hop.bridge.v1.UnknownTransfer";
  return { case: "unknown", value: { $typeName, transferId, transferHash, isFinal } };
}
