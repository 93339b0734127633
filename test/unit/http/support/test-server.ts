import { create, type Message } from "@bufbuild/protobuf";
import { afterEach } from "vitest";
import {
  BridgeService,
  type GetQuoteRequest,
  type GetQuoteResponse,
  GetQuoteResponseSchema,
  GetTransferStatusResponseSchema,
  ListAvailableRoutesResponseSchema,
} from "../../../../gen/hop/bridge/v1/bridge_pb.js";
import type { HttpLimits } from "../../../../src/http/connection/http-limits.js";
import type { Documents } from "../../../../src/http/documents.js";
import { type MountedService, mount } from "../../../../src/http/request/mounted-service.js";
import type { AccessLine } from "../../../../src/http/request/request-context.js";
import { createHttpServer, type HttpServer } from "../../../../src/http/server.js";
import type { Operation } from "../../../../src/operations/operation.js";
import { serviceWith } from "./test-contract.js";

export const QUOTE_PATH = "/hop.bridge.v1.BridgeService/GetQuote";
export const QUOTE = "hop.bridge.v1.BridgeService/GetQuote";

export interface RunningServer {
  readonly server: HttpServer;
  readonly url: string;
  readonly port: number;
  /** What was logged. */
  readonly lines: AccessLine[];
  /** What was reported as a fault of ours. */
  readonly faults: unknown[];
  /** Waits until so many requests are logged. */
  logged(count: number): Promise<void>;
}

export interface ServerSetup {
  readonly getQuote?: Operation<GetQuoteRequest, GetQuoteResponse>;
  readonly limits?: Partial<HttpLimits>;
  readonly trustProxy?: boolean;
  /** What stands beside the operations. */
  readonly documents?: Documents;
  /** Calls of one caller in each window. */
  readonly rateLimit?: { readonly requests: number; readonly windowMs: number };
}

/** Answers a quote from its request alone. */
export const echoQuote: Operation<GetQuoteRequest, GetQuoteResponse> = async (
  { amount, slippage, rpcUrl },
  { note },
) => {
  note({ token: "USDC", requestId: "an operation cannot change the id" });
  return create(GetQuoteResponseSchema, {
    amountIn: amount,
    slippage: slippage ?? 0,
    amountOutMin: JSON.stringify(Object.entries(rpcUrl)),
    deadline: 1_700_000_000n,
  });
};

function bridge(getQuote: Operation<GetQuoteRequest, GetQuoteResponse>): MountedService {
  return mount(BridgeService, {
    getQuote,
    getTransferStatus: async ({ transferId }) => create(GetTransferStatusResponseSchema, { transferId, state: 2 }),
    listAvailableRoutes: async () =>
      create(ListAvailableRoutesResponseSchema, { routes: [{ token: "ETH", sourceChainId: 1 }, { token: "DAI" }] }),
  });
}

const kinds: MountedService = {
  service: serviceWith({ pattern: { case: "get", value: "/v1/echo" } }),
  operations: { echo: async (request: Message) => request },
};

const running = new Set<HttpServer>();
afterEach(async () => {
  await Promise.all([...running].map((server) => server.close(0)));
  running.clear();
});

/** A server on a free port with both test contracts; closed after the test. */
export async function startServer({
  getQuote = echoQuote,
  rateLimit,
  ...options
}: ServerSetup = {}): Promise<RunningServer> {
  const lines: AccessLine[] = [];
  const faults: unknown[] = [];
  let onLine = () => {};
  const server = createHttpServer({
    host: "127.0.0.1",
    port: 0,
    services: [bridge(getQuote), kinds],
    log: (line) => {
      lines.push(line);
      onLine();
    },
    onInternalError: (error) => faults.push(error),
    rateLimit: rateLimit && { ...rateLimit, onFailure: (error) => faults.push(error) },
    ...options,
  });
  running.add(server);
  const { url, port } = await server.listen();
  const logged = (count: number) =>
    new Promise<void>((resolve) => {
      onLine = () => {
        if (lines.length >= count) resolve();
      };
      onLine();
    });
  return { server, url, port, lines, faults, logged };
}

/** A promise with its own resolver. */
export function gate(): { opened: Promise<void>; open: () => void } {
  let open = () => {};
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { opened, open };
}
