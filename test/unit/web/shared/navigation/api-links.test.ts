import { describe, expect, test } from "vitest";
import { isApiLink, translateApiLink } from "../../../../../web/shared/navigation/api-links.js";
import { formatHash, parseHash } from "../../../../../web/shared/navigation/location-hash.js";

const ROUTE = {
  token: "USDT",
  sourceChainSlug: "polygon",
  sourceChainId: 137,
  destinationChainSlug: "arbitrum",
  destinationChainId: 42161,
};
const getDecimals = (token: string) => (token === "USDT" ? 6 : undefined);
const HASH = `0x${"ab".repeat(32)}`;

describe("links with the API's names", () => {
  test.each([
    [`#transfer?transferHash=${HASH}`, `#transfer?of=${HASH}`],
    [`#transfer?transactionHash=${HASH}&network=goerli`, `#transfer?of=${HASH}&network=goerli`],
    [`#transfer?transferId=${HASH}`, `#transfer?id=${HASH}`],
    [
      `#account?account=0x12&fromChain=Polygon&toChain=42161&state=PENDING`,
      "#account?of=0x12&from=polygon&to=arbitrum&state=PENDING",
    ],
    [
      "#quote?amount=25500000&token=usdt&fromChain=137&toChain=ARBITRUM",
      "#quote?amount=25.5&token=usdt&from=polygon&to=arbitrum",
    ],
    ["#quote?receiveAmount=1&token=USDT&fromChain=polygon", "#quote?receiveAmount=0.000001&token=USDT&from=polygon"],
    // Neither an amount of the API nor a token with known decimals.
    ["#quote?amount=0.5&token=USDT&fromChain=polygon", "#quote?amount=0.5&token=USDT&from=polygon"],
    ["#quote?amount=25&token=FRAX&fromChain=polygon", "#quote?amount=25&token=FRAX&from=polygon"],
    // The page's own name wins.
    ["#quote?from=gnosis&fromChain=polygon", "#quote?from=gnosis"],
  ])("%s becomes %s", (link, expected) => {
    const target = parseHash(link);
    expect(isApiLink(target)).toBe(true);
    expect(formatHash(translateApiLink(target, [ROUTE], getDecimals))).toBe(expected);
  });

  test.each([
    "#quote?amount=25&token=USDT&from=polygon",
    `#transfer?of=${HASH}`,
    "#routes?fromChain=polygon",
    "#chains",
  ])("%s is a link of the page", (link) => {
    expect(isApiLink(parseHash(link))).toBe(false);
  });

  test("are translated as far as possible without routes and decimals", () => {
    const target = parseHash("#quote?amount=25&token=USDT&fromChain=Polygon&toChain=42161");
    const translated = translateApiLink(target, [], () => undefined);
    expect(formatHash(translated)).toBe("#quote?amount=25&token=USDT&from=polygon&to=42161");
  });
});
