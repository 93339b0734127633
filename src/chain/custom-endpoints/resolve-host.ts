import { Resolver } from "node:dns/promises";

export interface ResolvedAddress {
  readonly address: string;
  readonly family: number;
}

/** Patience with a name server for one try, in milliseconds; the second takes twice as long. */
const DNS_TIMEOUT_MS = 700;
const DNS_TRIES = 2;

/**
 * The addresses that the public DNS has for a name, IPv4 first. Not by the system's look-up: that keeps one of the few
 * threads which all look-ups of the process share for as long as a caller's name server likes, and it adds what hosts
 * files and search domains know of private names.
 * @returns none when the name has none, or nobody answers for it
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
