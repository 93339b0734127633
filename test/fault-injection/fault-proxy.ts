import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { Agent, request as send } from "undici";
import { readBody } from "../support/stubs/http-stub.js";
import { type RpcProxy, startRpcProxy } from "../support/stubs/rpc-proxy.js";

/** What a fault does with one request. */
export interface InterceptedRequest {
  /** Body of the request. */
  readonly body: string;
  readonly response: ServerResponse;
  /** What the upstream itself answers; what the proxy behind is made to do is in it. */
  forward(): Promise<{ readonly status: number; readonly text: string }>;
  /** The same, from another chain. */
  forwardToOtherChain(): Promise<{ readonly status: number; readonly text: string }>;
}

/** A way of an upstream to be unwell. */
export interface Fault {
  /** Whether it makes sense for JSON-RPC only. */
  readonly isRpcOnly: boolean;
  /** undefined: nobody listens. */
  readonly handle: ((exchange: InterceptedRequest, rpc: RpcProxy) => void | Promise<void>) | undefined;
}

/** Stands in front of an upstream of any kind, which it can make unwell at any time. */
export interface FaultProxy {
  readonly url: string;
  /** Requests that came so far. */
  readonly requests: number;
  /** Requests that the caller gave up before they were answered. */
  readonly aborted: number;
  /** Makes the upstream unwell, or well again. Requests that are under way end as they began, or are cut off. */
  setFault(fault: Fault | undefined): Promise<void>;
  close(): Promise<void>;
}

export interface FaultProxyOptions {
  /** URL of another chain's node, for faults that answer from there. */
  readonly otherChainUrl?: string;
  /** The one path that is unwell; the others of that host are well as long as it listens. */
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
    const answer = await send(new URL(url, base), { dispatcher: agent, method: method as "GET" | "POST", ...sent });
    return { status: answer.statusCode, text: await answer.body.text() };
  }

  async function serve(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    requests += 1;
    response.on("close", () => {
      if (!response.writableFinished) aborted += 1;
    });
    const body = await readBody(incoming);
    const exchange: InterceptedRequest = {
      body,
      response,
      forward: () => forward(rpc.url, incoming, body),
      forwardToOtherChain: () => forward(otherChainUrl, incoming, body),
    };
    const isUnwell = path === undefined || incoming.url === path;
    if (isUnwell && fault?.handle !== undefined) return fault.handle(exchange, rpc);
    const { status, text } = await exchange.forward();
    response.writeHead(status, { "content-type": "application/json" }).end(text);
  }

  const server = createServer((incoming, response) => {
    serve(incoming, response).catch(() => response.destroy());
  });
  const listen = (port: number): Promise<void> =>
    new Promise((resolve, reject) => {
      server.once("error", reject);
      server.listen(port, "127.0.0.1", resolve);
    });
  const stop = async (): Promise<void> => {
    if (!server.listening) return;
    const closed = new Promise<void>((resolve) => server.close(() => resolve()));
    server.closeAllConnections();
    await closed;
  };

  await listen(0);
  const { port } = server.address() as AddressInfo;
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
