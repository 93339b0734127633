import type { Header } from "../gen/hop/openapi/v1/options_pb.js";
import { componentRef, type JsonObject, omitEmpty } from "../json-object.js";

const WHOLE_NUMBER = { type: "integer", minimum: 0 };

/** Response headers by name. */
export const RESPONSE_HEADERS = {
  "X-Request-Id": {
    description:
      "ID of the request: taken over from the same request header, or generated. It is also in the log. Not sent with responses that shared caches may keep (`Cache-Control: public`).",
    schema: { type: "string", pattern: "^[A-Za-z0-9._-]{1,128}$" },
    example: "3f1c1f5e-8f5c-4f0e-9a0b-6d0f6f3f8a52",
  },
  Age: {
    description: "Age in seconds of the data from which the response was computed.",
    schema: WHOLE_NUMBER,
    example: 1,
  },
  "Cache-Control": {
    description:
      "How long the response is fresh, in seconds, and how much longer it may be used while it is revalidated.",
    schema: { type: "string", pattern: "^(no-store|public, max-age=[0-9]+(, stale-while-revalidate=[0-9]+)?)$" },
    example: "public, max-age=4, stale-while-revalidate=2",
  },
  ETag: {
    description: "Validator of the body, for `If-None-Match`. Only responses that rarely change have one.",
    schema: { type: "string", pattern: '^"[A-Za-z0-9_-]+"$' },
    example: '"n4bQgYhMfWWaL-qgxVrQFaO_TxsrC4Is0V1sFbDwCgg"',
  },
  Vary: {
    description: "Request headers that affect the response, for caches.",
    schema: { type: "string" },
    example: "Accept-Encoding",
  },
  Warning: {
    description:
      'What a caller should know of an answer that is right: `299 - "text"`, or several, separated by commas.',
    schema: { type: "string", pattern: '^299 - "' },
    example:
      '299 - "Circle\'s CCTP V1 burns no such amount in one transfer: USDC optimism>base 7000000 (limit 5000000)"',
  },
  Allow: {
    description: "Methods that the path supports.",
    required: true,
    schema: { type: "string" },
    example: "GET, HEAD, OPTIONS",
  },
  "Retry-After": {
    description: "Seconds to wait before the next attempt.",
    schema: { type: "integer", minimum: 1 },
    example: 1,
  },
  Link: {
    description:
      "What the documentation says about the reason of the error. Only sent if the operator says where the documentation is.",
    schema: { type: "string", pattern: '^<[^>]+>; rel="help"$' },
    example: '<https://docs.example/errors.md#unsupported_route>; rel="help"',
  },
  "RateLimit-Limit": {
    description:
      "Requests that a client may make per window. Only sent if the operator has set a limit, and not with responses that shared caches may keep.",
    schema: { type: "integer", minimum: 1 },
    example: 100,
  },
  "RateLimit-Remaining": {
    description: "Requests left in the current window.",
    schema: WHOLE_NUMBER,
    example: 99,
  },
  "RateLimit-Reset": {
    description: "Seconds until the next window begins.",
    schema: { type: "integer", minimum: 1 },
    example: 1,
  },
} satisfies Record<string, JsonObject>;

type HeaderName = keyof typeof RESPONSE_HEADERS;

const COMMON_HEADERS: readonly HeaderName[] = ["X-Request-Id", "Cache-Control"];
const RATE_LIMIT_HEADERS: readonly HeaderName[] = ["RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset"];

/** Returns the headers of a response with the given status. Errors lack the operation's own headers. */
export function headersForStatus(status: number, operationHeaders: readonly Header[]): JsonObject {
  const names: HeaderName[] = [...COMMON_HEADERS];
  if (status < 400) names.push("Age", "ETag", "Vary", "Warning");
  else names.push("Link");
  if (status === 405) names.push("Allow");
  if (status === 429 || status === 503) names.push("Retry-After");
  names.push(...RATE_LIMIT_HEADERS);
  const shared = names.map((name) => [name, componentRef("headers", name)] as const);
  const specific = status < 400 ? operationHeaders.map((header) => [header.name, toHeaderObject(header)] as const) : [];
  return Object.fromEntries([...shared, ...specific]);
}

/** Returns the headers of a stream, which is never cached. */
export function streamHeadersForStatus(operationHeaders: readonly Header[]): JsonObject {
  const shared = [...COMMON_HEADERS, ...RATE_LIMIT_HEADERS].map(
    (name) => [name, componentRef("headers", name)] as const,
  );
  return Object.fromEntries([
    ...shared,
    ...operationHeaders.map((header) => [header.name, toHeaderObject(header)] as const),
  ]);
}

function toHeaderObject({ description, values, format, example }: Header): JsonObject {
  return omitEmpty({ description, schema: omitEmpty({ type: "string", enum: values, format }), example });
}
