/** The API's default network. Requests and URLs leave it out. */
const DEFAULT_NETWORK = "mainnet";

/** Returns the network that a view's parameters name, or the default. */
export function getNetwork(parameters: ReadonlyMap<string, string>): string {
  return parameters.get("network") || DEFAULT_NETWORK;
}

/** Returns the value of a `network` parameter: empty, and so left out, for the default network. */
export function toNetworkParameter(network: string): string {
  return network === DEFAULT_NETWORK ? "" : network;
}
