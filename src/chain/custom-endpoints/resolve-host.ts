import { Resolver } from "node:dns/promises";

export interface ResolvedAddress {
  readonly address: string;
  readonly family: number;
}

/** Timeout of the first try in milliseconds. The second try takes twice as long. */
const DNS_TIMEOUT_MS = 700;
const DNS_TRIES = 2;

/**
 * Resolves a name in the public DNS, IPv4 addresses first. Does not use getaddrinfo: a slow name server of a caller would
 * block one of the few threads that all lookups of the process share, and hosts files and search domains would add
 * private names.
 * @returns an empty list when the name has no address or no name server responds
 */
export async function resolveHost(name: string, signal: AbortSignal): Promise<readonly ResolvedAddress[]> {
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
