import fc from "fast-check";
import type { RawHttpRequest } from "../../support/service/http-connections.js";
import { text, wellFormed } from "./values.js";

export const encodeInvisible = (target: string): string =>
  target.replace(/[^\x21-\x7e]/g, (char) => encodeURIComponent(wellFormed(char)));

export type Header = readonly [string, string];
/** Headers that every protocol may carry, some of them invalid. */
export const headerLists: fc.Arbitrary<readonly Header[]> = fc.oneof(
  { weight: 3, arbitrary: fc.constant([]) },
  {
    weight: 2,
    arbitrary: fc
      .array(
        fc.oneof(
          fc.tuple(fc.constant("x-request-id"), fc.oneof(fc.constantFrom("an-id.1", "x".repeat(128)), text)),
          fc.tuple(fc.constantFrom("user-agent", "x-forwarded-for", "referer", "cookie", "authorization", "te"), text),
          fc.tuple(fc.constant("accept-encoding"), fc.constantFrom("gzip", "br", "*", "gzip;q=0", "identity, gzip")),
          fc.tuple(fc.constant("if-none-match"), fc.constantFrom("*", '"x"', 'W/"', "x".repeat(3_000))),
          fc.tuple(
            fc.constantFrom("expect", "connection", "upgrade", "range", "origin"),
            fc.constantFrom("close", "x", "h2c"),
          ),
          fc.tuple(
            fc.constantFrom("connect-timeout-ms", "grpc-timeout"),
            fc.constantFrom("1n", "0", "1", "9999999999", "5S", "-1", "99999999H", "1１"),
          ),
          fc.tuple(fc.string({ unit: fc.constantFrom(..."abcxyz-_."), minLength: 1, maxLength: 8 }), text),
        ),
        { minLength: 1, maxLength: 3 },
      )
      .map((headers) => headers.map(([name, value]) => [name, Buffer.from(value).toString("latin1")] as const)),
  },
);
/** Removes line breaks: HTTP/2 has no lines that a value could break. */
const oneLine = (headers: readonly Header[]): readonly Header[] =>
  headers.map(([name, value]) => [name, value.replace(/[\r\n\0]/g, "")] as const);

export function toRequest(
  isHttp2: boolean,
  method: string,
  target: string,
  headers: readonly Header[],
  body?: Buffer,
): RawHttpRequest {
  return { isHttp2, method, target: encodeInvisible(target), headers: isHttp2 ? oneLine(headers) : headers, body };
}
