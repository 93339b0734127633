import { BlockList, isIP, isIPv6 } from "node:net";
import { networkInterfaces } from "node:os";
import { ServiceError } from "../../errors.js";
import { createAbortScope } from "../../resilience/abort-scope.js";
import { type ResolvedAddress, resolveHost } from "./resolve-host.js";

/** What `rpcUrl[...]` may name: public addresses only, anything (development), or nothing. */
export type CustomUrlPolicy = "public" | "any" | "off";

/** Ports of a public endpoint, unless the operator lists others. */
export const DEFAULT_CUSTOM_URL_PORTS: readonly number[] = [443, 8545];

export interface SsrfGuardOptions {
  readonly policy: CustomUrlPolicy;
  /** Ports that a public URL may name. */
  readonly allowedPorts?: readonly number[];
  /** All addresses of a host name. */
  readonly resolveHost?: (host: string, signal: AbortSignal) => Promise<readonly ResolvedAddress[]>;
  /** The addresses of this machine. */
  readonly listLocalAddresses?: () => readonly string[];
}

/** A URL that may be connected to. */
export interface AllowedUrl {
  readonly href: string;
  /** Where exactly it may be connected to; undefined: anywhere. */
  readonly addresses: readonly ResolvedAddress[] | undefined;
}

/**
 * Checks a URL that a caller names, and resolves its host once.
 * @param field the parameter that holds it
 * @param timeoutMs longest time for the look-up of its host, in milliseconds
 * @throws ServiceError RPC_URL_FORBIDDEN with the rule, and no word about which part of it was broken: nobody may scan a
 * network by asking. A name that does not resolve here, or not in time, is refused with the same text.
 */
export type SsrfGuard = (text: string, field: string, timeoutMs: number, signal: AbortSignal) => Promise<AllowedUrl>;

const MAX_URL_LENGTH = 2048;

/** Only full names of letters, digits and hyphens, as public servers have them: at least one dot, none at the end. */
const FULLY_QUALIFIED_NAME =
  /^(?=.{1,253}$)(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z](?:[a-z0-9-]{0,61}[a-z0-9])$/;

/** Last labels that are kept for private use, for tests or for other systems of names, by registry or by habit. */
const PRIVATE_TOP_LEVEL_LABELS = new Set(
  "alt arpa corp example home internal intranet invalid lan local localdomain localhost onion private test".split(" "),
);

/** IANA's special-purpose blocks, multicast, and what is public by its number alone. */
const specialPurposeBlocks = parseBlockList([
  "0.0.0.0/8",
  "10.0.0.0/8",
  "100.64.0.0/10",
  "127.0.0.0/8",
  // Services of a well-known cloud for its own machines.
  "168.63.129.16/32",
  "169.254.0.0/16",
  "172.16.0.0/12",
  "192.0.0.0/24",
  "192.0.2.0/24",
  "192.31.196.0/24",
  "192.52.193.0/24",
  "192.88.99.0/24",
  "192.168.0.0/16",
  "192.175.48.0/24",
  "198.18.0.0/15",
  "198.51.100.0/24",
  "203.0.113.0/24",
  "224.0.0.0/4",
  "240.0.0.0/4",
  // Teredo, ORCHID, benchmarking and all else that protocols have for themselves.
  "2001::/23",
  "2001:db8::/32",
  // 6to4: an IPv4 address inside.
  "2002::/16",
  "2620:4f:8000::/48",
  "3fff::/20",
]);

/** The only global unicast range of IPv6: IPv4 inside IPv6, NAT64, link-local and private ranges all are outside. */
const globalUnicastV6 = parseBlockList(["2000::/3"]);

export function createSsrfGuard(options: SsrfGuardOptions): SsrfGuard {
  const {
    policy,
    allowedPorts = DEFAULT_CUSTOM_URL_PORTS,
    resolveHost: resolve = resolveHost,
    listLocalAddresses: ownAddresses = listLocalAddresses,
  } = options;
  const rule = describePolicy(policy, allowedPorts);

  /** The addresses of a host of a parsed URL, if all of them are public; else none. */
  async function publicAddresses(
    host: string,
    timeoutMs: number,
    signal: AbortSignal,
  ): Promise<readonly ResolvedAddress[]> {
    const bare = host.replace(/^\[|\]$/g, "");
    const family = isIP(bare);
    const addresses = family !== 0 ? [{ address: bare, family }] : await resolved(bare, timeoutMs, signal);
    const own = createAddressList(ownAddresses());
    return addresses.every(({ address }) => isPublicAddress(address) && !containsAddress(own, address))
      ? addresses
      : [];
  }

  async function resolved(name: string, timeoutMs: number, signal: AbortSignal): Promise<readonly ResolvedAddress[]> {
    const lastLabel = name.slice(name.lastIndexOf(".") + 1);
    if (!FULLY_QUALIFIED_NAME.test(name) || PRIVATE_TOP_LEVEL_LABELS.has(lastLabel)) return [];
    const limit = createAbortScope(signal, timeoutMs);
    try {
      return await resolve(name, limit.signal);
    } catch {
      return [];
    } finally {
      limit.cancel();
    }
  }

  return async (text, field, timeoutMs, signal) => {
    const forbidden = (): ServiceError => new ServiceError("RPC_URL_FORBIDDEN", rule, { field });
    if (policy === "off" || text.length > MAX_URL_LENGTH || !URL.canParse(text)) throw forbidden();
    // From here on only what the parser made of it counts: it knows every spelling of an address.
    const { href, protocol, username, password, port, hostname } = new URL(text);
    if (href.length > MAX_URL_LENGTH || username !== "" || password !== "") throw forbidden();
    if (policy === "any") {
      if (protocol !== "https:" && protocol !== "http:") throw forbidden();
      return { href, addresses: undefined };
    }
    // The default port of a protocol has the empty name.
    if (protocol !== "https:" || !allowedPorts.includes(port === "" ? 443 : Number(port))) throw forbidden();
    const addresses = await publicAddresses(hostname, timeoutMs, signal);
    if (addresses.length === 0) throw forbidden();
    return { href, addresses };
  };
}

/** What callers are told. */
function describePolicy(policy: CustomUrlPolicy, ports: readonly number[]): string {
  if (policy === "off") return "this server takes no rpcUrl";
  if (policy === "any") return "rpcUrl must be an http or https URL of at most 2048 bytes without user info";
  const port = ports.join(" or ");
  return `rpcUrl must be an https URL of at most 2048 bytes on port ${port} of a public host, without user info`;
}

/** Whether an address is global unicast, as far as numbers tell. */
function isPublicAddress(address: string): boolean {
  // A zone says by which wire, which is nothing that a public address needs.
  if (isIP(address) === 0 || address.includes("%")) return false;
  return (
    !containsAddress(specialPurposeBlocks, address) && (!isIPv6(address) || containsAddress(globalUnicastV6, address))
  );
}

function containsAddress(list: BlockList, address: string): boolean {
  return list.check(address, isIPv6(address) ? "ipv6" : "ipv4");
}

function parseBlockList(blocks: readonly string[]): BlockList {
  const list = new BlockList();
  for (const block of blocks) {
    const [net, prefix] = block.split("/") as [string, string];
    list.addSubnet(net, Number(prefix), isIPv6(net) ? "ipv6" : "ipv4");
  }
  return list;
}

function createAddressList(addresses: readonly string[]): BlockList {
  const list = new BlockList();
  for (const address of addresses) list.addAddress(address, isIPv6(address) ? "ipv6" : "ipv4");
  return list;
}

/** To itself a machine answers at its public addresses too, past the firewall in front of it. Read anew: they change. */
function listLocalAddresses(): readonly string[] {
  return Object.values(networkInterfaces()).flatMap((all) => (all ?? []).map(({ address }) => address));
}
