import { STATUS_CODES } from "node:http";
import { type Reason, ServiceError } from "../src/errors.js";
import { codeNameOf, httpStatusOf, toErrorBody } from "../src/http/request/error-mapping.js";
import { type Json, ref } from "./json-object.js";
import { headersOfStatus } from "./response-headers.js";

interface Meaning {
  /** Completes "the call failed because ...". */
  readonly words: string;
  /** A message that comes with it. */
  readonly message: string;
  readonly field?: string;
}

/** What each reason means. That none is missing is checked by the compiler. */
const meanings: Readonly<Record<Reason, Meaning>> = {
  MISSING_PARAMETER: {
    words: "a parameter that is required is missing or empty",
    ...{ message: "slippage is required", field: "slippage" },
  },
  INVALID_PARAMETER: {
    words: "a parameter is not written as it must be, or the request is no right one at all",
    ...{ message: "amount is not a whole number from 1 to 2^256-1 in the token's smallest unit, in plain digits" },
    field: "amount",
  },
  UNKNOWN_PARAMETER: {
    words: "there is no parameter of this name",
    ...{ message: "unknown parameter: fromchain", field: "fromchain" },
  },
  UNSUPPORTED_NETWORK: {
    words: "there is no such network",
    ...{ message: 'network "sepolia" is none of mainnet, goerli', field: "network" },
  },
  UNSUPPORTED_TOKEN: {
    words: "the network has no such token",
    ...{ message: 'token "FRAX" is none of ETH, DAI on goerli', field: "token" },
  },
  UNSUPPORTED_CHAIN: {
    words: "the network has no such chain",
    ...{ message: 'toChain "zora" is none of ethereum, optimism on mainnet', field: "toChain" },
  },
  UNSUPPORTED_ROUTE: {
    words: "the token cannot be sent from this chain to that one",
    message: "USDT cannot be sent from polygon to base on mainnet",
  },
  RPC_URL_FORBIDDEN: {
    words: "the operator does not allow this RPC endpoint",
    message:
      "rpcUrl must be an https URL of at most 2048 bytes on port 443 or 8545 of a public host, without user info",
    field: "rpcUrl[polygon]",
  },
  TRANSFER_NOT_FOUND: {
    words: "every chain has answered, and none knows such a transfer",
    message: "no Hop transfer with this id or hash on mainnet",
  },
  PATH_NOT_FOUND: { words: "there is nothing at this path", message: "there is nothing at this path" },
  METHOD_NOT_ALLOWED: {
    words: "the path does not take this method",
    message: "the method must be one of GET, HEAD, OPTIONS",
  },
  RATE_LIMITED: {
    words: "the caller has made too many requests, or takes too many places",
    message: "too many requests from this address",
  },
  OVERLOADED: {
    words: "too much is being worked on; nothing was asked of a chain",
    message: "too many calls are waiting here",
  },
  UPSTREAM_UNAVAILABLE: {
    words: "a chain or a source that is needed did not answer; the message names it",
    message: "no RPC endpoint of polygon gives an answer",
  },
  DEADLINE_EXCEEDED: { words: "it took too long", message: "no answer within 10000 ms" },
  INTERNAL: { words: "something is wrong on our side; the log has more", message: "internal error" },
};

const reasons = Object.keys(meanings) as Reason[];

/** Refusals of requests that never reached an operation, by their status. Their reason is INVALID_PARAMETER. */
const refusals: Readonly<Record<number, Meaning>> = {
  408: { words: "The request did not come in time.", message: "the request did not come in time" },
  414: { words: "The URL is too long.", message: "the URL is longer than 8192 bytes" },
  431: {
    words: "The headers are too long or too many.",
    message: "the headers are longer than 16384 bytes, or more than 128",
  },
};

/** Reasons that no operation gives, since the path is none of an operation's. */
const outsideOperations: ReadonlySet<Reason> = new Set(["PATH_NOT_FOUND"]);

export const errorSchema: Json = {
  type: "object",
  description: "Why there is no answer. Codes and reasons do not change; messages are for people and may.",
  properties: {
    code: {
      type: "string",
      description: "Name of the code that the same error has over gRPC and Connect.",
      enum: [...new Set(reasons.map(codeNameOf))],
    },
    message: { type: "string", description: "What is wrong, in a sentence." },
    error: { type: "string", description: "The same as `message`, for clients of the older server." },
    reason: {
      type: "string",
      description: `Why:\n\n${wordsFor(reasons)}`,
      enum: reasons,
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
  readonly named: Json;
  /** Of an operation that has reasons of its own, by status. */
  ofOperation(own: readonly string[]): Json;
}

/** @param special reasons that operations claim as their own. Throws for one that there is not. */
export function createErrorResponses(special: readonly string[]): ErrorResponses {
  for (const each of special) if (!reasons.some((reason) => reason === each)) throw new Error(`no reason ${each}`);
  const common = reasons.filter((reason) => !special.includes(reason) && !outsideOperations.has(reason));
  const shared = byStatus(common);
  return {
    named: Object.fromEntries(
      [...shared].map(([status, group]) => [nameOf(status), responseOf(status, group)] as const),
    ),
    ofOperation(own) {
      const all = byStatus([...common, ...reasons.filter((reason) => own.includes(reason))]);
      return Object.fromEntries(
        [...all].map(([status, group]) => {
          const isShared = group.length === shared.get(status)?.length;
          return [status, isShared ? ref("responses", nameOf(status)) : responseOf(status, group)] as const;
        }),
      );
    },
  };
}

/** Statuses in their order, with the reasons that each can have. */
function byStatus(group: readonly Reason[]): Map<number, Reason[]> {
  const statuses = [...Object.keys(refusals).map(Number), ...group.map(httpStatusOf)].sort((a, b) => a - b);
  const reasonsOf = (status: number): Reason[] =>
    status in refusals ? ["INVALID_PARAMETER"] : group.filter((reason) => httpStatusOf(reason) === status);
  return new Map(statuses.map((status) => [status, reasonsOf(status)]));
}

function responseOf(status: number, group: readonly Reason[]): Json {
  const refusal = refusals[status];
  const oneOf = (values: Iterable<string>): Json => ({ type: "string", enum: [...values] });
  const narrowed = {
    type: "object",
    properties: { code: oneOf(new Set(group.map(codeNameOf))), reason: oneOf(group) },
  };
  const examples = group.map((reason) => {
    const { message, field } = refusal ?? meanings[reason];
    const error = new ServiceError(reason, message, field === undefined ? {} : { field });
    return [reason, { value: JSON.parse(toErrorBody(error)) as Json }] as const;
  });
  return {
    description: refusal?.words ?? wordsFor(group),
    headers: headersOfStatus(status, []),
    content: {
      "application/json": {
        schema: { allOf: [ref("schemas", "Error"), narrowed] },
        examples: Object.fromEntries(examples),
      },
    },
  };
}

function wordsFor(group: readonly Reason[]): string {
  return group.map((reason) => `- \`${reason}\`: ${meanings[reason].words}`).join("\n");
}

/** As in `BadRequest`. */
function nameOf(status: number): string {
  return (STATUS_CODES[status] ?? "").replace(/[^A-Za-z]/g, "");
}
