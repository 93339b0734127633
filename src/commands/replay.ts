import { readFile } from "node:fs/promises";
import { getErrorMessage } from "../errors.js";
import { getNetwork } from "../hop/networks.js";
import { findToken } from "../hop/tokens.js";
import { createAbortScope } from "../resilience/abort-scope.js";
import { monotonicNow, sleep } from "../resilience/clock.js";
import { describeConnectionFailure } from "../resilience/http-client/fetch-json.js";
import { type ReplayOptions, UsageError } from "./command-line.js";
import { type Answer, type AnswerDifference, compareAnswers, findRoutes } from "./compare-answers.js";

type Outcome = { readonly request: string } & (
  | {
      readonly result: "equal" | "different";
      readonly old: Answer;
      readonly new: Answer;
      readonly differences: readonly AnswerDifference[];
    }
  | { readonly result: "failed"; readonly reason: string }
);
/** The path of a request, or why there is none. */
type Planned = { readonly path: string } | { readonly request: string; readonly reason: string };

const EXIT_CODES = { equal: 0, different: 1, nothingCompared: 3 } as const;
const REQUEST_TIMEOUT_MS = 60_000;
/** A server that limits its callers is asked again this often. */
const MAX_ATTEMPTS = 5;
const MAX_RETRY_AFTER_SECONDS = 60;
const MAX_REQUESTS = 100_000;
const ROUTES_PATH = "/v1/available-routes";

/** Usual amounts in thousandths of a token: some 2,000 dollars. A tenth and ten times of it are quoted too. */
const USUAL_MILLITOKENS: Readonly<Record<string, number>> = {
  ETH: 1_000,
  rETH: 1_000,
  WBTC: 50,
  HOP: 50_000_000,
  SNX: 500_000,
  MATIC: 1_000_000,
  MAGIC: 1_000_000,
};
const USUAL_MILLIDOLLARS = 2_000_000;

/**
 * Sends the same GET requests to two servers, one after the other, and prints by field how the answers differ.
 * @returns the exit code: 0 when all answers are equal, 1 when one differs, 3 when nothing could be compared: there were only
 * errors
 * @throws UsageError for a file that is not a list of paths
 */
export async function replayRequests(
  options: ReplayOptions,
  output: { write(text: string): unknown },
): Promise<number> {
  const outcomes: Outcome[] = [];
  for await (const planned of planRequests(options)) {
    const outcome = "path" in planned ? await replay(planned.path, options) : { result: "failed" as const, ...planned };
    if (!options.isJson) output.write(formatOutcome(outcome));
    outcomes.push(outcome);
    // Without the routes of both servers, each quote would only fail for the same reason.
    if (options.file === undefined && outcomes.length === 1 && outcome.result === "failed") break;
  }
  output.write(options.isJson ? formatJson(options, outcomes) : formatSummary(outcomes));
  if (outcomes.some(({ result }) => result === "different")) return EXIT_CODES.different;
  const hasEqual = outcomes.some((outcome) => outcome.result === "equal" && outcome.new.status < 400);
  return hasEqual ? EXIT_CODES.equal : EXIT_CODES.nothingCompared;
}

async function* planRequests(options: ReplayOptions): AsyncGenerator<Planned> {
  if (options.file !== undefined) {
    for (const path of await readPaths(options.file)) yield { path };
    return;
  }
  yield { path: ROUTES_PATH };
  const routes = await fetchAnswer(options.old, ROUTES_PATH).catch(() => undefined);
  for (const { token, sourceChainSlug, destinationChainSlug } of findRoutes(routes?.body)) {
    const amounts = listUsualAmounts(String(token));
    if (amounts.length === 0)
      yield {
        request: `${token} from ${sourceChainSlug} to ${destinationChainSlug}`,
        reason: "the token is not known",
      };
    for (const amount of amounts) {
      const transfer = { amount, token, fromChain: sourceChainSlug, toChain: destinationChainSlug, slippage: "0.5" };
      yield { path: `/v1/quote?${new URLSearchParams(transfer as Record<string, string>)}` };
    }
  }
}

/** Returns amounts in the token's smallest unit; none for an unknown token. */
function listUsualAmounts(symbol: string): readonly string[] {
  const token = findToken(getNetwork("mainnet"), symbol);
  if (token === undefined) return [];
  const millitokens = USUAL_MILLITOKENS[token.symbol] ?? USUAL_MILLIDOLLARS;
  const usual = BigInt(millitokens) * 10n ** BigInt(token.decimals - 3);
  return [usual / 10n, usual, usual * 10n].map(String);
}

/** Reads one path from each line, which may be that of a request: `GET /v1/quote?... HTTP/1.1`. */
async function readPaths(file: string): Promise<readonly string[]> {
  const text = await readFile(file, "utf8").catch((error: NodeJS.ErrnoException) => {
    throw new UsageError(`--file cannot be read: ${error.code}`);
  });
  const lines = text.split(/\r?\n/).map((line, index) => ({ number: index + 1, text: line.trim() }));
  const requests = lines.filter((line) => line.text !== "" && !line.text.startsWith("#"));
  if (requests.length > MAX_REQUESTS) throw new UsageError(`--file has more than ${MAX_REQUESTS} requests`);
  return requests.map((line) => {
    const path = /^(?:GET )?(\/\S*)(?: HTTP\/[0-9.]+)?$/.exec(line.text)?.[1];
    if (path === undefined) throw new UsageError(`--file: line ${line.number} is not the path of a GET request`);
    return path;
  });
}

async function replay(path: string, options: ReplayOptions): Promise<Outcome> {
  const request = hideEndpoints(path);
  const [old, current] = await Promise.allSettled([fetchAnswer(options.old, path), fetchAnswer(options.new, path)]);
  const reasons = Object.entries({ old, new: current }).flatMap(([side, { status, ...rest }]) =>
    "reason" in rest ? [`the ${side} server: ${getErrorMessage(rest.reason)}`] : [],
  );
  if (old.status === "rejected" || current.status === "rejected")
    return { request, result: "failed", reason: reasons.join("; ") };
  if (old.value.status === current.value.status) {
    const { status } = old.value;
    if (status >= 500) return { request, result: "failed", reason: `both servers answered ${status}` };
    if (status < 400 && old.value.body === undefined && current.value.body === undefined)
      return { request, result: "failed", reason: "both servers answered something that is not JSON" };
  }
  const differences = compareAnswers(path, old.value, current.value, options.tolerancePercent);
  const result = differences.length === 0 ? "equal" : "different";
  return { request, result, old: old.value, new: current.value, differences };
}

/** Hides the RPC endpoints that a request names: their URLs contain keys of callers. */
function hideEndpoints(path: string): string {
  return path.replace(/([?&]rpc_?url[^=&]*=)[^&]*/gi, "$1***");
}

/**
 * Sends a request, and again when the server asks its callers to wait.
 * @throws Error that says why there is no answer, without the URL
 */
async function fetchAnswer(baseUrl: string, path: string): Promise<Answer> {
  for (let attempt = 1; ; attempt++) {
    const scope = createAbortScope(new AbortController().signal, REQUEST_TIMEOUT_MS);
    const began = monotonicNow();
    try {
      const response = await fetch(`${baseUrl}${path}`, { signal: scope.signal });
      if (response.headers.get("content-type")?.startsWith("text/event-stream")) {
        await response.body?.cancel();
        throw new Error("answers with a stream of events, which is not compared");
      }
      const text = await response.text();
      const durationMs = monotonicNow() - began;
      const waitSeconds = Number(response.headers.get("retry-after") ?? Number.NaN);
      if (response.status !== 429 && !(response.status === 503 && waitSeconds >= 0))
        return { status: response.status, body: parseJson(text), durationMs };
      if (attempt === MAX_ATTEMPTS) throw new Error(`answered ${response.status} ${MAX_ATTEMPTS} times`);
      await sleep(
        1_000 * Math.min(waitSeconds >= 0 ? waitSeconds : 1, MAX_RETRY_AFTER_SECONDS),
        new AbortController().signal,
      );
    } catch (error) {
      if (scope.signal.aborted) throw new Error("did not answer in time");
      if (!(error instanceof TypeError)) throw error;
      throw new Error(describeConnectionFailure((error.cause as { code?: unknown } | undefined)?.code));
    } finally {
      scope.cancel();
    }
  }
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function formatOutcome(outcome: Outcome): string {
  if (outcome.result === "equal") return "";
  if (outcome.result === "failed") return `not compared: ${outcome.request}: ${outcome.reason}\n`;
  return `different: ${outcome.request}\n${outcome.differences.map(formatDifference).join("")}`;
}

function formatDifference({ field, kind, relativePercent, ...values }: AnswerDifference): string {
  // Names that a server chose: escape sequences would reach the terminal.
  const name = field.replace(/[^\x20-\x7e]/g, "?");
  if (kind === "added" || kind === "missing") return `    ${name}: ${kind}\n`;
  const sign = relativePercent !== undefined && relativePercent > 0 ? "+" : "";
  const relative = relativePercent === undefined ? "" : `, ${sign}${Number(relativePercent.toPrecision(3))} %`;
  return `    ${name}: ${JSON.stringify(values.old)}, new: ${JSON.stringify(values.new)}${relative}\n`;
}

function formatSummary(outcomes: readonly Outcome[]): string {
  const { equal, different, failed, medianMs } = summarize(outcomes);
  const times = medianMs === undefined ? "" : `median time: old ${medianMs.old} ms, new ${medianMs.new} ms\n`;
  return `${equal} equal, ${different.length} different, ${failed.length} not compared\n${times}`;
}

/** Formats the report as JSON; its keys are public. */
function formatJson({ tolerancePercent }: ReplayOptions, outcomes: readonly Outcome[]): string {
  const { equal, different, failed, medianMs } = summarize(outcomes);
  return `${JSON.stringify({ tolerancePercent, equal, medianMs, failed, differences: different }, undefined, 2)}\n`;
}

function summarize(outcomes: readonly Outcome[]) {
  const compared = outcomes.flatMap((outcome) => (outcome.result === "failed" ? [] : [outcome]));
  const round = ({ durationMs }: Answer) => Math.round(durationMs);
  return {
    equal: compared.filter(({ result }) => result === "equal").length,
    different: compared.flatMap(({ result, request, old, new: current, differences }) =>
      result === "equal"
        ? []
        : [
            {
              request,
              status: { old: old.status, new: current.status },
              timeMs: { old: round(old), new: round(current) },
              fields: differences,
            },
          ],
    ),
    failed: outcomes.flatMap((outcome) =>
      outcome.result === "failed" ? [{ request: outcome.request, reason: outcome.reason }] : [],
    ),
    medianMs:
      compared.length === 0
        ? undefined
        : {
            old: findMedian(compared.map(({ old }) => round(old))),
            new: findMedian(compared.map((each) => round(each.new))),
          },
  };
}

function findMedian(values: readonly number[]): number {
  return values.toSorted((one, other) => one - other)[values.length >> 1] ?? 0;
}
