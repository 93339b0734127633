import { randomInt } from "node:crypto";
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { Agent, request as send } from "undici";
import { readBody } from "../support/stubs/http-stub.js";
import { type RpcProxy, startRpcProxy } from "../support/stubs/rpc-proxy.js";

/** One request, as a fault handles it. */
export interface InterceptedRequest {
  /** Body of the request. */
  readonly body: string;
  readonly response: ServerResponse;
  /** Returns the response of the upstream, as changed by the RPC proxy in front of it. */
  forward(): Promise<{ readonly status: number; readonly text: string }>;
  /** Returns the response of another chain. */
  forwardToOtherChain(): Promise<{ readonly status: number; readonly text: string }>;
}

/** A way in which an upstream fails. */
export interface Fault {
  /** Whether it applies to JSON-RPC only. */
  readonly isRpcOnly: boolean;
  /** undefined: connections are refused. */
  readonly handle: ((request: InterceptedRequest, rpc: RpcProxy) => void | Promise<void>) | undefined;
}

/** Proxy of any upstream that can inject a fault at any time. */
export interface FaultProxy {
  readonly url: string;
  /** Number of requests so far. */
  readonly requests: number;
  /** Number of requests that the caller aborted. */
  readonly aborted: number;
  /** Sets or ends the fault. Requests in flight end as they began, or are cut off. */
  setFault(fault: Fault | undefined): Promise<void>;
  close(): Promise<void>;
}

export interface FaultProxyOptions {
  /** URL of another chain's node, for faults that respond from it. */
  readonly otherChainUrl?: string;
  /** The only path with the fault; other paths of the host work as long as it listens. */
  readonly path?: string;
}

export async function startFaultProxy(target: string, options: FaultProxyOptions = {}): Promise<FaultProxy> {
  const { otherChainUrl = target, path } = options;
  const rpc = await startRpcProxy(target);
  const agent = new Agent();
  let fault: Fault | undefined;
  let requests = 0;
  let aborted = 0;

  async function forward(base: string, incoming: IncomingMessage, body: string) {
    const { method = "GET", url = "/" } = incoming;
    const sent = method === "POST" ? { body, headers: { "content-type": "application/json" } } : {};
    const upstream = await send(new URL(url, base), { dispatcher: agent, method: method as "GET" | "POST", ...sent });
    return { status: upstream.statusCode, text: await upstream.body.text() };
  }

  async function serve(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    requests += 1;
    response.on("close", () => {
      if (!response.writableFinished) aborted += 1;
    });
    const body = await readBody(incoming);
    const request: InterceptedRequest = {
      body,
      response,
      forward: () => forward(rpc.url, incoming, body),
      forwardToOtherChain: () => forward(otherChainUrl, incoming, body),
    };
    const hasFault = path === undefined || incoming.url === path;
    if (hasFault && fault?.handle !== undefined) return fault.handle(request, rpc);
    const { status, text } = await request.forward();
    response.writeHead(status, { "content-type": "application/json" }).end(text);
  }

  const server = createServer((incoming, response) => {
    serve(incoming, response).catch(() => response.destroy());
  });
  async function listen(port: number): Promise<void> {
    server.listen(port, "127.0.0.1");
    await once(server, "listening");
  }
  const stop = async (): Promise<void> => {
    if (!server.listening) return;
    const closed = new Promise<void>((resolve) => server.close(() => resolve()));
    server.closeAllConnections();
    await closed;
  };

  const port = await listenOnReservedPort(listen);
  return {
    url: `http://127.0.0.1:${port}`,
    get requests() {
      return requests;
    },
    get aborted() {
      return aborted;
    },
    async setFault(next) {
      fault = next;
      rpc.behaviour.lagBlocks = 0;
      if (fault !== undefined && fault.handle === undefined) await stop();
      else if (!server.listening) await listen(port);
    },
    async close() {
      await stop();
      await Promise.all([agent.destroy(), rpc.close()]);
    },
  };
}

/**
 * Listens on a port that stays free while the server is stopped: the system gives the ports from 32768 on to others.
 * Returns the port.
 */
async function listenOnReservedPort(listen: (port: number) => Promise<void>): Promise<number> {
  for (;;) {
    const port = randomInt(10_000, 32_768);
    try {
      await listen(port);
      return port;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EADDRINUSE") throw error;
    }
  }
}
