import { findFreePort } from "./server-process.js";

/** A process of the service. */
export interface ReplicaProcess {
  readonly metricsUrl: string;
  isRunning(): boolean;
  signal(name: NodeJS.Signals): void;
  /** Exit code; null if a signal ended the process. */
  readonly exitCode: Promise<number | null>;
}

/** Three replicas on fixed ports. */
export interface ReplicaGroup {
  readonly ports: readonly [number, number, number];
  replica(index: number): ReplicaProcess;
  /** Starts a replica that has ended, on its port. */
  start(index: number): Promise<void>;
  /** Ends a replica by a signal. Returns its exit code. */
  end(index: number, signal: NodeJS.Signals): Promise<number | null>;
  kill(): void;
}

/** @param startProcess starts a process of the service that listens on a port */
export async function startReplicaGroup(
  startProcess: (port: number) => Promise<ReplicaProcess>,
): Promise<ReplicaGroup> {
  const ports = [await findFreePort(), await findFreePort(), await findFreePort()] as const;
  const replicas = await Promise.all(ports.map(startProcess));
  const replica = (index: number): ReplicaProcess => {
    const found = replicas[index];
    if (found === undefined) throw new Error(`there is no replica ${index}`);
    return found;
  };
  return {
    ports,
    replica,
    async start(index) {
      replicas[index] = await startProcess(ports[index] ?? 0);
    },
    end(index, signal) {
      replica(index).signal(signal);
      return replica(index).exitCode;
    },
    kill() {
      for (const each of replicas) if (each.isRunning()) each.signal("SIGKILL");
    },
  };
}
