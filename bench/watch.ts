import { type ClientHttp2Session, connect as connectHttp2 } from "node:http2";
import { connect, type Socket } from "node:net";
import { connectChains, getBonder, getChainId, hopChains, type LocalChains } from "../devnet/chain/local-chains.js";
import { fundAccount } from "../devnet/chain/tokens.js";
import { sendTransfer } from "../devnet/transfer/send-transfer.js";
import { attackerAddress } from "../test/support/attacks/caller-addresses.js";
import { proxyUpstreams, withLocalNetwork } from "./support/local-network.js";
import { serveGateway } from "./support/recorded-server.js";
import { type ResourceUsage, runBench, type ServerProcess, startServer } from "./support/server-process.js";
import { sleep } from "./support/soak-traffic.js";

// Measures what idle watches cost: memory and CPU of 10,000 Server-Sent Events streams of 100 pending transfers, and the
// requests to the chains, compared with 100 streams and none. WATCHES sets the number, WATCH_SECONDS the time of each
// measurement, WATCH_PROTOCOL (HTTP/1.1 or HTTP/2) leaves the other out.

const WATCHES = Number(process.env.WATCHES ?? 10_000);
const TRANSFERS = 100;
const MEASURE_MS = Number(process.env.WATCH_SECONDS ?? 30) * 1_000;
/** Callers that share the streams: one may not hold all. */
const CALLERS = 50;
const STREAMS_PER_SESSION = 200;
const OPENED_AT_ONCE = 100;

type Close = () => void;
type OpenStreams = (url: URL, paths: readonly string[]) => Promise<readonly Close[]>;

/** Opens streams over HTTP/1.1, each with a connection of its own, and waits for the first bytes of each. */
async function openHttp1({ hostname, port, host }: URL, paths: readonly string[]): Promise<readonly Close[]> {
  const open = (path: string, index: number): Promise<Close> =>
    new Promise((resolve, reject) => {
      const localAddress = attackerAddress(index, CALLERS);
      const socket: Socket = connect({ host: hostname, port: Number(port), ...(localAddress && { localAddress }) });
      socket.once("error", reject);
      socket.write(`GET ${path} HTTP/1.1\r\nHost: ${host}\r\n\r\n`);
      socket.once("data", (data) => {
        if (!data.toString().startsWith("HTTP/1.1 200")) reject(new Error(data.toString().slice(0, 600)));
        socket.resume();
        resolve(() => socket.destroy());
      });
    });
  return openInBatches(paths, open);
}

/** Opens streams over HTTP/2, many on one connection. */
async function openHttp2({ origin, hostname, port }: URL, paths: readonly string[]): Promise<readonly Close[]> {
  const sessions: ClientHttp2Session[] = [];
  const getSession = (index: number): ClientHttp2Session => {
    const number = Math.floor(index / STREAMS_PER_SESSION);
    const localAddress = attackerAddress(number, CALLERS);
    sessions[number] ??= connectHttp2(origin, {
      createConnection: () => connect({ host: hostname, port: Number(port), ...(localAddress && { localAddress }) }),
    });
    return sessions[number];
  };
  const open = (path: string, index: number): Promise<Close> =>
    new Promise((resolve, reject) => {
      const stream = getSession(index).request({ ":path": path });
      stream.once("error", reject);
      stream.once("response", ({ ":status": status }) => {
        if (status !== 200) reject(new Error(`status ${status}`));
      });
      stream.once("data", () => resolve(() => {}));
      stream.resume();
    });
  await openInBatches(paths, open);
  return sessions.map((session) => () => session.destroy());
}

async function openInBatches(
  paths: readonly string[],
  open: (path: string, index: number) => Promise<Close>,
): Promise<readonly Close[]> {
  const closes: Close[] = [];
  for (let start = 0; start < paths.length; start += OPENED_AT_ONCE) {
    const batch = paths.slice(start, start + OPENED_AT_ONCE);
    closes.push(...(await Promise.all(batch.map((path, index) => open(path, start + index)))));
  }
  return closes;
}

/** Sends pending transfers, and returns the hashes of their transactions. */
async function sendPending(chains: LocalChains): Promise<readonly string[]> {
  const route = { token: "HOP", source: "polygon", destination: "arbitrum" };
  const from = getBonder(route.token, route.source, route.destination);
  const amount = 5n * 10n ** 18n;
  await fundAccount(chains, route.source, route.token, from, amount * BigInt(TRANSFERS));
  const noSwap = { amountOutMin: 0n, deadline: 0, destinationAmountOutMin: 0n, destinationDeadline: 0 };
  const hashes: string[] = [];
  for (let count = 0; count < TRANSFERS; count++) {
    const order = { ...route, ...noSwap, from, recipient: from, amount, bonderFee: 10n ** 17n };
    hashes.push((await sendTransfer(chains, order)).transactionHash);
  }
  return hashes;
}

/**
 * Measures what the open streams cost while nothing happens, and returns the resources in use.
 * @param baseline of the server before its first watch
 */
async function measureIdle(
  name: string,
  gateway: ServerProcess,
  countRequests: () => number,
  baseline: ResourceUsage | undefined,
): Promise<ResourceUsage> {
  // Until caches are filled, and all streams have spoken once.
  await sleep(16_000);
  const [cpuBefore, requestsBefore] = [await gateway.cpuUsage(), countRequests()];
  const began = performance.now();
  await sleep(MEASURE_MS);
  const [cpu, requests, after] = [await gateway.cpuUsage(), countRequests(), await gateway.resourceUsage()];
  const seconds = (performance.now() - began) / 1_000;
  const formatShare = (micros: number): string => (micros / 1e4 / seconds).toFixed(2);
  const formatMegabytes = (bytes: number): string => (bytes / 1e6).toFixed(1);
  const { residentBytes, heapBytes } = baseline ?? after;
  console.log(
    `${name}: ${formatMegabytes(after.residentBytes - residentBytes)} MB more (heap ${formatMegabytes(after.heapBytes - heapBytes)}), ` +
      `${formatShare(cpu.user + cpu.system - cpuBefore.user - cpuBefore.system)} % of a core ` +
      `(user ${formatShare(cpu.user - cpuBefore.user)}), ${((requests - requestsBefore) / seconds).toFixed(2)} requests/s to the chains`,
  );
  return after;
}

async function measure(environment: Readonly<Record<string, string>>): Promise<void> {
  const urls = [...hopChains.keys()].map((slug) => {
    return [slug, { chainId: getChainId(slug), url: environment[`RPC_URL_${slug.toUpperCase()}`] ?? "" }] as const;
  });
  const hashes = await sendPending(connectChains(Object.fromEntries(urls)));
  const upstreams = await proxyUpstreams(environment);
  const countRequests = (): number => upstreams.chainRequests().length;
  const createPaths = (count: number) =>
    Array.from({ length: count }, (_, index) => `/v1/transfers:watch?transferHash=${hashes[index % hashes.length]}`);

  async function run(protocol: string, open: OpenStreams): Promise<void> {
    // A server of its own: memory that one has given back is not returned to the system at once.
    const gateway = await startServer("gateway", { ...upstreams.environment, WATCH_MAX_PER_CALLER: "0" });
    const closes: Close[] = [];
    try {
      const baseline = await measureIdle("no watches", gateway, countRequests, undefined);
      for (const count of [TRANSFERS, WATCHES - TRANSFERS]) {
        closes.push(...(await open(new URL(gateway.url), createPaths(count))));
        const total = count === TRANSFERS ? TRANSFERS : WATCHES;
        await measureIdle(`${total} watches, ${protocol}`, gateway, countRequests, baseline);
      }
    } finally {
      for (const close of closes) close();
      await gateway.stop();
    }
  }
  try {
    for (const [protocol, open] of Object.entries(PROTOCOLS)) {
      if (process.env.WATCH_PROTOCOL === undefined || process.env.WATCH_PROTOCOL === protocol)
        await run(protocol, open);
    }
  } finally {
    await upstreams.close();
  }
}

const PROTOCOLS: Readonly<Record<string, OpenStreams>> = { "HTTP/1.1": openHttp1, "HTTP/2": openHttp2 };

await runBench(() => withLocalNetwork(measure), { gateway: serveGateway });
