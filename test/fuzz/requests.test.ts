import fc from "fast-check";
import { afterAll, beforeAll, expect, test } from "vitest";
import {
  createHttpConnections,
  type HttpConnections,
  type RawHttpRequest,
} from "../support/service/http-connections.js";
import { findResponseProblem } from "../support/service/response-invariants.js";
import { buildService } from "../support/service/service-process.js";
import { type FuzzTarget, listKnownTransfers, startFuzzTarget } from "./fuzz-target.js";
import { arbitraryRequest, describeRequest } from "./request-grammar.js";

// Requests of every protocol against the service in a process of its own. A failure names seed and path, with which
// fast-check finds the same requests again.

/** More of them where somebody has the time. */
const count = Number(process.env.ATTACK_REQUESTS ?? 100_000);
const CONCURRENCY = 500;
/** After so many requests every cache is as full as it gets. */
const WARM_UP = 0.3;
/** Room for measuring, and for what the log holds back; a leak of some hundred bytes a request is far above it. */
const MAX_GROWTH_BYTES = 12 * 1024 * 1024;

let command: string;
let service: FuzzTarget;
let callers: HttpConnections;
/** A caller who behaves, on connections of its own. */
let decent: HttpConnections;

async function start(): Promise<void> {
  service = await startFuzzTarget(command);
  callers = createHttpConnections(service.port);
  decent = createHttpConnections(service.port);
}
beforeAll(async () => {
  command = await buildService("attack-requests");
  await start();
}, 120_000);
afterAll(() => {
  callers?.close();
  decent?.close();
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

/** What is wrong with the answer to a right request in between. Fees move with gas and pools, amounts asked for do not. */
async function wrongInRight(isHttp2: boolean): Promise<string | undefined> {
  const answer = await decent.send(get(QUOTE, isHttp2));
  if (answer.kind !== "answer") return `a right request is ${answer.kind}`;
  const { amountIn, slippage, estimatedReceived, deadline } = JSON.parse(answer.body.toString()) as Record<
    string,
    unknown
  >;
  const received = Number(estimatedReceived);
  const isRight = answer.status === 200 && amountIn === "1000000" && slippage === 0.5 && Number(deadline) > 1.7e9;
  return isRight && received > 500_000 && received < 1_000_000 ? undefined : `${answer.status} ${answer.body}`;
}

test(`${count} requests of every protocol are answered or refused, and nothing is left of them`, {
  timeout: 600_000,
}, async () => {
  const held: number[] = [];
  const runs = Math.ceil(count / CONCURRENCY);
  const looks = Math.max(1, Math.floor(runs / 20));
  let run = 0;
  const outcomes = new Map<string, number>();
  const batch = fc.array(arbitraryRequest(listKnownTransfers()), {
    minLength: CONCURRENCY,
    maxLength: CONCURRENCY,
    size: "max",
  });

  const property = fc.asyncProperty(batch, async (all) => {
    const asked = all.map(async (one) => {
      const answer = await callers.send(one);
      const outcome = answer.kind === "answer" ? String(answer.status) : answer.kind;
      outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1);
      const problem = findResponseProblem(answer);
      return problem === undefined ? [] : [`${problem}: ${describeRequest(one)}`];
    });
    const rights = Promise.all([wrongInRight(false), wrongInRight(true)]);
    expect((await Promise.all(asked)).flat()).toEqual([]);
    expect(await rights).toEqual([undefined, undefined]);
    expect(service.isRunning(), service.output().stderr).toBe(true);
    run += 1;
    if (run > runs * WARM_UP && run % looks === 0) held.push((await service.resourceUsage()).heapBytes);
  });
  // Each problem names its request, so that there is no need to look for a smaller example.
  await fc.assert(property, { numRuns: runs, endOnFailure: true });

  process.stdout.write(
    `answers: ${JSON.stringify(Object.fromEntries(outcomes))}\nheap: ${held.map((bytes) => (bytes / 2 ** 20).toFixed(1)).join(" ")}\n`,
  );
  expect(Math.max(...held.slice(-3)) - Math.min(...held.slice(0, 3))).toBeLessThan(MAX_GROWTH_BYTES);
  callers.close();
  decent.close();
  await service.expectHealthy();
  await service.expectCleanExit();
});
