import { create, equals } from "@bufbuild/protobuf";
import { describe, expect, test } from "vitest";
import {
  type GetQuoteRequest,
  GetQuoteRequestSchema,
  type ListTransfersRequest,
  ListTransfersRequestSchema,
  WatchTransfersRequestSchema,
} from "../../../../gen/hop/bridge/v1/bridge_pb.js";
import { ServiceError } from "../../../../src/errors.js";
import { createQueryParser } from "../../../../src/http/rest/query-parser.js";
import { getTestMessage } from "../support/test-contract.js";

const bindQuote = createQueryParser(GetQuoteRequestSchema);
const plain = getTestMessage("Plain");
const bindPlain = createQueryParser(plain);

function errorOf(run: () => unknown): { reason: string; field: string | undefined; message: string } {
  try {
    run();
  } catch (error) {
    if (error instanceof ServiceError) return { reason: error.reason, field: error.field, message: error.message };
    throw error;
  }
  throw new Error("nothing was thrown");
}

describe("a valid query", () => {
  const full = create(GetQuoteRequestSchema, {
    amount: "1000000",
    token: "USDC",
    fromChain: "ethereum",
    toChain: "optimism",
    slippage: 0.5,
    network: "goerli",
    rpcUrl: { optimism: "https://a.example/?k=1&l=2", arbitrum: "https://b.example/+" },
  });

  test.each([
    [
      "lowerCamelCase, brackets percent-encoded",
      "amount=1000000&token=USDC&fromChain=ethereum&toChain=optimism&slippage=0.5&network=goerli" +
        "&rpcUrl%5Boptimism%5D=https%3A%2F%2Fa.example%2F%3Fk%3D1%26l%3D2&rpcUrl%5barbitrum%5d=https://b.example/%2B",
    ],
    [
      "snake_case, brackets literal, another order",
      "rpc_url[arbitrum]=https://b.example/%2b&to_chain=optimism&from_chain=ethereum&slippage=0.50&token=USDC&" +
        "rpc_url[optimism]=https://a.example/?k=1%26l=2&network=goerli&amount=1000000",
    ],
    [
      "both names with equal values, refresh, empty pairs",
      "&&refresh=true&refresh=1&amount=1000000&token=USDC&fromChain=ethereum&from_chain=%65thereum&toChain=optimism" +
        "&slippage=00.5&network=goerli&rpcUrl[optimism]=https://a.example/?k=1%26l=2&rpcUrl[arbitrum]=https://b.example/%2B&",
    ],
  ])("%s", (_, query) => {
    expect(equals(GetQuoteRequestSchema, bindQuote(query) as GetQuoteRequest, full)).toBe(true);
  });

  test.each([
    ["", {}],
    ["amount=&token&rpcUrl[optimism]=&slippage=", {}],
    ["token=a+b%20c", { token: "a b c" }],
    ["token=%C3%A9%00=", { token: "é\0=" }],
    ["slippage=0", { slippage: 0 }],
    ["rpcUrl[]=x", { rpcUrl: { "": "x" } }],
    ["rpcUrl[a[b]c]=x", { rpcUrl: { "a[b]c": "x" } }],
    ["rpcUrl[constructor]=x&rpcUrl[toString]=y", { rpcUrl: { constructor: "x", toString: "y" } }],
  ])("%s", (query, expected) => {
    expect(bindQuote(query)).toEqual(create(GetQuoteRequestSchema, expected));
  });

  test("accepts any text as a map key", () => {
    const { rpcUrl } = bindQuote("rpcUrl[__proto__]=x&rpcUrl[a]=y") as GetQuoteRequest;
    expect(Object.entries(rpcUrl)).toEqual([
      ["__proto__", "x"],
      ["a", "y"],
    ]);
    expect(Object.getPrototypeOf(rpcUrl)).toBe(Object.prototype);
  });

  test("binds every kind of field", () => {
    const query =
      "doubleValue=-0.25&boolValue=true&uint32Value=4294967295&stringValue=s" +
      "&repeatedStringValue=&repeatedStringValue=b&repeated_uint32_value=1&repeated_uint32_value=0";
    const expected = { doubleValue: -0.25, boolValue: true, uint32Value: 2 ** 32 - 1, stringValue: "s" };
    expect(bindPlain(query)).toEqual(
      create(plain, { ...expected, repeatedStringValue: ["b"], repeatedUint32Value: [1, 0] }),
    );
  });
});

describe("an unknown parameter", () => {
  test.each([
    ["fromchain=a", "fromchain: did you mean fromChain?"],
    ["tochian=a", "tochian: did you mean toChain?"],
    ["amount[]=1", "amount[]: did you mean amount?"],
    ["rpcurl[optimism]=a", "rpcurl[optimism]: did you mean rpcUrl[optimism]?"],
    ["recipient=a", "recipient"],
  ])("%s is told from the one that is meant", (query, message) => {
    expect(errorOf(() => bindQuote(query)).message).toBe(`unknown parameter ${message}`);
  });
});

describe("an invalid query", () => {
  test.each<[string, string, string | undefined]>([
    ["nope=1", "UNKNOWN_PARAMETER", "nope"],
    ["=1", "UNKNOWN_PARAMETER", ""],
    ["Amount=1", "UNKNOWN_PARAMETER", "Amount"],
    ["__proto__=1", "UNKNOWN_PARAMETER", "__proto__"],
    ["constructor=1", "UNKNOWN_PARAMETER", "constructor"],
    ["$typeName=1", "UNKNOWN_PARAMETER", "$typeName"],
    ["amount[x]=1", "UNKNOWN_PARAMETER", "amount[x]"],
    ["refresh[x]=1", "UNKNOWN_PARAMETER", "refresh[x]"],
    ["rpcUrl[optimism=1", "UNKNOWN_PARAMETER", "rpcUrl[optimism"],
    [`${"x".repeat(100)}=1`, "UNKNOWN_PARAMETER", "x".repeat(64)],
    ["%0A%C3%A9%1B=1", "UNKNOWN_PARAMETER", "???"],
    ["amount=1&amount=1", "INVALID_PARAMETER", "amount"],
    ["amount=&amount=1", "INVALID_PARAMETER", "amount"],
    ["amount=1&amount=", "INVALID_PARAMETER", "amount"],
    ["amount&amount", "INVALID_PARAMETER", "amount"],
    ["from_chain=a&from_chain=a", "INVALID_PARAMETER", "fromChain"],
    ["from_chain=a&fromChain=a&from_chain=a", "INVALID_PARAMETER", "fromChain"],
    ["fromChain=a&from_chain=b", "INVALID_PARAMETER", "fromChain"],
    ["fromChain=&from_chain=b", "INVALID_PARAMETER", "fromChain"],
    ["rpcUrl[optimism]=a&rpcUrl[optimism]=a", "INVALID_PARAMETER", "rpcUrl[optimism]"],
    ["rpcUrl[optimism]=a&rpc_url[optimism]=b", "INVALID_PARAMETER", "rpcUrl[optimism]"],
    ["rpcUrl=a", "INVALID_PARAMETER", "rpcUrl"],
    ...["1e1", "%2B1", "+1", "1%20", ".5", "5.", "0x1", "NaN", "Infinity", "9".repeat(400), "0,5"].map(
      (value): [string, string, string] => [`slippage=${value}`, "INVALID_PARAMETER", "slippage"],
    ),
    ...["%", "%zz", "%C3", "%ED%A0%80", "%C0%AF", "é"].map((value): [string, string, string] => [
      `amount=${value}`,
      "INVALID_PARAMETER",
      "amount",
    ]),
    ["%E0%A4%A=1", "INVALID_PARAMETER", undefined],
  ])("%s", (query, reason, field) => {
    expect(errorOf(() => bindQuote(query))).toMatchObject({ reason, field });
  });

  test.each<[string, string]>([
    ...["-1", "-0", "4294967296", "01", "1.0", "1e3", "1".repeat(5000)].map((value): [string, string] => [
      `uint32Value=${value}`,
      "uint32Value",
    ]),
    ["boolValue=1", "boolValue"],
    ["boolValue=TRUE", "boolValue"],
    ["repeatedUint32Value=1&repeatedUint32Value=x", "repeatedUint32Value"],
    ["repeatedUint32Value=1&repeated_uint32_value=1", "repeatedUint32Value"],
  ])("%s", (query, field) => {
    expect(errorOf(() => bindPlain(query))).toMatchObject({ reason: "INVALID_PARAMETER", field });
  });

  test("is rejected without repeating its values", () => {
    const { message } = errorOf(() => bindQuote("slippage=secret"));
    expect(message).toBe("slippage must be a plain decimal number");
  });
});

test("refuses types that queries do not support when it is created", () => {
  expect(() => createQueryParser(getTestMessage("Kinds"))).toThrow("has a type that queries do not support");
});

test("leaves out fields that hold messages", () => {
  const bindNested = createQueryParser(getTestMessage("Nested"));
  expect(bindNested("texts=a&texts=&texts=b")).toMatchObject({ texts: ["a", "b"], plain: undefined });
  expect(errorOf(() => bindNested("plain=a"))).toMatchObject({ reason: "UNKNOWN_PARAMETER", field: "plain" });
  expect(errorOf(() => bindNested("plain[x]=a"))).toMatchObject({ reason: "UNKNOWN_PARAMETER", field: "plain[x]" });
});

describe("repeated parameters and optional numbers of the contract", () => {
  const bindWatch = createQueryParser(WatchTransfersRequestSchema);
  const bindList = createQueryParser(ListTransfersRequestSchema);

  test("keep their order, by either name and encoded", () => {
    expect(bindWatch("transferId=a&network=goerli&transferId=%62&transferId=c")).toMatchObject({
      transferId: ["a", "b", "c"],
      network: "goerli",
    });
    expect(bindWatch("transfer_id=a&transfer_id=a")).toMatchObject({ transferId: ["a", "a"] });
    expect(bindWatch("transferId=")).toMatchObject({ transferId: [] });
  });

  test("are limited together where the parser is told a limit", () => {
    const bind = createQueryParser(WatchTransfersRequestSchema, { maxListItems: 3 });
    const bindAny = createQueryParser(WatchTransfersRequestSchema);
    expect(bind("transferId=a&transferId=b&transferHash=c&transferId=&account=d")).toMatchObject({
      transferId: ["a", "b"],
      transferHash: ["c"],
    });
    const mixed = "transferHash=a&transferId=b&transferHash=c&transferId=d";
    expect(errorOf(() => bind(mixed))).toEqual({
      reason: "INVALID_PARAMETER",
      field: "transferId",
      message: "a query may have at most 3 values of transferId and transferHash",
    });
    expect(errorOf(() => bind("transfer_hash=a&".repeat(4)))).toMatchObject({ field: "transferHash" });
    expect(bindAny(mixed)).toMatchObject({ transferId: ["b", "d"], transferHash: ["a", "c"] });
  });

  test("are absent without a value, and 0 is a value", () => {
    expect((bindList("pageSize=") as ListTransfersRequest).pageSize).toBeUndefined();
    expect((bindList("account=a&pageSize=0") as ListTransfersRequest).pageSize).toBe(0);
    expect((bindList("page_size=1000") as ListTransfersRequest).pageSize).toBe(1000);
    expect(errorOf(() => bindList("pageSize=1&pageSize=1"))).toMatchObject({ field: "pageSize" });
  });

  test.each(["transferId=a&transfer_id=b", "transferId[0]=a", "transferId[]=a", "pageSize=-1", "pageSize=1.5"])(
    "%s is rejected",
    (query) => {
      const bind = query.startsWith("page") ? bindList : bindWatch;
      expect(errorOf(() => bind(query)).reason).toMatch(/^(INVALID|UNKNOWN)_PARAMETER$/);
    },
  );
});
