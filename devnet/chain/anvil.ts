import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { once } from "node:events";
import { createRequire } from "node:module";
import { WebSocket } from "undici";
import { createJsonRpc, type JsonRpc, toHexQuantity } from "./json-rpc.js";

export interface AnvilOptions {
  readonly chainId: number;
  /** Price of gas in wei: what `eth_gasPrice` answers, before and after every block. */
  readonly gasPrice: bigint;
  /** Time of the first block, Unix seconds; the clock runs on from there. Default: now. */
  readonly timestamp?: number;
  /** State to begin with, as `anvil_dumpState` gave it (unzipped). The clock then runs at the time of day. */
  readonly stateFile?: string;
}

export interface Anvil {
  readonly chainId: number;
  readonly url: string;
  readonly rpc: JsonRpc;
  /** Ends the process and waits until it is gone. Harmless when it is gone already. */
  stop(): Promise<void>;
}

/** Old enough to run code for London, young enough for everything that wallets ask for; fixed, so that states last. */
const HARDFORK = "cancun";
const BLOCK_GAS_LIMIT = 200_000_000;
/** States of past blocks that can be read. Without a limit anvil writes them to the user's home and leaves them there. */
const MAX_HISTORICAL_STATES = 256;
const START_TIMEOUT_MS = 20_000;

/**
 * Runs the node and kills it as soon as standard input ends, which the operating system sees to even when our process
 * is killed outright. The shell lets go of the node's output, so that the end of that output is the end of the node.
 */
const WATCHDOG_SCRIPT = `"$@" </dev/null & node=$!; exec >/dev/null 2>&1; while read -r _; do :; done; kill -9 $node; wait $node`;

/** Starts one local chain on a free port of 127.0.0.1. It mines a block for every transaction, at once. */
export async function startAnvil(options: AnvilOptions): Promise<Anvil> {
  const { chainId, gasPrice, timestamp, stateFile } = options;
  const args = ["--host", "127.0.0.1", "--port", "0", "--chain-id", `${chainId}`, "--hardfork", HARDFORK];
  args.push("--gas-limit", `${BLOCK_GAS_LIMIT}`, "--auto-impersonate", "--color", "never");
  args.push("--prune-history", `${MAX_HISTORICAL_STATES}`);
  // Gas price = base fee: the minimum tip that anvil would add is not what these chains charge.
  args.push("--base-fee", `${gasPrice}`, "--disable-min-priority-fee");
  if (timestamp !== undefined) args.push("--timestamp", `${timestamp}`);
  if (stateFile !== undefined) args.push("--load-state", stateFile);

  // A process group of its own: Ctrl-C in a terminal is ours to act on, not the node's.
  const child = spawn("sh", ["-c", WATCHDOG_SCRIPT, "sh", resolveAnvilPath(), ...args], {
    stdio: "pipe",
    detached: true,
  });
  await once(child, "spawn").catch((cause: unknown) => {
    throw new Error("anvil could not be started", { cause });
  });
  const exited = once(child, "exit");
  const stop = async (): Promise<void> => {
    child.stdin.end();
    await exited;
  };
  // A node that ends by itself takes its watchdog along.
  child.stdout.once("end", () => child.stdin.end());
  child.stdin.on("error", () => {});
  try {
    const url = `http://127.0.0.1:${await readPort(child)}`;
    const rpc = createJsonRpc(url);
    await rpc("anvil_setLoggingEnabled", [false]);
    const keeper = await pinGasPrice(url, rpc, gasPrice);
    return {
      chainId,
      url,
      rpc,
      async stop() {
        keeper.close();
        await stop();
      },
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** The node's own binary, from the package for this platform; the launcher script beside it would be one more process. */
function resolveAnvilPath(): string {
  const require = createRequire(import.meta.url);
  const architecture = process.arch === "x64" ? "amd64" : process.arch;
  const launcher = createRequire(require.resolve("@foundry-rs/anvil/package.json"));
  return launcher.resolve(`@foundry-rs/anvil-${process.platform}-${architecture}/bin/anvil`);
}

/** Reads the port that the node has chosen from its banner; fails with what it said instead when it ends. */
async function readPort(child: ChildProcessWithoutNullStreams): Promise<string> {
  let said = "";
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error(`anvil did not start: ${said}`)), START_TIMEOUT_MS);
    const hear = (chunk: Buffer): void => {
      said += chunk.toString();
      const port = /Listening on \S+:(\d+)/.exec(said)?.[1];
      if (port === undefined) return;
      clearTimeout(timer);
      child.stdout.off("data", hear).resume();
      child.stderr.off("data", hear).resume();
      resolve(port);
    };
    child.stdout.on("data", hear);
    child.stderr.on("data", hear);
    // What is wrong is said on the one, and the other may end before that is read.
    void Promise.all([once(child.stdout, "end"), once(child.stderr, "end")]).then(() => {
      clearTimeout(timer);
      reject(new Error(`anvil ended: ${said}`));
    }, reject);
  });
}

/**
 * Anvil lowers the base fee by an eighth after every nearly empty block and has no setting against it (with a base fee
 * it ignores --gas-price). So the fee is put back after every block, whoever sent the transaction.
 */
async function pinGasPrice(url: string, rpc: JsonRpc, gasPrice: bigint): Promise<{ close(): void }> {
  const restore = (): Promise<unknown> => rpc("anvil_setNextBlockBaseFeePerGas", [toHexQuantity(gasPrice)]);
  const socket = new WebSocket(url.replace("http", "ws"));
  await new Promise<void>((resolve, reject) => {
    socket.addEventListener("error", () => reject(new Error("anvil takes no subscription")), { once: true });
    socket.addEventListener("message", () => resolve(), { once: true });
    socket.addEventListener("open", () => {
      socket.send(JSON.stringify({ jsonrpc: "2.0", id: 1, method: "eth_subscribe", params: ["newHeads"] }));
    });
  });
  socket.addEventListener("message", () => {
    // Fails only when the node is going down, and then there is no price to keep.
    restore().catch(() => {});
  });
  await restore();
  return socket;
}
