import { request as httpRequest, type IncomingHttpHeaders } from "node:http";
import { describe, expect, inject, test } from "vitest";
import { closeAfterTest } from "../../support/close-after-test.js";
import { startGatewayForTest, useGateway } from "../../support/service/in-process-gateway.js";
import { startHttpStub } from "../../support/stubs/http-stub.js";

// The public interface over GET, case by case.

const { transfers, chains } = inject("network");
const gateway = useGateway();

interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
  readonly body: Record<string, unknown>;
}

/** Sends a request target as written: fetch would normalise it. */
function send(target: string, method = "GET", base = gateway.url): Promise<Answer> {
  const { hostname, port } = new URL(base);
  return new Promise((resolve, reject) => {
    const request = httpRequest({ hostname, port, path: target, method }, (response) => {
      let text = "";
      response.setEncoding("utf8");
      response.on("data", (chunk) => {
        text += chunk;
      });
      response.on("end", () => {
        const { statusCode: status = 0, headers } = response;
        resolve({ status, headers, text, body: text === "" ? {} : JSON.parse(text) });
      });
    });
    request.on("error", reject);
    request.end();
  });
}

const QUOTE = "/v1/quote?amount=1000000000000000000&token=ETH&fromChain=optimism&toChain=arbitrum&slippage=0.5";
/** Returns the target of a quote with one parameter changed or omitted. */
function quoteWith(name: string, value: string | undefined): string {
  const [path, query = ""] = QUOTE.split("?");
  const rest = query.split("&").filter((pair) => !pair.startsWith(`${name}=`));
  return `${path}?${[...rest, ...(value === undefined ? [] : [`${name}=${value}`])].join("&")}`;
}

const seeded = (name: (each: (typeof transfers)[number]) => boolean): (typeof transfers)[number] => {
  const found = transfers.find(name);
  if (found === undefined) throw new Error("no such seeded transfer");
  return found;
};
const usdt = seeded(({ token, expectedState }) => token === "USDT" && expectedState === "BONDED");
const other = seeded(({ transactionHash }) => transactionHash !== usdt.transactionHash);
const noTransfer = `0x${"12".repeat(32)}`;

describe("a quote", () => {
  test("has its fields in order, amounts as strings, times and slippage as numbers", async () => {
    const { status, body, headers } = await send(QUOTE);
    expect(status).toBe(200);
    expect(headers["content-type"]).toBe("application/json; charset=utf-8");
    expect(Object.keys(body)).toEqual([
      "amountIn",
      "slippage",
      "amountOutMin",
      "destinationAmountOutMin",
      "bonderFee",
      "estimatedReceived",
      "estimatedRecieved",
      "deadline",
      "destinationDeadline",
    ]);
    expect(body).toMatchObject({ amountIn: "1000000000000000000", slippage: 0.5 });
    for (const name of ["amountOutMin", "destinationAmountOutMin", "bonderFee", "estimatedReceived"]) {
      expect(body[name], name).toMatch(/^[1-9][0-9]*$/);
    }
    expect(body.estimatedRecieved).toBe(body.estimatedReceived);
    const inSevenDays = Date.now() / 1000 + 7 * 24 * 3600;
    expect(Math.abs((body.deadline as number) - inSevenDays)).toBeLessThan(5);
    expect(body.destinationDeadline).toBe(body.deadline);
  });

  test("to ethereum has no destination minimum and no destination deadline", async () => {
    const { body } = await send(quoteWith("toChain", "ethereum"));
    expect(body).toMatchObject({ destinationAmountOutMin: "0", destinationDeadline: 0 });
    expect(body.deadline).toBeGreaterThan(0);
  });

  test("from ethereum repeats its fields for the destination", async () => {
    const { body } = await send(quoteWith("fromChain", "ethereum"));
    expect(body.destinationAmountOutMin).toBe(body.amountOutMin);
    expect(body.destinationDeadline).toBe(body.deadline);
  });

  test("receives 0 if the fee exceeds the amount", async () => {
    const { status, body } = await send(
      "/v1/quote?amount=1000&token=USDC&fromChain=polygon&toChain=ethereum&slippage=0.5",
    );
    expect(status).toBe(200);
    expect(body).toMatchObject({ estimatedReceived: "0", destinationAmountOutMin: "0" });
    expect(Number(body.bonderFee)).toBeGreaterThan(1000);
  });

  test("with view FULL is the same with details at its end", async () => {
    const { body: basic } = await send(`${QUOTE}&view=BASIC`);
    const { status, body } = await send(`${QUOTE}&view=FULL`);
    expect(status).toBe(200);
    expect(Object.keys(body)).toEqual([...Object.keys(basic), "details"]);
    const details = body.details as Record<string, Record<string, unknown>>;
    expect(Object.keys(details)).toEqual([
      ...["amountOut", "requiredLiquidity", "bonderFeeRelative", "adjustedBonderFee", "destinationTxFee"],
      ...["adjustedDestinationTxFee", "totalFee", "feeBps", "rate", "priceImpact", "lpFeeBps", "lpFees", "limits"],
      ...["gas", "prices", "sourceBlock", "destinationBlock", "observedAt", "validUntil"],
    ]);
    expect(details).toMatchObject({
      totalFee: body.bonderFee,
      limits: {
        minAmount: expect.stringMatching(/^[1-9][0-9]*$/),
        availableLiquidity: expect.stringMatching(/^[1-9][0-9]*$/),
        isLiquidityAvailable: true,
        liquidityBasis: "BONDER_CREDIT",
      },
      gas: { gasLimit: expect.stringMatching(/^[1-9][0-9]*$/), l1Fee: "0" },
    });
    expect(Number(details.validUntil) - Number(details.observedAt)).toBe(4);
    expect(Math.abs(Number(details.observedAt) - Date.now() / 1000)).toBeLessThan(30);
    expect(Number(details.sourceBlock) * Number(details.destinationBlock)).toBeGreaterThan(0);
  });

  test.each([
    ["by CCTP from ethereum", "token=USDC&fromChain=ethereum&toChain=base", "CCTP_BURN_LIMIT", "1000000000000"],
    ["of USDC.e", "token=USDC.e&fromChain=optimism&toChain=base", "CCTP_BURN_LIMIT", "1000000000000"],
    ["from ethereum", "token=HOP&fromChain=ethereum&toChain=base", "UNLIMITED", ""],
  ])("%s names its limits", async (_, route, liquidityBasis, availableLiquidity) => {
    const { status, body } = await send(`/v1/quote?${route}&amount=2000000000000&slippage=1&view=FULL`);
    expect(status).toBe(200);
    const isLiquidityAvailable = availableLiquidity === "";
    expect(body.details).toMatchObject({ limits: { liquidityBasis, availableLiquidity, isLiquidityAvailable } });
  });

  test.each([
    ["over Hop's bridge", quoteWith("amount", undefined), 10n ** 18n],
    ["from ethereum", quoteWith("fromChain", "ethereum").replace("amount=1000000000000000000&", ""), 10n ** 18n],
    // The first quote of its pool: ticks take two reads.
    ["of USDC.e", "/v1/quote?token=USDC.e&fromChain=polygon&toChain=base&slippage=0.5", 3_000_000_000_000n],
    ["by CCTP", "/v1/quote?token=USDC&fromChain=polygon&toChain=base&slippage=0.5", 12_345_678n],
    ["of HOP", "/v1/quote?token=HOP&fromChain=base&toChain=linea&slippage=0.5", 10n ** 20n],
  ])("for receiveAmount %s sends just as much as that takes", async (_, target, receiveAmount) => {
    const { status, body } = await send(`${target}&receiveAmount=${receiveAmount}`);
    expect(status, JSON.stringify(body)).toBe(200);
    expect(BigInt(String(body.estimatedReceived))).toBeGreaterThanOrEqual(receiveAmount);
    const same = await send(`${target}&amount=${body.amountIn}`);
    expect(same.body).toMatchObject({ ...body, deadline: same.body.deadline, destinationDeadline: expect.anything() });
    const less = await send(`${target}&amount=${BigInt(String(body.amountIn)) - 1n}`);
    expect(BigInt(String(less.body.estimatedReceived))).toBeLessThan(receiveAmount);
  });

  test.each([
    ["together with amount", `${QUOTE}&receiveAmount=1`],
    ["of nothing", `${quoteWith("amount", undefined)}&receiveAmount=0`],
    ["of more than the pools hold", `${quoteWith("amount", undefined)}&receiveAmount=${10n ** 30n}`],
  ])("is rejected with receiveAmount %s", async (_, target) => {
    const { status, body } = await send(target);
    expect({ status, reason: body.reason, field: body.field }).toEqual({
      status: 400,
      reason: "INVALID_PARAMETER",
      field: "receiveAmount",
    });
  });

  test.each([
    ["lower-case token", quoteWith("token", "eth")],
    ["an alias", quoteWith("token", "WETH")],
    ["snake_case names", QUOTE.replace("fromChain", "from_chain")],
    ["slippage 0", quoteWith("slippage", "0")],
    ["slippage 99.99", quoteWith("slippage", "99.99")],
    ["network given", `${QUOTE}&network=mainnet`],
    ["network empty", `${QUOTE}&network=`],
    ["refresh, which is ignored", `${QUOTE}&refresh=true`],
    ["an empty RPC URL", `${QUOTE}&rpcUrl[optimism]=`],
    ["a custom RPC URL", `${QUOTE}&rpcUrl[optimism]=${encodeURIComponent(chains.optimism?.url ?? "")}`],
    ["escaped brackets", `${QUOTE}&rpcUrl%5Boptimism%5D=${encodeURIComponent(chains.optimism?.url ?? "")}`],
    ["an alias of a chain", quoteWith("toChain", "xdai")],
    ["a chain in capitals", quoteWith("fromChain", "OPTIMISM")],
    ["a chain ID", quoteWith("toChain", "42161")],
    ["both names with the same value", `${QUOTE}&from_chain=optimism`],
  ])("is returned with %s", async (_, target) => {
    const { status, text } = await send(target);
    expect(status, text).toBe(200);
  });

  test.each([
    ...["amount", "token", "fromChain", "toChain", "slippage"].flatMap((name) => [
      [`without ${name}`, quoteWith(name, undefined), "MISSING_PARAMETER", name],
      [`with an empty ${name}`, quoteWith(name, ""), "MISSING_PARAMETER", name],
      [`with ${name} twice`, `${QUOTE}&${name}=1`, "INVALID_PARAMETER", name],
      [`with ${name} empty the second time`, `${QUOTE}&${name}=`, "INVALID_PARAMETER", name],
    ]),
    ...["0", "01", "-1", "1.5", "1e18", "0x10", "+1", "1%20", "%EF%BC%91", "9".repeat(79)].map((amount) => [
      `of amount ${amount}`,
      quoteWith("amount", amount),
      "INVALID_PARAMETER",
      "amount",
    ]),
    ...["-1", "-0", "%2B1", "1e1", "100", "1000", ".5", "5.", "NaN", "Infinity", "0x1", "0,5", "%201", "half"].map(
      (slippage) => [`with slippage ${slippage}`, quoteWith("slippage", slippage), "INVALID_PARAMETER", "slippage"],
    ),
    ["of an unknown token", quoteWith("token", "DOGE"), "UNSUPPORTED_TOKEN", "token"],
    ["from an unknown chain", quoteWith("fromChain", "solana"), "UNSUPPORTED_CHAIN", "fromChain"],
    ["to an unknown chain", quoteWith("toChain", "arbitrum-one"), "UNSUPPORTED_CHAIN", "toChain"],
    ["on an unknown network", `${QUOTE}&network=sepolia`, "UNSUPPORTED_NETWORK", "network"],
    [
      "to a chain of the other network",
      `${quoteWith("toChain", "nova")}&network=goerli`,
      "UNSUPPORTED_CHAIN",
      "toChain",
    ],
    ["to its source chain", quoteWith("toChain", "optimism"), "UNSUPPORTED_ROUTE", undefined],
    ["from a chain without the token", quoteWith("token", "MATIC"), "UNSUPPORTED_ROUTE", undefined],
    [
      "by CCTP to gnosis",
      "/v1/quote?amount=1&token=USDC.e&fromChain=optimism&toChain=gnosis&slippage=1",
      "UNSUPPORTED_ROUTE",
      undefined,
    ],
    [
      "of USDC.e from ethereum",
      "/v1/quote?amount=1&token=USDC.e&fromChain=ethereum&toChain=optimism&slippage=1",
      "UNSUPPORTED_ROUTE",
      undefined,
    ],
    [
      "over a deprecated bridge",
      "/v1/quote?amount=1&token=SNX&fromChain=ethereum&toChain=optimism&slippage=1",
      "UNSUPPORTED_ROUTE",
      undefined,
    ],
    [
      "of an amount for which the pool reverts",
      quoteWith("amount", (2n ** 256n - 1n).toString()),
      "INVALID_PARAMETER",
      "amount",
    ],
    ["with an unknown parameter", `${QUOTE}&recipient=0x1`, "UNKNOWN_PARAMETER", "recipient"],
    ["with a parameter in the wrong case", `${QUOTE}&Amount=1`, "UNKNOWN_PARAMETER", "Amount"],
    ["with __proto__", `${QUOTE}&__proto__=1`, "UNKNOWN_PARAMETER", "__proto__"],
    ["with two names and different values", `${QUOTE}&from_chain=base`, "INVALID_PARAMETER", "fromChain"],
    ["with a broken escape", quoteWith("token", "%E0%A4%A"), "INVALID_PARAMETER", "token"],
    [
      "with an RPC URL of an unknown chain",
      `${QUOTE}&rpcUrl[solana]=https://a.example`,
      "UNSUPPORTED_CHAIN",
      "rpcUrl[solana]",
    ],
    [
      "with an invalid RPC URL",
      `${QUOTE}&rpcUrl[optimism]=file:///etc/passwd`,
      "RPC_URL_FORBIDDEN",
      "rpcUrl[optimism]",
    ],
  ] as (readonly [string, string, string, string | undefined])[])(
    "is rejected %s",
    async (_, target, reason, field) => {
      const { status, body, text, headers } = await send(target);
      expect({ status, reason: body.reason, field: body.field }, text).toEqual({ status: 400, reason, field });
      expect(body).toMatchObject({ code: "invalid_argument", error: body.message });
      expect(headers["content-type"]).toBe("application/json; charset=utf-8");
      expect(headers["cache-control"]).toBe("no-store");
      expect(Object.keys(body)).toEqual([
        "code",
        "message",
        "error",
        "reason",
        ...(field === undefined ? [] : ["field"]),
      ]);
    },
  );
});

describe("a transfer status", () => {
  const path = "/v1/transfer-status";

  test.each([
    ["its id", `transferId=${usdt.transferId}`],
    ["its hash", `transferHash=${usdt.transactionHash}`],
    ["its hash as transactionHash", `transactionHash=${usdt.transactionHash}`],
    [
      "both names of the hash",
      `transactionHash=${usdt.transactionHash}&transferHash=${usdt.transactionHash.toUpperCase().replace("0X", "0x")}`,
    ],
    ["ID and hash", `transferId=${usdt.transferId}&transferHash=${usdt.transactionHash}`],
    ["an ID in upper case", `transferId=${usdt.transferId.toUpperCase().replace("0X", "0x")}`],
    ["snake_case names", `transfer_id=${usdt.transferId}`],
    ["an empty ID with the hash", `transferId=&transferHash=${usdt.transactionHash}`],
    [
      "custom RPC URLs",
      `transferId=${usdt.transferId}&rpcUrl[polygon]=${chains.polygon?.url}&rpcUrl[arbitrum]=${chains.arbitrum?.url}`,
    ],
  ])("is found by %s", async (_, query) => {
    const { status, body, text } = await send(`${path}?${query}`);
    expect(status, text).toBe(200);
    expect(body).toMatchObject({ transferId: usdt.transferId, state: "BONDED" });
  });

  test.each([
    ["an unknown ID", `transferId=${noTransfer}`],
    ["an unknown hash", `transferHash=${noTransfer}`],
    ["an ID of another transaction", `transferId=${usdt.transferId}&transferHash=${other.transactionHash}`],
  ])("returns 404 for %s", async (_, query) => {
    const { status, body } = await send(`${path}?${query}`);
    expect({ status, body }).toMatchObject({ status: 404, body: { code: "not_found", reason: "TRANSFER_NOT_FOUND" } });
  });

  test.each([
    ["neither ID nor hash", "", "MISSING_PARAMETER", "transferId"],
    ["both empty", "transferId=&transferHash=", "MISSING_PARAMETER", "transferId"],
    ["a malformed ID", "transferId=0x12", "INVALID_PARAMETER", "transferId"],
    ["an ID without 0x", `transferId=${"12".repeat(32)}`, "INVALID_PARAMETER", "transferId"],
    ["a malformed hash", "transferHash=hello", "INVALID_PARAMETER", "transferHash"],
    ["a number instead of a hash", "transactionHash=12", "INVALID_PARAMETER", "transactionHash"],
    [
      "two different hashes",
      `transferHash=${usdt.transactionHash}&transactionHash=${noTransfer}`,
      "INVALID_PARAMETER",
      "transactionHash",
    ],
    ["another network", `transferId=${noTransfer}&network=moon`, "UNSUPPORTED_NETWORK", "network"],
    ["a quote's parameter", `transferId=${noTransfer}&slippage=1`, "UNKNOWN_PARAMETER", "slippage"],
  ])("is rejected: %s", async (_, query, reason, field) => {
    const { status, body } = await send(`${path}?${query}`);
    expect({ status, reason: body.reason, field: body.field }).toEqual({ status: 400, reason, field });
  });
});

describe("the available routes", () => {
  const routes = async (query = ""): Promise<Record<string, unknown>[]> => {
    const { status, body } = await send(`/v1/available-routes${query}`);
    expect(status).toBe(200);
    return body as unknown as Record<string, unknown>[];
  };

  test("are a bare array with fields in order", async () => {
    const all = await routes();
    expect(all).toHaveLength(240);
    expect(all[0]).toEqual({
      token: "USDC",
      sourceChainSlug: "ethereum",
      sourceChainId: 1,
      destinationChainSlug: "polygon",
      destinationChainId: 137,
    });
    expect(Object.keys(all[0] ?? {})).toEqual([
      "token",
      "sourceChainSlug",
      "sourceChainId",
      "destinationChainSlug",
      "destinationChainId",
    ]);
  });

  test("have contracts and decimals at their end with view FULL", async () => {
    const [first] = await routes("?view=FULL&token=USDT&fromChain=polygon&toChain=ethereum");
    expect(Object.keys(first ?? {}).at(-1)).toBe("details");
    expect(Object.keys(first?.details ?? {})).toEqual(["source", "destination", "decimals"]);
    expect(first).toMatchObject({ details: { destination: { hTokenAddress: "", ammAddress: "" }, decimals: 6 } });
  });

  test("of goerli", async () => {
    const all = await routes("?network=goerli");
    expect(all).toHaveLength(30);
    expect(new Set(all.map(({ token }) => token))).toEqual(new Set(["ETH"]));
  });

  test("are filtered by token, source and destination", async () => {
    expect(await routes("?token=weth&fromChain=xdai&toChain=base")).toEqual([
      {
        token: "ETH",
        sourceChainSlug: "gnosis",
        sourceChainId: 100,
        destinationChainSlug: "base",
        destinationChainId: 8453,
      },
    ]);
    expect(await routes("?token=MAGIC&fromChain=polygon")).toEqual([]);
    expect(await routes("?token=&rpcUrl[base]=http://127.0.0.1:1")).toHaveLength(240);
  });

  test.each([
    ["token=DOGE", "UNSUPPORTED_TOKEN", "token"],
    ["fromChain=moon", "UNSUPPORTED_CHAIN", "fromChain"],
    ["toChain=moon", "UNSUPPORTED_CHAIN", "toChain"],
    ["network=moon", "UNSUPPORTED_NETWORK", "network"],
    ["page=2", "UNKNOWN_PARAMETER", "page"],
  ])("are rejected with %s", async (query, reason, field) => {
    const { status, body } = await send(`/v1/available-routes?${query}`);
    expect({ status, reason: body.reason, field: body.field }).toEqual({ status: 400, reason, field });
  });
});

describe("HTTP", () => {
  test("every response allows any origin and has a request id, unless shared caches may keep it", async () => {
    for (const [target, isShared] of [
      [QUOTE, true],
      ["/v1/quote", false],
      ["/nowhere", false],
      ["/v1/available-routes", true],
      ["/openapi.json", true],
      ["/readyz", false],
    ] as const) {
      const { headers } = await send(target);
      expect(headers["access-control-allow-origin"], target).toBe("*");
      if (isShared) expect(headers, target).not.toHaveProperty("x-request-id");
      else expect(headers["x-request-id"], target).toMatch(/^[A-Za-z0-9._-]{1,128}$/);
    }
  });
});

describe("upstream failures", () => {
  test("reads goerli from its own chains", async () => {
    // The local network does not have them: their endpoints are closed.
    const { status, body } = await send(`${QUOTE}&network=goerli`);
    expect({ status, body }).toMatchObject({ status: 503, body: { reason: "UPSTREAM_UNAVAILABLE" } });
    expect(await send(`/v1/transfer-status?transferId=${usdt.transferId}&network=goerli`)).toMatchObject({
      status: 503,
    });
  });

  test("returns 503 for quotes without prices, and the status without USD", async () => {
    const unpriced = await startGatewayForTest({ ASSETS_URL: "off", PRICE_SOURCES: "assets" });
    expect(await send(QUOTE, "GET", unpriced.url)).toMatchObject({
      status: 503,
      body: { message: "no price for ETH" },
    });
    const { status, body } = await send(`/v1/transfer-status?transferId=${usdt.transferId}`, "GET", unpriced.url);
    expect({ status, body }).toMatchObject({ status: 200, body: { amountUsd: 0, bonderFeeUsd: 0, state: "BONDED" } });
  });

  test("prefers fixed prices", async () => {
    const priced = await startGatewayForTest({ TOKEN_PRICES: '{"USDT":2}' });
    const { body } = await send(`/v1/transfer-status?transferId=${usdt.transferId}`, "GET", priced.url);
    expect(body.amountUsd).toBe((body.amountFormatted as number) * 2);
  });

  test.each(["public", "off"])("makes no connection to a local address with CUSTOM_RPC_URLS=%s", async (policy) => {
    const canary = closeAfterTest(await startHttpStub((_, response) => response.end()));
    const guarded = await startGatewayForTest({ CUSTOM_RPC_URLS: policy });
    const { status, body } = await send(`${QUOTE}&rpcUrl[optimism]=${canary.url}`, "GET", guarded.url);
    expect({ status, body }).toMatchObject({
      status: 400,
      body: { reason: "RPC_URL_FORBIDDEN", field: "rpcUrl[optimism]" },
    });
    expect(canary.requests).toEqual([]);
  });
});

describe("the rate limit", () => {
  const forwardedGet = async (url: string, addresses: string): Promise<Response> =>
    fetch(`${url}/v1/available-routes?token=SNX`, { headers: { "x-forwarded-for": addresses } });

  test("returns 429 with Retry-After above the limit, whatever X-Forwarded-For says", async () => {
    const limited = await startGatewayForTest({ IP_RATE_LIMIT_REQ_PER_SEC: "2", IP_RATE_LIMIT_WINDOW_MS: "60000" });
    const answers: Response[] = [];
    for (const address of ["1.1.1.1", "2.2.2.2", "3.3.3.3"]) answers.push(await forwardedGet(limited.url, address));
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 429]);
    expect(await answers[2]?.json()).toMatchObject({ code: "resource_exhausted", reason: "RATE_LIMITED" });
    expect(Number(answers[2]?.headers.get("retry-after"))).toBeGreaterThan(0);
  });
});
