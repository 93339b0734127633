import assert from "node:assert/strict";
import type { ChainClient } from "../../../src/chain/chain-client.js";
import {
  areLogsMatching,
  createLogMatcher,
  type Log,
  parseBlockHeader,
  parseLogs,
  parseReceipt,
  parseSender,
} from "../../../src/chain/json-rpc/parse-results.js";
import { findBatchRejection, parseBatchUnlessMixedUp, parseResponse } from "../../../src/chain/json-rpc/rpc-codec.js";
import { ServiceError } from "../../../src/errors.js";
import { UpstreamError } from "../../../src/resilience/http-client/upstream-error.js";
import { catchDeclared, createByteSource } from "./byte-source.js";

const client = { slug: "optimism" } as ChainClient;
const METHODS = [
  "eth_getTransactionReceipt",
  "eth_getLogs",
  "eth_getBlockByNumber",
  "eth_call",
  "eth_chainId",
] as const;
const RANGE = { from: 1, to: 0x1000 };
const FILTER = { address: [`0x${"a1".repeat(20)}`], topics: [[`0x${"b2".repeat(32)}`], null] };

/** Responses of JSON-RPC endpoints: only the declared errors, and results that are well formed and stay what they are. */
export function fuzz(data: Buffer): void {
  const source = createByteSource(data);
  const method = METHODS[source.takeByte() % METHODS.length] as (typeof METHODS)[number];
  const response = parseJson(source.takeRest().toString());
  if (response === undefined) return;
  const calls = [0, 1].map(() => ({ method, params: [] }));
  findBatchRejection(response);
  const batch = catchDeclared(() => parseBatchUnlessMixedUp(response, calls, 0), UpstreamError);
  if ("value" in batch && batch.value !== undefined) assert.equal(batch.value.length, calls.length);
  const outcome = catchDeclared(() => parseResponse(response, { method, params: [] }, 0), UpstreamError);
  for (const result of [response, "value" in outcome && "result" in outcome.value ? outcome.value.result : null]) {
    checkParsers(result);
  }
}

function checkParsers(result: unknown): void {
  const receipt = parse(() => parseReceipt(client, result));
  if (receipt !== undefined) {
    assert.match(`${receipt.transactionHash} ${receipt.blockHash} ${receipt.from}`, /^[0-9a-fx ]+$/);
    assert.deepEqual(parseReceipt(client, { ...receipt, logs: receipt.logs.map(print) }), receipt);
  }
  const header = parse(() => parseBlockHeader(client, result));
  if (header !== undefined) {
    assert.ok(Number.isSafeInteger(header.number) && header.number >= 0 && Number.isSafeInteger(header.timestamp));
  }
  const sender = parse(() => parseSender(client, result));
  if (sender !== undefined) assert.match(sender, /^0x[0-9a-f]{40}$/);
  const logs = parse(() => parseLogs(client, result));
  for (const log of logs ?? []) checkLog(log);
  const areMatching = areLogsMatching(result, FILTER, RANGE);
  if (logs === undefined) assert.equal(areMatching, false);
  else if (areMatching) assert.ok(logs.every(createLogMatcher(FILTER, RANGE)));
}

function checkLog(log: Log): void {
  assert.ok(Number.isSafeInteger(log.blockNumber) && Number.isSafeInteger(log.logIndex));
  assert.match(log.address, /^0x[0-9a-f]{40}$/);
  assert.match(log.data, /^0x[0-9a-f]*$/);
  for (const hash of [...log.topics, log.blockHash, log.transactionHash]) assert.match(hash, /^0x[0-9a-f]{64}$/);
  assert.deepEqual(parseLogs(client, [print(log)]), [log]);
}

/** Returns a log as nodes send it, in upper case. */
function print({ blockNumber, logIndex, ...log }: Log) {
  const upper = (hex: string): string => `0x${hex.slice(2).toUpperCase()}`;
  return {
    address: upper(log.address),
    topics: log.topics.map(upper),
    data: upper(log.data),
    blockHash: upper(log.blockHash),
    transactionHash: upper(log.transactionHash),
    blockNumber: `0x${blockNumber.toString(16)}`,
    logIndex: `0x${logIndex.toString(16)}`,
  };
}

function parse<T>(run: () => T): T | undefined {
  const outcome = catchDeclared(run, ServiceError);
  if ("value" in outcome) return outcome.value;
  assert.equal(outcome.error.reason, "UPSTREAM_UNAVAILABLE");
  return undefined;
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
