import type { LocalNetwork } from "../../../devnet/network.js";
import { type ServiceProcess, startServiceProcess } from "../../support/service/service-process.js";
import { type RpcProxy, startRpcProxy } from "../../support/stubs/rpc-proxy.js";

/** Counting proxies in front of every upstream of a local network. */
export interface CountedUpstreams {
  /** The addresses of the proxies, for the services. */
  readonly environment: Readonly<Record<string, string>>;
  /** Requests of all services to all upstreams since the last reset. */
  count(): number;
  reset(): void;
  close(): Promise<void>;
}

export async function startCountedUpstreams(network: LocalNetwork): Promise<CountedUpstreams> {
  const { chains, assetsUrl, attestationUrl } = network;
  const targets = [
    ...Object.entries(chains).map(([slug, { url }]) => [`RPC_URL_${slug.toUpperCase()}`, url] as const),
    ["ASSETS_URL", assetsUrl] as const,
    ["ATTESTATION_API_URL", attestationUrl] as const,
  ];
  const started = targets.map(async ([name, url]) => [name, await startRpcProxy(url)] as const);
  const proxies: ReadonlyMap<string, RpcProxy> = new Map(await Promise.all(started));
  return {
    environment: Object.fromEntries([...proxies].map(([name, { url }]) => [name, url])),
    count: () => [...proxies.values()].reduce((sum, { requests }) => sum + requests.length, 0),
    reset() {
      for (const proxy of proxies.values()) proxy.reset();
    },
    async close() {
      await Promise.all([...proxies.values()].map((proxy) => proxy.close()));
    },
  };
}

/** Several processes of the service with the same environment. */
export interface Replicas {
  readonly services: readonly ServiceProcess[];
  /** Returns the values of a metric, summed over its labels, of each replica. */
  readMetric(name: string, labels?: string): Promise<readonly number[]>;
  kill(): void;
}

export async function startReplicas(
  command: string,
  count: number,
  environment: Readonly<Record<string, string>>,
): Promise<Replicas> {
  const services = await Promise.all(
    Array.from({ length: count }, () => startServiceProcess(command, { LOG_LEVEL: "info", ...environment })),
  );
  return {
    services,
    readMetric: (name, labels = "") =>
      Promise.all(
        services.map(async ({ metricsUrl }) => {
          const text = await (await fetch(metricsUrl)).text();
          const lines = text.split("\n").filter((line) => line.startsWith(name) && line.includes(labels));
          return lines.reduce((sum, line) => sum + Number(line.split(" ").at(-1)), 0);
        }),
      ),
    kill() {
      for (const service of services) if (service.isRunning()) service.signal("SIGKILL");
    },
  };
}
