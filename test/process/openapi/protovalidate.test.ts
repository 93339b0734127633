import { create, fromJson, type JsonValue, type MessageInitShape } from "@bufbuild/protobuf";
import { createValidator, type Violation } from "@bufbuild/protovalidate";
import fc, { type Arbitrary } from "fast-check";
import { describe, expect, test } from "vitest";
import {
  BridgeService,
  type GetQuoteRequestSchema,
  type GetTransferStatusRequestSchema,
  type ListAvailableRoutesRequestSchema,
} from "../../../gen/hop/bridge/v1/bridge_pb.js";
import type { ServiceError } from "../../../src/errors.js";
import { getNetwork } from "../../../src/hop/networks.js";
import { buildAnnotatedContract, getMessageType } from "../../support/contract/annotated-contract.js";
import { checkMessage, checkQuery, type OperationName, toQuery } from "../../support/contract/parameter-check.js";
import { readOpenApi } from "../../support/contract/response-validator.js";
import { isFullEffort } from "../../support/effort.js";

// The buf.validate rules of the contract accept exactly the requests that the service accepts, apart from the differences
// listed below.

const RUNS = isFullEffort ? 3_000 : 750;

/** The values in the lists of a batch are not among its parameters. */
type CheckedOperation = Exclude<OperationName, "batchGetQuotes">;

const contract = buildAnnotatedContract();
const validator = createValidator();

type QuoteInit = Exclude<MessageInitShape<typeof GetQuoteRequestSchema>, { $typeName: unknown }>;
type StatusInit = Exclude<MessageInitShape<typeof GetTransferStatusRequestSchema>, { $typeName: unknown }>;
type RoutesInit = Exclude<MessageInitShape<typeof ListAvailableRoutesRequestSchema>, { $typeName: unknown }>;
type RequestInit = QuoteInit & StatusInit & RoutesInit;

/** Returns the violations that protovalidate reports for a request. */
function findViolations(operation: OperationName, init: RequestInit): readonly Violation[] {
  const { input } = BridgeService.method[operation];
  const result = validator.validate(getMessageType(contract, input.typeName), create(input, init as never));
  if (result.kind === "error") throw result.error;
  return result.kind === "invalid" ? result.violations : [];
}

/** Returns the JSON names of the fields that violate a rule; "" stands for the message as a whole. */
function namesOfFields(violations: readonly Violation[]): string[] {
  return violations.map(({ field: [first] }) => (first?.kind === "field" ? first.jsonName : ""));
}

/** Returns the service's error about the parameters of a request, if any. */
function check(operation: OperationName, init: RequestInit): ServiceError | undefined {
  const error = checkMessage(operation, create(BridgeService.method[operation].input, init as never));
  return isParameterError(error) ? error : undefined;
}

/** Whether a route exists, and whether the server has an index, is not a question of parameters. */
function isParameterError(error: ServiceError | undefined): boolean {
  return error !== undefined && error.reason !== "UNSUPPORTED_ROUTE" && error.reason !== "INDEX_REQUIRED";
}

const HEX = "0123456789abcdefABCDEF";
const hex = (length: number) => fc.string({ unit: fc.constantFrom(...HEX), minLength: length, maxLength: length });
const text = fc.oneof(fc.string(), fc.string({ unit: "binary" }));
/** Draws mostly valid values: a request has many fields, and one invalid value is enough to reject it. */
const mostly = <T>(valid: Arbitrary<T>, other: Arbitrary<T>) =>
  fc.oneof({ weight: 15, arbitrary: valid }, { weight: 1, arbitrary: other });
const near = (bound: bigint) => fc.bigInt({ min: bound - 3n, max: bound + 3n }).map(String);

const amounts = mostly(
  fc.oneof(
    fc.bigInt({ min: 1n, max: 2n ** 256n - 1n }).map(String),
    fc.stringMatching(/^[1-9][0-9]{0,76}$/),
    fc.constant(String(2n ** 256n - 1n)),
  ),
  fc.oneof(near(2n ** 256n), near(0n), fc.stringMatching(/^[0-9]{76,80}$/), fc.constantFrom("01", "1.0", "1e3"), text),
);
/** Draws one of the two amounts, and sometimes both or none. */
const eitherAmount = fc
  .record({ amount: amounts, receiveAmount: amounts, given: fc.constantFrom(1, 1, 1, 2, 2, 2, 3, 0) })
  .map(({ amount, receiveAmount, given }) => ({
    amount: given & 1 ? amount : "",
    receiveAmount: given & 2 ? receiveAmount : "",
  }));
const views = mostly(fc.constantFrom("", "BASIC", "FULL"), fc.oneof(fc.constantFrom("full", "FULL "), text));
const slippages = mostly(
  fc.double({ min: 0, max: 100, maxExcluded: true, noNaN: true }),
  fc.oneof(fc.double(), fc.constantFrom(100, -Number.MIN_VALUE), fc.constant(undefined)),
).filter((value) => !Object.is(value, -0));
const hashes = fc.oneof(
  hex(64).map((digits) => `0x${digits}`),
  hex(64).map((digits) => `0X${digits}`),
);
const invalidHashes = fc.oneof(
  fc.integer({ min: 62, max: 66 }).chain((length) => hex(length).map((digits) => `0x${digits}`)),
  hex(64),
  hashes.map((hash) => `${hash}\n`),
  text,
);
const accounts = fc.oneof(
  hex(40).map((digits) => `0x${digits}`),
  hex(40).map((digits) => `0X${digits}`),
);
const pageSizes = mostly(
  fc.oneof(fc.constant(undefined), fc.integer({ min: 1, max: 1_000 })),
  fc.oneof(fc.constantFrom(0, 1_001), fc.integer({ min: 0, max: 2 ** 32 - 1 })),
);
const transferIds = mostly(
  fc.oneof(hashes, fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }).map(String)),
  fc.oneof(near(2n ** 64n), fc.stringMatching(/^[0-9]{18,21}$/), invalidHashes),
);
/** A list's rule of its items cannot compare numbers. */
const watchedIds = mostly(
  fc.oneof(hashes, fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }).map(String)),
  fc.oneof(fc.stringMatching(/^[0-9]{21,22}$/), fc.constantFrom("01", "-1", ""), invalidHashes),
);
const networks = mostly(
  fc.constantFrom("", "mainnet", "goerli"),
  fc.oneof(fc.constantFrom("Mainnet", "sepolia"), text),
);

const unknownChains = fc
  .oneof(fc.constantFrom("zora", " base", "Polygon ", "010", "+1", "1.0", "2"), text)
  .filter((name) => name.toLowerCase() !== "xdai");

function listChains(network: string) {
  return [...getNetwork(network === "goerli" ? "goerli" : "mainnet").chains.values()];
}

/** Draws slugs in any case and chain IDs of the network, and texts that name no chain of any network. */
function chainsOf(network: string): Arbitrary<string> {
  const names = listChains(network).map(({ slug, chainId }) => {
    return fc.oneof(fc.mixedCase(fc.constant(slug)), fc.constant(String(chainId)));
  });
  return mostly(fc.oneof(...names), unknownChains);
}

function rpcUrlsOf(network: string): Arbitrary<Record<string, string>> {
  const slugs = fc.constantFrom(...listChains(network).map(({ slug }) => slug));
  const keys = mostly(slugs, fc.oneof(unknownChains, fc.constantFrom("Polygon", "10")));
  return fc.oneof(fc.constant({}), fc.dictionary(keys, text, { maxKeys: 2, noNullPrototype: true }));
}

const optional = (values: Arbitrary<string>) => fc.oneof(fc.constant(""), values);
const tokens = mostly(fc.constantFrom("ETH", "eth", "WETH"), fc.constant(""));

const transferRequests: Arbitrary<RequestInit> = networks.chain((network) =>
  fc
    .record({
      ...{ network: fc.constant(network), rpcUrl: rpcUrlsOf(network), transferId: optional(transferIds) },
      transferHash: optional(mostly(hashes, invalidHashes)),
      transactionHash: optional(mostly(hashes, invalidHashes)),
    })
    // Two different hashes are one of the differences below.
    .map((init) => {
      const isPair = init.transferHash !== "" && init.transactionHash !== "";
      return isPair ? { ...init, transactionHash: init.transferHash } : init;
    }),
);

const requests: Readonly<Record<CheckedOperation, Arbitrary<RequestInit>>> = {
  getQuote: networks.chain((network) =>
    fc
      .record({
        ...{ network: fc.constant(network), amounts: eitherAmount, token: tokens, slippage: slippages, view: views },
        fromChain: mostly(chainsOf(network), fc.constant("")),
        toChain: mostly(chainsOf(network), fc.constant("")),
        rpcUrl: rpcUrlsOf(network),
      })
      .map(({ amounts: drawn, ...init }) => ({ ...init, ...drawn })),
  ) as Arbitrary<RequestInit>,
  getTransferStatus: transferRequests,
  getWithdrawal: transferRequests,
  // Which page tokens are valid only the service can tell.
  listTransfers: networks.chain((network) =>
    fc.record({
      ...{ network: fc.constant(network), token: tokens, view: views, pageSize: pageSizes },
      ...{ fromChain: optional(chainsOf(network)), toChain: optional(chainsOf(network)) },
      account: mostly(accounts, fc.oneof(fc.constant(""), invalidHashes)),
      state: mostly(fc.constantFrom("", "PENDING", "BONDED", "UNBONDABLE"), fc.oneof(fc.constant("pending"), text)),
    }),
  ) as Arbitrary<RequestInit>,
  // Which resume tokens are valid only the service can tell.
  watchTransfers: networks.chain((network) =>
    fc
      .record({
        ...{ network: fc.constant(network), view: views, fromChain: optional(chainsOf(network)) },
        transferId: fc.array(watchedIds, { maxLength: 3 }),
        transferHash: fc.array(mostly(hashes, invalidHashes), { maxLength: 3 }),
        account: mostly(accounts, invalidHashes),
        given: fc.constantFrom("transfers", "transfers", "transfers", "account", "account", "both", "none"),
      })
      .map(({ given, account, transferId, transferHash, ...init }) => ({
        ...init,
        account: given === "account" || given === "both" ? account : "",
        transferId: given === "transfers" || given === "both" ? transferId : [],
        transferHash: given === "transfers" || given === "both" ? transferHash : [],
      })),
  ) as Arbitrary<object> as Arbitrary<RequestInit>,
  listAvailableRoutes: networks.chain((network) =>
    fc.record({
      ...{ network: fc.constant(network), token: tokens, rpcUrl: rpcUrlsOf(network), view: views },
      ...{ fromChain: optional(chainsOf(network)), toChain: optional(chainsOf(network)) },
    }),
  ),
};

const PATHS: Readonly<Record<CheckedOperation, string>> = {
  getQuote: "/v1/quote",
  getTransferStatus: "/v1/transfer-status",
  getWithdrawal: "/v1/withdrawal",
  listTransfers: "/v1/transfers",
  watchTransfers: "/v1/transfers:watch",
  listAvailableRoutes: "/v1/available-routes",
};

/** Prints a request as a query; undefined if a query cannot express it. */
function printQuery({ rpcUrl = {}, slippage, ...texts }: RequestInit): string | undefined {
  const isPlain = slippage === undefined || /^\d+(\.\d+)?$/.test(String(slippage));
  const keys = Object.keys(rpcUrl);
  if (!isPlain || keys.some((key) => key === "" || /[[\]]/.test(key))) return undefined;
  // An empty parameter counts as absent.
  if (Object.values(rpcUrl).includes("")) return undefined;
  const urls = Object.entries(rpcUrl).map(([key, url]) => [`rpcUrl[${key}]`, url] as const);
  const pairs = Object.entries({ ...texts, slippage }).filter(([, value]) => value !== undefined);
  // An empty item of a list would be left out.
  if (pairs.some(([, value]) => Array.isArray(value) && value.includes(""))) return undefined;
  const printed = pairs.flatMap(([name, value]) => [value].flat().map((item) => [name, String(item)] as const));
  return toQuery([...printed, ...urls]);
}

describe.each(Object.keys(requests) as CheckedOperation[])("%s", (operation) => {
  test("accepts and rejects the same requests as the rules", () => {
    const counts = { accepted: 0, rejected: 0, queries: 0 };
    fc.assert(
      fc.property(requests[operation], (init) => {
        const error = check(operation, init);
        const fields = namesOfFields(findViolations(operation, init));
        counts[error === undefined ? "accepted" : "rejected"] += 1;
        expect(fields.length > 0).toBe(error !== undefined);
        const field = error?.field?.split("[")[0];
        // The rule of the whole message names no field.
        if (field !== undefined && !fields.includes("")) expect(fields).toContain(field);
        const query = printQuery(init);
        if (query === undefined) return;
        counts.queries += 1;
        const queryError = checkQuery(PATHS[operation], query);
        expect(isParameterError(queryError)).toBe(error !== undefined);
      }),
      { numRuns: RUNS },
    );
    // Both verdicts and both ways in have been compared.
    expect(Math.min(counts.accepted, counts.rejected, counts.queries)).toBeGreaterThan(RUNS / 15);
  });
});

describe("the rules do not express", () => {
  const quote = { amount: "1", token: "USDC", fromChain: "polygon", toChain: "base", slippage: 0.5 };
  const hash = `0x${"ab".repeat(32)}`;
  test.each<[string, OperationName, RequestInit, string]>([
    ["which tokens a network has", "getQuote", { ...quote, token: "FRAX" }, "UNSUPPORTED_TOKEN"],
    ["which chains a network has", "getQuote", { ...quote, token: "ETH", network: "goerli" }, "UNSUPPORTED_CHAIN"],
    // CEL can tell -0 from 0 only by a division, which not every implementation of CEL evaluates alike.
    ["that a slippage of -0 is invalid", "getQuote", { ...quote, slippage: -0 }, "INVALID_PARAMETER"],
    // Case-insensitive comparison is not part of standard CEL.
    [
      "that both names of the hash have one value",
      "getTransferStatus",
      { transferHash: hash, transactionHash: `0x${"cd".repeat(32)}` },
      "INVALID_PARAMETER",
    ],
  ])("%s", (_, operation, init, reason) => {
    expect(findViolations(operation, init)).toEqual([]);
    expect(check(operation, init)?.reason).toBe(reason);
  });

  test.each([
    ["that an ID of CCTP has 64 bits", { transferId: [String(2n ** 64n)] }],
    [
      "that the lists together have 100 items",
      { transferId: Array(51).fill(hash), transferHash: Array(50).fill(hash) },
    ],
  ])("%s", (_, init) => {
    expect(findViolations("watchTransfers", init as object)).toEqual([]);
    expect(check("watchTransfers", init as object)?.reason).toBe("INVALID_PARAMETER");
  });

  test("that hashes of different case are equal", () => {
    const init = { transferHash: hash, transactionHash: hash.toUpperCase() };
    expect(findViolations("getTransferStatus", init)).toEqual([]);
    expect(check("getTransferStatus", init)).toBeUndefined();
  });

  test("that the service also accepts the SDK's name of gnosis", () => {
    const init = { ...quote, fromChain: "xdai", rpcUrl: { xdai: "https://rpc.example" } };
    expect(namesOfFields(findViolations("getQuote", init))).toEqual(["fromChain", "rpcUrl"]);
    expect(check("getQuote", init)).toBeUndefined();
  });

  test("that gnosis and its other name may not both have an endpoint", () => {
    const init = { ...quote, rpcUrl: { xdai: "https://a.example", gnosis: "https://b.example" } };
    expect(check("getQuote", init)?.reason).toBe("INVALID_PARAMETER");
  });
});

test("the rules accept the example responses of gen/openapi.json", () => {
  const { paths } = readOpenApi() as unknown as {
    paths: Record<string, { get: { responses: { 200: { content: { "application/json": { example: JsonValue } } } } } }>;
  };
  for (const [operation, path] of Object.entries(PATHS)) {
    const { output, methodKind } = BridgeService.method[operation as OperationName];
    // Its example is a stream of events.
    if (methodKind !== "unary") continue;
    const example = paths[path]?.get.responses[200].content["application/json"].example as JsonValue;
    const message = fromJson(output, Array.isArray(example) ? { routes: example } : example);
    expect(validator.validate(getMessageType(contract, output.typeName), message as never).kind).toBe("valid");
  }
});

test("the rules reject a response with an invalid value", () => {
  const { output } = BridgeService.method.listAvailableRoutes;
  const message = fromJson(output, { routes: [{ token: "ETH", sourceChainSlug: "zora" }] });
  const result = validator.validate(getMessageType(contract, output.typeName), message as never);
  expect(namesOfFields(result.violations ?? [])).toContain("routes");
});
