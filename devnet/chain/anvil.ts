import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { once } from "node:events";
import { createRequire } from "node:module";
import { WebSocket } from "undici";
import { createJsonRpc, type JsonRpc, toHexQuantity } from "./json-rpc.js";

export interface AnvilOptions {
  readonly chainId: number;
  /** Gas price in wei: the result of `eth_gasPrice`, constant over all blocks. */
  readonly gasPrice: bigint;
  /** Time of the first block, Unix seconds; the clock runs on from there. Default: now. */
  readonly timestamp?: number;
  /** File with the initial state, as `anvil_dumpState` returns it, unzipped. The clock then follows the wall clock. */
  readonly stateFile?: string;
  /** Blocks are final after twice as many. Default: anvil's, 32. */
  readonly slotsInEpoch?: number | undefined;
}

export interface Anvil {
  readonly chainId: number;
  readonly url: string;
  readonly rpc: JsonRpc;
  /** Stops the process and waits for its exit. Idempotent. */
  stop(): Promise<void>;
}

/** Runs code compiled for London and supports what wallets need. Fixed, so that saved states stay valid. */
const HARDFORK = "cancun";
const BLOCK_GAS_LIMIT = 200_000_000;
/** Number of past block states that can be read. Without a limit anvil writes them to the user's home and leaves them there. */
const MAX_HISTORICAL_STATES = 256;
const START_TIMEOUT_MS = 20_000;

/**
 * Runs the node and kills it when standard input ends, which happens even when our process is killed. The shell closes its
 * copies of the node's output, so that the output ends when the node exits.
 */
const WATCHDOG_SCRIPT = `"$@" </dev/null & node=$!; exec >/dev/null 2>&1; while read -r _; do :; done; kill -9 $node; wait $node`;

/** Starts a local chain on a free port of 127.0.0.1. It mines a block immediately for every transaction. */
export async function startAnvil(options: AnvilOptions): Promise<Anvil> {
  const { chainId, gasPrice, timestamp, stateFile, slotsInEpoch } = options;
  const args = ["--host", "127.0.0.1", "--port", "0", "--chain-id", `${chainId}`, "--hardfork", HARDFORK];
  args.push("--gas-limit", `${BLOCK_GAS_LIMIT}`, "--auto-impersonate", "--color", "never");
  args.push("--prune-history", `${MAX_HISTORICAL_STATES}`);
  // The gas price is the base fee alone; anvil would add a minimum priority fee.
  args.push("--base-fee", `${gasPrice}`, "--disable-min-priority-fee");
  if (timestamp !== undefined) args.push("--timestamp", `${timestamp}`);
  if (slotsInEpoch !== undefined) args.push("--slots-in-an-epoch", `${slotsInEpoch}`);
  if (stateFile !== undefined) args.push("--load-state", stateFile);

  // Detached, so that Ctrl-C in a terminal reaches only our process.
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
  // Ends the watchdog when the node exits by itself.
  child.stdout.once("end", () => child.stdin.end());
  child.stdin.on("error", () => {});
  try {
    const url = `http://127.0.0.1:${await readPort(child)}`;
    const rpc = createJsonRpc(url);
    await rpc("anvil_setLoggingEnabled", [false]);
    const gasPricePin = await pinGasPrice(url, rpc, gasPrice);
    return {
      chainId,
      url,
      rpc,
      async stop() {
        gasPricePin.close();
        await stop();
      },
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** Returns the path of the native binary of this platform; the launcher script would add a process. */
function resolveAnvilPath(): string {
  const require = createRequire(import.meta.url);
  const architecture = process.arch === "x64" ? "amd64" : process.arch;
  const launcher = createRequire(require.resolve("@foundry-rs/anvil/package.json"));
  return launcher.resolve(`@foundry-rs/anvil-${process.platform}-${architecture}/bin/anvil`);
}

/** Reads the port from the node's banner. Rejects with the node's output if it exits instead. */
async function readPort(child: ChildProcessWithoutNullStreams): Promise<string> {
  let output = "";
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error(`anvil did not start: ${output}`)), START_TIMEOUT_MS);
    const onData = (chunk: Buffer): void => {
      output += chunk.toString();
      const port = /Listening on \S+:(\d+)/.exec(output)?.[1];
      if (port === undefined) return;
      clearTimeout(timer);
      child.stdout.off("data", onData).resume();
      child.stderr.off("data", onData).resume();
      resolve(port);
    };
    child.stdout.on("data", onData);
    child.stderr.on("data", onData);
    // Waits for both: the error is on one of them, and the other may end before it is read.
    void Promise.all([once(child.stdout, "end"), once(child.stderr, "end")]).then(() => {
      clearTimeout(timer);
      reject(new Error(`anvil exited: ${output}`));
    }, reject);
  });
}

/**
 * Resets the base fee after every block. Anvil lowers it by an eighth after a nearly empty block (EIP-1559) and has no option
 * against that; with a base fee it ignores --gas-price.
 */
async function pinGasPrice(url: string, rpc: JsonRpc, gasPrice: bigint): Promise<{ close(): void }> {
  const restore = (): Promise<unknown> => rpc("anvil_setNextBlockBaseFeePerGas", [toHexQuantity(gasPrice)]);
  const socket = new WebSocket(url.replace("http", "ws"));
  await new Promise<void>((resolve, reject) => {
    socket.addEventListener("error", () => reject(new Error("anvil rejected the subscription")), { once: true });
    socket.addEventListener("message", () => resolve(), { once: true });
    socket.addEventListener("open", () => {
      socket.send(JSON.stringify({ jsonrpc: "2.0", id: 1, method: "eth_subscribe", params: ["newHeads"] }));
    });
  });
  socket.addEventListener("message", () => {
    // Fails only while the node shuts down.
    restore().catch(() => {});
  });
  await restore();
  return socket;
}
