import type { LookupAddress } from "node:dns";
import { Resolver } from "node:dns/promises";
import { isIP } from "node:net";
import { networkInterfaces } from "node:os";
import { ServiceError } from "../../errors.js";
import { createAbortScope } from "../../resilience/abort-scope.js";
import { parseUrl } from "../parse-url.js";

/** What `rpcUrl[...]` may name: public addresses only, any address (for development), or nothing. */
export type CustomUrlPolicy = "public" | "any" | "off";

/** Allowed ports of a public endpoint, unless the operator configures others. */
export const DEFAULT_CUSTOM_URL_PORTS: readonly number[] = [443, 8545];

export interface SsrfGuardOptions {
  readonly policy: CustomUrlPolicy;
  /** Allowed ports of a public URL. */
  readonly allowedPorts?: readonly number[] | undefined;
  /** Returns all addresses of a host name. */
  readonly resolveHost?: (host: string, signal: AbortSignal) => Promise<readonly LookupAddress[]>;
  /** Returns the addresses of this machine. */
  readonly listLocalAddresses?: () => readonly string[];
}

const MAX_URL_LENGTH = 2048;

/** Fully qualified names of letters, digits and hyphens, as public servers have: at least one dot, none at the end. */
const FULLY_QUALIFIED_NAME =
  /^(?=.{1,253}$)(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z](?:[a-z0-9-]{0,61}[a-z0-9])$/;

/** Last labels reserved, by registry or by convention, for private use, for tests or for other naming systems. */
const PRIVATE_TOP_LEVEL_LABELS = new Set(
  "alt arpa corp example home internal intranet invalid lan local localdomain localhost onion private test".split(" "),
);

/** The addresses of Azure's platform services for its virtual machines are public only by their number. */
const AZURE_PLATFORM_ADDRESS = "168.63.129.16";
/** Timeout of the first try of a DNS lookup in milliseconds. The second try takes twice as long. */
const DNS_TIMEOUT_MS = 700;
const DNS_TRIES = 2;

/**
 * Validates a URL that a caller names, and resolves its host once. Returns its normal form and the only addresses that may
 * be connected to; undefined: any.
 * @param request.field the request parameter that holds the URL
 * @param request.timeoutMs timeout of the DNS lookup, in milliseconds
 * @throws ServiceError RPC_URL_FORBIDDEN with the rule, but not with the part of it that was violated: callers must not be
 * able to scan a network. A name that does not resolve in time is rejected with the same message.
 */
export async function validateCustomUrl(
  url: string,
  options: SsrfGuardOptions,
  request: { readonly field: string; readonly timeoutMs: number; readonly signal: AbortSignal },
): Promise<{ readonly href: string; readonly addresses: readonly LookupAddress[] | undefined }> {
  const { policy, allowedPorts = DEFAULT_CUSTOM_URL_PORTS } = options;
  const forbidden = (): ServiceError =>
    new ServiceError("RPC_URL_FORBIDDEN", describePolicy(policy, allowedPorts), { field: request.field });
  const parsed = policy === "off" || url.length > MAX_URL_LENGTH ? undefined : parseUrl(url);
  if (parsed === undefined) throw forbidden();
  // From here on only the parser's output counts: it normalizes every spelling of an address.
  const { href, protocol, username, password, port, hostname } = parsed;
  if (href.length > MAX_URL_LENGTH || username !== "" || password !== "") throw forbidden();
  if (policy === "any") {
    if (protocol !== "https:" && protocol !== "http:") throw forbidden();
    return { href, addresses: undefined };
  }
  // The URL parser leaves out the default port.
  if (protocol !== "https:" || !allowedPorts.includes(port === "" ? 443 : Number(port))) throw forbidden();
  const addresses = await findAddresses(removeBrackets(hostname), options, request);
  const localAddresses = (options.listLocalAddresses ?? listLocalAddresses)();
  if (addresses.length === 0 || !(await arePublicAddresses(addresses, localAddresses))) throw forbidden();
  return { href, addresses };
}

/** Returns an IPv6 address without the brackets of a URL. */
export function removeBrackets(hostname: string): string {
  return hostname.replace(/^\[|\]$/g, "");
}

/** Returns the addresses of a host; none for a name that is no public server's or does not resolve in time. */
async function findAddresses(
  host: string,
  { resolveHost: resolve = resolveHost }: SsrfGuardOptions,
  { timeoutMs, signal }: { readonly timeoutMs: number; readonly signal: AbortSignal },
): Promise<readonly LookupAddress[]> {
  const family = isIP(host);
  if (family !== 0) return [{ address: host, family }];
  const lastLabel = host.slice(host.lastIndexOf(".") + 1);
  if (!FULLY_QUALIFIED_NAME.test(host) || PRIVATE_TOP_LEVEL_LABELS.has(lastLabel)) return [];
  const scope = createAbortScope(signal, timeoutMs);
  try {
    return await resolve(host, scope.signal);
  } catch {
    return [];
  } finally {
    scope.cancel();
  }
}

/** Returns whether all addresses are global unicast by their number, and none of them is this machine's. */
async function arePublicAddresses(addresses: readonly LookupAddress[], local: readonly string[]): Promise<boolean> {
  // Loaded on first use: few operators admit custom endpoints.
  const { default: ipaddr } = await import("ipaddr.js");
  // IPv4 in IPv6, NAT64, link-local and private ranges are all outside the only global unicast range of IPv6.
  const globalV6 = ipaddr.IPv6.parseCIDR("2000::/3");
  const excluded = new Set([AZURE_PLATFORM_ADDRESS, ...local].map((text) => ipaddr.parse(text).toString()));
  return addresses.every(({ address: text }) => {
    // A zone id names a local interface. A public address has none.
    if (isIP(text) === 0 || text.includes("%")) return false;
    const address = ipaddr.parse(text);
    const isGlobal = address instanceof ipaddr.IPv4 || address.match(globalV6);
    return isGlobal && address.range() === "unicast" && !excluded.has(address.toString());
  });
}

/**
 * Resolves a name in the public DNS, IPv4 addresses first. Does not use getaddrinfo: a slow name server of a caller would
 * block one of the few threads that all lookups of the process share, and hosts files and search domains would add
 * private names.
 * @returns an empty list when the name has no address or no name server responds
 */
export async function resolveHost(name: string, signal: AbortSignal): Promise<readonly LookupAddress[]> {
  signal.throwIfAborted();
  const resolver = new Resolver({ timeout: DNS_TIMEOUT_MS, tries: DNS_TRIES });
  const cancel = (): void => resolver.cancel();
  signal.addEventListener("abort", cancel);
  try {
    const [v4, v6] = await Promise.all([
      // Many names have addresses of one family only.
      resolver.resolve4(name).catch(() => []),
      resolver.resolve6(name).catch(() => []),
    ]);
    return [...v4.map((address) => ({ address, family: 4 })), ...v6.map((address) => ({ address, family: 6 }))];
  } finally {
    signal.removeEventListener("abort", cancel);
  }
}

/** Returns the rule as callers see it in errors. */
function describePolicy(policy: CustomUrlPolicy, ports: readonly number[]): string {
  if (policy === "off") return "this server does not accept rpcUrl";
  if (policy === "any") return "rpcUrl must be an http or https URL of at most 2048 bytes without user info";
  const port = ports.join(" or ");
  return `rpcUrl must be an https URL of at most 2048 bytes on port ${port} of a public host, without user info`;
}

/**
 * A machine reaches itself at its public addresses too, past the firewall in front of it. Read for every URL because the
 * addresses change.
 */
function listLocalAddresses(): readonly string[] {
  return Object.values(networkInterfaces()).flatMap((all) => (all ?? []).map(({ address }) => address));
}
