import { isIPv4, isIPv6 } from "node:net";

/**
 * Identifies the caller of a connection: by an IPv4 address, or by the /64 prefix of an IPv6 address, since one caller
 * owns all addresses below it.
 * @param address address of the peer
 * @param forwardedFor value of X-Forwarded-For if a trusted proxy sets it. Only the last entry is used: the proxy
 * itself added it, whereas a caller can forge the entries before. Ignored if it is not an address.
 */
export function identifyCaller(address: string | undefined, forwardedFor: string | undefined): string {
  const forwarded = forwardedFor === undefined ? undefined : toNetworkPrefix(parseLastEntry(forwardedFor));
  return forwarded ?? toNetworkPrefix(address ?? "") ?? "";
}

/** Returns the last entry of the list, without the port and the brackets that some proxies write. */
function parseLastEntry(list: string): string {
  const entry = list.slice(list.lastIndexOf(",") + 1).trim();
  const [, inBrackets, beforePort] = /^(?:\[([^\]]*)\](?::\d+)?|([^:]*):\d+)$/.exec(entry) ?? [];
  return inBrackets ?? beforePort ?? entry;
}

/** Returns undefined if the text is not an address. */
function toNetworkPrefix(address: string): string | undefined {
  if (isIPv4(address)) return address;
  if (!isIPv6(address)) return undefined;
  const groups = parseIpv6Groups(address);
  const [, , , , , sixth, high = 0, low = 0] = groups;
  // IPv4-mapped IPv6 addresses (RFC 4291 2.5.5.2), as dual-stack sockets report them.
  if (sixth === 0xffff && groups.slice(0, 5).every((group) => group === 0)) {
    return [high >> 8, high & 255, low >> 8, low & 255].join(".");
  }
  const network = groups.slice(0, 4).map((group) => group.toString(16));
  return `${network.join(":")}::/64`;
}

/** Parses the eight groups of a valid IPv6 address. */
function parseIpv6Groups(address: string): number[] {
  const [plain = ""] = address.split("%");
  const [left = [], right = []] = plain
    .split("::")
    .map((half) => (half === "" ? [] : half.split(":").flatMap(parseIpv6Group)));
  return [...left, ...Array<number>(8 - left.length - right.length).fill(0), ...right];
}

/** Parses one group. A trailing IPv4 address counts as two. */
function parseIpv6Group(text: string): number[] {
  if (!text.includes(".")) return [Number.parseInt(text, 16)];
  const [a = 0, b = 0, c = 0, d = 0] = text.split(".").map(Number);
  return [a * 256 + b, c * 256 + d];
}
