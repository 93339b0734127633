import { isIP } from "node:net";
import { networkInterfaces } from "node:os";
import { ServiceError } from "../../errors.js";
import { createAbortScope } from "../../resilience/abort-scope.js";
import { parseUrl } from "../parse-url.js";
import { type ResolvedAddress, resolveHost } from "./resolve-host.js";
import { containsIpAddress, createIpRangeList, isPublicAddress } from "./special-purpose-addresses.js";

/** What `rpcUrl[...]` may name: public addresses only, any address (for development), or nothing. */
export type CustomUrlPolicy = "public" | "any" | "off";

/** Allowed ports of a public endpoint, unless the operator configures others. */
export const DEFAULT_CUSTOM_URL_PORTS: readonly number[] = [443, 8545];

export interface SsrfGuardOptions {
  readonly policy: CustomUrlPolicy;
  /** Allowed ports of a public URL. */
  readonly allowedPorts?: readonly number[];
  /** Returns all addresses of a host name. */
  readonly resolveHost?: (host: string, signal: AbortSignal) => Promise<readonly ResolvedAddress[]>;
  /** Returns the addresses of this machine. */
  readonly listLocalAddresses?: () => readonly string[];
}

/** A URL that may be connected to. */
export interface AllowedUrl {
  readonly href: string;
  /** The only addresses that may be connected to; undefined: any. */
  readonly addresses: readonly ResolvedAddress[] | undefined;
}

/**
 * Validates a URL that a caller names, and resolves its host once.
 * @param field the request parameter that holds the URL
 * @param timeoutMs timeout of the DNS lookup, in milliseconds
 * @throws ServiceError RPC_URL_FORBIDDEN with the rule, but not with the part of it that was violated: callers must not be
 * able to scan a network. A name that does not resolve in time is rejected with the same message.
 */
export type SsrfGuard = (url: string, field: string, timeoutMs: number, signal: AbortSignal) => Promise<AllowedUrl>;

const MAX_URL_LENGTH = 2048;

/** Fully qualified names of letters, digits and hyphens, as public servers have: at least one dot, none at the end. */
const FULLY_QUALIFIED_NAME =
  /^(?=.{1,253}$)(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z](?:[a-z0-9-]{0,61}[a-z0-9])$/;

/** Last labels reserved, by registry or by convention, for private use, for tests or for other naming systems. */
const PRIVATE_TOP_LEVEL_LABELS = new Set(
  "alt arpa corp example home internal intranet invalid lan local localdomain localhost onion private test".split(" "),
);

export function createSsrfGuard(options: SsrfGuardOptions): SsrfGuard {
  const {
    policy,
    allowedPorts = DEFAULT_CUSTOM_URL_PORTS,
    resolveHost: resolve = resolveHost,
    listLocalAddresses: listOwnAddresses = listLocalAddresses,
  } = options;
  const rule = describePolicy(policy, allowedPorts);

  /** Returns the addresses of a URL's host if all of them are public; otherwise none. */
  async function resolvePublicAddresses(
    host: string,
    timeoutMs: number,
    signal: AbortSignal,
  ): Promise<readonly ResolvedAddress[]> {
    const bareHost = host.replace(/^\[|\]$/g, "");
    const family = isIP(bareHost);
    const addresses = family !== 0 ? [{ address: bareHost, family }] : await resolveName(bareHost, timeoutMs, signal);
    const ownAddresses = createIpRangeList(listOwnAddresses());
    return addresses.every(({ address }) => isPublicAddress(address) && !containsIpAddress(ownAddresses, address))
      ? addresses
      : [];
  }

  async function resolveName(
    name: string,
    timeoutMs: number,
    signal: AbortSignal,
  ): Promise<readonly ResolvedAddress[]> {
    const lastLabel = name.slice(name.lastIndexOf(".") + 1);
    if (!FULLY_QUALIFIED_NAME.test(name) || PRIVATE_TOP_LEVEL_LABELS.has(lastLabel)) return [];
    const scope = createAbortScope(signal, timeoutMs);
    try {
      return await resolve(name, scope.signal);
    } catch {
      return [];
    } finally {
      scope.cancel();
    }
  }

  return async (url, field, timeoutMs, signal) => {
    const forbidden = (): ServiceError => new ServiceError("RPC_URL_FORBIDDEN", rule, { field });
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
    const addresses = await resolvePublicAddresses(hostname, timeoutMs, signal);
    if (addresses.length === 0) throw forbidden();
    return { href, addresses };
  };
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
