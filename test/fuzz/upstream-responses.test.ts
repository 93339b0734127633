import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import fc from "fast-check";
import { afterAll, beforeAll, expect, inject, test } from "vitest";
import { isFullEffort } from "../support/effort.js";
import { startGateway } from "../support/service/in-process-gateway.js";
import { listKnownTransfers } from "./fuzz-target.js";
import { runProperty } from "./run-property.js";

// Upstreams return any JSON, or real responses with changed types, missing members and absurd numbers. A valid request
// gets a result or an error that names the upstream, and never an internal error.

const RUNS = isFullEffort ? 100 : 20;

/** How responses are distorted: at random, but in the same way for the same seed. */
interface Distortion {
  readonly seed: number;
  /** Share of the values in a response that are changed. */
  readonly share: number;
  /** Values that replace others. */
  readonly values: readonly unknown[];
  /** Share of the responses that are not JSON, or unrelated JSON. */
  readonly nonsense: number;
}

let distortion: Distortion | undefined;
let randomState = 0;
/** Returns a pseudo-random number from 0 up to 1 (mulberry32). */
function random(): number {
  randomState = (randomState + 0x6d2b79f5) | 0;
  let mixed = Math.imul(randomState ^ (randomState >>> 15), 1 | randomState);
  mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
  return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
}
const pick = <T>(items: readonly T[]): T => items[Math.floor(random() * items.length)] as T;

/** Values that break programs which expect a number, hex or a list. */
const ABSURD_VALUES: readonly unknown[] = [
  ...[null, true, "", 0, -1, 1e308, 2 ** 53, [], {}, [[]], "0x", "0x0", "0xg", "0x1", `0x${"f".repeat(64)}`],
  ...[`0x${"f".repeat(65)}`, `0x${"00".repeat(4_000)}`, "latest", "NaN", "-0x1", "1e9", "\0", "__proto__", "٣"],
  { constructor: null, toString: 1, length: -1 },
];

/** Changes, removes, doubles or moves some of the values. */
function distort(value: unknown, { share, values }: Distortion): unknown {
  if (random() < share) return pick(random() < 0.5 ? ABSURD_VALUES : values);
  const distortInner = (inner: unknown): unknown => distort(inner, { seed: 0, share, values, nonsense: 0 });
  if (Array.isArray(value)) {
    const changed = value.map(distortInner);
    if (random() < share) changed.splice(Math.floor(random() * changed.length), 1);
    if (random() < share && changed.length > 0) changed.push(pick(changed));
    return changed;
  }
  if (typeof value === "object" && value !== null) {
    const members = Object.entries(value).map(([name, inner]) => [name, distortInner(inner)] as const);
    return Object.fromEntries(members.filter(() => random() >= share));
  }
  if (typeof value === "string" && /^0x[0-9a-f]+$/.test(value) && random() < share) {
    const position = 2 + Math.floor(random() * (value.length - 2));
    return random() < 0.5
      ? value.slice(0, position)
      : `${value.slice(0, position)}${pick(["0", "f", "8", "ff"])}${value.slice(position + 1)}`;
  }
  return value;
}

async function readAll(incoming: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of incoming) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}

/** Starts a proxy that distorts the responses of an upstream. */
async function startDistortingProxy(target: string, keepsPath: boolean): Promise<{ url: string; close(): void }> {
  const server = createServer(async (incoming, response) => {
    try {
      const body = await readAll(incoming);
      const upstream = await fetch(keepsPath ? `${target}${incoming.url}` : target, {
        method: incoming.method ?? "GET",
        ...(incoming.method === "POST" ? { body, headers: { "content-type": "application/json" } } : {}),
      });
      response
        .writeHead(upstream.status, { "content-type": "application/json" })
        .end(distortText(await upstream.text()));
    } catch {
      response.destroy();
    }
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    close() {
      server.close();
      server.closeAllConnections();
    },
  };
}

function distortText(text: string): string {
  if (distortion === undefined) return text;
  if (random() < distortion.nonsense) {
    return pick([
      text.slice(0, Math.floor(random() * text.length)),
      JSON.stringify(pick(distortion.values)) ?? "",
      "<html>",
      "\0",
    ]);
  }
  try {
    return JSON.stringify(distort(JSON.parse(text), distortion)) ?? "";
  } catch {
    return text;
  }
}

const proxies: { url: string; close(): void }[] = [];
let environment: Record<string, string> = {};
beforeAll(async () => {
  const { chains, assetsUrl, attestationUrl } = inject("network");
  for (const [slug, { url }] of Object.entries(chains)) {
    const proxy = await startDistortingProxy(url, false);
    proxies.push(proxy);
    environment[`RPC_URL_${slug.toUpperCase()}`] = proxy.url;
  }
  const assets = await startDistortingProxy(assetsUrl, true);
  const attestations = await startDistortingProxy(attestationUrl, true);
  proxies.push(assets, attestations);
  environment = {
    ...environment,
    ASSETS_URL: assets.url,
    ATTESTATION_API_URL: attestations.url,
    // Every request reads the chains again.
    QUOTE_MAX_AGE_MS: "1",
    QUOTE_MAX_STALE_MS: "1",
    REQUEST_TIMEOUT_MS: "10000",
  };
});
afterAll(() => {
  for (const proxy of proxies) proxy.close();
});

const quotePath = (token: string, fromChain: string, toChain: string): string =>
  `/v1/quote?amount=25000000&token=${token}&fromChain=${fromChain}&toChain=${toChain}&slippage=0.5`;
const quotes = [
  quotePath("USDT", "polygon", "arbitrum"),
  quotePath("ETH", "arbitrum", "optimism"),
  quotePath("USDC", "base", "arbitrum"),
  quotePath("USDC.e", "polygon", "optimism"),
  quotePath("HOP", "ethereum", "gnosis"),
];

/**
 * Returns what is wrong with the response to a valid request. A 404 is valid, because the chains may deny the transfer.
 * So is an error about the amount, because a well-formed wrong response may describe an empty pool.
 */
function findProblem(path: string, { status, body }: { status: number; body: unknown }): string | undefined {
  const { reason, field } = body as { reason?: string; field?: string };
  const isUpstreamError =
    status === 503 ? reason === "UPSTREAM_UNAVAILABLE" : status === 504 && reason === "DEADLINE_EXCEEDED";
  const isDenied =
    status === 404 && reason === "TRANSFER_NOT_FOUND" && /^\/v1\/(transfer-status|withdrawal)/.test(path);
  const isPoolEmpty = status === 400 && field === "amount" && path.startsWith("/v1/quote");
  if (status === 200 || isUpstreamError || isDenied || isPoolEmpty) return undefined;
  return `${path}: ${status} ${JSON.stringify(body)}`;
}

test("malformed upstream responses cause no errors but 503 or 504 with the upstream's name", {
  timeout: 1_200_000,
}, async () => {
  const transfers = listKnownTransfers();
  const outcomes = new Map<number, number>();
  const distortions = fc.record({
    seed: fc.integer(),
    share: fc.constantFrom(0.0005, 0.001, 0.003, 0.01, 0.1),
    values: fc.array(fc.jsonValue({ maxDepth: 2 }), { minLength: 1, maxLength: 5 }),
    nonsense: fc.constantFrom(0, 0, 0, 0, 0.1, 1),
  });
  const queries = fc.record({
    route: fc.nat(quotes.length - 1),
    transfer: fc.nat(transfers.length - 1),
    engine: fc.nat(7),
  });
  const property = fc.asyncProperty(distortions, queries, async (next, { route, transfer, engine }) => {
    distortion = undefined;
    randomState = next.seed;
    const gateway = await startGateway({ ...environment, QUOTE_ENGINE: engine === 0 ? "sdk" : "snapshot" });
    try {
      distortion = next;
      const { transferId = "", transactionHash = "" } = transfers[transfer] ?? {};
      const paths = [
        quotes[route] ?? "",
        quotes[(route + 1) % quotes.length] ?? "",
        `/v1/transfer-status?transferId=${transferId}`,
        `/v1/transfer-status?transferHash=${transactionHash}`,
        `/v1/withdrawal?transferHash=${transactionHash}`,
        "/v1/available-routes?token=ETH",
      ];
      const responses = await Promise.all(paths.map((path) => gateway.get(path)));
      for (const { status } of responses) outcomes.set(status, (outcomes.get(status) ?? 0) + 1);
      expect(responses.map((response, index) => findProblem(paths[index] ?? "", response)).filter(Boolean)).toEqual([]);
    } finally {
      await gateway.stop();
      distortion = undefined;
    }
  });
  await runProperty(property, RUNS);
  process.stdout.write(`responses: ${JSON.stringify(Object.fromEntries(outcomes))}\n`);
  // Both kinds of responses occurred.
  expect(outcomes.get(200)).toBeGreaterThan(RUNS);
  expect(outcomes.get(503)).toBeGreaterThan(0);
});
