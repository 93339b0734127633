import { BlockList, isIP, isIPv6 } from "node:net";

/** IANA's special-purpose registries, multicast, and addresses that are public only by their number. */
const SPECIAL_PURPOSE_BLOCKS = [
  "0.0.0.0/8",
  "10.0.0.0/8",
  "100.64.0.0/10",
  "127.0.0.0/8",
  // Platform services of Azure for its virtual machines.
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
  // Teredo, ORCHID, benchmarking and other protocol assignments.
  "2001::/23",
  "2001:db8::/32",
  // 6to4: embeds an IPv4 address.
  "2002::/16",
  "2620:4f:8000::/48",
  "3fff::/20",
];

/** The only global unicast range of IPv6. IPv4 in IPv6, NAT64, link-local and private ranges are all outside. */
const GLOBAL_UNICAST_V6 = "2000::/3";

/** The lists of the blocks above. Created on first use: few operators admit custom endpoints. */
let lists: { readonly special: BlockList; readonly globalV6: BlockList } | undefined;

/** Returns whether an address is global unicast by its number. */
export function isPublicAddress(address: string): boolean {
  // A zone id names a local interface. A public address has none.
  if (isIP(address) === 0 || address.includes("%")) return false;
  lists ??= { special: createBlockList(SPECIAL_PURPOSE_BLOCKS), globalV6: createBlockList([GLOBAL_UNICAST_V6]) };
  return !containsIpAddress(lists.special, address) && (!isIPv6(address) || containsIpAddress(lists.globalV6, address));
}

export function containsIpAddress(list: BlockList, address: string): boolean {
  return list.check(address, isIPv6(address) ? "ipv6" : "ipv4");
}

export function createIpRangeList(addresses: readonly string[]): BlockList {
  const list = new BlockList();
  for (const address of addresses) list.addAddress(address, isIPv6(address) ? "ipv6" : "ipv4");
  return list;
}

function createBlockList(blocks: readonly string[]): BlockList {
  const list = new BlockList();
  for (const block of blocks) {
    const [net, prefix] = block.split("/") as [string, string];
    list.addSubnet(net, Number(prefix), isIPv6(net) ? "ipv6" : "ipv4");
  }
  return list;
}
