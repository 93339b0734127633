import { STATUS_CODES } from "node:http";
import { type ErrorReason, ServiceError } from "../../src/errors.js";
import { toCodeName, toErrorBody, toHttpStatus } from "../../src/http/request/error-mapping.js";
import { componentRef, type JsonObject } from "../json-object.js";
import { headersForStatus } from "./response-headers.js";

interface ReasonDoc {
  /** Completes "the call failed because"; without a full stop, unlike the docs by HTTP status. */
  readonly description: string;
  /** A message that the service returns with it. */
  readonly exampleMessage: string;
  readonly exampleField?: string;
}

/** What each reason means. The compiler checks that none is missing. */
const REASON_DOCS: Readonly<Record<ErrorReason, ReasonDoc>> = {
  MISSING_PARAMETER: {
    description: "a required parameter is missing or empty",
    ...{ exampleMessage: "slippage is required", exampleField: "slippage" },
  },
  INVALID_PARAMETER: {
    description: "a parameter is not in the required format, or the request is malformed",
    ...{
      exampleMessage: "amount is not a whole number from 1 to 2^256-1 in the token's smallest unit, in plain digits",
    },
    exampleField: "amount",
  },
  UNKNOWN_PARAMETER: {
    description: "no parameter has this name",
    ...{ exampleMessage: "unknown parameter fromchain: did you mean fromChain?", exampleField: "fromchain" },
  },
  UNSUPPORTED_NETWORK: {
    description: "no network has this name",
    ...{ exampleMessage: 'network "sepolia" is not one of mainnet, goerli', exampleField: "network" },
  },
  UNSUPPORTED_TOKEN: {
    description: "the network does not have this token",
    ...{ exampleMessage: 'token "FRAX" is not one of ETH, DAI on goerli', exampleField: "token" },
  },
  UNSUPPORTED_CHAIN: {
    description: "the network does not have this chain",
    ...{ exampleMessage: 'toChain "zora" is not one of ethereum, optimism on mainnet', exampleField: "toChain" },
  },
  UNSUPPORTED_ROUTE: {
    description: "the token cannot be sent from the source chain to the destination chain",
    exampleMessage: "USDT cannot be sent from polygon to base on mainnet",
  },
  RPC_URL_FORBIDDEN: {
    description: "the operator does not allow this RPC endpoint",
    exampleMessage:
      "rpcUrl must be an https URL of at most 2048 bytes on port 443 or 8545 of a public host, without user info",
    exampleField: "rpcUrl[polygon]",
  },
  INDEX_REQUIRED: {
    description: "the server has no index of this network's transfers",
    exampleMessage: "this server has no index of transfers on goerli",
  },
  TRANSFER_NOT_FOUND: {
    description: "all chains have responded, and none of them knows this transfer",
    exampleMessage: "no Hop transfer with this id or hash on mainnet",
  },
  PATH_NOT_FOUND: { description: "the path does not exist", exampleMessage: "path not found" },
  METHOD_NOT_ALLOWED: {
    description: "the path does not support this method",
    exampleMessage: "the method must be one of GET, HEAD, OPTIONS",
  },
  RATE_LIMITED: {
    description: "the client has sent too many requests, or has too many in progress",
    exampleMessage: "too many requests from this address",
  },
  OVERLOADED: {
    description: "the server has too many calls in progress and did not start this one",
    exampleMessage: "too many calls are waiting here",
  },
  UPSTREAM_UNAVAILABLE: {
    description: "a chain or another source that the result needs did not respond; the message names it",
    exampleMessage: "no RPC endpoint of polygon responded",
  },
  CHAIN_STALLED: {
    description:
      "a chain of the route has produced no block for so long that its values say nothing; the message names it",
    exampleMessage: "polygon is stalled: its newest block is 4 min old",
  },
  DEADLINE_EXCEEDED: { description: "the call did not finish in time", exampleMessage: "no answer within 10000 ms" },
  INTERNAL: {
    description: "an unexpected error in the service; the details are in its log",
    exampleMessage: "internal error",
  },
};

const ALL_REASONS = Object.keys(REASON_DOCS) as ErrorReason[];

/** Errors of requests that do not reach an operation, by status. Their reason is INVALID_PARAMETER. */
const HTTP_ERROR_DOCS: Readonly<Record<number, ReasonDoc>> = {
  408: { description: "The request did not arrive in time.", exampleMessage: "the request did not arrive in time" },
  414: { description: "The URL is too long.", exampleMessage: "the URL is longer than 8192 bytes" },
  431: {
    description: "The headers are too long, or there are too many.",
    exampleMessage: "the headers are longer than 16384 bytes, or more than 128",
  },
};

/** Reasons that no operation returns, because the path belongs to none. */
const NON_OPERATION_REASONS: ReadonlySet<ErrorReason> = new Set(["PATH_NOT_FOUND"]);

export const ERROR_SCHEMA: JsonObject = {
  type: "object",
  description: "Why the call failed. Codes and reasons are stable; messages are for people and may change.",
  properties: {
    code: {
      type: "string",
      description: "Code of the same error over gRPC and Connect.",
      enum: [...new Set(ALL_REASONS.map(toCodeName))],
    },
    message: { type: "string", description: "Describes the error." },
    error: { type: "string", description: "The same as `message`, for clients of the older server." },
    reason: {
      type: "string",
      description: `Why the call failed:\n\n${describeReasons(ALL_REASONS)}`,
      enum: ALL_REASONS,
    },
    field: {
      type: "string",
      description: "Name of the invalid parameter, if the error concerns a single one.",
      examples: ["slippage", "rpcUrl[polygon]"],
    },
  },
  required: ["code", "message", "error", "reason"],
};

/** Error responses: those that all operations share, and those of single operations. */
export interface ErrorResponses {
  /** The shared responses, by the names under which operations refer to them. */
  readonly named: JsonObject;
  /** Returns the responses, by status, of an operation with these specific reasons. */
  forOperation(specificReasons: readonly string[]): JsonObject;
}

/**
 * @param specificReasons reasons that only some operations return
 * @throws Error for a reason that does not exist
 */
export function createErrorResponses(specificReasons: readonly string[]): ErrorResponses {
  for (const name of specificReasons) {
    if (!ALL_REASONS.some((reason) => reason === name)) throw new Error(`unknown reason ${name}`);
  }
  const common = ALL_REASONS.filter(
    (reason) => !specificReasons.includes(reason) && !NON_OPERATION_REASONS.has(reason),
  );
  const shared = groupByStatus(common);
  return {
    named: Object.fromEntries(
      [...shared].map(([status, group]) => [toResponseName(status), toErrorResponse(status, group)] as const),
    ),
    forOperation(reasons) {
      const all = groupByStatus([...common, ...ALL_REASONS.filter((reason) => reasons.includes(reason))]);
      return Object.fromEntries(
        [...all].map(([status, group]) => {
          const isShared = group.length === shared.get(status)?.length;
          return [
            status,
            isShared ? componentRef("responses", toResponseName(status)) : toErrorResponse(status, group),
          ] as const;
        }),
      );
    },
  };
}

/** Groups reasons by HTTP status, in ascending order. */
function groupByStatus(group: readonly ErrorReason[]): Map<number, ErrorReason[]> {
  const statuses = [...Object.keys(HTTP_ERROR_DOCS).map(Number), ...group.map(toHttpStatus)].sort((a, b) => a - b);
  const reasonsOf = (status: number): ErrorReason[] =>
    status in HTTP_ERROR_DOCS ? ["INVALID_PARAMETER"] : group.filter((reason) => toHttpStatus(reason) === status);
  return new Map(statuses.map((status) => [status, reasonsOf(status)]));
}

function toErrorResponse(status: number, group: readonly ErrorReason[]): JsonObject {
  const httpError = HTTP_ERROR_DOCS[status];
  const oneOf = (values: Iterable<string>): JsonObject => ({ type: "string", enum: [...values] });
  const narrowed = {
    type: "object",
    properties: { code: oneOf(new Set(group.map(toCodeName))), reason: oneOf(group) },
  };
  const examples = group.map((reason) => {
    const { exampleMessage, exampleField } = httpError ?? REASON_DOCS[reason];
    const error = new ServiceError(reason, exampleMessage, exampleField === undefined ? {} : { field: exampleField });
    return [reason, { value: JSON.parse(toErrorBody(error)) as JsonObject }] as const;
  });
  return {
    description: httpError?.description ?? describeReasons(group),
    headers: headersForStatus(status, []),
    content: {
      "application/json": {
        schema: { allOf: [componentRef("schemas", "Error"), narrowed] },
        examples: Object.fromEntries(examples),
      },
    },
  };
}

function describeReasons(group: readonly ErrorReason[]): string {
  return group.map((reason) => `- \`${reason}\`: ${REASON_DOCS[reason].description}`).join("\n");
}

/** Returns a component name such as `BadRequest`. */
function toResponseName(status: number): string {
  return (STATUS_CODES[status] ?? "").replace(/[^A-Za-z]/g, "");
}
