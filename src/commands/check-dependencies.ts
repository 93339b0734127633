import { access, constants } from "node:fs/promises";
import { dirname } from "node:path";
import { selectEndpoints } from "../app/compose-chains.js";
import { OffChainSources } from "../app/off-chain-sources.js";
import { ChainClients } from "../chain/chains.js";
import { MAX_SECONDS_AHEAD } from "../chain/heads/head-tracker.js";
import type { Config } from "../config/config.js";
import { getErrorMessage } from "../errors.js";
import { ExplorerClient } from "../hop/explorer-client.js";
import { getNetwork, type NetworkSlug } from "../hop/networks.js";
import { readFileLimit } from "../http/connection/http-limits.js";
import { createLogger } from "../observability/log.js";
import { withTimeoutOrFallback } from "../resilience/abort-scope.js";
import { monotonicNow } from "../resilience/clock.js";
import { describeUpstreamFailure } from "../resilience/http-client/upstream-error.js";
import { RedisStore } from "../shared-state/redis-store.js";
import { openTransferIndex } from "../transfers/index/transfer-index.js";
import type { CheckedChain, DependencyReport } from "./check-table.js";

/** Connections, each of a caller or of a watch, take a file each. */
const MIN_OPEN_FILES = 10_000;
const NO_ANSWER = "did not answer in time";

/** Checks what the service uses besides the RPC endpoints, all at the same time. */
export async function checkDependencies(
  config: Config,
  network: NetworkSlug,
  timeoutMs: number,
): Promise<readonly DependencyReport[]> {
  const reports = await Promise.all([
    checkSources(config, network, timeoutMs),
    checkExplorer(config, timeoutMs),
    checkIndex(config, timeoutMs),
    checkRedis(config, timeoutMs),
  ]);
  return [...reports.flat(), checkOpenFiles()];
}

async function checkSources(config: Config, network: NetworkSlug, timeoutMs: number): Promise<DependencyReport[]> {
  const chains = new ChainClients({
    networks: { mainnet: selectEndpoints(config, "mainnet") },
    customUrlPolicy: "off",
    onFailure: () => {},
  });
  const clocks = { now: Date.now, monotonicNow };
  const logger = createLogger("silent");
  const sources = new OffChainSources({ config, chains, logger, clocks, sharedCache: undefined });
  try {
    const [attestations] = await Promise.all([
      checkAttestations(sources.attestations, timeoutMs),
      withTimeoutOrFallback(sources.loadAll(), timeoutMs, undefined),
    ]);
    const remedies = new Map([
      [`settings_${network}`, "ASSETS_URL=off"],
      ["prices", "PRICE_SOURCES=chainlink"],
    ]);
    const { attestations: _, ...health } = sources.health();
    const relevant = Object.entries(health).filter(
      ([name]) => !name.startsWith("settings_") || name === `settings_${network}`,
    );
    const reports = relevant.map(([name, document]): DependencyReport => {
      if (document === undefined) return { name, state: "off" };
      if (document.state === "ok") return { name, state: "ok" };
      const detail = document.failure ?? (document.state === "unknown" ? NO_ANSWER : "invalid or too old");
      const remedy = remedies.get(name);
      return { name, state: "failing", detail, isNeeded: name.startsWith("settings_"), ...(remedy && { remedy }) };
    });
    return [...reports, attestations];
  } finally {
    await Promise.all([sources.close(), chains.close()]);
  }
}

async function checkAttestations(
  attestations: OffChainSources["attestations"],
  timeoutMs: number,
): Promise<DependencyReport> {
  const name = "attestations";
  if (attestations === undefined) return { name, state: "off" };
  const report = await attempt(name, timeoutMs, () => attestations.check());
  return report.state === "ok" ? report : { ...report, remedy: "ATTESTATION_API_URL=off" };
}

/** Returns the report of something that works if `use` resolves in time. */
async function attempt(name: string, timeoutMs: number, use: () => Promise<unknown>): Promise<DependencyReport> {
  const failure = use().then(
    () => undefined,
    (error: unknown) => describeUpstreamFailure(error) ?? getErrorMessage(error),
  );
  const detail = await withTimeoutOrFallback<string | undefined>(failure, timeoutMs, NO_ANSWER);
  return detail === undefined ? { name, state: "ok" } : { name, state: "failing", detail };
}

async function checkExplorer({ explorerApiUrl }: Config, timeoutMs: number): Promise<DependencyReport> {
  const name = "explorer";
  if (explorerApiUrl === undefined) return { name, state: "off" };
  const explorer = new ExplorerClient(explorerApiUrl, monotonicNow);
  const { signal } = new AbortController();
  const find = () => explorer.findTransfers(`0x${"0".repeat(64)}`, signal);
  const report = await attempt(name, timeoutMs, find).finally(() => explorer.close());
  return report.state === "ok" ? report : { ...report, remedy: "EXPLORER_API_URL=off" };
}

/** Creates no file and no table: the service does that at its start. */
async function checkIndex({ index }: Config, timeoutMs: number): Promise<DependencyReport> {
  const name = "index";
  if (index === undefined) return { name, state: "off" };
  const { location } = index;
  const report = await attempt(name, timeoutMs, async () => {
    if (location.kind === "sqlite") {
      await access(dirname(location.file), constants.W_OK).catch(() => {
        throw new Error("its folder is not there, or may not be written to");
      });
      return;
    }
    const opened = await openTransferIndex(location, getNetwork("mainnet"));
    await opened.database.snapshot(async () => {}).finally(() => opened.close());
  });
  return { ...report, isNeeded: true };
}

async function checkRedis({ sharedStateUrl: url }: Config, timeoutMs: number): Promise<DependencyReport> {
  const name = "Redis";
  if (url === undefined) return { name, state: "off" };
  let close = (): void => {};
  const connect = () =>
    new Promise<void>((resolve, reject) => {
      const store = new RedisStore({
        url,
        prefix: "hop-gateway:check:",
        random: Math.random,
        onStateChange: (isConnected, reason) => (isConnected ? resolve() : reject(new Error(reason))),
      });
      close = () => store.close();
    });
  return attempt(name, timeoutMs, connect).finally(() => close());
}

function checkOpenFiles(): DependencyReport {
  const name = "open files";
  const limit = readFileLimit();
  if (!(limit > 0 && limit < MIN_OPEN_FILES)) return { name, state: "ok" };
  return {
    name,
    state: "failing",
    detail: `at most ${limit}: many callers at once need more`,
    remedy: "ulimit -n 65536",
  };
}

/** Compares the clock of this machine with the newest block of every chain. */
export function checkClock(
  chains: readonly CheckedChain[],
  { maxBlockAgeMs }: Pick<Config, "maxBlockAgeMs">,
): DependencyReport {
  const name = "clock";
  // Blocks of any age are right there.
  if (maxBlockAgeMs === 0) return { name, state: "off" };
  const youngest = chains.flatMap(({ endpoints }) => {
    const ages = endpoints.flatMap(({ report: { head } }) => head?.ageSeconds ?? []);
    return ages.length === 0 ? [] : [Math.min(...ages)];
  });
  const lowest = Math.min(...youngest);
  if (youngest.length < 2) return { name, state: "off", detail: "too few chains to compare it with" };
  if (lowest < -MAX_SECONDS_AHEAD) {
    return { name, state: "failing", detail: `it is slow: a block is ${Math.round(-lowest)} s in the future` };
  }
  if (lowest <= MAX_SECONDS_AHEAD) return { name, state: "ok" };
  return { name, state: "failing", detail: `it may be fast: the newest of all blocks is ${Math.round(lowest)} s old` };
}
