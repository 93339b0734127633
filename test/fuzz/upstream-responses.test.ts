import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import fc from "fast-check";
import { afterAll, beforeAll, expect, inject, test } from "vitest";
import { startGateway } from "../support/service/in-process-gateway.js";
import { listKnownTransfers } from "./fuzz-target.js";

// Upstreams that answer anything: JSON of every form, and real answers with types changed, members gone and numbers
// absurd. Whoever asks right is told so, and nobody that the fault is ours.

const RUNS = 100;

/** What is done to the answers: by chance, but the same chance for the same seed. */
interface Lies {
  readonly seed: number;
  /** Share of the values in an answer that are changed. */
  readonly share: number;
  /** Values that stand in the place of others. */
  readonly values: readonly unknown[];
  /** Share of the answers that are no JSON at all, or JSON of no meaning. */
  readonly nonsense: number;
}

let lies: Lies | undefined;
let drawn = 0;
/** From 0 up to 1 (mulberry32). */
function chance(): number {
  drawn = (drawn + 0x6d2b79f5) | 0;
  let mixed = Math.imul(drawn ^ (drawn >>> 15), 1 | drawn);
  mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
  return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
}
const oneOf = <T>(all: readonly T[]): T => all[Math.floor(chance() * all.length)] as T;

/** What programs trip over where they expect a number, hex or a list. */
const absurd: readonly unknown[] = [
  ...[null, true, "", 0, -1, 1e308, 2 ** 53, [], {}, [[]], "0x", "0x0", "0xg", "0x1", `0x${"f".repeat(64)}`],
  ...[`0x${"f".repeat(65)}`, `0x${"00".repeat(4_000)}`, "latest", "NaN", "-0x1", "1e9", "\0", "__proto__", "٣"],
  { constructor: null, toString: 1, length: -1 },
];

/** The same with some of its values changed, gone, doubled or moved. */
function distorted(value: unknown, { share, values }: Lies): unknown {
  if (chance() < share) return oneOf(chance() < 0.5 ? absurd : values);
  const within = (inner: unknown): unknown => distorted(inner, { seed: 0, share, values, nonsense: 0 });
  if (Array.isArray(value)) {
    const changed = value.map(within);
    if (chance() < share) changed.splice(Math.floor(chance() * changed.length), 1);
    if (chance() < share && changed.length > 0) changed.push(oneOf(changed));
    return changed;
  }
  if (typeof value === "object" && value !== null) {
    const members = Object.entries(value).map(([name, inner]) => [name, within(inner)] as const);
    return Object.fromEntries(members.filter(() => chance() >= share));
  }
  if (typeof value === "string" && /^0x[0-9a-f]+$/.test(value) && chance() < share) {
    const at = 2 + Math.floor(chance() * (value.length - 2));
    return chance() < 0.5
      ? value.slice(0, at)
      : `${value.slice(0, at)}${oneOf(["0", "f", "8", "ff"])}${value.slice(at + 1)}`;
  }
  return value;
}

async function bodyOf(incoming: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of incoming) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}

/** Stands before an upstream and distorts its answers; with a path of its own, which the upstream does not see. */
async function startLiar(target: string, keepsPath: boolean): Promise<{ url: string; close(): void }> {
  const server = createServer(async (incoming, response) => {
    try {
      const body = await bodyOf(incoming);
      const answer = await fetch(keepsPath ? `${target}${incoming.url}` : target, {
        method: incoming.method ?? "GET",
        ...(incoming.method === "POST" ? { body, headers: { "content-type": "application/json" } } : {}),
      });
      response.writeHead(answer.status, { "content-type": "application/json" }).end(told(await answer.text()));
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

function told(text: string): string {
  if (lies === undefined) return text;
  if (chance() < lies.nonsense) {
    return oneOf([
      text.slice(0, Math.floor(chance() * text.length)),
      JSON.stringify(oneOf(lies.values)) ?? "",
      "<html>",
      "\0",
    ]);
  }
  try {
    return JSON.stringify(distorted(JSON.parse(text), lies)) ?? "";
  } catch {
    return text;
  }
}

const liars: { url: string; close(): void }[] = [];
let environment: Record<string, string> = {};
beforeAll(async () => {
  const { chains, assetsUrl, attestationUrl } = inject("network");
  for (const [slug, { url }] of Object.entries(chains)) {
    const liar = await startLiar(url, false);
    liars.push(liar);
    environment[`RPC_URL_${slug.toUpperCase()}`] = liar.url;
  }
  const assets = await startLiar(assetsUrl, true);
  const attestations = await startLiar(attestationUrl, true);
  liars.push(assets, attestations);
  environment = {
    ...environment,
    ASSETS_URL: assets.url,
    ATTESTATION_API_URL: attestations.url,
    // Everything is asked for again, and nothing waits long.
    QUOTE_MAX_AGE_MS: "1",
    QUOTE_MAX_STALE_MS: "1",
    REQUEST_TIMEOUT_MS: "1500",
  };
});
afterAll(() => {
  for (const liar of liars) liar.close();
});

const quoteOf = (token: string, fromChain: string, toChain: string): string =>
  `/v1/quote?amount=25000000&token=${token}&fromChain=${fromChain}&toChain=${toChain}&slippage=0.5`;
const quotes = [
  quoteOf("USDT", "polygon", "arbitrum"),
  quoteOf("ETH", "arbitrum", "optimism"),
  quoteOf("USDC", "base", "arbitrum"),
  quoteOf("USDC.e", "polygon", "optimism"),
  quoteOf("HOP", "ethereum", "gnosis"),
];

/**
 * What is wrong with the answer to a right request. A transfer that the chains deny cannot be told from none, nor a pool
 * that a well-formed lie empties from an empty one.
 */
function wrongIn(path: string, { status, body }: { status: number; body: unknown }): string | undefined {
  const { reason, field } = body as { reason?: string; field?: string };
  const isTold = status === 503 ? reason === "UPSTREAM_UNAVAILABLE" : status === 504 && reason === "DEADLINE_EXCEEDED";
  const isDenied = status === 404 && reason === "TRANSFER_NOT_FOUND" && path.startsWith("/v1/transfer-status");
  const isDrained = status === 400 && field === "amount" && path.startsWith("/v1/quote");
  if (status === 200 || isTold || isDenied || isDrained) return undefined;
  return `${path}: ${status} ${JSON.stringify(body)}`;
}

test("answers of every form from upstreams end in a quote, a status or an honest 503 or 504", {
  timeout: 300_000,
}, async () => {
  const transfers = listKnownTransfers();
  const outcomes = new Map<number, number>();
  const someLies = fc.record({
    seed: fc.integer(),
    share: fc.constantFrom(0.0005, 0.001, 0.003, 0.01, 0.1),
    values: fc.array(fc.jsonValue({ maxDepth: 2 }), { minLength: 1, maxLength: 5 }),
    nonsense: fc.constantFrom(0, 0, 0, 0, 0.1, 1),
  });
  const asked = fc.record({
    route: fc.nat(quotes.length - 1),
    transfer: fc.nat(transfers.length - 1),
    engine: fc.nat(7),
  });
  const property = fc.asyncProperty(someLies, asked, async (some, { route, transfer, engine }) => {
    lies = undefined;
    drawn = some.seed;
    const gateway = await startGateway({ ...environment, QUOTE_ENGINE: engine === 0 ? "sdk" : "snapshot" });
    try {
      lies = some;
      const { transferId = "", transactionHash = "" } = transfers[transfer] ?? {};
      const paths = [
        quotes[route] ?? "",
        quotes[(route + 1) % quotes.length] ?? "",
        `/v1/transfer-status?transferId=${transferId}`,
        `/v1/transfer-status?transferHash=${transactionHash}`,
        "/v1/available-routes?token=ETH",
      ];
      const answers = await Promise.all(paths.map((path) => gateway.get(path)));
      for (const { status } of answers) outcomes.set(status, (outcomes.get(status) ?? 0) + 1);
      expect(answers.map((answer, index) => wrongIn(paths[index] ?? "", answer)).filter(Boolean)).toEqual([]);
    } finally {
      await gateway.stop();
      lies = undefined;
    }
  });
  await fc.assert(property, { numRuns: RUNS, endOnFailure: true });
  process.stdout.write(`answers: ${JSON.stringify(Object.fromEntries(outcomes))}\n`);
  // Both sides of it were seen.
  expect(outcomes.get(200)).toBeGreaterThan(RUNS);
  expect(outcomes.get(503)).toBeGreaterThan(0);
});
