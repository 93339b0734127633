#!/usr/bin/env node
import { parseArgs } from "node:util";
import { createBlockTimes } from "./chain/block-times.js";
import { createChains } from "./chain/chains.js";
import { pause, steadyNow } from "./clock.js";
import { type Config, ConfigError, loadConfig } from "./config.js";
import { messageOf } from "./errors.js";
import { createProgressDisplay } from "./history-progress.js";
import { networkOf } from "./hop/networks.js";
import { describeFailure, StartFailure } from "./start-failure.js";
import { fillIndex } from "./transfers/index/follow-index.js";
import { type IndexFrom, parseIndexFrom } from "./transfers/index/index-from.js";
import { openIndex } from "./transfers/index/open-index.js";
import { IndexUnavailable } from "./transfers/index/sqlite.js";

const usage = `Fills the index of transfers with the past of mainnet's chains.

  npm run index -- [--from <beginning>]

  --from   how far back: a date (2024-01-01, or 2024-01-01T12:00Z), the blocks of single
           chains (ethereum:19000000), or both with commas between them.
           Default: INDEX_FROM, or else 7 days ago.
  --help   this text

Reads INDEX=sqlite:<file> and RPC_URL_<CHAIN> from the environment. May run beside the
service, and be ended (Ctrl-C) and started again at any time: it goes on where it ended.
`;

const network = networkOf("mainnet");

function readArguments(args: readonly string[]): { readonly from: string | undefined; readonly help: boolean } {
  try {
    const options = { from: { type: "string" }, help: { type: "boolean", short: "h", default: false } } as const;
    const { values } = parseArgs({ args: [...args], options, strict: true });
    return { from: values.from, help: values.help };
  } catch (error) {
    throw new StartFailure(`${messageOf(error)}\n\n${usage}`);
  }
}

function readFrom(text: string): IndexFrom {
  const from = parseIndexFrom(text, new Set(network.chains.keys()), Date.now());
  if (from !== undefined) return from;
  throw new StartFailure("--from is neither a date (2024-01-01) in the past nor blocks of chains (ethereum:19000000)");
}

/** @returns whether all of it is there */
async function fill({ rpcUrls }: Config, file: string, from: IndexFrom, signal: AbortSignal): Promise<boolean> {
  const index = await openIndex(file, network);
  const endpoints = [...network.chains].map(
    ([slug, { chainId }]) => [slug, { chainId, urls: rpcUrls.mainnet.get(slug) ?? [] }] as const,
  );
  const chains = createChains({ networks: { mainnet: new Map(endpoints) }, customUrls: "off", onFailure: () => {} });
  const display = createProgressDisplay({ output: process.stdout, now: steadyNow });
  try {
    await fillIndex({
      index,
      network,
      chains: chains.of("mainnet"),
      blockAt: createBlockTimes({ now: steadyNow }).blockAt,
      from,
      sleep: pause,
      pid: process.pid,
      events: {
        onHistory: display.show,
        onHeld: (slug, { pid }) =>
          display.say(`${slug}: process ${pid} fills this part already: waiting for it to end`),
        onTrouble: (slug, error) => display.say(`${slug}: ${messageOf(error)}; trying again`),
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

// Whoever started us may not read what we say.
process.stdout.on("error", () => {});
try {
  const { from, help } = readArguments(process.argv.slice(2));
  if (help) process.stdout.write(usage);
  else {
    const config = loadConfig(process.env);
    if (config.index === undefined) throw new ConfigError(["INDEX names no file: sqlite:<file>"]);
    const stopping = new AbortController();
    for (const name of ["SIGINT", "SIGTERM"]) {
      process.on(name, () => (stopping.signal.aborted ? process.exit(1) : stopping.abort()));
    }
    const begin = from === undefined ? config.index.from : readFrom(from);
    const isWhole = await fill(config, config.index.file, begin, stopping.signal);
    process.stdout.write(isWhole ? "the history is there\n" : "ended before its time: start it again to go on\n");
    process.exitCode = isWhole ? 0 : 1;
  }
} catch (error) {
  const isExpected = error instanceof IndexUnavailable;
  process.stderr.write(`hop-gateway: ${isExpected ? error.message : describeFailure(error)}\n`);
  process.exitCode = 1;
}
