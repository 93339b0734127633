/** An answer of a server to a GET request. */
export interface Answer {
  readonly status: number;
  /** Parsed JSON; undefined if the body is something else. */
  readonly body: unknown;
  readonly durationMs: number;
}

/** What differs between two answers. The names of the properties are public: `replay --json` prints them. */
export interface AnswerDifference {
  /** Path of a field such as `details.limits.minAmount`; of a route such as `ETH:optimism:base`; `status` or `body`. */
  readonly field: string;
  /** `time`: a Unix time that is another by more than a minute. */
  readonly kind: "added" | "missing" | "value" | "time" | "status";
  readonly old?: unknown;
  readonly new?: unknown;
  /** By how many percent the new number is larger; left out where there is no number, or the old one is 0. */
  readonly relativePercent?: number;
}

type JsonObject = Readonly<Record<string, unknown>>;
/** How two values of a field may differ: not at all, as numbers that move with the chains do, as the time does, or freely. */
type FieldRule = "exact" | "moving" | "time" | "free";
interface Rules {
  readonly isQuote: boolean;
  /** Whether what is sent was computed for what is to arrive. */
  readonly isExactOutput: boolean;
  readonly tolerancePercent: number;
}

/** Both servers quote at nearly the same moment. */
const MAX_TIME_DIFFERENCE_SECONDS = 60;
/** Details that are other numbers with each block, price or delivery. What they bring about is compared. */
const FREE_FIELDS: ReadonlySet<string> = new Set([
  ...["sourceBlock", "destinationBlock", "gasPrice", "l1Fee", "tokenUpdatedAt", "nativeUpdatedAt"],
  ...["samples", "p50Seconds", "p90Seconds", "estimatedDeliveryAt"],
]);
const NUMBER_PATTERN = /^-?(0|[1-9][0-9]*)(\.[0-9]+)?$/;
const HEX_PATTERN = /^0x[0-9a-f]+$/i;

/**
 * Compares the answers of two servers to the same request, field by field. Hex may differ in case, and errors of the same
 * status in everything. The fields of a quote, and those in dollars, may differ by the tolerance; what was requested and what
 * happened on the chains may not; what is another number with each block or delivery is not compared. Routes may have another order.
 * @param path of the request
 */
export function compareAnswers(
  path: string,
  old: Answer,
  current: Answer,
  tolerancePercent: number,
): readonly AnswerDifference[] {
  if (old.status !== current.status) return [{ field: "status", kind: "status", old: old.status, new: current.status }];
  if (old.status >= 400) return [];
  const forms = [old, current].map(({ body }) => describeForm(body));
  if (forms[0] !== forms[1]) return [{ field: "body", kind: "value", old: forms[0], new: forms[1] }];
  const [pathname = "", query = ""] = path.split("?");
  const isRoutes = pathname.endsWith("/available-routes");
  const [before, after] = [old, current].map(({ body }) => (isRoutes ? indexRoutes(body) : body));
  const isExactOutput = /(^|&)receive_?amount=/i.test(query);
  return compareValues("", before, after, { isQuote: /\/quotes?$/.test(pathname), isExactOutput, tolerancePercent });
}

function describeForm(body: unknown): string {
  if (body === undefined) return "no JSON";
  return Array.isArray(body) ? "an array" : `a JSON ${typeof body}`;
}

/** Finds the list of routes in a body: the body itself, or the first list in it. */
export function findRoutes(body: unknown): readonly JsonObject[] {
  const list = Array.isArray(body) ? body : isObject(body) ? Object.values(body).find(Array.isArray) : undefined;
  return (list ?? []).filter(isObject);
}

function indexRoutes(body: unknown): JsonObject {
  return Object.fromEntries(
    findRoutes(body).map((route) => [`${route.token}:${route.sourceChainSlug}:${route.destinationChainSlug}`, route]),
  );
}

function compareValues(field: string, old: unknown, current: unknown, rules: Rules): readonly AnswerDifference[] {
  if (Array.isArray(old) && Array.isArray(current))
    return compareMembers(field, { ...old }, { ...current }, { ...rules, isList: true });
  if (isObject(old) && isObject(current)) return compareMembers(field, old, current, { ...rules, isList: false });
  return compareScalars(field, old, current, rules);
}

function compareMembers(
  field: string,
  old: JsonObject,
  current: JsonObject,
  { isList, ...rules }: Rules & { readonly isList: boolean },
): readonly AnswerDifference[] {
  const prefix = field === "" || isList ? field : `${field}.`;
  return [...new Set([...Object.keys(old), ...Object.keys(current)])].flatMap((key): readonly AnswerDifference[] => {
    const member = isList ? `${prefix}[${key}]` : `${prefix}${key}`;
    if (!Object.hasOwn(current, key)) return [{ field: member, kind: "missing", old: old[key] }];
    if (!Object.hasOwn(old, key)) return [{ field: member, kind: "added", new: current[key] }];
    return compareValues(member, old[key], current[key], rules);
  });
}

function compareScalars(field: string, old: unknown, current: unknown, rules: Rules): readonly AnswerDifference[] {
  if (old === current || toComparable(old) === toComparable(current)) return [];
  const difference = { field, kind: "value", old, new: current } as const;
  const [before, after] = [toNumber(old), toNumber(current)];
  // A number that becomes a string is another type for the clients that read it.
  if (before === undefined || after === undefined || typeof old !== typeof current) return [difference];
  const rule = findRule(field, rules);
  if (rule === "free") return [];
  if (rule === "time")
    return Math.abs(after - before) > MAX_TIME_DIFFERENCE_SECONDS ? [{ ...difference, kind: "time" }] : [];
  if (before === 0) return [difference];
  const relativePercent = (100 * (after - before)) / Math.abs(before);
  const isTolerated = rule === "moving" && Math.abs(relativePercent) <= rules.tolerancePercent;
  return isTolerated ? [] : [{ ...difference, relativePercent }];
}

function findRule(field: string, { isQuote, isExactOutput }: Rules): FieldRule {
  const [name = ""] = /\w+$/.exec(field) ?? [];
  if (name.endsWith("Usd")) return "moving";
  if (FREE_FIELDS.has(name)) return "free";
  if (/(At|Until)$/.test(name)) return "time";
  if (!isQuote || /^(amount|slippage)$/.test(name) || (name === "amountIn" && !isExactOutput)) return "exact";
  return /deadline$/i.test(name) ? "time" : "moving";
}

function toComparable(value: unknown): unknown {
  return typeof value === "string" && HEX_PATTERN.test(value) ? value.toLowerCase() : value;
}

function toNumber(value: unknown): number | undefined {
  if (typeof value === "number") return value;
  return typeof value === "string" && NUMBER_PATTERN.test(value) ? Number(value) : undefined;
}

function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
