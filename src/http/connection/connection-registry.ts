import type { Socket } from "node:net";
import { identifyCaller } from "../request/caller.js";

/** The connections of a server. */
export interface ConnectionRegistry extends Iterable<Socket> {
  /** Takes a new one in. Where all places are taken another one gives way, or it is cut itself: then false. */
  tryAdd(socket: Socket): boolean;
  count(): number;
}

/** Share of the file descriptors that callers may take: upstreams, the index and the log need some too. */
const FILE_DESCRIPTOR_SHARE = 0.8;

/** Connections that are looked at each time to find one that is idle. */
const MAX_EVICTION_SCAN = 64;

/**
 * The most connections that can be had: those that are wanted, as far as the process may open that many files.
 * Asking takes some ten milliseconds.
 */
export function capToFileDescriptorLimit(wanted: number): number {
  // Else it would look for the names of all other ends, which can take long.
  const report = Object.assign(process.report, { excludeNetwork: true });
  const { userLimits } = report.getReport() as { userLimits?: { open_files?: { soft?: unknown } } };
  const files = Number(userLimits?.open_files?.soft);
  return files > 0 ? Math.min(wanted, Math.floor(files * FILE_DESCRIPTOR_SHARE)) : wanted;
}

/**
 * No caller has a limit of its own, since a proxy brings thousands. But when all places are taken, the caller with most
 * connections makes room: by one that is idle, an old one first, or, for a newcomer with less than half as many, by
 * an old one that is not. So nobody keeps others out alone, and a proxy that brings everybody loses no request.
 */
export function createConnectionRegistry(most: number, isIdle: (socket: Socket) => boolean): ConnectionRegistry {
  const callers = new Map<Socket, string>();
  const byCaller = new Map<string, Set<Socket>>();

  /** Whose place a newcomer of a caller with so many connections gets. */
  function findVictim(count: number): Socket | undefined {
    let held = new Set<Socket>();
    for (const sockets of byCaller.values()) if (sockets.size > held.size) held = sockets;
    const [oldest] = held;
    let left = Math.min(held.size, MAX_EVICTION_SCAN);
    for (const socket of held) {
      if (isIdle(socket)) return socket;
      // To the end, so that the next look is at others: these may be busy for hours.
      held.delete(socket);
      held.add(socket);
      left -= 1;
      if (left === 0) break;
    }
    return held.size > 2 * count ? oldest : undefined;
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
      if (callers.size >= most) {
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
    count: () => callers.size,
    [Symbol.iterator]: () => callers.keys(),
  };
}
