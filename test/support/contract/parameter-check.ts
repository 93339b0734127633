import type { Message } from "@bufbuild/protobuf";
import { BridgeService } from "../../../gen/hop/bridge/v1/bridge_pb.js";
import { ServiceError } from "../../../src/errors.js";
import { readGetRoutes } from "../../../src/http/rest/annotations.js";
import { createQueryParser } from "../../../src/http/rest/query-parser.js";
import { createListAvailableRoutes } from "../../../src/operations/list-available-routes.js";
import type { CallContext, Operation } from "../../../src/operations/operation.js";
import { createBatchGetQuotes } from "../../../src/operations/quotes/batch-get-quotes.js";
import { createGetQuote } from "../../../src/operations/quotes/get-quote.js";
import { createGetTransferStatus } from "../../../src/operations/transfers/get-transfer-status.js";
import { createGetWithdrawal } from "../../../src/operations/transfers/get-withdrawal.js";
import { createListTransfers } from "../../../src/operations/transfers/list-transfers.js";
import { createWatchTransfers } from "../../../src/operations/transfers/watch-transfers.js";

// The parameter checks of the service: the real query binder, and the real operations up to the point where they need
// anything but the request.

/** Thrown by every dependency: an operation that reaches one has accepted its parameters. */
const ACCEPTED = new Error("the parameters are valid");
const dependency = new Proxy(
  {},
  {
    get() {
      throw ACCEPTED;
    },
  },
) as never;
const context = {
  addLogFields() {},
  setCachePolicy() {},
  setResponseMetadata() {},
  addWarning() {},
  countAsRequests() {
    throw ACCEPTED;
  },
} as unknown as CallContext;

export type OperationName = keyof typeof BridgeService.method;

const operations: Readonly<Record<OperationName, Operation<never, unknown>>> = {
  getQuote: createGetQuote({ chains: dependency, settings: dependency, engine: dependency }),
  batchGetQuotes: createBatchGetQuotes({
    ...{ settings: dependency, engine: dependency, quoteQuota: dependency, eventLoop: dependency },
  }),
  getTransferStatus: createGetTransferStatus({
    ...{ chains: dependency, statusCache: dependency, details: dependency, prices: dependency },
    ...{ attestations: undefined, now: Date.now },
  }),
  getWithdrawal: createGetWithdrawal({
    ...{ chains: dependency, statusCache: dependency, withdrawals: dependency },
    now: Date.now,
  }),
  listTransfers: createListTransfers({
    ...{ lister: dependency, chains: dependency, details: dependency, prices: dependency },
    attestations: undefined,
  }),
  watchTransfers: (request, callContext) =>
    createWatchTransfers({ watcher: dependency })(request, dependency, callContext),
  listAvailableRoutes: createListAvailableRoutes({ settings: dependency }),
};

/** Returns the error with which an operation rejects a request; undefined if its parameters are valid. */
export function checkMessage(operation: OperationName, request: Message): ServiceError | undefined {
  return catchRejection(() => operations[operation](request as never, context));
}

/** Returns the error with which a GET with this query is rejected; undefined if its parameters are valid. */
export function checkQuery(path: string, query: string): ServiceError | undefined {
  const route = readGetRoutes(BridgeService).find((candidate) => candidate.path === path);
  if (route === undefined) throw new Error(`no operation serves ${path}`);
  const operation = operations[route.method.localName as OperationName];
  return catchRejection(() => operation(createQueryParser(route.method.input)(query) as never, context));
}

function catchRejection(call: () => unknown): ServiceError | undefined {
  try {
    call();
  } catch (error) {
    if (error === ACCEPTED) return undefined;
    if (error instanceof ServiceError) return error;
    throw error;
  }
  throw new Error("the operation used none of its dependencies");
}

export type QueryPairs = readonly (readonly [name: string, text: string])[];

export function toQuery(pairs: QueryPairs): string {
  return pairs.map(([name, text]) => `${encodeURIComponent(name)}=${encodeURIComponent(text)}`).join("&");
}
