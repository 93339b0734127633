import { Agent, get } from "node:http";
import { POLITE_ADDRESS } from "./caller-addresses.js";
import { createLatencySamples, type LatencySamples } from "./latency-samples.js";

export interface PoliteClientOptions {
  readonly port: number;
  /** Returns the path of the request with this index. */
  readonly path: (index: number) => string;
  readonly perSecond: number;
  /** Opens a connection for each request. Default: keeps connections alive. */
  readonly isReconnecting?: boolean;
}

/** A caller that sends requests at a steady rate and reads every response at once. */
export interface PoliteClient {
  /** Response times, from when a request was due: a response that is late makes none of the later ones look fast. */
  readonly latencies: LatencySamples;
  /** Number of failures by kind. */
  readonly failures: ReadonlyMap<string, number>;
  /** Stops sending and waits for the last responses. */
  stop(): Promise<void>;
}

const TICK_MS = 5;
/** A request without a response for so long counts as failed. */
const TIMEOUT_MS = 20_000;
const MAX_CONNECTIONS = 8;

export function startPoliteClient(options: PoliteClientOptions): PoliteClient {
  const { port, path, perSecond, isReconnecting = false } = options;
  const latencies = createLatencySamples();
  const failures = new Map<string, number>();
  const agent = new Agent({ keepAlive: !isReconnecting, maxSockets: isReconnecting ? 1_000 : MAX_CONNECTIONS });
  const open = new Set<Promise<void>>();
  const began = performance.now();
  let sent = 0;

  function send(index: number, dueAt: number): Promise<void> {
    return new Promise((resolve) => {
      const finish = (failure?: string): void => {
        if (failure === undefined) latencies.add(performance.now() - dueAt);
        else failures.set(failure, (failures.get(failure) ?? 0) + 1);
        resolve();
      };
      const localAddress = POLITE_ADDRESS;
      const request = get(
        {
          port,
          host: "127.0.0.1",
          path: path(index),
          agent,
          timeout: TIMEOUT_MS,
          ...(localAddress && { localAddress }),
        },
        (response) => {
          response.resume();
          response.once("end", () => finish(response.statusCode === 200 ? undefined : `HTTP ${response.statusCode}`));
          response.once("error", () => finish("cut off"));
        },
      );
      request.once("timeout", () => request.destroy(new Error("timeout")));
      request.once("error", (error: NodeJS.ErrnoException) => finish(error.code ?? error.message));
    });
  }

  const timer = setInterval(() => {
    for (; sent < ((performance.now() - began) / 1_000) * perSecond; sent += 1) {
      const request = send(sent, began + (sent / perSecond) * 1_000).finally(() => open.delete(request));
      open.add(request);
    }
  }, TICK_MS);
  return {
    latencies,
    failures,
    async stop() {
      clearInterval(timer);
      await Promise.all(open);
      agent.destroy();
    },
  };
}
