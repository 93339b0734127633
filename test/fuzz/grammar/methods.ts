import type { DescMessage } from "@bufbuild/protobuf";
import fc from "fast-check";
import {
  BatchGetQuotesRequestSchema,
  GetQuoteRequestSchema,
  GetTransferStatusRequestSchema,
  GetWithdrawalRequestSchema,
  ListAvailableRoutesRequestSchema,
  ListTransfersRequestSchema,
} from "../../../gen/hop/bridge/v1/bridge_pb.js";
import { encodePageToken } from "../../../src/transfers/index/list/page-token.js";
import { hash, oddValues, rpcUrls, slugs, tokens } from "./values.js";

export const SERVICE_PATH = "/hop.bridge.v1.BridgeService";

/** A transfer that exists. */
export interface KnownTransfer {
  readonly transferId: string;
  readonly transactionHash: string;
}

export type Fields = Readonly<Record<string, string | number | readonly string[] | Readonly<Record<string, string>>>>;

export interface Method {
  readonly path: string;
  readonly procedure: string;
  readonly schema: DescMessage;
  readonly fields: fc.Arbitrary<Fields>;
}

/** Tokens of other queries, some of them with other bytes. */
const pageTokens = fc
  .record({
    position: fc.record({
      timestamp: fc.nat(),
      transactionHash: hash,
      correlationKey: hash,
      logIndex: fc.nat(),
    }),
    cut: fc.nat(120),
  })
  .map(({ position, cut }) => encodePageToken("", position).slice(cut % 7 === 0 ? cut : 0));

/** Returns the methods, each with valid parameters by their JSON names. */
export function methodsWith(known: readonly KnownTransfer[]): readonly Method[] {
  const optional = <T>(arbitrary: fc.Arbitrary<T>) => fc.option(arbitrary, { nil: undefined, freq: 8 });
  const filled = (fields: Record<string, unknown>) =>
    Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as Fields;
  const network = fc.oneof(
    { weight: 1, arbitrary: fc.constantFrom("mainnet", "goerli", "") },
    { weight: 12, arbitrary: fc.constant(undefined) },
  );
  // Each opens connections: a few are enough.
  const rpcUrl = fc.oneof(
    { weight: 1, arbitrary: fc.dictionary(fc.oneof(slugs, oddValues), rpcUrls, { minKeys: 1, maxKeys: 2 }) },
    { weight: 40, arbitrary: fc.constant(undefined) },
  );
  const amounts = fc.bigInt({ min: 1n, max: 10n ** 24n }).map(String);
  const view = fc.constantFrom(undefined, undefined, "BASIC", "FULL");
  // An unknown transfer is searched for on the chains, each time again: a few are enough.
  const transfers = fc.oneof(
    { weight: 80, arbitrary: fc.constantFrom(...known) },
    { weight: 1, arbitrary: fc.record({ transferId: hash, transactionHash: hash }) },
  );
  const transferNames = fc.tuple(transfers, fc.nat(2)).map(([{ transferId, transactionHash }, form]) => {
    if (form === 2) return { transferId, transactionHash };
    return form === 0 ? { transferId } : { transferHash: transactionHash };
  });
  const mergeFields = ([names, more]: readonly [object, object]) => filled({ ...names, ...more });
  return [
    {
      path: "/v1/quote",
      procedure: "GetQuote",
      schema: GetQuoteRequestSchema,
      fields: fc
        .record({
          amounts: fc
            .tuple(fc.constantFrom("amount", "amount", "amount", "receiveAmount"), amounts)
            .map(([name, amount]) => ({ [name]: amount })),
          view,
          token: tokens,
          fromChain: slugs,
          toChain: slugs,
          slippage: fc.constantFrom(0, 0.1, 0.5, 1, 50),
          network,
          rpcUrl,
        })
        .map(({ amounts, ...more }) => filled({ ...amounts, ...more })),
    },
    {
      path: "/v1/quotes",
      procedure: "BatchGetQuotes",
      schema: BatchGetQuotesRequestSchema,
      fields: fc
        .record({
          amount: fc.array(fc.oneof({ weight: 9, arbitrary: amounts }, oddValues), { minLength: 1, maxLength: 30 }),
          toChain: optional(
            fc.array(fc.oneof({ weight: 9, arbitrary: slugs }, oddValues), { minLength: 1, maxLength: 5 }),
          ),
          ...{ view, token: tokens, fromChain: slugs, slippage: fc.constantFrom(0, 0.5, 50), network },
        })
        .map(filled),
    },
    {
      path: "/v1/transfer-status",
      procedure: "GetTransferStatus",
      schema: GetTransferStatusRequestSchema,
      fields: fc.tuple(transferNames, fc.record({ network, rpcUrl, view })).map(mergeFields),
    },
    {
      path: "/v1/withdrawal",
      procedure: "GetWithdrawal",
      schema: GetWithdrawalRequestSchema,
      fields: fc.tuple(transferNames, fc.record({ network, rpcUrl })).map(mergeFields),
    },
    {
      path: "/v1/transfers",
      procedure: "ListTransfers",
      schema: ListTransfersRequestSchema,
      fields: fc
        .record({
          account: hash.map((text) => text.slice(0, 42)),
          state: fc.constantFrom(undefined, undefined, "PENDING", "BONDED", "UNBONDABLE"),
          token: optional(tokens),
          fromChain: optional(slugs),
          toChain: optional(slugs),
          pageSize: fc.option(fc.integer({ min: 1, max: 1_000 }), { nil: undefined }),
          pageToken: fc.oneof(fc.constant(undefined), pageTokens),
          view,
          network,
        })
        .map(filled),
    },
    {
      path: "/v1/available-routes",
      procedure: "ListAvailableRoutes",
      schema: ListAvailableRoutesRequestSchema,
      fields: fc
        .record({
          token: optional(tokens),
          fromChain: optional(slugs),
          toChain: optional(slugs),
          view,
          network,
          rpcUrl,
        })
        .map(filled),
    },
  ];
}
