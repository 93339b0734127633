import type { Dispatcher } from "undici";
import { UpstreamError } from "../../resilience/http-client/upstream-error.js";
import { findRpcResult } from "../chain-client.js";
import type { EndpointNamer } from "../endpoints/endpoint-name.js";
import { MAX_SECONDS_AHEAD, parseHead } from "../heads/head-tracker.js";
import { CHAIN_ID_CALL, LATEST_BLOCK_CALL } from "../json-rpc/rpc-codec.js";
import {
  CapabilityDetector,
  type DetectCapabilitiesOptions,
  type EndpointCapabilities,
} from "./endpoint-capabilities.js";
import { EndpointProbe, ignoreUpstreamError } from "./endpoint-probe.js";

/** What the diagnosis of an endpoint has found. undefined: unknown, because of an earlier failure or a timeout. */
export interface EndpointReport extends Partial<EndpointCapabilities> {
  /** Name of the endpoint; contains no secret. */
  readonly name: string;
  /** Why nothing is known about the endpoint; undefined: it responds. */
  readonly trouble?: string;
  /** Id of the chain that it serves. */
  readonly chainId?: number;
  /** Its latest block, and the age of that when it was read, in seconds. */
  readonly head?: { readonly number: number; readonly ageSeconds: number };
  /** Distance to the best peer, in blocks and in seconds. */
  readonly lag?: { readonly blocks: number; readonly seconds: number };
}

interface DiagnoseEndpointsOptions extends DetectCapabilitiesOptions {
  /** Slug of the chain. */
  readonly slug: string;
  /** Expected result of `eth_chainId`. */
  readonly chainId: number;
  readonly nameEndpoint: EndpointNamer;
  /** The endpoints of the chain. */
  readonly urls: readonly string[];
  readonly dispatcher: Dispatcher;
  /** Timeout of one request, in milliseconds. */
  readonly attemptTimeoutMs: number;
  /** Wall clock: milliseconds since 1970. */
  readonly wallNow: () => number;
}

/** Far above any response to the calls made here. */
const MAX_RESPONSE_BYTES = 1024 * 1024;

/**
 * Diagnoses all endpoints of a chain concurrently. Never rejects because of their responses. What is unknown when the
 * signal aborts stays undefined.
 */
export async function diagnoseEndpoints(
  options: DiagnoseEndpointsOptions,
  signal: AbortSignal,
): Promise<readonly EndpointReport[]> {
  const { slug, urls, chainId, nameEndpoint, dispatcher, attemptTimeoutMs, wallNow } = options;
  const limits = { dispatcher, maxBytes: MAX_RESPONSE_BYTES, timeoutMs: attemptTimeoutMs };
  const probes = urls.map((url, index) => new EndpointProbe(nameEndpoint(slug, index + 1, url), url, limits));
  const identities = await Promise.all(probes.map(identify));
  // Reads all heads at about the same time: an endpoint that is read later would seem to be ahead.
  const heads = await Promise.all(
    probes.map((probe, index) => (identities[index]?.chainId === chainId ? readHead(probe) : undefined)),
  );
  // Other heads are not compared with a block that is further in the future than clocks differ.
  const comparable = heads
    .filter((head) => head !== undefined)
    .filter(({ ageSeconds }) => ageSeconds >= -MAX_SECONDS_AHEAD);
  const highest = Math.max(...comparable.map(({ number }) => number));
  const youngest = Math.min(...comparable.map(({ ageSeconds }) => ageSeconds));
  return Promise.all(
    probes.map(async (probe, index): Promise<EndpointReport> => {
      const head = heads[index];
      const report = { name: probe.name, ...identities[index] };
      if (head === undefined) return report;
      const capabilities = await new CapabilityDetector(probe, head.number, options, signal).detect();
      if (!comparable.includes(head)) return { ...report, head, ...capabilities };
      const lag = { blocks: highest - head.number, seconds: head.ageSeconds - youngest };
      return { ...report, head, lag, ...capabilities };
    }),
  );

  async function identify(probe: EndpointProbe): Promise<Pick<EndpointReport, "trouble" | "chainId">> {
    try {
      return { chainId: Number(findRpcResult(await probe.send(CHAIN_ID_CALL, signal))) };
    } catch (error) {
      if (error instanceof UpstreamError) return { trouble: error.message };
      throw error;
    }
  }

  async function readHead(probe: EndpointProbe): Promise<EndpointReport["head"]> {
    const head = parseHead(findRpcResult(await ignoreUpstreamError(probe.send(LATEST_BLOCK_CALL, signal))));
    return head && { number: head.number, ageSeconds: wallNow() / 1_000 - head.timestamp };
  }
}
