import { setTimeout as sleep } from "node:timers/promises";
import { startGateway, type TestGateway } from "../support/service/in-process-gateway.js";
import { type FaultName, faults } from "./faults.js";
import type { Baseline, QueryName } from "./matrix/baseline.js";
import { createClassifier, type ResponseKind } from "./matrix/classify-response.js";
import type { Outcome, Upstream } from "./matrix/expected-outcomes.js";
import { isUpdatingDocument } from "./matrix/faults-document.js";
import { proxyUpstream } from "./proxied-upstream.js";
import { selectQueries } from "./scenario-queries.js";

// Runs one scenario of the matrix: a new gateway with a failing upstream. The result depends only on the responses and not
// on their latency, so that it is the same on a busy machine.

const MAX_AGE_MS = 400;
/**
 * Short limits for the times in the document, which are measured on an idle machine; long ones for all other runs, so
 * that a late event loop reaches none of them.
 */
const LIMITS = isUpdatingDocument
  ? { maxAgeMs: MAX_AGE_MS, maxStaleMs: 3_000, timeoutMs: 2_000, correctTimeoutMs: 10_000 }
  : { maxAgeMs: MAX_AGE_MS, maxStaleMs: 6_000, timeoutMs: 15_000, correctTimeoutMs: 30_000 };
/** Only a hang takes longer. */
const HANG_MS = 60_000;
const POLL_INTERVAL_MS = 100;
/** As documented: two seconds until the endpoint is probed, one until a read notices, and one until the next read. */
export const DOCUMENTED_RECOVERY_MS = 5_000;

export interface Scenario {
  readonly fault: FaultName;
  readonly upstream: Upstream;
  /** Whether the upstream worked before it failed, or failed from the start. */
  readonly state: "warm" | "cold";
  readonly expected: Outcome;
}

export interface ScenarioResult {
  /** All deviations from the expected outcome. */
  readonly problems: readonly string[];
  /** Longest latency during the fault, in milliseconds. */
  readonly maxLatencyMs: number;
  /** Time from the end of the fault until every response was correct, in milliseconds. */
  readonly recoveryMs: number;
}

interface CheckedResponse {
  readonly kind: ResponseKind;
  /** The Age header, in seconds. */
  readonly age: number;
  /** Status and body, for messages. */
  readonly text: string;
}

export async function runScenario(
  { fault, upstream, state, expected }: Scenario,
  baseline: Baseline,
): Promise<ScenarioResult> {
  const { affected, others } = selectQueries(fault, upstream);
  const classify = createClassifier({ baseline, upstream, others });
  const problems: string[] = [];
  let maxLatencyMs = 0;
  const { maxAgeMs, maxStaleMs } = LIMITS;
  const timeoutMs = expected === "correct" ? LIMITS.correctTimeoutMs : LIMITS.timeoutMs;
  const { proxies, environment, close } = await proxyUpstream(upstream, { timeoutMs, maxAgeMs, maxStaleMs }, baseline);
  const faulty = upstream === "one of two endpoints" ? proxies.slice(0, 1) : proxies;
  const setFault = (next: (typeof faults)[FaultName] | undefined) =>
    Promise.all(faulty.map((proxy) => proxy.setFault(next)));
  let gateway: TestGateway | undefined;

  /** Sends a query and checks the response; a wrong one is recorded as a problem. */
  async function send(query: QueryName): Promise<CheckedResponse> {
    if (gateway === undefined) throw new Error("no gateway");
    const startedAt = performance.now();
    const { status, headers, body } = await gateway.get(baseline.paths[query]);
    const latencyMs = performance.now() - startedAt;
    maxLatencyMs = Math.max(maxLatencyMs, latencyMs);
    const text = `${status} ${JSON.stringify(body)}`;
    const addProblem = (problem: string): void => {
      problems.push(`${query}: ${problem}: ${text}`);
    };
    if (latencyMs > timeoutMs + HANG_MS) addProblem(`took ${Math.round(latencyMs)} ms`);
    const age = Number(headers.get("age") ?? 0);
    const kind = classify(query, status, body);
    if (kind === "wrong") {
      const correct = JSON.stringify(baseline.responses[query]);
      addProblem(`neither an error that names the upstream nor the correct response ${correct}`);
    }
    return { kind, age, text };
  }

  async function expectKind(queries: readonly QueryName[], expectedKind: ResponseKind): Promise<void> {
    const responses = await Promise.all(queries.map(async (query) => ({ query, ...(await send(query)) })));
    for (const { query, kind, text } of responses) {
      if (kind !== "wrong" && kind !== expectedKind) problems.push(`${query}: ${kind}: ${text}`);
    }
  }

  /** Repeats a query until it fails; returns the ages of the responses before. */
  async function sendUntilUnavailable(query: QueryName): Promise<readonly number[]> {
    const ages: number[] = [];
    const startedAt = performance.now();
    for (;;) {
      const { kind, age } = await send(query);
      if (kind === "unavailable") return ages;
      ages.push(age);
      if (performance.now() - startedAt > HANG_MS) {
        problems.push(`${query}: still succeeds`);
        return ages;
      }
      await sleep(POLL_INTERVAL_MS);
    }
  }

  /** Expects responses from older state, and then errors once the state is too old. */
  async function expectStaleThenUnavailable(): Promise<void> {
    const entries = affected.map(async (query) => [query, await sendUntilUnavailable(query)] as const);
    const ages = new Map(await Promise.all(entries)).get("quote");
    if (ages === undefined) return;
    if (ages.length === 0) problems.push("quote: the last good chain state is not used");
    if (Math.max(...ages) < 1) problems.push("quote: Age does not show the age of the last good chain state");
    if (Math.max(...ages) * 1_000 > maxStaleMs) problems.push("quote: older than allowed");
  }

  /** Repeats all queries until every response is correct; returns the elapsed time in milliseconds. */
  async function recover(): Promise<number> {
    const startedAt = performance.now();
    for (;;) {
      const responses = await Promise.all([...affected, ...others].map(send));
      const elapsedMs = performance.now() - startedAt;
      if (responses.every(({ kind }) => kind === "correct")) return elapsedMs;
      if (elapsedMs > HANG_MS) {
        problems.push(`no recovery although every upstream works: ${responses.map(({ kind }) => kind)}`);
        return elapsedMs;
      }
      await sleep(POLL_INTERVAL_MS);
    }
  }

  try {
    if (state === "cold") await setFault(faults[fault]);
    gateway = await startGateway(environment);
    if (state === "warm") {
      await recover();
      maxLatencyMs = 0;
      await setFault(faults[fault]);
      await sleep(MAX_AGE_MS);
    }
    const othersChecked = expectKind(others, "correct");
    if (expected === "stale") await expectStaleThenUnavailable();
    else if (expected === "unavailable") await expectKind(affected, "unavailable");
    else {
      await expectKind(affected, "correct");
      await sleep(MAX_AGE_MS);
      await expectKind(affected, "correct");
    }
    await othersChecked;
    const maxLatencyDuringFaultMs = maxLatencyMs;
    await setFault(undefined);
    return { problems, maxLatencyMs: maxLatencyDuringFaultMs, recoveryMs: await recover() };
  } finally {
    await gateway?.stop();
    await close();
  }
}
