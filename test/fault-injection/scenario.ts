import { setTimeout as sleep } from "node:timers/promises";
import { startGateway, type TestGateway } from "../support/service/in-process-gateway.js";
import { isRight, type Question, type Truth } from "./baseline.js";
import type { Outcome, Upstream } from "./expected-outcomes.js";
import { type FaultName, faults } from "./faults.js";
import { surround } from "./proxied-upstream.js";

// One cell of the matrix: a gateway of its own, an upstream that becomes unwell, and what is answered meanwhile.

/** Short times, so that all of them pass within a cell. */
const requestTimeoutMs = 2_000;
/** The usual time, where nothing is to be refused. */
const usualTimeoutMs = 10_000;
const maxAgeMs = 400;
const maxStaleMs = 3_000;
/** A shared machine may be late by so much. */
const leewayMs = 2_000;
/** The longest that a chain may go on to be kept beyond its time: its reads begin before it. */
const longestKeptMs = maxStaleMs + requestTimeoutMs + leewayMs;
/** As promised: two seconds until it is looked at again, and one each until a read finds that out and until the next. */
export const promisedHealMs = 5_000;
export const healMs = promisedHealMs + leewayMs;
const pollMs = 100;

/** The questions that need an upstream, and those that must not notice what is wrong with it. */
const asked: Readonly<
  Record<Upstream, { readonly affected: readonly Question[]; readonly others: readonly Question[] }>
> = {
  "source chain": onChain(),
  "destination chain": onChain(),
  "one of two endpoints": onChain(),
  "all endpoints": onChain(),
  prices: { affected: ["quote"], others: ["status by hash", "status by id", "routes"] },
  settings: { affected: ["quote"], others: ["status by hash", "status by id", "routes"] },
  explorer: { affected: ["status by hash", "status by id"], others: ["other quote", "routes"] },
  attestation: { affected: ["CCTP quote"], others: ["quote", "status by hash", "routes"] },
};

function onChain() {
  return { affected: ["quote", "status by hash", "status by id"], others: ["other quote", "routes"] } as const;
}

/** Questions for which nothing is read that a fault spoils. */
const spared: { readonly [Fault in FaultName]?: (question: Question) => boolean } = {
  // Statuses are read from receipts and logs, and quotes from contracts.
  "empty 0x from contracts": (question) => question.startsWith("status"),
  "null for every block": (question) => question === "quote",
};

function whoNotices(fault: FaultName, upstream: Upstream): (typeof asked)[Upstream] {
  const { affected, others } = asked[upstream];
  const isSpared = spared[fault];
  if (isSpared === undefined) return { affected, others };
  return {
    affected: affected.filter((question) => !isSpared(question)),
    others: [...others, ...affected.filter(isSpared)],
  };
}

/** What a refusal says of the upstream. */
const named: Readonly<Record<Upstream, RegExp>> = {
  "source chain": /polygon/,
  "destination chain": /arbitrum/,
  "one of two endpoints": /polygon/,
  "all endpoints": /polygon/,
  prices: /price|fee settings/,
  settings: /fee settings/,
  explorer: /polygon/,
  attestation: /attestation/,
};

export interface Cell {
  readonly fault: FaultName;
  readonly upstream: Upstream;
  readonly state: "warm" | "cold";
  readonly expected: Outcome;
}

export interface Seen {
  /** Everything that was not as it should be. */
  readonly problems: readonly string[];
  /** Longest time for an answer while the upstream was unwell, in milliseconds. */
  readonly worstMs: number;
  /** From when it was well until everything was answered right, in milliseconds. */
  readonly healedMs: number;
}

type Verdict = "right" | "refused" | "wrong";

export async function runCell({ fault, upstream, state, expected }: Cell, truth: Truth): Promise<Seen> {
  const { affected, others } = whoNotices(fault, upstream);
  const problems: string[] = [];
  let worstMs = 0;
  const timeoutMs = expected === "right" ? usualTimeoutMs : requestTimeoutMs;
  const { proxies, environment, close } = await surround(upstream, { timeoutMs, maxAgeMs, maxStaleMs }, truth);
  const unwell = upstream === "one of two endpoints" ? proxies.slice(0, 1) : proxies;
  const become = (next: (typeof faults)[FaultName] | undefined) =>
    Promise.all(unwell.map((proxy) => proxy.become(next)));
  let gateway: TestGateway | undefined;

  async function ask(question: Question): Promise<{ readonly verdict: Verdict; readonly age: number }> {
    if (gateway === undefined) throw new Error("no gateway");
    const startedAt = performance.now();
    const { status, headers, body } = await gateway.get(truth.paths[question]);
    const ms = performance.now() - startedAt;
    worstMs = Math.max(worstMs, ms);
    const say = (what: string): void => {
      problems.push(`${question}: ${what}: ${status} ${JSON.stringify(body)}`);
    };
    if (ms > timeoutMs + leewayMs) say(`took ${Math.round(ms)} ms`);
    const age = Number(headers.get("age") ?? 0);
    if (status === 200) {
      if (isRight(body, truth.answers[question], upstream)) return { verdict: "right", age };
      say(`a wrong answer, not ${JSON.stringify(truth.answers[question])}`);
      return { verdict: "wrong", age };
    }
    const { reason, message } = body as { reason?: string; message?: string };
    const isHonest =
      (status === 503 && reason === "UPSTREAM_UNAVAILABLE" && named[upstream].test(message ?? "")) ||
      (status === 504 && reason === "DEADLINE_EXCEEDED");
    if (isHonest) return { verdict: "refused", age };
    say("neither an answer nor an honest refusal");
    return { verdict: "wrong", age };
  }

  async function askAll(all: readonly Question[], wanted: readonly Verdict[]): Promise<void> {
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
    while (open.size > 0 && performance.now() - since < longestKeptMs) {
      const answers = await Promise.all([...open].map(async (question) => ({ question, ...(await ask(question)) })));
      for (const { question, verdict, age } of answers) {
        if (verdict === "refused") open.delete(question);
        else if (question === "quote") ages.push(age);
      }
      await sleep(pollMs);
    }
    for (const question of open) problems.push(`${question}: is still answered`);
    if (!affected.includes("quote")) return;
    if (ages.length === 0) problems.push("quote: the last good snapshot is not given");
    if (Math.max(...ages) < 1) problems.push("quote: the age of the last good snapshot is not shown");
    if (Math.max(...ages) * 1_000 > maxStaleMs) problems.push("quote: older than it may be");
  }

  /** Asks until everything is answered right, and gives how long that took, in milliseconds. */
  async function settle(): Promise<number> {
    const since = performance.now();
    for (;;) {
      // What is answered wrong is noted as a problem.
      const verdicts = await Promise.all([...affected, ...others].map(ask));
      const ms = performance.now() - since;
      if (verdicts.every(({ verdict }) => verdict === "right")) return ms;
      if (ms > healMs) {
        problems.push(`not all are right while all is well: ${verdicts.map(({ verdict }) => verdict)}`);
        return ms;
      }
      await sleep(pollMs);
    }
  }

  try {
    if (state === "cold") await become(faults[fault]);
    gateway = await startGateway(environment);
    if (state === "warm") {
      await settle();
      worstMs = 0;
      await become(faults[fault]);
      await sleep(maxAgeMs);
    }
    const untouched = askAll(others, ["right"]);
    if (expected === "kept") await outlast();
    else if (expected === "refused") await askAll(affected, ["refused"]);
    else {
      await askAll(affected, ["right"]);
      await sleep(maxAgeMs);
      await askAll(affected, ["right"]);
    }
    await untouched;
    const worst = worstMs;
    await become(undefined);
    return { problems, worstMs: worst, healedMs: await settle() };
  } finally {
    await gateway?.stop();
    await close();
  }
}
