import fc from "fast-check";
import { afterAll, beforeAll, expect, test } from "vitest";
import { isFullEffort } from "../support/effort.js";
import { buildService } from "../support/service/build-service.js";
import {
  createHttpConnections,
  type HttpConnections,
  type RawHttpRequest,
} from "../support/service/http-connections.js";
import { findResponseProblem } from "../support/service/response-invariants.js";
import { type FuzzTarget, listKnownTransfers, startFuzzTarget } from "./fuzz-target.js";
import { arbitraryRequest, describeRequest } from "./request-grammar.js";
import { runProperty } from "./run-property.js";

// Sends requests of every protocol to the service in a separate process. The printed seed repeats the same requests.

const REQUESTS = Number(process.env.FUZZ_REQUESTS ?? (isFullEffort ? 100_000 : 5_000));
const CONCURRENCY = 500;
/** Share of the requests after which every cache is full. */
const WARM_UP = 0.3;
/** With fewer requests the caches do not fill, so that growth of the heap means nothing. */
const MIN_REQUESTS_FOR_HEAP = 50_000;
/** Room for measuring errors and buffered log lines; a leak of some hundred bytes a request is far above it. */
const MAX_GROWTH_BYTES = 12 * 1024 * 1024;

let command: string;
let service: FuzzTarget;
let connections: HttpConnections;
/** Sends only valid requests, on separate connections. */
let validConnections: HttpConnections;

async function start(): Promise<void> {
  service = await startFuzzTarget(command);
  connections = createHttpConnections(service.port);
  validConnections = createHttpConnections(service.port);
}
beforeAll(async () => {
  command = await buildService();
  await start();
});
afterAll(() => {
  connections?.close();
  validConnections?.close();
  if (service?.isRunning()) service.signal("SIGKILL");
});

const get = (target: string, isHttp2: boolean): RawHttpRequest => ({
  isHttp2,
  method: "GET",
  target,
  headers: [],
  body: undefined,
});
const QUOTE = "/v1/quote?amount=1000000&token=USDT&fromChain=polygon&toChain=arbitrum&slippage=0.5";

/**
 * Sends a valid request and returns what is wrong with the response. Fees vary with gas and pools, the amount does not.
 * Repeats it some times if there is no time for it, as on a busy machine.
 */
async function findQuoteProblem(isHttp2: boolean, repeats = 20): Promise<string | undefined> {
  const response = await validConnections.send(get(QUOTE, isHttp2));
  if (response.kind !== "answer") return `a valid request is ${response.kind}`;
  if (repeats > 0 && response.status === 503 && response.body.includes('"OVERLOADED"'))
    return findQuoteProblem(isHttp2, repeats - 1);
  const { amountIn, slippage, estimatedReceived, deadline } = JSON.parse(response.body.toString()) as Record<
    string,
    unknown
  >;
  const received = Number(estimatedReceived);
  const isValid = response.status === 200 && amountIn === "1000000" && slippage === 0.5 && Number(deadline) > 1.7e9;
  return isValid && received > 500_000 && received < 1_000_000 ? undefined : `${response.status} ${response.body}`;
}

test(`${REQUESTS} requests of every protocol get valid responses and leak nothing`, {
  timeout: 1_800_000,
}, async () => {
  const heapSizes: number[] = [];
  const runs = Math.ceil(REQUESTS / CONCURRENCY);
  const runsPerSample = Math.max(1, Math.floor(runs / 20));
  let run = 0;
  const outcomes = new Map<string, number>();
  const batch = fc.array(arbitraryRequest(listKnownTransfers()), {
    minLength: CONCURRENCY,
    maxLength: CONCURRENCY,
    size: "max",
  });

  const property = fc.asyncProperty(batch, async (requests) => {
    const sent = requests.map(async (request) => {
      const response = await connections.send(request);
      const outcome = response.kind === "answer" ? String(response.status) : response.kind;
      outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1);
      const problem = findResponseProblem(response);
      return problem === undefined ? [] : [`${problem}: ${describeRequest(request)}`];
    });
    const quoteProblems = Promise.all([findQuoteProblem(false), findQuoteProblem(true)]);
    expect((await Promise.all(sent)).flat()).toEqual([]);
    expect(await quoteProblems).toEqual([undefined, undefined]);
    expect(service.isRunning(), service.output().stderr).toBe(true);
    run += 1;
    const isSampled = run > runs * WARM_UP && run % runsPerSample === 0;
    if (isSampled) heapSizes.push((await service.resourceUsage()).heapBytes);
  });
  await runProperty(property, runs);

  process.stdout.write(
    `responses: ${JSON.stringify(Object.fromEntries(outcomes))}\nheap: ${heapSizes.map((bytes) => (bytes / 2 ** 20).toFixed(1)).join(" ")}\n`,
  );
  if (REQUESTS >= MIN_REQUESTS_FOR_HEAP) {
    expect(Math.max(...heapSizes.slice(-3)) - Math.min(...heapSizes.slice(0, 3))).toBeLessThan(MAX_GROWTH_BYTES);
  }
  connections.close();
  validConnections.close();
  await service.expectHealthy();
  await service.expectCleanExit();
});
