import { isIPv4, isIPv6 } from "node:net";

/**
 * By what callers are told apart: an IPv4 address, or the /64 of an IPv6 address, all of which one caller owns.
 * @param address of the connection's other end
 * @param forwardedFor X-Forwarded-For as it came, where the proxy that sets it is trusted. Its last entry is the address
 * that this proxy itself saw; those before it are hearsay. One that is no address is as good as none.
 */
export function identifyCaller(address: string | undefined, forwardedFor: string | undefined): string {
  const forwarded = forwardedFor === undefined ? undefined : toNetworkPrefix(parseLastEntry(forwardedFor));
  return forwarded ?? toNetworkPrefix(address ?? "") ?? "";
}

/** The last of a list's entries, without the port and the brackets that some proxies write. */
function parseLastEntry(list: string): string {
  const entry = list.slice(list.lastIndexOf(",") + 1).trim();
  const [, inBrackets, beforePort] = /^(?:\[([^\]]*)\](?::\d+)?|([^:]*):\d+)$/.exec(entry) ?? [];
  return inBrackets ?? beforePort ?? entry;
}

/** Undefined where the text is no address. */
function toNetworkPrefix(address: string): string | undefined {
  if (isIPv4(address)) return address;
  if (!isIPv6(address)) return undefined;
  const groups = parseIpv6Groups(address);
  const [, , , , , sixth, high = 0, low = 0] = groups;
  // An IPv4 address as sockets of both families give it.
  if (sixth === 0xffff && groups.slice(0, 5).every((group) => group === 0)) {
    return [high >> 8, high & 255, low >> 8, low & 255].join(".");
  }
  const network = groups.slice(0, 4).map((group) => group.toString(16));
  return `${network.join(":")}::/64`;
}

/** The eight groups of a valid IPv6 address. */
function parseIpv6Groups(address: string): number[] {
  const [plain = ""] = address.split("%");
  const [left = [], right = []] = plain
    .split("::")
    .map((half) => (half === "" ? [] : half.split(":").flatMap(parseIpv6Group)));
  return [...left, ...Array<number>(8 - left.length - right.length).fill(0), ...right];
}

/** A group's value; an IPv4 address at the end stands for two. */
function parseIpv6Group(text: string): number[] {
  if (!text.includes(".")) return [Number.parseInt(text, 16)];
  const [a = 0, b = 0, c = 0, d = 0] = text.split(".").map(Number);
  return [a * 256 + b, c * 256 + d];
}
