import { readFileSync } from "node:fs";
import type { Socket } from "node:net";
import { identifyCaller } from "../request/caller.js";

/** The accepted connections of a server. */
export interface ConnectionRegistry extends Iterable<Socket> {
  /** The connections with the identities of their callers. */
  readonly callers: ReadonlyMap<Socket, string>;
  /**
   * Adds a connection. If the registry is full, it closes another connection to make room, or else this one and returns
   * false.
   */
  tryAdd(socket: Socket): boolean;
  count(): number;
}

/** Share of the file descriptors for callers: upstreams, the index and the log need some too. */
const FILE_DESCRIPTOR_SHARE = 0.8;

/** Most connections to check for an idle one per eviction. */
const MAX_EVICTION_SCAN = 64;

/** Caps a number of connections to what the limit of open files of the process allows. */
export function capToFileDescriptorLimit(requested: number): number {
  const openFiles = readFileLimit();
  return openFiles > 0 ? Math.min(requested, Math.floor(openFiles * FILE_DESCRIPTOR_SHARE)) : requested;
}

/** Returns the soft limit of open files of the process; not a positive number: there is none, or it is unknown. */
function readFileLimit(): number {
  try {
    return Number(/^Max open files +(\d+)/m.exec(readFileSync("/proc/self/limits", "utf8"))?.[1]);
  } catch {
    // Not Linux. The report takes ten milliseconds; without this, it would also resolve the host names of all peers.
    const report = Object.assign(process.report, { excludeNetwork: true });
    const { userLimits } = report.getReport() as { userLimits?: { open_files?: { soft?: unknown } } };
    return Number(userLimits?.open_files?.soft);
  }
}

/**
 * Creates a registry of at most `maxConnections` connections.
 *
 * There is no limit per caller, since a proxy opens thousands of connections. When the registry is full, the caller
 * with the most connections loses one: an idle one, oldest first, or, for a newcomer with fewer than half as many, its
 * oldest busy one. So one caller cannot keep others out, and a proxy that serves everybody loses no request.
 */
export function createConnectionRegistry(
  maxConnections: number,
  isIdle: (socket: Socket) => boolean,
): ConnectionRegistry {
  const callers = new Map<Socket, string>();
  const byCaller = new Map<string, Set<Socket>>();

  /** Returns the connection to evict for a newcomer whose caller has `count` connections. */
  function findVictim(count: number): Socket | undefined {
    let candidates = new Set<Socket>();
    for (const sockets of byCaller.values()) if (sockets.size > candidates.size) candidates = sockets;
    const [oldest] = candidates;
    let remaining = Math.min(candidates.size, MAX_EVICTION_SCAN);
    for (const socket of candidates) {
      if (isIdle(socket)) return socket;
      // Moved to the end, so that the next scan starts with others: these may be busy for hours.
      candidates.delete(socket);
      candidates.add(socket);
      remaining -= 1;
      if (remaining === 0) break;
    }
    return candidates.size > 2 * count ? oldest : undefined;
  }

  function forget(socket: Socket): void {
    const caller = callers.get(socket);
    if (caller === undefined) return;
    callers.delete(socket);
    const sockets = byCaller.get(caller);
    sockets?.delete(socket);
    if (sockets?.size === 0) byCaller.delete(caller);
  }

  return {
    tryAdd(socket) {
      const caller = identifyCaller(socket.remoteAddress, undefined);
      if (callers.size >= maxConnections) {
        const victim = findVictim(byCaller.get(caller)?.size ?? 0) ?? socket;
        forget(victim);
        victim.destroy();
        if (victim === socket) return false;
      }
      callers.set(socket, caller);
      byCaller.set(caller, (byCaller.get(caller) ?? new Set()).add(socket));
      socket.once("close", () => forget(socket));
      return true;
    },
    callers,
    count: () => callers.size,
    [Symbol.iterator]: () => callers.keys(),
  };
}
