import type { LookupFunction } from "node:net";
import type { buildConnector as BuildConnector } from "undici";
import { buildConnector } from "../../resilience/http-client/undici.js";
import type { ResolvedAddress } from "./resolve-host.js";

export interface LimitedConnectorOptions {
  /** Timeout of a connection attempt, in milliseconds. */
  readonly timeoutMs: number;
  /** The only addresses that may be connected to, by host name; undefined: any. */
  readonly validated: ReadonlyMap<string, readonly ResolvedAddress[]> | undefined;
  /** Waits until a connection may be made and returns the function that releases it. */
  readonly acquire: (hostname: string) => Promise<() => void>;
}

/**
 * Creates a connector that counts a connection from the attempt to its end, also when nobody waits for it any more: only
 * its own timeout ends an attempt.
 */
export function createLimitedConnector({
  timeoutMs,
  validated,
  acquire,
}: LimitedConnectorOptions): BuildConnector.connector {
  const connect = buildConnector({
    timeout: timeoutMs,
    ...(validated && { lookup: createPinnedLookup(validated) }),
  });
  return (options, callback) => {
    const connectWithin = (release: () => void): void =>
      connect(options, (...result) => {
        const [error, socket] = result;
        if (error === null) socket.once("close", release);
        else release();
        callback(...result);
      });
    acquire(options.hostname).then(connectWithin, (error: Error) => callback(error, null));
  };
}

/** Returns the validated addresses, whatever the host name resolves to now. */
function createPinnedLookup(validated: ReadonlyMap<string, readonly ResolvedAddress[]>): LookupFunction {
  return (host, options, callback) => {
    const addresses = validated.get(host) ?? [];
    const [first] = addresses;
    if (first === undefined) return callback(new Error("the host was not validated"), "");
    if (options.all) callback(null, [...addresses]);
    else callback(null, first.address, first.family);
  };
}
