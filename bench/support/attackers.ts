import { createServer } from "node:http";
import { setPriority } from "node:os";
import { type ChainBehaviour, startAttackedChains } from "../../test/support/attacks/attacked-chains.js";
import { hostileAddress } from "../../test/support/attacks/caller-addresses.js";
import {
  type MemoryAttack,
  type MemoryAttackOptions,
  type MemoryAttackTarget,
  startMemoryAttack,
} from "../../test/support/attacks/memory-attacks.js";
import { sendGet } from "../../test/support/attacks/send-get.js";
import { type BatchAttack, startBatchAttack } from "./attacks/batch-attacks.js";
import { listenOnFreePort } from "./recorded-server.js";
import type { ServerProcess } from "./server-process.js";

// Attackers and chains in processes of their own, so that they do not delay those who measure.

/** Below that of the service and of those who measure, which real attackers would not delay. */
const ATTACKER_PRIORITY = 10;
const LOOKUP_WORKERS = 8;
const LOOKUP_PAUSE_MS = 20;

export interface AttackerInput {
  readonly target: MemoryAttackTarget;
  readonly attacks: readonly MemoryAttack[];
  readonly options: MemoryAttackOptions;
  readonly batches?: BatchAttack;
}

/** State of the floods of an attacker's process. */
export interface AttackerState {
  readonly connections: number;
  readonly requests: number;
  readonly sent: number;
}

/** Runs floods until the process is killed. Returns the URL of their state. */
export async function serveAttacker({ target, attacks, options, batches }: AttackerInput): Promise<string> {
  setPriority(ATTACKER_PRIORITY);
  const floods = attacks.map((name) => startMemoryAttack(name, target, options));
  if (batches !== undefined)
    floods.push(startBatchAttack(batches, { port: target.port, callers: options.callers ?? 1 }));
  const server = createServer((_request, response) => {
    const sum = (count: (flood: (typeof floods)[number]) => number): number =>
      floods.reduce((total, flood) => total + count(flood), 0);
    const state: AttackerState = {
      connections: sum((flood) => flood.openConnections()),
      requests: sum((flood) => flood.openRequests()),
      sent: sum((flood) => flood.sentRequests()),
    };
    response.end(JSON.stringify(state));
  });
  return listenOnFreePort(server);
}

export async function readAttacker(attacker: ServerProcess): Promise<AttackerState> {
  return (await fetchJson(attacker)) as AttackerState;
}

/** Looks up unknown transfers, by ID and over endpoints of their own, as fast as they are answered, from many addresses. */
export function startHostileLookups(port: number, endpoints: Readonly<Record<string, string>>) {
  let [isOver, count] = [false, 0];
  const optimism = encodeURIComponent(endpoints.RPC_URL_OPTIMISM ?? "");
  const run = async (worker: number): Promise<void> => {
    for (; !isOver; count += 1) {
      const hash = `0x${(count + 2 ** 40 * worker).toString(16).padStart(64, "b")}`;
      const query = worker % 2 === 0 ? `transferId=${hash}` : `transactionHash=${hash}&rpcUrl[optimism]=${optimism}`;
      await sendGet(port, `/v1/transfer-status?${query}`, hostileAddress(worker));
      await new Promise((resolve) => setTimeout(resolve, LOOKUP_PAUSE_MS));
    }
  };
  const workers = Promise.all(Array.from({ length: LOOKUP_WORKERS }, (_, worker) => run(worker)));
  return {
    count: () => count,
    async stop() {
      isOver = true;
      await workers;
    },
  };
}

/** Serves chains in a process of their own. Returns the URL of the environment that configures a service for them. */
export async function serveChains(behaviour: Partial<ChainBehaviour>): Promise<string> {
  const { environment } = await startAttackedChains(behaviour);
  return listenOnFreePort(createServer((_request, response) => void response.end(JSON.stringify(environment))));
}

export async function fetchEnvironment(chains: ServerProcess): Promise<Readonly<Record<string, string>>> {
  return (await fetchJson(chains)) as Record<string, string>;
}

export async function fetchJson({ url }: ServerProcess): Promise<unknown> {
  return JSON.parse((await sendGet(Number(new URL(url).port), "/")).body);
}
