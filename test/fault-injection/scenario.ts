import { setTimeout as sleep } from "node:timers/promises";
import { startGateway, type TestGateway } from "../support/service/in-process-gateway.js";
import { type Baseline, isExpectedBody, type QueryName } from "./baseline.js";
import type { Outcome, Upstream } from "./expected-outcomes.js";
import { type FaultName, faults } from "./faults.js";
import { proxyUpstream } from "./proxied-upstream.js";

// One cell of the matrix: a gateway of its own, an upstream that becomes unwell, and what is answered meanwhile.

/** Short times, so that all of them pass within a cell. */
const REQUEST_TIMEOUT_MS = 2_000;
/** The usual time, where nothing is to be refused. */
const DEFAULT_TIMEOUT_MS = 10_000;
const MAX_AGE_MS = 400;
const MAX_STALE_MS = 3_000;
/** A shared machine may be late by so much. */
const LEEWAY_MS = 2_000;
/** The longest that a chain may go on to be kept beyond its time: its reads begin before it. */
const MAX_STALE_SERVING_MS = MAX_STALE_MS + REQUEST_TIMEOUT_MS + LEEWAY_MS;
/** As promised: two seconds until it is looked at again, and one each until a read finds that out and until the next. */
export const DOCUMENTED_RECOVERY_MS = 5_000;
export const MAX_RECOVERY_MS = DOCUMENTED_RECOVERY_MS + LEEWAY_MS;
const POLL_INTERVAL_MS = 100;

/** The questions that need an upstream, and those that must not notice what is wrong with it. */
const queriesByUpstream: Readonly<
  Record<Upstream, { readonly affected: readonly QueryName[]; readonly others: readonly QueryName[] }>
> = {
  "source chain": chainQueries(),
  "destination chain": chainQueries(),
  "one of two endpoints": chainQueries(),
  "all endpoints": chainQueries(),
  prices: { affected: ["quote"], others: ["status by hash", "status by id", "routes"] },
  settings: { affected: ["quote"], others: ["status by hash", "status by id", "routes"] },
  explorer: { affected: ["status by hash", "status by id"], others: ["other quote", "routes"] },
  attestation: { affected: ["CCTP quote"], others: ["quote", "status by hash", "routes"] },
};

function chainQueries() {
  return { affected: ["quote", "status by hash", "status by id"], others: ["other quote", "routes"] } as const;
}

/** Questions for which nothing is read that a fault spoils. */
const unaffectedQueries: { readonly [Fault in FaultName]?: (question: QueryName) => boolean } = {
  // Statuses are read from receipts and logs, and quotes from contracts.
  "empty 0x from contracts": (question) => question.startsWith("status"),
  "null for every block": (question) => question === "quote",
};

function classifyQueries(fault: FaultName, upstream: Upstream): (typeof queriesByUpstream)[Upstream] {
  const { affected, others } = queriesByUpstream[upstream];
  const isSpared = unaffectedQueries[fault];
  if (isSpared === undefined) return { affected, others };
  return {
    affected: affected.filter((question) => !isSpared(question)),
    others: [...others, ...affected.filter(isSpared)],
  };
}

/** What a refusal says of the upstream. */
const UPSTREAM_PATTERNS: Readonly<Record<Upstream, RegExp>> = {
  "source chain": /polygon/,
  "destination chain": /arbitrum/,
  "one of two endpoints": /polygon/,
  "all endpoints": /polygon/,
  prices: /price|fee settings/,
  settings: /fee settings/,
  explorer: /polygon/,
  attestation: /attestation/,
};

export interface Scenario {
  readonly fault: FaultName;
  readonly upstream: Upstream;
  readonly state: "warm" | "cold";
  readonly expected: Outcome;
}

export interface ScenarioResult {
  /** Everything that was not as it should be. */
  readonly problems: readonly string[];
  /** Longest time for an answer while the upstream was unwell, in milliseconds. */
  readonly maxLatencyMs: number;
  /** From when it was well until everything was answered right, in milliseconds. */
  readonly recoveryMs: number;
}

type Verdict = "right" | "refused" | "wrong";

export async function runScenario(
  { fault, upstream, state, expected }: Scenario,
  truth: Baseline,
): Promise<ScenarioResult> {
  const { affected, others } = classifyQueries(fault, upstream);
  const problems: string[] = [];
  let worstMs = 0;
  const timeoutMs = expected === "right" ? DEFAULT_TIMEOUT_MS : REQUEST_TIMEOUT_MS;
  const { proxies, environment, close } = await proxyUpstream(
    upstream,
    { timeoutMs, maxAgeMs: MAX_AGE_MS, maxStaleMs: MAX_STALE_MS },
    truth,
  );
  const unwell = upstream === "one of two endpoints" ? proxies.slice(0, 1) : proxies;
  const become = (next: (typeof faults)[FaultName] | undefined) =>
    Promise.all(unwell.map((proxy) => proxy.setFault(next)));
  let gateway: TestGateway | undefined;

  async function ask(question: QueryName): Promise<{ readonly verdict: Verdict; readonly age: number }> {
    if (gateway === undefined) throw new Error("no gateway");
    const startedAt = performance.now();
    const { status, headers, body } = await gateway.get(truth.paths[question]);
    const ms = performance.now() - startedAt;
    worstMs = Math.max(worstMs, ms);
    const say = (what: string): void => {
      problems.push(`${question}: ${what}: ${status} ${JSON.stringify(body)}`);
    };
    if (ms > timeoutMs + LEEWAY_MS) say(`took ${Math.round(ms)} ms`);
    const age = Number(headers.get("age") ?? 0);
    if (status === 200) {
      if (isExpectedBody(body, truth.answers[question], upstream)) return { verdict: "right", age };
      say(`a wrong answer, not ${JSON.stringify(truth.answers[question])}`);
      return { verdict: "wrong", age };
    }
    const { reason, message } = body as { reason?: string; message?: string };
    const isHonest =
      (status === 503 && reason === "UPSTREAM_UNAVAILABLE" && UPSTREAM_PATTERNS[upstream].test(message ?? "")) ||
      (status === 504 && reason === "DEADLINE_EXCEEDED");
    if (isHonest) return { verdict: "refused", age };
    say("neither an answer nor an honest refusal");
    return { verdict: "wrong", age };
  }

  async function askAll(all: readonly QueryName[], wanted: readonly Verdict[]): Promise<void> {
    const answers = await Promise.all(all.map(async (question) => ({ question, ...(await ask(question)) })));
    for (const { question, verdict } of answers) {
      if (verdict !== "wrong" && !wanted.includes(verdict)) problems.push(`${question}: ${verdict}`);
    }
  }

  /** Asks until what was read before is no longer given. */
  async function outlast(): Promise<void> {
    const since = performance.now();
    const ages: number[] = [];
    const open = new Set(affected);
    while (open.size > 0 && performance.now() - since < MAX_STALE_SERVING_MS) {
      const answers = await Promise.all([...open].map(async (question) => ({ question, ...(await ask(question)) })));
      for (const { question, verdict, age } of answers) {
        if (verdict === "refused") open.delete(question);
        else if (question === "quote") ages.push(age);
      }
      await sleep(POLL_INTERVAL_MS);
    }
    for (const question of open) problems.push(`${question}: is still answered`);
    if (!affected.includes("quote")) return;
    if (ages.length === 0) problems.push("quote: the last good snapshot is not given");
    if (Math.max(...ages) < 1) problems.push("quote: the age of the last good snapshot is not shown");
    if (Math.max(...ages) * 1_000 > MAX_STALE_MS) problems.push("quote: older than it may be");
  }

  /** Asks until everything is answered right, and gives how long that took, in milliseconds. */
  async function settle(): Promise<number> {
    const since = performance.now();
    for (;;) {
      // What is answered wrong is noted as a problem.
      const verdicts = await Promise.all([...affected, ...others].map(ask));
      const ms = performance.now() - since;
      if (verdicts.every(({ verdict }) => verdict === "right")) return ms;
      if (ms > MAX_RECOVERY_MS) {
        problems.push(`not all are right while all is well: ${verdicts.map(({ verdict }) => verdict)}`);
        return ms;
      }
      await sleep(POLL_INTERVAL_MS);
    }
  }

  try {
    if (state === "cold") await become(faults[fault]);
    gateway = await startGateway(environment);
    if (state === "warm") {
      await settle();
      worstMs = 0;
      await become(faults[fault]);
      await sleep(MAX_AGE_MS);
    }
    const untouched = askAll(others, ["right"]);
    if (expected === "kept") await outlast();
    else if (expected === "refused") await askAll(affected, ["refused"]);
    else {
      await askAll(affected, ["right"]);
      await sleep(MAX_AGE_MS);
      await askAll(affected, ["right"]);
    }
    await untouched;
    const worst = worstMs;
    await become(undefined);
    return { problems, maxLatencyMs: worst, recoveryMs: await settle() };
  } finally {
    await gateway?.stop();
    await close();
  }
}
