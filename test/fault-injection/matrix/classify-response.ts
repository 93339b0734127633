import { type ScenarioQueries, UPSTREAM_PATTERNS } from "../scenario-queries.js";
import { type Baseline, isExpectedBody, QUOTE_QUERIES, type QueryName } from "./baseline.js";
import type { Upstream } from "./expected-outcomes.js";

/** "unavailable": an error that names the upstream or the deadline, or a batch with such a result. */
export type ResponseKind = "correct" | "unavailable" | "wrong";

export interface ClassifierDeps {
  readonly baseline: Baseline;
  readonly upstream: Upstream;
  readonly others: ScenarioQueries["others"];
}

interface ErrorBody {
  readonly reason?: string;
  readonly message?: string;
}

/** A result of a batch: either of the two. */
interface BatchResult {
  readonly quote?: unknown;
  readonly error?: ErrorBody;
}

const STATUSES: Readonly<Record<string, number>> = { UPSTREAM_UNAVAILABLE: 503, DEADLINE_EXCEEDED: 504 };

/** Creates the function that compares a response with the baseline. */
export function createClassifier({ baseline, upstream, others }: ClassifierDeps) {
  const classifyBody = (body: unknown, expected: unknown): ResponseKind =>
    isExpectedBody(body, expected, upstream) ? "correct" : "wrong";

  function classifyError({ reason = "", message = "" }: ErrorBody): ResponseKind {
    const isAllowed =
      reason === "UPSTREAM_UNAVAILABLE" ? UPSTREAM_PATTERNS[upstream].test(message) : reason in STATUSES;
    return isAllowed ? "unavailable" : "wrong";
  }

  /** A quote that does not need the upstream must be right although others of its batch fail. */
  function classifyBatch(body: unknown, expected: unknown): ResponseKind {
    const [results, correct] = [body, expected].map((each) => (each as { results: readonly BatchResult[] }).results);
    const kinds = QUOTE_QUERIES.map((query, index) => {
      const { quote, error = {} } = results?.[index] ?? {};
      if (quote !== undefined) return classifyBody(quote, correct?.[index]?.quote);
      return others.includes(query) ? "wrong" : classifyError(error);
    });
    return (["wrong", "unavailable"] as const).find((kind) => kinds.includes(kind)) ?? "correct";
  }

  return (query: QueryName, status: number, body: unknown): ResponseKind => {
    if (status === 200)
      return (query === "batch of quotes" ? classifyBatch : classifyBody)(body, baseline.responses[query]);
    const error = body as ErrorBody;
    return status === STATUSES[error.reason ?? ""] ? classifyError(error) : "wrong";
  };
}
