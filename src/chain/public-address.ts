import { BlockList, isIPv6 } from "node:net";

/** Address blocks of IANA's special-purpose registry and multicast: nothing there is a public server. */
const specialV4 = [
  "0.0.0.0/8",
  "10.0.0.0/8",
  "100.64.0.0/10",
  "127.0.0.0/8",
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
];

/** Blocks inside 2000::/3, the only global unicast range, that are special or carry an IPv4 address inside. */
const specialV6 = ["2001::/23", "2001:db8::/32", "2002::/16", "2620:4f:8000::/48", "3fff::/20"];

const special = blockList([...specialV4, ...specialV6]);
const globalV6 = blockList(["2000::/3"]);

/** Whether an IP address (v4 or v6, no brackets) is global unicast. */
export function isPublicAddress(address: string): boolean {
  if (isIPv6(address)) return globalV6.check(address, "ipv6") && !special.check(address, "ipv6");
  return !special.check(address, "ipv4");
}

function blockList(blocks: readonly string[]): BlockList {
  const list = new BlockList();
  for (const block of blocks) {
    const [net, prefix] = block.split("/") as [string, string];
    list.addSubnet(net, Number(prefix), isIPv6(net) ? "ipv6" : "ipv4");
  }
  return list;
}
