import { StartupError } from "../app/startup-error.js";
import { createChains } from "../chain/chains.js";
import { createBlockFinder } from "../chain/read/block-finder.js";
import { type Config, ConfigError, loadConfig } from "../config/config.js";
import { getErrorMessage } from "../errors.js";
import { getNetwork } from "../hop/networks.js";
import { monotonicNow, sleep } from "../resilience/clock.js";
import { type IndexStart, parseIndexStart } from "../transfers/index/index-options.js";
import { openIndex } from "../transfers/index/store/open-index.js";
import { IndexUnavailableError } from "../transfers/index/store/sqlite.js";
import { backfillIndex } from "../transfers/index/sync/index-sync.js";
import { createProgressDisplay } from "./backfill-progress.js";
import { UsageError } from "./command-line.js";

const network = getNetwork("mainnet");

function parseFromOption(text: string): IndexStart {
  const from = parseIndexStart(text, new Set(network.chains.keys()), Date.now());
  if (from !== undefined) return from;
  throw new UsageError("--from is neither a date (2024-01-01) in the past nor blocks of chains (ethereum:19000000)");
}

/** @returns whether all of it is there */
async function backfillUntilAborted(
  { rpcUrls }: Config,
  file: string,
  from: IndexStart,
  signal: AbortSignal,
): Promise<boolean> {
  const index = await openIndex(file, network);
  const endpoints = [...network.chains].map(
    ([slug, { chainId }]) => [slug, { chainId, urls: rpcUrls.mainnet.get(slug) ?? [] }] as const,
  );
  const chains = createChains({
    networks: { mainnet: new Map(endpoints) },
    customUrlPolicy: "off",
    onFailure: () => {},
  });
  const display = createProgressDisplay({ output: process.stdout, now: monotonicNow });
  try {
    await backfillIndex({
      index,
      network,
      chains: chains.forNetwork("mainnet"),
      blockAt: createBlockFinder({ now: monotonicNow }).findBlockAt,
      from,
      sleep,
      pid: process.pid,
      events: {
        onBackfillProgress: display.update,
        onLeaseHeld: (slug, { pid }) =>
          display.printLine(`${slug}: process ${pid} fills this part already: waiting for it to end`),
        onError: (slug, error) => display.printLine(`${slug}: ${getErrorMessage(error)}; trying again`),
      },
      signal,
    });
    return !signal.aborted;
  } finally {
    display.stop();
    await chains.close();
    index.close();
  }
}

/**
 * Fills the index with the past of mainnet's chains, until that is there or a signal ends it.
 * @param from where it begins, as in INDEX_FROM; undefined: what that says
 * @returns the exit code
 */
export async function runBackfill(from: string | undefined, environment: NodeJS.ProcessEnv): Promise<number> {
  const config = loadConfig(environment);
  if (config.index === undefined) throw new ConfigError(["INDEX names no file: sqlite:<file>"]);
  const begin = from === undefined ? config.index.from : parseFromOption(from);
  const stopping = new AbortController();
  for (const name of ["SIGINT", "SIGTERM"]) {
    process.on(name, () => (stopping.signal.aborted ? process.exit(1) : stopping.abort()));
  }
  const isWhole = await backfillUntilAborted(config, config.index.file, begin, stopping.signal).catch(
    (error: unknown) => {
      throw error instanceof IndexUnavailableError ? new StartupError(error.message) : error;
    },
  );
  process.stdout.write(isWhole ? "the history is there\n" : "ended before its time: start it again to go on\n");
  return isWhole ? 0 : 1;
}
