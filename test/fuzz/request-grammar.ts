import { gzipSync } from "node:zlib";
import { create, type DescMessage, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import fc from "fast-check";
import {
  GetQuoteRequestSchema,
  GetTransferStatusRequestSchema,
  ListAvailableRoutesRequestSchema,
} from "../../gen/hop/bridge/v1/bridge_pb.js";
import type { RawHttpRequest } from "../support/service/http-connections.js";
import { CALLER_KEY } from "../support/service/planted-keys.js";
import { INTRUSION_MARKER } from "../support/service/response-invariants.js";

// Requests of every protocol: right ones with nothing, something or much of them spoilt.

const SERVICE_PATH = "/hop.bridge.v1.BridgeService";

/** What gets through where a filter looks for what is usual. */
const oddValues = fc.constantFrom(
  ...["", "0", "-0", "01", "+1", "-1", " 1", "1 ", "1e9", "1.5", ".5", "0x10", "1_000", "NaN", "Infinity", "null"],
  ...["9".repeat(78), "9".repeat(79), "9".repeat(4_000), "100", "99.999999999999999999", "1e-400"],
  ...["１０００", "٣٤", "१२", "²", "①", "1\u200b", "\u00a01", "ＵＳＤＣ", "ﬀ", "İ", "ß", "K"],
  ...["\0", "1\0", "\u007f", "\ud800", "\udfff\ud800", "\ufffe", "\u202e1", "a\u0301", "😀"],
  ...["__proto__", "constructor", "prototype", "toString", "hasOwnProperty", "valueOf", "__defineGetter__", "then"],
  ...["%", "%%", "%zz", "%f", "%ff", "%00", "%c0%af", "%ed%a0%80", "%25%30%30", "+", "&", "=", "#", "?", "/", "\\"],
  ...["../../etc/passwd", "[", "]", "[]", "a[b]", "a.b", "\u0024{jndi:ldap://127.0.0.1:1/x}", "{{7*7}}", "' OR 1=1 --"],
  `\r\nX-Intrusion: ${INTRUSION_MARKER}`,
  `\r\n\r\nHTTP/1.1 200 OK\r\nX-Intrusion: ${INTRUSION_MARKER}\r\n\r\n`,
  `\n{"level":60,"msg":"${INTRUSION_MARKER}"}\n`,
  `","level":60,"msg":"${INTRUSION_MARKER}`,
  `\u001b[2J\u001b[31m${INTRUSION_MARKER}`,
  `\u2028${INTRUSION_MARKER}\u2029`,
  `\b\b\b${INTRUSION_MARKER}`,
  `<script>${INTRUSION_MARKER}</script>`,
  `%s%n%x${INTRUSION_MARKER}`,
);
const text = fc.oneof(
  { weight: 6, arbitrary: oddValues },
  { weight: 2, arbitrary: fc.string({ unit: "binary", maxLength: 12 }) },
  { weight: 1, arbitrary: fc.string({ maxLength: 200 }) },
);

const slugs = fc.constantFrom("ethereum", "optimism", "arbitrum", "polygon", "gnosis", "base", "nova", "linea", "zk");
const tokens = fc.constantFrom("ETH", "USDC", "USDC.e", "usdt", "DAI", "HOP", "MATIC", "WETH", "rETH", "sUSD");
const hash = fc.uint8Array({ minLength: 32, maxLength: 32 }).map((bytes) => `0x${Buffer.from(bytes).toString("hex")}`);

/** Endpoints that a caller may name: nobody there, forbidden, or no endpoint. */
const rpcUrls = fc.oneof(
  fc.constantFrom(
    `http://127.0.0.1:1/${CALLER_KEY}`,
    `http://${CALLER_KEY}:${CALLER_KEY}@127.0.0.1:1/`,
    `http://[::1]:1/?key=${CALLER_KEY}`,
    `ftp://127.0.0.1/${CALLER_KEY}`,
    `http://127.0.0.1:99999/${CALLER_KEY}`,
    `https:///127.0.0.1:1/${CALLER_KEY}`,
    `data:,${CALLER_KEY}`,
    `//127.0.0.1:1/${CALLER_KEY}`,
    `http://127.0.0.1:1/${"x".repeat(2_100)}${CALLER_KEY}`,
    `http://127.0.0.1:1/\r\nX-Intrusion: ${INTRUSION_MARKER}`,
  ),
  oddValues,
);

/** A transfer that is there. */
export interface KnownTransfer {
  readonly transferId: string;
  readonly transactionHash: string;
}

type Fields = Readonly<Record<string, string | number | Readonly<Record<string, string>>>>;

interface Method {
  readonly path: string;
  readonly procedure: string;
  readonly schema: DescMessage;
  readonly fields: fc.Arbitrary<Fields>;
}

/** The methods, with right parameters of each by their names in JSON. */
function methodsWith(known: readonly KnownTransfer[]): readonly Method[] {
  const optional = <T>(arbitrary: fc.Arbitrary<T>) => fc.option(arbitrary, { nil: undefined, freq: 8 });
  const filled = (fields: Record<string, unknown>) =>
    Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as Fields;
  const network = fc.oneof(
    { weight: 1, arbitrary: fc.constantFrom("mainnet", "goerli", "") },
    { weight: 12, arbitrary: fc.constant(undefined) },
  );
  // Each of them opens connections: a few are enough.
  const rpcUrl = fc.oneof(
    { weight: 1, arbitrary: fc.dictionary(fc.oneof(slugs, oddValues), rpcUrls, { minKeys: 1, maxKeys: 2 }) },
    { weight: 40, arbitrary: fc.constant(undefined) },
  );
  // What is not there is searched on the chains, each time anew: now and then is enough.
  const lookedFor = fc.oneof(
    { weight: 80, arbitrary: fc.constantFrom(...known) },
    { weight: 1, arbitrary: fc.record({ transferId: hash, transactionHash: hash }) },
  );
  return [
    {
      path: "/v1/quote",
      procedure: "GetQuote",
      schema: GetQuoteRequestSchema,
      fields: fc
        .record({
          amount: fc.bigInt({ min: 1n, max: 10n ** 24n }).map(String),
          token: tokens,
          fromChain: slugs,
          toChain: slugs,
          slippage: fc.constantFrom(0, 0.1, 0.5, 1, 50),
          network,
          rpcUrl,
        })
        .map(filled),
    },
    {
      path: "/v1/transfer-status",
      procedure: "GetTransferStatus",
      schema: GetTransferStatusRequestSchema,
      fields: fc
        .tuple(lookedFor, fc.nat(2), fc.record({ network, rpcUrl }))
        .map(([{ transferId, transactionHash }, way, more]) => ({
          ...(way === 0
            ? { transferId }
            : way === 1
              ? { transferHash: transactionHash }
              : { transferId, transactionHash }),
          ...more,
        }))
        .map(filled),
    },
    {
      path: "/v1/available-routes",
      procedure: "ListAvailableRoutes",
      schema: ListAvailableRoutesRequestSchema,
      fields: fc
        .record({ token: optional(tokens), fromChain: optional(slugs), toChain: optional(slugs), network, rpcUrl })
        .map(filled),
    },
  ];
}

/** How often something is spoilt: mostly not, so that what is behind the first check is reached too. */
const withOdds = (odds: number) => fc.integer({ min: 0, max: odds - 1 }).map((drawn) => drawn === 0);

// The request's way of saying it.

const percentAll = (value: string): string =>
  [...Buffer.from(value)].map((byte) => `%${byte.toString(16).padStart(2, "0")}`).join("");
/** Lone surrogates cannot be percent-encoded. */
const wellFormed = (value: string): string => value.replace(/\p{Surrogate}/gu, "\ufffd");
const encodings: readonly ((value: string) => string)[] = [
  (value) => encodeURIComponent(wellFormed(value)),
  (value) => encodeURIComponent(wellFormed(value)),
  percentAll,
  (value) => encodeURIComponent(encodeURIComponent(wellFormed(value))),
  // As it is, but for what would end the request line.
  (value) =>
    Buffer.from(value)
      .toString("latin1")
      .replace(/[\s\0]/g, "+"),
];

function pairsOf(fields: Fields): [string, string][] {
  return Object.entries(fields).flatMap(([name, value]) =>
    typeof value === "object"
      ? Object.entries(value).map(([key, url]) => [`${name}[${key}]`, url] as [string, string])
      : [[name, String(value)] as [string, string]],
  );
}

interface Mutation {
  readonly kind: "value" | "name" | "double" | "drop" | "add" | "snake" | "path";
  readonly at: number;
  readonly text: string;
  readonly name: string;
}

const names = fc.constantFrom(
  ...["amount", "token", "fromChain", "from_chain", "toChain", "slippage", "transferId", "transferHash", "network"],
  ...["rpcUrl", "rpcUrl[", "rpcUrl[]", "rpcUrl[__proto__]", "rpcUrl[constructor]", "rpcUrl[optimism", "rpcUrl[a][b]"],
  ...["rpc_url[optimism]", "rpcUrl%5Boptimism%5D", "refresh", "__proto__", "constructor", "toString", "", "amount\0"],
);
const mutations: fc.Arbitrary<readonly Mutation[]> = fc.oneof(
  { weight: 2, arbitrary: fc.constant([]) },
  {
    weight: 5,
    arbitrary: fc.array(
      fc.record({
        kind: fc.constantFrom("value", "value", "value", "name", "double", "drop", "add", "snake", "path"),
        at: fc.nat(20),
        text,
        name: fc.oneof({ weight: 4, arbitrary: names }, { weight: 1, arbitrary: text }),
      }),
      { minLength: 1, maxLength: 3 },
    ),
  },
);

function applyMutations(
  path: string,
  fields: Fields,
  spoilt: readonly Mutation[],
): { path: string; pairs: [string, string][] } {
  const pairs = pairsOf(fields);
  let changedPath = path;
  for (const { kind, at, text, name } of spoilt) {
    const index = at % Math.max(pairs.length, 1);
    const pair = pairs[index];
    if (kind === "path") changedPath = `${path}${text.replace(/[\s?#]/g, "") || "/"}`;
    else if (pair === undefined || kind === "add") pairs.push([name, text]);
    else if (kind === "value") pair[1] = text;
    else if (kind === "name") pair[0] = name;
    else if (kind === "double") pairs.push([...pair]);
    else if (kind === "snake") pair[0] = pair[0].replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
    else pairs.splice(index, 1);
  }
  return { path: changedPath, pairs };
}

const visible = (target: string): string =>
  target.replace(/[^\x21-\x7e]/g, (char) => encodeURIComponent(wellFormed(char)));

type Header = readonly [string, string];
/** Headers that every protocol may carry, some of them spoilt. */
const headerLists: fc.Arbitrary<readonly Header[]> = fc.oneof(
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
/** HTTP/2 has no lines that a value could break. */
const oneLine = (headers: readonly Header[]): readonly Header[] =>
  headers.map(([name, value]) => [name, value.replace(/[\r\n\0]/g, "")] as const);

function toRequest(
  isHttp2: boolean,
  method: string,
  target: string,
  headers: readonly Header[],
  body?: Buffer,
): RawHttpRequest {
  return { isHttp2, method, target: visible(target), headers: isHttp2 ? oneLine(headers) : headers, body };
}

function getRequests(method: Method): fc.Arbitrary<RawHttpRequest> {
  return fc
    .tuple(method.fields, mutations, fc.nat(20), fc.boolean(), headerLists, fc.nat(30))
    .map(([fields, spoilt, encoding, isHttp2, headers, verb]) => {
      const { path, pairs } = applyMutations(method.path, fields, spoilt);
      const encode = encodings[encoding % encodings.length] ?? encodeURIComponent;
      // Brackets come literally and encoded.
      const encodeName =
        encoding % 2 === 0 ? encode : (name: string) => visible(name.replace(/[&=#+%]/g, encodeURIComponent));
      const query = pairs.map(([name, value]) => `${encodeName(name)}=${encode(value)}`).join("&");
      const verbs = ["HEAD", "OPTIONS", "POST", "PUT", "DELETE", "TRACE", "PATCH", "PROPFIND"];
      return toRequest(isHttp2, verbs[verb] ?? "GET", query === "" ? path : `${path}?${query}`, headers);
    });
}

/** The message's fields as text of JSON, with what was spoilt in it. */
function jsonOf(fields: Fields, spoilt: readonly Mutation[], value: unknown): string {
  const members: [string, unknown][] = Object.entries(fields);
  for (const { kind, at, text, name } of spoilt) {
    const member = members[at % Math.max(members.length, 1)];
    if (member === undefined || kind === "add") members.push([name, at % 2 === 0 ? text : value]);
    else if (kind === "value") member[1] = at % 2 === 0 ? text : value;
    else if (kind === "name") member[0] = name;
    else if (kind === "double") members.push([...member]);
    else if (kind === "drop") members.splice(at % members.length, 1);
  }
  return `{${members.map(([name, each]) => `${JSON.stringify(name)}:${JSON.stringify(each) ?? "null"}`).join(",")}}`;
}

/** A message's bytes, cut, changed and grown. */
interface ByteDamage {
  readonly cut: number;
  readonly at: number;
  readonly byte: number;
  readonly more: Uint8Array;
}
const damages = fc.option(
  fc.record({ cut: fc.nat(8), at: fc.nat(200), byte: fc.nat(255), more: fc.uint8Array({ maxLength: 12 }) }),
  { nil: undefined, freq: 2 },
);
function damageBytes(bytes: Uint8Array, damage: ByteDamage | undefined): Buffer {
  if (damage === undefined) return Buffer.from(bytes);
  const copy = Buffer.from(bytes.subarray(0, Math.max(0, bytes.length - damage.cut)));
  if (copy.length > 0) copy[damage.at % copy.length] = damage.byte;
  return Buffer.concat([copy, damage.more]);
}
/** A long run of one byte, now and then: up to beyond what is taken. */
const padding = fc.oneof(
  { weight: 400, arbitrary: fc.constant(0) },
  { weight: 1, arbitrary: fc.constantFrom(64 * 1024, 66 * 1024, 200_000) },
);

interface Message {
  readonly json: Buffer;
  readonly binary: Buffer;
}
function messages(method: Method): fc.Arbitrary<Message> {
  return fc
    .tuple(method.fields, mutations, fc.jsonValue({ maxDepth: 3 }), damages, padding)
    .map(([fields, spoilt, value, damage, pad]) => {
      const message = create(method.schema, fields as MessageInitShape<DescMessage>);
      const space = " ".repeat(pad);
      return {
        json: damageBytes(
          Buffer.from(`${jsonOf(fields, spoilt, value)}${space}`),
          spoilt.length > 1 ? damage : undefined,
        ),
        binary: Buffer.concat([damageBytes(toBinary(method.schema, message), damage), Buffer.from(space)]),
      };
    });
}

const jsonTypes = fc.constantFrom(
  "application/json",
  "application/json",
  "application/json; charset=utf-8",
  "Application/JSON",
  "application/json; charset=x",
  "text/json",
  "",
);
const protoTypes = fc.constantFrom(
  "application/proto",
  "application/proto",
  "application/x-protobuf",
  "application/protobuf",
);
const contentEncodings = fc.constantFrom("gzip", "identity", "br", "deflate", "gzip, gzip", "x");

function connectPostRequests(method: Method): fc.Arbitrary<RawHttpRequest> {
  return fc
    .tuple(
      messages(method),
      fc.boolean(),
      jsonTypes,
      protoTypes,
      headerLists,
      fc.boolean(),
      withOdds(12),
      contentEncodings,
      withOdds(2),
    )
    .map(([message, isBinary, jsonType, protoType, headers, isHttp2, isEncoded, encoding, isPacked]) => {
      const body = isBinary ? message.binary : message.json;
      const type = isBinary ? protoType : jsonType;
      const all = [
        ["content-type", type] as const,
        ...(isEncoded ? [["content-encoding", encoding] as const] : []),
        ...headers,
      ];
      return toRequest(
        isHttp2,
        "POST",
        `${SERVICE_PATH}/${method.procedure}`,
        all,
        isEncoded && isPacked ? gzipSync(body) : body,
      );
    });
}

function connectGetRequests(method: Method): fc.Arbitrary<RawHttpRequest> {
  return fc
    .tuple(messages(method), fc.nat(6), fc.boolean(), headerLists, mutations)
    .map(([{ json, binary }, way, isHttp2, headers, spoilt]) => {
      const short = (bytes: Buffer): Buffer => bytes.subarray(0, 3_000);
      const params: Fields =
        way % 3 === 0
          ? { connect: "v1", encoding: "json", message: short(json).toString("latin1") }
          : {
              connect: "v1",
              base64: "1",
              encoding: way % 3 === 1 ? "json" : "proto",
              message: short(way % 3 === 1 ? json : binary).toString("base64url"),
            };
      const { path, pairs } = applyMutations(`${SERVICE_PATH}/${method.procedure}`, params, way < 4 ? [] : spoilt);
      const query = pairs.map(([name, value]) => `${name}=${encodeURIComponent(wellFormed(value))}`).join("&");
      return toRequest(isHttp2, "GET", `${path}?${query}`, headers);
    });
}

/** A message behind its flags and length, which may be wrong. */
const envelopes = fc.record({
  flags: fc.oneof(
    { weight: 6, arbitrary: fc.constant(0) },
    { weight: 1, arbitrary: fc.constantFrom(1, 2, 3, 0x80, 0xff) },
  ),
  lengthError: fc.oneof(
    { weight: 8, arbitrary: fc.constant(0) },
    { weight: 1, arbitrary: fc.constantFrom(-3, -1, 1, 5, 70_000, 2 ** 31) },
  ),
  count: fc.oneof({ weight: 8, arbitrary: fc.constant(1) }, { weight: 1, arbitrary: fc.constantFrom(0, 2, 5) }),
  isPacked: withOdds(10),
});
function envelopeMessages(
  message: Buffer,
  { flags, lengthError, count, isPacked }: { flags: number; lengthError: number; count: number; isPacked: boolean },
): Buffer {
  const body = isPacked ? gzipSync(message) : message;
  const head = Buffer.alloc(5);
  head[0] = isPacked ? flags | 1 : flags;
  head.writeUInt32BE(Math.max(0, Math.min(body.length + lengthError, 2 ** 32 - 1)), 1);
  return Buffer.concat(Array.from({ length: count }, () => [head, body]).flat());
}

const otherContentTypes = fc.constantFrom(
  "/grpc.health.v1.Health/Check",
  "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
  "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
  `${SERVICE_PATH}/Nope`,
  "/",
  "",
);

/** gRPC, and gRPC-Web which looks the same on its way in. */
function grpcRequests(method: Method): fc.Arbitrary<RawHttpRequest> {
  const types = fc.constantFrom(
    "application/grpc",
    "application/grpc",
    "application/grpc+proto",
    "application/grpc+json",
    "application/grpc-web+proto",
    "application/grpc-web",
    "application/grpc-web+json",
    "application/grpc-web-text",
    "application/grpcx",
  );
  return fc
    .tuple(
      messages(method),
      envelopes,
      types,
      headerLists,
      withOdds(20),
      otherContentTypes,
      fc.boolean(),
      withOdds(10),
      contentEncodings,
    )
    .map(([{ json, binary }, envelope, type, headers, isOther, other, isHttp2, isEncoded, encoding]) => {
      const body = envelopeMessages(type.endsWith("json") ? json : binary, envelope);
      const isEncodingSaid = isEncoded || (envelope.isPacked && encoding !== "x");
      const all: Header[] = [
        ["content-type", type],
        ["te", "trailers"],
      ];
      if (isEncodingSaid) all.push(["grpc-encoding", isEncoded ? encoding : "gzip"]);
      const isOverHttp2 = isHttp2 || !type.includes("web");
      return toRequest(
        isOverHttp2,
        "POST",
        isOther ? other : `${SERVICE_PATH}/${method.procedure}`,
        [...all, ...headers],
        body,
      );
    });
}

/** Nothing in particular. */
const arbitraryHttpRequests: fc.Arbitrary<RawHttpRequest> = fc
  .tuple(
    fc.boolean(),
    fc.constantFrom(
      "GET",
      "POST",
      "PUT",
      "HEAD",
      "OPTIONS",
      "DELETE",
      "TRACE",
      "PATCH",
      "LINK",
      "M-SEARCH",
      "QUERY",
      "get",
    ),
    fc.oneof(
      otherContentTypes,
      text.map((some) => `/${some}`),
      fc.constantFrom(
        "*",
        "//",
        "/v1/quote/",
        "//v1/quote",
        "http://x/v1/quote",
        "/v1/quote#x",
        `/${"x".repeat(9_000)}`,
        `/v1/quote?${"a=1&".repeat(2_500)}`,
      ),
    ),
    fc.array(fc.tuple(fc.constantFrom("content-type", "x-request-id", "accept", "x".repeat(2_000)), text), {
      maxLength: 4,
    }),
    fc.oneof(
      { weight: 3, arbitrary: fc.constant(undefined) },
      { weight: 1, arbitrary: fc.uint8Array({ maxLength: 60 }) },
    ),
  )
  .map(([isHttp2, method, target, headers, body]) =>
    toRequest(
      isHttp2,
      method,
      target,
      headers.map(([name, value]) => [name, Buffer.from(value).toString("latin1")]),
      body && Buffer.from(body),
    ),
  );

/** Requests of all kinds. */
export function arbitraryRequest(known: readonly KnownTransfer[]): fc.Arbitrary<RawHttpRequest> {
  const methods = methodsWith(known);
  const each = methods.flatMap((method) => [
    { weight: 4, arbitrary: getRequests(method) },
    { weight: 3, arbitrary: connectPostRequests(method) },
    { weight: 2, arbitrary: connectGetRequests(method) },
    { weight: 3, arbitrary: grpcRequests(method) },
  ]);
  return fc.oneof(...each, { weight: 4, arbitrary: arbitraryHttpRequests });
}

/** A request as a failure shows it. */
export function describeRequest({ isHttp2, method, target, headers, body }: RawHttpRequest): string {
  const shown = body === undefined ? "" : ` ${body.length > 300 ? `${body.length} bytes` : body.toString("base64")}`;
  return `${isHttp2 ? "HTTP/2" : "HTTP/1.1"} ${method} ${target} ${JSON.stringify(headers)}${shown}`;
}
