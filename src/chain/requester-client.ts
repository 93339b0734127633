import type { ChainClient } from "./chain-client.js";
import type { AdaptiveLogReader } from "./endpoints/adaptive-block-range.js";
import type { HedgedRequester } from "./endpoints/hedged-requests.js";

export interface RequesterClientOptions {
  readonly slug: string;
  readonly request: HedgedRequester;
  readonly readLogs: AdaptiveLogReader;
  /** As in RpcCall, for all calls of the client. */
  readonly isBackground?: boolean;
}

/** Creates the client of a chain from what sends its requests. */
export function createRequesterClient({
  slug,
  request,
  readLogs,
  isBackground = false,
}: RequesterClientOptions): ChainClient {
  return {
    slug,
    async send(method, params, signal, validate, onRequest) {
      const [outcome] = await request([{ method, params, validate, onRequest, isBackground }], signal);
      if (outcome === undefined) throw new Error("the request has no outcome");
      if ("revert" in outcome) throw outcome.revert;
      return outcome.result;
    },
    async sendBatch(calls, signal) {
      if (calls.length === 0) return [];
      return request(isBackground ? calls.map((call) => ({ ...call, isBackground })) : calls, signal);
    },
    getLogs: (filter, range, newestFirst, signal, onRequest) =>
      readLogs(filter, range, newestFirst, signal, onRequest, isBackground),
  };
}
