import { lookup as systemLookup } from "node:dns/promises";
import { isIP, type LookupFunction } from "node:net";
import { Agent } from "undici";
import { ServiceError } from "../errors.js";
import type { ChainClient } from "./chain-client.js";
import { createEndpointPool, type EndpointFailure } from "./endpoint-pool.js";
import { isPublicAddress } from "./public-address.js";

/** What `rpcUrl[...]` may name: public addresses only, anything (development), or nothing. */
export type CustomUrlPolicy = "public" | "any" | "off";

/** A chain client on a caller's endpoint, with connections of its own. */
export interface CustomEndpoint {
  readonly client: ChainClient;
  close(): Promise<void>;
}

export interface CustomEndpointOptions {
  readonly policy: CustomUrlPolicy;
  readonly onFailure: (failure: EndpointFailure) => void;
  /** All addresses of a host name. */
  readonly resolve?: (host: string) => Promise<readonly ResolvedAddress[]>;
}

export interface ResolvedAddress {
  readonly address: string;
  readonly family: number;
}

const maxUrlLength = 2048;
const maxAnswerBytes = 1024 * 1024;
const connectMs = 3_000;
/** What callers are told, by policy. */
const rules: Readonly<Record<CustomUrlPolicy, string>> = {
  public: "rpcUrl must be an https URL on port 443 or 8545 of a public host, without user info",
  any: "rpcUrl must be an http or https URL without user info",
  off: "this server takes no rpcUrl",
};

/** 443 has the empty name in a parsed https URL. */
const publicPorts = new Set(["", "8545"]);

/**
 * Opens the endpoint that a caller names. The host is resolved once and connected to at exactly the address that was
 * checked, so that a name cannot turn into a private address afterwards.
 * @throws ServiceError RPC_URL_FORBIDDEN with the rule, and no word about which part of it was broken: nobody may scan a
 * network by asking. A name that does not resolve here is refused with the same text.
 */
export async function openCustomEndpoint(
  { slug, chainId }: { readonly slug: string; readonly chainId: number },
  text: string,
  options: CustomEndpointOptions,
): Promise<CustomEndpoint> {
  const { policy, resolve = resolveBySystem } = options;
  const forbidden = (): ServiceError =>
    new ServiceError("RPC_URL_FORBIDDEN", rules[policy], { field: `rpcUrl[${slug}]` });
  if (policy === "off" || text.length > maxUrlLength || !URL.canParse(text)) throw forbidden();
  const url = new URL(text);
  if (url.username !== "" || url.password !== "") throw forbidden();
  if (url.protocol !== "https:" && !(policy === "any" && url.protocol === "http:")) throw forbidden();
  let connect: { timeout: number; lookup?: LookupFunction } = { timeout: connectMs };
  if (policy === "public") {
    if (!publicPorts.has(url.port)) throw forbidden();
    const host = url.hostname.replace(/^\[|\]$/g, "");
    const addresses = isIP(host) ? [{ address: host, family: isIP(host) }] : await resolve(host).catch(() => []);
    if (addresses.length === 0 || !addresses.every(({ address }) => isPublicAddress(address))) throw forbidden();
    connect = { ...connect, lookup: pinned(addresses) };
  }
  const closing = new AbortController();
  const dispatcher = new Agent({ connect, connections: 4, maxResponseSize: maxAnswerBytes });
  return {
    client: createEndpointPool({
      slug,
      chainId,
      urls: [url.href],
      dispatcher,
      maxBytes: maxAnswerBytes,
      onFailure: options.onFailure,
      closing: closing.signal,
    }),
    close() {
      closing.abort();
      return dispatcher.destroy();
    },
  };
}

async function resolveBySystem(host: string): Promise<readonly ResolvedAddress[]> {
  return systemLookup(host, { all: true });
}

function pinned(addresses: readonly ResolvedAddress[]): LookupFunction {
  return (_host, options, callback) => {
    const [first] = addresses;
    if (options.all) callback(null, [...addresses]);
    else callback(null, first?.address ?? "", first?.family);
  };
}
