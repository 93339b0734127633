import { loadQuorum, selectEndpoints } from "../app/compose-chains.js";
import { StartupError } from "../app/process-lifecycle.js";
import { ChainClients } from "../chain/chains.js";
import { BlockFinder } from "../chain/read/block-finder.js";
import { type Config, ConfigError, loadConfig } from "../config/config.js";
import { getErrorMessage } from "../errors.js";
import { getNetwork } from "../hop/networks.js";
import { monotonicNow, sleep } from "../resilience/clock.js";
import { IndexUnavailableError } from "../transfers/index/database/index-database.js";
import { type IndexLocation, type IndexStart, parseIndexStart } from "../transfers/index/index-options.js";
import { backfillIndex } from "../transfers/index/sync/index-sync.js";
import { openTransferIndex, type TransferIndex } from "../transfers/index/transfer-index.js";
import { ProgressDisplay } from "./backfill-progress.js";
import { UsageError } from "./command-line.js";

const network = getNetwork("mainnet");

function parseFromOption(text: string): IndexStart {
  const from = parseIndexStart(text, new Set(network.chains.keys()), Date.now());
  if (from !== undefined) return from;
  throw new UsageError("--from must be a date (2024-01-01) in the past, blocks of chains (ethereum:19000000), or both");
}

/** @returns whether the backfill is complete */
async function backfillUntilAborted(
  config: Config,
  index: TransferIndex,
  from: IndexStart,
  signal: AbortSignal,
): Promise<boolean> {
  const display = new ProgressDisplay(process.stdout, monotonicNow);
  const chains = new ChainClients({
    networks: { mainnet: selectEndpoints(config, "mainnet") },
    callsPerSecond: config.rpcBudget,
    customUrlPolicy: "off",
    onFailure: () => {},
    createQuorum: await loadQuorum(config, ({ chain, endpoint }, message) =>
      display.printLine(`${chain}: ${endpoint}: ${message}`),
    ),
  });
  const blockTimes = new BlockFinder(monotonicNow);
  try {
    await backfillIndex({
      index,
      network,
      chains: chains.forNetwork("mainnet"),
      blockAt: (...args) => blockTimes.findBlockAt(...args),
      from,
      sleep,
      events: {
        onBackfillProgress: display.update,
        onLeaseHeld: (slug, { pid, host }) => {
          const holder = host === undefined ? `process ${pid}` : `process ${pid} on ${host}`;
          display.printLine(`${slug}: ${holder} is already filling this chain; waiting for it`);
        },
        onError: (slug, error) => display.printLine(`${slug}: ${getErrorMessage(error)}; retrying`),
      },
      signal,
    });
    return !signal.aborted;
  } finally {
    await chains.close();
  }
}

async function fill(config: Config, location: IndexLocation, from: IndexStart, signal: AbortSignal): Promise<boolean> {
  const index = await openTransferIndex(location, network);
  try {
    await index.migrate();
    return await backfillUntilAborted(config, index, from, signal);
  } finally {
    await index.close();
  }
}

/**
 * Fills the index with the past transfers of mainnet's chains until it is complete or a signal interrupts it.
 * @param from start of the index in the format of INDEX_FROM, which is its default
 * @returns the exit code
 */
export async function runBackfill(from: string | undefined, environment: NodeJS.ProcessEnv): Promise<number> {
  const config = loadConfig(environment);
  if (config.index === undefined) throw new ConfigError(["INDEX is not sqlite:<file> or postgres://..."]);
  const start = from === undefined ? config.index.from : parseFromOption(from);
  const interruption = new AbortController();
  for (const name of ["SIGINT", "SIGTERM"]) {
    process.on(name, () => (interruption.signal.aborted ? process.exit(1) : interruption.abort()));
  }
  const isComplete = await fill(config, config.index.location, start, interruption.signal).catch((error: unknown) => {
    throw error instanceof IndexUnavailableError ? new StartupError(error.message) : error;
  });
  process.stdout.write(isComplete ? "the index is complete\n" : "interrupted; start the command again to continue\n");
  return isComplete ? 0 : 1;
}
