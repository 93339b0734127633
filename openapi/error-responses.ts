import { STATUS_CODES } from "node:http";
import { type ErrorReason, ServiceError } from "../src/errors.js";
import { toCodeName, toErrorBody, toHttpStatus } from "../src/http/request/error-mapping.js";
import { componentRef, type JsonObject } from "./json-object.js";
import { headersForStatus } from "./response-headers.js";

interface ReasonDoc {
  /** Completes "the call failed because ...". */
  readonly description: string;
  /** A message that comes with it. */
  readonly exampleMessage: string;
  readonly exampleField?: string;
}

/** What each reason means. That none is missing is checked by the compiler. */
const REASON_DOCS: Readonly<Record<ErrorReason, ReasonDoc>> = {
  MISSING_PARAMETER: {
    description: "a parameter that is required is missing or empty",
    ...{ exampleMessage: "slippage is required", exampleField: "slippage" },
  },
  INVALID_PARAMETER: {
    description: "a parameter is not written as it must be, or the request is no right one at all",
    ...{
      exampleMessage: "amount is not a whole number from 1 to 2^256-1 in the token's smallest unit, in plain digits",
    },
    exampleField: "amount",
  },
  UNKNOWN_PARAMETER: {
    description: "there is no parameter of this name",
    ...{ exampleMessage: "unknown parameter: fromchain", exampleField: "fromchain" },
  },
  UNSUPPORTED_NETWORK: {
    description: "there is no such network",
    ...{ exampleMessage: 'network "sepolia" is none of mainnet, goerli', exampleField: "network" },
  },
  UNSUPPORTED_TOKEN: {
    description: "the network has no such token",
    ...{ exampleMessage: 'token "FRAX" is none of ETH, DAI on goerli', exampleField: "token" },
  },
  UNSUPPORTED_CHAIN: {
    description: "the network has no such chain",
    ...{ exampleMessage: 'toChain "zora" is none of ethereum, optimism on mainnet', exampleField: "toChain" },
  },
  UNSUPPORTED_ROUTE: {
    description: "the token cannot be sent from this chain to that one",
    exampleMessage: "USDT cannot be sent from polygon to base on mainnet",
  },
  RPC_URL_FORBIDDEN: {
    description: "the operator does not allow this RPC endpoint",
    exampleMessage:
      "rpcUrl must be an https URL of at most 2048 bytes on port 443 or 8545 of a public host, without user info",
    exampleField: "rpcUrl[polygon]",
  },
  TRANSFER_NOT_FOUND: {
    description: "every chain has answered, and none knows such a transfer",
    exampleMessage: "no Hop transfer with this id or hash on mainnet",
  },
  PATH_NOT_FOUND: { description: "path not found", exampleMessage: "path not found" },
  METHOD_NOT_ALLOWED: {
    description: "the path does not take this method",
    exampleMessage: "the method must be one of GET, HEAD, OPTIONS",
  },
  RATE_LIMITED: {
    description: "the caller has made too many requests, or takes too many places",
    exampleMessage: "too many requests from this address",
  },
  OVERLOADED: {
    description: "too much is being worked on; nothing was asked of a chain",
    exampleMessage: "too many calls are waiting here",
  },
  UPSTREAM_UNAVAILABLE: {
    description: "a chain or a source that is needed did not answer; the message names it",
    exampleMessage: "no RPC endpoint of polygon gives an answer",
  },
  DEADLINE_EXCEEDED: { description: "it took too long", exampleMessage: "no answer within 10000 ms" },
  INTERNAL: { description: "something is wrong on our side; the log has more", exampleMessage: "internal error" },
};

const allReasons = Object.keys(REASON_DOCS) as ErrorReason[];

/** Refusals of requests that never reached an operation, by their status. Their reason is INVALID_PARAMETER. */
const HTTP_ERROR_DOCS: Readonly<Record<number, ReasonDoc>> = {
  408: { description: "The request did not arrive in time.", exampleMessage: "the request did not arrive in time" },
  414: { description: "The URL is too long.", exampleMessage: "the URL is longer than 8192 bytes" },
  431: {
    description: "The headers are too long or too many.",
    exampleMessage: "the headers are longer than 16384 bytes, or more than 128",
  },
};

/** Reasons that no operation gives, since the path is none of an operation's. */
const NON_OPERATION_REASONS: ReadonlySet<ErrorReason> = new Set(["PATH_NOT_FOUND"]);

export const errorSchema: JsonObject = {
  type: "object",
  description: "Why there is no answer. Codes and reasons do not change; messages are for people and may.",
  properties: {
    code: {
      type: "string",
      description: "Name of the code that the same error has over gRPC and Connect.",
      enum: [...new Set(allReasons.map(toCodeName))],
    },
    message: { type: "string", description: "What is wrong, in a sentence." },
    error: { type: "string", description: "The same as `message`, for clients of the older server." },
    reason: {
      type: "string",
      description: `Why:\n\n${describeReasons(allReasons)}`,
      enum: allReasons,
    },
    field: {
      type: "string",
      description: "Name of the one parameter at fault, where one is.",
      examples: ["slippage", "rpcUrl[polygon]"],
    },
  },
  required: ["code", "message", "error", "reason"],
};

/** Answers with an error: those that operations have in common, and those of single ones. */
export interface ErrorResponses {
  /** By the names under which operations refer to them. */
  readonly named: JsonObject;
  /** Of an operation that has reasons of its own, by status. */
  forOperation(own: readonly string[]): JsonObject;
}

/** @param special reasons that operations claim as their own. Throws for one that there is not. */
export function createErrorResponses(special: readonly string[]): ErrorResponses {
  for (const each of special) if (!allReasons.some((reason) => reason === each)) throw new Error(`no reason ${each}`);
  const common = allReasons.filter((reason) => !special.includes(reason) && !NON_OPERATION_REASONS.has(reason));
  const shared = groupByStatus(common);
  return {
    named: Object.fromEntries(
      [...shared].map(([status, group]) => [toResponseName(status), toErrorResponse(status, group)] as const),
    ),
    forOperation(own) {
      const all = groupByStatus([...common, ...allReasons.filter((reason) => own.includes(reason))]);
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

/** Statuses in their order, with the reasons that each can have. */
function groupByStatus(group: readonly ErrorReason[]): Map<number, ErrorReason[]> {
  const statuses = [...Object.keys(HTTP_ERROR_DOCS).map(Number), ...group.map(toHttpStatus)].sort((a, b) => a - b);
  const reasonsOf = (status: number): ErrorReason[] =>
    status in HTTP_ERROR_DOCS ? ["INVALID_PARAMETER"] : group.filter((reason) => toHttpStatus(reason) === status);
  return new Map(statuses.map((status) => [status, reasonsOf(status)]));
}

function toErrorResponse(status: number, group: readonly ErrorReason[]): JsonObject {
  const refusal = HTTP_ERROR_DOCS[status];
  const oneOf = (values: Iterable<string>): JsonObject => ({ type: "string", enum: [...values] });
  const narrowed = {
    type: "object",
    properties: { code: oneOf(new Set(group.map(toCodeName))), reason: oneOf(group) },
  };
  const examples = group.map((reason) => {
    const { exampleMessage, exampleField } = refusal ?? REASON_DOCS[reason];
    const error = new ServiceError(reason, exampleMessage, exampleField === undefined ? {} : { field: exampleField });
    return [reason, { value: JSON.parse(toErrorBody(error)) as JsonObject }] as const;
  });
  return {
    description: refusal?.description ?? describeReasons(group),
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

/** As in `BadRequest`. */
function toResponseName(status: number): string {
  return (STATUS_CODES[status] ?? "").replace(/[^A-Za-z]/g, "");
}
