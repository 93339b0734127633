import { create, type Message } from "@bufbuild/protobuf";
import { afterEach, beforeEach, describe } from "vitest";
import {
  BatchGetQuotesResponseSchema,
  BridgeService,
  type GetQuoteRequest,
  type GetQuoteResponse,
  GetQuoteResponseSchema,
  GetTransferStatusResponseSchema,
  GetWithdrawalResponseSchema,
  ListAvailableRoutesResponseSchema,
  ListTransfersResponseSchema,
} from "../../../../gen/hop/bridge/v1/bridge_pb.js";
import type { ReadTurns } from "../../../../src/http/admission/read-turns.js";
import type { HttpLimits } from "../../../../src/http/connection/http-limits.js";
import type { Documents } from "../../../../src/http/documents.js";
import { type MountedService, mountService } from "../../../../src/http/request/mounted-service.js";
import type { AccessLogEntry } from "../../../../src/http/request/request-context.js";
import { HttpServer } from "../../../../src/http/server.js";
import type { Operation } from "../../../../src/operations/operation.js";
import { FairQuota } from "../../../../src/resilience/fair-quota.js";
import type { FairScheduler } from "../../../../src/resilience/fair-scheduler.js";
import { closeAfterTest } from "../../../support/close-after-test.js";
import { mountWatch, type WatchOperation } from "./stream-contract.js";
import { createTestService } from "./test-contract.js";

export const QUOTE_PATH = "/hop.bridge.v1.BridgeService/GetQuote";
export const QUOTE = "hop.bridge.v1.BridgeService/GetQuote";

/** An entry as the log prints it. */
export type AccessLine = Omit<AccessLogEntry, "fields"> & Readonly<Record<string, string | number | boolean>>;

/** Returns the members of an entry's line in the log. */
export function flattenEntry({ requestId, protocol, operation, code, durationMs, fields }: AccessLogEntry): AccessLine {
  return { ...fields, requestId, protocol, operation, code, durationMs };
}

export interface TestServer {
  readonly server: HttpServer;
  readonly url: string;
  readonly port: number;
  /** The access log. */
  readonly accessLines: AccessLine[];
  /** Reported internal errors. */
  readonly internalErrors: unknown[];
  /** Returns the access log once it has so many lines. */
  logged(count: number): Promise<AccessLine[]>;
}

export interface TestServerOptions {
  readonly getQuote?: Operation<GetQuoteRequest, GetQuoteResponse>;
  /** A server-streaming operation. Default: none is mounted. */
  readonly watch?: WatchOperation;
  readonly limits?: Partial<HttpLimits>;
  /** Default: the longest timer. */
  readonly maxTimeoutMs?: number;
  readonly trustProxy?: boolean;
  readonly eventLoop?: FairScheduler;
  readonly reads?: ReadTurns;
  /** Documents served next to the operations. */
  readonly documents?: Documents;
  /** Calls per caller and window. */
  readonly rateLimit?: { readonly requests: number; readonly windowMs: number };
  /** Default: true, unless `describeOnBothPaths` sets it. */
  readonly fastPaths?: boolean;
}

export const LONGEST_TIMER_MS = 2 ** 31 - 1;
/** Deadlines and slots of contexts that no call of a test exceeds. */
export const UNLIMITED_CALLS = { maxTimeoutMs: LONGEST_TIMER_MS, pendingCalls: new FairQuota(() => 10_000) };

let defaultFastPaths = true;

/** Declares a suite twice: with fast paths, and with the general path only. */
export function describeOnBothPaths(declareSuite: () => void): void {
  describe.each([
    ["with fast paths", true],
    ["on the general path", false],
  ])("%s", (_, fastPaths) => {
    beforeEach(() => {
      defaultFastPaths = fastPaths;
    });
    afterEach(() => {
      defaultFastPaths = true;
    });
    declareSuite();
  });
}

/** Returns a quote that contains only values of its request. */
export const echoQuote: Operation<GetQuoteRequest, GetQuoteResponse> = async (
  { amount, slippage, rpcUrl },
  context,
) => {
  context.addLogFields({ token: "USDC", requestId: "an operation cannot change the id" });
  return create(GetQuoteResponseSchema, {
    amountIn: amount,
    slippage: slippage ?? 0,
    amountOutMin: JSON.stringify(Object.entries(rpcUrl)),
    deadline: 1_700_000_000n,
  });
};

function bridge(getQuote: Operation<GetQuoteRequest, GetQuoteResponse>): MountedService {
  return mountService(BridgeService, {
    getQuote,
    batchGetQuotes: async () => create(BatchGetQuotesResponseSchema, {}),
    getTransferStatus: async ({ transferId }) => create(GetTransferStatusResponseSchema, { transferId, state: 2 }),
    listTransfers: async ({ account }) =>
      create(ListTransfersResponseSchema, { transfers: [{ accountAddress: account }], coveredFrom: 1n }),
    getWithdrawal: async ({ transferId }) => create(GetWithdrawalResponseSchema, { transferId, state: 8 }),
    watchTransfers(_request, stream) {
      stream.end();
      return { onReady() {}, onDrain() {}, onEnd() {} };
    },
    listAvailableRoutes: async () =>
      create(ListAvailableRoutesResponseSchema, { routes: [{ token: "ETH", sourceChainId: 1 }, { token: "DAI" }] }),
  });
}

const kinds: MountedService = {
  service: createTestService({ pattern: { case: "get", value: "/v1/echo" } }),
  operations: { echo: async (request: Message) => request },
};

/** Starts a server on a free port with both test contracts; it is closed after the test. */
export async function startTestServer({
  getQuote = echoQuote,
  watch,
  rateLimit,
  ...options
}: TestServerOptions = {}): Promise<TestServer> {
  const accessLines: AccessLine[] = [];
  const internalErrors: unknown[] = [];
  let onLine = () => {};
  const server = new HttpServer({
    host: "127.0.0.1",
    port: 0,
    maxTimeoutMs: LONGEST_TIMER_MS,
    services: [bridge(getQuote), kinds, ...(watch === undefined ? [] : [mountWatch(watch)])],
    log: (line) => {
      accessLines.push(flattenEntry(line));
      onLine();
    },
    onInternalError: (error) => internalErrors.push(error),
    fastPaths: defaultFastPaths,
    rateLimit: rateLimit && { ...rateLimit, onFailure: (error) => internalErrors.push(error) },
    ...options,
  });
  closeAfterTest({ close: () => server.close(0) });
  const { url, port } = await server.listen();
  const logged = (count: number) =>
    new Promise<AccessLine[]>((resolve) => {
      onLine = () => {
        if (accessLines.length >= count) resolve(accessLines);
      };
      onLine();
    });
  return { server, url, port, accessLines, internalErrors, logged };
}

/** Starts a server whose quotes wait until the test releases them, and counts them. */
export async function startHoldingServer(options: TestServerOptions = {}) {
  const { opened, open } = createLatch();
  let started = 0;
  const server = await startTestServer({
    ...options,
    getQuote: async (request, context) => {
      started += 1;
      await opened;
      return echoQuote(request, context);
    },
  });
  return { ...server, release: open, started: () => started };
}

/** Returns a quote with an amount of so many digits, which is created for each request. */
export const createLargeQuote = (bytes: number): GetQuoteResponse =>
  create(GetQuoteResponseSchema, { amountIn: "9".repeat(bytes) });

/** Creates a promise and the function that resolves it. */
export function createLatch(): { opened: Promise<void>; open: () => void } {
  let open = () => {};
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { opened, open };
}
