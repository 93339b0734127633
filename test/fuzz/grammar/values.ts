import fc from "fast-check";
import { CALLER_KEY } from "../../support/service/planted-keys.js";
import { INTRUSION_MARKER } from "../../support/service/response-invariants.js";

/** Values that pass a filter made for usual input. */
export const oddValues = fc.constantFrom(
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
export const text = fc.oneof(
  { weight: 6, arbitrary: oddValues },
  { weight: 2, arbitrary: fc.string({ unit: "binary", maxLength: 12 }) },
  { weight: 1, arbitrary: fc.string({ maxLength: 200 }) },
);

export const slugs = fc.constantFrom(
  "ethereum",
  "optimism",
  "arbitrum",
  "polygon",
  "gnosis",
  "base",
  "nova",
  "linea",
  "polygonzk",
);
export const tokens = fc.constantFrom("ETH", "USDC", "USDC.e", "usdt", "DAI", "HOP", "MATIC", "WETH", "rETH", "sUSD");
export const hash = fc
  .uint8Array({ minLength: 32, maxLength: 32 })
  .map((bytes) => `0x${Buffer.from(bytes).toString("hex")}`);

/** Endpoints that a caller may name: unreachable, forbidden, or invalid. */
export const rpcUrls = fc.oneof(
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

/** Draws true once in so many times. Damage is rare, so that the code behind the first check is reached too. */
export const withOdds = (odds: number) => fc.integer({ min: 0, max: odds - 1 }).map((drawn) => drawn === 0);

/** Lone surrogates cannot be percent-encoded. */
export const wellFormed = (value: string): string => value.replace(/\p{Surrogate}/gu, "\ufffd");
