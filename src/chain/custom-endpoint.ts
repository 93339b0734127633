import { lookup as systemLookup } from "node:dns/promises";
import { isIP, type LookupFunction } from "node:net";
import { Agent } from "undici";
import { ServiceError } from "../errors.js";
import { type ChainClient, createChainClient, type EndpointFailure } from "./chain-client.js";
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
const attemptMs = 3_000;
/** 443 has the empty name in a parsed https URL. */
const publicPorts = new Set(["", "8545"]);

/**
 * Opens the endpoint that a caller names. The host is resolved once and connected to at exactly the address that was
 * checked, so that a name cannot turn into a private address afterwards.
 * @throws ServiceError RPC_URL_FORBIDDEN, with one text for every cause, so that nobody can scan a network by it.
 */
export async function openCustomEndpoint(
  slug: string,
  text: string,
  options: CustomEndpointOptions,
): Promise<CustomEndpoint> {
  const forbidden = (): ServiceError =>
    new ServiceError("RPC_URL_FORBIDDEN", "this RPC URL is not allowed here", { field: `rpcUrl[${slug}]` });
  const { policy, resolve = resolveBySystem } = options;
  if (policy === "off" || text.length > maxUrlLength || !URL.canParse(text)) throw forbidden();
  const url = new URL(text);
  if (url.username !== "" || url.password !== "") throw forbidden();
  if (url.protocol !== "https:" && !(policy === "any" && url.protocol === "http:")) throw forbidden();
  let connect = {};
  if (policy === "public") {
    if (!publicPorts.has(url.port)) throw forbidden();
    const host = url.hostname.replace(/^\[|\]$/g, "");
    const addresses = isIP(host) ? [{ address: host, family: isIP(host) }] : await resolve(host).catch(() => []);
    const [first] = addresses;
    if (first === undefined || !addresses.every(({ address }) => isPublicAddress(address))) throw forbidden();
    connect = { lookup: pinned(first) };
  }
  const dispatcher = new Agent({ connect, connections: 4, maxResponseSize: maxAnswerBytes });
  return {
    client: createChainClient({
      slug,
      urls: [url.href],
      dispatcher,
      attemptMs,
      maxBytes: maxAnswerBytes,
      onFailure: options.onFailure,
    }),
    close: () => dispatcher.destroy(),
  };
}

async function resolveBySystem(host: string): Promise<readonly ResolvedAddress[]> {
  return systemLookup(host, { all: true });
}

function pinned({ address, family }: ResolvedAddress): LookupFunction {
  return (_host, options, callback) => {
    if (options.all) callback(null, [{ address, family }]);
    else callback(null, address, family);
  };
}
