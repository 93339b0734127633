import type { Dispatcher } from "undici";
import { UpstreamError } from "../../resilience/upstream-error.js";
import { getResult, type LogFilter, type RpcCall } from "../chain-client.js";
import { MAX_SECONDS_AHEAD } from "../endpoints/head-tracker.js";
import { isQuantity } from "../hex.js";
import { detectCapabilities, type EndpointCapabilities } from "./endpoint-capabilities.js";
import { createEndpointProbe, type EndpointProbe, ignoreUpstreamError } from "./endpoint-probe.js";

/** What an endpoint was found to be. What is undefined is not known: it was not asked, or did not answer in time. */
export interface EndpointReport extends Partial<EndpointCapabilities> {
  /** Its host and digits, nothing secret. */
  readonly name: string;
  /** Why nothing is known of it; undefined: it answers. */
  readonly trouble?: string;
  /** The chain that it serves. */
  readonly chainId?: number;
  readonly head?: ReportedHead;
  /** Behind the best of its peers, in blocks and in seconds. */
  readonly lag?: { readonly blocks: number; readonly seconds: number };
}

interface ReportedHead {
  readonly number: number;
  /** How old it was when it was read, in seconds. */
  readonly ageSeconds: number;
}

export interface DiagnoseEndpointsOptions {
  /** What `eth_chainId` should answer. */
  readonly chainId: number;
  /** The endpoints of the chain. */
  readonly urls: readonly string[];
  /** Where Multicall3 stands; undefined: nowhere. */
  readonly multicall: string | undefined;
  /** What is searched for in logs: as a look-up searches, and finding little. */
  readonly filter: LogFilter;
  readonly dispatcher: Dispatcher;
  /** Longest time for one request, in milliseconds. */
  readonly attemptTimeoutMs: number;
  /** Milliseconds on a steady clock. */
  readonly now: () => number;
  /** Milliseconds since 1970. */
  readonly wallNow: () => number;
}

/** Far more than any answer to what is asked. */
const MAX_RESPONSE_BYTES = 1024 * 1024;

const CHAIN_ID_CALL: RpcCall = { method: "eth_chainId", params: [] };
const LATEST_BLOCK_CALL: RpcCall = { method: "eth_getBlockByNumber", params: ["latest", false] };

/**
 * Asks all endpoints of a chain what they can do, at the same time. Never rejects because of what they answer; what is
 * not known when the signal fires stays unknown.
 */
export async function diagnoseEndpoints(
  options: DiagnoseEndpointsOptions,
  signal: AbortSignal,
): Promise<readonly EndpointReport[]> {
  const { urls, chainId, wallNow } = options;
  const probes = urls.map((url) => createEndpointProbe({ ...options, url, maxBytes: MAX_RESPONSE_BYTES }));
  const found = await Promise.all(probes.map(identify));
  // All heads are read at about the same time: else who answers late would seem ahead.
  const heads = await Promise.all(
    probes.map((probe, index) => (found[index]?.chainId === chainId ? headOf(probe) : undefined)),
  );
  // A block from further in the future than clocks differ is no measure for others.
  const known = heads.filter((head) => head !== undefined).filter(({ ageSeconds }) => ageSeconds >= -MAX_SECONDS_AHEAD);
  const highest = Math.max(...known.map(({ number }) => number));
  const youngest = Math.min(...known.map(({ ageSeconds }) => ageSeconds));
  return Promise.all(
    probes.map(async (probe, index): Promise<EndpointReport> => {
      const head = heads[index];
      const report = { name: probe.name, ...found[index] };
      if (head === undefined) return report;
      const abilities = await detectCapabilities(probe, head.number, options, signal);
      if (!known.includes(head)) return { ...report, head, ...abilities };
      const lag = { blocks: highest - head.number, seconds: head.ageSeconds - youngest };
      return { ...report, head, lag, ...abilities };
    }),
  );

  async function identify(probe: EndpointProbe): Promise<Pick<EndpointReport, "trouble" | "chainId">> {
    try {
      return { chainId: Number(getResult(await probe.send(CHAIN_ID_CALL, signal))) };
    } catch (error) {
      if (error instanceof UpstreamError) return { trouble: error.message };
      throw error;
    }
  }

  async function headOf(probe: EndpointProbe): Promise<ReportedHead | undefined> {
    const block = getResult(await ignoreUpstreamError(probe.send(LATEST_BLOCK_CALL, signal)));
    const { number, timestamp } = (block ?? {}) as { number?: unknown; timestamp?: unknown };
    if (!isQuantity(number) || !isQuantity(timestamp)) return undefined;
    return { number: Number(number), ageSeconds: wallNow() / 1_000 - Number(timestamp) };
  }
}
