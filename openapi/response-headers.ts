import type { Header } from "../gen/hop/rules/v1/rules_pb.js";
import { componentRef, type JsonObject, omitEmpty } from "./json-object.js";

const WHOLE_NUMBER = { type: "integer", minimum: 0 };

/** Headers of answers, by name. */
export const RESPONSE_HEADERS = {
  "X-Request-Id": {
    description: "Id of the request: the one that it brought in this header, or a new one. The log has it too.",
    required: true,
    schema: { type: "string", pattern: "^[A-Za-z0-9._-]{1,128}$" },
    example: "3f1c1f5e-8f5c-4f0e-9a0b-6d0f6f3f8a52",
  },
  Age: {
    description: "How many seconds old the facts are from which the answer was made.",
    schema: WHOLE_NUMBER,
    example: 1,
  },
  "Cache-Control": {
    description: "How long the answer may be used, in seconds, and how much longer while a newer one is fetched.",
    schema: { type: "string", pattern: "^(no-store|public, max-age=[0-9]+(, stale-while-revalidate=[0-9]+)?)$" },
    example: "public, max-age=4, stale-while-revalidate=2",
  },
  ETag: {
    description: "Names these very bytes, for `If-None-Match`. Only answers that stay the same for long have it.",
    schema: { type: "string", pattern: '^"[A-Za-z0-9_-]+"$' },
    example: '"n4bQgYhMfWWaL-qgxVrQFaO_TxsrC4Is0V1sFbDwCgg"',
  },
  Vary: {
    description: "What of a request else decides which bytes come, for caches.",
    schema: { type: "string" },
    example: "Accept-Encoding",
  },
  Allow: {
    description: "The methods that the path takes.",
    required: true,
    schema: { type: "string" },
    example: "GET, HEAD, OPTIONS",
  },
  "Retry-After": {
    description: "After how many seconds it is worth another try.",
    schema: { type: "integer", minimum: 1 },
    example: 1,
  },
  "RateLimit-Limit": {
    description: "How many requests a caller may make in each window. Only where the operator has set a limit.",
    schema: { type: "integer", minimum: 1 },
    example: 100,
  },
  "RateLimit-Remaining": {
    description: "How many are left in this window.",
    schema: WHOLE_NUMBER,
    example: 99,
  },
  "RateLimit-Reset": {
    description: "Seconds until the next window.",
    schema: { type: "integer", minimum: 1 },
    example: 1,
  },
} satisfies Record<string, JsonObject>;

type HeaderName = keyof typeof RESPONSE_HEADERS;

const COMMON_HEADERS: readonly HeaderName[] = ["X-Request-Id", "Cache-Control"];
const RATE_LIMIT_HEADERS: readonly HeaderName[] = ["RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset"];

/** Headers of an answer with the given status; `own` are those of its operation alone, which errors do not have. */
export function headersForStatus(status: number, own: readonly Header[]): JsonObject {
  const names: HeaderName[] = [...COMMON_HEADERS];
  if (status < 400) names.push("Age", "ETag", "Vary");
  if (status === 405) names.push("Allow");
  if (status === 429 || status === 503) names.push("Retry-After");
  names.push(...RATE_LIMIT_HEADERS);
  const shared = names.map((name) => [name, componentRef("headers", name)] as const);
  const more = status < 400 ? own.map((header) => [header.name, toHeaderObject(header)] as const) : [];
  return Object.fromEntries([...shared, ...more]);
}

function toHeaderObject({ description, values, format, example }: Header): JsonObject {
  return omitEmpty({ description, schema: omitEmpty({ type: "string", enum: values, format }), example });
}
